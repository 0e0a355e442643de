//! Queued I/O on a device that was opened, checked and marked as usual, over one of two queues of
//! the kernel: reads and writes of a file or block device ([`RingQueue`]), or commands of an NVMe
//! drive.
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

use std::os::fd::AsRawFd;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use uflip_core::{
    Completion, Content, ContentShares, Device, DeviceInfo, Durability, Error, ErrorKind, Io, Mode,
    Nanos, Result, Ticket, ZoneReport,
};

use crate::buffer::Pool;
use crate::clock;
use crate::completions::polled_ring;
use crate::direct::DirectDevice;
use crate::io_queue::{InflightTable, IoQueue};

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

/// A device with queued I/O.
pub struct QueuedDevice<Q: IoQueue = RingQueue> {
    pub(crate) queue: Q,
    direct: DirectDevice,
    pool: Pool,
    table: InflightTable,
    /// The queue failed with I/Os in it: their memory is never freed.
    has_failed: bool,
}

impl QueuedDevice<RingQueue> {
    /// Create a handle to `device` with a queue of `depth` I/Os of up to `max_io_bytes`.
    ///
    /// # Errors
    /// If io_uring is missing or not permitted; for `flush:N`, which is undefined with other I/Os
    /// outstanding.
    pub fn new(device: &DirectDevice, depth: u64, max_io_bytes: u64) -> Result<QueuedDevice> {
        let mut direct = another_handle(device)?;
        let depth = depth.clamp(1, u64::from(DEPTH_MAX)) as u32;
        let queue = RingQueue::open(&mut direct, depth)?;
        QueuedDevice::with_queue(queue, direct, depth, max_io_bytes as usize)
    }
}

fn another_handle(device: &DirectDevice) -> Result<DirectDevice> {
    let mut handles = device.split(1)?.unwrap_or_default();
    Ok(handles.pop().expect("split(1) returns one handle"))
}

impl<Q: IoQueue> QueuedDevice<Q> {
    pub(crate) fn with_queue(
        mut queue: Q,
        direct: DirectDevice,
        depth: u32,
        max_io_bytes: usize,
    ) -> Result<QueuedDevice<Q>> {
        if matches!(direct.durability, Durability::Flush(_)) && (depth > 1 || !Q::FLUSHES) {
            return Err(Error::usage("A flush every N writes is not possible with a queue")
                .at("--durability")
                .got("flush:N with a queue depth above 1")
                .allowed("cached, fua")
                .action("use fua, or a queue depth of 1"));
        }
        let pool = pool_for(&direct, depth as usize, max_io_bytes);
        queue.attach(&pool);
        let table = InflightTable::new(depth);
        Ok(QueuedDevice { queue, direct, pool, table, has_failed: false })
    }

    /// Create another handle to the same target, with a queue of `depth` I/Os of up to
    /// `max_io_bytes`.
    ///
    /// # Errors
    /// If the kernel does not provide it; for `flush:N` with a depth above 1.
    pub fn with_depth(&self, depth: u64, max_io_bytes: u64) -> Result<QueuedDevice<Q>> {
        let depth = depth.clamp(1, u64::from(DEPTH_MAX)) as u32;
        self.another(another_handle(&self.direct)?, depth, max_io_bytes as usize)
    }

    fn another(
        &self,
        mut direct: DirectDevice,
        depth: u32,
        max_io_bytes: usize,
    ) -> Result<QueuedDevice<Q>> {
        let queue = self.queue.open_another(&mut direct, depth)?;
        QueuedDevice::with_queue(queue, direct, depth, max_io_bytes)
    }

    /// Return the opened, checked and marked device below the queue.
    pub fn direct(&self) -> &DirectDevice {
        &self.direct
    }

    /// Return the opened, checked and marked device below the queue.
    pub fn direct_mut(&mut self) -> &mut DirectDevice {
        &mut self.direct
    }

    /// Return the content of the run, if its pattern determined it.
    #[must_use]
    pub fn content(&self) -> Option<Content> {
        self.direct.content()
    }

    /// Return the data of a write: generated in the buffer of `slot`, or of the pool.
    fn write_data(&mut self, io: &Io, slot: u32) -> *const u8 {
        match &mut self.direct.writer {
            None => self.pool.next_data(),
            Some(writer) => {
                self.pool.generate(slot as usize, writer, io.offset.0, io.size.0 as usize)
            }
        }
    }

    fn queue_error(&self, error: &std::io::Error) -> Error {
        Error::os("The queue cannot be entered", &self.direct.info().url, error)
            .action("see the kernel's log")
    }

    fn enter(&mut self, completions: usize) -> Result<()> {
        self.queue.enter(completions).map_err(|error| self.queue_error(&error))
    }

    /// Take all present completions.
    fn reap(&mut self) {
        let before = self.table.outstanding;
        self.queue.reap(&mut self.table);
        if self.table.outstanding != before {
            self.table.report_oldest(&self.direct);
        }
    }

    /// Return whether a completion is available, waiting until `before`.
    fn wait(&mut self, before: Nanos) -> Result<bool> {
        self.reap();
        while self.table.first_completed().is_none() && self.table.outstanding > 0 {
            if before == Nanos(u64::MAX) {
                self.enter(1)?;
            } else {
                let now = clock::now();
                if now >= before {
                    return Ok(false);
                }
                if self.queue.queued() > 0 || self.direct.polls || self.queue.holds_completions() {
                    self.enter(0)?;
                } else if before.0 - now.0 > SPIN_NS {
                    let timeout = Nanos(before.0 - now.0 - SPIN_NS);
                    let entered = self.queue.enter_until(timeout);
                    entered.map_err(|error| self.queue_error(&error))?;
                } else {
                    std::hint::spin_loop();
                }
            }
            self.reap();
        }
        Ok(self.table.first_completed().is_some())
    }

    /// Execute a command that is a blocking call. Such a process has no other outstanding I/O
    /// (`Resolved::check_on`).
    #[cold]
    fn call(&mut self, io: &Io) -> Result<Ticket> {
        debug_assert!(self.table.outstanding == 0, "no call is outstanding");
        self.direct.watch_queue(Some(io));
        let (submitted, moved_bytes, completed) = self.direct.timed_call(io);
        self.direct.watch_queue(None);
        if moved_bytes < 0 {
            return Err(self.direct.io_failed(io, moved_bytes));
        }
        Ok(self.table.push_completed(submitted, completed))
    }

    /// Make space for a larger I/O than any before; nothing is outstanding.
    #[cold]
    fn grow(&mut self, max_io_bytes: usize) {
        assert!(self.table.outstanding == 0, "a queue is created for its largest I/O");
        self.pool = pool_for(&self.direct, self.table.depth(), max_io_bytes);
        self.queue.attach(&self.pool);
    }
}

fn pool_for(direct: &DirectDevice, depth: usize, max_io_bytes: usize) -> Pool {
    let sinks = (READ_BYTES_MAX / max_io_bytes.max(1)).clamp(1, depth);
    direct.pool(max_io_bytes, sinks)
}

impl<Q: IoQueue> Device for QueuedDevice<Q> {
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
        if !Q::accepts(request.mode) {
            return self.call(request);
        }
        let size = request.size.0 as usize;
        if request.mode.moves_data() && size > self.pool.max_io_bytes {
            self.grow(size);
        }
        let slot = self.table.take_slot(request, &self.direct);
        let memory = match request.mode {
            Mode::Read => self.pool.sink_for(slot as usize),
            mode if mode.is_write() => self.write_data(request, slot).cast_mut(),
            _ => std::ptr::null_mut(),
        };
        let submitted = clock::now();
        let ticket = self.table.begin(slot, *request, submitted);
        let pushed = self.queue.push(slot, request, memory, &self.direct);
        pushed.map_err(|error| self.queue_error(&error))?;
        if self.queue.queued() >= SUBMIT_BATCH {
            self.enter(0)?;
        }
        Ok(ticket)
    }

    fn next_completion(&mut self, before: Nanos) -> Option<Nanos> {
        match self.wait(before) {
            Ok(true) => {
                let time = match self.table.first_completed() {
                    Some(Ok(completion)) => completion.completed,
                    _ => clock::now(),
                };
                // Failures are reported at once.
                let has_failed = matches!(self.table.first_completed(), Some(Err(_)));
                (time <= before || has_failed).then_some(time)
            }
            Ok(false) => None,
            // `complete` reports the error.
            Err(_) => Some(clock::now()),
        }
    }

    fn complete(&mut self) -> Result<Completion<()>> {
        if self.table.first_completed().is_none()
            && let Err(error) = self.wait(Nanos(u64::MAX))
        {
            // The outcome of the outstanding I/Os is unknown.
            self.table.outstanding = 0;
            self.has_failed = true;
            return Err(error);
        }
        match self.table.take_completed().expect("an I/O is outstanding") {
            Ok(completion) => Ok(completion),
            Err((io, number)) => Err(self.queue.io_error(&self.direct, &io, number)),
        }
    }

    fn set_content(&mut self, content: Option<ContentShares>) -> Result<()> {
        if content.is_some() && self.pool.sinks < self.table.depth() {
            let (depth, size) = (self.table.depth(), self.pool.max_io_bytes);
            return Err(Error::usage(
                "The writes in flight are too large to generate their content",
            )
            .at("queue_depth")
            .got(format!("{depth} I/Os of {size} bytes"))
            .allowed(format!("{READ_BYTES_MAX} bytes in flight"))
            .action("use a smaller queue depth or I/O size"));
        }
        self.direct.set_content(content)
    }

    fn zones(&self) -> Result<Option<ZoneReport>> {
        self.queue.zones(&self.direct)
    }

    fn split(&self, submitters: usize) -> Result<Option<Vec<QueuedDevice<Q>>>> {
        let handles = self.direct.split(submitters)?.unwrap_or_default();
        let (depth, max_io_bytes) = (self.table.depth() as u32, self.pool.max_io_bytes);
        let another = |direct| self.another(direct, depth, max_io_bytes);
        handles.into_iter().map(another).collect::<Result<Vec<_>>>().map(Some)
    }
}

impl<Q: IoQueue> Drop for QueuedDevice<Q> {
    /// Wait for outstanding I/Os: the kernel must not write into memory that has been freed.
    fn drop(&mut self) {
        while self.table.outstanding > 0 && self.enter(1).is_ok() {
            self.reap();
        }
        self.queue.release();
        if self.table.outstanding > 0 || self.has_failed {
            // Waiting is not possible: memory that the kernel may still write to is never freed.
            std::mem::forget(std::mem::replace(&mut self.pool, self.direct.pool(1, 1)));
        }
    }
}

/// A queue of reads and writes of a file or block device by io_uring, with registered file and
/// memory.
pub struct RingQueue {
    ring: IoUring,
    /// Entries queued but not yet submitted to the kernel.
    queued: usize,
    /// Whether the memory is registered with the kernel; if it cannot be locked, each I/O passes
    /// its address.
    is_registered: bool,
}

// SAFETY: the ring is used by one thread at a time; its memory maps and descriptor belong to the
// process.
unsafe impl Send for RingQueue {}

impl RingQueue {
    /// Create a queue of `depth` I/Os, and store the I/O method in the properties of `direct`.
    pub(crate) fn open(direct: &mut DirectDevice, depth: u32) -> Result<RingQueue> {
        let no_ring = |error: &std::io::Error| no_ring(&direct.info().url, error);
        let ring = if direct.polls {
            polled_ring(depth)
        } else {
            coop_ring(depth).or_else(|_| IoUring::new(depth))
        };
        let ring = ring.map_err(|error| no_ring(&error))?;
        let files = [direct.file.as_raw_fd()];
        ring.submitter().register_files(&files).map_err(|error| no_ring(&error))?;
        let polled = if direct.polls { ", polled" } else { "" };
        let io = direct.info().io.replace("pread/pwrite", "io_uring") + polled;
        direct.info.io = io;
        Ok(RingQueue { ring, queued: 0, is_registered: false })
    }

    fn entry(&self, io: &Io, memory: *mut u8, direct: &DirectDevice) -> squeue::Entry {
        let (size, offset, file) = (io.size.0 as u32, io.offset.0, types::Fixed(0));
        let durable = direct.durability == Durability::Fua;
        let flags = if durable { libc::RWF_DSYNC } else { 0 };
        match (io.mode, self.is_registered) {
            (Mode::Read, true) => {
                opcode::ReadFixed::new(file, memory, size, 0).offset(offset).build()
            }
            (Mode::Read, false) => opcode::Read::new(file, memory, size).offset(offset).build(),
            (Mode::Write, true) => {
                let write = opcode::WriteFixed::new(file, memory, size, 0);
                write.offset(offset).rw_flags(flags).build()
            }
            (Mode::Write, false) => {
                let write = opcode::Write::new(file, memory, size);
                write.offset(offset).rw_flags(flags).build()
            }
            _ => unreachable!("only reads and writes enter the queue"),
        }
    }
}

impl IoQueue for RingQueue {
    const FLUSHES: bool = false;

    fn open_another(&self, direct: &mut DirectDevice, depth: u32) -> Result<RingQueue> {
        RingQueue::open(direct, depth)
    }

    fn attach(&mut self, pool: &Pool) {
        if self.is_registered {
            let _ = self.ring.submitter().unregister_buffers();
        }
        let memory = [pool.whole()];
        // SAFETY: the pool outlives the ring, or is never freed.
        self.is_registered = unsafe { self.ring.submitter().register_buffers(&memory) }.is_ok();
    }

    #[inline]
    fn accepts(mode: Mode) -> bool {
        matches!(mode, Mode::Read | Mode::Write)
    }

    #[inline]
    fn push(
        &mut self,
        slot: u32,
        io: &Io,
        memory: *mut u8,
        direct: &DirectDevice,
    ) -> std::io::Result<()> {
        let entry = self.entry(io, memory, direct).user_data(u64::from(slot));
        self.queued += 1;
        // SAFETY: the memory belongs to the pool, which lives until no I/O is outstanding; the
        // descriptor is registered.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.enter(0)?;
        }
        Ok(())
    }

    #[inline]
    fn queued(&self) -> usize {
        self.queued
    }

    fn enter(&mut self, completions: usize) -> std::io::Result<()> {
        enter(&self.ring, completions)?;
        self.queued = 0;
        Ok(())
    }

    fn enter_until(&mut self, timeout: Nanos) -> std::io::Result<()> {
        enter_until(&self.ring, timeout)
    }

    #[inline]
    fn holds_completions(&mut self) -> bool {
        self.ring.submission().taskrun()
    }

    #[inline]
    fn reap(&mut self, table: &mut InflightTable) {
        let mut queue = self.ring.completion();
        if queue.is_empty() {
            return;
        }
        let completed = clock::now();
        for entry in &mut queue {
            let (slot, result) = (entry.user_data() as u32, entry.result());
            let is_whole = table.io(slot).is_some_and(|io| io.size.0 as i32 == result);
            table.end(slot, completed, (!is_whole).then_some(result));
        }
    }

    fn io_error(&self, direct: &DirectDevice, io: &Io, number: i32) -> Error {
        direct.queued_io_failed(io, number)
    }

    fn zones(&self, direct: &DirectDevice) -> Result<Option<ZoneReport>> {
        direct.zones()
    }

    fn release(&mut self) {
        let _ = self.ring.submitter().unregister_files();
    }
}

/// Submit the queued entries of a ring, and wait for `completions`.
pub(crate) fn enter<S, C>(ring: &IoUring<S, C>, completions: usize) -> std::io::Result<()>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    loop {
        match ring.submit_and_wait(completions) {
            Ok(_) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Submit the queued entries of a ring, and wait for a completion, at most for `timeout`.
pub(crate) fn enter_until<S, C>(ring: &IoUring<S, C>, timeout: Nanos) -> std::io::Result<()>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    let time = types::Timespec::new()
        .sec(timeout.0 / 1_000_000_000)
        .nsec((timeout.0 % 1_000_000_000) as u32);
    let args = types::SubmitArgs::new().timespec(&time);
    match ring.submitter().submit_with_args(1, &args) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Create a queue whose completions wait until the next kernel entry. Otherwise each interrupts the
/// CPU, which costs more than the I/O if data is in memory. Every kernel with the required queues
/// supports this, but sandboxes that emulate it may not.
fn coop_ring(depth: u32) -> std::io::Result<IoUring> {
    IoUring::builder().setup_coop_taskrun().setup_taskrun_flag().build(depth)
}

/// Create the error of a system without io_uring.
pub(crate) fn no_ring(url: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "The system does not provide io_uring")
        .at(url)
        .got(error.to_string())
        .allowed("Linux 5.19 or later, with io_uring allowed (kernel.io_uring_disabled)")
        .action("use a queue depth of 1: I/Os are then issued one after another")
}
