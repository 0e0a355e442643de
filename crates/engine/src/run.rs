//! From a validated pattern to a trace.

use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

use uflip_core::{Breakdown, Device, Io, Result};

use crate::drive::{Control, Ending, Record, Requests, Submitter, drive};
use crate::judge::{Desk, Ended, Judge, SLACK, Watched};
use crate::pattern::Pattern;
use crate::recorder::{Plan, Recorder};
use crate::spec::{Part, Resolved, Stop};
use crate::threads::{Gate, no_thread, thread};
use crate::trace::Trace;

/// So many pieces may wait for a judge on a thread of its own: 32 MiB. What it is behind with beyond
/// that waits in the trace.
const PIECES: usize = 1024;

/// Drive `device` with `pattern` and return every I/O.
///
/// # Errors
/// A pattern that the kind of device cannot do; the first error of the device, of any process (the
/// others are then stopped too), or [`uflip_core::ErrorKind::Interrupted`] after
/// [`Control::cancel`].
///
/// # Panics
/// Where a submitting thread panics.
pub fn run<D>(device: &mut D, pattern: Resolved, control: &Control) -> Result<Trace>
where
    D: Device<Request = Io> + Send,
{
    pattern.check_on(device.info().kind)?;
    let (traces, pattern, ended) = match pattern.stop {
        None => (fixed_length(device, &pattern, control)?, pattern, None),
        Some(stop) => {
            let (traces, ended, startups) = found_length(device, &pattern, &stop, control)?;
            let pattern = pattern.of_lengths(&lengths(&traces, &pattern, &startups));
            (traces, pattern, Some(ended))
        }
    };
    let mut whole = one_trace::<D>(traces.into_iter());
    whole.pattern = pattern;
    whole.ended = ended.map(|ended| serde_json::to_value(ended).expect("plain data"));
    Ok(whole)
}

/// The traces of all processes in one.
pub(crate) fn one_trace<D: Device>(mut traces: impl Iterator<Item = Trace>) -> Trace {
    let mut whole = traces.next().expect("a pattern has at least one process");
    traces.for_each(|more| whole.append(more));
    let names = <D::Breakdown as Breakdown>::CAUSES;
    whole.causes = names.iter().map(|name| (*name).to_owned()).collect();
    whole
}

/// `io_count` and `io_ignore` of each part of a pattern that made these traces.
fn lengths(traces: &[Trace], pattern: &Resolved, startups: &[u64]) -> Vec<(u64, u64)> {
    let mut process = 0;
    let mut length = |(part, startup): (&Part, &u64)| {
        let io_count = traces[process].len() as u64 / part.round;
        process += part.processes;
        (io_count, (*startup).min(io_count - 1))
    };
    pattern.parts.iter().zip(startups).map(&mut length).collect()
}

/// Every I/O of a pattern that says how long it is, a trace for each process.
fn fixed_length<D>(device: &mut D, pattern: &Resolved, control: &Control) -> Result<Vec<Trace>>
where
    D: Device<Request = Io> + Send,
{
    let mut submitters = submitters(device, pattern, control, |_, trace| trace)?;
    let driven = drive_all(device, &mut submitters, control);
    kept(submitters.iter_mut().map(|submitter| &mut submitter.trace), driven)?;
    Ok(submitters.into_iter().map(whole).collect())
}

/// The same until the judge has seen enough: the traces, how it ended, and the start-up of each part.
fn found_length<D>(
    device: &mut D,
    pattern: &Resolved,
    stop: &Stop,
    control: &Control,
) -> Result<(Vec<Trace>, Ended, Vec<u64>)>
where
    D: Device<Request = Io> + Send,
{
    let ending = Ending::of(pattern);
    let (traces, judge) = if device.info().simulated {
        let judge = Mutex::new(Judge::new(pattern, stop, control, 0));
        let traces = drive_watched(device, pattern, control, |process, trace| {
            Watched::new(process, trace, Desk::Here(&judge), control, stop, ending)
        });
        let mut judge = judge.into_inner().expect("no panic while held");
        (judge.failure().map_or(traces, Err)?, judge)
    } else {
        std::thread::scope(|scope| {
            let (sender, pieces) = sync_channel(PIECES);
            let judge = Judge::new(pattern, stop, control, SLACK);
            let judge = thread()
                .spawn_scoped(scope, move || judge.listen(&pieces))
                .map_err(|error| no_thread(&error))?;
            let traces = drive_watched(device, pattern, control, |process, trace| {
                let desk = Desk::There(sender.clone());
                Watched::new(process, trace, desk, control, stop, ending)
            });
            drop(sender);
            let mut judge = judge.join().expect("the judge panicked");
            judge.failure().map_or(traces, Err).map(|traces| (traces, judge))
        })?
    };
    let mut made = traces.iter().map(Trace::len).zip(&pattern.streams);
    let budget_is_spent = made.any(|(ios, stream)| ios as u64 == stream.total_ios);
    let (ended, startups) = judge.ended(stop, budget_is_spent);
    let mut traces = traces;
    let mut left = traces.as_mut_slice();
    for part in &pattern.parts {
        let own;
        (own, left) = left.split_at_mut(part.processes);
        to_one_length(own, part.round as usize);
    }
    Ok((traces, ended, startups))
}

fn drive_watched<'a, 'c: 'a, D>(
    device: &mut D,
    pattern: &Resolved,
    control: &'c Control,
    watched: impl Fn(usize, Recorder<'c>) -> Watched<'a, 'c>,
) -> Result<Vec<Trace>>
where
    D: Device<Request = Io> + Send,
{
    let mut submitters = submitters(device, pattern, control, watched)?;
    let driven = drive_all(device, &mut submitters, control);
    kept(submitters.iter_mut().map(|submitter| &mut submitter.trace.trace), driven)?;
    Ok(submitters
        .into_iter()
        .map(|submitter| {
            let ios = submitter.done();
            submitter.trace.into_recorder().into_trace(ios)
        })
        .collect())
}

/// How driving ended; where memory was used up, that is why.
pub(crate) fn kept<'a, 'c: 'a>(
    mut recorders: impl Iterator<Item = &'a mut Recorder<'c>>,
    driven: Result<()>,
) -> Result<()> {
    recorders.find_map(Recorder::failure).map_or(driven, Err)
}

/// The whole trace of a process that is over.
pub(crate) fn whole(submitter: Submitter<Pattern, Recorder<'_>>) -> Trace {
    let ios = submitter.done();
    submitter.trace.into_trace(ios)
}

/// A process that was told too late to end made a few I/Os more than the others.
fn to_one_length(traces: &mut [Trace], round: usize) {
    let shortest = traces.iter().map(Trace::len).min().unwrap_or(0);
    for trace in traces {
        trace.truncate((shortest / round * round).max(round.min(shortest)));
    }
}

/// A submitter for each process, with what `keep` makes of what records it.
///
/// # Errors
/// Where there is not enough memory.
pub(crate) fn submitters<'c, D: Device, T>(
    device: &D,
    pattern: &Resolved,
    control: &'c Control,
    keep: impl Fn(usize, Recorder<'c>) -> T,
) -> Result<Vec<Submitter<Pattern, T>>> {
    let plan = Plan {
        processes: pattern.streams.len(),
        causes: <D::Breakdown as Breakdown>::CAUSES.len(),
        in_real_time: !device.info().simulated,
        has_open_end: pattern.stop.is_some(),
    };
    if !plan.has_open_end {
        let all = pattern.totals.total_ios as usize;
        plan.check(all, all, control)?;
    }
    let streams = pattern.streams.iter().enumerate();
    streams
        .map(|(process, spec)| {
            let recorder = Recorder::new(plan, spec.total_ios as usize, control)?;
            Ok(Submitter::new(process, Pattern::new(spec), spec.total_ios, keep(process, recorder))
                .with_queue(spec.queue_depth as usize))
        })
        .collect()
}

/// Drive `device` with all `submitters`: on threads of their own where the device has a handle for
/// each, and otherwise in one loop.
pub(crate) fn drive_all<D, P, T>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    control: &Control,
) -> Result<()>
where
    D: Device + Send,
    P: Requests<Request = D::Request>,
    T: Record<D>,
{
    let handles = if submitters.len() == 1 { None } else { device.split(submitters.len())? };
    match handles {
        None => {
            let start = device.now();
            drive(device, submitters, start, control)
        }
        Some(handles) => drive_threads(handles, submitters, control),
    }
}

/// One thread per process; all of them count their time from the same instant.
fn drive_threads<D, P, T>(
    mut handles: Vec<D>,
    submitters: &mut [Submitter<P, T>],
    control: &Control,
) -> Result<()>
where
    D: Device + Send,
    P: Requests<Request = D::Request>,
    T: Record<D>,
{
    let start = handles[0].now();
    let gate = &Gate::new(handles.len());
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let each = handles.iter_mut().zip(submitters.chunks_mut(1));
        let threads: Vec<_> = each
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
    // The error that began it, not the cancellations that followed from it.
    let mut errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| error.kind() == uflip_core::ErrorKind::Interrupted);
    errors.into_iter().next().map_or(Ok(()), Err)
}
