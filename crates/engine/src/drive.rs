//! The one loop that drives a device, real or simulated.
//!
//! Every submitter has at most `queue_depth` I/Os outstanding: one, unless its pattern says otherwise
//! (synchronous I/O, uFLIP §4.3). An I/O is due when the one before it has completed, or in an open loop at
//! an instant of its own, whatever became of the others: what it then waits for room in the queue counts.
//! The loop either submits the I/O that is due earliest or takes the next completion, whichever comes
//! first on the device's clock. On a real device every submitter is a
//! thread with a loop of its own, and the choice is trivial; in virtual time one loop interleaves all
//! of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use uflip_core::{Completion, Device, Error, ErrorKind, Nanos, Result, Ticket};

use crate::pattern::{Next, When};

/// Requests are drawn so many ahead: a device in memory hears of them in time to look things up.
pub const AHEAD: usize = 8;

/// How often a process that waits on a clock that cannot be turned looks whether anybody still does.
const LOOK_UP: Nanos = Nanos(100_000_000);

/// Where the requests of one process come from.
pub trait Requests: Send {
    /// What the device takes: the device's own [`Device::Request`].
    type Request: Copy + Send;

    /// The next request, and the pause before it. Asked for up to [`AHEAD`] times more than there are
    /// requests.
    fn next_request(&mut self) -> Next<Self::Request>;

    /// The same in place of a request that was submitted: large ones are made where they are needed.
    #[inline(always)]
    fn replace(&mut self, submitted: &mut Next<Self::Request>) {
        *submitted = self.next_request();
    }
}

/// What keeps the completions of one process.
pub trait Record<D: Device>: Send {
    /// Keep request number `index` of its process, which came back. The run began at `start`. The response
    /// time counts from `arrived`: in an open loop when the request was due, and otherwise when it was submitted.
    fn record(
        &mut self,
        index: usize,
        request: &D::Request,
        start: Nanos,
        arrived: Nanos,
        completion: &Completion<D::Breakdown, D::Status>,
    );

    /// Whether there is a reason to end before the last request.
    #[inline]
    fn is_over(&self) -> bool {
        false
    }
}

/// For requests of which nothing is kept.
impl<D: Device> Record<D> for () {
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

/// Where processes end when a run is long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// All at the number of I/Os of the one that is ahead, in whole rounds of so many.
    InStep { round: u64 },
    /// Each where it is: no process submits another I/O that has made at least so many.
    Here { least: u64 },
}

/// What another thread may see and say of a run in progress.
#[derive(Debug)]
pub struct Control {
    /// Tells how much memory may be used.
    memory: fn() -> u64,
    /// The trace is looked at a piece at a time afterwards, which takes no memory that grows with it.
    in_pieces: bool,
    cancelled: AtomicBool,
    /// No process submits more I/Os than this; it comes down when the run is long enough.
    limit: AtomicU64,
    /// I/Os of the parts of a series that are over.
    before: AtomicU64,
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
        let limit = AtomicU64::new(u64::MAX);
        let memory = || u64::MAX;
        Control {
            memory,
            in_pieces: false,
            cancelled: AtomicBool::new(false),
            limit,
            before: AtomicU64::new(0),
            processes,
        }
    }

    /// The same, with a function that tells how much memory may still be used [bytes].
    #[must_use]
    pub fn with_memory(mut self, room: fn() -> u64) -> Control {
        self.memory = room;
        self
    }

    /// The same for a trace that is looked at a piece at a time when the run is over.
    #[must_use]
    pub fn in_pieces(mut self, in_pieces: bool) -> Control {
        self.in_pieces = in_pieces;
        self
    }

    /// Whether memory for whole columns is needed when the run is over.
    pub(crate) fn needs_whole_columns(&self) -> bool {
        !self.in_pieces
    }

    /// Another one that tells the same of the memory.
    pub(crate) fn of_memory(other: &Control) -> Control {
        Control::new(0).with_memory(other.memory).in_pieces(other.in_pieces)
    }

    /// How much memory may still be used [bytes].
    pub(crate) fn room(&self) -> u64 {
        (self.memory)()
    }

    /// Count the I/Os of what comes next from zero, and those of what is over with them.
    pub(crate) fn next_part(&self) {
        let done = self.processes.iter().map(|process| process.done.swap(0, Ordering::Relaxed));
        self.before.fetch_add(done.sum(), Ordering::Relaxed);
    }

    /// Let the run end as `ending` says; `more` I/Os of a process may be on their way. A run ends once:
    /// later calls change nothing.
    pub(crate) fn end(&self, ending: Ending, more: u64) {
        let done = self.processes.iter().map(|process| process.done.load(Ordering::Relaxed));
        let limit = match ending {
            Ending::InStep { round } => (done.max().unwrap_or(0) + more).next_multiple_of(round),
            Ending::Here { least } => least,
        };
        let ordering = Ordering::Relaxed;
        // Whoever came first has said where.
        let _ = self.limit.compare_exchange(u64::MAX, limit, ordering, ordering);
    }

    /// Whether the run is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.limit.load(Ordering::Relaxed) != u64::MAX
    }

    /// Ask the run to stop after the I/Os that are under way.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Count one more I/O of the first process, which took so long.
    pub fn one_more(&self, response_ns: u64) {
        self.processes[0].done.fetch_add(1, Ordering::Relaxed);
        self.processes[0].last_response_ns.store(response_ns, Ordering::Relaxed);
    }

    /// Count so much more of what has another measure than I/Os.
    pub fn advance(&self, by: u64) {
        self.processes[0].done.fetch_add(by, Ordering::Relaxed);
    }

    /// I/Os done so far, and the last response time of the first process [ns].
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let done: u64 =
            self.processes.iter().map(|process| process.done.load(Ordering::Relaxed)).sum();
        let last = self
            .processes
            .first()
            .map_or(0, |process| process.last_response_ns.load(Ordering::Relaxed));
        (self.before.load(Ordering::Relaxed) + done, last)
    }
}

/// One process: its requests, where it stands, and what it recorded.
pub(crate) struct Submitter<P: Requests, T> {
    process: usize,
    requests: P,
    left: u64,
    issued: usize,
    done: u64,
    /// When times count from.
    start: Nanos,
    /// When the last I/O completed, or was to be submitted after a pause.
    free: Nanos,
    queue_depth: usize,
    outstanding: Vec<Outstanding<P::Request>>,
    /// What comes next, and the requests after it, in a ring.
    upcoming: [Next<P::Request>; AHEAD],
    turn: usize,
    pub(crate) trace: T,
}

/// A request under way, and its number in the trace.
struct Outstanding<R> {
    ticket: Ticket,
    request: R,
    index: usize,
    /// When it was due, in an open loop.
    arrival: Option<Nanos>,
}

impl<P: Requests, T> Submitter<P, T> {
    /// Process number `process`, which will make `total` of its `requests`, one at a time.
    pub(crate) fn new(process: usize, mut requests: P, total: u64, trace: T) -> Submitter<P, T> {
        let upcoming = std::array::from_fn(|_| requests.next_request());
        Submitter {
            process,
            requests,
            left: total,
            issued: 0,
            done: 0,
            start: Nanos(0),
            free: Nanos(0),
            queue_depth: 1,
            outstanding: Vec::with_capacity(1),
            upcoming,
            turn: 0,
            trace,
        }
    }

    /// The same with up to `depth` requests under way.
    pub(crate) fn with_queue(mut self, depth: usize) -> Submitter<P, T> {
        self.queue_depth = depth;
        self.outstanding.reserve_exact(depth);
        self
    }

    /// What comes next. A pause stands before it: nothing may be outstanding when the pause begins.
    #[inline]
    fn next(&self) -> &Next<P::Request> {
        &self.upcoming[self.turn % AHEAD]
    }

    /// I/Os that came back.
    pub(crate) fn done(&self) -> usize {
        self.done as usize
    }

    /// Whether there is an I/O to submit, below `limit`, and room for it.
    #[inline]
    fn is_ready(&self, limit: u64) -> bool {
        let room = if self.next().is_after_pause() { 1 } else { self.queue_depth };
        self.outstanding.len() < room && self.left > 0 && (self.issued as u64) < limit
    }

    /// When the next I/O is to be submitted, if there is room for it.
    #[inline]
    fn due(&self) -> Nanos {
        match self.next().when {
            When::After(pause) => self.free + pause,
            When::At(instant) => (self.start + instant).max(self.free),
        }
    }
}

/// Run all `submitters` against `device` until each has issued all of its I/Os, or something fails. Nothing
/// is under way afterwards.
pub(crate) fn drive<D: Device, P: Requests<Request = D::Request>, T: Record<D>>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    start: Nanos,
    control: &Control,
) -> Result<()> {
    drive_to_end(device, submitters, start, control).inspect_err(|_| {
        // What is still under way is nobody's: whoever comes next must not find it.
        while device.next_completion(Nanos(u64::MAX)).is_some() {
            let _ = device.complete();
        }
    })
}

fn drive_to_end<D: Device, P: Requests<Request = D::Request>, T: Record<D>>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    start: Nanos,
    control: &Control,
) -> Result<()> {
    for submitter in submitters.iter_mut() {
        (submitter.start, submitter.free) = (start, start);
    }
    if let [one] = submitters
        && one.queue_depth == 1
    {
        return drive_one(device, one, start, control);
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

/// The same for a single submitter of one I/O at a time: its completion is the next, so that nobody is
/// looked for between two I/Os of a real device.
fn drive_one<D: Device, P: Requests<Request = D::Request>, T: Record<D>>(
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
        debug_assert_eq!(io.ticket, completion.ticket, "nothing else is under way");
        end(submitter, &io, &completion, start, control);
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

/// Let time pass until `t`, or until somebody asks to stop.
#[inline]
fn wait<D: Device>(device: &mut D, t: Nanos, control: &Control) {
    if !device.info().simulated {
        while device.now() + LOOK_UP < t {
            if control.is_cancelled() {
                return;
            }
            device.wait_until(device.now() + LOOK_UP);
        }
    }
    device.wait_until(t);
}

/// Submit the next request when it is due, unless somebody asked to stop until then, and draw one.
#[inline(always)]
fn begin<D: Device, P: Requests<Request = D::Request>, T>(
    device: &mut D,
    submitter: &mut Submitter<P, T>,
    due: Nanos,
    control: &Control,
) -> Result<Outstanding<P::Request>> {
    let when = submitter.next().when;
    let arrival = match when {
        When::After(Nanos(0)) => None,
        When::After(_) => {
            submitter.free = due;
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
    let Submitter { requests, upcoming, turn, .. } = submitter;
    let next = &mut upcoming[*turn % AHEAD];
    let ticket = device.submit(&next.io)?;
    let index = submitter.issued;
    submitter.issued = index + 1;
    submitter.left -= 1;
    let io = Outstanding { ticket, request: next.io, index, arrival };
    requests.replace(next);
    *turn += 1;
    device.prefetch(&next.io);
    Ok(io)
}

#[inline(always)]
fn complete<D: Device, P: Requests<Request = D::Request>, T: Record<D>>(
    device: &mut D,
    submitters: &mut [Submitter<P, T>],
    start: Nanos,
    control: &Control,
) -> Result<()> {
    let completion = device.complete()?;
    let (submitter, place) = submitters
        .iter_mut()
        .find_map(|submitter| {
            let mut outstanding = submitter.outstanding.iter();
            let place = outstanding.position(|io| io.ticket == completion.ticket)?;
            Some((submitter, place))
        })
        .expect("a completion belongs to a submitter");
    let io = submitter.outstanding.swap_remove(place);
    end(submitter, &io, &completion, start, control);
    Ok(())
}

/// Keep what became of an I/O.
#[inline(always)]
fn end<D: Device, P: Requests<Request = D::Request>, T: Record<D>>(
    submitter: &mut Submitter<P, T>,
    io: &Outstanding<P::Request>,
    completion: &Completion<D::Breakdown, D::Status>,
    start: Nanos,
    control: &Control,
) {
    let (submitted, completed) = (completion.submitted, completion.completed);
    submitter.done += 1;
    submitter.free = completed;
    let progress = &control.processes[submitter.process];
    progress.done.store(submitter.done, Ordering::Relaxed);
    progress.last_response_ns.store(completed.0 - submitted.0, Ordering::Relaxed);
    let arrived = io.arrival.unwrap_or(submitted);
    submitter.trace.record(io.index, &io.request, start, arrived, completion);
    if submitter.trace.is_over() {
        submitter.left = 0;
    }
}

pub(crate) fn cancelled() -> Error {
    Error::new(ErrorKind::Interrupted, "The run was interrupted")
}
