//! Pages reserved for collections in progress: every collection that begins can finish.

use super::{Collection, PageMap, RelocationLoad};
use crate::flash::fast_path::FastPath;
use crate::pool::blocks::PageStream;

impl PageMap {
    /// Return the number of pages that are moved of each victim, at least or exactly.
    pub(super) fn load(&self) -> u32 {
        self.options.load.number().min(self.options.geometry.data_pages())
    }

    /// Return whether `collection` moves no more valid pages; see [`RelocationLoad::Exactly`].
    #[inline(always)]
    pub(super) fn has_reached_load(&self, collection: &Collection) -> bool {
        matches!(self.options.load, RelocationLoad::Exactly(_))
            && collection.stream == PageStream::Relocated
            && collection.moved >= self.load()
    }

    /// Return how many pages the collection of a block with `valid` valid pages programs.
    pub(super) fn pages_to_move(&self, valid: u32) -> u32 {
        match self.options.load {
            RelocationLoad::AtLeast(_) => valid.max(self.load()),
            RelocationLoad::Exactly(_) => self.load(),
        }
    }

    /// Return how many pages are reserved for it: those that move. If power may be lost, pages that were
    /// trimmed, or whose newer versions are lost, may become valid again, and copies may be torn: then the
    /// reserve covers any victim.
    fn pages_for_victim(&self, valid: u32) -> u32 {
        if self.may_revalidate() { self.pages_for_any_victim() } else { self.pages_to_move(valid) }
    }

    /// Return whether a power loss may make invalid pages valid again; a map on flash prevents
    /// that.
    fn may_revalidate(&self) -> bool {
        self.options.power_loss && self.on_flash.is_none()
    }

    /// Return the reserve that covers any victim: a block of pages. If power may be lost, there is one more
    /// page per plane, since each plane may tear one. A map on flash reserves another block anyway.
    pub(super) fn pages_for_any_victim(&self) -> u32 {
        let planes = if self.may_revalidate() { self.options.geometry.shape().planes } else { 0 };
        self.options.geometry.data_pages() + planes
    }

    /// Reserve the pages that `collection` may need.
    pub(super) fn reserve(&mut self, collection: &mut Collection) {
        let valid = u32::from(self.blocks.valid_count(collection.victim));
        if collection.stream == PageStream::Mapping {
            collection.reserved_mapping = valid;
        } else {
            collection.reserved = self.pages_for_victim(valid);
            let mapping_pages =
                self.on_flash.as_ref().map_or(0, |flash_map| flash_map.mapping_pages());
            collection.reserved_mapping = collection.reserved.min(mapping_pages);
        }
        self.reserved += collection.reserved;
        self.reserved_for_next = 0;
        self.reserve_in_stream(collection.victim, collection.reserved);
        if let Some(flash_map) = &mut self.on_flash {
            flash_map.reserved += collection.reserved_mapping;
        }
    }

    /// Release the reserve of `pages` pages, which `collection` has moved.
    #[inline]
    pub(super) fn use_reserve<M: FastPath>(&mut self, collection: &mut Collection, pages: u32) {
        if M::MINIMAL {
            collection.reserved -= pages;
            self.reserved -= pages;
            return;
        }
        match (&mut self.on_flash, collection.stream) {
            (Some(flash_map), PageStream::Mapping) => {
                collection.reserved_mapping -= pages;
                flash_map.reserved -= pages;
            }
            _ => {
                collection.reserved -= pages;
                self.reserved -= pages;
                self.release_in_stream(collection.victim, pages);
            }
        }
    }
}
