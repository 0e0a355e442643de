//! From a validated pattern to a trace.

use uflip_core::{Breakdown, Device, Io, Result};

use crate::drive::{Control, Record, Requests, Submitter, drive};
use crate::pattern::Pattern;
use crate::spec::Resolved;
use crate::trace::Trace;

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
    let names = <D::Breakdown as Breakdown>::CAUSES;
    let streams = pattern.streams.iter().enumerate();
    let mut submitters: Vec<_> = streams
        .map(|(process, spec)| {
            let trace = Trace::with_capacity(spec.total_ios as usize, names.len());
            Submitter::new(process, Pattern::new(spec), spec.total_ios, trace)
                .with_queue(spec.queue_depth as usize)
        })
        .collect();
    drive_all(device, &mut submitters, control)?;
    let mut traces = submitters.into_iter().map(|submitter| submitter.trace);
    let mut whole = traces.next().expect("a pattern has at least one process");
    traces.for_each(|more| whole.append(more));
    whole.causes = names.iter().map(|name| (*name).to_owned()).collect();
    whole.pattern = pattern;
    Ok(whole)
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
    let barrier = std::sync::Barrier::new(handles.len());
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = handles
            .iter_mut()
            .zip(submitters.chunks_mut(1))
            .map(|(handle, submitter)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    let result = drive(handle, submitter, start, control);
                    if result.is_err() {
                        control.cancel();
                    }
                    result
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a submitter panicked")).collect()
    });
    // The error that began it, not the cancellations that followed from it.
    let mut errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| error.kind() == uflip_core::ErrorKind::Interrupted);
    errors.into_iter().next().map_or(Ok(()), Err)
}
