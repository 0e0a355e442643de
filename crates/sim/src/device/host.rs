//! The host's I/Os under way: which pages they have, which of them have ended, and which was last.
//!
//! An I/O ends with its last page, so the account of the page that ended last is the account of the
//! I/O; the other accounts are forgotten. The accounts themselves are kept by the timeline, which
//! writes most of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::cold_path;

use uflip_core::{Completion, Io, Mode, Nanos, Ticket};

use crate::collections::slab;
use crate::device::durable::CompletionRule;
use crate::device::event::{IoIdx, PageIdx};
use crate::flash::geometry::Lpn;
use crate::ftl::extent::Extent;
use crate::timeline::breakdown::{Account as _, Cause, SimBreakdown};

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct HostIo {
    io: Io,
    extent: Extent,
    ticket: Ticket,
    submitted: u64,
    /// When the controller had taken it in.
    taken_in: u64,
    pages_left: u32,
    /// The end of the page that ended last, and which that was.
    end: u64,
    last: PageIdx,
    /// A page of it was not written, or could not be read.
    failed: bool,
    #[serde(rename = "promise")]
    rule: CompletionRule,
}

/// A page of an I/O.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct HostPage {
    pub(crate) of: IoIdx,
    pub(crate) page: Lpn,
    /// When it arrived in the controller's memory; for a read when it was asked for.
    pub(crate) arrived: u64,
}

/// All I/Os under way.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Host {
    ios: Vec<HostIo>,
    unused_ios: Vec<u32>,
    pages: Vec<HostPage>,
    unused_pages: Vec<u32>,
    /// The completion that is due first; with one I/O at a time nothing else is ever needed.
    first: First,
    /// The others, by time of completion, then by ticket.
    later: BinaryHeap<Reverse<Done>>,
    outstanding: u32,
    /// Those of them whose end is not known, and how many of these are reads.
    open: u32,
    open_reads: u32,
    tickets: u64,
    /// From which on I/Os are numbered where it is recorded what is done for them.
    #[serde(skip)]
    first_numbered: u64,
}

/// An I/O whose end is known. Ordered by time, then by ticket, which is unique.
type Done = (u64, Ticket, IoIdx);

/// When none ends that is known of.
const NEVER: u64 = u64::MAX;

/// The I/O that ends first, or nothing, which ends [`NEVER`].
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct First(Done);

impl Default for First {
    fn default() -> First {
        First((NEVER, Ticket(u64::MAX), IoIdx(u32::MAX)))
    }
}

const NO_PAGE: PageIdx = PageIdx(u32::MAX);

impl Host {
    /// Whether any I/O is under way.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    /// Whether the end of every I/O is known.
    pub(crate) fn is_settled(&self) -> bool {
        self.open == 0
    }

    /// Whether there are reads whose end is not known.
    #[inline]
    pub(crate) fn has_open_reads(&self) -> bool {
        self.open_reads > 0
    }

    /// When the first I/O ends, of those whose end is known.
    #[inline]
    pub(crate) fn first_end(&self) -> Option<u64> {
        Some(self.first_end_or_never()).filter(|end| *end != NEVER)
    }

    /// The same; the end of all time where none is known.
    #[inline]
    pub(crate) fn first_end_or_never(&self) -> u64 {
        self.first.0.0
    }

    /// A new I/O, which touches the pages of `extent`; a write waits for what was promised. A flush touches
    /// none, and has one page that is none of the device's.
    #[inline(always)]
    pub(crate) fn submit(
        &mut self,
        io: Io,
        extent: Extent,
        now: u64,
        rule: CompletionRule,
    ) -> (IoIdx, Ticket) {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.outstanding += 1;
        self.open += 1;
        self.open_reads += u32::from(io.mode == Mode::Read);
        let new = HostIo {
            io,
            extent,
            ticket,
            submitted: now,
            taken_in: now,
            pages_left: (extent.touched().len() as u32).max(1),
            end: 0,
            last: NO_PAGE,
            failed: false,
            rule,
        };
        (IoIdx(slab::put(&mut self.ios, &mut self.unused_ios, new)), ticket)
    }

    #[inline]
    pub(crate) fn io(&self, index: IoIdx) -> (Io, Extent) {
        let HostIo { io, extent, .. } = self.ios[index.0 as usize];
        (io, extent)
    }

    /// I/Os that are submitted from now on are numbered from 0.
    pub(crate) fn number_from_here(&mut self) {
        self.first_numbered = self.tickets;
    }

    /// The number of the I/O, of those that are numbered.
    pub(crate) fn number_of(&self, index: IoIdx) -> u32 {
        (self.ios[index.0 as usize].ticket.0 - self.first_numbered) as u32
    }

    /// Whether the write goes past the write cache.
    #[inline]
    pub(crate) fn is_write_through(&self, index: IoIdx) -> bool {
        self.ios[index.0 as usize].rule == CompletionRule::Durable
    }

    /// The pages that the I/O touches.
    #[inline]
    pub(crate) fn extent(&self, index: IoIdx) -> Extent {
        self.ios[index.0 as usize].extent
    }

    /// The controller has taken the I/O in.
    #[inline]
    pub(crate) fn taken_in(&mut self, index: IoIdx, at: u64) {
        self.ios[index.0 as usize].taken_in = at;
    }

    /// A page of the I/O, whose account begins with what the whole I/O has spent.
    #[inline(always)]
    pub(crate) fn page(
        &mut self,
        of: IoIdx,
        page: Lpn,
        at: u64,
        accounts: &mut Vec<SimBreakdown>,
    ) -> PageIdx {
        let HostIo { submitted, taken_in, .. } = self.ios[of.0 as usize];
        let new = HostPage { of, page, arrived: at };
        let index = slab::put(&mut self.pages, &mut self.unused_pages, new);
        if accounts.len() <= index as usize {
            cold_path();
            accounts.push(SimBreakdown::default());
        }
        let account = &mut accounts[index as usize];
        *account = SimBreakdown::default();
        account.add(Cause::Controller, taken_in - submitted);
        PageIdx(index)
    }

    #[inline]
    pub(crate) fn page_of(&self, index: PageIdx) -> HostPage {
        self.pages[index.0 as usize]
    }

    #[inline]
    pub(crate) fn arrived(&mut self, index: PageIdx, at: u64) {
        self.pages[index.0 as usize].arrived = at;
    }

    /// Of the last page of an I/O that ends only when everything is durable, which would end at `end`:
    /// when its data and that of the I/O's other pages has been taken.
    #[inline]
    pub(crate) fn before_flush(&self, index: PageIdx, end: u64) -> Option<u64> {
        let io = &self.ios[self.pages[index.0 as usize].of.0 as usize];
        (io.rule == CompletionRule::Flushed && io.pages_left == 1).then(|| io.end.max(end))
    }

    /// The I/O, which touches no page of its own, ends with so many operations, or at once.
    pub(crate) fn has_pages(&mut self, index: IoIdx, operations: usize) {
        self.ios[index.0 as usize].pages_left = operations.max(1) as u32;
    }

    /// A page of the I/O goes with one before it, and has no end of its own.
    pub(crate) fn goes_along(&mut self, index: IoIdx) {
        self.ios[index.0 as usize].pages_left -= 1;
    }

    /// The page ends at `end`, which may lie in the future. The mode and end of its I/O, where it was
    /// the last page.
    #[inline(always)]
    pub(crate) fn ended(&mut self, index: PageIdx, end: u64) -> Option<(Mode, u64)> {
        let of = self.page_ended(index, end)?;
        Some(self.end_is_known(of))
    }

    /// The same where the host does not hear of the end by that alone: the I/O and its end.
    pub(crate) fn ended_unheard(&mut self, index: PageIdx, end: u64) -> Option<(IoIdx, u64)> {
        let of = self.page_ended(index, end)?;
        Some((of, self.ios[of.0 as usize].end))
    }

    /// The host hears at `at` that the I/O has ended; returns the page that has its account.
    pub(crate) fn heard(&mut self, of: IoIdx, at: u64) -> PageIdx {
        let io = &mut self.ios[of.0 as usize];
        io.end = at;
        let last = io.last;
        self.end_is_known(of);
        last
    }

    /// The I/O of which the page was the last, where it was.
    #[inline(always)]
    fn page_ended(&mut self, index: PageIdx, end: u64) -> Option<IoIdx> {
        let of = self.pages[index.0 as usize].of;
        let io = &mut self.ios[of.0 as usize];
        io.pages_left -= 1;
        if io.last == NO_PAGE || end > io.end {
            if io.last != NO_PAGE {
                self.unused_pages.push(io.last.0);
            }
            (io.end, io.last) = (end, index);
        } else {
            self.unused_pages.push(index.0);
        }
        (io.pages_left == 0).then_some(of)
    }

    #[inline(always)]
    fn end_is_known(&mut self, of: IoIdx) -> (Mode, u64) {
        let io = &self.ios[of.0 as usize];
        self.open -= 1;
        let mode = io.io.mode;
        self.open_reads -= u32::from(mode == Mode::Read);
        let (end, ticket) = (io.end, io.ticket);
        let done = (end, ticket, of);
        if self.first.0.0 == NEVER {
            self.first = First(done);
        } else {
            let First(first) = self.first;
            self.first = First(first.min(done));
            self.later.push(Reverse(first.max(done)));
        }
        (mode, end)
    }

    /// The page was not written, or could not be read: its I/O fails.
    pub(crate) fn fail(&mut self, index: PageIdx) {
        let of = self.pages[index.0 as usize].of;
        self.ios[of.0 as usize].failed = true;
    }

    /// The I/O that is due first, where it has failed.
    #[inline]
    pub(crate) fn first_failed(&self) -> Option<Io> {
        let (.., index) = self.first.0;
        self.ios.get(index.0 as usize).filter(|first| first.failed).map(|first| first.io)
    }

    /// Nothing is under way any more, and nobody will hear of what was; returns how many I/Os that were.
    pub(crate) fn forget(&mut self) -> u32 {
        let Host { tickets, first_numbered, outstanding, .. } = *self;
        *self = Host { tickets, first_numbered, ..Host::default() };
        outstanding
    }

    /// Hand out the completion that is due first.
    ///
    /// # Panics
    /// Where the end of none is known.
    #[inline(always)]
    pub(crate) fn complete(&mut self, accounts: &[SimBreakdown]) -> Completion<SimBreakdown> {
        let (end, ticket, index) = std::mem::take(&mut self.first).0;
        assert!(end != NEVER, "something is outstanding");
        if !self.later.is_empty() {
            self.first = self.later.pop().map_or_else(First::default, |Reverse(done)| First(done));
        }
        let HostIo { submitted, last, .. } = self.ios[index.0 as usize];
        self.unused_ios.push(index.0);
        self.unused_pages.push(last.0);
        self.outstanding -= 1;
        Completion {
            ticket,
            submitted: Nanos(submitted),
            completed: Nanos(end),
            status: (),
            breakdown: accounts[last.0 as usize],
        }
    }
}
