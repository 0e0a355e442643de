//! Reads and writes of a file or block device by io_uring, with registered file and memory.

use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};
use uflip_core::{Device, Durability, Error, ErrorKind, Io, Mode, Nanos, Result, ZoneReport};

use crate::buffer::Pool;
use crate::clock;
use crate::completions::polled_ring;
use crate::direct::DirectDevice;
use crate::inflight::InflightTable;
use crate::io_queue::IoQueue;

/// A queue of reads and writes.
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
        let ring = if direct.polls() {
            polled_ring(depth)
        } else {
            coop_ring(depth).or_else(|_| IoUring::new(depth))
        };
        let ring = ring.map_err(|error| no_ring(&error))?;
        let files = [direct.file().as_raw_fd()];
        ring.submitter().register_files(&files).map_err(|error| no_ring(&error))?;
        let polled = if direct.polls() { ", polled" } else { "" };
        direct.set_io_method(direct.info().io.replace("pread/pwrite", "io_uring") + polled);
        Ok(RingQueue { ring, queued: 0, is_registered: false })
    }

    fn entry(&self, io: &Io, memory: *mut u8, direct: &DirectDevice) -> squeue::Entry {
        let (size, offset, file) = (io.size.0 as u32, io.offset.0, types::Fixed(0));
        let durable = direct.durability() == Durability::Fua;
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
    C: io_uring::cqueue::EntryMarker,
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
    C: io_uring::cqueue::EntryMarker,
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
