//! Recording of operations: in the log of a timeline, and in the flash contents.

use super::die_queue::UNKNOWN;
use super::log::{OpLog, OpSource, OpTimes, Operations};
use super::op::{Op, OpKind, OpSummary};
use super::{Account, AccountIdx, Timeline};
use crate::flash::contents::Contents;
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{DieIdx, PlaneIdx, Ppn};

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Record every operation from `now` on, which is not before the last event. `work_of` returns
    /// the purpose of a token.
    pub(crate) fn begin_log(&mut self, now: u64, work_of: fn(u64) -> OpSource) {
        let waiting =
            self.dies.iter().map(|die| die.ring.iter().map(|op| op.arrived).collect()).collect();
        let mut log = OpLog::new(work_of, waiting);
        for (die, state) in (0..).zip(&self.dies) {
            if state.free_at > now && state.free_at != UNKNOWN {
                log.record_busy(
                    die,
                    state.purpose,
                    state.held_since.min(state.free_at),
                    state.free_at,
                );
            }
        }
        self.log = Some(Box::new(log));
        (self.watched, self.writes_down) = (true, true);
    }

    /// Stop recording; return the log.
    pub(crate) fn end_log(&mut self) -> Operations {
        let Some(mut log) = self.log.take() else { return Operations::default() };
        self.watched = self.contents.is_some();
        self.writes_down = self.watched || self.history.is_some();
        let now = self.calendar.now;
        for (die, state) in (0..).zip(&self.dies) {
            // It has its die, and its end is unknown.
            if state.free_at == UNKNOWN && state.held_since < now {
                log.record_busy(die, state.purpose, state.held_since, now);
            }
        }
        log.finish()
    }

    /// Record the flash contents from now on.
    pub(crate) fn set_contents(&mut self, contents: Box<Contents>) {
        self.contents = Some(contents);
        (self.watched, self.writes_down) = (true, true);
    }

    /// Record the cell time of an operation, from `begin` to `end`.
    fn note_cells(&mut self, record: u32, begin: u64, end: u64) {
        let Timeline { contents, calendar, .. } = self;
        let contents = contents.as_mut().expect("flash contents are recorded");
        for (at, token) in contents.set_times(record, begin, end, calendar.now) {
            calendar.add_report(at.max(calendar.now), token);
        }
    }

    /// Record that the cells of a suspendable operation have ended at `at`.
    #[inline]
    pub(super) fn record_cells_end(&mut self, record: u32, at: u64) {
        if record != 0 {
            self.note_cells(record, at, at);
        }
    }

    /// Return whether `token` will be reported when all programs issued so far have ended. False if
    /// programs are not recorded, or all have ended.
    #[inline]
    pub(crate) fn wait_for_programs(&mut self, token: T) -> bool {
        self.contents.is_some() && self.wait_for_records(token)
    }

    #[inline(never)]
    fn wait_for_records(&mut self, token: T) -> bool {
        let Timeline { contents, calendar, .. } = self;
        let Some(contents) = contents else { return false };
        let until = contents.after_programs(token.into());
        if let Some(until) = until.filter(|until| *until > calendar.now) {
            calendar.add_report(until, token.into());
        }
        until.is_none_or(|until| until > calendar.now)
    }

    /// Return whether `token` will be reported when all programs issued before `record` have ended;
    /// false if all have.
    pub(crate) fn wait_for_earlier_programs(&mut self, record: u32, token: T) -> bool {
        let Timeline { contents, calendar, .. } = self;
        let contents = contents.as_mut().expect("flash contents are recorded");
        let until = contents.after_programs_before(record, token.into());
        if let Some(until) = until.filter(|until| *until > calendar.now) {
            calendar.add_report(until, token.into());
        }
        until.is_none_or(|until| until > calendar.now)
    }

    /// Record that the cells are busy until `end`; a suspendable operation has no known end.
    fn note_record(&mut self, summary: OpSummary, end: u64) {
        let begin = end - summary.cell_ns;
        let suspend = self.timing.suspend.as_ref();
        if suspend.is_none_or(|suspend| suspend.stop_ns(summary.kind, summary.purpose).is_none()) {
            return self.note_cells(summary.writes, begin, end);
        }
        let contents = self.contents.as_mut().expect("flash contents are recorded");
        contents.set_begin(summary.writes, begin);
    }

    /// Assign `account` to a page of I/O number `io`.
    #[inline]
    pub(crate) fn assign_account(&mut self, account: AccountIdx, io: impl FnOnce() -> u32) {
        if let Some(log) = &mut self.log {
            log.assign_account(account, io());
        }
    }

    /// Record an I/O that was submitted at `begin` and ended at `end`.
    pub(crate) fn log_completion(&mut self, begin: u64, end: u64) {
        if let Some(log) = &mut self.log {
            log.record_completion(begin, end);
        }
    }

    /// Record the start of a collection of `block` on `die`.
    #[inline]
    pub(crate) fn log_collection(&mut self, die: u32, block: u32) {
        if let Some(log) = &mut self.log {
            log.begin_collection(die, block);
        }
    }

    /// Record the number of valid pages of the last collection's victim.
    pub(crate) fn log_collected_pages(&mut self, valid: u16) {
        if let Some(log) = &mut self.log {
            log.set_collected_pages(valid.into());
        }
    }

    /// Record a plan at `index`: its account, and the first block that it erases.
    #[inline]
    pub(crate) fn log_plan(
        &mut self,
        index: u32,
        account: Option<AccountIdx>,
        block: impl FnOnce() -> Option<u32>,
    ) {
        if let Some(log) = &mut self.log {
            log.begin_plan(index, account, block());
        }
    }

    /// Record that an operation waits for `die` from `at` on.
    #[cold]
    pub(super) fn note_wait(&mut self, at: u64, die: u32, token: u64, account: Option<AccountIdx>) {
        if let Some(log) = &mut self.log {
            log.record_wait(at, die, token, account);
        }
    }

    /// Record that an operation gets `die`; it came at `at` if it did not wait.
    #[cold]
    pub(super) fn note_begin(
        &mut self,
        at: u64,
        die: u32,
        token: u64,
        account: Option<AccountIdx>,
    ) {
        if let Some(log) = &mut self.log {
            log.record_begin(at, die, token, account);
        }
    }

    /// Record the program `op`: when it came to its channel, had it, had its die as well, and was
    /// transferred.
    #[cold]
    pub(super) fn note_holding(&mut self, op: &Op<T>, [at, held, begin, sent]: [u64; 4]) {
        let Some(log) = &mut self.log else { return };
        log.record_begin(at, op.die.0, op.token.into(), op.account);
        let times = OpTimes { begin, sent: held, sent_until: sent, end: sent + op.cell_ns };
        log.record_end(op.die, PlaneIdx(op.die.0), op.summary(), &times);
    }

    /// Record that the operation has `die` from `begin` to `end`; its channel transfer was the last
    /// one.
    #[inline(never)]
    pub(super) fn record_op(&mut self, die: DieIdx, summary: OpSummary, begin: u64, end: u64) {
        let lane = self.channels[self.dies[die.0 as usize].channel as usize].lane;
        let sent_until =
            if summary.kind == OpKind::Inside || summary.is_remainder { 0 } else { lane.free_at };
        self.record_sent_op(die, summary, begin, sent_until, end);
    }

    /// Like `record_op`, with its channel until `sent_until`; 0: no transfer.
    pub(super) fn record_sent_op(
        &mut self,
        die: DieIdx,
        summary: OpSummary,
        begin: u64,
        sent_until: u64,
        end: u64,
    ) {
        if summary.writes != 0 {
            self.note_record(summary, end);
        }
        if let Some(history) = &mut self.history {
            history.add(die, summary, begin, end, self.calendar.now);
        }
        let Some(log) = &mut self.log else { return };
        let length = self.timing.transfer::<AllFeatures>(summary.transfers);
        let sent = sent_until.saturating_sub(length);
        // The log keeps multi-plane operations by page.
        let page = summary.page.filter(|_| self.planes.is_some());
        let plane = page.map(|page| self.geometry.address_of(Ppn(page.get() - 1)).plane);
        log.record_end(
            die,
            plane.unwrap_or(PlaneIdx(die.0)),
            summary,
            &OpTimes { begin, sent, sent_until, end },
        );
    }
}
