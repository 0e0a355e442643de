//! The sequential log block of FAST, and its merges.

use super::Fast;
use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::extent::PageExtent;

/// The log block for a block that is written in order.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Sequential {
    pub(super) block: BlockIdx,
    pub(super) logical: u32,
    /// Number of pages written to it.
    pub(super) next: u32,
}

/// The sequential log block.
impl Fast {
    pub(super) fn lookup_sequential(&self, page: Lpn) -> Option<PageAddress> {
        let logical = self.data.logical_block(page);
        let log = self.sequential.filter(|log| log.logical == logical)?;
        let offset = page.0 - self.data.pages_of(logical).start;
        let valid = offset < log.next && bits::has(&self.sequential_valid, offset as usize);
        valid.then(|| self.data.address_in(log.block, page))
    }

    /// Return whether a write of the first page of `logical` counts as the beginning of a
    /// sequential run, or as its continuation.
    #[inline]
    pub(super) fn opens_sequential(&self, logical: u32) -> bool {
        self.superblock_blocks == 1
            || logical.is_multiple_of(self.superblock_blocks)
            || self.completed == Some(logical - 1)
    }

    /// Write the first page of a block: it opens a new sequential log block.
    pub(super) fn write_first(
        &mut self,
        logical: u32,
        page: Lpn,
        extent: &PageExtent,
        plan: &mut FlashPlan,
    ) {
        if let Some(log) = self.sequential {
            self.merge_sequential(log, None, plan);
        }
        let plane = if self.random.is_per_plane() {
            self.data.home_plane(logical)
        } else {
            self.next_plane()
        };
        let block = self.data.take_free(plane);
        self.sequential = Some(Sequential { block, logical, next: 0 });
        self.sequential_valid.fill(0);
        self.append_sequential(page, extent, plan);
    }

    pub(super) fn append_sequential(
        &mut self,
        page: Lpn,
        extent: &PageExtent,
        plan: &mut FlashPlan,
    ) {
        let merge_from = self.merge_source(page, extent);
        let log = self.sequential.as_mut().expect("the sequential log block is open");
        plan.program(self.data.address_in(log.block, page), merge_from);
        bits::insert(&mut self.sequential_valid, log.next as usize);
        log.next += 1;
        let log = *log;
        self.drop_old(page);
        if log.next as usize == self.data.pages_of(log.logical).len() {
            plan.barrier();
            plan.count_merge(Merge::Switch);
            self.become_data_block(log, None, plan);
            self.completed = Some(log.logical);
        }
    }

    /// Write a page of the sequential log's block that is not its next one.
    pub(super) fn write_out_of_order(
        &mut self,
        log: Sequential,
        offset: u32,
        page: Lpn,
        extent: &PageExtent,
        plan: &mut FlashPlan,
    ) {
        if offset > log.next {
            self.merge_sequential(log, Some((page, extent)), plan);
        } else {
            self.merge_around(log, page, extent, plan);
        }
    }

    /// Copy the rest of its block to the sequential log block, which becomes the data block; the host's page
    /// is programmed there as well.
    pub(super) fn merge_sequential(
        &mut self,
        log: Sequential,
        with: Option<(Lpn, &PageExtent)>,
        plan: &mut FlashPlan,
    ) {
        plan.count_merge(Merge::Partial);
        self.become_data_block(log, with, plan);
    }

    pub(super) fn become_data_block(
        &mut self,
        log: Sequential,
        with: Option<(Lpn, &PageExtent)>,
        plan: &mut FlashPlan,
    ) {
        let Sequential { block, logical, next } = log;
        let merge_from = with.and_then(|(page, extent)| self.merge_source(page, extent));
        if let Some((page, _)) = with {
            self.drop_old(page);
        }
        self.sequential = None;
        let old = self.data.copy_to(logical, block, plan);
        self.copy_from_log(logical, block, plan);
        let pages = self.data.pages_of(logical);
        for offset in 0..next {
            let page = Lpn(pages.start + offset);
            if bits::has(&self.sequential_valid, offset as usize) {
                self.data.set_programmed(page);
            } else {
                self.data.set_spent(page);
            }
        }
        plan.barrier();
        if let Some((page, _)) = with {
            plan.program(self.data.address_in(block, page), merge_from);
            self.data.set_programmed(page);
            plan.barrier();
        }
        self.erase(old, plan);
    }

    /// Write `page`, which the sequential log block already has: all pages go to a new block.
    pub(super) fn merge_around(
        &mut self,
        log: Sequential,
        page: Lpn,
        extent: &PageExtent,
        plan: &mut FlashPlan,
    ) {
        let merge_from = self.merge_source(page, extent);
        self.drop_old(page);
        let block = self.data.take_free(self.data.home_plane(log.logical));
        plan.count_merge(Merge::Full);
        let old = self.data.copy_to(log.logical, block, plan);
        self.copy_from_log(log.logical, block, plan);
        let pages = self.data.pages_of(log.logical);
        for other in (pages.start..pages.start + log.next).map(Lpn).filter(|other| *other != page) {
            if bits::has(&self.sequential_valid, (other.0 - pages.start) as usize) {
                let from = self.data.address_in(log.block, other);
                plan.copy(from, self.data.address_in(block, other));
                self.data.set_programmed(other);
            }
        }
        self.sequential = None;
        plan.barrier();
        plan.program(self.data.address_in(block, page), merge_from);
        self.data.set_programmed(page);
        plan.barrier();
        self.erase(old, plan);
        self.erase(Some(log.block), plan);
    }
}
