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
//! die at a time; nothing goes through the cache in the untimed gear, where the host leaves as much time as is
//! needed.
//! **Ambiguous**: when the static part is folded: in idle time, and otherwise only where nothing else can be
//! collected. What is dynamic gives way as soon as a die collects.

use std::collections::VecDeque;

use super::PageMap;
use crate::flash::geometry::{BlockIdx, DieIdx};
use crate::flash::make::{Equipped, Make};
use crate::pool::blocks::{CACHE, Stream};

/// How large the cache is.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct SlcOptions {
    /// Blocks of a die that are kept for it, and how many it may have.
    pub(crate) blocks: u32,
    pub(crate) blocks_max: u32,
    /// Pages that an SLC block holds.
    pub(crate) pages: u32,
}

/// The blocks of the cache.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(in crate::ftl) struct Slc {
    of: SlcOptions,
    /// Per die: those that are full, the oldest first.
    full: Vec<VecDeque<BlockIdx>>,
    /// The host is idle: what is in the cache is folded.
    idle: bool,
    /// Nothing goes through the cache.
    past: bool,
}

impl Slc {
    pub(super) fn new(of: SlcOptions, dies: u32) -> Slc {
        Slc { of, full: vec![VecDeque::new(); dies as usize], idle: false, past: false }
    }

    /// `block` of `die` is full.
    pub(super) fn filled(&mut self, die: DieIdx, block: BlockIdx) {
        self.full[die.0 as usize].push_back(block);
    }

    /// The block of `die` that was filled longest ago.
    pub(super) fn oldest(&self, die: DieIdx) -> Option<BlockIdx> {
        self.full[die.0 as usize].front().copied()
    }

    fn full_in(&self, die: DieIdx) -> u32 {
        self.full[die.0 as usize].len() as u32
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

    /// Which of a die's open blocks takes the host's pages.
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

    /// Free blocks that `die` keeps from the host: the reserve, and what the cache may still open.
    #[inline]
    pub(super) fn kept_free<M: Make>(&self, die: DieIdx) -> usize {
        let for_cache = if M::PLAIN { 0 } else { self.kept_for_cache(die) };
        self.options.reserved_blocks + for_cache
    }

    /// Free blocks of `die` that only the cache opens.
    #[inline]
    pub(super) fn kept_for_cache(&self, die: DieIdx) -> usize {
        let Some(slc) = &self.slc else { return 0 };
        let open = u32::from(self.blocks.has_open_cache(die));
        slc.of.blocks.saturating_sub(slc.full_in(die) + open) as usize
    }

    /// The die whose flash page in the cache the next unit of the host goes on with; then it is served there.
    #[inline]
    pub(super) fn cache_goes_on(&mut self) -> Option<DieIdx> {
        if self.slc.as_ref().is_none_or(|slc| slc.past) {
            return None;
        }
        self.blocks.serve(CACHE);
        let die = self.goes_on(Stream::Host);
        if die.is_none() {
            self.blocks.serve(0);
        }
        die
    }

    /// Whether idle time is to be used to fold a block of `die`.
    #[inline]
    pub(crate) fn has_to_fold(&self, die: DieIdx) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.full_in(die) > 0)
    }

    /// Whether the host's next page finds a place in the cache of `die`; then it is served there, and
    /// otherwise past it.
    #[inline]
    pub(super) fn finds_cache(&mut self, die: DieIdx) -> bool {
        let Some(slc) = &self.slc else { return false };
        let past = slc.past;
        self.blocks.serve(CACHE);
        let opens = !self.blocks.has_open_page(die, Stream::Host);
        let may_open = !past && (!opens || self.may_open_cache(die));
        let finds = may_open && self.fits_host_page(die, opens);
        if !finds {
            self.blocks.serve(0);
        }
        finds
    }

    /// Whether the cache may open another block of `die`.
    fn may_open_cache(&self, die: DieIdx) -> bool {
        let Some(slc) = &self.slc else { return false };
        let free = self.blocks.free_in(die);
        match slc.full_in(die) {
            full if full < slc.of.blocks => free > self.options.reserved_blocks,
            // A free block is left for what goes past the cache.
            full => full < slc.of.blocks_max && free > self.kept_free::<Equipped>(die) + 1,
        }
    }

    /// The block of the cache that is to be folded: the oldest of `die`, where it is time for that, or where
    /// nothing else can be collected.
    #[inline]
    pub(super) fn fold_if_due(&mut self, die: DieIdx) -> Option<BlockIdx> {
        let slc = self.slc.as_ref()?;
        let due = slc.idle || slc.full_in(die) > slc.of.blocks;
        if due || !self.blocks.has_reclaimable(die) { self.fold_oldest(die) } else { None }
    }

    /// The block of the cache of `die` that was filled longest ago is folded.
    pub(super) fn fold_oldest(&mut self, die: DieIdx) -> Option<BlockIdx> {
        self.slc.as_mut()?.full[die.0 as usize].pop_front()
    }
}
