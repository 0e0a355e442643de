//! Who is busy when: the clock of every processor, link, bus, channel and die, and the events at which
//! somebody has to decide.
//!
//! ```text
//! read:     ring of the die ─▶ cells ─▶ channel ─▶ bus ─▶ memory ─▶ link
//!                              └── die is held ──┘
//! program:  memory ─▶ bus ─▶ ring of the die ─▶ channel ─▶ cells
//!                                               └─ die is held ─┘
//! erase:    ring of the die ─▶ cells
//! ```
//!
//! An operation arrives at one resource after the other, in the order of time. So whatever carries one
//! thing at a time needs no queue: who arrives later gets what is left, and one clock says when it is
//! free. A transfer that arrives while another die is programming goes before that die's next one, for
//! nothing is reserved ahead. Only dies have queues, since how long an operation holds its die is not
//! known before it has its channel, and since a ring may prefer one class of operations.
//!
//! Few of these steps are events. What is certain is done at once: an operation that is alone, and the
//! first of a ring that nobody overtakes, begins when the die is free, which is known ahead. Its arrival
//! at the channel is written on the channel's list (`channel.rs`), and what is on that list is served
//! when somebody else arrives there, or when the operation could have ended. So a page that is moved
//! costs one event, and where a channel was taken meanwhile, one more.
//!
//! Where planes of a die may do the same thing at the same time (`planes.rs`), all of it waits in the ring.
//! Where the firmware has rings of descriptors (`descriptors.rs`), it is in all of these ways, at both ends.
//!
//! **Source**: OFC (2011) §III–IV (a ring a die, a controller a channel, FIFO), §VI (priority rings).
//! **Faithful**: commands wait for their die, transfers for their channel and bus; erases and programs
//! hold the die alone.
//! **Simplified**: a command takes no time on the channel; no preference on channels, buses and the link.
//! **Ambiguous**: ties. At one moment dies are released first, then arrivals happen in the order in
//! which they were planned; the first of a ring is planned when it begins to wait.

pub(crate) mod breakdown;
mod calendar;
pub(crate) mod cells;
mod channel;
mod channel_transfer;
mod descriptors;
mod history;
mod holding;
mod idle;
pub(crate) mod log;
mod op;
mod operation;
mod planes;
mod recording;
#[cfg(test)]
mod reference;
mod rings;
mod scheduler;
mod shared;
mod suspend;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::hint::cold_path;
use std::num::NonZeroU32;

use crate::collections::slab;
use crate::flash::contents::Contents;
use crate::flash::fast_path::{FastPath, Full};
use crate::flash::geometry::{Geometry, PlaneIdx};
pub(crate) use crate::timeline::breakdown::AccountIdx;
use crate::timeline::breakdown::{Account, SimBreakdown};
use calendar::{Calendar, What};
use cells::Cells;
use channel::Channel;
pub use descriptors::Completion;
use descriptors::Descriptors;
pub(crate) use descriptors::Rings;
use history::History;
use log::Log;
pub(crate) use op::{Kind, Op, Purpose, Report, Stage};
pub use planes::MultiPlane;
use planes::Planes;
pub use rings::DieQueue;
use rings::{Die, UNKNOWN};
use shared::{Lane, link_ns};
pub(crate) use suspend::Suspend;

/// How long things take [ns].
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timing {
    pub(crate) cells: Cells,
    pub(crate) erase_ns: u64,
    /// One page, as the map counts them, over a channel.
    pub(crate) transfer_ns: u64,
    /// What is sent in smaller parts: so many of them take the time of a page on channels, buses and in the
    /// memory; 0: there are none.
    pub(crate) transfer_parts: u64,
    /// So many transfers make a flash page, and so many are sent of one that is read.
    pub(crate) program_transfers: u16,
    pub(crate) read_transfers: u16,
    /// One page over an internal bus; 0: none in the way.
    pub(crate) bus_ns: u64,
    pub(crate) buses: u32,
    /// To set the transfer over a bus up, of a page that was read and of one that is programmed.
    pub(crate) bus_read_setup_ns: u64,
    pub(crate) bus_write_setup_ns: u64,
    /// One page in or out of the controller's memory, where there are buses; 0: none in the way.
    pub(crate) memory_ns: u64,
    /// The processor's time for a host command, for a relocated page, for a collected block.
    pub(crate) command_read_ns: u64,
    pub(crate) command_write_ns: u64,
    pub(crate) relocate_ns: u64,
    pub(crate) collect_ns: u64,
    /// So much longer it takes until that is done, while the processor goes on with the next.
    pub(crate) command_read_latency_ns: u64,
    pub(crate) command_write_latency_ns: u64,
    pub(crate) relocate_latency_ns: u64,
    /// No command is taken in before a write that came before it.
    pub(crate) writes_in_order: bool,
    pub(crate) rings: Option<Rings>,
    pub(crate) link_bytes_per_s: u64,
    /// Relocated pages stay inside their die's plane and never see the channel.
    pub(crate) copy_back: bool,
    pub(crate) die_queue: DieQueue,
    /// A host write has ended when its data is in the register of its die (cache program).
    pub(crate) cache_program: bool,
    /// What reads of the host may suspend.
    pub(crate) suspend: Option<Suspend>,
    /// Operations may have turns: who is next on a channel is certain when it begins, and not before.
    pub(crate) in_turn: bool,
    /// What planes of a die do at the same time.
    pub(crate) multi_plane: MultiPlane,
    /// The processor's time for a read that does not go on where the last one ended.
    pub(crate) seek_read_ns: u64,
    /// Until the host's memory answers where the map is cached there; 0: it is not.
    pub(crate) host_memory_read_ns: u64,
    /// Whether it is kept what dies did lately: writes may wait for a write cache.
    pub(crate) keeps_history: bool,
}

/// All clocks of a device, and what is going to happen. `T` is what its user wants to be
/// told, which fits in 62 bits; `A` is what it tells of where time went.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timeline<T, A = SimBreakdown> {
    geometry: Geometry,
    pub(crate) timing: Timing,
    /// One page, and how long it is on the host link: worked out once.
    page_bytes: u64,
    link_page_ns: u64,
    calendar: Calendar,
    /// Operations that somebody refers to: an event, a channel's list, or the operation before.
    ops: Vec<Op<T>>,
    unused: Vec<u32>,
    /// The operation that may leave its channel now, until its cells are at work.
    #[serde(skip)]
    leaving: Option<u32>,
    /// What is known already, at its time, which may lie in the future; seldom there is more, in order.
    told: Option<(u64, T)>,
    told_next: VecDeque<(u64, T)>,
    dies: Vec<Die<T>>,
    channels: Vec<Channel>,
    buses: Vec<Lane>,
    processor: Lane,
    memory: Lane,
    link: Lane,
    descriptors: Option<Box<Descriptors<T>>>,
    /// Where planes of a die do the same thing at the same time.
    planes: Option<Box<Planes<T>>>,
    /// What everybody did, where somebody wants to know.
    #[serde(skip)]
    log: Option<Box<Log>>,
    /// What is on flash, where somebody wants to know that when power is cut.
    pub(crate) contents: Option<Box<Contents>>,
    /// Whether there is either of these.
    watched: bool,
    /// What dies did lately, where writes wait for a write cache.
    history: Option<Box<History>>,
    /// Whether there is any of these three, so that each operation of a die is written down.
    writes_down: bool,
    /// What the time of every host page under way was spent on.
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
            leaving: None,
            told: None,
            told_next: VecDeque::new(),
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
            writes_down: timing.keeps_history,
            accounts: Vec::new(),
        }
    }

    /// Whether there is nothing but dies, channels, a processor and the link, each of which serves who comes
    /// first, and nobody who wants to know what they did.
    pub(crate) fn is_minimal(&self) -> bool {
        let Timing { die_queue, cache_program, suspend, in_turn, rings, .. } = self.timing;
        let parts = self.timing.transfer_parts > 0;
        let shared = parts || !self.buses.is_empty() || self.geometry.has_planes_in_step();
        let preferred = die_queue != DieQueue::Fifo || suspend.is_some() || in_turn;
        !(shared || preferred || cache_program || rings.is_some() || self.writes_down)
    }

    /// Whether somebody wants to know what dies do.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched
    }

    /// When something happened last.
    pub(crate) fn now(&self) -> u64 {
        self.calendar.now
    }

    /// `most` things may happen before this is called again; with more the device is at its end.
    #[inline]
    pub(crate) fn allow(&mut self, most: u64) {
        self.calendar.allow(most);
    }

    /// Everything before `at` has happened, and nothing will before it.
    pub(crate) fn reach(&mut self, at: u64) {
        self.calendar.reach(at);
    }

    /// Whether anything happens, or is to be told, by `until`.
    #[inline(always)]
    pub(crate) fn is_due(&self, until: u64) -> bool {
        self.told.is_some() || self.calendar.is_due(until)
    }

    /// Let things happen until there is something to tell, but nothing later than `until`. What is told
    /// may have its time in the future: its user asked for no more than to know.
    #[inline(always)]
    pub(crate) fn next(&mut self, until: u64) -> Option<(u64, T)> {
        self.next_of::<Full>(until)
    }

    /// [`Timeline::next`] of a device of one make.
    #[inline(always)]
    pub(crate) fn next_of<M: FastPath>(&mut self, until: u64) -> Option<(u64, T)> {
        loop {
            if let Some(told) = self.told.take() {
                if !self.told_next.is_empty() {
                    self.told = self.told_next.pop_front();
                }
                return Some(told);
            }
            let event = self.calendar.take(until)?;
            let at = event.at;
            match event.what() {
                What::Tell(token) => return Some((at, token)),
                What::Arrive(index) => self.arrive::<M>(at, index),
                What::Release(die) => self.let_next_start::<M>(at, at, die),
                What::Notice => {
                    cold_path();
                    self.notice(at);
                }
            }
        }
    }

    /// Let `op` begin at `at`, which is not before anything that has happened.
    #[inline(always)]
    pub(crate) fn issue(&mut self, at: u64, op: Op<T>) {
        self.issue_of::<Full>(at, op);
    }

    /// [`Timeline::issue`] in a device of one make.
    #[inline(always)]
    pub(crate) fn issue_of<M: FastPath>(&mut self, at: u64, op: Op<T>) {
        if !M::MINIMAL && self.descriptors.is_some() {
            cold_path();
            return self.issue_to_rings(at, op);
        }
        let no_bus = M::MINIMAL || self.buses.is_empty();
        if op.stage == Stage::Ring || (op.stage == Stage::BusIn && no_bus) {
            self.enter_ring::<M>(at, op);
        } else {
            self.begin(at, op);
        }
    }

    /// Let `op` begin at `at` when all of `before` have ended, one after the other.
    #[inline(always)]
    pub(crate) fn issue_after(&mut self, at: u64, before: &[Op<T>], op: Op<T>) {
        if before.is_empty() {
            self.issue(at, op);
        } else {
            self.issue_chain(at, at, before, op);
        }
    }

    /// [`Timeline::issue_after`] at a time which lies not before `now`.
    #[cold]
    pub(crate) fn issue_chain(&mut self, at: u64, now: u64, before: &[Op<T>], op: Op<T>) {
        let mut op = self.addressed(op);
        for before in before.iter().rev() {
            let next = NonZeroU32::new(self.put(op) + 1);
            op = Op { next, ..self.addressed(*before) };
        }
        self.begin_when(at, now, op);
    }

    /// Let `op` begin at `at`, which lies not before `now`.
    #[inline(always)]
    pub(crate) fn issue_when(&mut self, at: u64, now: u64, op: Op<T>) {
        self.issue_when_of::<Full>(at, now, op);
    }

    /// [`Timeline::issue_when`] in a device of one make.
    #[inline(always)]
    pub(crate) fn issue_when_of<M: FastPath>(&mut self, at: u64, now: u64, op: Op<T>) {
        if at > now {
            let op = self.addressed(op);
            self.begin_when(at, now, op);
        } else {
            self.issue_of::<M>(at, op);
        }
    }

    /// Tell `token` at `at`, when everything before has happened.
    #[inline]
    pub(crate) fn remind(&mut self, at: u64, token: T) {
        self.calendar.tell(at, token.into());
    }

    /// Keep `op` for somebody who refers to it.
    #[inline(always)]
    fn put(&mut self, op: Op<T>) -> u32 {
        slab::put(&mut self.ops, &mut self.unused, op)
    }

    /// Nobody refers to it any more.
    #[inline]
    fn take(&mut self, index: u32) -> Op<T> {
        self.unused.push(index);
        self.ops[index as usize]
    }
}
