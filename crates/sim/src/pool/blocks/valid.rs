//! Valid pages, 64 to a word, and their number in each block.

use super::{Blocks, NOT_CLOSED};
use crate::collections::{bits, huge};
use crate::flash::geometry::{BlockIdx, PageAddress, PlaneIdx, Ppn};

impl Blocks {
    /// Return whether collecting a closed block of `plane` would free a page. Usually the first
    /// block decides.
    pub(crate) fn has_reclaimable(&self, plane: PlaneIdx) -> bool {
        self.geometry.blocks_of(plane).any(|block| {
            let block = block.0 as usize;
            // The count of a block that is not closed exceeds the pages of a block.
            self.counts[block] < self.usable[block]
        })
    }

    /// Return the closed block of `plane` with the fewest valid pages, the first of several; `None` if no
    /// block has an invalid page.
    pub(crate) fn emptiest(&self, plane: PlaneIdx) -> Option<BlockIdx> {
        self.emptiest_that(plane, |_| true)
    }

    /// Like [`Blocks::emptiest`], among the blocks that `fit` accepts.
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

    /// Return whether `block` was filled with data and not chosen as a victim since.
    pub(crate) fn is_closed(&self, block: BlockIdx) -> bool {
        self.counts[block.0 as usize] < NOT_CLOSED
    }

    /// Return the valid counts of the blocks of `plane`, in order, plus [`NOT_CLOSED`] for those that are not
    /// closed.
    #[inline]
    pub(crate) fn closed_counts(&self, plane: PlaneIdx) -> &[u16] {
        let blocks = self.geometry.shape().blocks_per_plane as usize;
        &self.counts[plane.0 as usize * blocks..][..blocks]
    }

    #[inline]
    pub(crate) fn valid_count(&self, block: BlockIdx) -> u16 {
        self.counts[block.0 as usize] & !NOT_CLOSED
    }

    /// Mark all usable pages of the newly opened `block` before `end` as valid at once. A page that turns out
    /// otherwise is marked invalid later.
    pub(super) fn expect_valid(&mut self, block: BlockIdx, end: u32) {
        let first = self.geometry.first_page(block);
        self.expect_valid_from(first.0, end);
        let whole = end - first.0 == self.geometry.data_pages();
        let usable = self.usable[block.0 as usize];
        self.counts[block.0 as usize] += if whole { usable } else { (end - first.0) as u16 };
    }

    /// Mark the pages from `first` to `end` as valid; returns how many of them are retired.
    pub(super) fn expect_valid_from(&mut self, first: u32, end: u32) -> u32 {
        bits::fill(&mut self.valid, first as usize, end as usize);
        if self.retired.is_empty() {
            return 0;
        }
        let retired = bits::members(&self.retired, first as usize, end as usize);
        retired.map(|page| bits::remove(&mut self.valid, page)).count() as u32
    }

    /// Mark the page at `at` as valid again.
    pub(crate) fn mark_valid(&mut self, at: PageAddress) {
        let page = at.page.0;
        bits::insert(&mut self.valid, page as usize);
        self.counts[at.block.0 as usize] += 1;
    }

    /// Mark the page at `at` as invalid. Returns the number of valid pages of its block, and whether the
    /// block is closed.
    #[inline(always)]
    pub(crate) fn mark_invalid(&mut self, at: PageAddress) -> (u16, bool) {
        let page = at.page.0;
        bits::remove(&mut self.valid, page as usize);
        let count = &mut self.counts[at.block.0 as usize];
        *count -= 1;
        (*count & !NOT_CLOSED, *count < NOT_CLOSED)
    }

    /// Mark `block` as a victim: it is no longer closed.
    pub(crate) fn begin_collection(&mut self, block: BlockIdx) {
        self.counts[block.0 as usize] |= NOT_CLOSED;
    }

    /// Return the first valid page of `block` at or after `from`.
    #[inline]
    pub(crate) fn next_valid(&self, block: BlockIdx, from: Ppn) -> Option<Ppn> {
        let end = self.geometry.first_page(block).0 + self.geometry.shape().pages_per_block;
        let mut page = from.0;
        while page < end {
            let bits = self.valid[page as usize / 64] >> (page % 64);
            if bits != 0 {
                let valid = page + bits.trailing_zeros();
                return (valid < end).then_some(Ppn(valid));
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }

    /// Mark all pages of `block` as invalid; calls `visit` with each page that was valid, in order.
    #[inline]
    pub(crate) fn drain_valid(&mut self, block: BlockIdx, mut visit: impl FnMut(Ppn)) {
        let first = self.geometry.first_page(block).0 as usize;
        let end = first + self.geometry.shape().pages_per_block as usize;
        bits::drain(&mut self.valid, first, end, |page| visit(Ppn(page as u32)));
        self.counts[block.0 as usize] &= NOT_CLOSED;
    }

    /// Return the valid pages of `block`, in order.
    #[inline]
    pub(crate) fn valid_pages(&self, block: BlockIdx) -> impl Iterator<Item = Ppn> + '_ {
        let first = self.geometry.first_page(block).0 as usize;
        let end = first + self.geometry.shape().pages_per_block as usize;
        bits::members(&self.valid, first, end).map(|page| Ppn(page as u32))
    }

    /// Prefetch the accounting of `at` into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, at: Ppn) {
        huge::prefetch(&self.valid, at.0 as usize / 64);
        huge::prefetch(&self.counts, self.geometry.block_of(at).0 as usize);
    }

    /// Return whether `page` is in an open block and not programmed yet: it counts as valid in
    /// advance.
    #[cfg(test)]
    pub(crate) fn is_pending(&self, page: Ppn) -> bool {
        self.open.iter().any(|open| (open.next..open.end).contains(&page.0))
            && !self.is_retired(page)
    }

    #[inline]
    pub(crate) fn is_valid(&self, page: Ppn) -> bool {
        bits::has(&self.valid, page.0 as usize)
    }
}
