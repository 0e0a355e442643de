//! Is the run long enough? Decided while it goes on, with the device kept busy.
//!
//! ```text
//!  process 0 ── watched trace ──┐ response times, in pieces        ┌─ not yet
//!  process 1 ── watched trace ──┼──────────────────────▶ judge ────┤
//!  …                            ┘   (of the same I/Os)             └─ end: Control lowers the limit
//! ```
//!
//! On a device with a clock of its own the judge works where it is called: no time passes there. On a
//! real device it has a thread, and the processes go on until it has spoken.
//!
//! A row of the judge is what `io_count` counts: one I/O of each process, as their mean; of a mix with
//! a ratio one round, with a series for each of its two patterns, so that both are known well. Patterns
//! side by side have rows of their own, at their own pace, and are all looked at when the slowest has
//! enough of them.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender};

use serde::Serialize;
use serde_json::Value;
use uflip_core::{Completion, Device, Error, Io, Nanos};
use uflip_method::{SeriesVerdict, StopRule, Verdict};

use crate::drive::{Control, Ending, Record};
use crate::recorder::{Recorder, too_little};
use crate::spec::{Resolved, Stop};

/// A piece is a 32nd of what there is, within these bounds [I/Os]: copying one takes microseconds.
const PIECE: (usize, usize) = (32, 4096);

/// I/Os that a process on a thread of its own may make while it is being told to end.
pub(crate) const SLACK: u64 = 16;

/// How a run came to its length: what is stored with it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Ended {
    /// Whether the mean is known as well as was asked for, with nothing that speaks against it.
    converged: bool,
    /// What ended it: `converged`, or the budget `max_ios`, `max_time_ns` or `max_bytes_written`.
    ended_by: &'static str,
    /// The rule, complete.
    stop: Value,
    /// Rows of the look that decided, or of the last one.
    ios: usize,
    /// Rows before the running phase, the most of any series.
    startup_ios: usize,
    /// What that look saw, for each series.
    series: Vec<SeriesVerdict>,
}

/// The rows of one pattern.
struct Rows {
    /// Its processes.
    processes: std::ops::Range<usize>,
    /// I/Os of a process in a row.
    round: usize,
    /// Its first series.
    series: usize,
    /// Rows that were handed to the rule.
    known: usize,
}

impl Rows {
    fn series(&self) -> std::ops::Range<usize> {
        self.series..self.series + if self.round > 1 { 2 } else { 1 }
    }
}

/// Collects the response times of all processes, and looks at them from time to time.
pub(crate) struct Judge<'a> {
    control: &'a Control,
    rule: StopRule,
    ending: Ending,
    rows: Vec<Rows>,
    /// I/Os of a process that may be on their way when the run ends.
    under_way: u64,
    /// Response times of each process that do not make a row yet.
    pending: Vec<Vec<u64>>,
    convinced: Option<Verdict>,
    /// Values that were handed on, and how many of them there is memory for.
    values: u64,
    allowed: u64,
    failed: Option<Error>,
}

/// Bytes that are needed for a value: twice what is kept of it, because it grows by doubling, and what a
/// look makes of it.
const BYTES_A_VALUE: u64 = 160;
/// So many values are never too many.
const FEW_VALUES: u64 = 1 << 18;
/// Room for all else [bytes].
const MARGIN_BYTES: u64 = 64 << 20;

impl<'a> Judge<'a> {
    pub(crate) fn new(
        pattern: &Resolved,
        stop: &Stop,
        control: &'a Control,
        slack: u64,
    ) -> Judge<'a> {
        let (mut rows, mut process, mut series) = (Vec::new(), 0, 0);
        for part in &pattern.parts {
            let processes = process..process + part.processes;
            rows.push(Rows { processes, round: part.round as usize, series, known: 0 });
            process += part.processes;
            series = rows.last().expect("just put there").series().end;
        }
        Judge {
            control,
            rule: StopRule::new(stop.options, series, stop.min_ios as usize),
            ending: Ending::of(pattern),
            rows,
            under_way: pattern.queue_depth_max() + slack,
            pending: vec![Vec::new(); pattern.streams.len()],
            convinced: None,
            values: 0,
            allowed: FEW_VALUES,
            failed: None,
        }
    }

    /// Why it cannot take more, if it cannot.
    pub(crate) fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// Whether there is memory for so many values more; if not, the run ends.
    fn has_room_for(&mut self, more: usize) -> bool {
        self.values += more as u64;
        if self.values > self.allowed && self.failed.is_none() {
            let (needed, room) = (self.values * BYTES_A_VALUE + MARGIN_BYTES, self.control.room());
            self.allowed = self.values + self.values / 8;
            if needed > room {
                self.failed = Some(too_little(self.values as usize, needed, room));
                self.control.cancel();
            }
        }
        self.failed.is_none()
    }

    /// Take pieces as they come, until every process has ended.
    pub(crate) fn listen(mut self, pieces: &Receiver<(usize, Vec<u64>)>) -> Judge<'a> {
        for (process, times) in pieces {
            self.receive(process, &times);
        }
        self
    }

    fn receive(&mut self, process: usize, times: &[u64]) {
        if !self.has_room_for(times.len()) {
            return;
        }
        self.pending[process].extend_from_slice(times);
        let of_it = |rows: &&mut Rows| rows.processes.contains(&process);
        let rows = self.rows.iter_mut().find(of_it).expect("every process makes a pattern");
        rows.hand_on(&mut self.pending[rows.processes.clone()], &mut self.rule);
        let known = self.rows.iter().map(|rows| rows.known).min().unwrap_or(0);
        if known >= self.rule.next_look() && self.convinced.is_none() {
            let verdict = self.rule.look();
            if verdict.stop {
                self.control.end(self.ending, self.under_way);
                self.convinced = Some(verdict);
            }
        }
    }

    /// The end of the run: what was decided, or what all of it looks like; and for each pattern how
    /// many of its rows are start-up.
    pub(crate) fn ended(mut self, stop: &Stop, budget_is_spent: bool) -> (Ended, Vec<u64>) {
        let ended_by = match (&self.convinced, budget_is_spent) {
            (Some(_), _) => "converged",
            (None, true) => stop.budget,
            (None, false) => "max_time_ns",
        };
        let verdict = self.convinced.take().unwrap_or_else(|| self.rule.look());
        let startup = |rows: &Rows| {
            let series = verdict.series[rows.series()].iter();
            series.map(|series| series.startup_ios as u64).max().unwrap_or(0)
        };
        let startups = self.rows.iter().map(startup).collect();
        let ended = Ended {
            converged: verdict.stop,
            ended_by,
            stop: stop.canonical(),
            ios: verdict.ios,
            startup_ios: verdict.startup_ios,
            series: verdict.series,
        };
        (ended, startups)
    }
}

impl Rows {
    /// Hand all rows that are complete to the rule.
    fn hand_on(&mut self, pending: &mut [Vec<u64>], rule: &mut StopRule) {
        let complete = pending.iter().map(Vec::len).min().unwrap_or(0) / self.round;
        for row in 0..complete {
            self.push(pending, row * self.round, rule);
        }
        pending.iter_mut().for_each(|pending| drop(pending.drain(..complete * self.round)));
        self.known += complete;
    }

    /// Hand on the row whose I/Os begin at `from`.
    fn push(&self, pending: &[Vec<u64>], from: usize, rule: &mut StopRule) {
        let firsts = (self.round - 1).max(1);
        let of_first = |pending: &Vec<u64>| pending[from..from + firsts].iter().sum::<u64>();
        let sum: u64 = pending.iter().map(of_first).sum();
        rule.push(self.series, sum as f64 / (firsts * pending.len()) as f64);
        if self.round > 1 {
            // A mix is one process.
            rule.push(self.series + 1, pending[0][from + firsts] as f64);
        }
    }
}

impl Ending {
    /// Patterns side by side have no common pace.
    pub(crate) fn of(pattern: &Resolved) -> Ending {
        match pattern.parts[..] {
            [part] => Ending::InStep { round: part.round },
            _ => Ending::Here {
                least: pattern.parts.iter().map(|part| part.round).max().unwrap_or(1),
            },
        }
    }
}

/// Where response times go to be judged.
pub(crate) enum Desk<'a, 'c> {
    /// To a judge on this thread.
    Here(&'a Mutex<Judge<'c>>),
    /// To a judge on a thread of its own.
    There(SyncSender<(usize, Vec<u64>)>),
}

/// A trace that hands on what it records.
pub(crate) struct Watched<'a, 'c> {
    pub(crate) trace: Recorder<'c>,
    process: usize,
    desk: Desk<'a, 'c>,
    control: &'c Control,
    max_time: Nanos,
    ending: Ending,
    /// I/Os of this process that the budget allows.
    budget: usize,
    /// I/Os that were handed on, and how many must be known before more are.
    sent: usize,
    due: usize,
}

impl<'a, 'c> Watched<'a, 'c> {
    pub(crate) fn new(
        process: usize,
        mut trace: Recorder<'c>,
        desk: Desk<'a, 'c>,
        control: &'c Control,
        stop: &Stop,
        ending: Ending,
    ) -> Watched<'a, 'c> {
        let max_time = Nanos(stop.max_time_ns.unwrap_or(u64::MAX));
        let budget = trace.total();
        trace.judged_to(0);
        Watched { trace, process, desk, control, max_time, ending, budget, sent: 0, due: PIECE.0 }
    }

    /// Hand on what is known.
    ///
    /// A judge on another thread may be behind: nobody waits for it before the run is over.
    fn send(&mut self, is_over: bool) {
        loop {
            let times = self.trace.known_from(self.sent);
            if times.is_empty() {
                break;
            }
            match &self.desk {
                Desk::Here(judge) => {
                    judge.lock().expect("no panic while held").receive(self.process, times);
                }
                // The judge goes away only with the run.
                Desk::There(judge) if is_over => drop(judge.send((self.process, times.to_vec()))),
                Desk::There(judge) => {
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
        self.trace.judged_to(self.sent);
        let known = self.sent.max(self.due);
        self.due = known + (known / 32).clamp(PIECE.0, PIECE.1);
    }

    /// What was recorded, when all of it was handed on.
    pub(crate) fn into_recorder(mut self) -> Recorder<'c> {
        self.send(true);
        self.trace
    }
}

impl<D: Device<Request = Io>> Record<D> for Watched<'_, '_> {
    #[inline]
    fn record(
        &mut self,
        index: usize,
        io: &Io,
        start: Nanos,
        arrived: Nanos,
        completion: &Completion<D::Breakdown, D::Status>,
    ) {
        Record::<D>::record(&mut self.trace, index, io, start, arrived, completion);
        if index + 1 >= self.due {
            self.send(false);
        }
        let is_late = completion.completed.0 - start.0 >= self.max_time.0;
        // What is left of patterns side by side when one is at its budget is no longer side by side.
        let is_alone = index + 1 == self.budget && matches!(self.ending, Ending::Here { .. });
        if (is_late || is_alone) && !self.control.is_ending() {
            self.control.end(self.ending, 0);
        }
    }
}
