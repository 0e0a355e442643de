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

use uflip_core::random::{mix, uniform};
use uflip_core::{AddressStatus, FlashGeometry, FlashIo, FlashOp, FlashStatus, Ppa, Ticket};

use super::device::OpenChannelDevice;
use super::outstanding::CommandPageIdx;
use super::profile::MediaPart;
use crate::flash::nand::Violation;
use crate::timeline::breakdown::Cause;
use crate::timeline::{Op, Purpose, Report};

impl OpenChannelDevice {
    /// Execute `io`, which is submitted now.
    pub(super) fn execute(&mut self, io: &FlashIo) -> Ticket {
        let ppas = io.ppas();
        let mut status = FlashStatus::default();
        let command = self.outstanding.begin(self.now);
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

    /// Pass the shared submission path, which is the only cost of a rejected page; return the end.
    #[inline]
    fn submit(&mut self, page: CommandPageIdx) -> u64 {
        // Events computed ahead have been handled.
        let now = self.now.max(self.timeline.now());
        let submitted = self.timeline.process(now, self.threads.submission_ns, 0);
        self.timeline.charge_account(Some(page.account()), Cause::Controller, submitted - self.now);
        submitted
    }

    /// Pass the submission path and the channel thread; return when. All earlier pages have arrived
    /// there.
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
            Ok(true) => {}
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
        let program_ns = program_ns(&self.part, at);
        let (die, account) = (self.die(at), Some(page.account()));
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
        let op = Op::read(die, self.part.read_ns, Purpose::HostRead, page);
        let (again, account) = (retries as u16, Some(page.account()));
        let report = Report::WhenKnown;
        self.timeline
            .arrive_at_die(ready, Op { transfers: sectors, retries: again, account, report, ..op });
        None
    }

    /// Return the number of retries of a disturbed read.
    fn retries(&mut self) -> u32 {
        let MediaPart { retry_permille, retries_max, .. } = self.part;
        let mut again = || uniform(&mut self.rng, 1000) < retry_permille;
        (0..retries_max).take_while(|_| again()).count() as u32
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
        match self.flash.try_erase(block) {
            Ok(true) => {}
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
    let most = middle * part.program_spread_permille / 1000;
    middle - most + ((u128::from(lot) * u128::from(2 * most + 1)) >> 64) as u64
}
