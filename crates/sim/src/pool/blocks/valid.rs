//! Which pages are valid, 64 to a word, and how many of each block are.

use super::{Blocks, NOT_CLOSED};
use crate::collections::{bits, huge};
use crate::flash::geometry::{BlockIdx, Place, PlaneIdx, Ppn};

impl Blocks {
    /// Whether collecting the closed blocks of `plane` would gain anything. Mostly answered by the
    /// first block that is looked at.
    pub(crate) fn has_reclaimable(&self, plane: PlaneIdx) -> bool {
        self.geometry.blocks_of(plane).any(|block| {
            let block = block.0 as usize;
            // What is not closed counts more than any block holds.
            self.counts[block] < self.usable[block]
        })
    }

    /// The closed block of `plane` with the fewest valid pages, the first of several; `None` where none
    /// has anything to gain.
    pub(crate) fn emptiest(&self, plane: PlaneIdx) -> Option<BlockIdx> {
        self.emptiest_that(plane, |_| true)
    }

    /// The same of blocks that `fit`.
    pub(crate) fn emptiest_that(
        &self,
        plane: PlaneIdx,
        fit: impl Fn(BlockIdx) -> bool,
    ) -> Option<BlockIdx> {
        let gains = |block: &BlockIdx| {
            let at = block.0 as usize;
            self.counts[at] < self.usable[at]
        };
        let blocks = self.geometry.blocks_of(plane).filter(gains).filter(|block| fit(*block));
        blocks.min_by_key(|block| self.counts[block.0 as usize])
    }

    /// Whether `block` was filled with data and not chosen as a victim since.
    pub(crate) fn is_closed(&self, block: BlockIdx) -> bool {
        self.counts[block.0 as usize] < NOT_CLOSED
    }

    /// The counts of the blocks of `plane`, in order; [`NOT_CLOSED`] is added to those that are not.
    #[inline]
    pub(crate) fn closed_counts(&self, plane: PlaneIdx) -> &[u16] {
        let blocks = self.geometry.shape().blocks_per_plane as usize;
        &self.counts[plane.0 as usize * blocks..][..blocks]
    }

    #[inline]
    pub(crate) fn valid_count(&self, block: BlockIdx) -> u16 {
        self.counts[block.0 as usize] & !NOT_CLOSED
    }

    /// `block` is opened: every page of it before `end` that takes data will be valid. Said once for all of them; a
    /// page that turns out otherwise is marked invalid.
    pub(super) fn expect_valid(&mut self, block: BlockIdx, end: u32) {
        let first = self.geometry.first_page(block);
        self.expect_valid_from(first.0, end);
        let whole = end - first.0 == self.geometry.data_pages();
        let usable = self.usable[block.0 as usize];
        self.counts[block.0 as usize] += if whole { usable } else { (end - first.0) as u16 };
    }

    /// The same of the pages from `first` to `end` alone; so many of them are retired.
    pub(super) fn expect_valid_from(&mut self, first: u32, end: u32) -> u32 {
        bits::fill(&mut self.valid, first as usize, end as usize);
        if self.retired.is_empty() {
            return 0;
        }
        let retired = bits::members(&self.retired, first as usize, end as usize);
        retired.map(|page| bits::remove(&mut self.valid, page)).count() as u32
    }

    /// `at` stays valid after all.
    pub(crate) fn mark_valid(&mut self, at: Place) {
        let page = at.page.0;
        bits::insert(&mut self.valid, page as usize);
        self.counts[at.block.0 as usize] += 1;
    }

    /// Returns how many pages of its block are valid now, and whether the block is closed.
    #[inline(always)]
    pub(crate) fn mark_invalid(&mut self, at: Place) -> (u16, bool) {
        let page = at.page.0;
        bits::remove(&mut self.valid, page as usize);
        let count = &mut self.counts[at.block.0 as usize];
        *count -= 1;
        (*count & !NOT_CLOSED, *count < NOT_CLOSED)
    }

    /// `block` was chosen as a victim: it is closed no more.
    pub(crate) fn begin_collection(&mut self, block: BlockIdx) {
        self.counts[block.0 as usize] |= NOT_CLOSED;
    }

    /// The first valid page of `block` at or after `from`.
    #[inline]
    pub(crate) fn next_valid(&self, block: BlockIdx, from: Ppn) -> Option<Ppn> {
        let end = self.geometry.first_page(block).0 + self.geometry.shape().pages_per_block;
        let mut page = from.0;
        while page < end {
            let bits = self.valid[page as usize / 64] >> (page % 64);
            if bits != 0 {
                let found = page + bits.trailing_zeros();
                return (found < end).then_some(Ppn(found));
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }

    /// No page of `block` is valid any more; `found` is told what was, in order.
    #[inline]
    pub(crate) fn drain_valid(&mut self, block: BlockIdx, mut found: impl FnMut(Ppn)) {
        let first = self.geometry.first_page(block).0 as usize;
        let end = first + self.geometry.shape().pages_per_block as usize;
        bits::drain(&mut self.valid, first, end, |page| found(Ppn(page as u32)));
        self.counts[block.0 as usize] &= NOT_CLOSED;
    }

    /// The valid pages of `block`, in order.
    #[inline]
    pub(crate) fn valid_pages(&self, block: BlockIdx) -> impl Iterator<Item = Ppn> + '_ {
        let first = self.geometry.first_page(block).0 as usize;
        let end = first + self.geometry.shape().pages_per_block as usize;
        bits::members(&self.valid, first, end).map(|page| Ppn(page as u32))
    }

    /// What is known of `at` will be asked for soon.
    #[inline]
    pub(crate) fn prefetch(&self, at: Ppn) {
        huge::prefetch(&self.valid, at.0 as usize / 64);
        huge::prefetch(&self.counts, self.geometry.block_of(at).0 as usize);
    }

    /// Whether `page` is expected to be valid: its block is open, and it is not programmed yet.
    #[cfg(test)]
    pub(crate) fn is_to_come(&self, page: Ppn) -> bool {
        self.open.iter().any(|open| (open.next..open.end).contains(&page.0))
            && !self.is_retired(page)
    }

    #[inline]
    pub(crate) fn is_valid(&self, page: Ppn) -> bool {
        bits::has(&self.valid, page.0 as usize)
    }
}
