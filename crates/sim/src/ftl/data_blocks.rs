//! Data blocks of block-mapped FTLs: every logical block has at most one, and a page has its fixed offset in
//! it. Also manages the free blocks.
//!
//! ```text
//! logical page = logical block × pages_per_block + offset        address = data block, same offset
//! ```

use std::collections::BTreeMap;

use uflip_core::{Error, Result};

use crate::collections::bits;
use crate::flash::contents::survey::{Holding, Survey};
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::FtlOptions;
use crate::pool::free::FreePool;

/// The map of blocks, and the programmed pages in them.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct DataBlocks {
    geometry: Geometry,
    /// Per logical block: its data block, or [`NO_BLOCK`].
    map: Vec<u32>,
    /// Per logical page, one bit: its page in the data block was programmed.
    programmed: Vec<u64>,
    /// Per logical page, one bit: its page in the data block holds its newest version.
    valid: Vec<u64>,
    /// Erased blocks of each plane.
    free: FreePool,
}

const NO_BLOCK: u32 = u32::MAX;

impl DataBlocks {
    /// Check that the device has `reserved` blocks in addition to those of the host's data.
    ///
    /// # Errors
    /// It has fewer.
    pub(crate) fn check<T>(
        options: &FtlOptions<'_, T>,
        extra_blocks: u64,
        extra_uses: &str,
    ) -> Result<()> {
        let geometry = &options.geometry;
        // A device that may lose power needs a block to finish interrupted merges.
        let (reserved, extra_uses) = match options.durable {
            false => (extra_blocks, extra_uses.to_owned()),
            true => (extra_blocks + 1, format!("{extra_uses}, 1 to finish interrupted merges")),
        };
        let shape = geometry.shape();
        let blocks = u64::from(geometry.blocks());
        let data = u64::from(shape.logical_pages.div_ceil(shape.pages_per_block));
        if data + reserved <= blocks {
            return Ok(());
        }
        Err(Error::usage("The device has too few blocks for its FTL")
            .got(format!("{blocks} blocks, of which the host's data takes {data}"))
            .allowed(format!("{} blocks or more, for the data plus {extra_uses}", data + reserved))
            .action("raise spare_factor or blocks_per_die"))
    }

    pub(crate) fn new(geometry: Geometry) -> DataBlocks {
        let shape = geometry.shape();
        let pages = shape.logical_pages as usize;
        DataBlocks {
            geometry,
            map: vec![NO_BLOCK; pages.div_ceil(shape.pages_per_block as usize)],
            programmed: vec![0; pages.div_ceil(64)],
            valid: vec![0; pages.div_ceil(64)],
            free: FreePool::full(shape.planes, shape.blocks_per_plane),
        }
    }

    /// Return the logical block of `page`.
    #[inline]
    pub(crate) fn logical_block(&self, page: Lpn) -> u32 {
        self.geometry.block_of(Ppn(page.0)).0
    }

    /// Return the pages of a logical block; the last one of the device may be shorter than the others.
    #[inline]
    pub(crate) fn pages_of(&self, logical: u32) -> std::ops::Range<u32> {
        let shape = self.geometry.shape();
        let first = logical * shape.pages_per_block;
        first..(first + shape.pages_per_block).min(shape.logical_pages)
    }

    /// Return the data block of a logical block.
    #[inline]
    pub(crate) fn block_of(&self, logical: u32) -> Option<BlockIdx> {
        let block = self.map[logical as usize];
        (block != NO_BLOCK).then_some(BlockIdx(block))
    }

    /// Return the address of `page` in `block`.
    #[inline]
    pub(crate) fn address_in(&self, block: BlockIdx, page: Lpn) -> PageAddress {
        let first = self.logical_block(page) * self.geometry.shape().pages_per_block;
        self.geometry.address_at(block, page.0 - first)
    }

    /// Return the address of `page`, if its newest version is in its data block.
    #[inline]
    pub(crate) fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let block = self
            .block_of(self.logical_block(page))
            .filter(|_| bits::has(&self.valid, page.0 as usize));
        block.map(|block| self.address_in(block, page))
    }

    /// Return the address where `page` can be written in its data block, if that exists and the page is still
    /// erased.
    #[inline]
    pub(crate) fn erased_page(&self, page: Lpn) -> Option<PageAddress> {
        if bits::has(&self.programmed, page.0 as usize) {
            return None;
        }
        self.block_of(self.logical_block(page)).map(|block| self.address_in(block, page))
    }

    /// Note that the newest version of `page` was programmed in its data block.
    #[inline]
    pub(crate) fn set_programmed(&mut self, page: Lpn) {
        bits::insert(&mut self.programmed, page.0 as usize);
        bits::insert(&mut self.valid, page.0 as usize);
    }

    /// Note that the newest version of `page` is no longer in its data block.
    #[inline]
    pub(crate) fn set_invalid(&mut self, page: Lpn) {
        bits::remove(&mut self.valid, page.0 as usize);
    }

    /// Make `block`, which is erased or a sequential log block, the data block of `logical`, without any page
    /// recorded as programmed. Returns the previous data block.
    pub(crate) fn set_block(&mut self, logical: u32, block: BlockIdx) -> Option<BlockIdx> {
        let pages = self.pages_of(logical);
        let (first, end) = (pages.start as usize, pages.end as usize);
        bits::clear(&mut self.programmed, first, end);
        bits::clear(&mut self.valid, first, end);
        let old = std::mem::replace(&mut self.map[logical as usize], block.0);
        (old != NO_BLOCK).then_some(BlockIdx(old))
    }

    /// Note that the address of `page` in its data block was programmed, but holds no valid data.
    #[inline]
    pub(crate) fn set_spent(&mut self, page: Lpn) {
        bits::insert(&mut self.programmed, page.0 as usize);
        bits::remove(&mut self.valid, page.0 as usize);
    }

    /// Copy the valid pages of the data block of `logical` to the same offsets of `to`, which becomes its data
    /// block. Returns the old one, for the caller to erase.
    pub(crate) fn copy_to(
        &mut self,
        logical: u32,
        to: BlockIdx,
        plan: &mut FlashPlan,
    ) -> Option<BlockIdx> {
        let pages = self.pages_of(logical);
        let (first, end) = (pages.start as usize, pages.end as usize);
        assert!(first < end, "a logical block has pages");
        let old = self.block_of(logical);
        if let Some(from) = old {
            let (from, to) = (self.geometry.address_at(from, 0), self.geometry.address_at(to, 0));
            plan.copy_set(from, to, &self.valid, first, end - first);
        }
        // The new block has exactly the copied pages programmed.
        for at in (first..end).step_by(64) {
            let length = (end - at).min(64);
            let valid = bits::word(&self.valid, at, length);
            bits::clear(&mut self.programmed, at, at + length);
            bits::insert_word(&mut self.programmed, at, valid);
        }
        self.map[logical as usize] = to.0;
        old
    }

    /// Take an erased block of `plane` or, if that has none, of the plane that has the most.
    ///
    /// # Panics
    /// If no plane has one. The accounting is then wrong: a valid profile leaves a free block.
    pub(crate) fn take_free(&mut self, plane: PlaneIdx) -> BlockIdx {
        BlockIdx(self.free.take_near(plane.0).expect("a valid profile leaves an erased block"))
    }

    /// Remove `block`, which is not erased, from the free blocks.
    pub(crate) fn take_used(&mut self, block: BlockIdx) {
        self.free.retain(|free| free != block.0);
    }

    /// Add `block`, which was erased, to the free blocks.
    pub(crate) fn release(&mut self, block: BlockIdx) {
        self.free.put(self.geometry.plane_of(block).0, block.0);
    }

    /// Return the home plane of the data of `logical`; neighbours are spread over the planes.
    pub(crate) fn home_plane(&self, logical: u32) -> PlaneIdx {
        PlaneIdx(logical % self.geometry.shape().planes)
    }

    /// Check that every block is either free, or the data block of one logical block, or one of `others`.
    #[cfg(test)]
    pub(crate) fn audit(&self, others: impl Iterator<Item = BlockIdx>) {
        let mut owners = vec![0; self.geometry.blocks() as usize];
        let data =
            self.map.iter().filter(|block| **block != NO_BLOCK).map(|block| BlockIdx(*block));
        for block in data.chain(self.free.iter().map(BlockIdx)).chain(others) {
            owners[block.0 as usize] += 1;
        }
        assert!(owners.iter().all(|owners| *owners == 1), "every block has one owner: {owners:?}");
        for page in (0..self.geometry.shape().logical_pages).map(Lpn) {
            assert!(
                !bits::has(&self.valid, page.0 as usize)
                    || bits::has(&self.programmed, page.0 as usize),
                "valid: programmed"
            );
            let mapped = self.block_of(self.logical_block(page)).is_some();
            assert!(
                mapped || !bits::has(&self.programmed, page.0 as usize),
                "programmed: in a data block"
            );
        }
    }
}

// Recovery of data blocks after a power loss.
//
// ```text
// blocks of one logical block, every page of each at its own offset
// one of them           it is the data block
// any other case        the newest of all pages, from these and from logs, is copied to a new block; these are erased
// ```
//
// **Source**: the inverse map of uFLIP (2009) §2.2.
// **Faithful**: only spare areas are used; the copies of a merge count if it was finished.
// **Simplified**: a log that was being filled in order is merged.
// **Ambiguous**: nothing.

impl DataBlocks {
    /// Find the data block of every logical block. If its blocks are not a single one with all pages at
    /// their own offsets, `fits` receives them in the order in which they were opened; if it returns false they are
    /// merged. Blocks with pages of several logical blocks are ignored.
    pub(crate) fn restore(
        &mut self,
        survey: &Survey<'_>,
        plan: &mut FlashPlan,
        mut fits: impl FnMut(&mut DataBlocks, &[(BlockIdx, Holding)]) -> bool,
    ) {
        let mut by_logical_block: BTreeMap<u32, Vec<(BlockIdx, Holding)>> = BTreeMap::new();
        for block in survey.blocks() {
            self.take_used(block);
            let holding = survey.holding(block);
            match holding {
                Holding::InPlace(logical) | Holding::Of(logical) => {
                    by_logical_block.entry(logical).or_default().push((block, holding));
                }
                Holding::Mixed => {}
            }
        }
        for (logical, blocks) in by_logical_block {
            match blocks[..] {
                [(block, Holding::InPlace(_))] => self.adopt(logical, block, survey),
                _ if fits(self, &blocks) => {}
                _ => {
                    let old = blocks.iter().map(|(block, _)| *block);
                    self.merge_all(logical, old, survey, plan);
                }
            }
        }
    }

    /// Make `block` the data block of `logical`.
    pub(crate) fn adopt(&mut self, logical: u32, block: BlockIdx, survey: &Survey<'_>) {
        self.set_block(logical, block);
        for page in self.pages_of(logical).map(Lpn) {
            let at = self.address_in(block, page);
            if !survey.is_erased_at(at) {
                self.set_spent(page);
            }
            if survey.address_of(page) == Some(at) {
                self.set_programmed(page);
            }
        }
    }

    /// Copy the newest version of every page of `logical` to a new block, and erase `old`.
    fn merge_all(
        &mut self,
        logical: u32,
        old: impl Iterator<Item = BlockIdx>,
        survey: &Survey<'_>,
        plan: &mut FlashPlan,
    ) {
        let block = self.take_free(self.home_plane(logical));
        plan.count_merge(Merge::Full);
        self.set_block(logical, block);
        for page in self.pages_of(logical).map(Lpn) {
            if let Some(from) = survey.address_of(page) {
                plan.copy(from, self.address_in(block, page));
                self.set_programmed(page);
            }
        }
        plan.barrier();
        for old in old {
            plan.erase(old);
            self.release(old);
        }
        plan.barrier();
    }
}
