//! I/Os that wait in a queue of the kernel: io_uring with registered file and memory, on top of a device
//! that was opened, guarded and marked like any other.
//!
//! ```text
//!  submit            next_completion, nothing else to do            complete
//!  ▼ clock, SQE ──▶ io_uring_enter: what was put in goes in  ──▶  CQEs, one clock for all that are there
//! ```
//!
//! An I/O counts from the instant at which it is put into the queue. The kernel is entered when two are put in
//! (`TOGETHER`) or the loop has nothing more to put in; then it waits, or looks on until the next I/O is due.
//! What is there when it comes back gets one reading of the clock. Completions
//! interrupt nobody: they wait in the kernel until it is entered, and a flag says that some do. A device that is
//! polled has nobody told at all: whoever enters the kernel looks for them there.

use std::collections::VecDeque;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};
use uflip_core::{
    Completion, Counters, Device, DeviceInfo, Durability, Error, ErrorKind, Io, Mode, Nanos,
    Result, Ticket, ZoneReport,
};

use crate::buffer::Pool;
use crate::clock;
use crate::completions::polled_ring;
use crate::direct::DirectDevice;

/// So many I/Os are under way at most; the engine allows no more.
const DEPTH_MAX: u32 = 1024;
/// So many I/Os are handed to the kernel in one call. Where there are more it gathers them first and makes one
/// request of neighbours (`io_submit_sqes` plugs the block layer from three on): a device that was asked for
/// 4 KiB at a time would be given 128 KiB.
const TOGETHER: usize = 2;
/// What is due so soon is waited for on the processor: the kernel would wake us too late.
const SPIN_NS: u64 = 100_000;
/// All read buffers together [bytes]; longer ones share.
const READ_BYTES_MAX: usize = 64 << 20;

/// A file or block device whose I/Os wait in a queue.
pub struct QueuedDevice {
    ring: IoUring,
    direct: DirectDevice,
    pool: Pool,
    /// What is in the kernel, by its place.
    places: Vec<Option<Under>>,
    free: Vec<u32>,
    /// I/Os that were put in and not handed to the kernel.
    put_in: usize,
    under_way: usize,
    /// What was put in, first first, with its place; what is done of it goes when it comes first.
    order: VecDeque<(Ticket, u32)>,
    /// The one that has been under way for longest, as far as whoever watches knows.
    oldest: Option<Ticket>,
    /// Whether the kernel knows the memory; where it may not be locked, each I/O names it.
    is_registered: bool,
    /// The queue broke with I/Os in it: their memory is never given back.
    is_lost: bool,
    done: VecDeque<std::result::Result<Completion<()>, (Io, i32)>>,
    tickets: u64,
}

#[derive(Clone, Copy)]
struct Under {
    ticket: Ticket,
    io: Io,
    submitted: Nanos,
}

// SAFETY: the ring is used by one thread at a time; its memory maps and descriptor belong to the process.
unsafe impl Send for QueuedDevice {}

impl QueuedDevice {
    /// A handle to `device` with a queue of `depth` I/Os of up to `longest` bytes.
    ///
    /// # Errors
    /// The system has no io_uring, or does not let us; a flush every N writes, which has no meaning where
    /// others are under way.
    pub fn of(device: &DirectDevice, depth: u64, longest: u64) -> Result<QueuedDevice> {
        let mut handles = device.split(1)?.unwrap_or_default();
        let direct = handles.pop().expect("a handle for one");
        QueuedDevice::on(direct, depth, longest as usize)
    }

    fn on(mut direct: DirectDevice, depth: u64, longest: usize) -> Result<QueuedDevice> {
        if matches!(direct.durability(), Durability::Flush(_)) {
            return Err(Error::usage("A flush every N writes is not possible with a queue")
                .at("--durability")
                .got("flush:N with a queue depth above 1")
                .allowed("cached, fua")
                .action("ask for fua, or for a queue depth of 1"));
        }
        let depth = depth.clamp(1, u64::from(DEPTH_MAX)) as u32;
        let sinks = (READ_BYTES_MAX / longest.max(1)).clamp(1, depth as usize);
        let pool = direct.pool(longest, sinks);
        let no_ring = |error: &std::io::Error| no_ring(&direct.info().url, error);
        let ring = if direct.polls() {
            polled_ring(depth)
        } else {
            quiet_ring(depth).or_else(|_| IoUring::new(depth))
        };
        let ring = ring.map_err(|error| no_ring(&error))?;
        let files = [direct.file().as_raw_fd()];
        ring.submitter().register_files(&files).map_err(|error| no_ring(&error))?;
        let memory = [pool.all()];
        // SAFETY: the pool outlives the ring, or is never given back.
        let is_registered = unsafe { ring.submitter().register_buffers(&memory) }.is_ok();
        let polled = if direct.polls() { ", polled" } else { "" };
        direct.tell_io(direct.info().io.replace("pread/pwrite", "io_uring") + polled);
        Ok(QueuedDevice {
            ring,
            pool,
            places: vec![None; depth as usize],
            free: (0..depth).rev().collect(),
            put_in: 0,
            under_way: 0,
            order: VecDeque::with_capacity(depth as usize),
            oldest: None,
            is_registered,
            is_lost: false,
            done: VecDeque::with_capacity(depth as usize),
            tickets: 0,
            direct,
        })
    }

    fn broken(&self, error: &std::io::Error) -> Error {
        Error::os("The queue cannot be entered", &self.direct.info().url, error)
            .action("see the kernel's log")
    }

    /// Hand over what was put in, and wait for `least` completions.
    fn enter(&mut self, least: usize) -> Result<()> {
        loop {
            match self.ring.submit_and_wait(least) {
                Ok(_) => break,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => {
                    return Err(self.broken(&error));
                }
            }
        }
        self.put_in = 0;
        Ok(())
    }

    /// Take all completions that are there.
    fn reap(&mut self) {
        let mut queue = self.ring.completion();
        if queue.is_empty() {
            return;
        }
        let completed = clock::now();
        for entry in &mut queue {
            let place = entry.user_data() as usize;
            let Some(Under { ticket, io, submitted }) = self.places[place].take() else { continue };
            self.free.push(place as u32);
            self.under_way -= 1;
            let whole = entry.result() == io.size.0 as i32;
            let completion = Completion { ticket, submitted, completed, breakdown: (), status: () };
            self.done.push_back(if whole { Ok(completion) } else { Err((io, entry.result())) });
        }
        drop(queue);
        let oldest = self.oldest();
        self.tell_oldest(oldest);
    }

    /// The one that has been under way for longest.
    #[inline]
    fn oldest(&mut self) -> Option<(Ticket, Io)> {
        while let Some(&(ticket, place)) = self.order.front() {
            match self.places[place as usize] {
                Some(under) if under.ticket == ticket => return Some((ticket, under.io)),
                _ => self.order.pop_front(),
            };
        }
        None
    }

    /// Note which I/O has been under way for longest: it counts from when it became that, however many end
    /// meanwhile.
    #[inline]
    fn tell_oldest(&mut self, oldest: Option<(Ticket, Io)>) {
        let ticket = oldest.map(|(ticket, _)| ticket);
        if ticket != self.oldest {
            self.oldest = ticket;
            self.direct.watch_queue(oldest.as_ref().map(|(_, io)| io));
        }
    }

    /// Whether something is done, or will be before `before`.
    fn wait(&mut self, before: Nanos) -> Result<bool> {
        self.reap();
        while self.done.is_empty() && self.under_way > 0 {
            if before == Nanos(u64::MAX) {
                self.enter(1)?;
            } else {
                let now = clock::now();
                if now >= before {
                    return Ok(false);
                }
                if self.put_in > 0 || self.direct.polls() || self.ring.submission().taskrun() {
                    self.enter(0)?;
                } else if before.0 - now.0 > SPIN_NS {
                    self.enter_until(Nanos(before.0 - now.0 - SPIN_NS))?;
                } else {
                    std::hint::spin_loop();
                }
            }
            self.reap();
        }
        Ok(!self.done.is_empty())
    }

    /// Wait for a completion, but no longer than that.
    fn enter_until(&mut self, longest: Nanos) -> Result<()> {
        let time = types::Timespec::new()
            .sec(longest.0 / 1_000_000_000)
            .nsec((longest.0 % 1_000_000_000) as u32);
        let args = types::SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// A trim, or a command to a zone, is a call that only returns when it is over: nothing else is under
    /// way in a process that makes such (`Resolved::check_on`).
    #[cold]
    fn call(&mut self, io: &Io) -> Result<Ticket> {
        debug_assert!(self.under_way == 0, "nothing waits for a call");
        self.direct.watch_queue(Some(io));
        let (submitted, moved, completed) = self.direct.timed_call(io);
        self.direct.watch_queue(None);
        if moved < 0 {
            return Err(self.direct.failed(io, moved));
        }
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.done.push_back(Ok(Completion {
            ticket,
            submitted,
            completed,
            breakdown: (),
            status: (),
        }));
        Ok(ticket)
    }

    fn entry(&mut self, io: &Io, place: u32) -> squeue::Entry {
        let (size, offset, file) = (io.size.0 as u32, io.offset.0, types::Fixed(0));
        let sink = self.pool.sink_of(place as usize);
        let durable = self.direct.durability() == Durability::Fua;
        let flags = if durable { libc::RWF_DSYNC } else { 0 };
        let entry = match (io.mode, self.is_registered) {
            (Mode::Read, true) => {
                opcode::ReadFixed::new(file, sink, size, 0).offset(offset).build()
            }
            (Mode::Read, false) => opcode::Read::new(file, sink, size).offset(offset).build(),
            (Mode::Write, true) => {
                let write = opcode::WriteFixed::new(file, self.pool.next_data(), size, 0);
                write.offset(offset).rw_flags(flags).build()
            }
            (Mode::Write, false) => {
                let write = opcode::Write::new(file, self.pool.next_data(), size);
                write.offset(offset).rw_flags(flags).build()
            }
            _ => unreachable!("it is no entry of the queue"),
        };
        entry.user_data(u64::from(place))
    }
}

/// A queue whose completions wait until we enter: otherwise each interrupts the processor that we are on,
/// which costs more than the I/O where data is in memory. Every kernel that has our queues has this, but
/// sandboxes that answer for it may not.
fn quiet_ring(depth: u32) -> std::io::Result<IoUring> {
    IoUring::builder().setup_coop_taskrun().setup_taskrun_flag().build(depth)
}

fn no_ring(url: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "The system does not provide io_uring")
        .at(url)
        .got(error.to_string())
        .allowed("Linux 5.19 or later, with io_uring allowed (kernel.io_uring_disabled)")
        .action("use a queue depth of 1: I/Os are then made one after another")
}

impl Device for QueuedDevice {
    type Request = Io;
    type Status = ();
    type Breakdown = ();

    fn info(&self) -> &DeviceInfo {
        self.direct.info()
    }

    #[inline]
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn wait_until(&mut self, t: Nanos) {
        clock::wait_until(t);
    }

    fn submit(&mut self, request: &Io) -> Result<Ticket> {
        if !request.mode.moves_data() || request.mode == Mode::Append {
            return self.call(request);
        }
        let place = self.free.pop().expect("the engine keeps to the depth");
        let entry = self.entry(request, place);
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        if self.under_way == 0 {
            self.tell_oldest(Some((ticket, *request)));
        }
        let submitted = clock::now();
        self.places[place as usize] = Some(Under { ticket, io: *request, submitted });
        self.order.push_back((ticket, place));
        self.under_way += 1;
        self.put_in += 1;
        // SAFETY: the memory belongs to the pool, which lives until nothing is under way; the descriptor
        // is registered.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.enter(0)?;
        }
        if self.put_in == TOGETHER {
            self.enter(0)?;
        }
        Ok(ticket)
    }

    fn next_completion(&mut self, before: Nanos) -> Option<Nanos> {
        match self.wait(before) {
            Ok(true) => {
                let at = match self.done.front() {
                    Some(Ok(completion)) => completion.completed,
                    _ => clock::now(),
                };
                // What failed is told at once.
                (at <= before || matches!(self.done.front(), Some(Err(_)))).then_some(at)
            }
            Ok(false) => None,
            // Told by `complete`.
            Err(_) => Some(clock::now()),
        }
    }

    fn complete(&mut self) -> Result<Completion<()>> {
        if self.done.is_empty()
            && let Err(error) = self.wait(Nanos(u64::MAX))
        {
            // Nobody will tell what became of what is under way.
            (self.under_way, self.is_lost) = (0, true);
            return Err(error);
        }
        match self.done.pop_front().expect("something is outstanding") {
            Ok(completion) => Ok(completion),
            Err((io, result)) => Err(self.direct.failed_in_queue(&io, result)),
        }
    }

    fn zones(&self) -> Result<Option<ZoneReport>> {
        self.direct.zones()
    }

    fn counters(&self) -> Option<Counters> {
        None
    }

    fn split(&self, submitters: usize) -> Result<Option<Vec<QueuedDevice>>> {
        let handles = self.direct.split(submitters)?.unwrap_or_default();
        let queued =
            |direct| QueuedDevice::on(direct, self.places.len() as u64, self.pool.longest());
        handles.into_iter().map(queued).collect::<Result<Vec<_>>>().map(Some)
    }
}

impl Drop for QueuedDevice {
    /// The kernel must not write into memory that is somebody else's by then.
    fn drop(&mut self) {
        while self.under_way > 0 && self.enter(1).is_ok() {
            self.reap();
        }
        // The kernel takes a ring apart in its own time, and until then holds what it knows: whoever opens
        // the device next would find it in use.
        let _ = self.ring.submitter().unregister_files();
        if self.under_way > 0 || self.is_lost {
            // It cannot be waited for: what the kernel may still write to is never given back.
            std::mem::forget(std::mem::replace(&mut self.pool, self.direct.pool(1, 1)));
        }
    }
}
