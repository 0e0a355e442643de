//! BAST: data blocks with fixed offsets, and log blocks, each of which belongs to one data block at a time.
//!
//! ```text
//! write ─▶ its page in the data block is erased ─▶ there
//!       ─▶ its data block has a log block         ─▶ appended there; a full one is merged at once
//!       ─▶ it has none                            ─▶ a new one; where all are in use, the one that was
//!                                                     written longest ago is merged first
//! merge:  all pages in order: switch │ the first ones in order: partial │ anything else: full
//! ```
//!
//! **Source**: Kim et al., "A space-efficient flash translation layer for CompactFlash systems" (IEEE
//! Trans. Consumer Electronics 48(2), 2002).
//! **Faithful**: one log block a data block, written from its first page on; the three merges.
//! **Simplified**: maps are in memory; one erased block is reserved in addition to data and log.
//! **Ambiguous**: which log block is merged to make space for another: here the least recently written, which
//! the closed form in `python/uflip/models/hybrid.py` assumes too. A full log block is merged by the write
//! that filled it.

use uflip_core::Result;

use super::options::{LogPart, check_log};
use super::{FtlOptions, MergingFtl};
use crate::collections::lru::Lru;
use crate::flash::contents::survey::{Holding, Survey};
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::data_blocks::DataBlocks;
use crate::ftl::extent::PageExtent;

/// Data blocks and their log blocks.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Bast {
    geometry: Geometry,
    data: DataBlocks,
    #[serde(rename = "most")]
    max_log_blocks: usize,
    /// Log blocks in use; `unused` lists the free entries.
    logs: Vec<BastLog>,
    unused: Vec<u32>,
    /// Per logical block: its log block, or [`NONE`].
    log_of: Vec<u32>,
    /// Log blocks in use, ordered by their last write.
    order: Lru,
}

/// The log block of a data block.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Log")]
struct BastLog {
    block: BlockIdx,
    logical: u32,
    /// Number of pages written to it.
    next: u32,
    /// Every one of them is at its own offset.
    in_order: bool,
    /// Per page of the data block: the slot of its newest version in the log block, or [`NO_PAGE`].
    newest: Vec<u16>,
}

const NONE: u32 = u32::MAX;
const NO_PAGE: u16 = u16::MAX;

impl MergingFtl for Bast {
    type Table = LogPart;

    fn check(options: &FtlOptions<'_, LogPart>) -> Result<()> {
        check_log(options, 1)
    }

    fn new(options: &FtlOptions<'_, LogPart>) -> Bast {
        let part = options.table;
        let shape = options.geometry.shape();
        let blocks = shape.logical_pages.div_ceil(shape.pages_per_block);
        Bast {
            geometry: options.geometry,
            data: DataBlocks::new(options.geometry),
            max_log_blocks: part.log_blocks as usize,
            logs: Vec::with_capacity(part.log_blocks as usize),
            unused: Vec::new(),
            log_of: vec![NONE; blocks as usize],
            order: Lru::with_capacity(part.log_blocks as usize),
        }
    }

    #[inline]
    fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        self.lookup_log(page).or_else(|| self.data.lookup(page))
    }

    fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let logical = self.data.logical_block(page);
        if self.data.block_of(logical).is_none() {
            let block = self.data.take_free(self.data.home_plane(logical));
            self.data.set_block(logical, block);
        }
        if let Some(address) = self.data.erased_page(page) {
            plan.program(address, extent.merge_source(page, || self.lookup(page)));
            self.data.set_programmed(page);
            self.forget(page);
            return;
        }
        let log = match self.log_of[logical as usize] {
            NONE => self.open(logical, plan),
            log => log,
        };
        self.append(log, page, extent, plan);
    }

    fn trim(&mut self, page: Lpn) {
        self.forget(page);
        self.data.set_invalid(page);
    }

    fn rebuild(&mut self, survey: &Survey<'_>, plan: &mut FlashPlan) {
        // In the order in which they were opened: the order of their last writes is lost.
        let mut logs: Vec<(u32, BlockIdx)> = Vec::new();
        let max_log_blocks = self.max_log_blocks;
        self.data.restore(survey, plan, |data, blocks| {
            let (of_data, log) = match *blocks {
                [(log, Holding::Of(logical))] => (None, (logical, log)),
                [(block, Holding::InPlace(logical)), (log, _)] => (Some(block), (logical, log)),
                _ => return false,
            };
            let fits = logs.len() < max_log_blocks;
            if fits {
                of_data.into_iter().for_each(|block| data.adopt(log.0, block, survey));
                logs.push(log);
            }
            fits
        });
        let order = |block: BlockIdx| survey.blocks().position(|other| other == block);
        logs.sort_by_key(|(_, block)| order(*block));
        for (logical, block) in logs {
            let log = self.enter(logical, block);
            self.restore_log(log, survey, plan);
        }
    }

    #[cfg(test)]
    fn audit(&self) {
        let used = self.log_of.iter().filter(|log| **log != NONE);
        self.data.audit(used.map(|log| self.logs[*log as usize].block));
    }
}

impl Bast {
    fn offset(&self, page: Lpn) -> usize {
        (page.0 - self.data.pages_of(self.data.logical_block(page)).start) as usize
    }

    #[inline]
    fn lookup_log(&self, page: Lpn) -> Option<PageAddress> {
        let log = self.log_of[self.data.logical_block(page) as usize];
        if log == NONE {
            return None;
        }
        let log = &self.logs[log as usize];
        let slot = log.newest[self.offset(page)];
        (slot != NO_PAGE).then(|| self.slot(log.block, u32::from(slot)))
    }

    fn slot(&self, block: BlockIdx, slot: u32) -> PageAddress {
        self.geometry.address_at(block, slot)
    }

    /// Drop the version of `page` in the log, if there is one.
    fn forget(&mut self, page: Lpn) {
        let (log, offset) =
            (self.log_of[self.data.logical_block(page) as usize], self.offset(page));
        if log != NONE {
            self.logs[log as usize].newest[offset] = NO_PAGE;
        }
    }

    /// Open a log block for `logical`, which has none.
    fn open(&mut self, logical: u32, plan: &mut FlashPlan) -> u32 {
        if self.order.len() as usize == self.max_log_blocks {
            plan.begin_reclaim();
            self.merge(self.order.oldest().expect("all log blocks are in use"), plan);
        }
        let block = self.data.take_free(self.data.home_plane(logical));
        self.enter(logical, block)
    }

    /// Record the empty `block` as the log block of `logical`.
    fn enter(&mut self, logical: u32, block: BlockIdx) -> u32 {
        let pages = self.geometry.shape().pages_per_block as usize;
        let log = self.unused.pop().unwrap_or_else(|| {
            let newest = vec![NO_PAGE; pages];
            self.logs.push(BastLog { block, logical, next: 0, in_order: true, newest });
            self.logs.len() as u32 - 1
        });
        let log_block = &mut self.logs[log as usize];
        (log_block.block, log_block.logical, log_block.next, log_block.in_order) =
            (block, logical, 0, true);
        log_block.newest.fill(NO_PAGE);
        self.order.push_newest(log);
        self.log_of[logical as usize] = log;
        log
    }

    /// Restore a log block from `survey`; merges it if it is full.
    fn restore_log(&mut self, log: u32, survey: &Survey<'_>, plan: &mut FlashPlan) {
        let BastLog { block, logical, .. } = self.logs[log as usize];
        let pages = self.data.pages_of(logical);
        let next = survey.programmed(block);
        let mut in_order = true;
        for slot in 0..next {
            let page = survey.page_at(self.slot(block, slot));
            in_order &= page.is_some_and(|(page, _)| page.0 == pages.start + slot);
            if let Some((page, true)) = page {
                let offset = self.offset(page);
                self.logs[log as usize].newest[offset] = slot as u16;
            }
        }
        let log_block = &mut self.logs[log as usize];
        (log_block.next, log_block.in_order) = (next, in_order);
        if next == self.geometry.shape().pages_per_block || (in_order && next == pages.len() as u32)
        {
            self.merge(log, plan);
        }
    }

    fn append(&mut self, log: u32, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let merge_from = extent.merge_source(page, || self.lookup(page));
        let offset = self.offset(page);
        let log_block = &mut self.logs[log as usize];
        let slot = log_block.next;
        log_block.next += 1;
        log_block.in_order &= slot as usize == offset;
        log_block.newest[offset] = slot as u16;
        let (block, logical, in_order) = (log_block.block, log_block.logical, log_block.in_order);
        plan.program(self.slot(block, slot), merge_from);
        self.data.set_invalid(page);
        self.order.touch(log);
        let pages = self.data.pages_of(logical).len() as u32;
        if slot + 1 == self.geometry.shape().pages_per_block || (in_order && slot + 1 == pages) {
            plan.barrier();
            self.merge(log, plan);
        }
    }

    /// Merge the newest version of every page of a data block, as cheaply as its log allows.
    fn merge(&mut self, log: u32, plan: &mut FlashPlan) {
        let BastLog { block, logical, next, in_order, .. } = self.logs[log as usize];
        let pages = self.data.pages_of(logical);
        let target =
            if in_order { block } else { self.data.take_free(self.data.home_plane(logical)) };
        plan.count_merge(match (in_order, next as usize == pages.len()) {
            (true, true) => Merge::Switch,
            (true, false) => Merge::Partial,
            (false, _) => Merge::Full,
        });
        let old = self.data.copy_to(logical, target, plan);
        for (offset, page) in pages.map(Lpn).enumerate() {
            let slot = self.logs[log as usize].newest[offset];
            if slot != NO_PAGE {
                if !in_order {
                    let from = self.slot(block, u32::from(slot));
                    plan.copy(from, self.data.address_in(target, page));
                }
                self.data.set_programmed(page);
            } else if in_order && (offset as u32) < next {
                self.data.set_spent(page);
            }
        }
        self.log_of[logical as usize] = NONE;
        self.order.remove(log);
        self.unused.push(log);
        plan.barrier();
        self.erase(old, plan);
        self.erase(Some(block).filter(|_| !in_order), plan);
        plan.barrier();
    }

    fn erase(&mut self, block: Option<BlockIdx>, plan: &mut FlashPlan) {
        if let Some(block) = block {
            plan.erase(block);
            self.data.release(block);
        }
    }
}
