//! The scheduler: when each processor, link, bus, channel and die is busy, and the events of the
//! device.
//!
//! ```text
//! read:     queue of the die ─▶ cells ─▶ channel ─▶ bus ─▶ memory ─▶ link
//!                               └── die is held ──┘
//! program:  memory ─▶ bus ─▶ queue of the die ─▶ channel ─▶ cells
//!                                                └─ die is held ─┘
//! erase:    queue of the die ─▶ cells
//! ```
//!
//! An operation arrives at one resource after the other, in time order. So a resource that serves
//! one operation at a time needs no queue, only the time when it is free. A transfer that arrives
//! while another die programs goes before that die's next transfer, because nothing is reserved
//! ahead. Only dies have queues: how long an operation holds its die is unknown until it has its
//! channel, and a die queue may have priorities.
//!
//! Few of these steps are events. Certain steps are done at once: an operation that is alone, and
//! the first of a queue that cannot be overtaken, starts at a known time. Its arrival at the
//! channel is announced on the channel's list (`channel.rs`). The list is served at the next
//! arrival, or at the earliest possible end. So a page move costs one event, and one more if the
//! channel was busy.
//!
//! If planes of a die work together (`planes.rs`), all their operations wait in the die queue. If
//! the firmware has descriptor rings (`descriptors.rs`), every operation passes them at both ends.
//!
//! **Source**: OFC (2011) §III–IV (one queue per die, one controller per channel, FIFO), §VI
//! (priority queues).
//! **Faithful**: commands wait for their die, transfers for their channel and bus; erases and
//! programs hold the die alone.
//! **Simplified**: a command takes no time on the channel; no priorities on channels, buses and the
//! link.
//! **Ambiguous**: ties. At equal times dies are released first, then arrivals occur in the order in
//! which they were planned. The first of a queue is planned when it begins to wait.

pub(crate) mod breakdown;
mod calendar;
pub(crate) mod cells;
mod channel;
mod descriptors;
mod die_queue;
pub(crate) mod energy;
mod history;
pub(crate) mod log;
mod op;
mod planes;
mod scheduler;
mod suspend;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::hint::cold_path;
use std::num::NonZeroU32;

use crate::collections::slab;
use crate::flash::contents::Contents;
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{Geometry, PlaneIdx};
pub(crate) use crate::timeline::breakdown::AccountIdx;
use crate::timeline::breakdown::{Account, SimBreakdown};
use calendar::{Calendar, EventKind};
use cells::CellTimes;
use channel::Channel;
pub use descriptors::CompletionNotice;
use descriptors::Descriptors;
pub(crate) use descriptors::Rings;
pub use die_queue::DieQueue;
use die_queue::{Die, UNKNOWN};
use energy::EnergyMeter;
use history::History;
use log::OpLog;
pub(crate) use op::{Op, OpKind, Purpose, Report, Stage};
pub use planes::MultiPlane;
use planes::Planes;
use scheduler::{Lane, link_ns};
pub(crate) use suspend::Suspend;

/// Durations and options of the hardware [ns].
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timing {
    pub(crate) cells: CellTimes,
    pub(crate) erase_ns: u64,
    /// Channel transfer of one page (mapping unit).
    pub(crate) transfer_ns: u64,
    /// Number of smaller parts that take the time of a page on channels, buses and in memory; 0: a
    /// page is the smallest transfer.
    pub(crate) transfer_parts: u64,
    /// Transfers per flash page program, and per page read.
    pub(crate) program_transfers: u16,
    pub(crate) read_transfers: u16,
    /// Transfer of one page over an internal bus; 0: no such bus.
    pub(crate) bus_ns: u64,
    pub(crate) buses: u32,
    /// Set-up time of a bus transfer, of a page read and of a page program.
    pub(crate) bus_read_setup_ns: u64,
    pub(crate) bus_write_setup_ns: u64,
    /// Transfer of one page to or from the controller's memory, if there are buses; 0: none.
    pub(crate) memory_ns: u64,
    /// Processor time of a host read command; also (below) of a write command, a relocated page and
    /// a collected block.
    pub(crate) command_read_ns: u64,
    pub(crate) command_write_ns: u64,
    pub(crate) relocate_ns: u64,
    pub(crate) collect_ns: u64,
    /// Additional latency, during which the processor continues with the next command.
    pub(crate) command_read_latency_ns: u64,
    pub(crate) command_write_latency_ns: u64,
    pub(crate) relocate_latency_ns: u64,
    /// Commands wait for earlier writes.
    pub(crate) writes_in_order: bool,
    pub(crate) rings: Option<Rings>,
    pub(crate) link_bytes_per_s: u64,
    /// Copy-back: relocated pages stay inside their plane and do not use the channel.
    pub(crate) copy_back: bool,
    pub(crate) die_queue: DieQueue,
    /// A host write completes when its data is in the register of its die (cache program).
    pub(crate) cache_program: bool,
    /// A die reads the next host page while the last one leaves its register (cache read).
    pub(crate) cache_read: bool,
    /// The operations that host reads may suspend.
    pub(crate) suspend: Option<Suspend>,
    /// Operations may have an order within a plan: the next on a channel is certain only when it
    /// begins.
    #[serde(rename = "in_turn")]
    pub(crate) has_plan_order: bool,
    /// Multi-plane operations of a die.
    pub(crate) multi_plane: MultiPlane,
    /// Additional processor time of a read that is not sequential to the last one.
    pub(crate) seek_read_ns: u64,
    /// Latency of the host memory buffer that caches the map; 0: no such buffer.
    pub(crate) host_memory_read_ns: u64,
    /// Whether to keep a history of die operations, for writes that wait for a write cache.
    pub(crate) keeps_history: bool,
}

/// All clocks and future events of a device. `T` is the event tag of its user (62 bits); `A` is the
/// account of time per cause.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timeline<T, A = SimBreakdown> {
    geometry: Geometry,
    pub(crate) timing: Timing,
    /// Bytes of a page, and its time on the host link, computed once.
    page_bytes: u64,
    link_page_ns: u64,
    calendar: Calendar,
    /// Operations in progress, referred to by an event, a channel's list, or the preceding
    /// operation.
    ops: Vec<Op<T>>,
    unused: Vec<u32>,
    /// The operation that may leave its channel now; cleared when its cells start.
    #[serde(skip)]
    sending: Option<u32>,
    /// The next report; its time may lie in the future. Further reports, which are rare, follow in
    /// order.
    #[serde(rename = "told")]
    next_report: Option<(u64, T)>,
    #[serde(rename = "told_next")]
    later_reports: VecDeque<(u64, T)>,
    dies: Vec<Die<T>>,
    channels: Vec<Channel>,
    buses: Vec<Lane>,
    processor: Lane,
    memory: Lane,
    link: Lane,
    descriptors: Option<Box<Descriptors<T>>>,
    /// Multi-plane state, if planes of a die work together.
    planes: Option<Box<Planes<T>>>,
    /// The operation log, if operations are recorded.
    #[serde(skip)]
    log: Option<Box<OpLog>>,
    /// The flash contents, if power may be cut.
    pub(crate) contents: Option<Box<Contents>>,
    /// Whether there is a log or contents.
    watched: bool,
    /// History of die operations, if writes wait for a write cache.
    history: Option<Box<History>>,
    /// The energy meter, if the device accounts for energy.
    pub(crate) energy: Option<Box<EnergyMeter>>,
    /// Whether there is any of these four, so that each die operation is recorded.
    writes_down: bool,
    /// The time per cause of every outstanding host page.
    pub(crate) accounts: Vec<A>,
}

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    pub(crate) fn new(geometry: Geometry, timing: Timing) -> Timeline<T, A> {
        let shape = geometry.shape();
        let page_bytes = u64::from(shape.page_bytes);
        Timeline {
            geometry,
            timing,
            page_bytes,
            link_page_ns: link_ns(&timing, page_bytes),
            calendar: Calendar::default(),
            ops: Vec::new(),
            unused: Vec::new(),
            sending: None,
            next_report: None,
            later_reports: VecDeque::new(),
            dies: (0..shape.planes)
                .map(|die| Die::on(geometry.channel_of(PlaneIdx(die))))
                .collect(),
            channels: vec![Channel::default(); shape.channels as usize],
            buses: vec![Lane::default(); timing.buses as usize],
            processor: Lane::default(),
            memory: Lane::default(),
            link: Lane::default(),
            descriptors: timing.rings.map(|rings| Box::new(Descriptors::new(rings, shape.planes))),
            planes: (timing.multi_plane != MultiPlane::None)
                .then(|| Box::new(Planes::new(shape.planes))),
            log: None,
            contents: None,
            watched: false,
            history: timing.keeps_history.then(|| Box::new(History::new(shape.planes))),
            energy: None,
            writes_down: timing.keeps_history,
            accounts: Vec::new(),
        }
    }

    /// Return whether the device has only FIFO dies, channels, a processor and the link, and
    /// nothing records their work.
    pub(crate) fn is_minimal(&self) -> bool {
        let Timing { die_queue, suspend, has_plan_order, rings, .. } = self.timing;
        let cached = self.timing.cache_program || self.timing.cache_read;
        let parts = self.timing.transfer_parts > 0;
        let shared = parts || !self.buses.is_empty() || self.geometry.has_planes_in_step();
        let preferred = die_queue != DieQueue::Fifo || suspend.is_some() || has_plan_order;
        !(shared || preferred || cached || rings.is_some() || self.writes_down)
    }

    /// Return whether die operations are recorded.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Return the time of the last event.
    pub(crate) fn now(&self) -> u64 {
        self.calendar.now
    }

    /// Set the event budget: at most `max_events` events until the next call; more mean an endless loop.
    #[inline]
    pub(crate) fn set_event_budget(&mut self, max_events: u64) {
        self.calendar.set_event_budget(max_events);
    }

    /// Advance the clock to `at`: no event before it is left or will be added.
    pub(crate) fn advance_to(&mut self, at: u64) {
        self.calendar.advance_to(at);
    }

    /// Return whether an event or a report is due by `until`.
    #[inline(always)]
    pub(crate) fn is_due(&self, until: u64) -> bool {
        self.next_report.is_some() || self.calendar.is_due(until)
    }

    /// Process events up to `until` or the next report. The time of a report may lie in the future,
    /// if it was requested as soon as known.
    #[inline(always)]
    pub(crate) fn next(&mut self, until: u64) -> Option<(u64, T)> {
        self.next_of::<AllFeatures>(until)
    }

    /// Like [`Timeline::next`], for a given [`FastPath`].
    #[inline(always)]
    pub(crate) fn next_of<M: FastPath>(&mut self, until: u64) -> Option<(u64, T)> {
        loop {
            if let Some(report) = self.next_report.take() {
                if !self.later_reports.is_empty() {
                    self.next_report = self.later_reports.pop_front();
                }
                return Some(report);
            }
            let event = self.calendar.take(until)?;
            let at = event.at;
            match event.kind() {
                EventKind::Report(token) => return Some((at, token)),
                EventKind::Arrive(index) => self.arrive::<M>(at, index),
                EventKind::Release(die) => self.start_next::<M>(at, at, die),
                EventKind::Notice => {
                    cold_path();
                    self.notice(at);
                }
            }
        }
    }

    /// Start `op` at `at`, which is not earlier than the last event.
    #[inline(always)]
    pub(crate) fn issue(&mut self, at: u64, op: Op<T>) {
        self.issue_of::<AllFeatures>(at, op);
    }

    /// Like [`Timeline::issue`], for a given [`FastPath`].
    #[inline(always)]
    pub(crate) fn issue_of<M: FastPath>(&mut self, at: u64, op: Op<T>) {
        if !M::MINIMAL && self.descriptors.is_some() {
            cold_path();
            return self.issue_to_rings(at, op);
        }
        let no_bus = M::MINIMAL || self.buses.is_empty();
        if op.stage == Stage::Ring || (op.stage == Stage::BusIn && no_bus) {
            self.join_die_queue::<M>(at, op);
        } else {
            self.begin(at, op);
        }
    }

    /// Start `op` at `at` after all of `before`, which run one after the other.
    #[inline(always)]
    pub(crate) fn issue_after(&mut self, at: u64, before: &[Op<T>], op: Op<T>) {
        if before.is_empty() {
            self.issue(at, op);
        } else {
            self.issue_chain(at, at, before, op);
        }
    }

    /// Like [`Timeline::issue_after`], at a time not earlier than `now`.
    #[cold]
    pub(crate) fn issue_chain(&mut self, at: u64, now: u64, before: &[Op<T>], op: Op<T>) {
        let mut op = self.addressed(op);
        for before in before.iter().rev() {
            let next = NonZeroU32::new(self.put(op) + 1);
            op = Op { next, ..self.addressed(*before) };
        }
        self.begin_when(at, now, op);
    }

    /// Start `op` at `at`, which is not earlier than `now`.
    #[inline(always)]
    pub(crate) fn issue_when(&mut self, at: u64, now: u64, op: Op<T>) {
        self.issue_when_of::<AllFeatures>(at, now, op);
    }

    /// Like [`Timeline::issue_when`], for a given [`FastPath`].
    #[inline(always)]
    pub(crate) fn issue_when_of<M: FastPath>(&mut self, at: u64, now: u64, op: Op<T>) {
        if at > now {
            let op = self.addressed(op);
            self.begin_when(at, now, op);
        } else {
            self.issue_of::<M>(at, op);
        }
    }

    /// Report `token` at `at`, after all earlier events.
    #[inline]
    pub(crate) fn remind(&mut self, at: u64, token: T) {
        self.calendar.add_report(at, token.into());
    }

    /// Store `op`; return its index.
    #[inline(always)]
    fn put(&mut self, op: Op<T>) -> u32 {
        slab::put(&mut self.ops, &mut self.unused, op)
    }

    /// Remove the operation.
    #[inline]
    fn take(&mut self, index: u32) -> Op<T> {
        self.unused.push(index);
        self.ops[index as usize]
    }
}
