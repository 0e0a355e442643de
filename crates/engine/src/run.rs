//! From a validated pattern to a trace.

use uflip_core::{Breakdown, Device, Io, Result};

use crate::drive::{Control, Submitter, drive};
use crate::spec::Resolved;
use crate::trace::Trace;

/// Drive `device` with `pattern` and return every I/O.
///
/// # Errors
/// The first error of the device, of any process (the others are then stopped too), or
/// [`uflip_core::ErrorKind::Interrupted`] after [`Control::cancel`].
///
/// # Panics
/// Where a submitting thread panics.
pub fn run<D>(device: &mut D, pattern: Resolved, control: &Control) -> Result<Trace>
where
    D: Device<Request = Io> + Send,
{
    let names = <D::Breakdown as Breakdown>::CAUSES;
    let streams = pattern.streams.iter().enumerate();
    let mut submitters: Vec<Submitter> =
        streams.map(|(process, spec)| Submitter::new(process, spec, names.len())).collect();
    let handles = if submitters.len() == 1 { None } else { device.split(submitters.len())? };
    match handles {
        None => {
            let start = device.now();
            drive(device, &mut submitters, start, control)?;
        }
        Some(handles) => drive_threads(handles, &mut submitters, control)?,
    }
    let mut traces = submitters.into_iter().map(|submitter| submitter.trace);
    let mut whole = traces.next().expect("a pattern has at least one process");
    traces.for_each(|more| whole.append(more));
    whole.causes = names.iter().map(|name| (*name).to_owned()).collect();
    whole.pattern = pattern;
    Ok(whole)
}

/// One thread per process; all of them count their time from the same instant.
fn drive_threads<D>(
    mut handles: Vec<D>,
    submitters: &mut [Submitter],
    control: &Control,
) -> Result<()>
where
    D: Device<Request = Io> + Send,
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
