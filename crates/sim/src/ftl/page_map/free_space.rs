//! Where no plane has room: what is tried before the device says that it has none.
//!
//! ```text
//! the policy, twice through every plane ─▶ the emptiest block, until every plane has its reserve ─▶ the
//! emptiest block, until a page has found room ─▶ the device is full
//! ```
//!
//! A policy that draws, or looks at a few blocks only, may use up the room of a small device although much
//! of it could be reclaimed: a block of which all pages are valid gains nothing, and where the map is on
//! flash it costs mapping pages. The emptiest block always gains a page at least, because a profile must
//! leave something to gain (`config/checks.rs`): every plane keeps its reserve, the blocks that it has open
//! and one more, so the pages that are neither valid nor free cannot all be in blocks that are open, and
//! some block of some plane can be collected as long as the host waits for room.
//!
//! There is room for that, too. Usually a victim is chosen only where a whole block of pages, and as many
//! of the map, could be moved. The emptiest one has a page less than that to move at least; what it needs
//! is counted for itself, and the reserve, which only collections take from, holds it.

use super::PageMap;
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::Stream;

/// So often the policy is asked again once every plane has its reserve, while no page finds room.
const OVERRULES_MAX: u32 = 64;

impl PageMap {
    /// No plane has gained anything: let the emptiest block be collected, whatever the policy. False where
    /// that was tried to the end.
    #[cold]
    pub(crate) fn overrule_policy(&mut self) -> bool {
        let again = self.on_flash.is_some() && !self.overruled && self.overrules < OVERRULES_MAX;
        if !again && self.urgent {
            return false;
        }
        self.overrules += 1;
        self.overruled = true;
        self.urgent = !again;
        true
    }

    /// A page has found room for which there was none: all is as usual again.
    #[cold]
    pub(crate) fn found_room(&mut self) {
        self.overrules = 0;
        if self.urgent {
            (self.urgent, self.overruled) = (false, false);
        }
    }

    /// A collection that is due has to wait until others have gained a block of pages. Where open blocks are
    /// shared, the host would take these first, as they come, and in the end a single collection were under way
    /// for all planes: so it leaves them until the next one has begun.
    #[cold]
    pub(super) fn keep_for_next(&mut self) {
        if self.promised > 0 {
            self.leave_for_next();
        }
    }

    /// Power was lost. A collection that was cut short has used up a part of what its plane had in reserve, and
    /// needs the rest; what it was to gain most from is the emptiest block.
    pub(super) fn go_on_collecting(&mut self) {
        self.overruled = true;
        self.leave_for_next();
    }

    /// The host leaves a block of pages until the next collection has begun.
    fn leave_for_next(&mut self) {
        let shared = self.blocks.cost_of_host_page(false) > 0;
        self.kept_for_next = if shared { self.pages_for_any_victim() } else { 0 };
    }

    /// Where the policy was overruled and every plane has its reserve again, it is asked again.
    #[inline]
    pub(super) fn ask_policy_again(&mut self) {
        if self.overruled && !self.urgent {
            let reserve =
                self.options.geometry.shape().planes * self.options.reserved_blocks as u32;
            self.overruled = self.blocks.free_blocks() < reserve;
        }
    }

    /// Whether a page waits for room that no plane has.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// The block of `plane` with the fewest valid pages, with data or with a part of the map, as long as what
    /// its collection needs is there; nobody asks for more, as is done where there is plenty.
    #[cold]
    pub(super) fn urgent_victim(&mut self, plane: PlaneIdx) -> Option<(BlockIdx, Stream)> {
        if let Some(block) = self.fold_urgently(plane) {
            return Some((block, Stream::Relocated));
        }
        let valid = |block: BlockIdx| u32::from(self.blocks.valid_count(block));
        let kept = self.on_flash.as_deref();
        let of_map = kept.and_then(|kept| kept.emptiest(plane, &self.blocks));
        let of_map = of_map.filter(|block| valid(*block) < self.blocks.usable(*block));
        let of_map = of_map.filter(|block| self.has_room_for(*block, 0, valid(*block)));
        // Where streams are kept apart, there may be room for one and not for another.
        let data = self.blocks.emptiest_that(plane, |block| {
            let moved = self.pages_to_move(valid(block));
            let mapping = kept.map_or(0, |kept| moved.min(kept.mapping_pages()));
            self.has_room_for(block, moved, mapping)
        });
        // Moving a part of the map changes no other part of it.
        match (of_map, data) {
            (Some(of_map), data) if data.is_none_or(|data| valid(of_map) <= valid(data)) => {
                self.on_flash.as_mut()?.remove(plane, of_map);
                Some((of_map, Stream::Mapping))
            }
            (_, data) => {
                let data = data?;
                self.options.victims.remove(plane, data, &self.blocks);
                Some((data, Stream::Relocated))
            }
        }
    }

    /// The oldest block of an SLC cache, as long as its pages find room.
    fn fold_urgently(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let oldest = self.slc.as_ref()?.oldest(plane)?;
        let valid = u32::from(self.blocks.valid_count(oldest));
        if self.has_room_for(oldest, valid, 0) { self.fold_oldest(plane) } else { None }
    }

    /// Whether so many pages of `victim` can be moved, and so many of the map programmed, beside what was promised.
    fn has_room_for(&self, victim: BlockIdx, moved: u32, mapping: u32) -> bool {
        match &self.on_flash {
            Some(kept) => self.blocks.fits(self.promised + moved, kept.promised + mapping),
            None => match &self.apart {
                Some(apart) => self.fits_apart(apart, None, Some((Some(victim), moved))),
                None => self.blocks.pages_for_relocation() >= self.promised + moved + self.owed(),
            },
        }
    }

    /// Whether the emptiest block is the victim, whatever the policy.
    #[inline]
    pub(super) fn is_overruled(&self) -> bool {
        self.overruled
    }

    /// How often whatever gains something is to be tried, where a pass through all blocks will mostly do:
    /// where it is urgent, every try may gain a single page.
    pub(crate) fn patience(&self, pass: u64) -> u64 {
        let gains = if self.urgent { u64::from(self.options.geometry.data_pages()) } else { 1 };
        2 * pass * gains
    }
}
