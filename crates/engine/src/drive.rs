//! The one loop that drives a device, real or simulated.
//!
//! Every submitter has at most one I/O outstanding (synchronous I/O, uFLIP §4.3). The loop either
//! submits the I/O that is due earliest or takes the next completion, whichever comes first on the
//! device's clock. On a real device every submitter is a thread with a loop of its own, and the
//! choice is trivial; in virtual time one loop interleaves all of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use uflip_core::{Completion, Device, Error, ErrorKind, Nanos, Result, Ticket};

use crate::pattern::Next;

/// Where the requests of one process come from.
pub trait Requests: Send {
    /// What the device takes: the device's own [`Device::Request`].
    type Request: Copy + Send;

    /// The next request, and the pause before it. Asked for once more than there are requests.
    fn next_request(&mut self) -> Next<Self::Request>;
}

/// What keeps the completions of one process.
pub trait Record<D: Device>: Send {
    /// Request number `index` of its process came back. `start` is the instant that times count from.
    fn record(
        &mut self,
        index: usize,
        request: &D::Request,
        start: Nanos,
        completion: &Completion<D::Breakdown, D::Status>,
    );
}

/// What another thread may see and say of a run in progress.
#[derive(Debug)]
pub struct Control {
    cancelled: AtomicBool,
    processes: Vec<Progress>,
}

/// One process's own cache line: a plain store an I/O, never a contended one.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Progress {
    done: AtomicU64,
    last_response_ns: AtomicU64,
}

impl Control {
    /// For a run of so many processes.
    #[must_use]
    pub fn new(processes: usize) -> Control {
        let processes = (0..processes).map(|_| Progress::default()).collect();
        Control { cancelled: AtomicBool::new(false), processes }
    }

    /// Ask the run to stop after the I/Os that are under way.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// I/Os done so far, and the last response time of the first process [ns].
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let done = self.processes.iter().map(|process| process.done.load(Ordering::Relaxed)).sum();
        let last = self
            .processes
            .first()
            .map_or(0, |process| process.last_response_ns.load(Ordering::Relaxed));
        (done, last)
    }
}

/// One process: its requests, where it stands, and what it recorded.
pub(crate) struct Submitter<P: Requests, T> {
    process: usize,
    requests: P,
    left: u64,
    done: usize,
    due: Nanos,
    /// Whether `due` lies after a pause, so that time must be let pass.
    paused: bool,
    outstanding: Option<(Ticket, P::Request)>,
    next: P::Request,
    pub(crate) trace: T,
}

impl<P: Requests, T> Submitter<P, T> {
    /// Process number `process`, which will make `total` of its `requests`.
    pub(crate) fn new(process: usize, mut requests: P, total: u64, trace: T) -> Submitter<P, T> {
        let next = requests.next_request().io;
        Submitter {
            process,
            requests,
            left: total,
            done: 0,
            due: Nanos(0),
            paused: false,
            outstanding: None,
            next,
            trace,
        }
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.outstanding.is_none() && self.left > 0
    }
}

/// Run all `submitters` against `device` until each has issued all of its I/Os.
pub(crate) fn drive<D: Device, P: Requests<Request = D::Request>, T: Record<D>>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    start: Nanos,
    control: &Control,
) -> Result<()> {
    for submitter in submitters.iter_mut() {
        submitter.due = start;
    }
    loop {
        let next_completion = device.next_completion();
        let earliest = submitters
            .iter_mut()
            .filter(|submitter| submitter.is_idle())
            .min_by_key(|submitter| submitter.due);
        match earliest {
            Some(submitter) if next_completion.is_none_or(|t| submitter.due <= t) => {
                if control.cancelled.load(Ordering::Relaxed) {
                    return Err(cancelled());
                }
                submit(device, submitter)?;
            }
            _ if next_completion.is_some() => complete(device, submitters, start, control)?,
            _ => return Ok(()),
        }
    }
}

#[inline(always)]
fn submit<D: Device, P: Requests<Request = D::Request>, T>(
    device: &mut D,
    submitter: &mut Submitter<P, T>,
) -> Result<()> {
    if submitter.paused {
        device.wait_until(submitter.due);
    }
    let request = submitter.next;
    let ticket = device.submit(&request)?;
    submitter.outstanding = Some((ticket, request));
    submitter.left -= 1;
    Ok(())
}

#[inline(always)]
fn complete<D: Device, P: Requests<Request = D::Request>, T: Record<D>>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    start: Nanos,
    control: &Control,
) -> Result<()> {
    let completion = device.complete()?;
    let submitter = submitters
        .iter_mut()
        .find(|submitter| submitter.outstanding.is_some_and(|(t, _)| t == completion.ticket))
        .expect("a completion belongs to a submitter");
    let (_, request) = submitter.outstanding.take().expect("just found by it");
    let (submitted, completed) = (completion.submitted, completion.completed);
    let index = submitter.done;
    submitter.trace.record(index, &request, start, &completion);
    submitter.done = index + 1;
    let next = submitter.requests.next_request();
    device.prefetch(&next.io);
    submitter.next = next.io;
    submitter.paused = next.pause > Nanos(0);
    submitter.due = completed + next.pause;
    let progress = &control.processes[submitter.process];
    progress.done.store(submitter.done as u64, Ordering::Relaxed);
    progress.last_response_ns.store(completed.0 - submitted.0, Ordering::Relaxed);
    Ok(())
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Interrupted, "The run was interrupted")
}
