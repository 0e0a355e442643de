//! Flash operations of FTLs. NAND checks and applies them; in the timed mode the timeline charges their time,
//! in the untimed mode they take none. Merging FTLs request them with a [plan](crate::flash::plan).

mod plan_executor;

use uflip_core::Counters;

use super::fast_path::{AllFeatures, FastPath};
use super::geometry::{BlockIdx, Geometry, Lpn, PageAddress, Ppn};
use super::nand::{Nand, PageOrder, Violation};
use super::plan::{Cmd, Counted, FlashPlan, Merge, Move};
use super::replacement::ReplacementTable;
use super::wear_out::{BEFORE, FailingSectors, ReadOutcome, Reading, WearOut};
use crate::flash::contents::Defect;

/// The receiver of flash operations. An FTL calls these in the order in which they must take effect; their
/// overlap in time is decided elsewhere.
pub(crate) trait Media {
    /// The kind of device: see [`crate::flash::fast_path`].
    type Path: FastPath;
    /// Set the logical page of the next program, `None` for pages without one, and the role of its block
    /// among the open blocks of its plane.
    #[inline]
    fn set_content(&mut self, _page: Option<Lpn>, _role: impl FnOnce() -> u8) {}
    /// Read `from` for the host.
    fn read(&mut self, from: PageAddress);
    /// Program `to` with host data; the rest of the page comes from `merge_from` if given. Returns false if
    /// that fails: the page then holds no data.
    fn program(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool;
    /// Program the metadata page of a full block; returns false if that fails.
    fn program_metadata(&mut self, to: PageAddress) -> bool;
}

/// Additional operations of FTLs that collect blocks in the background.
pub(crate) trait CollectMedia: Media {
    /// Make `block`, which is erased or already an SLC block, hold one bit a cell until it is erased.
    fn set_slc(&mut self, _block: BlockIdx) {}
    /// Program `to`, a unit of a partly filled flash page, as padding.
    fn pad(&mut self, to: PageAddress);
    /// Count the next victim as scrubbed: it is moved because of its reads or its age.
    fn count_scrubbed(&mut self);
    /// Count it as levelled: it is moved because it wears less than others.
    fn count_levelled(&mut self);
    /// Begin the collection of a victim; reads its metadata page, if it has one.
    fn begin_collection(&mut self, victim: BlockIdx, metadata: Option<PageAddress>);
    /// Read `from` for a relocation that is no longer needed.
    fn read_unneeded(&mut self, from: PageAddress);
    /// Move the page `from` to `to`; returns false if `to` cannot be programmed.
    fn relocate(&mut self, from: PageAddress, to: PageAddress) -> bool;
    /// Erase `block`; returns false if that fails.
    fn erase(&mut self, block: BlockIdx) -> bool;
    /// Return whether `page`, which is erased, has too many bit errors to be used again.
    fn is_worn(&self, page: PageAddress) -> bool;
    /// Return a number that grows with the bit errors of `page` when it is read.
    fn errors(&self, page: PageAddress) -> u32;
    /// Retire `block`.
    fn retire_block(&mut self, block: BlockIdx);
    /// Retire `page`, which is erased.
    fn retire_page(&mut self, page: PageAddress);
    /// List the defect of `block` on flash, for recovery after a power loss.
    fn list_defect(&mut self, _defect: Defect, _block: BlockIdx) {}
    /// Count `pages` valid pages of a victim as dropped: their data is lost (OFC figure 5(a)).
    fn record_lost_pages(&mut self, pages: u32);
    /// Count a lookup in the cached map.
    fn look_up_map(&mut self, hit: bool);
    /// Read a mapping page. Later operations wait for it.
    fn read_mapping(&mut self, from: PageAddress);
    /// Return the flash itself if operations take no time and flash does not wear out. The caller may then do
    /// many operations at once, and must count them.
    #[inline]
    fn unworn(&mut self) -> Option<&mut Flash> {
        None
    }
    /// Program a mapping page; its unchanged entries come from `merge_from` if given. Later operations wait
    /// for it. Returns false if that fails.
    fn program_mapping(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool;
}

// Flash that checks and counts operations: the untimed mode, and the part that timed modes share.

/// NAND and counters, shared by both modes. As [`Media`] it is the untimed mode.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Flash {
    pub(crate) geometry: Geometry,
    pub(crate) nand: Nand,
    pub(crate) counters: Counters,
    /// The effects of wear; `None` if flash does not wear out.
    wear_out: Option<Box<WearOut>>,
    /// Replacements of blocks and pages under merging FTLs, if there are any.
    replacements: Option<Box<ReplacementTable>>,
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
    fn wears_out(&self) -> bool {
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
    fn judge_program(&mut self, page: Ppn, block: BlockIdx) -> bool {
        let to = self.geometry.address_in(block, page);
        let erases = self.nand.erases(to.block);
        let Some(wear_out) = &mut self.wear_out else { return true };
        wear_out.programmed(block, self.clock);
        let fails = wear_out.program_fails(to, erases);
        self.counters.program_failures += u64::from(fails);
        !fails
    }

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

// Operations of a host that places data itself: a violated rule is its mistake, and is returned as a value.
//
// It programs and erases whole flash pages, and reads sectors of them; a sector is what a [`Geometry`]
// counts as a page.
//
// [`Geometry`]: super::geometry::Geometry

impl Flash {
    /// Program the flash page that begins at `to`; returns false if that fails: the page then holds no data.
    #[inline]
    pub(crate) fn try_program(&mut self, to: PageAddress) -> Result<bool, Violation> {
        self.nand.try_program(to, self.geometry.units())?;
        Ok(self.wear_out.is_none() || self.judge_program(to.page, to.block))
    }

    /// Erase `block`; returns false if that fails, and the block is then retired.
    pub(crate) fn try_erase(&mut self, block: BlockIdx) -> Result<bool, Violation> {
        self.nand.check_erase(block)?;
        self.counters.blocks_erased += 1;
        let erases = self.nand.erases(block);
        if let Some(wear_out) = &mut self.wear_out {
            if wear_out.erase_fails(block, erases) {
                self.counters.erase_failures += 1;
                self.retire_block(block);
                return Ok(false);
            }
            wear_out.erased(block);
        }
        self.nand.erase(block);
        Ok(true)
    }

    /// Begin to read a flash page, of which `from` is a sector; `None` if no sector of it can fail.
    #[inline]
    pub(crate) fn try_read(&self, from: PageAddress) -> Result<Option<Reading>, Violation> {
        self.nand.check_read(from)?;
        let erases = self.nand.erases(from.block);
        let wear_out = self.wear_out.as_ref();
        Ok(wear_out.and_then(|wear_out| wear_out.reading(from, erases, self.clock)))
    }

    /// Return the sectors of `page` with the same quality as the one at `from`, those of a plane; `None` if
    /// each is corrected at once.
    #[inline]
    pub(crate) fn failing_sectors(
        &self,
        from: PageAddress,
        page: Reading,
    ) -> Option<FailingSectors> {
        self.wear_out.as_ref()?.failing_sectors(from, page)
    }

    /// Read the sector at `from`, which is one of `failing`.
    #[inline]
    pub(crate) fn read_sector(
        &mut self,
        from: PageAddress,
        failing: FailingSectors,
    ) -> ReadOutcome {
        let Some(wear_out) = &self.wear_out else {
            return ReadOutcome { retries: 0, corrected: true };
        };
        let outcome = wear_out.read_sector(from, failing);
        self.counters.uncorrectable_reads += u64::from(!outcome.corrected);
        outcome
    }

    /// Record that `pages` pages of `block` were read.
    #[inline]
    pub(crate) fn was_read(&mut self, block: BlockIdx, pages: u32) {
        if let Some(wear_out) = &mut self.wear_out {
            wear_out.was_read(block, pages);
        }
    }

    // Execution of the plans of merging FTLs in the untimed mode.

    /// Execute `plan` in order. If blocks or pages can be replaced, `plan` then contains the executed
    /// operations instead: physical addresses and failures.
    #[inline]
    pub(crate) fn execute(&mut self, plan: &mut FlashPlan) {
        if self.replacements.is_some() {
            return self.execute_replaced(plan);
        }
        for command in plan.commands() {
            self.execute_command(command, plan);
        }
    }

    #[inline]
    fn execute_command(&mut self, command: &Cmd, plan: &FlashPlan) {
        match *command {
            Cmd::Read(from) => self.read(from),
            Cmd::Program { to, merge_from } => {
                self.program(to, merge_from);
            }
            Cmd::Copy { from, to } => {
                self.relocate(from, to);
            }
            Cmd::CopySet { from, to, set } => self.copy_set(from, to, plan.words(set)),
            Cmd::CopyRow(row) => {
                for (from, to) in plan.row(row).moves() {
                    self.relocate(from, to);
                }
            }
            Cmd::CopyStream(pages) => {
                for Move { from, to } in plan.moves(pages) {
                    match from {
                        Some(from) => self.relocate(*from, *to),
                        None => self.program_metadata(*to),
                    };
                }
            }
            Cmd::Erase { block, .. } => {
                self.erase(block);
            }
            Cmd::ProgramMap(to) | Cmd::Parity(to) => {
                self.program_metadata(to);
            }
            Cmd::LoadMap(from) => self.read_mapping(from),
            Cmd::StoreMap(pages) => {
                for Move { from, to } in plan.moves(pages) {
                    self.program_mapping(*to, *from);
                }
            }
            Cmd::Count(counted) => self.count(counted),
            Cmd::FailedRead(_) | Cmd::FailedProgram(_) | Cmd::List(_) | Cmd::Settle => {
                unreachable!("an FTL does not plan this command")
            }
            Cmd::Barrier => {}
        }
    }

    fn copy_set(&mut self, from: PageAddress, to: PageAddress, set: &[u64]) {
        for (at, word) in (0..).step_by(64).zip(set) {
            self.nand.copy_word(from.plus_pages(at), to.plus_pages(at), *word);
            let copied = u64::from(word.count_ones());
            self.counters.pages_read += copied;
            self.counters.pages_programmed += copied;
            self.counters.pages_relocated += copied;
        }
    }

    fn count(&mut self, counted: Counted) {
        match counted {
            Counted::Reclaim => self.counters.blocks_collected += 1,
            Counted::Merge(Merge::Switch) => self.counters.switch_merges += 1,
            Counted::Merge(Merge::Partial) => self.counters.partial_merges += 1,
            Counted::Merge(Merge::Full) => self.counters.full_merges += 1,
            Counted::MapLookup(hit) => self.look_up_map(hit),
        }
    }
}

/// The number of erases of a block, on block devices and on open-channel devices.
#[cfg(test)]
mod tests {
    use super::{CollectMedia as _, Flash};
    use crate::flash::geometry::{BlockIdx, Geometry, Shape};
    use crate::flash::nand::PageOrder;
    use crate::flash::reliability::{Reliability, ReliabilityPart};
    use crate::flash::wear_out::{Grain, WearOut, WearOutOptions};

    const BLOCKS: u32 = 200;

    /// After each 10 erases the next takes a step longer, and more than 4 steps are impossible. Of blocks with 20
    /// earlier erases, a share `failures` fails by chance.
    fn flash(cycles_before: u32, failures: f64) -> Flash {
        let shape = Shape {
            channels: 1,
            planes: 1,
            blocks_per_plane: BLOCKS,
            pages_per_block: 4,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 1,
        };
        let geometry = Geometry::from(shape);
        let laws = ReliabilityPart {
            wear_law: "power".into(),
            rated_cycles: 20,
            rber_fresh: 1e-9,
            rber_rated: 1e-9,
            wear_exponent: 1.0,
            page_spread: 0.0,
            high_page_factor: 1.0,
            retention_doubling_s: 0.0,
            retention_exponent: 1.0,
            ecc_codeword_bytes: 512,
            ecc_correctable_bits: 8,
            erase_step_cycles: 10,
            erase_step_ns: 1000,
            erase_steps_max: 4,
        };
        let options = WearOutOptions {
            seed: 3,
            cycles_before,
            rated_cycles: 20,
            pages_of_a_cell: 1,
            grain: Grain::flash_pages(&geometry),
            data_age_ns: 0,
            read_retries: 0,
            retry_gain: 1.0,
            program_failures: 0.0,
            erase_failures: failures,
            retire_rber: 0.5,
        };
        let laws = Reliability::new(&laws, 4096).expect("valid parameters");
        let wear_out = WearOut::new(laws, geometry, options);
        Flash::new(geometry, PageOrder::Ascending).with_wear(wear_out, &[], false)
    }

    /// An erase of each front end; false if it fails.
    const FRONT_ENDS: [fn(&mut Flash, BlockIdx) -> bool; 2] = [
        |flash, block| flash.erase(block),
        |flash, block| flash.try_erase(block).expect("the block is not retired"),
    ];

    /// Return the number of erases of `block` before one fails.
    fn count_erases_until_failure(
        flash: &mut Flash,
        block: BlockIdx,
        erase: fn(&mut Flash, BlockIdx) -> bool,
    ) -> u32 {
        (0..).find(|_| !erase(flash, block)).expect("an erase fails eventually")
    }

    /// 10 erases without a step, 10 with one, … 10 with four: 50, including earlier ones.
    #[test]
    fn erase_steps_limit_block_endurance() {
        for erase in FRONT_ENDS {
            for (before, expected) in [(0, 50), (20, 30), (49, 1), (50, 0)] {
                assert_eq!(
                    count_erases_until_failure(&mut flash(before, 0.0), BlockIdx(7), erase),
                    expected
                );
            }
        }
    }

    /// An erase after n of them fails with probability n / 20 here: the first never, the 21st always.
    #[test]
    fn erase_failure_depends_on_earlier_erases() {
        let erases_until_failure = |erase| {
            let mut flash = flash(0, 1.0 - 1e-9);
            (0..BLOCKS)
                .map(|block| count_erases_until_failure(&mut flash, BlockIdx(block), erase))
                .collect::<Vec<u32>>()
        };
        let endured = erases_until_failure(FRONT_ENDS[0]);
        assert_eq!(endured, erases_until_failure(FRONT_ENDS[1]), "both interfaces agree");
        assert!(endured.iter().all(|erases| (1..=20).contains(erases)), "{endured:?}");
        // The mean of the first failure: Σ Π (1 − i / 20), and its deviation, with 200 blocks.
        let survives =
            |erases: u32| (0..erases).map(|i| 1.0 - f64::from(i) / 20.0).product::<f64>();
        let mean: f64 = (1..=20).map(survives).sum();
        let square: f64 = (1..=20).map(|n| f64::from(2 * n - 1) * survives(n)).sum();
        let deviation = ((square - mean * mean) / f64::from(BLOCKS)).sqrt();
        let got = f64::from(endured.iter().sum::<u32>()) / f64::from(BLOCKS);
        assert!(
            (got - mean).abs() < 4.0 * deviation,
            "{got} erases, {mean} ± {deviation} expected"
        );
    }
}
