//! Which pages are valid, which blocks are free, open or closed: the books of a page-mapped FTL.
//!
//! Flat arrays with one bit a page and two bytes a block, so that an update touches one cache line
//! of each; the valid pages of a victim are found 64 at a time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::geometry::{BlockIdx, DieIdx, Geometry, Ppn};

/// Into which open block of a die a page goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    /// Pages that the host writes.
    Host = 0,
    /// Pages that garbage collection moves; the same as [`Stream::Host`] unless separated.
    Relocated = 1,
}

/// Which block is filled next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FreeOrder {
    /// The one erased longest ago.
    Oldest,
    /// The one erased least often: dynamic wear levelling.
    LeastWorn,
}

/// The state of every block, as the FTL keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    geometry: Geometry,
    /// Per page: one bit, set while it holds the newest version of a logical page.
    valid: Vec<u64>,
    /// Per block: how many of its pages are valid.
    valid_count: Vec<u16>,
    /// Per block: how often it was erased.
    wear: Vec<u32>,
    /// Per block: the number of the fill that closed it, a clock for policies that ask for age.
    closed_at: Vec<u64>,
    fills: u64,
    /// Per block: filled and not erased since.
    closed: Vec<bool>,
    /// Per die: invalid data pages in closed blocks, which is what collection can gain.
    reclaimable: Vec<u32>,
    /// Per die: erased blocks.
    free: Vec<FreeList>,
    /// Per die and stream: the next page of the block being filled; `None` where none is.
    open: Vec<Option<Ppn>>,
    streams: usize,
    /// Erased blocks of all dies.
    free_blocks: u32,
}

#[derive(Clone, Debug)]
enum FreeList {
    Oldest(VecDeque<BlockIdx>),
    LeastWorn(BinaryHeap<Reverse<(u32, u32)>>),
}

impl Blocks {
    /// Every block erased and free. `separate` gives relocated pages open blocks of their own.
    pub(crate) fn new(geometry: Geometry, separate: bool, order: FreeOrder) -> Blocks {
        let dies = geometry.shape().dies;
        let streams = if separate { 2 } else { 1 };
        let list = |die| match order {
            FreeOrder::Oldest => FreeList::Oldest(geometry.blocks_of(DieIdx(die)).collect()),
            FreeOrder::LeastWorn => FreeList::LeastWorn(
                geometry
                    .blocks_of(DieIdx(die))
                    .map(|block| Reverse((0, block.0)))
                    .collect(),
            ),
        };
        let blocks = geometry.blocks() as usize;
        Blocks {
            geometry,
            valid: vec![0; geometry.pages().div_ceil(64) as usize],
            valid_count: vec![0; blocks],
            wear: vec![0; blocks],
            closed_at: vec![0; blocks],
            closed: vec![false; blocks],
            reclaimable: vec![0; dies as usize],
            fills: 0,
            free: (0..dies).map(list).collect(),
            open: vec![None; dies as usize * streams],
            streams,
            free_blocks: geometry.blocks(),
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Erased blocks of all dies.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.free_blocks
    }

    /// Erased blocks of `die`, the open ones not counted.
    #[inline]
    pub(crate) fn free_in(&self, die: DieIdx) -> usize {
        match &self.free[die.0 as usize] {
            FreeList::Oldest(list) => list.len(),
            FreeList::LeastWorn(heap) => heap.len(),
        }
    }

    #[inline]
    fn open_index(&self, die: DieIdx, stream: Stream) -> usize {
        die.0 as usize * self.streams + (stream as usize).min(self.streams - 1)
    }

    /// Whether `die` has a page left in the open block of `stream`.
    #[inline]
    pub(crate) fn has_open_page(&self, die: DieIdx, stream: Stream) -> bool {
        self.open[self.open_index(die, stream)].is_some()
    }

    /// Whether `die` can take a page of `stream` at all.
    #[inline]
    pub(crate) fn has_page(&self, die: DieIdx, stream: Stream) -> bool {
        self.has_open_page(die, stream) || self.free_in(die) > 0
    }

    /// Take the next page of `die`. A block whose last page is taken stays open until
    /// [`Blocks::take_filled`] asks for it.
    ///
    /// # Panics
    /// Where the die has none.
    #[inline]
    pub(crate) fn take_page(&mut self, die: DieIdx, stream: Stream) -> Ppn {
        let index = self.open_index(die, stream);
        let page = match self.open[index] {
            Some(page) => page,
            None => self.open_block(die),
        };
        self.open[index] = Some(Ppn(page.0 + 1));
        page
    }

    /// The block that the page taken last filled up, if it did; it is closed from now on.
    #[inline]
    pub(crate) fn take_filled(&mut self, die: DieIdx, stream: Stream) -> Option<BlockIdx> {
        let index = self.open_index(die, stream);
        let last = Ppn(self.open[index]?.0 - 1);
        let block = self.geometry.block_of(last);
        if last.0 - self.geometry.first_page(block).0 + 1 < self.geometry.data_pages() {
            return None;
        }
        self.open[index] = None;
        self.fills += 1;
        self.closed_at[block.0 as usize] = self.fills;
        self.closed[block.0 as usize] = true;
        self.reclaimable[die.0 as usize] += self.invalid_in(block);
        Some(block)
    }

    /// Invalid data pages of a block that is full.
    fn invalid_in(&self, block: BlockIdx) -> u32 {
        self.geometry.data_pages() - u32::from(self.valid_count(block))
    }

    /// Whether collecting the closed blocks of `die` would gain anything.
    pub(crate) fn has_reclaimable(&self, die: DieIdx) -> bool {
        self.reclaimable[die.0 as usize] > 0
    }

    /// Whether `block` was filled and not erased since.
    pub(crate) fn is_closed(&self, block: BlockIdx) -> bool {
        self.closed[block.0 as usize]
    }

    fn open_block(&mut self, die: DieIdx) -> Ppn {
        let block = match &mut self.free[die.0 as usize] {
            FreeList::Oldest(list) => list.pop_front(),
            FreeList::LeastWorn(heap) => heap.pop().map(|Reverse((_, block))| BlockIdx(block)),
        };
        self.free_blocks -= 1;
        self.geometry
            .first_page(block.expect("a die that has a page"))
    }

    #[inline]
    pub(crate) fn mark_valid(&mut self, page: Ppn) {
        self.valid[page.0 as usize / 64] |= 1 << (page.0 % 64);
        self.valid_count[self.geometry.block_of(page).0 as usize] += 1;
    }

    /// Returns the block's die, the block, and how many of its pages are valid now.
    #[inline]
    pub(crate) fn mark_invalid(&mut self, page: Ppn) -> (DieIdx, BlockIdx, u16) {
        self.valid[page.0 as usize / 64] &= !(1 << (page.0 % 64));
        let block = self.geometry.block_of(page);
        let die = self.geometry.die_of(block);
        self.reclaimable[die.0 as usize] += u32::from(self.closed[block.0 as usize]);
        let count = &mut self.valid_count[block.0 as usize];
        *count -= 1;
        (die, block, *count)
    }

    /// `block` was chosen as a victim: it is closed no more, and all its pages are invalid from now
    /// on; whoever chose it knows which were not.
    pub(crate) fn begin_collection(&mut self, block: BlockIdx) {
        let die = self.geometry.die_of(block);
        self.reclaimable[die.0 as usize] -= self.invalid_in(block);
        self.closed[block.0 as usize] = false;
        let first = self.geometry.first_page(block).0;
        for page in first..first + self.geometry.shape().pages_per_block {
            self.valid[page as usize / 64] &= !(1 << (page % 64));
        }
        self.valid_count[block.0 as usize] = 0;
    }

    #[cfg(test)]
    pub(crate) fn is_valid(&self, page: Ppn) -> bool {
        self.valid[page.0 as usize / 64] >> (page.0 % 64) & 1 == 1
    }

    /// Append the valid pages of `block`, in order, to `pages`.
    #[inline]
    pub(crate) fn valid_pages(&self, block: BlockIdx, pages: &mut Vec<Ppn>) {
        let first = self.geometry.first_page(block).0 as usize;
        let end = first + self.geometry.shape().pages_per_block as usize;
        let mut from = first;
        while from < end {
            let word = from / 64;
            let to = end.min((word + 1) * 64);
            let mut bits = self.valid[word] >> (from % 64);
            if to - from < 64 {
                bits &= (1 << (to - from)) - 1;
            }
            while bits != 0 {
                pages.push(Ppn((from + bits.trailing_zeros() as usize) as u32));
                bits &= bits - 1;
            }
            from = to;
        }
    }

    #[inline]
    pub(crate) fn valid_count(&self, block: BlockIdx) -> u16 {
        self.valid_count[block.0 as usize]
    }

    /// How often `block` was erased.
    pub(crate) fn wear(&self, block: BlockIdx) -> u32 {
        self.wear[block.0 as usize]
    }

    /// How many blocks were filled since `block` was.
    pub(crate) fn age(&self, block: BlockIdx) -> u64 {
        self.fills - self.closed_at[block.0 as usize]
    }

    /// `block` was erased: it is free again.
    pub(crate) fn set_free(&mut self, block: BlockIdx) {
        assert_eq!(
            self.valid_count(block),
            0,
            "an erased block holds no valid page: {block:?}"
        );
        self.wear[block.0 as usize] += 1;
        let wear = self.wear[block.0 as usize];
        match &mut self.free[self.geometry.die_of(block).0 as usize] {
            FreeList::Oldest(list) => list.push_back(block),
            FreeList::LeastWorn(heap) => heap.push(Reverse((wear, block.0))),
        }
        self.free_blocks += 1;
    }
}
