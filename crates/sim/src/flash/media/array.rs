//! Flash that checks and counts operations: the untimed mode, and the part that timed modes share.

use uflip_core::Counters;

use super::{CollectMedia, Media};
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{BlockIdx, Geometry, PageAddress, Ppn};
use crate::flash::nand::{Nand, PageOrder};
use crate::flash::replacement::ReplacementTable;
use crate::flash::wear_out::{BEFORE, ReadOutcome, WearOut};

/// NAND and counters, shared by both modes. As [`Media`] it is the untimed mode.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Flash {
    pub(crate) geometry: Geometry,
    pub(crate) nand: Nand,
    pub(crate) counters: Counters,
    /// The effects of wear; `None` if flash does not wear out.
    pub(super) wear_out: Option<Box<WearOut>>,
    /// Replacements of blocks and pages under merging FTLs, if there are any.
    pub(super) replacements: Option<Box<ReplacementTable>>,
    /// The blocks with one bit a cell, and the times of their pages, if there is an SLC cache.
    slc: Option<Box<SlcBlocks>>,
    /// The read retries of the last page that was read.
    pub(crate) retries: u32,
    /// Simulated time [ns].
    pub(crate) clock: u64,
    /// Whether an uncorrectable page fails the I/O, and whether one did.
    fail_uncorrectable: bool,
    pub(crate) read_failed: bool,
}

/// Blocks with one bit a cell.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Slc")]
struct SlcBlocks {
    read_ns: u64,
    program_ns: u64,
    blocks: Vec<bool>,
}

impl Flash {
    /// Create a device in its factory state.
    pub(crate) fn new(geometry: Geometry, order: PageOrder) -> Flash {
        let (nand, counters) = (Nand::new(geometry, order), Counters::default());
        Flash {
            geometry,
            nand,
            counters,
            wear_out: None,
            replacements: None,
            slc: None,
            retries: 0,
            clock: BEFORE,
            fail_uncorrectable: false,
            read_failed: false,
        }
    }

    /// Return this flash with wear and these bad blocks.
    pub(crate) fn with_wear(
        mut self,
        wear_out: WearOut,
        bad: &[BlockIdx],
        fail_uncorrectable: bool,
    ) -> Flash {
        self.fail_uncorrectable = fail_uncorrectable;
        bad.iter().for_each(|block| self.nand.retire_block(*block));
        self.wear_out = Some(Box::new(wear_out));
        self
    }

    /// Return this flash with replacement of failed blocks.
    pub(crate) fn replacing(mut self, replacements: ReplacementTable) -> Flash {
        self.replacements = Some(Box::new(replacements));
        self
    }

    /// Return this flash with support for SLC blocks, whose pages take these times to read and program.
    pub(crate) fn with_slc(mut self, read_ns: u64, program_ns: u64) -> Flash {
        let blocks = vec![false; self.geometry.blocks() as usize];
        self.slc = Some(Box::new(SlcBlocks { read_ns, program_ns, blocks }));
        self
    }

    /// Return whether pages may need read retries, or fail.
    #[inline]
    pub(super) fn wears_out(&self) -> bool {
        self.wear_out.is_some()
    }

    /// Return whether pages are programmed in order, none is retired, all hold the same number of
    /// bits a cell, and no operation fails.
    pub(crate) fn is_minimal(&self) -> bool {
        self.wear_out.is_none() && self.slc.is_none() && self.nand.is_regular()
    }

    /// Return the read and program time of a page of `block`, if it is an SLC block.
    #[inline]
    pub(crate) fn slc_ns(&self, block: BlockIdx) -> Option<(u64, u64)> {
        let slc = self.slc.as_ref()?;
        slc.blocks[block.0 as usize].then_some((slc.read_ns, slc.program_ns))
    }

    /// Set the first `pages` pages of `block` as programmed (recovery).
    pub(crate) fn restore_programmed(&mut self, block: BlockIdx, pages: u32) {
        self.nand.restore_programmed(block, pages);
        if let Some(slc) = self.slc.as_mut().filter(|_| pages == 0) {
            slc.blocks[block.0 as usize] = false;
        }
    }

    /// Reset after a power loss with these retired blocks and pages, a bit each, and these erased blocks.
    pub(crate) fn reset_after_power_loss(
        &mut self,
        (bad, pages): (&[bool], &[u64]),
        erased: impl Iterator<Item = BlockIdx>,
    ) {
        self.nand.restore_retired(bad, pages);
        if let Some(wear_out) = &mut self.wear_out {
            wear_out.reset_after_power_loss(erased);
        }
    }

    /// Return how much longer the next erase of `block` takes than the first one [ns].
    #[inline]
    pub(crate) fn erase_extra_ns(&self, block: BlockIdx) -> u64 {
        let wear_out = self.wear_out.as_ref();
        wear_out.map_or(0, |wear_out| wear_out.erase_extra_ns(self.nand.erases(block)))
    }

    #[inline]
    fn read_page(&mut self, from: PageAddress) {
        self.nand.read(from);
        self.counters.pages_read += 1;
        if self.wear_out.is_some() {
            self.judge_read(from.page, from.block);
        }
    }

    // Addresses one by one: a `PageAddress` would have to be in memory in the hot path already.
    #[inline(never)]
    fn judge_read(&mut self, page: Ppn, block: BlockIdx) {
        let from = self.geometry.address_in(block, page);
        let Some(wear_out) = &mut self.wear_out else { return };
        let erases = self.nand.erases(from.block);
        let ReadOutcome { retries, corrected } = wear_out.read(from, erases, self.clock);
        self.retries = retries;
        self.counters.pages_read += u64::from(retries);
        self.counters.read_retries += u64::from(retries);
        self.counters.uncorrectable_reads += u64::from(!corrected);
        self.read_failed = !corrected && self.fail_uncorrectable;
    }

    /// Program a page; returns false if that fails.
    #[inline]
    fn program_page(&mut self, to: PageAddress) -> bool {
        self.nand.program(to);
        self.counters.pages_programmed += 1;
        self.wear_out.is_none() || self.judge_program(to.page, to.block)
    }

    #[inline(never)]
    pub(super) fn judge_program(&mut self, page: Ppn, block: BlockIdx) -> bool {
        let to = self.geometry.address_in(block, page);
        let erases = self.nand.erases(to.block);
        let Some(wear_out) = &mut self.wear_out else { return true };
        wear_out.programmed(block, self.clock);
        let fails = wear_out.program_fails(to, erases);
        self.counters.program_failures += u64::from(fails);
        !fails
    }
}

impl Flash {
    /// Read the old version of a page that is written in part.
    #[inline]
    pub(crate) fn read_to_modify(&mut self, from: PageAddress) {
        self.read_page(from);
        self.counters.pages_read_to_modify += 1;
    }
}

impl Media for Flash {
    type Path = AllFeatures;

    #[inline]
    fn read(&mut self, from: PageAddress) {
        self.read_page(from);
        self.counters.host_pages_read += 1;
    }

    #[inline(always)]
    fn program(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool {
        if let Some(from) = merge_from {
            self.read_to_modify(from);
        }
        let programmed = self.program_page(to);
        self.counters.host_pages_written += u64::from(programmed);
        programmed
    }

    #[inline]
    fn program_metadata(&mut self, to: PageAddress) -> bool {
        let programmed = self.program_page(to);
        // Counts all units of the flash page that begins there.
        let other_units = u64::from(self.geometry.units() - 1);
        self.counters.pages_programmed += other_units;
        self.counters.metadata_pages_programmed += u64::from(programmed) * (other_units + 1);
        self.counters.program_failures += u64::from(!programmed) * other_units;
        programmed
    }
}

impl CollectMedia for Flash {
    #[inline]
    fn unworn(&mut self) -> Option<&mut Flash> {
        (self.wear_out.is_none() && self.nand.is_regular()).then_some(self)
    }

    fn set_slc(&mut self, block: BlockIdx) {
        if let Some(slc) = &mut self.slc {
            slc.blocks[block.0 as usize] = true;
        }
    }

    fn pad(&mut self, to: PageAddress) {
        self.nand.program(to);
        self.counters.pages_programmed += 1;
        self.counters.pages_padded += 1;
    }

    #[inline]
    fn begin_collection(&mut self, _: BlockIdx, metadata: Option<PageAddress>) {
        self.counters.blocks_collected += 1;
        if let Some(page) = metadata {
            self.read_page(page);
        }
    }

    #[inline]
    fn read_unneeded(&mut self, from: PageAddress) {
        self.read_page(from);
    }

    #[inline(always)]
    fn relocate(&mut self, from: PageAddress, to: PageAddress) -> bool {
        self.read_page(from);
        let programmed = self.program_page(to);
        self.counters.pages_relocated += u64::from(programmed);
        programmed
    }

    #[inline]
    fn erase(&mut self, block: BlockIdx) -> bool {
        let erases = self.nand.erases(block);
        self.nand.erase(block);
        if let Some(slc) = &mut self.slc {
            slc.blocks[block.0 as usize] = false;
        }
        self.counters.blocks_erased += 1;
        let fails = self.wear_out.as_mut().is_some_and(|wear| {
            wear.erased(block);
            wear.erase_fails(block, erases)
        });
        self.counters.erase_failures += u64::from(fails);
        !fails
    }

    fn is_worn(&self, page: PageAddress) -> bool {
        let erases = self.nand.erases(page.block);
        self.wear_out.as_ref().is_some_and(|wear| wear.is_worn(page, erases))
    }

    fn errors(&self, page: PageAddress) -> u32 {
        let erases = self.nand.erases(page.block);
        self.wear_out.as_ref().map_or(0, |wear| wear.errors(page, erases))
    }

    fn retire_block(&mut self, block: BlockIdx) {
        self.nand.retire_block(block);
        self.counters.blocks_retired += 1;
    }

    fn retire_page(&mut self, page: PageAddress) {
        self.nand.retire_page(page);
        self.counters.pages_retired += 1;
    }

    fn record_lost_pages(&mut self, pages: u32) {
        self.counters.pages_given_up += u64::from(pages);
    }

    fn count_scrubbed(&mut self) {
        self.counters.blocks_scrubbed += 1;
    }

    fn count_levelled(&mut self) {
        self.counters.blocks_levelled += 1;
    }

    #[inline]
    fn look_up_map(&mut self, hit: bool) {
        let counters = &mut self.counters;
        *(if hit { &mut counters.mapping_hits } else { &mut counters.mapping_misses }) += 1;
    }

    fn read_mapping(&mut self, from: PageAddress) {
        self.read_page(from);
        self.counters.mapping_pages_read += 1;
    }

    fn program_mapping(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool {
        if let Some(from) = merge_from {
            self.read_mapping(from);
        }
        let programmed = self.program_page(to);
        self.counters.mapping_pages_programmed += u64::from(programmed);
        programmed
    }
}
