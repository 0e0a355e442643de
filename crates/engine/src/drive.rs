//! The one loop that drives a device, real or simulated.
//!
//! Every submitter has at most `queue_depth` I/Os outstanding; the default is one (synchronous I/O,
//! uFLIP §4.3). An I/O is due when the previous one has completed. In an open loop it is due at its
//! arrival, and a wait for a free queue entry counts as response time.
//!
//! The loop takes whichever comes first on the device's clock: the submission of the earliest due
//! I/O, or the next completion. On a real device every submitter is a thread with its own loop. In
//! virtual time one loop interleaves all submitters.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use uflip_core::{Completion, Device, Error, ErrorKind, Io, Nanos, Result, Ticket};

use crate::live::{Live, LiveIo};

/// The number of requests drawn ahead, so that a device in memory can prefetch its tables.
pub const AHEAD: usize = 8;

/// The interval at which a process that waits on a real clock checks for cancellation.
const CANCEL_POLL: Nanos = Nanos(100_000_000);

/// The due time of an I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// This long after the completion of the previous I/O; 0 for the first.
    After(Nanos),
    /// This long after the start of the run, independent of other I/Os: an open loop.
    At(Nanos),
}

/// When a process ends, and which of its first I/Os the statistics ignore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeLimit {
    /// I/Os that are due before are ignored.
    pub ramp: Nanos,
    /// No I/O is due at this time, or later.
    pub end: Nanos,
}

impl TimeLimit {
    /// No limit.
    pub const NONE: TimeLimit = TimeLimit { ramp: Nanos(0), end: Nanos(u64::MAX) };
}

/// One I/O with its due time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextRequest<R = Io> {
    /// The request.
    pub io: R,
    /// Its due time.
    pub when: When,
}

impl<R> NextRequest<R> {
    /// Return whether no I/O may be outstanding when it is submitted.
    #[inline]
    pub(crate) fn is_after_pause(&self) -> bool {
        matches!(self.when, When::After(pause) if pause > Nanos(0))
    }
}

/// The source of the requests of one process.
pub trait Requests: Send {
    /// The request type of the device: [`Device::Request`].
    type Request: Copy + Send;

    /// Return the next request, and the pause before it. The caller draws up to [`AHEAD`] more
    /// requests than it submits.
    fn next_request(&mut self) -> NextRequest<Self::Request>;

    /// Overwrite a submitted request with the next one; large requests are built in place.
    #[inline(always)]
    fn replace(&mut self, submitted: &mut NextRequest<Self::Request>) {
        *submitted = self.next_request();
    }
}

/// The recorder of the completions of one process.
pub trait RecordCompletion<D: Device>: Send {
    /// Record the completed request number `index` of its process. The run began at `start`. The
    /// response time counts from `arrived`: the arrival in an open loop, otherwise the submission.
    fn record(
        &mut self,
        index: usize,
        request: &D::Request,
        start: Nanos,
        arrived: Nanos,
        completion: &Completion<D::Breakdown, D::Status>,
    );

    /// Return the bytes of a request, and whether it writes them.
    fn amount(&self, _: &D::Request) -> (u64, bool) {
        (0, false)
    }

    /// Return whether the process ends before its last request.
    #[inline]
    fn is_finished(&self) -> bool {
        false
    }
}

/// A recorder that stores nothing.
impl<D: Device> RecordCompletion<D> for () {
    fn record(
        &mut self,
        _: usize,
        _: &D::Request,
        _: Nanos,
        _: Nanos,
        _: &Completion<D::Breakdown, D::Status>,
    ) {
    }
}

/// The rule for the last I/O of each process when a run is long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StopPosition {
    /// All processes end at the I/O count of the one furthest ahead, rounded up to whole rounds.
    InStep { round: u64 },
    /// Each process ends at its present position, after at least `least` I/Os.
    Separately { least: u64 },
}

/// The progress of a run, and its cancellation, shared between threads.
#[derive(Debug)]
pub struct Control {
    /// Returns the memory that may still be used [bytes].
    memory: fn() -> u64,
    /// The trace is read in pieces after the run, so reading needs no memory for whole columns.
    in_pieces: bool,
    cancelled: AtomicBool,
    /// The largest number of I/Os of a process; lowered when the run is long enough.
    limit: AtomicU64,
    /// I/Os of the completed parts of a series.
    completed_before: AtomicU64,
    processes: Vec<Progress>,
    /// The zero of all times of the run on the device's clock [ns]; 0 before it begins.
    began_ns: AtomicU64,
    /// The rows of the run while it lasts, if they are wanted.
    live: Option<Live>,
}

/// The progress of one process, in its own cache line: a plain store per I/O, without contention.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Progress {
    done: AtomicU64,
    last_response_ns: AtomicU64,
}

impl Control {
    /// Create the control of a run with this number of processes.
    #[must_use]
    pub fn new(processes: usize) -> Control {
        let processes = (0..processes).map(|_| Progress::default()).collect();
        let limit = AtomicU64::new(u64::MAX);
        let memory = || u64::MAX;
        Control {
            memory,
            in_pieces: false,
            cancelled: AtomicBool::new(false),
            limit,
            completed_before: AtomicU64::new(0),
            processes,
            began_ns: AtomicU64::new(0),
            live: None,
        }
    }

    /// Collect rows during the run.
    #[must_use]
    pub fn with_live(mut self, live: Option<Live>) -> Control {
        self.live = live;
        self
    }

    /// Return the rows of the run, if they are collected.
    #[must_use]
    pub fn live(&self) -> Option<&Live> {
        self.live.as_ref()
    }

    /// Set the function that returns the memory that may still be used [bytes].
    #[must_use]
    pub fn with_memory(mut self, available: fn() -> u64) -> Control {
        self.memory = available;
        self
    }

    /// Set whether the trace is read in pieces after the run.
    #[must_use]
    pub fn in_pieces(mut self, in_pieces: bool) -> Control {
        self.in_pieces = in_pieces;
        self
    }

    /// Return whether whole columns must fit into memory after the run.
    pub(crate) fn needs_whole_columns(&self) -> bool {
        !self.in_pieces
    }

    /// Create a control with the same memory settings, for a helper thread.
    pub(crate) fn for_memory_checks(other: &Control) -> Control {
        Control::new(0).with_memory(other.memory).in_pieces(other.in_pieces)
    }

    /// Return the memory that may still be used [bytes].
    pub(crate) fn available_memory(&self) -> u64 {
        (self.memory)()
    }

    /// Begin the next part of a series: add the I/Os done to the total, and count from zero.
    pub(crate) fn begin_next_part(&self) {
        let completed =
            self.processes.iter().map(|process| process.done.swap(0, Ordering::Relaxed));
        self.completed_before.fetch_add(completed.sum(), Ordering::Relaxed);
    }

    /// Record the zero of all times of the run; of a series that of its first part.
    pub(crate) fn record_begin(&self, start: Nanos) {
        let ordering = Ordering::Relaxed;
        let _ = self.began_ns.compare_exchange(0, start.0, ordering, ordering);
    }

    /// Return the zero of all times of the run on the device's clock [ns]; 0 before it begins.
    #[must_use]
    pub fn began_ns(&self) -> u64 {
        self.began_ns.load(Ordering::Relaxed)
    }

    /// End the run at `position`; each process may submit `more` I/Os meanwhile. Later calls
    /// have no effect.
    pub(crate) fn end(&self, position: StopPosition, more: u64) {
        let completed = self.processes.iter().map(|process| process.done.load(Ordering::Relaxed));
        let limit = match position {
            StopPosition::InStep { round } => {
                (completed.max().unwrap_or(0) + more).next_multiple_of(round)
            }
            StopPosition::Separately { least } => least,
        };
        let ordering = Ordering::Relaxed;
        // The first call sets the limit.
        let _ = self.limit.compare_exchange(u64::MAX, limit, ordering, ordering);
    }

    /// Return whether the end is decided.
    pub(crate) fn is_ending(&self) -> bool {
        self.limit.load(Ordering::Relaxed) != u64::MAX
    }

    /// Cancel the run after the outstanding I/Os.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Return whether the run is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Count one I/O of the first process and store its response time.
    pub fn count_io(&self, response_ns: u64) {
        self.processes[0].done.fetch_add(1, Ordering::Relaxed);
        self.processes[0].last_response_ns.store(response_ns, Ordering::Relaxed);
    }

    /// Add `amount` to the progress, for work that is not measured in I/Os.
    pub fn advance(&self, amount: u64) {
        self.processes[0].done.fetch_add(amount, Ordering::Relaxed);
    }

    /// Return the I/Os done so far, and the last response time of the first process [ns].
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let completed: u64 =
            self.processes.iter().map(|process| process.done.load(Ordering::Relaxed)).sum();
        let last = self
            .processes
            .first()
            .map_or(0, |process| process.last_response_ns.load(Ordering::Relaxed));
        (self.completed_before.load(Ordering::Relaxed) + completed, last)
    }
}

/// One process: its requests, its state, and its recorder.
pub(crate) struct Submitter<P: Requests, T> {
    process: usize,
    requests: P,
    remaining: u64,
    issued: usize,
    done: u64,
    time_limit: TimeLimit,
    /// I/Os that were due within the ramp.
    ramp_ios: u64,
    /// The zero of all times.
    start: Nanos,
    /// The completion of the last I/O, or its due time after a pause.
    free_at: Nanos,
    queue_depth: usize,
    outstanding: Vec<OutstandingRequest<P::Request>>,
    /// A ring of the next request and those drawn ahead.
    upcoming: [NextRequest<P::Request>; AHEAD],
    position: usize,
    pub(crate) trace: T,
}

/// An outstanding request.
struct OutstandingRequest<R> {
    ticket: Ticket,
    request: R,
    index: usize,
    /// The arrival, in an open loop.
    arrival: Option<Nanos>,
}

impl<P: Requests, T> Submitter<P, T> {
    /// Create process number `process` with `total` requests, at queue depth 1.
    pub(crate) fn new(process: usize, mut requests: P, total: u64, trace: T) -> Submitter<P, T> {
        let upcoming = std::array::from_fn(|_| requests.next_request());
        Submitter {
            process,
            requests,
            remaining: total,
            issued: 0,
            done: 0,
            time_limit: TimeLimit::NONE,
            ramp_ios: 0,
            start: Nanos(0),
            free_at: Nanos(0),
            queue_depth: 1,
            outstanding: Vec::with_capacity(1),
            upcoming,
            position: 0,
            trace,
        }
    }

    /// Set the queue depth.
    pub(crate) fn with_queue(mut self, depth: usize) -> Submitter<P, T> {
        self.queue_depth = depth;
        self.outstanding.reserve_exact(depth);
        self
    }

    /// Set when the process ends.
    pub(crate) fn with_time_limit(mut self, limit: TimeLimit) -> Submitter<P, T> {
        self.time_limit = limit;
        self
    }

    /// Return the next request. If a pause precedes it, no I/O may be outstanding when the pause
    /// begins.
    #[inline]
    fn next(&self) -> &NextRequest<P::Request> {
        &self.upcoming[self.position % AHEAD]
    }

    /// Return the number of completed I/Os.
    pub(crate) fn done(&self) -> usize {
        self.done as usize
    }

    /// Return the number of I/Os that were due within the ramp.
    pub(crate) fn ramp_ios(&self) -> u64 {
        self.ramp_ios
    }

    /// Return whether an I/O below `limit` remains within its time, and the queue has a free
    /// entry.
    #[inline]
    fn is_ready(&self, limit: u64) -> bool {
        let depth = if self.next().is_after_pause() { 1 } else { self.queue_depth };
        self.outstanding.len() < depth
            && self.remaining > 0
            && (self.issued as u64) < limit
            && self.due().0 - self.start.0 < self.time_limit.end.0
    }

    /// Return when the next I/O is to be submitted, provided the queue has a free entry.
    #[inline]
    fn due(&self) -> Nanos {
        match self.next().when {
            When::After(pause) => self.free_at + pause,
            When::At(instant) => (self.start + instant).max(self.free_at),
        }
    }
}

/// Drive all `submitters` against `device` until each has issued all I/Os, or one fails. No I/O is
/// outstanding afterwards.
pub(crate) fn drive<D: Device, P: Requests<Request = D::Request>, T: RecordCompletion<D>>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    start: Nanos,
    control: &Control,
) -> Result<()> {
    drive_to_end(device, submitters, start, control).inspect_err(|_| {
        // Drop the outstanding completions: no later caller may receive them.
        while device.next_completion(Nanos(u64::MAX)).is_some() {
            let _ = device.complete();
        }
    })
}

fn drive_to_end<D: Device, P: Requests<Request = D::Request>, T: RecordCompletion<D>>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    start: Nanos,
    control: &Control,
) -> Result<()> {
    for submitter in submitters.iter_mut() {
        (submitter.start, submitter.free_at) = (start, start);
    }
    if let [single] = submitters
        && single.queue_depth == 1
    {
        return drive_one(device, single, start, control);
    }
    loop {
        let limit = control.limit.load(Ordering::Relaxed);
        let earliest = submitters
            .iter_mut()
            .filter(|submitter| submitter.is_ready(limit))
            .min_by_key(|submitter| submitter.due());
        let due = earliest.as_ref().map_or(Nanos(u64::MAX), |submitter| submitter.due());
        let next_completion = device.next_completion(due);
        match earliest {
            Some(submitter) if next_completion.is_none_or(|t| due <= t) => {
                submit(device, submitter, due, control)?;
            }
            _ if next_completion.is_some() => complete(device, submitters, start, control)?,
            _ => return Ok(()),
        }
    }
}

/// Drive a single submitter at queue depth 1. Its completion is always the next one, so no search
/// is needed between two I/Os of a real device.
fn drive_one<D: Device, P: Requests<Request = D::Request>, T: RecordCompletion<D>>(
    device: &mut D,
    submitter: &mut Submitter<P, T>,
    start: Nanos,
    control: &Control,
) -> Result<()> {
    while submitter.is_ready(control.limit.load(Ordering::Relaxed)) {
        let due = submitter.due();
        device.next_completion(due);
        let io = begin(device, submitter, due, control)?;
        device.next_completion(Nanos(u64::MAX));
        let completion = device.complete()?;
        debug_assert_eq!(io.ticket, completion.ticket, "nothing else is outstanding");
        end(device, submitter, &io, &completion, start, control);
    }
    device.next_completion(Nanos(u64::MAX));
    Ok(())
}

#[inline(always)]
fn submit<D: Device, P: Requests<Request = D::Request>, T>(
    device: &mut D,
    submitter: &mut Submitter<P, T>,
    due: Nanos,
    control: &Control,
) -> Result<()> {
    let io = begin(device, submitter, due, control)?;
    submitter.outstanding.push(io);
    Ok(())
}

/// Let time pass until `t`, or until the run is cancelled.
#[inline]
fn wait<D: Device>(device: &mut D, t: Nanos, control: &Control) {
    if !device.info().simulated {
        while device.now() + CANCEL_POLL < t {
            if control.is_cancelled() {
                return;
            }
            device.wait_until(device.now() + CANCEL_POLL);
        }
    }
    device.wait_until(t);
}

/// Submit the next request when it is due, unless the run is cancelled first, and draw another.
#[inline(always)]
fn begin<D: Device, P: Requests<Request = D::Request>, T>(
    device: &mut D,
    submitter: &mut Submitter<P, T>,
    due: Nanos,
    control: &Control,
) -> Result<OutstandingRequest<P::Request>> {
    let when = submitter.next().when;
    let arrival = match when {
        When::After(Nanos(0)) => None,
        When::After(_) => {
            submitter.free_at = due;
            wait(device, due, control);
            None
        }
        When::At(instant) => {
            wait(device, due, control);
            Some(submitter.start + instant)
        }
    };
    if control.is_cancelled() {
        return Err(cancelled());
    }
    let Submitter { requests, upcoming, position, .. } = submitter;
    let next = &mut upcoming[*position % AHEAD];
    let ticket = device.submit(&next.io)?;
    let index = submitter.issued;
    submitter.issued = index + 1;
    submitter.remaining -= 1;
    submitter.ramp_ios += u64::from(due.0 - submitter.start.0 < submitter.time_limit.ramp.0);
    let io = OutstandingRequest { ticket, request: next.io, index, arrival };
    requests.replace(next);
    *position += 1;
    device.prefetch(&next.io);
    Ok(io)
}

#[inline(always)]
fn complete<D: Device, P: Requests<Request = D::Request>, T: RecordCompletion<D>>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    start: Nanos,
    control: &Control,
) -> Result<()> {
    let completion = device.complete()?;
    let (submitter, index) = submitters
        .iter_mut()
        .find_map(|submitter| {
            let mut outstanding = submitter.outstanding.iter();
            let index = outstanding.position(|io| io.ticket == completion.ticket)?;
            Some((submitter, index))
        })
        .expect("a submitter has this ticket");
    let io = submitter.outstanding.swap_remove(index);
    end(device, submitter, &io, &completion, start, control);
    Ok(())
}

/// Record a completed I/O.
#[inline(always)]
fn end<D: Device, P: Requests<Request = D::Request>, T: RecordCompletion<D>>(
    device: &D,
    submitter: &mut Submitter<P, T>,
    io: &OutstandingRequest<P::Request>,
    completion: &Completion<D::Breakdown, D::Status>,
    start: Nanos,
    control: &Control,
) {
    let (submitted, completed) = (completion.submitted, completion.completed);
    submitter.done += 1;
    submitter.free_at = completed;
    let progress = &control.processes[submitter.process];
    progress.done.store(submitter.done, Ordering::Relaxed);
    progress.last_response_ns.store(completed.0 - submitted.0, Ordering::Relaxed);
    let arrived = io.arrival.unwrap_or(submitted);
    submitter.trace.record(io.index, &io.request, start, arrived, completion);
    if let Some(live) = &control.live {
        let (bytes, is_write) = submitter.trace.amount(&io.request);
        let (arrived_ns, completed_ns) = (arrived.0 - start.0, completed.0 - start.0);
        live.add(&LiveIo { arrived_ns, completed_ns, bytes, is_write }, || {
            device.counters().map(|counters| counters.pages_programmed)
        });
    }
    if submitter.trace.is_finished() {
        submitter.remaining = 0;
    }
}

pub(crate) fn cancelled() -> Error {
    Error::new(ErrorKind::Interrupted, "The run was interrupted")
}
