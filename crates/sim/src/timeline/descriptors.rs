//! Descriptor rings between the firmware and the channel controllers.
//!
//! ```text
//!            ┌── TX ring ──┐  ┌───────────── RX ring ──────────────┐
//! firmware ─▶│ not begun   │─▶│ bus, die, channel │ not noticed yet │─▶ interrupt or poll ─▶ firmware
//!            └─ tx_entries ┘  └──────────── rx_entries ────────────┘
//! ```
//!
//! Every die has one of each. A request starts when the RX ring of its die has a free entry, and
//! occupies that entry until the firmware has noticed the completion. Other requests wait on the TX
//! ring. If that is full, the firmware waits with the request, and so does all its further work.
//!
//! **Source**: OFC (2011) §IV.A.
//! **Faithful**: two rings per die; the channel controllers poll their TX rings continuously, and
//! an entry in an RX ring interrupts the firmware.
//! **Simplified**: polling a TX ring, filling in a descriptor and scanning an RX ring take no time
//! of their own; the processor's time is that of the command.
//! **Ambiguous**: ring sizes, and the behaviour of a full ring, are not in the report. Here nothing
//! starts without an entry for its completion, and the firmware has one thread, which waits. A poll
//! scans the rings die by die; on a die completions are noticed in the order of their ends.

use std::collections::{BTreeMap, VecDeque};

use super::op::OpKind;
use super::{Account, Op, Stage, Timeline};
use crate::flash::geometry::DieIdx;
use crate::timeline::breakdown::Cause;

/// The mechanism by which the firmware notices completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(rename = "Completion")]
pub enum CompletionNotice {
    /// By an interrupt, with this delay.
    Interrupt,
    /// By polling with this period.
    Polling,
}

impl CompletionNotice {
    /// Return when a completion at `end` is noticed: `ns` after it by interrupt, or at the next
    /// poll.
    pub(crate) fn noticed(self, end: u64, ns: u64) -> u64 {
        match self {
            CompletionNotice::Interrupt => end + ns,
            CompletionNotice::Polling => end.next_multiple_of(ns),
        }
    }
}

/// Sizes of the rings, and how the firmware notices completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Rings {
    pub(crate) tx_entries: u32,
    pub(crate) rx_entries: u32,
    pub(crate) completion: CompletionNotice,
    /// Interrupt latency, or polling period [ns].
    pub(crate) completion_ns: u64,
}

impl Rings {
    /// Return when the firmware notices a completion at `end`.
    pub(super) fn noticed(&self, end: u64) -> u64 {
        self.completion.noticed(end, self.completion_ns)
    }
}

/// Order in which completions are noticed: time of notice, die, end, and sequence number.
type NoticeOrder = (u64, DieIdx, u64, u64);

/// The rings of all dies, and the firmware's state.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Descriptors<T> {
    rings: Rings,
    dies: Vec<DieRings<T>>,
    /// Requests that wait in the firmware, in order: the TX ring of the first is full.
    held: VecDeque<Op<T>>,
    #[serde(rename = "over")]
    completed: BTreeMap<NoticeOrder, Op<T>>,
    /// Number of completions so far.
    posted: u64,
}

/// The rings of a die.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Pair")]
struct DieRings<T> {
    tx: VecDeque<Op<T>>,
    /// Number of requests started whose completion was not noticed.
    #[serde(rename = "begun")]
    running: u32,
}

impl<T> Descriptors<T> {
    pub(super) fn new(rings: Rings, dies: u32) -> Descriptors<T> {
        let dies = (0..dies).map(|_| DieRings { tx: VecDeque::new(), running: 0 }).collect();
        Descriptors { rings, dies, held: VecDeque::new(), completed: BTreeMap::new(), posted: 0 }
    }

    /// Start the next request of `die` if the RX ring has a free entry.
    fn begin(&mut self, die: DieIdx) -> Option<Op<T>> {
        let DieRings { tx, running } = &mut self.dies[die.0 as usize];
        if *running == self.rings.rx_entries {
            return None;
        }
        let next = tx.pop_front()?;
        *running += 1;
        Some(next)
    }

    /// Put the firmware's next request on its TX ring if that has a free entry; return its die.
    fn submit_next(&mut self) -> Option<DieIdx> {
        let die = self.held.front()?.die;
        let tx = &mut self.dies[die.0 as usize].tx;
        if tx.len() == self.rings.tx_entries as usize {
            return None;
        }
        tx.extend(self.held.pop_front());
        Some(die)
    }

    /// Return the next completion that the firmware has noticed by `now`.
    fn notice(&mut self, now: u64) -> Option<Op<T>> {
        let first = self.completed.first_entry().filter(|first| first.key().0 <= now)?;
        let op = first.remove();
        self.dies[op.die.0 as usize].running -= 1;
        Some(op)
    }
}

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    fn descriptors(&mut self) -> &mut Descriptors<T> {
        self.descriptors.as_deref_mut().expect("the firmware has descriptor rings")
    }

    /// [`Timeline::issue`] with descriptor rings; separate, so that devices without them keep `op`
    /// in registers.
    #[inline(never)]
    pub(super) fn issue_to_rings(&mut self, at: u64, op: Op<T>) {
        let op = self.addressed(op);
        self.begin(at, op);
    }

    /// Address `op` to the firmware, if it has rings.
    pub(super) fn addressed(&self, mut op: Op<T>) -> Op<T> {
        if self.descriptors.is_some() && op.stage != Stage::Link {
            op.stage = Stage::Submit;
        }
        op
    }

    /// Submit `op` to the firmware at `at`.
    #[inline(never)]
    pub(super) fn submit(&mut self, at: u64, op: Op<T>) {
        self.descriptors().held.push_back(Op { arrived: at, ..op });
        self.begin_next(at, op.die);
    }

    /// Use entries that may be free, on the rings of `die` and for waiting requests.
    fn begin_next(&mut self, at: u64, mut die: DieIdx) {
        loop {
            while let Some(op) = self.descriptors().begin(die) {
                self.charge(&op, Cause::Controller, at - op.arrived);
                let stage = if op.kind == OpKind::Program { Stage::BusIn } else { Stage::Ring };
                self.begin(at, Op { stage, ..op });
            }
            match self.descriptors().submit_next() {
                Some(next) => die = next,
                None => return,
            }
        }
    }

    /// Post the completion of `op` at `end`; the firmware notices it later.
    #[inline(never)]
    pub(super) fn post(&mut self, end: u64, op: Op<T>) {
        let descriptors = self.descriptors();
        let noticed = descriptors.rings.noticed(end);
        let all = (noticed, DieIdx(0), 0, 0)..=(noticed, DieIdx(u32::MAX), u64::MAX, u64::MAX);
        let first = descriptors.completed.range(all).next().is_none();
        descriptors.completed.insert((noticed, op.die, end, descriptors.posted), op);
        descriptors.posted += 1;
        self.charge(&op, Cause::Controller, noticed - end);
        if first {
            self.calendar.notice(noticed);
        }
    }

    /// Let the firmware notice completions.
    #[inline(never)]
    pub(super) fn notice(&mut self, now: u64) {
        while let Some(op) = self.descriptors().notice(now) {
            self.begin_next(now, op.die);
            if op.link_bytes > 0 {
                self.begin(now, Op { stage: Stage::Link, ..op });
            } else {
                self.finish(now, now, &op);
            }
        }
    }
}
