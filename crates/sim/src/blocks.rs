//! Which pages are valid, which blocks are free, open or closed: the books of a page-mapped FTL.

use std::collections::VecDeque;

use crate::geometry::{BlockIdx, DieIdx, Geometry, Ppn};

/// The state of every block, as the FTL keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    geometry: Geometry,
    /// Per page: one bit, set while it holds the newest version of a logical page.
    valid: Vec<u64>,
    /// Per block: how many of its pages are valid.
    valid_count: Vec<u16>,
    /// Per die: erased blocks, the one erased longest ago first.
    free: Vec<VecDeque<BlockIdx>>,
    /// Per die: the next page of the block that is being filled; `None` where none is.
    open: Vec<Option<Ppn>>,
    /// Erased blocks of all dies.
    free_blocks: u32,
}

impl Blocks {
    /// Every block erased and free.
    pub(crate) fn new(geometry: Geometry) -> Blocks {
        let of_die = |die: u32| {
            let first = die * geometry.blocks_per_die;
            (first..first + geometry.blocks_per_die)
                .map(BlockIdx)
                .collect()
        };
        Blocks {
            geometry,
            valid: vec![0; geometry.pages().div_ceil(64) as usize],
            valid_count: vec![0; geometry.blocks() as usize],
            free: (0..geometry.dies).map(of_die).collect(),
            open: vec![None; geometry.dies as usize],
            free_blocks: geometry.blocks(),
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Erased blocks of all dies.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.free_blocks
    }

    /// Erased blocks of `die`, the open one not counted.
    #[inline]
    pub(crate) fn free_in(&self, die: DieIdx) -> usize {
        self.free[die.0 as usize].len()
    }

    /// Whether `die` has a page left in its open block.
    #[inline]
    pub(crate) fn has_open_page(&self, die: DieIdx) -> bool {
        self.open[die.0 as usize].is_some()
    }

    /// Whether `die` can take a page at all.
    #[inline]
    pub(crate) fn has_page(&self, die: DieIdx) -> bool {
        self.has_open_page(die) || self.free_in(die) > 0
    }

    /// Take the next page of `die`, and tell which block it filled up, if it did.
    ///
    /// # Panics
    /// Where the die has none.
    #[inline]
    pub(crate) fn take_page(&mut self, die: DieIdx) -> (Ppn, Option<BlockIdx>) {
        let page = match self.open[die.0 as usize] {
            Some(page) => page,
            None => {
                let block = self.free[die.0 as usize].pop_front();
                self.free_blocks -= 1;
                self.geometry
                    .first_page(block.expect("a die that has a page"))
            }
        };
        let next = Ppn(page.0 + 1);
        let full = self.geometry.page_in_block(next) == 0;
        self.open[die.0 as usize] = if full { None } else { Some(next) };
        (page, full.then(|| self.geometry.block_of(page)))
    }

    #[inline]
    pub(crate) fn mark_valid(&mut self, page: Ppn) {
        self.valid[page.0 as usize / 64] |= 1 << (page.0 % 64);
        self.valid_count[self.geometry.block_of(page).0 as usize] += 1;
    }

    #[inline]
    pub(crate) fn mark_invalid(&mut self, page: Ppn) {
        self.valid[page.0 as usize / 64] &= !(1 << (page.0 % 64));
        self.valid_count[self.geometry.block_of(page).0 as usize] -= 1;
    }

    #[inline]
    pub(crate) fn is_valid(&self, page: Ppn) -> bool {
        self.valid[page.0 as usize / 64] >> (page.0 % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn valid_count(&self, block: BlockIdx) -> u32 {
        u32::from(self.valid_count[block.0 as usize])
    }

    /// An erased block goes to the end of its die's free list.
    pub(crate) fn set_free(&mut self, block: BlockIdx) {
        assert_eq!(
            self.valid_count(block),
            0,
            "an erased block holds no valid page: {block:?}"
        );
        self.free[self.geometry.die_of(block).0 as usize].push_back(block);
        self.free_blocks += 1;
    }
}
