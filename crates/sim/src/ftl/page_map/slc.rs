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
//! **Faithful**: an SLC block holds one page of those that share cells; a static part that is always there, and
//! a dynamic one of free blocks; what is written while the cache is full goes past it; folding in idle time,
//! and where blocks are short.
//! **Simplified**: pages are folded through the controller, like any others that are moved, and one block of a
//! plane at a time; nothing goes through the cache in the untimed gear, where the host leaves as much time as is
//! needed.
//! **Ambiguous**: which of a flash page of units that has begun past the cache and a cache that has room again comes
//! first; here that page is filled. When the static part is folded: in idle time, and otherwise only where nothing else can be
//! collected. What is dynamic gives way as soon as a plane collects.

use std::collections::VecDeque;

use super::PageMap;
use crate::flash::fast_path::{FastPath, Full};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::{CACHE, Stream};

/// How large the cache is.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct SlcOptions {
    /// Blocks of a plane that are kept for it, and how many it may have.
    pub(crate) blocks: u32,
    pub(crate) blocks_max: u32,
    /// Pages that an SLC block holds.
    pub(crate) pages: u32,
}

/// The blocks of the cache.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(in crate::ftl) struct Slc {
    of: SlcOptions,
    /// Per plane: those that are full, the oldest first.
    full: Vec<VecDeque<BlockIdx>>,
    /// The host is idle: what is in the cache is folded.
    idle: bool,
    /// Nothing goes through the cache.
    past: bool,
}

impl Slc {
    pub(super) fn new(of: SlcOptions, planes: u32) -> Slc {
        Slc { of, full: vec![VecDeque::new(); planes as usize], idle: false, past: false }
    }

    /// `block` of `plane` is full.
    pub(super) fn filled(&mut self, plane: PlaneIdx, block: BlockIdx) {
        self.full[plane.0 as usize].push_back(block);
    }

    /// The block of `plane` that was filled longest ago.
    pub(super) fn oldest(&self, plane: PlaneIdx) -> Option<BlockIdx> {
        self.full[plane.0 as usize].front().copied()
    }

    fn full_in(&self, plane: PlaneIdx) -> u32 {
        self.full[plane.0 as usize].len() as u32
    }
}

impl PageMap {
    /// The host is idle, or it is not any more.
    #[inline]
    pub(crate) fn set_idle(&mut self, idle: bool) {
        if let Some(slc) = &mut self.slc {
            slc.idle = idle;
        }
    }

    /// Which of a plane's open blocks takes the host's pages.
    #[inline]
    pub(crate) fn served(&self) -> u8 {
        self.blocks.served()
    }

    /// Writes that follow go past the cache, or not any more.
    #[inline]
    pub(crate) fn go_past_cache(&mut self, past: bool) {
        if let Some(slc) = &mut self.slc {
            slc.past = past;
        }
    }

    /// Free blocks that `plane` keeps from the host: the reserve, and what the cache may still open.
    #[inline]
    pub(super) fn kept_free<M: FastPath>(&self, plane: PlaneIdx) -> usize {
        let for_cache = if M::MINIMAL { 0 } else { self.kept_for_cache(plane) };
        self.options.reserved_blocks + for_cache
    }

    /// Free blocks of `plane` that only the cache opens.
    #[inline]
    pub(super) fn kept_for_cache(&self, plane: PlaneIdx) -> usize {
        let Some(slc) = &self.slc else { return 0 };
        let open = u32::from(self.blocks.has_open_cache(plane));
        slc.of.blocks.saturating_sub(slc.full_in(plane) + open) as usize
    }

    /// The plane whose flash page in the cache the next unit of the host goes on with; then it is served there.
    #[inline]
    pub(super) fn cache_goes_on(&mut self) -> Option<PlaneIdx> {
        if self.slc.as_ref().is_none_or(|slc| slc.past) {
            return None;
        }
        self.blocks.serve(CACHE);
        let plane = self.goes_on(Stream::Host);
        if plane.is_none() {
            self.blocks.serve(0);
        }
        plane
    }

    /// Whether a unit on `plane` goes on with a flash page that has begun past the cache.
    #[inline]
    pub(super) fn has_begun_past_cache(&self, plane: PlaneIdx) -> bool {
        self.blocks.served() != CACHE && self.goes_on(Stream::Host) == Some(plane)
    }

    /// Whether idle time is to be used to fold a block of `plane`.
    #[inline]
    pub(crate) fn has_to_fold(&self, plane: PlaneIdx) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.full_in(plane) > 0)
    }

    /// Whether the host's next page finds a place in the cache of `plane`; then it is served there, and
    /// otherwise past it.
    #[inline]
    pub(super) fn finds_cache(&mut self, plane: PlaneIdx) -> bool {
        let Some(slc) = &self.slc else { return false };
        let past = slc.past;
        self.blocks.serve(CACHE);
        let opens = !self.blocks.has_open_page(plane, Stream::Host);
        let may_open = !past && (!opens || self.may_open_cache(plane));
        let finds = may_open && self.fits_host_page(plane, opens);
        if !finds {
            self.blocks.serve(0);
        }
        finds
    }

    /// Whether the cache may open another block of `plane`.
    fn may_open_cache(&self, plane: PlaneIdx) -> bool {
        let Some(slc) = &self.slc else { return false };
        let free = self.blocks.free_in(plane);
        match slc.full_in(plane) {
            full if full < slc.of.blocks => free > self.options.reserved_blocks,
            // A free block is left for what goes past the cache.
            full => full < slc.of.blocks_max && free > self.kept_free::<Full>(plane) + 1,
        }
    }

    /// The block of the cache that is to be folded: the oldest of `plane`, where it is time for that, or where
    /// nothing else can be collected.
    #[inline]
    pub(super) fn fold_if_due(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let slc = self.slc.as_ref()?;
        let due = slc.idle || slc.full_in(plane) > slc.of.blocks;
        if due || !self.blocks.has_reclaimable(plane) { self.fold_oldest(plane) } else { None }
    }

    /// The block of the cache of `plane` that was filled longest ago is folded.
    pub(super) fn fold_oldest(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        self.slc.as_mut()?.full[plane.0 as usize].pop_front()
    }
}
