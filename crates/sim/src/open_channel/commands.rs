//! Execution of a command: its vector is split into pages; the flash checks and applies each one,
//! the timeline times it.
//!
//! ```text
//! write:  submission │ dispatch │ channel │ LUN │ switch │ transfer ┬ completion     (write-back)
//!                               └────── the channel is held ───────┘└ program cells … LUN busy
//! read:   submission │ dispatch │ LUN │ cells │ channel │ transfer │ (cells │ transfer)* │ completion
//! erase:  submission │ dispatch │ LUN │ erase │ completion
//! ```
//!
//! The submission path and the channel threads are FIFO, and commands come in time order. So a
//! page's time there is known on submission. From then on the [timeline] schedules it.
//!
//! [timeline]: crate::timeline

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use uflip_core::random::{mix, uniform};
use uflip_core::{
    AddressStatus, Completion, FlashGeometry, FlashIo, FlashOp, FlashStatus, Nanos, Ppa, Ticket,
    VECTOR_MAX,
};

use super::OpenChannelDevice;
use super::profile::MediaPart;
use crate::flash::geometry::{BlockIdx, DieIdx, PageAddress};
use crate::flash::nand::Violation;
use crate::timeline::breakdown::{Account as _, Cause, FlashBreakdown};
use crate::timeline::{AccountIdx, Op, Purpose, Report};

impl OpenChannelDevice {
    /// Execute `io`, which is submitted now.
    pub(super) fn execute(&mut self, io: &FlashIo) -> Ticket {
        let ppas = io.ppas();
        let mut status = FlashStatus::default();
        let command = self.outstanding.begin(self.now);
        self.submission.begin_command();
        let (mut from, mut number) = (0, 0);
        while from < ppas.len() {
            let to = from + group_length(io.op(), &ppas[from..]);
            let page = self.outstanding.page(command, number, &mut self.timeline.accounts);
            self.timeline.assign_account(page.account(), || self.outstanding.number_of(command));
            let end = match io.op() {
                FlashOp::Write => self.write(ppas, from..to, &mut status, page),
                FlashOp::Read => self.read(ppas, from..to, &mut status, page),
                FlashOp::Erase => self.erase(ppas[from], from, &mut status, page),
            };
            if let Some(end) = end {
                self.page_ended(page, end);
            }
            (from, number) = (to, number + 1);
        }
        let (answer_ns, accounts) = (self.threads.completion_ns, &mut self.timeline.accounts);
        self.outstanding.submitted(command, status, answer_ns, accounts)
    }

    /// Handle the end of `page` at `end`.
    #[inline]
    pub(super) fn page_ended(&mut self, page: CommandPageIdx, end: u64) {
        let accounts = &mut self.timeline.accounts;
        self.outstanding.page_ended(page, end, self.threads.completion_ns, accounts);
    }

    /// Pass the command's submission path, which is the only cost of a rejected page; return the end.
    #[inline]
    fn submit(&mut self, page: CommandPageIdx) -> u64 {
        // Events computed ahead have been handled.
        let now = self.now.max(self.timeline.now());
        let submitted = self.submission.process(now, self.threads.submission_ns);
        self.timeline.charge_account(Some(page.account()), Cause::Controller, submitted - self.now);
        submitted
    }

    /// Pass the submission path and the channel thread; return when. All earlier pages of the channel have
    /// arrived there.
    #[inline]
    fn dispatch(&mut self, at: Ppa, page: CommandPageIdx) -> u64 {
        let submitted = self.submit(page);
        let thread = &mut self.channels[usize::from(at.channel)];
        let ready = thread.process(submitted, self.threads.dispatch_ns);
        self.timeline.charge_account(Some(page.account()), Cause::Dispatch, ready - submitted);
        self.timeline.catch_up(self.die(at), ready);
        ready
    }

    /// Write the page `range`; return when it can be acknowledged, which is known at once.
    fn write(
        &mut self,
        ppas: &[Ppa],
        range: std::ops::Range<usize>,
        status: &mut FlashStatus,
        page: CommandPageIdx,
    ) -> Option<u64> {
        let group = &ppas[range.clone()];
        let at = group[0];
        let geometry = self.geometry;
        let outcome = if is_whole_page(&geometry, group) {
            self.flash.clock = self.now;
            self.flash.try_program(self.page_address(at)).map_err(status_of)
        } else if group.iter().all(|ppa| geometry.contains(*ppa)) {
            Err(AddressStatus::PartialPage)
        } else {
            Err(AddressStatus::OutOfRange)
        };
        match outcome {
            Ok(true) => self.stamp_sectors(group),
            Ok(false) => range.for_each(|index| status.set(index, AddressStatus::ProgramFailed)),
            Err(failure) => {
                for (index, ppa) in range.zip(group) {
                    // If one address is out of range, the page's other addresses are reported as a
                    // partial page.
                    let inside = failure == AddressStatus::OutOfRange && geometry.contains(*ppa);
                    status.set(index, if inside { AddressStatus::PartialPage } else { failure });
                }
                return Some(self.submit(page));
            }
        }
        self.flash.counters.host_pages_written += u64::from(geometry.planes);
        self.flash.counters.pages_programmed += u64::from(geometry.planes);
        let (die, account) = (self.die(at), Some(page.account()));
        let program_ns = self.of_lun(die, program_ns(&self.part, at));
        let ready = self.dispatch(at, page);
        let turns = self.channels[usize::from(at.channel)].switches_to(die);
        let turn_ns = if turns { self.threads.lun_switch_ns } else { 0 };
        let op = Op::program(die, program_ns, Purpose::HostWrite, page);
        let op = Op { transfers: geometry.write_sectors() as u16, account, ..op };
        let sent = self.timeline.program_holding(ready, turn_ns, op);
        if self.write_back {
            return Some(sent);
        }
        self.timeline.charge_account(account, Cause::CellProgram, program_ns);
        Some(sent + program_ns)
    }

    /// Read the page `range`; return its end if that is known.
    fn read(
        &mut self,
        ppas: &[Ppa],
        range: std::ops::Range<usize>,
        status: &mut FlashStatus,
        page: CommandPageIdx,
    ) -> Option<u64> {
        let geometry = self.geometry;
        // All addresses are of one page: the first sector's state applies to all.
        let at = Ppa { plane: 0, sector: 0, ..ppas[range.start] };
        self.flash.clock = self.now;
        let reading = if geometry.contains(at) {
            let first = self.page_address(at);
            self.flash.try_read(first).map(|reading| (first, reading)).map_err(status_of)
        } else {
            Err(AddressStatus::OutOfRange)
        };
        let (mut sectors, mut planes, mut last) = (0, 0, None);
        let (mut failing, mut worn) = (None, 0);
        for index in range {
            let Ppa { plane, sector, .. } = ppas[index];
            let (first, page_reading) = match reading {
                _ if !geometry.has_sector(plane, sector) => {
                    status.set(index, AddressStatus::OutOfRange);
                    continue;
                }
                Ok(reading) => reading,
                Err(failure) => {
                    status.set(index, failure);
                    continue;
                }
            };
            sectors += 1;
            let from = first.plus_pages(geometry.sector_of_page(plane, sector));
            if last != Some(plane) {
                (last, planes) = (Some(plane), planes + 1);
                failing =
                    page_reading.and_then(|reading| self.flash.failing_sectors(from, reading));
            }
            if let Some(failing) = failing {
                let outcome = self.flash.read_sector(from, failing);
                worn = worn.max(outcome.retries);
                if !outcome.corrected {
                    status.set(index, AddressStatus::Uncorrectable);
                }
            }
            self.compare_sector(from, index, status);
        }
        if sectors == 0 {
            return Some(self.submit(page));
        }
        let die = self.die(at);
        let ready = self.dispatch(at, page);
        let disturbed = self.timeline.is_programming(die, ready);
        // Data lost by wear is reported only after all retries: reads slow down with wear.
        let retries = match (worn, disturbed) {
            (0, true) => self.retries(),
            (worn, _) => worn,
        };
        self.flash.was_read(self.block(at), planes * (1 + retries));
        let counters = &mut self.flash.counters;
        counters.host_pages_read += u64::from(planes);
        counters.pages_read += u64::from(planes);
        counters.read_retries += u64::from(retries);
        let op = Op::read(die, self.of_lun(die, self.part.read_ns), Purpose::HostRead, page);
        let (again, account, report) = (retries as u16, Some(page.account()), Report::WhenKnown);
        self.timeline
            .arrive_at_die(ready, Op { transfers: sectors, retries: again, account, report, ..op });
        None
    }

    /// Set the status of a sector at `from` that was read without an error, if data is compared.
    #[inline]
    fn compare_sector(&self, from: PageAddress, index: usize, status: &mut FlashStatus) {
        let wrong = self.stamps.as_ref().is_some_and(|stamps| !stamps.agrees(from.page.0));
        if wrong && status.address(index) == AddressStatus::Done {
            status.set(index, AddressStatus::Mismatch);
        }
    }

    /// Store the stamps of written sectors, if data is compared.
    #[inline]
    fn stamp_sectors(&mut self, ppas: &[Ppa]) {
        if self.stamps.is_none() {
            return;
        }
        for ppa in ppas {
            let sector = self.page_address(*ppa).page.0;
            self.stamps.iter_mut().for_each(|stamps| stamps.write(sector));
        }
    }

    /// Clear the stamps of an erased block.
    #[inline]
    fn erase_stamps(&mut self, block: BlockIdx) {
        let geometry = &self.flash.geometry;
        let first = geometry.first_page(block).0;
        let sectors = first..first + geometry.shape().pages_per_block;
        self.stamps.iter_mut().for_each(|stamps| stamps.erase(sectors.clone()));
    }

    /// Return the number of retries of a disturbed read.
    fn retries(&mut self) -> u32 {
        let MediaPart { retry_permille, retries_max, .. } = self.part;
        let mut again = || uniform(&mut self.rng, 1000) < retry_permille;
        (0..retries_max).take_while(|_| again()).count() as u32
    }

    /// Return what takes `ns` on an average LUN on the LUN `die`.
    #[inline]
    fn of_lun(&self, die: DieIdx, ns: u64) -> u64 {
        let lot = mix(self.seed ^ mix(die.0.into()));
        vary(ns, self.part.lun_spread_permille, lot)
    }

    /// Erase the block at `at`; return the end if that is known.
    fn erase(
        &mut self,
        at: Ppa,
        index: usize,
        status: &mut FlashStatus,
        page: CommandPageIdx,
    ) -> Option<u64> {
        let names_a_block = (at.plane, at.page, at.sector) == (0, 0, 0);
        if !names_a_block || !self.geometry.contains(at) {
            status.set(index, AddressStatus::OutOfRange);
            return Some(self.submit(page));
        }
        let block = self.block(at);
        let erase_ns = self.part.erase_ns + self.flash.erase_extra_ns(block);
        let erase_ns = self.of_lun(self.die(at), erase_ns);
        match self.flash.try_erase(block) {
            Ok(true) => self.erase_stamps(block),
            Ok(false) => status.set(index, AddressStatus::EraseFailed),
            Err(violation) => {
                status.set(index, status_of(violation));
                return Some(self.submit(page));
            }
        }
        let ready = self.dispatch(at, page);
        let op = Op::inside(self.die(at), erase_ns, Purpose::Erase, page);
        let account = Some(page.account());
        self.timeline.arrive_at_die(ready, Op { account, report: Report::WhenKnown, ..op });
        None
    }
}

/// Return the status of a flash rule violation.
fn status_of(violation: Violation) -> AddressStatus {
    match violation {
        Violation::OutOfOrder => AddressStatus::OutOfOrder,
        Violation::Unwritten => AddressStatus::Unwritten,
        Violation::Retired => AddressStatus::Retired,
    }
}

/// Return how many of the first addresses are served together: those of one page, for a write at
/// most one page.
#[inline]
fn group_length(op: FlashOp, ppas: &[Ppa]) -> usize {
    if op == FlashOp::Erase {
        return 1;
    }
    let page = |ppa: &Ppa| (ppa.channel, ppa.lun, ppa.block, ppa.page);
    let first = page(&ppas[0]);
    let mut length = 1;
    while length < ppas.len() && page(&ppas[length]) == first {
        // A second copy of the first address begins a new group: the same page again.
        if op == FlashOp::Write && ppas[length] == ppas[0] {
            break;
        }
        length += 1;
    }
    length
}

/// Return whether `group` contains every sector of every plane of its page, in order.
#[inline]
fn is_whole_page(geometry: &FlashGeometry, group: &[Ppa]) -> bool {
    let of_plane = |(plane, sectors): (u8, &[Ppa])| {
        (0..).zip(sectors).all(|(sector, ppa)| (ppa.plane, ppa.sector) == (plane, sector))
    };
    group.len() == geometry.write_sectors() as usize
        && geometry.contains(group[0])
        && (0..).zip(group.chunks_exact(geometry.sectors_per_page as usize)).all(of_plane)
}

/// Return the program time of the page `at`; equal in every block, as for wordlines.
#[inline]
fn program_ns(part: &MediaPart, at: Ppa) -> u64 {
    let lot = mix(u64::from(at.page));
    let low = at.page.is_multiple_of(2);
    if low && part.quick_low_pages > 0 && (lot >> 32).is_multiple_of(part.quick_low_pages.into()) {
        return part.program_quick_ns;
    }
    let middle = if low { part.program_low_ns } else { part.program_high_ns };
    vary(middle, part.program_spread_permille, lot)
}

/// Return `middle` plus or minus up to `permille` of it; `lot` is a random number of 64 bits.
#[inline]
fn vary(middle: u64, permille: u64, lot: u64) -> u64 {
    let most = middle * permille / 1000;
    middle - most + ((u128::from(lot) * u128::from(2 * most + 1)) >> 64) as u64
}

// Outstanding commands: their unfinished pages, and the page that ended last.
//
// A command ends with its last page, whose account becomes that of the command.

pub(super) type FlashCompletion = Completion<FlashBreakdown, FlashStatus>;

/// A page, or a block, of an outstanding command; its account has the same number.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "PageIdx")]
pub(super) struct CommandPageIdx(u32);

impl CommandPageIdx {
    pub(super) fn account(self) -> AccountIdx {
        AccountIdx::new(self.0)
    }
}

impl From<CommandPageIdx> for u64 {
    fn from(page: CommandPageIdx) -> u64 {
        page.0.into()
    }
}

impl From<u64> for CommandPageIdx {
    fn from(word: u64) -> CommandPageIdx {
        CommandPageIdx(word as u32)
    }
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Command")]
struct OutstandingCommand {
    completion: FlashCompletion,
    /// Number of unfinished pages, plus 1 until all have been submitted.
    #[serde(rename = "left")]
    pages_left: u32,
    /// The latest end of a page, and that page.
    last: (u64, u32),
}

/// All outstanding commands.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename = "UnderWay")]
pub(super) struct OutstandingCommands {
    commands: Vec<OutstandingCommand>,
    unused: Vec<u32>,
    /// Number of commands whose end is unknown.
    open: u32,
    /// Commands whose end is known, by completion time, then by ticket.
    #[serde(rename = "ended")]
    completed: BinaryHeap<Reverse<(u64, Ticket, u32)>>,
    tickets: u64,
    /// Number of the first command that is numbered for a recording.
    #[serde(skip)]
    first_numbered: u64,
}

impl OutstandingCommands {
    /// Begin a command at `now`; return its index.
    pub(super) fn begin(&mut self, now: u64) -> u32 {
        let completion = Completion {
            ticket: Ticket(self.tickets),
            submitted: Nanos(now),
            completed: Nanos(now),
            breakdown: FlashBreakdown::default(),
            status: FlashStatus::default(),
        };
        self.tickets += 1;
        self.open += 1;
        let command = OutstandingCommand { completion, pages_left: 1, last: (0, 0) };
        match self.unused.pop() {
            Some(slot) => {
                self.commands[slot as usize] = command;
                slot
            }
            None => {
                self.commands.push(command);
                self.commands.len() as u32 - 1
            }
        }
    }

    /// Number the commands that are submitted from now on from 0.
    pub(super) fn number_from_here(&mut self) {
        self.first_numbered = self.tickets;
    }

    /// Return the number of the command in `slot` since then.
    pub(super) fn number_of(&self, slot: u32) -> u32 {
        (self.commands[slot as usize].completion.ticket.0 - self.first_numbered) as u32
    }

    /// Add page number `number` of the command in `slot`, and start its account.
    #[inline]
    pub(super) fn page(
        &mut self,
        slot: u32,
        number: usize,
        accounts: &mut Vec<FlashBreakdown>,
    ) -> CommandPageIdx {
        self.commands[slot as usize].pages_left += 1;
        let index = slot as usize * VECTOR_MAX + number;
        if accounts.len() <= index {
            accounts.resize(index + 1, FlashBreakdown::default());
        }
        accounts[index] = FlashBreakdown::default();
        CommandPageIdx(index as u32)
    }

    /// Record that all pages of the command in `slot` have been submitted, with the `status` of
    /// its addresses; return its ticket.
    #[inline]
    pub(super) fn submitted(
        &mut self,
        slot: u32,
        status: FlashStatus,
        answer_ns: u64,
        accounts: &mut [FlashBreakdown],
    ) -> Ticket {
        let command = &mut self.commands[slot as usize];
        command.completion.status = status;
        command.pages_left -= 1;
        let (ticket, complete) = (command.completion.ticket, command.pages_left == 0);
        if complete {
            self.complete(slot, answer_ns, accounts);
        }
        ticket
    }

    /// End `page` at `end`; after its last page the command ends `answer_ns` later.
    #[inline]
    pub(super) fn page_ended(
        &mut self,
        page: CommandPageIdx,
        end: u64,
        answer_ns: u64,
        accounts: &mut [FlashBreakdown],
    ) {
        let (slot, number) = (page.0 / VECTOR_MAX as u32, page.0 % VECTOR_MAX as u32);
        let command = &mut self.commands[slot as usize];
        command.last = command.last.max((end, number));
        command.pages_left -= 1;
        if command.pages_left == 0 {
            self.complete(slot, answer_ns, accounts);
        }
    }

    /// Complete the command in `slot`, which is answered `answer_ns` later.
    #[inline]
    fn complete(&mut self, slot: u32, answer_ns: u64, accounts: &mut [FlashBreakdown]) {
        let command = &mut self.commands[slot as usize];
        let (end, number) = command.last;
        let account = &mut accounts[slot as usize * VECTOR_MAX + number as usize];
        account.add(Cause::Completion, answer_ns);
        let completion = &mut command.completion;
        completion.breakdown = *account;
        completion.completed = Nanos(end + answer_ns);
        self.completed.push(Reverse((end + answer_ns, completion.ticket, slot)));
        self.open -= 1;
    }

    /// Return whether no command is outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0 && self.completed.is_empty()
    }

    /// Return whether the end of some command is unknown.
    #[inline]
    pub(super) fn has_open(&self) -> bool {
        self.open > 0
    }

    /// Return the earliest known completion time.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        self.completed.peek().map(|Reverse((completed, ..))| *completed)
    }

    /// Remove it.
    pub(super) fn take(&mut self) -> Option<FlashCompletion> {
        let Reverse((_, _, slot)) = self.completed.pop()?;
        self.unused.push(slot);
        Some(self.commands[slot as usize].completion)
    }
}
