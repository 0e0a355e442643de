//! Queued I/O: io_uring with registered file and memory, on a device that was opened, checked and
//! marked as usual.
//!
//! ```text
//!  submit            next_completion, nothing else to do            complete
//!  ▼ clock, SQE ──▶ io_uring_enter: submits new entries        ──▶  CQEs, one clock reading for all present
//! ```
//!
//! An I/O counts from its entry into the submission queue. The kernel is entered when two entries
//! are queued (`SUBMIT_BATCH`), or when the loop has no more to submit; then it waits, or spins until
//! the next I/O is due. Completions found on return share one clock reading. Completions raise no
//! interrupt in user space: they wait in the kernel until the next entry, and a flag reports them.
//! A polled device raises no interrupts at all; entering the kernel polls it.

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

/// The largest queue depth; the engine has the same limit.
const DEPTH_MAX: u32 = 1024;
/// Entries submitted in one call. With more, the kernel would plug the block layer
/// (`io_submit_sqes` does so from three on) and merge adjacent requests: a device measured with 4
/// KiB requests would receive 128 KiB.
const SUBMIT_BATCH: usize = 2;
/// Shorter waits spin on the CPU: the kernel would wake the process too late.
const SPIN_NS: u64 = 100_000;
/// The size of all read buffers [bytes]; larger ones share.
const READ_BYTES_MAX: usize = 64 << 20;

/// A file or block device with queued I/O.
pub struct QueuedDevice {
    ring: IoUring,
    direct: DirectDevice,
    pool: Pool,
    /// The entries in the kernel, by slot.
    slots: Vec<Option<Inflight>>,
    free: Vec<u32>,
    /// Entries queued but not yet submitted to the kernel.
    queued: usize,
    outstanding: usize,
    /// All entries in order of submission, with their slots; completed ones are removed at the
    /// front.
    order: VecDeque<(Ticket, u32)>,
    /// The oldest outstanding I/O that was reported to the watch.
    oldest: Option<Ticket>,
    /// Whether the memory is registered with the kernel; if it cannot be locked, each I/O passes
    /// its address.
    is_registered: bool,
    /// The queue failed with I/Os in it: their memory is never freed.
    has_failed: bool,
    completed: VecDeque<std::result::Result<Completion<()>, (Io, i32)>>,
    tickets: u64,
}

#[derive(Clone, Copy)]
struct Inflight {
    ticket: Ticket,
    io: Io,
    submitted: Nanos,
}

// SAFETY: the ring is used by one thread at a time; its memory maps and descriptor belong to the
// process.
unsafe impl Send for QueuedDevice {}

impl QueuedDevice {
    /// Create a handle to `device` with a queue of `depth` I/Os of up to `max_io_bytes`.
    ///
    /// # Errors
    /// If io_uring is missing or not permitted; for `flush:N`, which is undefined with other I/Os
    /// outstanding.
    pub fn new(device: &DirectDevice, depth: u64, max_io_bytes: u64) -> Result<QueuedDevice> {
        let mut handles = device.split(1)?.unwrap_or_default();
        let direct = handles.pop().expect("split(1) returns one handle");
        QueuedDevice::with_handle(direct, depth, max_io_bytes as usize)
    }

    fn with_handle(
        mut direct: DirectDevice,
        depth: u64,
        max_io_bytes: usize,
    ) -> Result<QueuedDevice> {
        if matches!(direct.durability(), Durability::Flush(_)) {
            return Err(Error::usage("A flush every N writes is not possible with a queue")
                .at("--durability")
                .got("flush:N with a queue depth above 1")
                .allowed("cached, fua")
                .action("use fua, or a queue depth of 1"));
        }
        let depth = depth.clamp(1, u64::from(DEPTH_MAX)) as u32;
        let sinks = (READ_BYTES_MAX / max_io_bytes.max(1)).clamp(1, depth as usize);
        let pool = direct.pool(max_io_bytes, sinks);
        let no_ring = |error: &std::io::Error| no_ring(&direct.info().url, error);
        let ring = if direct.polls() {
            polled_ring(depth)
        } else {
            coop_ring(depth).or_else(|_| IoUring::new(depth))
        };
        let ring = ring.map_err(|error| no_ring(&error))?;
        let files = [direct.file().as_raw_fd()];
        ring.submitter().register_files(&files).map_err(|error| no_ring(&error))?;
        let memory = [pool.whole()];
        // SAFETY: the pool outlives the ring, or is never freed.
        let is_registered = unsafe { ring.submitter().register_buffers(&memory) }.is_ok();
        let polled = if direct.polls() { ", polled" } else { "" };
        direct.set_io_method(direct.info().io.replace("pread/pwrite", "io_uring") + polled);
        Ok(QueuedDevice {
            ring,
            pool,
            slots: vec![None; depth as usize],
            free: (0..depth).rev().collect(),
            queued: 0,
            outstanding: 0,
            order: VecDeque::with_capacity(depth as usize),
            oldest: None,
            is_registered,
            has_failed: false,
            completed: VecDeque::with_capacity(depth as usize),
            tickets: 0,
            direct,
        })
    }

    fn ring_error(&self, error: &std::io::Error) -> Error {
        Error::os("The queue cannot be entered", &self.direct.info().url, error)
            .action("see the kernel's log")
    }

    /// Submit the queued entries, and wait for `least` completions.
    fn enter(&mut self, completions: usize) -> Result<()> {
        loop {
            match self.ring.submit_and_wait(completions) {
                Ok(_) => break,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => {
                    return Err(self.ring_error(&error));
                }
            }
        }
        self.queued = 0;
        Ok(())
    }

    /// Take all present completions.
    fn reap(&mut self) {
        let mut queue = self.ring.completion();
        if queue.is_empty() {
            return;
        }
        let completed = clock::now();
        for entry in &mut queue {
            let slot = entry.user_data() as usize;
            let Some(Inflight { ticket, io, submitted }) = self.slots[slot].take() else {
                continue;
            };
            self.free.push(slot as u32);
            self.outstanding -= 1;
            let succeeded = entry.result() == io.size.0 as i32;
            let completion = Completion { ticket, submitted, completed, breakdown: (), status: () };
            self.completed.push_back(if succeeded {
                Ok(completion)
            } else {
                Err((io, entry.result()))
            });
        }
        drop(queue);
        let oldest = self.oldest();
        self.report_oldest(oldest);
    }

    /// Return the oldest outstanding I/O.
    #[inline]
    fn oldest(&mut self) -> Option<(Ticket, Io)> {
        while let Some(&(ticket, slot)) = self.order.front() {
            match self.slots[slot as usize] {
                Some(inflight) if inflight.ticket == ticket => return Some((ticket, inflight.io)),
                _ => self.order.pop_front(),
            };
        }
        None
    }

    /// Report the oldest outstanding I/O to the watch, if it changed: its age counts from that
    /// moment.
    #[inline]
    fn report_oldest(&mut self, oldest: Option<(Ticket, Io)>) {
        let ticket = oldest.map(|(ticket, _)| ticket);
        if ticket != self.oldest {
            self.oldest = ticket;
            self.direct.watch_queue(oldest.as_ref().map(|(_, io)| io));
        }
    }

    /// Return whether a completion is available, waiting until `before`.
    fn wait(&mut self, before: Nanos) -> Result<bool> {
        self.reap();
        while self.completed.is_empty() && self.outstanding > 0 {
            if before == Nanos(u64::MAX) {
                self.enter(1)?;
            } else {
                let now = clock::now();
                if now >= before {
                    return Ok(false);
                }
                if self.queued > 0 || self.direct.polls() || self.ring.submission().taskrun() {
                    self.enter(0)?;
                } else if before.0 - now.0 > SPIN_NS {
                    self.enter_until(Nanos(before.0 - now.0 - SPIN_NS))?;
                } else {
                    std::hint::spin_loop();
                }
            }
            self.reap();
        }
        Ok(!self.completed.is_empty())
    }

    /// Wait for a completion, at most for `timeout`.
    fn enter_until(&mut self, timeout: Nanos) -> Result<()> {
        let time = types::Timespec::new()
            .sec(timeout.0 / 1_000_000_000)
            .nsec((timeout.0 % 1_000_000_000) as u32);
        let args = types::SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(error) => Err(self.ring_error(&error)),
        }
    }

    /// Execute a trim or zone command, which is a blocking call. Such a process has no other
    /// outstanding I/O (`Resolved::check_on`).
    #[cold]
    fn call(&mut self, io: &Io) -> Result<Ticket> {
        debug_assert!(self.outstanding == 0, "no call is outstanding");
        self.direct.watch_queue(Some(io));
        let (submitted, moved_bytes, completed) = self.direct.timed_call(io);
        self.direct.watch_queue(None);
        if moved_bytes < 0 {
            return Err(self.direct.io_failed(io, moved_bytes));
        }
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.completed.push_back(Ok(Completion {
            ticket,
            submitted,
            completed,
            breakdown: (),
            status: (),
        }));
        Ok(ticket)
    }

    fn entry(&mut self, io: &Io, slot: u32) -> squeue::Entry {
        let (size, offset, file) = (io.size.0 as u32, io.offset.0, types::Fixed(0));
        let sink = self.pool.sink_for(slot as usize);
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
            _ => unreachable!("only reads and writes enter the queue"),
        };
        entry.user_data(u64::from(slot))
    }
}

/// Create a queue whose completions wait until the next kernel entry. Otherwise each interrupts the
/// CPU, which costs more than the I/O if data is in memory. Every kernel with the required queues
/// supports this, but sandboxes that emulate it may not.
fn coop_ring(depth: u32) -> std::io::Result<IoUring> {
    IoUring::builder().setup_coop_taskrun().setup_taskrun_flag().build(depth)
}

fn no_ring(url: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "The system does not provide io_uring")
        .at(url)
        .got(error.to_string())
        .allowed("Linux 5.19 or later, with io_uring allowed (kernel.io_uring_disabled)")
        .action("use a queue depth of 1: I/Os are then issued one after another")
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
        let slot = self.free.pop().expect("a slot is free below the queue depth");
        let entry = self.entry(request, slot);
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        if self.outstanding == 0 {
            self.report_oldest(Some((ticket, *request)));
        }
        let submitted = clock::now();
        self.slots[slot as usize] = Some(Inflight { ticket, io: *request, submitted });
        self.order.push_back((ticket, slot));
        self.outstanding += 1;
        self.queued += 1;
        // SAFETY: the memory belongs to the pool, which lives until no I/O is outstanding; the
        // descriptor is registered.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.enter(0)?;
        }
        if self.queued == SUBMIT_BATCH {
            self.enter(0)?;
        }
        Ok(ticket)
    }

    fn next_completion(&mut self, before: Nanos) -> Option<Nanos> {
        match self.wait(before) {
            Ok(true) => {
                let time = match self.completed.front() {
                    Some(Ok(completion)) => completion.completed,
                    _ => clock::now(),
                };
                // Failures are reported at once.
                (time <= before || matches!(self.completed.front(), Some(Err(_)))).then_some(time)
            }
            Ok(false) => None,
            // `complete` reports the error.
            Err(_) => Some(clock::now()),
        }
    }

    fn complete(&mut self) -> Result<Completion<()>> {
        if self.completed.is_empty()
            && let Err(error) = self.wait(Nanos(u64::MAX))
        {
            // The outcome of the outstanding I/Os is unknown.
            (self.outstanding, self.has_failed) = (0, true);
            return Err(error);
        }
        match self.completed.pop_front().expect("an I/O is outstanding") {
            Ok(completion) => Ok(completion),
            Err((io, result)) => Err(self.direct.queued_io_failed(&io, result)),
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
        let with_queue = |direct| {
            QueuedDevice::with_handle(direct, self.slots.len() as u64, self.pool.max_io_bytes())
        };
        handles.into_iter().map(with_queue).collect::<Result<Vec<_>>>().map(Some)
    }
}

impl Drop for QueuedDevice {
    /// Wait for outstanding I/Os: the kernel must not write into memory that has been freed.
    fn drop(&mut self) {
        while self.outstanding > 0 && self.enter(1).is_ok() {
            self.reap();
        }
        // The kernel frees a ring asynchronously and holds its files until then: the next opener of
        // the device would find it in use.
        let _ = self.ring.submitter().unregister_files();
        if self.outstanding > 0 || self.has_failed {
            // Waiting is not possible: memory that the kernel may still write to is never freed.
            std::mem::forget(std::mem::replace(&mut self.pool, self.direct.pool(1, 1)));
        }
    }
}
