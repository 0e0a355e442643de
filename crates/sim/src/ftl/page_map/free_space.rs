//! Reclamation by the page map when no plane has free space, before the device is full.
//!
//! ```text
//! the policy, twice through every plane ─▶ the emptiest block, until every plane has its reserve ─▶ the
//! emptiest block, until a page has found space ─▶ the device is full
//! ```
//!
//! A policy that chooses at random, or considers only a few blocks, may use up the free space of a small
//! device although much of it could be reclaimed. A block whose pages are all valid gains nothing, and with a
//! map on flash its collection costs mapping pages.
//!
//! The emptiest block always gains at least one page, because a valid profile leaves something to gain
//! (`config/checks.rs`). Every plane keeps its reserve, its open blocks and one more block. So the pages that
//! are neither valid nor free cannot all be in open blocks, and some block of some plane can be collected
//! while the host waits for space.
//!
//! There are enough free pages for this collection, too. Usually a victim is chosen only if a whole block of
//! pages, and as many mapping pages, could be moved. The emptiest block moves at least one page less. Its
//! exact need is counted, and the reserve, which only collections use, is large enough.

use super::PageMap;
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::PageStream;

/// Maximum number of retries of the policy once every plane has its reserve, while no page finds space.
const OVERRULES_MAX: u32 = 64;

impl PageMap {
    /// Overrule the policy after no plane gained anything: the emptiest block is collected next. Returns
    /// false if that has been tried to the end.
    #[cold]
    pub(crate) fn overrule_policy(&mut self) -> bool {
        let may_repeat =
            self.on_flash.is_some() && !self.overruled && self.overrules < OVERRULES_MAX;
        if !may_repeat && self.urgent {
            return false;
        }
        self.overrules += 1;
        self.overruled = true;
        self.urgent = !may_repeat;
        true
    }

    /// Return to normal operation: a page that had waited found space.
    #[cold]
    pub(crate) fn reset_urgency(&mut self) {
        self.overrules = 0;
        if self.urgent {
            (self.urgent, self.overruled) = (false, false);
        }
    }

    /// Reserve a block of pages for a due collection, which must wait until others have gained that many
    /// pages. Where the host shares open blocks with relocated pages, it would otherwise take these pages as
    /// they come, and in the end only one collection would run for all planes.
    #[cold]
    pub(super) fn reserve_for_next(&mut self) {
        if self.reserved > 0 {
            self.set_reserve_for_next();
        }
    }

    /// Resume collection after a power loss. A collection that was interrupted has used a part of its plane's
    /// reserve and needs the rest; the emptiest block is what it gains most from.
    pub(super) fn resume_collection(&mut self) {
        self.overruled = true;
        self.set_reserve_for_next();
    }

    /// Reserve a block of pages, which the host may not use until the next collection has begun.
    fn set_reserve_for_next(&mut self) {
        let shared = self.blocks.cost_of_host_page(false) > 0;
        self.reserved_for_next = if shared { self.pages_for_any_victim() } else { 0 };
    }

    /// Stop overruling the policy once every plane has its reserve again.
    #[inline]
    pub(super) fn stop_overruling(&mut self) {
        if self.overruled && !self.urgent {
            let reserve =
                self.options.geometry.shape().planes * self.options.reserved_blocks as u32;
            self.overruled = self.blocks.free_blocks() < reserve;
        }
    }

    /// Return whether a page waits because no plane has space.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// Return the block of `plane` with the fewest valid pages, with data or mapping pages, if there are
    /// enough pages for its collection. Unlike normal collection, no more than its exact need is required.
    #[cold]
    pub(super) fn urgent_victim(&mut self, plane: PlaneIdx) -> Option<(BlockIdx, PageStream)> {
        if let Some(block) = self.fold_urgently(plane) {
            return Some((block, PageStream::Relocated));
        }
        let valid = |block: BlockIdx| u32::from(self.blocks.valid_count(block));
        let flash_map = self.on_flash.as_deref();
        let of_map = flash_map.and_then(|flash_map| flash_map.emptiest(plane, &self.blocks));
        let of_map = of_map.filter(|block| valid(*block) < self.blocks.usable(*block));
        let of_map = of_map.filter(|block| self.has_space_for(*block, 0, valid(*block)));
        // Separate streams: there may be space for one and not for another.
        let data = self.blocks.emptiest_that(plane, |block| {
            let moved = self.pages_to_move(valid(block));
            let mapping = flash_map.map_or(0, |flash_map| moved.min(flash_map.mapping_pages()));
            self.has_space_for(block, moved, mapping)
        });
        // Moving a mapping page changes no other mapping page.
        match (of_map, data) {
            (Some(of_map), data) if data.is_none_or(|data| valid(of_map) <= valid(data)) => {
                self.on_flash.as_mut()?.remove(plane, of_map);
                Some((of_map, PageStream::Mapping))
            }
            (_, data) => {
                let data = data?;
                self.options.victims.remove(plane, data, &self.blocks);
                Some((data, PageStream::Relocated))
            }
        }
    }

    /// Return the oldest SLC cache block, if its pages fit.
    fn fold_urgently(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let oldest = self.slc.as_ref()?.oldest(plane)?;
        let valid = u32::from(self.blocks.valid_count(oldest));
        if self.has_space_for(oldest, valid, 0) { self.fold_oldest(plane) } else { None }
    }

    /// Return whether `moved` pages of `victim` and `mapping` mapping pages fit in addition to
    /// everything reserved.
    fn has_space_for(&self, victim: BlockIdx, moved: u32, mapping: u32) -> bool {
        match &self.on_flash {
            Some(flash_map) => {
                self.blocks.fits(self.reserved + moved, flash_map.reserved + mapping)
            }
            None => match &self.host_streams {
                Some(host_streams) => {
                    self.fits_streams(host_streams, None, Some((Some(victim), moved)))
                }
                None => {
                    self.blocks.pages_for_relocation()
                        >= self.reserved + moved + self.padding_reserve()
                }
            },
        }
    }

    /// Return whether the emptiest block is the victim, whatever the policy.
    #[inline]
    pub(super) fn is_overruled(&self) -> bool {
        self.overruled
    }

    /// Return how many attempts to make while each gains something. Normally a pass through all blocks is
    /// enough; if urgent, every attempt may gain a single page.
    pub(crate) fn max_attempts(&self, pass: u64) -> u64 {
        let gains = if self.urgent { u64::from(self.options.geometry.data_pages()) } else { 1 };
        2 * pass * gains
    }
}
