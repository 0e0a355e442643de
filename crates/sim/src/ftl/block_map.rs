//! The block-mapped FTL: one map entry per block, every page at its fixed offset in its block.
//!
//! A page whose offset is still erased is programmed there. Any other write is a merge: the block's other
//! pages are copied to an erased block, the page is programmed there as well, and the old block is erased.
//!
//! **Source**: Gal & Toledo, "Algorithms and data structures for flash memories" (ACM Computing
//! Surveys 2005) §2.2; Myers & Sinclair (2010) §2.2 in words.
//! **Faithful**: block-level map, fixed offsets, a merge for every overwrite.
//! **Simplified**: one erased block is reserved in addition to the data; no block is collected ahead.
//! **Ambiguous**: whether the erase is part of the write that caused it: here it is. A host write of
//! several pages merges a block once; the pages that it writes itself are not copied.

use uflip_core::Result;

use super::{FtlOptions, MergingFtl};
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::data_blocks::DataBlocks;
use crate::ftl::extent::PageExtent;

/// The map of blocks; no other state is needed.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct BlockMap {
    data: DataBlocks,
    durable: bool,
    /// The block to erase once the current host write has written the pages that were not copied from it.
    old: Option<BlockIdx>,
}

impl MergingFtl for BlockMap {
    type Table = ();

    fn check(options: &FtlOptions<'_, ()>) -> Result<()> {
        DataBlocks::check(options, 1, "1 for merges")
    }

    fn new(options: &FtlOptions<'_, ()>) -> BlockMap {
        BlockMap { data: DataBlocks::new(options.geometry), durable: options.durable, old: None }
    }

    #[inline]
    fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        self.data.lookup(page)
    }

    fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let logical = self.data.logical_block(page);
        if self.data.block_of(logical).is_none() {
            let block = self.data.take_free(self.data.home_plane(logical));
            self.data.set_block(logical, block);
        }
        match self.data.erased_page(page) {
            Some(place) => {
                plan.program(place, None);
                self.data.set_programmed(page);
            }
            None => self.merge(logical, page, extent, plan),
        }
        let next = Lpn(page.0 + 1);
        let follows =
            extent.covers_later(page, next) && self.data.pages_of(logical).contains(&next.0);
        if let Some(old) = self.old.take_if(|_| !follows) {
            plan.barrier();
            plan.erase(old);
            plan.barrier();
            self.data.release(old);
        }
    }

    fn trim(&mut self, page: Lpn) {
        self.data.set_invalid(page);
    }

    fn rebuild(&mut self, survey: &Survey<'_>, plan: &mut FlashPlan) {
        self.data.restore(survey, plan, |_, _| false);
    }

    #[cfg(test)]
    fn audit(&self) {
        self.data.audit(self.old.into_iter());
    }
}

impl BlockMap {
    /// Write `page` to a new block of `logical`, with every page that `extent` does not write later.
    fn merge(&mut self, logical: u32, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let old_page = self.data.lookup(page);
        let block = self.data.take_free(self.data.home_plane(logical));
        let is_copied = |other: &Lpn| *other != page && !extent.covers_later(page, *other);
        let copied: Vec<(Lpn, PageAddress)> = self
            .data
            .pages_of(logical)
            .map(Lpn)
            .filter(is_copied)
            .filter_map(|other| self.data.lookup(other).map(|from| (other, from)))
            .collect();
        let old_block = self.data.set_block(logical, block);
        for (other, from) in copied {
            plan.copy(from, self.data.address_in(block, other));
            self.data.set_programmed(other);
        }
        plan.count_merge(Merge::Full);
        plan.barrier();
        let merge_from = extent.merge_source(page, || old_page);
        plan.program(self.data.address_in(block, page), merge_from);
        self.data.set_programmed(page);
        if self.durable {
            self.old = old_block;
        } else if let Some(old) = old_block {
            plan.barrier();
            plan.erase(old);
            self.data.release(old);
        }
    }
}
