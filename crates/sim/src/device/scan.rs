//! The flash scan after a power loss. It runs on a timeline of its own, since the device does
//! nothing else.

use crate::collections::bits;
use crate::config::Profile;
use crate::flash::contents::{BlockCondition, Contents};
use crate::flash::geometry::{BlockIdx, DieIdx, PageAddress, PlaneIdx};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::flash::plan::{Cmd, FlashPlan};
use crate::timeline::{DieQueue, Op, Purpose, Report, Timeline, Timing};

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
pub(super) struct RecoveryOp {
    pub(super) kind: RecoveryOpKind,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// Kind of operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RecoveryOpKind {
    Copied,
    Erased,
    /// An unplanned operation: a program that failed, or a defect list.
    Other,
}

/// The scan's timeline and statistics.
pub(super) struct Scan<'a> {
    flash: &'a Flash,
    clocks: Timeline<u64>,
    half_erased: Vec<BlockIdx>,
    pub(super) spare_areas: u64,
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
    pub(super) fn read_spare_areas(
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
    pub(super) fn repeat_erases(&mut self) -> Vec<(BlockIdx, u64)> {
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
    pub(super) fn rewrite_saved_pages(&mut self, pages: usize) {
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
