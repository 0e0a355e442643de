//! Which pages are valid, 64 to a word, and how many of each block are.

use super::{Blocks, NOT_CLOSED};
use crate::geometry::{BlockIdx, DieIdx, Place, Ppn};

impl Blocks {
    /// Whether collecting the closed blocks of `die` would gain anything. Mostly answered by the
    /// first block that is looked at.
    pub(crate) fn has_reclaimable(&self, die: DieIdx) -> bool {
        self.geometry.blocks_of(die).any(|block| {
            let block = block.0 as usize;
            // What is not closed counts more than any block holds.
            self.counts[block] < self.usable[block]
        })
    }

    /// Whether `block` was filled with data and not chosen as a victim since.
    pub(crate) fn is_closed(&self, block: BlockIdx) -> bool {
        self.counts[block.0 as usize] < NOT_CLOSED
    }

    /// The counts of the blocks of `die`, in order; [`NOT_CLOSED`] is added to those that are not.
    #[inline]
    pub(crate) fn closed_counts(&self, die: DieIdx) -> &[u16] {
        let blocks = self.geometry.shape().blocks_per_die as usize;
        &self.counts[die.0 as usize * blocks..][..blocks]
    }

    #[inline]
    pub(crate) fn valid_count(&self, block: BlockIdx) -> u16 {
        self.counts[block.0 as usize] & !NOT_CLOSED
    }

    #[inline]
    pub(crate) fn mark_valid(&mut self, at: Place) {
        let page = at.page.0;
        self.valid[page as usize / 64] |= 1 << (page % 64);
        self.counts[at.block.0 as usize] += 1;
    }

    /// Returns how many pages of its block are valid now, and whether the block is closed.
    #[inline]
    pub(crate) fn mark_invalid(&mut self, at: Place) -> (u16, bool) {
        let page = at.page.0;
        self.valid[page as usize / 64] &= !(1 << (page % 64));
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

    /// No page of `block` is valid any more.
    pub(crate) fn clear(&mut self, block: BlockIdx) {
        let first = self.geometry.first_page(block).0 as usize;
        let end = first + self.geometry.shape().pages_per_block as usize;
        crate::bits::clear(&mut self.valid, first, end);
        self.counts[block.0 as usize] &= NOT_CLOSED;
    }

    /// The valid pages of `block`, in order.
    #[inline]
    pub(crate) fn valid_pages(&self, block: BlockIdx) -> impl Iterator<Item = Ppn> + '_ {
        let first = self.geometry.first_page(block).0 as usize;
        let end = first + self.geometry.shape().pages_per_block as usize;
        crate::bits::members(&self.valid, first, end).map(|page| Ppn(page as u32))
    }

    /// What is known of `at` will be asked for soon.
    #[inline]
    pub(crate) fn prefetch(&self, at: Place) {
        crate::huge::prefetch(&self.valid, at.page.0 as usize / 64);
        crate::huge::prefetch(&self.counts, at.block.0 as usize);
    }

    #[cfg(test)]
    pub(crate) fn is_valid(&self, page: Ppn) -> bool {
        crate::bits::has(&self.valid, page.0 as usize)
    }
}
