//! The host interface: command queues, outstanding I/Os, and the notification of the host.
//!
//! The queues determine how many commands run at once, and which queue supplies the next.
//!
//! ```text
//! submitted   a  b  c
//! at once: 1  ├─ a ─┤├─ b ─┤├─ c ─┤      b and c wait in the interface, and nothing of them overlaps
//!
//! reads    r1  r2  r3  r4                 a queue for reads and one for the rest, weights 2 and 1:
//! writes   w1  w2                         r1  r2  w1  r3  r4  w2
//! ```
//!
//! **Source**: PATA without queued commands, SATA without NCQ, and USB mass storage (bulk-only
//! transport) execute one command at a time. NVM Express Base Specification 2.0, §3.4.4: round
//! robin and weighted round robin over submission queues; the Linux driver can have separate write
//! queues (`nvme.write_queues`).
//! **Faithful**: each queue is FIFO; empty queues are skipped; no part of a command starts before
//! its admission.
//! **Simplified**: switching to the next command takes no time; at most two queues, and no urgent
//! class.
//! **Ambiguous**: what a weight counts; here commands, whatever their size.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::cold_path;

use serde::{Deserialize, Serialize};
use uflip_core::{Completion, Io, Mode, Nanos, Ticket};

use super::backend::{Backend, Hardware};
use super::event::{DeviceEvent, IoIdx, PageIdx};
use super::flush::CompletionRule;
use super::{SimDevice, dispatch};
use crate::collections::slab;
use crate::config::InterruptsPart;
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::Lpn;
use crate::ftl::extent::PageExtent;
use crate::timeline::breakdown::{Account as _, Cause, SimBreakdown};

/// The commands that are admitted, and those that wait.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Interface {
    /// Maximum number of commands at once; 0: unlimited.
    at_once: u32,
    #[serde(rename = "under_way")]
    active: u32,
    /// One queue for all, or one for reads and one for the rest.
    queues: Vec<HostQueue>,
    /// The queue whose turn it is, and the commands left in its turn.
    turn: usize,
    #[serde(rename = "left")]
    turn_left: u32,
}

/// A queue of the host, and its number of commands per turn (weight).
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Queue")]
struct HostQueue {
    weight: u32,
    waiting: VecDeque<IoIdx>,
}

impl Interface {
    /// Create one queue per weight.
    pub(crate) fn new(at_once: u32, weights: &[u32]) -> Interface {
        let queue = |weight: &u32| HostQueue { weight: *weight, waiting: VecDeque::new() };
        let queues = weights.iter().map(queue).collect();
        Interface { at_once, queues, turn_left: weights[0], ..Interface::default() }
    }

    /// Return whether a command may ever have to wait.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.at_once > 0
    }

    /// Admit `io` now if possible; otherwise queue it and return false.
    pub(crate) fn admit(&mut self, io: IoIdx, mode: Mode) -> bool {
        let admitted = self.active < self.at_once;
        if admitted {
            self.active += 1;
        } else {
            let of_rest = usize::from(mode != Mode::Read);
            let last = self.queues.len() - 1;
            self.queues[of_rest.min(last)].waiting.push_back(io);
        }
        admitted
    }

    /// Return the next command to admit, after a completion.
    pub(crate) fn next(&mut self) -> Option<IoIdx> {
        // One full round, plus the rest of the current turn.
        for _ in 0..=self.queues.len() {
            let queue = &mut self.queues[self.turn];
            if self.turn_left > 0
                && let Some(next) = queue.waiting.pop_front()
            {
                self.turn_left -= 1;
                return Some(next);
            }
            self.turn = (self.turn + 1) % self.queues.len();
            self.turn_left = self.queues[self.turn].weight;
        }
        self.active -= 1;
        None
    }

    /// Reset: no command is in progress.
    pub(crate) fn reset(&mut self) {
        let is_empty = self.queues.iter().all(|queue| queue.waiting.is_empty());
        debug_assert!(is_empty, "every I/O has ended");
        self.active = 0;
    }
}

// Outstanding host I/Os: their pages, and which of these have completed.
//
// An I/O completes with its last page, so the account of that page becomes the account of the I/O.
// The accounts of its other pages are dropped. The timeline holds the accounts, because it writes
// most of them.

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct HostIo {
    io: Io,
    extent: PageExtent,
    ticket: Ticket,
    submitted: u64,
    /// When the controller had processed its command.
    #[serde(rename = "taken_in")]
    command_processed: u64,
    pages_left: u32,
    /// The latest end of a page, and that page.
    end: u64,
    last: PageIdx,
    /// A page of it could not be written or read.
    failed: bool,
    #[serde(rename = "promise")]
    rule: CompletionRule,
}

/// A page of an I/O.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct HostPage {
    #[serde(rename = "of")]
    pub(crate) io: IoIdx,
    pub(crate) page: Lpn,
    /// When its data arrived in the controller's memory; for a read, when it was requested.
    pub(crate) arrived: u64,
}

/// All outstanding I/Os.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Host {
    ios: Vec<HostIo>,
    unused_ios: Vec<u32>,
    pages: Vec<HostPage>,
    unused_pages: Vec<u32>,
    /// The completion that is due first. At queue depth 1 no other is ever needed.
    first: FirstCompletion,
    /// The others, by completion time, then by ticket.
    later: BinaryHeap<Reverse<PendingCompletion>>,
    outstanding: u32,
    /// Number of I/Os whose end is unknown, and how many of them are reads.
    open: u32,
    open_reads: u32,
    tickets: u64,
    /// Number of the first I/O that is numbered for a recording.
    #[serde(skip)]
    first_numbered: u64,
}

/// An I/O with a known end. Ordered by time, then by ticket, which is unique.
type PendingCompletion = (u64, Ticket, IoIdx);

/// The end of an I/O that is not known.
const NEVER: u64 = u64::MAX;

/// The I/O that completes first; [`NEVER`] without one.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "First")]
struct FirstCompletion(PendingCompletion);

impl Default for FirstCompletion {
    fn default() -> FirstCompletion {
        FirstCompletion((NEVER, Ticket(u64::MAX), IoIdx(u32::MAX)))
    }
}

const NO_PAGE: PageIdx = PageIdx(u32::MAX);

impl Host {
    /// Return whether no I/O is outstanding.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    /// Return whether the end of every I/O is known.
    pub(crate) fn is_settled(&self) -> bool {
        self.open == 0
    }

    /// Return whether the end of any read is unknown.
    #[inline]
    pub(crate) fn has_open_reads(&self) -> bool {
        self.open_reads > 0
    }

    /// Return the earliest known completion time.
    #[inline]
    pub(crate) fn first_end(&self) -> Option<u64> {
        Some(self.first_end_or_never()).filter(|end| *end != NEVER)
    }

    /// Like `first_end`, but [`NEVER`] if no end is known.
    #[inline]
    pub(crate) fn first_end_or_never(&self) -> u64 {
        self.first.0.0
    }

    /// Add an I/O that touches the pages of `extent`; a write completes by `rule`. A flush touches
    /// no pages: it has one page that does not belong to the device.
    #[inline(always)]
    pub(crate) fn submit(
        &mut self,
        io: Io,
        extent: PageExtent,
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
            command_processed: now,
            pages_left: (extent.touched().len() as u32).max(1),
            end: 0,
            last: NO_PAGE,
            failed: false,
            rule,
        };
        (IoIdx(slab::put(&mut self.ios, &mut self.unused_ios, new)), ticket)
    }

    #[inline]
    pub(crate) fn io(&self, index: IoIdx) -> (Io, PageExtent) {
        let HostIo { io, extent, .. } = self.ios[index.0 as usize];
        (io, extent)
    }

    /// Number the I/Os that are submitted from now on from 0.
    pub(crate) fn number_from_here(&mut self) {
        self.first_numbered = self.tickets;
    }

    /// Return the number of the I/O since [`Host::number_from_here`].
    pub(crate) fn number_of(&self, index: IoIdx) -> u32 {
        (self.ios[index.0 as usize].ticket.0 - self.first_numbered) as u32
    }

    /// Return whether the write bypasses the write cache.
    #[inline]
    pub(crate) fn is_write_through(&self, index: IoIdx) -> bool {
        self.ios[index.0 as usize].rule == CompletionRule::Durable
    }

    /// Return the pages that the I/O touches.
    #[inline]
    pub(crate) fn extent(&self, index: IoIdx) -> PageExtent {
        self.ios[index.0 as usize].extent
    }

    /// Record that the controller has processed the command of the I/O.
    #[inline]
    pub(crate) fn command_processed(&mut self, index: IoIdx, at: u64) {
        self.ios[index.0 as usize].command_processed = at;
    }

    /// Add a page of the I/O. Its account begins with the time that the I/O has spent so far.
    #[inline(always)]
    pub(crate) fn page(
        &mut self,
        io: IoIdx,
        page: Lpn,
        at: u64,
        accounts: &mut Vec<SimBreakdown>,
    ) -> PageIdx {
        let HostIo { submitted, command_processed, .. } = self.ios[io.0 as usize];
        let new = HostPage { io, page, arrived: at };
        let index = slab::put(&mut self.pages, &mut self.unused_pages, new);
        if accounts.len() <= index as usize {
            cold_path();
            accounts.push(SimBreakdown::default());
        }
        let account = &mut accounts[index as usize];
        *account = SimBreakdown::default();
        account.add(Cause::Controller, command_processed - submitted);
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

    /// For the last page of an I/O that waits for a flush and would end at `end`: return when the
    /// data of all its pages was accepted.
    #[inline]
    pub(crate) fn before_flush(&self, index: PageIdx, end: u64) -> Option<u64> {
        let io = &self.ios[self.pages[index.0 as usize].io.0 as usize];
        (io.rule == CompletionRule::Flushed && io.pages_left == 1).then(|| io.end.max(end))
    }

    /// Set the number of operations of an I/O without pages; with none it completes at once.
    pub(crate) fn has_pages(&mut self, index: IoIdx, operations: usize) {
        self.ios[index.0 as usize].pages_left = operations.max(1) as u32;
    }

    /// Count a page of the I/O as read together with an earlier page, without an end of its own.
    pub(crate) fn add_read_unit(&mut self, index: IoIdx) {
        self.ios[index.0 as usize].pages_left -= 1;
    }

    /// End the page at `end`, which may lie in the future. Return the mode and end of its I/O if it
    /// was the last page.
    #[inline(always)]
    pub(crate) fn end_page(&mut self, index: PageIdx, end: u64) -> Option<(Mode, u64)> {
        let io = self.complete_page(index, end)?;
        Some(self.record_end(io))
    }

    /// Notify the host at `at` that the I/O has completed; return the page that has its account.
    pub(crate) fn notify(&mut self, io_index: IoIdx, at: u64) -> PageIdx {
        let io = &mut self.ios[io_index.0 as usize];
        io.end = at;
        let last = io.last;
        self.record_end(io_index);
        last
    }

    /// Return the I/O of the page if it was the last one.
    #[inline(always)]
    fn complete_page(&mut self, index: PageIdx, end: u64) -> Option<IoIdx> {
        let io_index = self.pages[index.0 as usize].io;
        let io = &mut self.ios[io_index.0 as usize];
        io.pages_left -= 1;
        if io.last == NO_PAGE || end > io.end {
            if io.last != NO_PAGE {
                self.unused_pages.push(io.last.0);
            }
            (io.end, io.last) = (end, index);
        } else {
            self.unused_pages.push(index.0);
        }
        (io.pages_left == 0).then_some(io_index)
    }

    #[inline(always)]
    fn record_end(&mut self, io_index: IoIdx) -> (Mode, u64) {
        let io = &self.ios[io_index.0 as usize];
        self.open -= 1;
        let mode = io.io.mode;
        self.open_reads -= u32::from(mode == Mode::Read);
        let (end, ticket) = (io.end, io.ticket);
        let completion = (end, ticket, io_index);
        if self.first.0.0 == NEVER {
            self.first = FirstCompletion(completion);
        } else {
            let FirstCompletion(first) = self.first;
            self.first = FirstCompletion(first.min(completion));
            self.later.push(Reverse(first.max(completion)));
        }
        (mode, end)
    }

    /// Mark the I/O of the page as failed: the page could not be written or read.
    pub(crate) fn fail(&mut self, index: PageIdx) {
        let io_index = self.pages[index.0 as usize].io;
        self.ios[io_index.0 as usize].failed = true;
    }

    /// Return the I/O that completes first, if it has failed.
    #[inline]
    pub(crate) fn first_failed(&self) -> Option<Io> {
        let (.., index) = self.first.0;
        self.ios.get(index.0 as usize).filter(|first| first.failed).map(|first| first.io)
    }

    /// Return the number of commands so far.
    pub(crate) fn commands(&self) -> u64 {
        self.tickets
    }

    /// Drop all outstanding I/Os without completing them; return their number.
    pub(crate) fn drop_outstanding(&mut self) -> u32 {
        let Host { tickets, first_numbered, outstanding, .. } = *self;
        *self = Host { tickets, first_numbered, ..Host::default() };
        outstanding
    }

    /// Return the completion that is due first.
    ///
    /// # Panics
    /// If no completion is known.
    #[inline(always)]
    pub(crate) fn complete(&mut self, accounts: &[SimBreakdown]) -> Completion<SimBreakdown> {
        let (end, ticket, index) = std::mem::take(&mut self.first).0;
        assert!(end != NEVER, "an I/O is outstanding");
        if !self.later.is_empty() {
            self.first = self
                .later
                .pop()
                .map_or_else(FirstCompletion::default, |Reverse(done)| FirstCompletion(done));
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

// Notification of the host: by an interrupt, which may cover several completions, or
// by polling.
//
// ```text
// ended        a    b         c   d              e
// threshold 3  └────┴─────────┴▶ interrupt       │
// time         └ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ▶           └─────────────▶ interrupt: the time is over
// polling      │····▲····│····▲····│····▲····│   each at the next poll
// ```
//
// **Source**: NVM Express Base Specification 2.0, feature 08h (interrupt coalescing: aggregation threshold and
// time); polled queues of the Linux driver (`nvme.poll_queues`).
// **Faithful**: an interrupt comes when the threshold of pending completions is reached, or when
// the first of them has waited for the aggregation time.
// **Simplified**: one completion queue and one vector for all commands; polls come at fixed times.
// **Ambiguous**: nothing.

/// Completions that the host has not been notified of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Interrupts {
    #[serde(rename = "of")]
    part: InterruptsPart,
    waiting: Vec<(IoIdx, u64)>,
    /// Number of interrupts so far; identifies the timeout that is still valid.
    raised: u32,
}

impl Interrupts {
    pub(crate) fn new(part: InterruptsPart) -> Interrupts {
        Interrupts { part, waiting: Vec::new(), raised: 0 }
    }

    /// Drop the pending completions: power was lost.
    pub(crate) fn drop_pending(&mut self) {
        self.waiting.clear();
    }
}

impl SimDevice {
    /// End a host page at `end`. If it is the last of its I/O, the I/O waits until the host is
    /// notified.
    #[cold]
    pub(super) fn end_pending_notification(&mut self, index: PageIdx, end: u64) {
        if let Some(io) = self.host.complete_page(index, end) {
            let end = self.host.ios[io.0 as usize].end;
            self.events.remind(end, DeviceEvent::CompletionPosted(io).into());
        }
    }

    /// Handle the completion of an I/O at `at`: its command slot is free, and its notification is
    /// pending.
    #[cold]
    pub(super) fn posted(&mut self, io: IoIdx, at: u64) {
        let interrupts = self.interrupts.as_mut().expect("interrupts are coalesced");
        interrupts.waiting.push((io, at));
        let (waiting, raised) = (interrupts.waiting.len(), interrupts.raised);
        if waiting >= interrupts.part.coalesced_completions as usize {
            self.notify_host(at);
        } else if waiting == 1 {
            let until = at + interrupts.part.coalescing_ns;
            self.events.remind(until, DeviceEvent::CoalescingTimeout(raised).into());
        }
        let (completed, _) = self.host.io(io);
        if self.interface.is_limited()
            && let Some(next) = self.interface.next()
        {
            let (io, extent) = self.host.io(next);
            self.begin::<AllFeatures>(next, &io, extent, at);
        }
        if completed.mode == Mode::Read {
            let SimDevice { backend, flash, events, .. } = self;
            let hardware = &mut Hardware { flash, events };
            dispatch!(backend, backend => backend.after_read(at, hardware));
        }
    }

    /// Handle an aggregation timeout if no interrupt came meanwhile: the oldest completion has
    /// waited long enough.
    #[cold]
    pub(super) fn coalesced(&mut self, raised: u32, at: u64) {
        if self.interrupts.as_ref().is_some_and(|interrupts| interrupts.raised == raised) {
            self.notify_host(at);
        }
    }

    /// Notify the host of all I/Os that have completed by `at`.
    fn notify_host(&mut self, at: u64) {
        let SimDevice { interrupts, host, events, .. } = self;
        let interrupts = interrupts.as_mut().expect("interrupts are coalesced");
        interrupts.raised = interrupts.raised.wrapping_add(1);
        let InterruptsPart { host_completion, host_completion_ns, .. } = interrupts.part;
        let notified_at = host_completion.noticed(at, host_completion_ns);
        for (io, posted) in interrupts.waiting.drain(..) {
            let last = host.notify(io, notified_at);
            events.accounts[last.0 as usize].add(Cause::Controller, notified_at - posted);
        }
    }
}
