//! Who is busy when: the clock of every processor, link, bus, channel and die, and the events at which
//! somebody has to decide.
//!
//! ```text
//! read:     ring of the die ─▶ cells ─▶ channel ─▶ bus ─▶ link
//!                              └── die is held ──┘
//! program:  bus ─▶ ring of the die ─▶ channel ─▶ cells
//!                                     └─ die is held ─┘
//! erase:    ring of the die ─▶ cells
//! ```
//!
//! An operation arrives at one resource after the other, and every arrival is an event that happens in
//! the order of time. So whatever carries one thing at a time needs no queue: who arrives later gets
//! what is left, and one clock says when it is free. A transfer that arrives while another die is
//! programming goes before that die's next one, for nothing is reserved ahead. Only dies have queues,
//! since how long an operation holds its die is not known before it has its channel, and since a ring
//! may prefer one class of operations.
//!
//! **Source**: OFC (2011) §III–IV (a ring a die, a controller a channel, FIFO), §VI (priority rings).
//! **Faithful**: commands wait for their die, transfers for their channel and bus; erases and programs
//! hold the die alone.
//! **Simplified**: a command takes no time on the channel; no suspended programs or erases; no
//! preference on channels, buses and the link.
//! **Ambiguous**: ties. At one moment dies are released first, then arrivals happen in the order in
//! which they were planned.

mod calendar;
mod op;
#[cfg(test)]
mod reference;
mod rings;

use std::collections::VecDeque;

use crate::breakdown::{Account as _, Cause, SimBreakdown};
use crate::geometry::{DieIdx, Geometry};
use calendar::{Calendar, Event, What};
pub(crate) use op::{Kind, Op, Purpose, Report, Stage};
pub use rings::DieQueue;
use rings::{Die, UNKNOWN};

/// How long things take [ns].
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timing {
    pub(crate) read_ns: u64,
    pub(crate) program_ns: u64,
    /// Odd pages of a block, where two bits share a cell; `program_ns` where they do not.
    pub(crate) program_high_ns: u64,
    pub(crate) erase_ns: u64,
    /// One page over a channel.
    pub(crate) transfer_ns: u64,
    /// One page over an internal bus; 0: none in the way.
    pub(crate) bus_ns: u64,
    pub(crate) buses: u32,
    /// The processor's time for a host command, for a relocated page, for a collected block.
    pub(crate) command_read_ns: u64,
    pub(crate) command_write_ns: u64,
    pub(crate) relocate_ns: u64,
    pub(crate) collect_ns: u64,
    pub(crate) link_bytes_per_s: u64,
    /// Relocated pages stay inside their die's plane and never see the channel.
    pub(crate) copy_back: bool,
    pub(crate) die_queue: DieQueue,
    /// A host write has ended when its data is in the register of the die; while a page is programmed
    /// the register takes the next (cache program).
    pub(crate) cache_program: bool,
    /// The processor's time for a read that does not go on where the last one ended.
    pub(crate) seek_read_ns: u64,
}

impl Timing {
    /// How long the cells of a page are programmed; `high`: the second of two that share them.
    #[inline]
    pub(crate) fn program(&self, high: bool) -> u64 {
        if high { self.program_high_ns } else { self.program_ns }
    }
}

/// Where the time of a host page is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct AccountIdx(pub(crate) u32);

/// Something that carries one thing at a time, first come, first served.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Lane {
    free_at: u64,
}

impl Lane {
    /// Who arrives at `at`, the latest so far, has it for `length` from the time returned.
    #[inline]
    fn take(&mut self, at: u64, length: u64) -> u64 {
        let start = at.max(self.free_at);
        self.free_at = start + length;
        start
    }
}

/// All clocks of a device, and what is going to happen. `T` is what its user wants to be told.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timeline<T> {
    geometry: Geometry,
    pub(crate) timing: Timing,
    /// One page, and how long it is on the host link: worked out once.
    page_bytes: u64,
    link_page_ns: u64,
    calendar: Calendar<T>,
    ops: Vec<Op<T>>,
    unused: Vec<u32>,
    /// What is known already, at its time, which may lie in the future.
    told: VecDeque<(u64, T)>,
    dies: Vec<Die>,
    channels: Vec<Lane>,
    buses: Vec<Lane>,
    processor: Lane,
    link: Lane,
    /// What the time of every host page under way was spent on.
    pub(crate) accounts: Vec<SimBreakdown>,
}

impl<T: Copy> Timeline<T> {
    pub(crate) fn new(geometry: Geometry, timing: Timing) -> Timeline<T> {
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
            told: VecDeque::new(),
            dies: vec![Die::default(); shape.dies as usize],
            channels: vec![Lane::default(); shape.channels as usize],
            buses: vec![Lane::default(); timing.buses as usize],
            processor: Lane::default(),
            link: Lane::default(),
            accounts: Vec::new(),
        }
    }

    /// When something happened last.
    pub(crate) fn now(&self) -> u64 {
        self.calendar.now
    }

    /// Let things happen until there is something to tell, but nothing later than `until`. What is told
    /// may have its time in the future: its user asked for no more than to know.
    #[inline]
    pub(crate) fn next(&mut self, until: u64) -> Option<(u64, T)> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Some(told);
            }
            let Event { at, what, .. } = self.calendar.take(until)?;
            match what {
                What::Tell(token) => return Some((at, token)),
                What::Arrive(index) => self.arrive(at, index),
                What::Release(die) => self.release(at, die),
            }
        }
    }

    /// Let `op` begin at `at`, which is not before anything that has happened.
    #[inline]
    pub(crate) fn issue(&mut self, at: u64, op: Op<T>) {
        let index = self.put(op);
        self.arrive(at, index);
    }

    /// Let `op` begin at `at` when all of `before` have ended, one after the other.
    #[inline]
    pub(crate) fn issue_after(&mut self, at: u64, before: &[Op<T>], op: Op<T>) {
        let mut next = self.put(op);
        for op in before.iter().rev() {
            next = self.put(Op { next: Some(next), ..*op });
        }
        self.arrive(at, next);
    }

    /// Let `op` begin at `at`, which lies not before `now`.
    #[inline]
    pub(crate) fn issue_when(&mut self, at: u64, now: u64, op: Op<T>) {
        let index = self.put(op);
        if at > now {
            self.calendar.arrive(at, index);
        } else {
            self.arrive(at, index);
        }
    }

    /// Tell `token` at `at`, when everything before has happened.
    #[inline]
    pub(crate) fn remind(&mut self, at: u64, token: T) {
        self.calendar.tell(at, token);
    }

    #[inline]
    fn put(&mut self, op: Op<T>) -> u32 {
        let op = Op { die: self.geometry.clock_of(op.die), ..op };
        if let Some(index) = self.unused.pop() {
            self.ops[index as usize] = op;
            return index;
        }
        self.ops.push(op);
        self.ops.len() as u32 - 1
    }

    /// The processor is asked at `at` for `length`; returns when it is done.
    #[inline]
    pub(crate) fn process(&mut self, at: u64, length: u64) -> u64 {
        if length == 0 { at } else { self.processor.take(at, length) + length }
    }

    /// `bytes` arrive at the host link at `at`; returns when they are over.
    #[inline]
    pub(crate) fn send(&mut self, at: u64, bytes: u64) -> u64 {
        let length =
            if bytes == self.page_bytes { self.link_page_ns } else { link_ns(&self.timing, bytes) };
        self.link.take(at, length) + length
    }

    /// What `op` read is in memory at `at`: `bytes` of it go over the link.
    #[inline]
    pub(crate) fn deliver(&mut self, at: u64, now: u64, bytes: u64, op: Op<T>) {
        self.issue_when(at, now, Op { link_bytes: bytes, ..op });
    }

    /// `op` ends at `end`, which others have worked out.
    #[inline]
    pub(crate) fn end(&mut self, end: u64, now: u64, op: Op<T>) {
        let index = self.put(op);
        self.finish(end, now, index);
    }

    /// A host page's time was spent on all of `parts`.
    #[inline]
    pub(crate) fn all_spent(&mut self, account: Option<AccountIdx>, parts: &SimBreakdown) {
        if let Some(AccountIdx(account)) = account {
            self.accounts[account as usize].add_all(parts);
        }
    }

    /// So much of a host page's time was spent on `cause`.
    #[inline]
    pub(crate) fn spent(&mut self, account: Option<AccountIdx>, cause: Cause, ns: u64) {
        if let Some(AccountIdx(account)) = account {
            self.accounts[account as usize].add(cause, ns);
        }
    }

    /// The operation has arrived where its stage says.
    #[inline]
    fn arrive(&mut self, at: u64, index: u32) {
        match self.ops[index as usize].stage {
            Stage::BusIn => {
                let end = self.bus(at, index);
                self.ops[index as usize].stage = Stage::Ring;
                if end > at {
                    self.calendar.arrive(end, index);
                } else {
                    self.enter_ring(at, index);
                }
            }
            Stage::Ring => self.enter_ring(at, index),
            Stage::Channel => self.enter_channel(at, index),
            Stage::BusOut => {
                let end = self.bus(at, index);
                self.leave(end, at, index);
            }
            Stage::Link => {
                let bytes = self.ops[index as usize].link_bytes;
                let end = self.send(at, bytes);
                self.charge(index, Cause::Link, end - at);
                self.finish(end, at, index);
            }
        }
    }

    /// The operation has arrived at the ring of its die.
    #[inline]
    fn enter_ring(&mut self, at: u64, index: u32) {
        let op = &mut self.ops[index as usize];
        op.arrived = at;
        let die = op.die;
        let state = &mut self.dies[die.0 as usize];
        if state.free_at <= at {
            debug_assert!(state.ring.is_empty(), "who waits is released first");
            self.start(at, index);
            return;
        }
        state.ring.push_back(index);
        if state.ring.len() == 1 && state.free_at != UNKNOWN {
            self.calendar.release(state.free_at, die);
        }
    }

    /// The die has done what it did; the next in its ring has it.
    fn release(&mut self, at: u64, die: DieIdx) {
        let Die { held_since, purpose, .. } = self.dies[die.0 as usize];
        for waiting in 0..self.dies[die.0 as usize].ring.len() {
            let index = self.dies[die.0 as usize].ring[waiting];
            let arrived = self.ops[index as usize].arrived;
            self.charge(index, purpose.cause(), at - arrived.max(held_since));
        }
        let queue = self.timing.die_queue;
        let ops = &self.ops;
        let next = self.dies[die.0 as usize]
            .next(queue, |index| ops[index as usize].purpose)
            .expect("a die is released for somebody");
        self.start(at, next);
    }

    /// The operation has its die.
    #[inline]
    fn start(&mut self, at: u64, index: u32) {
        let op = &mut self.ops[index as usize];
        let (die, kind, cell_ns) = (op.die, op.kind, op.cell_ns);
        let state = &mut self.dies[die.0 as usize];
        state.held_since = at;
        state.purpose = op.purpose;
        match kind {
            Kind::Read => {
                state.free_at = UNKNOWN;
                op.stage = Stage::Channel;
                self.calendar.arrive(at + cell_ns, index);
                self.charge(index, Cause::CellRead, cell_ns);
            }
            Kind::Program => self.enter_channel(at, index),
            Kind::Inside => {
                let cause = op.purpose.cause();
                self.charge(index, cause, cell_ns);
                self.free_at(die, at + cell_ns);
                self.finish(at + cell_ns, at, index);
            }
        }
    }

    /// The operation, which has its die, has arrived at the channel.
    #[inline]
    fn enter_channel(&mut self, at: u64, index: u32) {
        let Op { die, kind, cell_ns, transfers, .. } = self.ops[index as usize];
        let length = self.timing.transfer_ns * u64::from(transfers);
        let sent = self.channels[self.geometry.channel_of(die)].take(at, length);
        let end = sent + length;
        self.charge(index, Cause::ChannelWait, sent - at);
        self.charge(index, Cause::Transfer, length);
        match kind {
            Kind::Read => {
                self.free_at(die, end);
                if self.buses.is_empty() {
                    self.leave(end, at, index);
                } else {
                    self.ops[index as usize].stage = Stage::BusOut;
                    self.calendar.arrive(end, index);
                }
            }
            Kind::Program | Kind::Inside => {
                self.charge(index, Cause::CellProgram, cell_ns);
                self.free_at(die, end + cell_ns);
                self.finish(end + cell_ns, at, index);
            }
        }
    }

    /// What was read goes over the link at `end`, where it is the host's.
    #[inline]
    fn leave(&mut self, end: u64, now: u64, index: u32) {
        let op = &mut self.ops[index as usize];
        if op.link_bytes == 0 {
            return self.finish(end, now, index);
        }
        op.stage = Stage::Link;
        self.calendar.arrive(end, index);
    }

    /// The operation ends at `end`; told when its user wants to know.
    #[inline]
    fn finish(&mut self, end: u64, now: u64, index: u32) {
        let op = &mut self.ops[index as usize];
        if let Some(next) = op.next {
            self.calendar.arrive(end, next);
            self.unused.push(index);
            return;
        }
        match op.report {
            Report::WhenKnown => self.told.push_back((end, op.token)),
            Report::AtEnd if end > now => self.calendar.tell(end, op.token),
            Report::AtEnd => self.told.push_back((end, op.token)),
            Report::Never => {}
        }
        self.unused.push(index);
    }

    /// How long `die` is held is known now; who waits for it will be released then.
    #[inline]
    fn free_at(&mut self, die: DieIdx, end: u64) {
        let state = &mut self.dies[die.0 as usize];
        state.free_at = end;
        if !state.ring.is_empty() {
            self.calendar.release(end, die);
        }
    }

    /// A page over the internal bus of the operation's channel; returns the end.
    #[inline]
    fn bus(&mut self, at: u64, index: u32) -> u64 {
        if self.buses.is_empty() {
            return at;
        }
        let channel = self.geometry.channel_of(self.ops[index as usize].die);
        let bus = channel % self.buses.len();
        let length = self.timing.bus_ns;
        let end = self.buses[bus].take(at, length) + length;
        self.charge(index, Cause::Bus, end - at);
        end
    }

    #[inline]
    fn charge(&mut self, index: u32, cause: Cause, ns: u64) {
        let op = &self.ops[index as usize];
        self.spent(op.account, op.lump.unwrap_or(cause), ns);
    }
}

fn link_ns(timing: &Timing, bytes: u64) -> u64 {
    bytes * 1_000_000_000 / timing.link_bytes_per_s
}
