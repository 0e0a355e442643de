//! The convergence check of a running benchmark, with the device kept busy.
//!
//! ```text
//!  process 0 ── judged recorder ──┐ response times, in pieces        ┌─ not yet
//!  process 1 ── judged recorder ──┼──────────────────────▶ judge ────┤
//!  …                              ┘   (of the same I/Os)             └─ end: Control lowers the limit
//! ```
//!
//! In virtual time the judge runs in the recording thread, because no time passes there. On a real
//! device it has its own thread, and the processes continue until it decides.
//!
//! A row of the judge corresponds to one `io_count`: one I/O of each process, averaged. For a mix
//! with a ratio it is one round, with a series for each of the two patterns, so that both converge.
//! Patterns side by side have separate rows at their own pace. All are evaluated when the slowest
//! has enough rows.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender};

use serde::Serialize;
use serde_json::Value;
use uflip_core::{Completion, Device, Error, Io, Nanos};
use uflip_method::{SeriesVerdict, StopRule, Verdict};

use crate::drive::{Control, RecordCompletion, StopPosition};
use crate::recorder::{RunRecorder, not_enough_memory};
use crate::spec::{Resolved, Stop};

/// A piece is a 32nd of the recorded I/Os, within these bounds [I/Os]: copying one takes
/// microseconds.
const PIECE: (usize, usize) = (32, 4096);

/// I/Os that a process on its own thread may submit before it sees the end of the run.
pub(crate) const SLACK: u64 = 16;

/// The stopping record of a run, stored with it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct StopRecord {
    /// Whether the mean reached the requested confidence interval, without contrary evidence.
    converged: bool,
    /// The reason for the end: `converged`, or the budget `max_ios`, `max_time_ns` or
    /// `max_bytes_written`.
    ended_by: &'static str,
    /// The complete rule.
    stop: Value,
    /// Rows of the deciding evaluation, or of the last one.
    ios: usize,
    /// Rows before the running phase, the maximum over all series.
    startup_ios: usize,
    /// The result of that evaluation for each series.
    series: Vec<SeriesVerdict>,
}

/// A pattern whose I/Os are judged in rows: an I/O, or a round of a mix, of every process.
struct JudgedPattern {
    /// The processes of the pattern.
    processes: std::ops::Range<usize>,
    /// I/Os of a process per row.
    round: usize,
    /// The index of its first series.
    series: usize,
    /// Rows passed to the rule.
    passed: usize,
}

impl JudgedPattern {
    fn series(&self) -> std::ops::Range<usize> {
        self.series..self.series + if self.round > 1 { 2 } else { 1 }
    }
}

/// Collects the response times of all processes, and evaluates the stop rule at intervals.
pub(crate) struct Judge<'a> {
    control: &'a Control,
    rule: StopRule,
    stop_position: StopPosition,
    patterns: Vec<JudgedPattern>,
    /// I/Os that a process may still submit when the run ends.
    outstanding: u64,
    /// Response times of each process that do not complete a row yet.
    pending: Vec<Vec<u64>>,
    decision: Option<Verdict>,
    /// Values received, and the number of values that fit into memory.
    values: u64,
    checked_values: u64,
    failure: Option<Error>,
}

/// Bytes per value: twice its size, because the vector grows by doubling, and the working memory of
/// an evaluation.
const BYTES_PER_VALUE: u64 = 160;
/// Below this number of values, memory is not checked.
const UNCHECKED_VALUES: u64 = 1 << 18;
/// Memory for everything else [bytes].
const MARGIN_BYTES: u64 = 64 << 20;

impl<'a> Judge<'a> {
    pub(crate) fn new(
        pattern: &Resolved,
        stop: &Stop,
        control: &'a Control,
        slack: u64,
    ) -> Judge<'a> {
        let (mut patterns, mut process, mut series) = (Vec::new(), 0, 0);
        for part in &pattern.groups {
            let processes = process..process + part.processes;
            patterns.push(JudgedPattern {
                processes,
                round: part.round as usize,
                series,
                passed: 0,
            });
            process += part.processes;
            series = patterns.last().expect("a pattern was just added").series().end;
        }
        Judge {
            control,
            rule: StopRule::new(stop.options, series, stop.min_ios as usize),
            stop_position: StopPosition::for_pattern(pattern),
            patterns,
            outstanding: pattern.queue_depth_max() + slack,
            pending: vec![Vec::new(); pattern.streams.len()],
            decision: None,
            values: 0,
            checked_values: UNCHECKED_VALUES,
            failure: None,
        }
    }

    /// Return the error, if memory is exhausted.
    pub(crate) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// Return whether memory suffices for `more` values; if not, end the run.
    fn has_memory_for(&mut self, more: usize) -> bool {
        self.values += more as u64;
        if self.values > self.checked_values && self.failure.is_none() {
            let (needed, available) =
                (self.values * BYTES_PER_VALUE + MARGIN_BYTES, self.control.available_memory());
            self.checked_values = self.values + self.values / 8;
            if needed > available {
                self.failure = Some(not_enough_memory(self.values as usize, needed, available));
                self.control.cancel();
            }
        }
        self.failure.is_none()
    }

    /// Receive pieces until every process has ended.
    pub(crate) fn receive_all(mut self, pieces: &Receiver<(usize, Vec<u64>)>) -> Judge<'a> {
        for (process, times) in pieces {
            self.receive(process, &times);
        }
        self
    }

    fn receive(&mut self, process: usize, times: &[u64]) {
        if !self.has_memory_for(times.len()) {
            return;
        }
        self.pending[process].extend_from_slice(times);
        let contains_process = |pattern: &&mut JudgedPattern| pattern.processes.contains(&process);
        let pattern = self
            .patterns
            .iter_mut()
            .find(contains_process)
            .expect("each process belongs to a pattern");
        pattern.push_complete(&mut self.pending[pattern.processes.clone()], &mut self.rule);
        let rows = self.patterns.iter().map(|pattern| pattern.passed).min().unwrap_or(0);
        if rows >= self.rule.next_evaluation() && self.decision.is_none() {
            let verdict = self.rule.evaluate();
            if verdict.stop {
                self.control.end(self.stop_position, self.outstanding);
                self.decision = Some(verdict);
            }
        }
    }

    /// Return the stopping record of the run, and the start-up rows of each pattern. Without a
    /// decision, the rule is evaluated over all rows.
    pub(crate) fn into_stop_record(
        mut self,
        stop: &Stop,
        budget_is_spent: bool,
    ) -> (StopRecord, Vec<u64>) {
        let ended_by = match (&self.decision, budget_is_spent) {
            (Some(_), _) => "converged",
            (None, true) => stop.budget,
            (None, false) => "max_time_ns",
        };
        let verdict = self.decision.take().unwrap_or_else(|| self.rule.evaluate());
        let startup = |pattern: &JudgedPattern| {
            let series = verdict.series[pattern.series()].iter();
            series.map(|series| series.startup_ios as u64).max().unwrap_or(0)
        };
        let startups = self.patterns.iter().map(startup).collect();
        let stop_record = StopRecord {
            converged: verdict.stop,
            ended_by,
            stop: stop.canonical(),
            ios: verdict.ios,
            startup_ios: verdict.startup_ios,
            series: verdict.series,
        };
        (stop_record, startups)
    }
}

impl JudgedPattern {
    /// Pass all complete rows to the rule.
    fn push_complete(&mut self, pending: &mut [Vec<u64>], rule: &mut StopRule) {
        let complete = pending.iter().map(Vec::len).min().unwrap_or(0) / self.round;
        for row in 0..complete {
            self.push(pending, row * self.round, rule);
        }
        pending.iter_mut().for_each(|pending| drop(pending.drain(..complete * self.round)));
        self.passed += complete;
    }

    /// Pass the row whose I/Os begin at `from`.
    fn push(&self, pending: &[Vec<u64>], from: usize, rule: &mut StopRule) {
        let first_ios = (self.round - 1).max(1);
        let first_sum = |pending: &Vec<u64>| pending[from..from + first_ios].iter().sum::<u64>();
        let sum: u64 = pending.iter().map(first_sum).sum();
        rule.push(self.series, sum as f64 / (first_ios * pending.len()) as f64);
        if self.round > 1 {
            // A mix has one process.
            rule.push(self.series + 1, pending[0][from + first_ios] as f64);
        }
    }
}

impl StopPosition {
    /// Patterns side by side have no common pace.
    pub(crate) fn for_pattern(pattern: &Resolved) -> StopPosition {
        match pattern.groups[..] {
            [part] => StopPosition::InStep { round: part.round },
            _ => StopPosition::Separately {
                least: pattern.groups.iter().map(|part| part.round).max().unwrap_or(1),
            },
        }
    }
}

/// The channel for response times to the judge.
pub(crate) enum JudgeLink<'a, 'c> {
    /// The judge runs on this thread.
    Local(&'a Mutex<Judge<'c>>),
    /// The judge runs on its own thread.
    Thread(SyncSender<(usize, Vec<u64>)>),
}

/// A recorder that also passes response times to the judge.
pub(crate) struct JudgedRecorder<'a, 'c> {
    pub(crate) trace: RunRecorder<'c>,
    process: usize,
    link: JudgeLink<'a, 'c>,
    control: &'c Control,
    max_time: Nanos,
    stop_position: StopPosition,
    /// I/Os of this process within the budget.
    budget: usize,
    /// I/Os passed to the judge, and the number of recorded I/Os that triggers the next piece.
    sent: usize,
    due: usize,
}

impl<'a, 'c> JudgedRecorder<'a, 'c> {
    pub(crate) fn new(
        process: usize,
        mut trace: RunRecorder<'c>,
        link: JudgeLink<'a, 'c>,
        control: &'c Control,
        stop: &Stop,
        stop_position: StopPosition,
    ) -> JudgedRecorder<'a, 'c> {
        let max_time = Nanos(stop.max_time_ns.unwrap_or(u64::MAX));
        let budget = trace.total();
        trace.set_judged(0);
        JudgedRecorder {
            trace,
            process,
            link,
            control,
            max_time,
            stop_position,
            budget,
            sent: 0,
            due: PIECE.0,
        }
    }

    /// Pass the recorded response times to the judge.
    ///
    /// A judge on another thread may lag: only the end of the run waits for it.
    fn send(&mut self, is_last: bool) {
        loop {
            let times = self.trace.completed_from(self.sent);
            if times.is_empty() {
                break;
            }
            match &self.link {
                JudgeLink::Local(judge) => {
                    judge.lock().expect("the lock is not poisoned").receive(self.process, times);
                }
                // The judge lives as long as the run.
                JudgeLink::Thread(judge) if is_last => {
                    drop(judge.send((self.process, times.to_vec())))
                }
                JudgeLink::Thread(judge) => {
                    let piece = &times[..times.len().min(PIECE.1)];
                    if judge.try_send((self.process, piece.to_vec())).is_err() {
                        break;
                    }
                    self.sent += piece.len();
                    continue;
                }
            }
            self.sent += times.len();
        }
        self.trace.set_judged(self.sent);
        let base = self.sent.max(self.due);
        self.due = base + (base / 32).clamp(PIECE.0, PIECE.1);
    }

    /// Pass all remaining response times, and return the recorder.
    pub(crate) fn into_recorder(mut self) -> RunRecorder<'c> {
        self.send(true);
        self.trace
    }
}

impl<D: Device<Request = Io>> RecordCompletion<D> for JudgedRecorder<'_, '_> {
    fn amount(&self, io: &Io) -> (u64, bool) {
        (io.size.0, io.mode.is_write())
    }

    #[inline]
    fn record(
        &mut self,
        index: usize,
        io: &Io,
        start: Nanos,
        arrived: Nanos,
        completion: &Completion<D::Breakdown, D::Status>,
    ) {
        RecordCompletion::<D>::record(&mut self.trace, index, io, start, arrived, completion);
        if index + 1 >= self.due {
            self.send(false);
        }
        let time_is_spent = completion.completed.0 - start.0 >= self.max_time.0;
        // When one of several patterns side by side reaches its budget, the others would run
        // without it.
        let budget_is_spent = index + 1 == self.budget
            && matches!(self.stop_position, StopPosition::Separately { .. });
        if (time_is_spent || budget_is_spent) && !self.control.is_ending() {
            self.control.end(self.stop_position, 0);
        }
    }
}
