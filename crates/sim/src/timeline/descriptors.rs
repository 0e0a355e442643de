//! Rings of descriptors between the firmware and the controllers of the channels.
//!
//! ```text
//!            ┌── TX ring ──┐  ┌───────────── RX ring ──────────────┐
//! firmware ─▶│ not begun   │─▶│ bus, die, channel │ not noticed yet │─▶ interrupt or poll ─▶ firmware
//!            └─ tx_entries ┘  └──────────── rx_entries ────────────┘
//! ```
//!
//! Every die has one of each. A request is begun when the RX ring of its die has a place for its completion,
//! and keeps that place until the firmware has noticed the completion; what is not begun waits on the TX ring.
//! Where that is full, the firmware waits with the request, and all that it has to do comes behind it.
//!
//! **Source**: OFC (2011) §IV.A.
//! **Faithful**: two rings a die; the channels' controllers look at their TX rings all the time, the firmware is
//! interrupted where something has come to an RX ring.
//! **Simplified**: to look at a TX ring, to fill in a descriptor and to go through an RX ring take no time of their
//! own; the processor's time is that of the command.
//! **Ambiguous**: sizes of the rings, and what happens where one is full, are not in the report. Here nothing is
//! begun whose completion would find no place, and a firmware of one thread waits. In a poll the rings are gone
//! through die by die; on a die what ended first is noticed first.

use std::collections::{BTreeMap, VecDeque};

use super::op::Kind;
use super::{Account, Op, Stage, Timeline};
use crate::flash::geometry::DieIdx;
use crate::timeline::breakdown::Cause;

/// How the firmware notices that requests are over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// By an interrupt, which comes so much later.
    Interrupt,
    /// It looks again and again, every so often.
    Polling,
}

impl Completion {
    /// When what is over at `end` is noticed, so much after the interrupt or at the next poll.
    pub(crate) fn noticed(self, end: u64, ns: u64) -> u64 {
        match self {
            Completion::Interrupt => end + ns,
            Completion::Polling => end.next_multiple_of(ns),
        }
    }
}

/// How large the rings are, and how the firmware notices what is on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Rings {
    pub(crate) tx_entries: u32,
    pub(crate) rx_entries: u32,
    pub(crate) completion: Completion,
    /// From the end to the interrupt's handler, or between two polls [ns].
    pub(crate) completion_ns: u64,
}

impl Rings {
    /// When the firmware notices what is over at `end`.
    pub(super) fn noticed(&self, end: u64) -> u64 {
        self.completion.noticed(end, self.completion_ns)
    }
}

/// What is over and not noticed yet, in the order in which it will be: when, on which die, when it was over, and
/// as which of all.
type Order = (u64, DieIdx, u64, u64);

/// The rings of all dies, and what the firmware does with them.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Descriptors<T> {
    rings: Rings,
    dies: Vec<Pair<T>>,
    /// Requests that the firmware has not got rid of, in order: the ring of the first of them is full.
    held: VecDeque<Op<T>>,
    over: BTreeMap<Order, Op<T>>,
    /// So many were over so far.
    posted: u64,
}

/// The rings of a die.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Pair<T> {
    tx: VecDeque<Op<T>>,
    /// Requests that were begun and not noticed to be over.
    begun: u32,
}

impl<T> Descriptors<T> {
    pub(super) fn new(rings: Rings, dies: u32) -> Descriptors<T> {
        let dies = (0..dies).map(|_| Pair { tx: VecDeque::new(), begun: 0 }).collect();
        Descriptors { rings, dies, held: VecDeque::new(), over: BTreeMap::new(), posted: 0 }
    }

    /// The next request of `die` to begin, where the RX ring has a place for its completion.
    fn begin(&mut self, die: DieIdx) -> Option<Op<T>> {
        let Pair { tx, begun } = &mut self.dies[die.0 as usize];
        if *begun == self.rings.rx_entries {
            return None;
        }
        let next = tx.pop_front()?;
        *begun += 1;
        Some(next)
    }

    /// The firmware puts the next request on its TX ring, where that has a place; returns whose it was.
    fn put_next(&mut self) -> Option<DieIdx> {
        let die = self.held.front()?.die;
        let tx = &mut self.dies[die.0 as usize].tx;
        if tx.len() == self.rings.tx_entries as usize {
            return None;
        }
        tx.extend(self.held.pop_front());
        Some(die)
    }

    /// What the firmware notices next, of what it has by `now`.
    fn notice(&mut self, now: u64) -> Option<Op<T>> {
        let first = self.over.first_entry().filter(|first| first.key().0 <= now)?;
        let op = first.remove();
        self.dies[op.die.0 as usize].begun -= 1;
        Some(op)
    }
}

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    fn descriptors(&mut self) -> &mut Descriptors<T> {
        self.descriptors.as_deref_mut().expect("there are rings")
    }

    /// [`Timeline::issue`] where the firmware has rings; apart, so that whatever has none keeps `op` in registers.
    #[inline(never)]
    pub(super) fn issue_to_rings(&mut self, at: u64, op: Op<T>) {
        let op = self.addressed(op);
        self.begin(at, op);
    }

    /// `op` for the firmware, where that has rings.
    pub(super) fn addressed(&self, mut op: Op<T>) -> Op<T> {
        if self.descriptors.is_some() && op.stage != Stage::Link {
            op.stage = Stage::Submit;
        }
        op
    }

    /// The firmware asks for `op` at `at`.
    #[inline(never)]
    pub(super) fn submit(&mut self, at: u64, op: Op<T>) {
        self.descriptors().held.push_back(Op { arrived: at, ..op });
        self.pass_on(at, op.die);
    }

    /// There may be a place on the rings of `die`, or for what the firmware has.
    fn pass_on(&mut self, at: u64, mut die: DieIdx) {
        loop {
            while let Some(op) = self.descriptors().begin(die) {
                self.charge(&op, Cause::Controller, at - op.arrived);
                let stage = if op.kind == Kind::Program { Stage::BusIn } else { Stage::Ring };
                self.begin(at, Op { stage, ..op });
            }
            match self.descriptors().put_next() {
                Some(next) => die = next,
                None => return,
            }
        }
    }

    /// `op` is over at `end`: the firmware notices it later.
    #[inline(never)]
    pub(super) fn post(&mut self, end: u64, op: Op<T>) {
        let descriptors = self.descriptors();
        let noticed = descriptors.rings.noticed(end);
        let all = (noticed, DieIdx(0), 0, 0)..=(noticed, DieIdx(u32::MAX), u64::MAX, u64::MAX);
        let first = descriptors.over.range(all).next().is_none();
        descriptors.over.insert((noticed, op.die, end, descriptors.posted), op);
        descriptors.posted += 1;
        self.charge(&op, Cause::Controller, noticed - end);
        if first {
            self.calendar.notice(noticed);
        }
    }

    /// The firmware notices what is over.
    #[inline(never)]
    pub(super) fn notice(&mut self, now: u64) {
        while let Some(op) = self.descriptors().notice(now) {
            self.pass_on(now, op.die);
            if op.link_bytes > 0 {
                self.begin(now, Op { stage: Stage::Link, ..op });
            } else {
                self.finish(now, now, &op);
            }
        }
    }
}
