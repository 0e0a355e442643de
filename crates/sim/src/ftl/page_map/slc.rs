//! An SLC cache: the host's pages are programmed with one bit a cell first, which is quick, and moved to cells of
//! several bits in idle time (folding).
//!
//! ```text
//! host ─▶ open SLC block ─▶ full, oldest first ─▶ folded: valid pages go to ordinary blocks, one of several
//!   └─ where the cache has no page left: straight to ordinary blocks (the cache cliff)
//! ```
//!
//! **Source**: TurboWrite (Samsung 840 EVO, white paper 2013), nCache (SanDisk 2012), dynamic write acceleration
//! (Micron 2014); Zhang et al., *SPA-SSD*; SSDs of today as reviews measure them.
//! **Faithful**: an SLC block holds one page of those that share cells; a static part that is always
//! reserved, and a dynamic one of free blocks; writes bypass the cache while it is full; folding in idle
//! time, and when free blocks are short.
//! **Simplified**: pages are folded through the controller, like any others that are moved, and one block of
//! a plane at a time. Untimed writes bypass the cache, since there the host leaves as much idle time as is
//! needed.
//! **Ambiguous**: which comes first: a partly filled flash page outside the cache, or a cache that has space
//! again; here that page is filled. When the static part is folded: in idle time, and otherwise only if
//! nothing else can be collected. The dynamic part is given up as soon as a plane collects.

use std::collections::VecDeque;

use super::PageMap;
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::{CACHE, PageStream};

/// The size of the cache.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct SlcOptions {
    /// Blocks of a plane reserved for the cache, and their maximum number.
    pub(crate) blocks: u32,
    pub(crate) blocks_max: u32,
    /// Pages of an SLC block.
    pub(crate) pages: u32,
}

/// The blocks of the cache.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Slc")]
pub(in crate::ftl) struct SlcCache {
    #[serde(rename = "of")]
    options: SlcOptions,
    /// Per plane: full blocks, the oldest first.
    full: Vec<VecDeque<BlockIdx>>,
    /// The host is idle: blocks of the cache are folded.
    idle: bool,
    /// Writes bypass the cache.
    bypass: bool,
}

impl SlcCache {
    pub(super) fn new(options: SlcOptions, planes: u32) -> SlcCache {
        SlcCache {
            options,
            full: vec![VecDeque::new(); planes as usize],
            idle: false,
            bypass: false,
        }
    }

    /// Record that `block` of `plane` is full.
    pub(super) fn filled(&mut self, plane: PlaneIdx, block: BlockIdx) {
        self.full[plane.0 as usize].push_back(block);
    }

    /// Return the block of `plane` that was filled longest ago.
    pub(super) fn oldest(&self, plane: PlaneIdx) -> Option<BlockIdx> {
        self.full[plane.0 as usize].front().copied()
    }

    fn full_in(&self, plane: PlaneIdx) -> u32 {
        self.full[plane.0 as usize].len() as u32
    }
}

impl PageMap {
    /// Record whether the host is idle.
    #[inline]
    pub(crate) fn set_idle(&mut self, idle: bool) {
        if let Some(slc) = &mut self.slc {
            slc.idle = idle;
        }
    }

    /// Return the role of the open block that takes the host's pages.
    #[inline]
    pub(crate) fn selected_role(&self) -> u8 {
        self.blocks.selected_role()
    }

    /// Set whether the following writes bypass the cache.
    #[inline]
    pub(crate) fn bypass_cache(&mut self, bypass: bool) {
        if let Some(slc) = &mut self.slc {
            slc.bypass = bypass;
        }
    }

    /// Return the free blocks that `plane` keeps from the host: the reserve, and those that the cache may
    /// still open.
    #[inline]
    pub(super) fn reserved_free<M: FastPath>(&self, plane: PlaneIdx) -> usize {
        let for_cache = if M::MINIMAL { 0 } else { self.reserved_for_cache(plane) };
        self.options.reserved_blocks + for_cache
    }

    /// Return the free blocks of `plane` that only the cache may open.
    #[inline]
    pub(super) fn reserved_for_cache(&self, plane: PlaneIdx) -> usize {
        let Some(slc) = &self.slc else { return 0 };
        let open = u32::from(self.blocks.has_open_cache(plane));
        slc.options.blocks.saturating_sub(slc.full_in(plane) + open) as usize
    }

    /// Return the plane whose partly filled flash page in the cache takes the host's next unit, and select
    /// the cache.
    #[inline]
    pub(super) fn cache_plane_in_progress(&mut self) -> Option<PlaneIdx> {
        if self.slc.as_ref().is_none_or(|slc| slc.bypass) {
            return None;
        }
        self.blocks.select_stream(CACHE);
        let plane = self.plane_in_progress(PageStream::Host);
        if plane.is_none() {
            self.blocks.select_stream(0);
        }
        plane
    }

    /// Return whether a unit on `plane` continues a partly filled flash page outside the cache.
    #[inline]
    pub(super) fn has_open_page_past_cache(&self, plane: PlaneIdx) -> bool {
        self.blocks.selected_role() != CACHE
            && self.plane_in_progress(PageStream::Host) == Some(plane)
    }

    /// Return whether `plane` has an SLC block to fold in idle time.
    #[inline]
    pub(crate) fn has_block_to_fold(&self, plane: PlaneIdx) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.full_in(plane) > 0)
    }

    /// Return whether the host's next page fits into the cache of `plane`. Selects the cache if so,
    /// and ordinary blocks otherwise.
    #[inline]
    pub(super) fn fits_cache(&mut self, plane: PlaneIdx) -> bool {
        let Some(slc) = &self.slc else { return false };
        let bypass = slc.bypass;
        self.blocks.select_stream(CACHE);
        let opens = !self.blocks.has_open_page(plane, PageStream::Host);
        let may_open = !bypass && (!opens || self.may_open_cache(plane));
        let finds = may_open && self.fits_host_page(plane, opens);
        if !finds {
            self.blocks.select_stream(0);
        }
        finds
    }

    /// Return whether the cache may open another block of `plane`.
    fn may_open_cache(&self, plane: PlaneIdx) -> bool {
        let Some(slc) = &self.slc else { return false };
        let free = self.blocks.free_in(plane);
        match slc.full_in(plane) {
            full if full < slc.options.blocks => free > self.options.reserved_blocks,
            // One free block is left for pages that bypass the cache.
            full => {
                full < slc.options.blocks_max && free > self.reserved_free::<AllFeatures>(plane) + 1
            }
        }
    }

    /// Return the oldest cache block of `plane`, to be folded, if it is due or nothing else can be collected.
    #[inline]
    pub(super) fn fold_if_due(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let slc = self.slc.as_ref()?;
        let due = slc.idle || slc.full_in(plane) > slc.options.blocks;
        if due || !self.blocks.has_reclaimable(plane) { self.fold_oldest(plane) } else { None }
    }

    /// Return the oldest cache block of `plane`, which is folded now.
    pub(super) fn fold_oldest(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        self.slc.as_mut()?.full[plane.0 as usize].pop_front()
    }
}
