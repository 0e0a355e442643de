//! Suspension of programs and erases for host reads.
//!
//! ```text
//! program  │sent│  cells  │stops│                    │ the rest of the cells │
//! read              arrives ────│ cells │sent│ (next read …)
//! ```
//!
//! A read that comes while the die erases or programs waits until that has stopped, `program_ns` or
//! `erase_ns` later. Host reads that come meanwhile follow. Then the rest continues before any
//! other waiting operation, because it occupies the die's register. An operation that would end
//! before it stops is not suspended, nor one that was suspended `max_suspensions` times.
//!
//! **Source**: G. Wu, X. He, Reducing SSD Read Latency via NAND Flash Program and Erase Suspension
//! (FAST 2012); S. Kim et al., Practical Erase Suspension for Modern Low-latency SSDs (USENIX ATC
//! 2019).
//! **Faithful**: reads first; a program or an erase continues where it stopped; the number of
//! suspensions is limited.
//! **Simplified**: the time to stop is constant, at any point of a pulse, and nothing is done or
//! lost in it; resuming takes no time of its own. A copy-back, which occupies the register, is not
//! suspended.
//! **Ambiguous**: a read that comes while the page of a program is on the channel: that program is
//! suspended as soon as its cells begin.

use super::op::OpKind;
use super::{Account, Op, Purpose, Stage, Timeline};
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::DieIdx;

/// The operations that host reads may suspend.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Suspend {
    /// Time to stop a program, and an erase [ns]; `None`: it is not suspended.
    pub(crate) program_ns: Option<u64>,
    pub(crate) erase_ns: Option<u64>,
    /// Maximum number of suspensions of one operation.
    #[serde(rename = "most")]
    pub(crate) max_suspensions: u32,
}

impl Suspend {
    /// Return the time to stop an operation, if it can be suspended.
    pub(super) fn stop_ns(&self, kind: OpKind, purpose: Purpose) -> Option<u64> {
        match (kind, purpose) {
            (OpKind::Program, _) => self.program_ns,
            (OpKind::Inside, Purpose::Erase) => self.erase_ns,
            _ => None,
        }
    }
}

/// An operation on its die that may be suspended.
#[derive(Clone, Copy, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Running")]
pub(super) struct RunningOp {
    index: u32,
    /// Its end; 0 while it is suspended. If the die becomes free at another time, it does something
    /// else.
    ends: u64,
    suspended: u32,
}

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Let `op`, which no longer needs the channel, have its die from `begin` to `end` unless
    /// suspended.
    #[inline(never)]
    pub(super) fn occupy(&mut self, begin: u64, end: u64, now: u64, op: Op<T>) {
        let can_be =
            self.timing.suspend.and_then(|suspend| suspend.stop_ns(op.kind, op.purpose)).is_some();
        if self.writes_down {
            self.record_op(op.die, op.summary(), begin, end);
        }
        if can_be {
            self.dies[op.die.0 as usize].running.suspended = 0;
            return self.run(end, now, op);
        }
        self.hold::<AllFeatures>(op.die, end, now);
        self.finish_without_transfer(end, now, op);
    }

    /// Let the cells of `op` work until `end` unless suspended.
    fn run(&mut self, end: u64, now: u64, op: Op<T>) {
        let die = op.die;
        let index = self.put(op);
        let op = &mut self.ops[index as usize];
        (op.stage, op.ends) = (Stage::Cells, end);
        self.calendar.arrive(end, index);
        let running = &mut self.dies[die.0 as usize].running;
        (running.index, running.ends) = (index, end);
        self.hold::<AllFeatures>(die, end, now);
    }

    /// Let a stored operation, which now has the channel, have its die until its end.
    #[inline(never)]
    pub(super) fn begin_suspendable(&mut self, index: u32, now: u64) {
        let op = &mut self.ops[index as usize];
        let suspend = self.timing.suspend.expect("suspension is enabled");
        if op.kind == OpKind::Read || suspend.stop_ns(op.kind, op.purpose).is_none() {
            return;
        }
        op.stage = Stage::Cells;
        self.sending = self.sending.filter(|leaving| *leaving != index);
        let (die, ends) = (op.die, op.ends);
        self.calendar.withdraw_arrival(index);
        self.calendar.arrive(ends, index);
        let state = &mut self.dies[die.0 as usize];
        state.running = RunningOp { index, ends, suspended: 0 };
        if state.ring.iter().any(|other| other.purpose == Purpose::HostRead) {
            self.suspend(now, die);
        }
    }

    /// Handle a host read that came to `die`: suspend the current operation if that helps.
    #[inline(never)]
    pub(super) fn suspend(&mut self, now: u64, die: DieIdx) {
        let state = &mut self.dies[die.0 as usize];
        let RunningOp { index, ends, suspended } = state.running;
        let Some(suspend) =
            self.timing.suspend.filter(|suspend| suspended < suspend.max_suspensions)
        else {
            return;
        };
        if state.free_at != ends || ends <= now {
            return;
        }
        let op = self.ops[index as usize];
        let stop = now.max(ends - op.cell_ns);
        let Some(stop_ns) =
            suspend.stop_ns(op.kind, op.purpose).filter(|stop_ns| *stop_ns < ends - stop)
        else {
            return;
        };
        let next = stop + stop_ns;
        // Another operation may end at the time at which this one would have ended.
        (state.free_at, state.running) =
            (next, RunningOp { index, ends: 0, suspended: suspended + 1 });
        state.accounted += u32::from(op.account.is_some());
        state.ring.push_front(Op { cell_ns: ends - stop, arrived: stop, ..op });
        self.unused.push(index);
        self.calendar.withdraw_arrival(index);
        self.calendar.withdraw_release(die);
        self.calendar.release(next, die);
        if let Some(log) = &mut self.log {
            log.record_suspension(die.0, stop, ends, next);
        }
        if let Some(history) = &mut self.history {
            history.suspend(die, ends, next);
        }
    }

    /// Resume a suspended operation on its die.
    #[inline(never)]
    pub(super) fn resume(&mut self, at: u64, op: Op<T>) {
        let state = &mut self.dies[op.die.0 as usize];
        (state.held_since, state.purpose, state.cached) = (at, op.purpose, false);
        let end = at + op.cell_ns;
        if self.watched {
            self.note_begin(at, op.die.0, op.token.into(), op.account);
        }
        if self.writes_down {
            self.record_op(op.die, op.summary(), at, end);
        }
        self.run(end, at, op);
    }

    /// End the cell work of a suspendable operation at `at`.
    #[inline(never)]
    pub(super) fn cells_ended(&mut self, at: u64, op: Op<T>) {
        self.record_cells_end(op.writes, at);
        self.finish_without_transfer(at, at, op);
    }

    /// End the operation, which has nothing to transfer, at `end`.
    #[inline(never)]
    pub(super) fn finish_without_transfer(&mut self, end: u64, now: u64, op: Op<T>) {
        if self.descriptors.is_some() {
            self.post(end, op);
        } else {
            self.finish(end, now, &op);
        }
    }
}
