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

use std::collections::VecDeque;
use std::ops::Range;

use uflip_core::{Error, Result};

use super::extent::PageExtent;
use super::options::{Compat, LogPart, check_log};
use crate::collections::{bits, huge};
use crate::flash::contents::survey::{Holding, Survey};
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::data_blocks::DataBlocks;
use crate::ftl::{FtlOptions, MergingFtl};

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
            let blocks = &mut self.random.rings[ring].blocks;
            let mut log = blocks.pop_front().expect("a full ring has log blocks");
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

// The random log of FAST: blocks that are filled in write order, and the address of each page.
//
// ```text
// ring    │ filled first │ … │ filled last │ being filled ─▶ │      reclaimed in the same order
// ```
//
// One ring for all data blocks, or one for each plane and its data blocks.

/// Rings of log blocks, and the valid pages in them.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct RandomLog {
    geometry: Geometry,
    /// Each plane has a ring.
    per_plane: bool,
    rings: Vec<Ring>,
    /// Maximum number of blocks of a ring.
    #[serde(rename = "most")]
    max_blocks: usize,
    /// Per logical page: the address of its newest version, or [`UNMAPPED`].
    logged: Vec<u32>,
    /// The same, one bit a page.
    is_logged: Vec<u64>,
}

/// Log blocks, the one filled first at the front; the last one is being filled.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Ring {
    blocks: VecDeque<LogBlock>,
    /// The next page of the block being filled.
    next: u32,
}

/// A log block, and the logical page in each of its pages.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct LogBlock {
    block: BlockIdx,
    pages: Vec<u32>,
}

const UNMAPPED: u32 = u32::MAX;

impl LogBlock {
    /// Create a log block from `block`, which is erased.
    fn new(block: BlockIdx, geometry: &Geometry) -> LogBlock {
        LogBlock { block, pages: vec![UNMAPPED; geometry.shape().pages_per_block as usize] }
    }
}

impl RandomLog {
    /// Create a log of `blocks` blocks in all.
    fn new(geometry: Geometry, blocks: u32, per_plane: bool) -> RandomLog {
        let rings = if per_plane { geometry.shape().planes as usize } else { 1 };
        let max_blocks = blocks as usize / rings;
        let pages = geometry.shape().logical_pages as usize;
        let ring = Ring {
            blocks: VecDeque::with_capacity(max_blocks + 1),
            next: geometry.shape().pages_per_block,
        };
        RandomLog {
            geometry,
            per_plane,
            rings: vec![ring; rings],
            max_blocks,
            logged: huge::filled(pages, UNMAPPED),
            is_logged: vec![0; pages.div_ceil(64)],
        }
    }

    /// Return the ring that takes pages of the logical block `logical`.
    #[inline]
    fn ring_of(&self, logical: u32) -> usize {
        if self.per_plane { (logical % self.geometry.shape().planes) as usize } else { 0 }
    }

    /// Return the plane of a ring, if rings are per plane.
    fn plane_of(&self, ring: usize) -> Option<PlaneIdx> {
        self.per_plane.then_some(PlaneIdx(ring as u32))
    }

    /// Return the address of `page`, if its newest version is in the log.
    #[inline]
    fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let at = self.logged[page.0 as usize];
        (at != UNMAPPED).then(|| self.geometry.address_of(Ppn(at)))
    }

    /// Return whether a version of `page` is in the log.
    #[inline]
    fn has(&self, page: Lpn) -> bool {
        bits::has(&self.is_logged, page.0 as usize)
    }

    /// Drop the version of `page` in the log.
    #[inline]
    fn forget(&mut self, page: Lpn) {
        self.logged[page.0 as usize] = UNMAPPED;
        bits::remove(&mut self.is_logged, page.0 as usize);
    }

    #[inline]
    fn prefetch(&self, page: Lpn) {
        huge::prefetch(&self.logged, page.0 as usize);
    }

    /// Return whether the block being filled has no page left.
    #[inline]
    fn is_filled(&self, ring: usize) -> bool {
        self.rings[ring].next == self.geometry.shape().pages_per_block
    }

    /// Return whether `ring` may have another block.
    fn may_grow(&self, ring: usize) -> bool {
        self.rings[ring].blocks.len() < self.max_blocks
    }

    /// Return `ring`, which has run out, and the other rings that have as well.
    fn full_rings(&self, ring: usize) -> Vec<usize> {
        let rings = self.rings.len();
        let after = (0..rings).map(|step| (ring + step) % rings);
        after.filter(|ring| self.is_filled(*ring) && !self.may_grow(*ring)).collect()
    }

    /// Begin to fill `log`.
    fn open(&mut self, ring: usize, log: LogBlock) {
        let ring = &mut self.rings[ring];
        ring.blocks.push_back(log);
        ring.next = 0;
    }

    /// Take the next page of `ring`, for `page`.
    #[inline]
    fn take_page(&mut self, ring: usize, page: Lpn) -> PageAddress {
        let ring = &mut self.rings[ring];
        let log = ring.blocks.back_mut().expect("the ring has an open log block");
        let address = self.geometry.address_at(log.block, ring.next);
        log.pages[ring.next as usize] = page.0;
        ring.next += 1;
        address
    }

    /// Record the page of `ring` that was taken last as the newest version of `page`.
    #[inline]
    fn record(&mut self, ring: usize, page: Lpn) {
        let ring = &self.rings[ring];
        let log = ring.blocks.back().expect("the ring has an open log block");
        self.logged[page.0 as usize] = self.geometry.first_page(log.block).0 + ring.next - 1;
        bits::insert(&mut self.is_logged, page.0 as usize);
    }

    /// Return the logical page in `slot` of `log`, if this is its newest version.
    fn live(&self, log: &LogBlock, slot: usize) -> Option<Lpn> {
        // Empty if power was lost while the page was programmed.
        let page = Some(log.pages[slot]).filter(|page| *page != UNMAPPED)?;
        let at = self.geometry.first_page(log.block).0 + slot as u32;
        (self.logged[page as usize] == at).then_some(Lpn(page))
    }

    /// Remove every one of `pages` from the log; `take` receives each one with its address.
    fn take_all(&mut self, pages: Range<u32>, mut take: impl FnMut(Lpn, PageAddress)) {
        let (first, end) = (pages.start as usize, pages.end as usize);
        bits::drain(&mut self.is_logged, first, end, |page| {
            take(Lpn(page as u32), self.geometry.address_of(Ppn(self.logged[page])));
            self.logged[page] = UNMAPPED;
        });
    }

    /// Restore `block`, which is filled or full, as the last of its ring.
    fn restore(
        &mut self,
        block: BlockIdx,
        survey: &Survey<'_>,
        is_newest: impl Fn(Lpn) -> bool,
        logical_block: impl Fn(Lpn) -> u32,
    ) {
        let mut log = LogBlock::new(block, &self.geometry);
        let mut of_ring = 0;
        for slot in 0..self.geometry.shape().pages_per_block {
            let at = self.geometry.address_at(block, slot);
            let Some((page, newest)) = survey.page_at(at) else { continue };
            of_ring = self.ring_of(logical_block(page));
            log.pages[slot as usize] = page.0;
            if newest && is_newest(page) {
                self.logged[page.0 as usize] = at.page.0;
                bits::insert(&mut self.is_logged, page.0 as usize);
            }
        }
        self.open(of_ring, log);
        self.rings[of_ring].next = survey.programmed(block);
    }

    /// Return all its blocks.
    #[cfg(test)]
    fn blocks(&self) -> impl Iterator<Item = BlockIdx> + '_ {
        self.rings.iter().flat_map(|ring| &ring.blocks).map(|log| log.block)
    }

    /// Check that the accounting is consistent.
    #[cfg(test)]
    fn audit(&self) {
        for (page, address) in self.logged.iter().enumerate() {
            assert_eq!(*address != UNMAPPED, bits::has(&self.is_logged, page));
        }
        assert!(self.rings.iter().all(|ring| ring.blocks.len() <= self.max_blocks));
    }
}

// The sequential log block of FAST, and its merges.

/// The log block for a block that is written in order.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Sequential {
    block: BlockIdx,
    logical: u32,
    /// Number of pages written to it.
    next: u32,
}

/// The sequential log block.
impl Fast {
    fn lookup_sequential(&self, page: Lpn) -> Option<PageAddress> {
        let logical = self.data.logical_block(page);
        let log = self.sequential.filter(|log| log.logical == logical)?;
        let offset = page.0 - self.data.pages_of(logical).start;
        let valid = offset < log.next && bits::has(&self.sequential_valid, offset as usize);
        valid.then(|| self.data.address_in(log.block, page))
    }

    /// Return whether a write of the first page of `logical` counts as the beginning of a
    /// sequential run, or as its continuation.
    #[inline]
    fn opens_sequential(&self, logical: u32) -> bool {
        self.superblock_blocks == 1
            || logical.is_multiple_of(self.superblock_blocks)
            || self.completed == Some(logical - 1)
    }

    /// Write the first page of a block: it opens a new sequential log block.
    fn write_first(&mut self, logical: u32, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        if let Some(log) = self.sequential {
            self.merge_sequential(log, None, plan);
        }
        let plane =
            if self.random.per_plane { self.data.home_plane(logical) } else { self.next_plane() };
        let block = self.data.take_free(plane);
        self.sequential = Some(Sequential { block, logical, next: 0 });
        self.sequential_valid.fill(0);
        self.append_sequential(page, extent, plan);
    }

    fn append_sequential(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
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
    fn write_out_of_order(
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
    fn merge_sequential(
        &mut self,
        log: Sequential,
        with: Option<(Lpn, &PageExtent)>,
        plan: &mut FlashPlan,
    ) {
        plan.count_merge(Merge::Partial);
        self.become_data_block(log, with, plan);
    }

    fn become_data_block(
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
    fn merge_around(
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
