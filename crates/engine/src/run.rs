//! Runs a validated pattern and returns its trace; or several patterns on a device back to back, each on
//! the state that the previous one leaves.
//!
//! uFLIP §4.3 measures how long random writes affect the reads that follow them. A device that is idle
//! between the two, even while a trace is stored, begins to recover. All memory of a series is therefore
//! allocated before the first I/O. Between the last completion of a pattern and the first submission of
//! the next there are two clock readings.
//!
//! The threads of a run start together or not at all; a failure to start one is an error.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::Builder;

use uflip_core::{Counters, Device, Error, ErrorKind, Io, Nanos, Result};

use crate::drive::{Control, RecordCompletion, Requests, StopPosition, Submitter, drive};
use crate::judge::{Judge, JudgeLink, JudgedRecorder, SLACK, StopRecord};
use crate::pattern::Pattern;
use crate::recorder::{FullBlock, RecordedIos, RecordingPlan, RunRecorder, Sink, pass_to_sink};
use crate::spec::{ProcessGroup, Resolved, Stop};
use crate::trace::{Causes, Columns, Trace};

/// The largest number of pieces queued for a judge on its own thread: 32 MiB. A longer backlog
/// stays in the trace.
const MAX_QUEUED_PIECES: usize = 1024;

/// The outcome of a run: every I/O that no sink took, and the properties of the whole run.
pub struct RunOutcome {
    /// The complete pattern that was run. A sink may have received more I/Os of some processes.
    pub pattern: Resolved,
    /// The names of the causes.
    pub causes: Vec<String>,
    /// The stopping record, if the run had a stop rule.
    pub stop_record: Option<serde_json::Value>,
    /// The last I/Os of each process, which were not handed over.
    pub rest: Vec<Columns>,
}

/// Drive `device` with `pattern` and return every I/O.
///
/// # Errors
/// A pattern that the kind of device does not support; the first error of the device in any process
/// (which also stops the others); or [`uflip_core::ErrorKind::Interrupted`] after
/// [`Control::cancel`].
///
/// # Panics
/// If a submitting thread panics.
pub fn run<D>(device: &mut D, pattern: Resolved, control: &Control) -> Result<Trace>
where
    D: Device<Request = Io> + Send,
{
    let RunOutcome { pattern, causes, stop_record, rest } =
        run_with_output(device, pattern, control, None)?;
    let columns = Columns::concat(rest, causes.len());
    Ok(Trace { pattern, columns, causes, stop_record })
}

/// Run like [`run`], but hand the I/Os of a long run to `sink`, so that memory is bounded.
///
/// # Errors
/// As [`run`]; any error of the sink; I/Os of a real device that come faster than the sink takes
/// them.
///
/// # Panics
/// If a submitting thread or the sink panics.
pub fn run_into<D>(
    device: &mut D,
    pattern: Resolved,
    control: &Control,
    sink: &mut dyn Sink,
) -> Result<RunOutcome>
where
    D: Device<Request = Io> + Send,
{
    let plan = plan(device, &pattern, true);
    let max_ios = pattern.streams.iter().map(|stream| stream.total_ios).max().unwrap_or(0);
    if plan.is_preallocated(max_ios as usize) {
        return run_with_output(device, pattern, control, None);
    }
    std::thread::scope(|scope| {
        let (out, blocks) = sync_channel(plan.backlog());
        let writer = std::thread::Builder::new()
            .spawn_scoped(scope, move || pass_to_sink(&blocks, sink, control))
            .map_err(|error| no_thread(&error))?;
        let outcome = run_with_output(device, pattern, control, Some(&out));
        drop(out);
        writer.join().expect("the sink panicked").and(outcome)
    })
}

fn run_with_output<D>(
    device: &mut D,
    pattern: Resolved,
    control: &Control,
    out: Option<&SyncSender<FullBlock>>,
) -> Result<RunOutcome>
where
    D: Device<Request = Io> + Send,
{
    pattern.check_on(device.info().kind)?;
    pattern.check_streams(device.info())?;
    pattern.check_complete()?;
    device.set_content(pattern.content())?;
    let causes = Causes::for_run::<D>(&pattern).names();
    let (recorded, pattern, stop_record) = match pattern.stop {
        None => {
            let (recorded, ramp_ios) = run_fixed_length(device, &pattern, control, out)?;
            if pattern.is_timed() {
                let (recorded, pattern) = with_measured_lengths(recorded, &ramp_ios, &pattern)?;
                (recorded, pattern, None)
            } else {
                (recorded, pattern, None)
            }
        }
        Some(stop) => {
            let (recorded, stop_record, startups) =
                run_until_stop(device, &pattern, &stop, control, out)?;
            let pattern = pattern.with_lengths(&lengths(&recorded, &pattern, &startups));
            (recorded, pattern, Some(stop_record))
        }
    };
    Ok(RunOutcome {
        pattern,
        causes,
        stop_record: stop_record
            .map(|stop_record| serde_json::to_value(stop_record).expect("serializable")),
        rest: recorded.into_iter().map(|ios| ios.rest).collect(),
    })
}

/// Return `io_count` and `io_ignore` of each part of the pattern, from the recorded I/Os.
fn lengths(recorded: &[RecordedIos], pattern: &Resolved, startups: &[u64]) -> Vec<(u64, u64)> {
    let mut process = 0;
    let mut length = |(part, startup): (&ProcessGroup, &u64)| {
        let io_count = recorded[process].len() as u64 / part.round;
        process += part.processes;
        (io_count, (*startup).min(io_count - 1))
    };
    pattern.groups.iter().zip(startups).map(&mut length).collect()
}

/// Return the I/Os, and the pattern with their numbers, of a run that ended by its time.
fn with_measured_lengths(
    mut recorded: Vec<RecordedIos>,
    ramp_ios: &[u64],
    pattern: &Resolved,
) -> Result<(Vec<RecordedIos>, Resolved)> {
    truncate_groups(&mut recorded, pattern);
    let (mut ignored, mut process) = (Vec::new(), 0);
    for part in &pattern.groups {
        let processes = process..process + part.processes;
        process = processes.end;
        let ramp = ramp_ios[processes.clone()].iter().copied().max().unwrap_or(0);
        let ios = ramp.max(pattern.streams[processes.start].ignored_ios).div_ceil(part.round);
        let whole = recorded[processes.start].len() as u64 / part.round;
        if whole <= ios {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "The run ended before it measured an I/O",
            )
            .at("run_time, ramp_time")
            .got(format!("{whole} I/Os of a process, the first {ios} of them ignored"))
            .allowed("at least one I/O that is measured")
            .action("give a longer run_time, a shorter ramp_time or a larger io_count"));
        }
        ignored.push(ios);
    }
    let pattern = pattern.with_lengths(&lengths(&recorded, pattern, &ignored));
    Ok((recorded, pattern))
}

/// Run a pattern of fixed length, or for its time; also return the I/Os of each ramp.
fn run_fixed_length<D>(
    device: &mut D,
    pattern: &Resolved,
    control: &Control,
    out: Option<&SyncSender<FullBlock>>,
) -> Result<(Vec<RecordedIos>, Vec<u64>)>
where
    D: Device<Request = Io> + Send,
{
    let mut submitters = submitters(device, pattern, control, out, |_, trace| trace)?;
    let result = drive_all(device, &mut submitters, control);
    first_failure(submitters.iter_mut().map(|submitter| &mut submitter.trace), result)?;
    let ramp_ios = submitters.iter().map(Submitter::ramp_ios).collect();
    Ok((submitters.into_iter().map(into_recorded).collect(), ramp_ios))
}

/// Run until the judge decides; return the I/Os, the stopping record, and the start-up of each
/// part.
fn run_until_stop<D>(
    device: &mut D,
    pattern: &Resolved,
    stop: &Stop,
    control: &Control,
    out: Option<&SyncSender<FullBlock>>,
) -> Result<(Vec<RecordedIos>, StopRecord, Vec<u64>)>
where
    D: Device<Request = Io> + Send,
{
    let stop_position = StopPosition::for_pattern(pattern);
    let (traces, judge) = if device.info().simulated {
        let judge = Mutex::new(Judge::new(pattern, stop, control, 0));
        let traces = drive_judged(device, pattern, control, out, |process, trace| {
            JudgedRecorder::new(
                process,
                trace,
                JudgeLink::Local(&judge),
                control,
                stop,
                stop_position,
            )
        });
        let mut judge = judge.into_inner().expect("the lock is not poisoned");
        (judge.take_failure().map_or(traces, Err)?, judge)
    } else {
        std::thread::scope(|scope| {
            let (sender, pieces) = sync_channel(MAX_QUEUED_PIECES);
            let judge = Judge::new(pattern, stop, control, SLACK);
            let judge = thread()
                .spawn_scoped(scope, move || judge.receive_all(&pieces))
                .map_err(|error| no_thread(&error))?;
            let traces = drive_judged(device, pattern, control, out, |process, trace| {
                let link = JudgeLink::Thread(sender.clone());
                JudgedRecorder::new(process, trace, link, control, stop, stop_position)
            });
            drop(sender);
            let mut judge = judge.join().expect("the judge panicked");
            judge.take_failure().map_or(traces, Err).map(|traces| (traces, judge))
        })?
    };
    let mut lengths = traces.iter().map(RecordedIos::len).zip(&pattern.streams);
    let budget_is_spent = lengths.any(|(ios, stream)| ios as u64 == stream.total_ios);
    let (stop_record, startups) = judge.into_stop_record(stop, budget_is_spent);
    let mut traces = traces;
    truncate_groups(&mut traces, pattern);
    Ok((traces, stop_record, startups))
}

fn drive_judged<'a, 'c: 'a, D>(
    device: &mut D,
    pattern: &Resolved,
    control: &'c Control,
    out: Option<&SyncSender<FullBlock>>,
    wrap: impl Fn(usize, RunRecorder<'c>) -> JudgedRecorder<'a, 'c>,
) -> Result<Vec<RecordedIos>>
where
    D: Device<Request = Io> + Send,
{
    let mut submitters = submitters(device, pattern, control, out, wrap)?;
    let result = drive_all(device, &mut submitters, control);
    first_failure(submitters.iter_mut().map(|submitter| &mut submitter.trace.trace), result)?;
    Ok(submitters
        .into_iter()
        .map(|submitter| {
            let ios = submitter.done();
            submitter.trace.into_recorder().into_recorded(ios)
        })
        .collect())
}

/// Return the first failure of a recorder (memory), else the result of driving.
pub(crate) fn first_failure<'a, 'c: 'a>(
    mut recorders: impl Iterator<Item = &'a mut RunRecorder<'c>>,
    result: Result<()>,
) -> Result<()> {
    recorders.find_map(RunRecorder::take_failure).map_or(result, Err)
}

/// Return the recorded I/Os of a completed process.
pub(crate) fn into_recorded(submitter: Submitter<Pattern, RunRecorder<'_>>) -> RecordedIos {
    let ios = submitter.done();
    submitter.trace.into_recorded(ios)
}

/// Truncate the processes of each part to a common length.
fn truncate_groups(traces: &mut [RecordedIos], pattern: &Resolved) {
    let mut remaining = traces;
    for part in &pattern.groups {
        let part_traces;
        (part_traces, remaining) = remaining.split_at_mut(part.processes);
        truncate_to_shortest(part_traces, part.round as usize);
    }
}

/// Truncate to whole rounds of the shortest: a process may submit a few I/Os before it sees the
/// end.
fn truncate_to_shortest(traces: &mut [RecordedIos], round: usize) {
    let shortest = traces.iter().map(RecordedIos::len).min().unwrap_or(0);
    for trace in traces {
        trace.truncate((shortest / round * round).max(round.min(shortest)));
    }
}

/// Create a submitter for each process; `wrap` wraps its recorder. Full blocks go `out`.
///
/// # Errors
/// If memory is insufficient.
pub(crate) fn submitters<'c, D: Device, T>(
    device: &D,
    pattern: &Resolved,
    control: &'c Control,
    out: Option<&SyncSender<FullBlock>>,
    wrap: impl Fn(usize, RunRecorder<'c>) -> T,
) -> Result<Vec<Submitter<Pattern, T>>> {
    let plan = plan(device, pattern, out.is_some());
    let causes = Causes::for_run::<D>(pattern);
    if !plan.has_open_end {
        let all = pattern.totals.total_ios as usize;
        plan.check(all, all, control)?;
    }
    let streams = pattern.streams.iter().enumerate();
    streams
        .map(|(process, spec)| {
            let recorder =
                RunRecorder::new(plan, causes, process, spec.total_ios as usize, control, out)?;
            Ok(Submitter::new(process, Pattern::new(spec), spec.total_ios, wrap(process, recorder))
                .with_queue(spec.queue_depth as usize)
                .with_time_limit(spec.time_limit))
        })
        .collect()
}

fn plan<D: Device>(device: &D, pattern: &Resolved, has_sink: bool) -> RecordingPlan {
    RecordingPlan {
        processes: pattern.streams.len(),
        causes: Causes::for_run::<D>(pattern).count(),
        in_real_time: !device.info().simulated,
        has_open_end: pattern.stop.is_some() || pattern.is_timed(),
        has_sink,
    }
}

/// Drive `device` with all `submitters`: on separate threads if the device has a handle for each,
/// otherwise in one loop.
pub(crate) fn drive_all<D, P, T>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    control: &Control,
) -> Result<()>
where
    D: Device + Send,
    P: Requests<Request = D::Request>,
    T: RecordCompletion<D>,
{
    let handles = if submitters.len() == 1 { None } else { device.split(submitters.len())? };
    match handles {
        None => {
            let start = device.now();
            control.record_begin(start);
            drive(device, submitters, start, control)
        }
        Some(handles) => drive_threads(handles, submitters, control),
    }
}

/// Drive one thread per process; all measure time from the same instant.
fn drive_threads<D, P, T>(
    mut handles: Vec<D>,
    submitters: &mut [Submitter<P, T>],
    control: &Control,
) -> Result<()>
where
    D: Device + Send,
    P: Requests<Request = D::Request>,
    T: RecordCompletion<D>,
{
    let start = handles[0].now();
    control.record_begin(start);
    let gate = &Gate::new(handles.len());
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let pairs = handles.iter_mut().zip(submitters.chunks_mut(1));
        let threads: Vec<_> = pairs
            .map(|(handle, submitter)| {
                let work = move || {
                    if !gate.pass() {
                        return Ok(());
                    }
                    let result = drive(handle, submitter, start, control);
                    if result.is_err() {
                        control.cancel();
                    }
                    result
                };
                thread().spawn_scoped(scope, work).map_err(|error| {
                    gate.shut();
                    no_thread(&error)
                })
            })
            .collect();
        let ends = threads.into_iter().map(|thread| thread?.join().expect("a submitter panicked"));
        ends.collect()
    });
    // Report the original error before the cancellations that followed from it.
    let mut errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| error.kind() == uflip_core::ErrorKind::Interrupted);
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// The result of one pattern of a series.
pub struct SeriesPart {
    /// Every I/O; times count from `began`.
    pub trace: Trace,
    /// The start of the pattern, from the start of the series.
    pub began: Nanos,
    /// The device's counters during the pattern; `None` if the device has none.
    pub counters: Option<Counters>,
}

/// Drive `device` with `patterns` back to back.
///
/// # Errors
/// As [`crate::run`]; a pattern with a stop rule.
pub fn run_series<D>(
    device: &mut D,
    patterns: Vec<Resolved>,
    control: &Control,
) -> Result<Vec<SeriesPart>>
where
    D: Device<Request = Io> + Send,
{
    for pattern in &patterns {
        pattern.check_on(device.info().kind)?;
        pattern.check_streams(device.info())?;
        pattern.check_complete()?;
        if pattern.stop.is_some() || pattern.is_timed() {
            return Err(Error::usage("A pattern of a series needs a fixed length")
                .got("'stop', 'run_time' or 'ramp_time'")
                .action("give 'io_count' instead, or run the pattern alone"));
        }
    }
    let prepare = |pattern| submitters(device, pattern, control, None, |_, recorder| recorder);
    let mut prepared = patterns.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    let mut marks = Vec::with_capacity(patterns.len() + 1);
    for (submitters, pattern) in prepared.iter_mut().zip(&patterns) {
        device.set_content(pattern.content())?;
        marks.push((device.now(), device.counters()));
        let result = drive_all(device, submitters, control);
        first_failure(submitters.iter_mut().map(|submitter| &mut submitter.trace), result)?;
        control.begin_next_part();
    }
    marks.push((device.now(), device.counters()));
    let start = marks[0].0;
    let parts = prepared.into_iter().zip(patterns).zip(marks.windows(2));
    Ok(parts
        .map(|((submitters, pattern), mark)| {
            let causes = Causes::for_run::<D>(&pattern).names();
            let recorded =
                submitters.into_iter().map(|submitter| into_recorded(submitter).rest).collect();
            let columns = Columns::concat(recorded, causes.len());
            let trace = Trace { pattern, columns, causes, stop_record: None };
            let counters = mark[0].1.zip(mark[1].1).map(|(before, after)| after.since(&before));
            SeriesPart { trace, began: mark[0].0 - start, counters }
        })
        .collect())
}

/// An I/O loop needs little stack; the usual 2 MiB would be gigabytes for a thousand processes.
const STACK_BYTES: usize = 512 << 10;

/// Return the builder of a thread of a run.
pub(crate) fn thread() -> Builder {
    Builder::new().stack_size(STACK_BYTES)
}

/// Create the error for a thread that the system refuses.
fn no_thread(error: &io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "A thread of the run cannot be started")
        .at("parallel_degree")
        .got(error.to_string())
        .allowed("a number of threads within the limits of the process and its memory")
        .action("use fewer processes, or raise the limits (ulimit -u, -v, the cgroup)")
}

/// A barrier that can be cancelled: if one thread cannot start, the waiting ones would otherwise
/// block forever.
pub(crate) struct Gate {
    expected: usize,
    state: Mutex<GateState>,
    changed: Condvar,
}

struct GateState {
    arrived: usize,
    opened: Option<bool>,
}

impl Gate {
    pub(crate) fn new(expected: usize) -> Gate {
        let state = Mutex::new(GateState { arrived: 0, opened: None });
        Gate { expected, state, changed: Condvar::new() }
    }

    /// Wait until all threads have arrived; `false` if the gate was shut.
    pub(crate) fn pass(&self) -> bool {
        let mut state = self.state();
        state.arrived += 1;
        if state.arrived == self.expected && state.opened.is_none() {
            state.opened = Some(true);
            self.changed.notify_all();
        }
        let waiting = self.changed.wait_while(state, |state| state.opened.is_none());
        waiting.expect("the lock is not poisoned").opened == Some(true)
    }

    /// Release all waiting threads with `false`.
    fn shut(&self) {
        self.state().opened = Some(false);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().expect("the lock is not poisoned")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(expected: usize, started: usize) -> Vec<bool> {
        let gate = Gate::new(expected);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..started).map(|_| scope.spawn(|| gate.pass())).collect();
            if started < expected {
                gate.shut();
            }
            threads
                .into_iter()
                .map(|thread| thread.join().expect("the thread does not panic"))
                .collect()
        })
    }

    #[test]
    fn gate_opens_for_all_threads_or_none() {
        assert_eq!(passed(5, 5), [true; 5]);
        assert_eq!(passed(5, 4), [false; 4], "no thread waits for ever");
    }
}
