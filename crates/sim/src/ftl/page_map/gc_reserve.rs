//! Pages that are set aside for collections under way, so that whatever is begun can be finished.

use super::{Collection, PageMap, RelocationLoad};
use crate::flash::fast_path::FastPath;
use crate::pool::blocks::Stream;

impl PageMap {
    /// How many pages of each victim are moved, at least or exactly.
    pub(super) fn load(&self) -> u32 {
        self.options.load.number().min(self.options.geometry.data_pages())
    }

    /// Whether nothing more is moved although it is valid; see [`RelocationLoad::Exactly`].
    #[inline(always)]
    pub(super) fn has_moved_enough(&self, collection: &Collection) -> bool {
        matches!(self.options.load, RelocationLoad::Exactly(_))
            && collection.stream == Stream::Relocated
            && collection.moved >= self.load()
    }

    /// How many pages the collection of a block with so many valid ones programs.
    pub(super) fn pages_to_move(&self, valid: u32) -> u32 {
        match self.options.load {
            RelocationLoad::AtLeast(_) => valid.max(self.load()),
            RelocationLoad::Exactly(_) => self.load(),
        }
    }

    /// How many are set aside for it: those that move. Where power may be lost, pages that were trimmed, or whose
    /// newer versions are, may come back to it, and copies may be torn: then as many as any victim needs.
    fn pages_for_victim(&self, valid: u32) -> u32 {
        if self.may_come_back() { self.pages_for_any_victim() } else { self.pages_to_move(valid) }
    }

    /// Whether a loss of power may bring back what is not valid any more, with no map on flash to know better.
    fn may_come_back(&self) -> bool {
        self.options.power_loss && self.on_flash.is_none()
    }

    /// A block of pages; where power may be lost, one more for each plane, which may be tearing one. A map on flash
    /// leaves another block anyway.
    pub(super) fn pages_for_any_victim(&self) -> u32 {
        let planes = if self.may_come_back() { self.options.geometry.shape().planes } else { 0 };
        self.options.geometry.data_pages() + planes
    }

    /// Set aside the pages that `collection` may need.
    pub(super) fn promise(&mut self, collection: &mut Collection) {
        let valid = u32::from(self.blocks.valid_count(collection.victim));
        if collection.stream == Stream::Mapping {
            collection.promised_mapping = valid;
        } else {
            collection.promised = self.pages_for_victim(valid);
            let most = self.on_flash.as_ref().map_or(0, |kept| kept.mapping_pages());
            collection.promised_mapping = collection.promised.min(most);
        }
        self.promised += collection.promised;
        self.kept_for_next = 0;
        self.promise_apart(collection.victim, collection.promised);
        if let Some(kept) = &mut self.on_flash {
            kept.promised += collection.promised_mapping;
        }
    }

    /// `collection` has moved so many of the pages that it promised.
    #[inline]
    pub(super) fn spend<M: FastPath>(&mut self, collection: &mut Collection, pages: u32) {
        if M::MINIMAL {
            collection.promised -= pages;
            self.promised -= pages;
            return;
        }
        match (&mut self.on_flash, collection.stream) {
            (Some(kept), Stream::Mapping) => {
                collection.promised_mapping -= pages;
                kept.promised -= pages;
            }
            _ => {
                collection.promised -= pages;
                self.promised -= pages;
                self.release_apart(collection.victim, pages);
            }
        }
    }
}
