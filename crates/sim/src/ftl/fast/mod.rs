//! FAST: data blocks with fixed offsets, and log blocks that all of them share.
//!
//! ```text
//! write ─▶ its page in the data block is erased ─▶ there
//!       ─▶ first page of a block                 ─▶ the sequential log block, merged first if in use
//!       ─▶ next page of the sequential log block ─▶ there; when it is full it becomes the data block
//!       ─▶ another page of its block             ─▶ the sequential log block is merged with it
//!       ─▶ anything else                         ─▶ the random log blocks, a ring: when all are full, every
//!                                                    data block with a page in the oldest one is merged
//! ```
//!
//! Two variants, both off by default. With `superblock_blocks`, the sequential log is opened only by the
//! first page of a superblock, or by the first page of a block whose left neighbour was just completed. With
//! `log_per_die`, each plane has a separate ring for its data blocks; when one has run out, every other that
//! has run out as well is reclaimed with it.
//!
//! **Source**: Lee et al., "A log buffer-based flash translation layer using fully-associative sector
//! translation" (ACM TECS 6(3), 2007); Myers & Sinclair (2010) §6.1.
//! **Faithful**: one sequential log block, which every write of a first page opens; random log blocks
//! shared by all data blocks, reclaimed in the order of filling; switch, partial and full merges.
//! **Simplified**: maps are in memory. Data blocks are merged one after the other, the pages of each as
//! its planes allow. One erased block is reserved in addition to data and log.
//! **Ambiguous**: a write to the block of the sequential log that is not its next page: beyond its last page,
//! a partial merge includes the page; inside, a full merge does (as in FlashSim's code). If a random log
//! block with a page of that block is reclaimed, the merge is partial. `compat = "flashsim2010"` reproduces
//! the fault of FlashSim's `fast.c`: a merge keeps only the pages that are valid in the data block, and log
//! entries of merged blocks stay behind, so that data is lost and every entry costs a merge.

mod random_log;
mod sequential;

use uflip_core::{Error, Result};

use crate::collections::bits;
use crate::flash::contents::survey::{Holding, Survey};
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PlaneIdx};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::data_blocks::DataBlocks;
use crate::ftl::extent::PageExtent;
use crate::ftl::log_part::{Compat, LogPart, check_log};
use crate::ftl::{FtlOptions, MergingFtl};
use random_log::{LogBlock, RandomLog};
use sequential::Sequential;

/// The data blocks, the sequential log block and the random log blocks.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Fast {
    geometry: Geometry,
    data: DataBlocks,
    /// Merges lose the pages in the log.
    lossy: bool,
    sequential: Option<Sequential>,
    /// The pages of the sequential log block that were not trimmed.
    sequential_valid: Vec<u64>,
    /// Logical blocks of a superblock, and the block that was completed in order last.
    superblock_blocks: u32,
    completed: Option<u32>,
    random: RandomLog,
    /// Number of log blocks opened so far: if all planes share them, they are placed round robin.
    opened: u32,
}

impl MergingFtl for Fast {
    type Table = LogPart;

    fn check(options: &FtlOptions<'_, LogPart>) -> Result<()> {
        let per_plane = options.table.log_per_die;
        let rings = if per_plane { options.geometry.shape().planes } else { 1 };
        check_log(options, 1 + rings)?;
        let lossy = options.table.compat == Compat::Flashsim2010;
        refuse_lossy(options.durable && lossy)
    }

    fn new(options: &FtlOptions<'_, LogPart>) -> Fast {
        let part = options.table;
        let geometry = options.geometry;
        Fast {
            geometry,
            data: DataBlocks::new(geometry),
            lossy: part.compat == Compat::Flashsim2010,
            sequential: None,
            sequential_valid: vec![0; geometry.shape().pages_per_block.div_ceil(64) as usize],
            superblock_blocks: part.superblock_blocks,
            completed: None,
            random: RandomLog::new(geometry, part.log_blocks - 1, part.log_per_die),
            opened: 0,
        }
    }

    #[inline]
    fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let in_log = self.random.lookup(page);
        in_log.or_else(|| self.data.lookup(page)).or_else(|| self.lookup_sequential(page))
    }

    #[inline]
    fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let logical = self.data.logical_block(page);
        if self.data.block_of(logical).is_none() {
            let block = self.data.take_free(self.data.home_plane(logical));
            self.data.set_block(logical, block);
        }
        if let Some(address) = self.data.erased_page(page) {
            plan.program(address, self.merge_source(page, extent));
            self.data.set_programmed(page);
            // A merge to reclaim its log page may have freed its page in the data block meanwhile.
            if !self.lossy && self.random.has(page) {
                self.random.forget(page);
            }
            return;
        }
        let offset = page.0 - self.data.pages_of(logical).start;
        if offset == 0 && self.opens_sequential(logical) {
            self.write_first(logical, page, extent, plan);
            return;
        }
        match self.sequential {
            Some(log) if log.logical == logical && log.next == offset => {
                self.append_sequential(page, extent, plan);
            }
            Some(log) if log.logical == logical => {
                self.write_out_of_order(log, offset, page, extent, plan);
            }
            _ => self.append_random(page, extent, plan),
        }
    }

    fn trim(&mut self, page: Lpn) {
        self.random.forget(page);
        self.data.set_invalid(page);
        let logical = self.data.logical_block(page);
        if self.sequential.is_some_and(|log| log.logical == logical) {
            let offset = page.0 - self.data.pages_of(logical).start;
            bits::remove(&mut self.sequential_valid, offset as usize);
        }
    }

    #[inline]
    fn prefetch(&self, page: Lpn) {
        self.random.prefetch(page);
    }

    fn rebuild(&mut self, survey: &Survey<'_>, plan: &mut FlashPlan) {
        self.data.restore(survey, plan, |_, _| false);
        for block in survey.blocks() {
            if survey.holding(block) == Holding::Mixed {
                let data = &self.data;
                // A page that was just merged is in its data block.
                let is_newest = |page| data.lookup(page).is_none();
                self.random.restore(block, survey, is_newest, |page| data.logical_block(page));
            }
        }
    }

    #[cfg(test)]
    fn audit(&self) {
        self.data.audit(self.random.blocks().chain(self.sequential.map(|log| log.block)));
        self.random.audit();
    }
}

/// # Errors
/// Merges lose data, which a device that may lose power must recover.
fn refuse_lossy(lossy: bool) -> Result<()> {
    if !lossy {
        return Ok(());
    }
    Err(Error::usage("This variant of FAST loses data when it merges")
        .got("compat = \"flashsim2010\" with [power_loss]")
        .allowed("compat = \"none\"")
        .action("change it"))
}

/// Lookup.
impl Fast {
    /// Return the page that supplies the rest of `page`, if the host writes only a part of it.
    #[inline]
    fn merge_source(&self, page: Lpn, extent: &PageExtent) -> Option<PageAddress> {
        extent.merge_source(page, || self.lookup(page))
    }

    /// Invalidate the versions of `page` in the data block and in the random log.
    fn drop_old(&mut self, page: Lpn) {
        self.random.forget(page);
        self.data.set_invalid(page);
    }
}

/// The random log blocks.
impl Fast {
    #[inline]
    fn append_random(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let ring = self.random.ring_of(self.data.logical_block(page));
        if self.random.is_filled(ring) {
            self.open_random(ring, plan);
        }
        let merge_from = self.merge_source(page, extent);
        plan.program(self.random.take_page(ring, page), merge_from);
        // If the log has the page already, the data block's version is invalid; or, with the fault, stays.
        if !self.random.has(page) {
            self.data.set_invalid(page);
        }
        self.random.record(ring, page);
    }

    /// Begin the next log block of `ring`: a new one, or the oldest after it was reclaimed.
    fn open_random(&mut self, ring: usize, plan: &mut FlashPlan) {
        if self.random.may_grow(ring) {
            let plane = self.random.plane_of(ring).unwrap_or_else(|| self.next_plane());
            let block = self.data.take_free(plane);
            self.random.open(ring, LogBlock::new(block, &self.geometry));
            return;
        }
        for ring in self.random.full_rings(ring) {
            let mut log = self.random.take_oldest(ring);
            plan.begin_reclaim();
            self.reclaim(&log, plan);
            self.erase(Some(log.block), plan);
            log.block = self.data.take_free(self.geometry.plane_of(log.block));
            self.random.open(ring, log);
        }
    }

    /// Merge every data block that has a live page in `log`.
    fn reclaim(&mut self, log: &LogBlock, plan: &mut FlashPlan) {
        let mut merged: Vec<u32> = Vec::new();
        for slot in 0..log.pages.len() {
            let Some(page) = self.random.live(log, slot) else { continue };
            let logical = self.data.logical_block(page);
            if self.lossy {
                // The entry is dropped with its log block; others of the same data block stay behind.
                self.random.forget(page);
                if merged.contains(&logical) {
                    continue;
                }
                merged.push(logical);
            }
            self.merge(logical, plan);
        }
    }

    /// Merge the newest version of every page of `logical`.
    fn merge(&mut self, logical: u32, plan: &mut FlashPlan) {
        if let Some(log) = self.sequential.filter(|log| log.logical == logical) {
            self.merge_sequential(log, None, plan);
            plan.barrier();
            return;
        }
        let block = self.data.take_free(self.data.home_plane(logical));
        plan.count_merge(Merge::Full);
        let old = self.data.copy_to(logical, block, plan);
        self.copy_from_log(logical, block, plan);
        plan.barrier();
        self.erase(old, plan);
    }

    /// Copy the pages of `logical` in the random log to its data block `block`.
    fn copy_from_log(&mut self, logical: u32, block: BlockIdx, plan: &mut FlashPlan) {
        if self.lossy {
            return;
        }
        let pages = self.data.pages_of(logical);
        let Fast { random, data, .. } = self;
        random.take_all(pages, |page, from| {
            plan.copy(from, data.address_in(block, page));
            data.set_programmed(page);
        });
    }

    fn erase(&mut self, block: Option<BlockIdx>, plan: &mut FlashPlan) {
        if let Some(block) = block {
            plan.erase(block);
            plan.barrier();
            self.data.release(block);
        }
    }

    fn next_plane(&mut self) -> PlaneIdx {
        self.opened += 1;
        PlaneIdx(self.opened % self.geometry.shape().planes)
    }
}
