//! Recovery after a power loss: scan the flash, repeat interrupted erases, and rebuild the map.
//!
//! ```text
//! die 0   │▒│▒│▒│▒│▒│        ▒ the spare area of a page: cells, then a few bytes over the channel
//! die 1   │▒│▒│▒│            █ an interrupted erase, after the scan
//!                    │███│
//!         └─ reading ─┴─ erasing ─┴─▶ ready
//! ```
//!
//! The dies are scanned in parallel; each channel is FIFO. A written metadata page replaces the
//! other pages of its block. Otherwise the pages of the block are read in order up to the first
//! erased one. On flash that wears out, each die first reads its defect list; new defects are
//! programmed at the end.
//!
//! **Source**: uFLIP (2009) §2.2; the metadata page of OFC (2011) §IV.D.
//! **Faithful**: the reads of each die and their channel transfers; power may be cut again at any
//! moment.
//! **Simplified**: the processor takes no time; there is no checkpoint of the map, so every block
//! is scanned.
//! **Ambiguous**: nothing.

use uflip_core::{Error, Nanos, Result};

use super::backend::Backend as _;
use super::{AnyBackend, SimDevice, dispatch, merging};
use crate::collections::bits;
use crate::config::{CLOCK_END_NS, Profile};
use crate::flash::contents::survey::Survey;
use crate::flash::contents::{BlockCondition, Contents, Origin};
use crate::flash::geometry::{BlockIdx, DieIdx, Lpn, PageAddress, PlaneIdx};
use crate::flash::media::{CollectMedia as _, Flash};
use crate::flash::nand::PageOrder;
use crate::flash::plan::{Cmd, FlashPlan};
use crate::ftl::extent::PageExtent;
use crate::ftl::{BlockUse, Merging};
use crate::timeline::{DieQueue, Op, Purpose, Report, Timeline, Timing};

/// The result and the duration of a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Recovery {
    /// When recovery began, and when the device was ready.
    #[serde(rename = "began_ns")]
    pub begin: Nanos,
    /// See `begin`.
    #[serde(rename = "ready_ns")]
    pub ready: Nanos,
    /// Durations of its phases: reading spare areas and metadata pages, repeating erases, merging,
    /// and restoring data saved by capacitors.
    #[serde(rename = "reading_ns")]
    pub reading: Nanos,
    /// See `reading`.
    #[serde(rename = "erasing_ns")]
    pub erasing: Nanos,
    /// See `reading`: finishing interrupted merges, and erasing blocks without needed data.
    #[serde(rename = "merging_ns")]
    pub merging: Nanos,
    /// See `reading`.
    #[serde(rename = "putting_back_ns")]
    pub putting_back: Nanos,
    /// Flash pages whose spare area was read.
    pub spare_areas_read: u64,
    /// Metadata pages that describe their block, and defect lists, that were read.
    pub metadata_pages_read: u64,
    /// Interrupted erases that were repeated.
    pub blocks_erased: u64,
    /// Pages copied, and blocks erased, to reach a consistent state of the FTL.
    pub pages_merged: u64,
    /// See `pages_merged`.
    pub blocks_dropped: u64,
    /// Host pages that capacitors saved and that were written to flash.
    pub pages_put_back: u64,
    /// Host pages that hold data.
    pub pages_found: u64,
}

impl SimDevice {
    /// Recover after [`SimDevice::cut_power`]: scan the flash, and be ready again after the time
    /// that this takes.
    ///
    /// # Errors
    /// The device has power.
    pub fn recover(&mut self) -> Result<Recovery> {
        let profile = self.lost_power()?;
        let mut contents = self.events.contents.take().expect("flash contents are recorded");
        let mut scan = Scan::read_spare_areas(&self.flash, &contents, &profile, self.now);
        let (begin, read) = (self.now, scan.end);
        let erases = scan.repeat_erases();
        let erased = scan.end;
        let Scan { spare_areas, metadata_pages, .. } = scan;
        self.read_lists(&contents);
        self.flash.clock = erased;
        let erases = self.repeat_erases(erases.into_iter().map(|(block, _)| block), &mut contents);
        let (listed, plan) = match profile.merges() {
            false => (self.restore_map(&mut contents, &erases), FlashPlan::default()),
            true => {
                let listed = contents.list_all(&self.flash.nand, &[]);
                (listed, self.rebuild(&profile, &mut contents, false).0)
            }
        };
        let mut scan = Scan::clocks(&self.flash, &profile, erased);
        let steps = scan.execute(&plan);
        let merged = scan.end;
        scan.list(&listed);
        let listed = scan.end;
        let saved_pages = contents.take_saved();
        scan.rewrite_saved_pages(saved_pages.len());
        let ready = scan.end;
        self.events.set_contents(contents);
        self.flash.clock = ready;
        if !saved_pages.is_empty() {
            self.restore_saved_pages(&saved_pages);
        }
        self.events.advance_to(ready);
        (self.now, self.refuses_from) = (ready, CLOCK_END_NS);
        let of_host = (0..self.flash.geometry.shape().logical_pages).map(Lpn);
        let pages_found = of_host.filter(|page| self.place_of(*page).is_some()).count() as u64;
        Ok(Recovery {
            begin: Nanos(begin),
            ready: Nanos(ready),
            reading: Nanos(read - begin),
            erasing: Nanos(erased - read + listed - merged),
            merging: Nanos(merged - erased),
            putting_back: Nanos(ready - listed),
            spare_areas_read: spare_areas,
            metadata_pages_read: metadata_pages,
            blocks_erased: erases.len() as u64,
            pages_merged: steps.iter().filter(|step| step.kind == RecoveryOpKind::Copied).count()
                as u64,
            blocks_dropped: steps.iter().filter(|step| step.kind == RecoveryOpKind::Erased).count()
                as u64,
            pages_put_back: saved_pages.len() as u64,
            pages_found,
        })
    }

    /// Recover until power is cut again at `at`. Interrupted erases and merges may be partly done
    /// by then; nothing else has changed. Return whether the device was ready before `at`.
    ///
    /// # Errors
    /// The device has power; `at` is past.
    pub fn recover_until(&mut self, at: Nanos) -> Result<bool> {
        let profile = self.lost_power()?;
        let mut contents = self.events.contents.take().expect("flash contents are recorded");
        let mut scan = Scan::read_spare_areas(&self.flash, &contents, &profile, self.now);
        let erases = scan.repeat_erases();
        let erased = scan.end;
        if erased <= at.0 && !contents.has_saved() {
            let mut ready = self.clone();
            ready.events.set_contents(contents.clone());
            ready.recover()?;
            // Merges and defect lists take time, too.
            if ready.now <= at.0 {
                *self = ready;
                self.cut_power(at)?;
                return Ok(true);
            }
        }
        self.read_lists(&contents);
        let in_time = erases.into_iter().filter(|(_, end)| *end <= at.0);
        self.repeat_erases(in_time.map(|(block, _)| block), &mut contents);
        if profile.merges() && erased <= at.0 {
            self.flash.clock = erased;
            let (plan, records) = self.rebuild(&profile, &mut contents, true);
            let steps = Scan::clocks(&self.flash, &profile, erased).execute(&plan);
            self.do_until((&records, &steps), at.0, &mut contents);
        }
        self.events.set_contents(contents);
        self.now = self.now.max(at.0);
        self.events.advance_to(self.now);
        Ok(false)
    }

    fn lost_power(&self) -> Result<Profile> {
        if self.refuses_from == CLOCK_END_NS {
            return Err(Error::usage("The device has power: there is nothing to recover")
                .at(&self.info.url)
                .action("cut its power first"));
        }
        Ok(self.profile())
    }

    /// Repeat the interrupted erases; return with each block whether its erase succeeded.
    fn repeat_erases(
        &mut self,
        blocks: impl Iterator<Item = BlockIdx>,
        contents: &mut Contents,
    ) -> Vec<(BlockIdx, bool)> {
        let erase = |block| {
            let erased = self.flash.erase(block) && !contents.is_broken(block);
            if contents.tracks_physical_blocks() {
                contents.erase_physical_again(block, erased);
                if !erased {
                    self.flash.retire_block(block);
                }
            } else if erased {
                contents.erased_again(block);
            } else {
                contents.half_erase(block);
                contents.cannot_be_erased(block);
            }
            (block, erased)
        };
        blocks.map(erase).collect()
    }

    /// Restore a page map from flash, given the result of the repeated erases. Return the blocks
    /// whose defects must be listed.
    fn restore_map(
        &mut self,
        contents: &mut Contents,
        erases: &[(BlockIdx, bool)],
    ) -> Vec<BlockIdx> {
        let AnyBackend::Paged(paged) = &mut self.backend else {
            unreachable!("the device has a page map")
        };
        let uses = paged.ftl.restore(contents, erases, &mut self.flash);
        let blocks = paged.ftl.blocks();
        contents.set_erases(|block| blocks.wear(block));
        let listed = contents.list_all(&self.flash.nand, paged.ftl.failed_programs());
        self.use_blocks(&uses);
        listed
    }

    /// Write the pages that capacitors saved.
    fn restore_saved_pages(&mut self, pages: &[u32]) {
        self.hand_over_contents(Origin::Newest);
        let mut unplaced = Vec::new();
        for page in pages {
            let (page, extent) = (Lpn(*page), PageExtent::single(Lpn(*page), true, 0));
            let (before, version) =
                (self.flash.counters.host_pages_written, self.version_of(page.0));
            let SimDevice { backend, flash, .. } = self;
            dispatch!(backend, backend => backend.write_untimed(page, &extent, flash));
            if self.flash.counters.host_pages_written == before {
                unplaced.push((page, version.unwrap_or(0)));
            }
        }
        self.settle_contents(false);
        for (page, version) in unplaced {
            // A merging FTL has recorded its own work.
            let at = self.place_of(page).filter(|_| matches!(self.backend, AnyBackend::Paged(_)));
            let contents = self.events.contents.as_mut().expect("flash contents are recorded");
            contents.mark_saved(page.0, at, version);
        }
    }

    /// Set the programmed pages of each block from its use, so that further operations are checked
    /// against it. Blocks that will not be continued count as full or erased.
    fn use_blocks(&mut self, uses: &[BlockUse]) {
        let geometry = self.flash.geometry;
        for (block, used) in (0..).map(BlockIdx).zip(uses) {
            let pages = match *used {
                BlockUse::Free | BlockUse::Erased | BlockUse::Bad => 0,
                BlockUse::Open { next, .. } => next.0 - geometry.first_page(block).0,
                BlockUse::Filled { .. } => geometry.shape().pages_per_block,
            };
            self.flash.restore_programmed(block, pages);
        }
    }
}

// The flash scan after a power loss. It runs on a timeline of its own, since the device does
// nothing else.

/// Program order within a block, which determines how many pages must be read.
#[derive(Clone, Copy)]
enum ProgramOrder {
    /// Ascending: no page follows the first erased one.
    Ascending,
    /// Ascending, and each block keeps its logical pages in fixed offsets: a table gives the count.
    ByTable,
    Any,
}

/// An operation of the recovery, and its time.
#[derive(Clone, Copy)]
struct RecoveryOp {
    pub(super) kind: RecoveryOpKind,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// Kind of operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecoveryOpKind {
    Copied,
    Erased,
    /// An unplanned operation: a program that failed, or a defect list.
    Other,
}

/// The scan's timeline and statistics.
struct Scan<'a> {
    flash: &'a Flash,
    clocks: Timeline<u64>,
    half_erased: Vec<BlockIdx>,
    spare_areas: u64,
    pub(super) metadata_pages: u64,
    /// Number of transfer units of a page with its spare area, and of the spare area alone.
    page_transfers: u16,
    spare_transfers: u16,
    order: ProgramOrder,
    /// The end of all operations so far.
    pub(super) end: u64,
}

/// Return the greatest common divisor.
fn greatest_common_divisor(a: u32, other: u32) -> u32 {
    if other == 0 { a } else { greatest_common_divisor(other, a % other) }
}

impl<'a> Scan<'a> {
    /// Read the spare areas from `at` on.
    fn read_spare_areas(
        flash: &'a Flash,
        contents: &Contents,
        profile: &Profile,
        at: u64,
    ) -> Scan<'a> {
        let mut scan = Scan::clocks(flash, profile, at);
        if contents.defects().is_some() {
            scan.read_lists();
        }
        for (block, condition) in (0..).map(BlockIdx).zip(contents.block_states()) {
            if !contents.is_listed(block) {
                scan.scan_block(block, condition, contents);
            }
        }
        scan.wait();
        scan
    }

    /// Create a scan that starts at `at`.
    pub(super) fn clocks(flash: &'a Flash, profile: &Profile, at: u64) -> Scan<'a> {
        let part = profile.power_loss.expect("the profile has a power_loss table");
        let timing = profile.timing();
        let whole = profile.geometry.page_bytes + profile.geometry.spare_bytes;
        let unit = greatest_common_divisor(whole, part.spare_read_bytes)
            .max(whole.div_ceil(u16::MAX.into()));
        let transfers = |bytes: u32| bytes.div_ceil(unit) as u16;
        // Times are exact fractions: `rate` units take `unit` seconds. Only a transfer's total is
        // rounded down.
        let rate = profile.timing.channel_bytes_per_s.max(1);
        let unit_ns = u64::from(unit) * 1_000_000_000;
        let at_rate = |other: u64| {
            let ns = u128::from(unit_ns) * u128::from(rate) / u128::from(other.max(1));
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        let clocks = Timing {
            transfer_ns: unit_ns,
            transfer_parts: rate,
            bus_ns: at_rate(profile.timing.bus_bytes_per_s),
            memory_ns: profile.timing.memory_bytes_per_s.map_or(0, at_rate),
            die_queue: DieQueue::Fifo,
            cache_program: false,
            cache_read: false,
            has_plan_order: false,
            keeps_history: false,
            ..timing
        };
        let mut scan = Scan {
            flash,
            clocks: Timeline::new(flash.geometry, clocks),
            half_erased: Vec::new(),
            spare_areas: 0,
            metadata_pages: 0,
            page_transfers: transfers(whole),
            spare_transfers: transfers(part.spare_read_bytes),
            order: match profile.page_order() {
                PageOrder::Any => ProgramOrder::Any,
                PageOrder::Ascending if profile.uses_page_tables() => ProgramOrder::ByTable,
                PageOrder::Ascending => ProgramOrder::Ascending,
            },
            end: at,
        };
        scan.clocks.advance_to(at);
        scan.clocks.set_event_budget(u64::MAX);
        scan
    }

    /// Read the defect list of every die first.
    fn read_lists(&mut self) {
        for plane in (0..self.flash.geometry.shape().planes).map(PlaneIdx) {
            let die = self.flash.geometry.die_of(plane);
            self.metadata_pages += 1;
            let read_ns = self.clocks.timing.cells.read_page(|| 0);
            let op = Op::read(die, read_ns, Purpose::Metadata, 0);
            self.clocks.issue(self.end, Op { transfers: self.page_transfers, ..op });
        }
        self.wait();
    }

    /// Program the defect lists of the dies of `blocks`, once per die.
    pub(super) fn list(&mut self, blocks: &[BlockIdx]) {
        let program_ns = self.clocks.timing.cells.program_page(0);
        for block in blocks {
            let die = self.die_at(self.flash.geometry.address_at(*block, 0));
            let op = Op::program(die, program_ns, Purpose::Metadata, 0);
            let (transfers, report) = (self.page_transfers, Report::AtEnd);
            self.clocks.issue(self.end, Op { transfers, report, ..op });
        }
        self.wait();
    }

    /// Read the contents of `block`.
    fn scan_block(
        &mut self,
        block: BlockIdx,
        (condition, programmed, is_used): (BlockCondition, u32, bool),
        contents: &Contents,
    ) {
        let geometry = self.flash.geometry;
        let units = geometry.units();
        if geometry.shape().metadata_pages > 0 {
            let metadata = geometry.address_at(block, geometry.data_pages());
            if contents.is_readable(metadata.page) {
                self.metadata_pages += 1;
                return self.read(metadata, self.page_transfers);
            }
            self.spare_areas += 1;
            self.read(metadata, self.spare_transfers);
        }
        let programmed = match condition {
            BlockCondition::Programmed(_) if matches!(self.order, ProgramOrder::ByTable) => {
                programmed
            }
            BlockCondition::Programmed(pages) => pages.min(geometry.data_pages()),
            BlockCondition::Erased | BlockCondition::HalfErased => 0,
        };
        if condition == BlockCondition::HalfErased || !is_used {
            self.half_erased.push(block);
        }
        let read = match self.order {
            ProgramOrder::Any => geometry.data_pages(),
            _ => (programmed + units).min(geometry.data_pages()),
        };
        for page in (0..read).step_by(units as usize) {
            self.spare_areas += 1;
            self.read(geometry.address_at(block, page), self.spare_transfers);
        }
    }

    fn read(&mut self, from: PageAddress, transfers: u16) {
        let read_ns = self.read_ns(from);
        let op = Op::read(self.die_at(from), read_ns, Purpose::Metadata, 0).on(from);
        self.clocks.issue(self.end, Op { transfers, ..op });
    }

    fn die_at(&self, address: PageAddress) -> DieIdx {
        self.flash.geometry.die_at(address)
    }

    fn read_ns(&self, from: PageAddress) -> u64 {
        let geometry = &self.flash.geometry;
        let cells = &self.clocks.timing.cells;
        let default_ns = || cells.read_page(|| geometry.flash_page_in_block(from));
        self.flash.slc_ns(from.block).map_or_else(default_ns, |(read_ns, _)| read_ns)
    }

    /// Wait for all operations so far.
    fn wait(&mut self) {
        while let Some((at, _)) = self.clocks.next(u64::MAX) {
            self.end = self.end.max(at);
        }
        self.clocks.advance_to(self.end);
    }

    /// Repeat the interrupted erases after the scan; return the end of each.
    fn repeat_erases(&mut self) -> Vec<(BlockIdx, u64)> {
        let blocks = std::mem::take(&mut self.half_erased);
        let extra_ns = |block: &BlockIdx| (*block, self.flash.erase_extra_ns(*block));
        let erases: Vec<(BlockIdx, u64)> = blocks.iter().map(extra_ns).collect();
        let ends = self.erase(&erases);
        ends.into_iter().map(|(index, end)| (blocks[index], end)).collect()
    }

    /// Erase blocks, each with its extra time; return indices and end times in the order of the
    /// ends.
    fn erase(&mut self, blocks: &[(BlockIdx, u64)]) -> Vec<(usize, u64)> {
        let begin = self.end;
        for (index, (block, extra_ns)) in (0..).zip(blocks) {
            let first = self.flash.geometry.address_at(*block, 0);
            let die = self.die_at(first);
            let erase_ns = self.clocks.timing.erase_ns + extra_ns;
            let op = Op::inside(die, erase_ns, Purpose::Erase, index);
            self.clocks.issue(begin, op.on(first));
        }
        let mut ends = Vec::new();
        while let Some((at, index)) = self.clocks.next(u64::MAX) {
            ends.push((index as usize, at));
            self.end = self.end.max(at);
        }
        self.clocks.advance_to(self.end);
        ends
    }

    /// Execute `plan`: erase blocks in parallel, copy pages one after the other. Return the
    /// programs and erases in the order of the plan.
    pub(super) fn execute(&mut self, plan: &FlashPlan) -> Vec<RecoveryOp> {
        let mut operations = Vec::new();
        let mut erases = Vec::new();
        for command in plan.commands() {
            if !matches!(command, Cmd::Erase { .. } | Cmd::Count(_) | Cmd::Barrier | Cmd::Settle) {
                self.erase_all(&mut erases, &mut operations);
            }
            match *command {
                Cmd::Erase { block, extra_ns } => erases.push((block, extra_ns)),
                Cmd::Copy { from, to } => self.copy(from, to, &mut operations),
                Cmd::FailedRead(from) => {
                    let read_ns = self.read_ns(from);
                    let read = Op::read(self.die_at(from), read_ns, Purpose::Retry, 0);
                    let transfers = self.page_transfers;
                    self.clocks.issue(self.end, Op { transfers, report: Report::AtEnd, ..read });
                    self.wait();
                }
                Cmd::FailedProgram(to) | Cmd::List(to) => {
                    self.program(to, None, RecoveryOpKind::Other, &mut operations);
                }
                Cmd::CopySet { from, to, set } => {
                    let words = plan.words(set);
                    for page in bits::members(words, 0, 64 * words.len()) {
                        let (from, to) = (from.plus_pages(page as u32), to.plus_pages(page as u32));
                        self.copy(from, to, &mut operations);
                    }
                }
                Cmd::CopyRow(row) => {
                    plan.row(row)
                        .moves()
                        .for_each(|(from, to)| self.copy(from, to, &mut operations));
                }
                Cmd::Count(_) | Cmd::Barrier | Cmd::Settle => {}
                other => unreachable!("{other:?} is not a command of a recovery"),
            }
        }
        self.erase_all(&mut erases, &mut operations);
        operations
    }

    fn erase_all(&mut self, erases: &mut Vec<(BlockIdx, u64)>, done: &mut Vec<RecoveryOp>) {
        let (begin, first) = (self.end, done.len());
        done.resize(
            first + erases.len(),
            RecoveryOp { kind: RecoveryOpKind::Erased, begin, end: begin },
        );
        for (index, end) in self.erase(erases) {
            done[first + index].end = end;
        }
        erases.clear();
    }

    fn copy(&mut self, from: PageAddress, to: PageAddress, done: &mut Vec<RecoveryOp>) {
        let read = Op::read(self.die_at(from), self.read_ns(from), Purpose::Merge, 0);
        self.program(to, Some(read), RecoveryOpKind::Copied, done);
    }

    fn program(
        &mut self,
        to: PageAddress,
        read: Option<Op<u64>>,
        kind: RecoveryOpKind,
        done: &mut Vec<RecoveryOp>,
    ) {
        let (begin, transfers) = (self.end, self.page_transfers);
        let read = read.map(|read| Op { transfers, ..read });
        let page = self.flash.geometry.page_in_block(to);
        let program_ns = self.clocks.timing.cells.program_page(page);
        let program = Op::program(self.die_at(to), program_ns, Purpose::Merge, 0);
        let program = Op { transfers, report: Report::AtEnd, ..program };
        match read {
            Some(read) => self.clocks.issue_after(begin, &[read], program),
            None => self.clocks.issue(begin, program),
        }
        self.wait();
        done.push(RecoveryOp { kind, begin, end: self.end });
    }

    /// Read the pages that capacitors saved, and program them, round-robin over the dies.
    fn rewrite_saved_pages(&mut self, pages: usize) {
        let geometry = self.flash.geometry;
        let (page_transfers, planes) = (self.page_transfers, geometry.shape().planes);
        let flash_pages = pages.div_ceil(geometry.units() as usize) as u32;
        let program_ns = self.clocks.timing.cells.program_page(0);
        let read_ns = self.clocks.timing.cells.read_page(|| 0);
        for page in 0..flash_pages {
            let die = geometry.die_of(PlaneIdx(page % planes));
            let transfers = page_transfers;
            let read = Op { transfers, ..Op::read(die, read_ns, Purpose::Metadata, 0) };
            let program = Op::program(die, program_ns, Purpose::Metadata, 0);
            let program = Op { transfers, report: Report::AtEnd, ..program };
            self.clocks.issue_after(self.end, &[read], program);
        }
        self.wait();
    }
}

// Recovery of a merging FTL: rebuild its tables, and finish interrupted merges.
//
// ```text
// spare areas ─▶ unneeded blocks │ tables ─▶ plan: erase │ merge, erase │ merge, erase
// ```
//
// The plan's steps run one after the other, except erases of several blocks; power may be cut at
// any time. With replacement blocks, spare areas name the block that each replaces; unused ones
// are erased first. Operations of the plan may fail as at any other time.
//
// **Source**: [`Survey`].
// **Faithful**: reads, programs and erases take their time on die and channel.
// **Simplified**: nothing runs concurrently with the host.
// **Ambiguous**: nothing.

impl SimDevice {
    /// Rebuild the merging FTL from flash. Return the plan that was needed and executed. With
    /// `time`, also return a record per operation, none of which has ended.
    pub(super) fn rebuild(
        &mut self,
        profile: &Profile,
        contents: &mut Contents,
        time: bool,
    ) -> (FlashPlan, Vec<u32>) {
        self.restore_flash(contents);
        let mut ftl =
            Merging::by_name(&profile.merging_options()).expect("the options were valid before");
        let mut plan = FlashPlan::default();
        let mut records = Vec::new();
        if !self.flash.is_used_up() {
            let geometry = *contents.geometry();
            let survey = Survey::new(contents, geometry, |block| ftl.group_of(block));
            survey.dropped().iter().for_each(|block| plan.erase(*block));
            plan.barrier();
            ftl.rebuild(&survey, &mut plan);
            let (pages, flash) = (std::iter::empty(), &mut self.flash);
            records = merging::execute(&mut plan, pages, |_| None, time, flash, contents);
        }
        if !time {
            contents.apply_all();
        }
        let AnyBackend::Merged(merged) = &mut self.backend else {
            unreachable!("the device has a merging FTL")
        };
        (merged.ftl, merged.last_addresses, merged.read_only) = (ftl, None, false);
        if self.flash.is_used_up() {
            merged.keep_readable(contents, |_| true);
        }
        (plan, records)
    }

    /// Set the flash state from `contents`.
    fn restore_flash(&mut self, contents: &Contents) {
        let stand_in = contents.tracks_physical_blocks().then(|| contents.named_blocks());
        if let Some(named) = &stand_in {
            self.flash.restore_replacements(named);
        }
        let geometry = *contents.geometry();
        let blocks = (0..geometry.blocks()).map(BlockIdx);
        let is_there = |block: &BlockIdx| {
            stand_in.as_ref().is_none_or(|named| named[block.0 as usize].is_some())
        };
        for block in blocks.filter(is_there) {
            let erased = |page| contents.is_erased(geometry.address_at(block, page).page);
            let mut pages = (0..geometry.shape().pages_per_block).rev();
            let end = pages.find(|page| !erased(*page)).map_or(0, |last| last + 1);
            self.flash.restore_pages(block, end, |page| !erased(page));
        }
    }

    /// Read the defect lists, if the flash has replacement blocks.
    fn read_lists(&mut self, contents: &Contents) {
        if let Some(defects) = contents.defects().filter(|_| contents.tracks_physical_blocks()) {
            self.flash.reset_after_power_loss(defects.listed(), contents.erased_blocks());
        }
    }

    /// Complete those of `records` that end by `at` according to `steps`; one in progress is torn.
    fn do_until(
        &mut self,
        (records, steps): (&[u32], &[RecoveryOp]),
        at: u64,
        contents: &mut Contents,
    ) {
        contents.stop(records, steps.iter().map(|step| (step.begin, step.end)), at);
    }
}
