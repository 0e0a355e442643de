//! Synchronous positional I/O on an open descriptor, timed right around the system calls.
//!
//! How long a write lasts is the [`Durability`] asked for: until `pwrite` returns; until a `pwritev2`
//! with `RWF_DSYNC` does, which the kernel turns into a write with FUA, or into one that a flush of
//! the device's cache follows; or, every N-th time, until `fdatasync` has made all of them durable.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uflip_core::{
    Bytes, Completion, CompletionQueue, Counters, Device, DeviceInfo, DeviceKind, Durability,
    Error, Io, Mode, Nanos, Result, SECTOR_BYTES_MIN, Ticket, ZoneReport,
};

use crate::buffer::{Data, Pool};
use crate::clock;
use crate::completions::{BUFFERED, Completions, not_polled, why_not_polled};
use crate::guard::mark::Kept;
use crate::standing::{Standing, standing};
use crate::watch::{Watch, Watched};
use crate::zoned;

/// What a pool holds before the first longer I/O asks for more.
const POOL_BYTES: usize = 1 << 20;

/// `_IO(0x12, 119)` of `linux/fs.h`: two numbers, where and how much.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// A file or block device, opened by [`crate::open_file`] or [`crate::open_block`].
pub struct DirectDevice {
    info: DeviceInfo,
    file: File,
    data: Data,
    durability: Durability,
    /// Whether completions of a queue are looked for.
    polls: bool,
    /// Writes since that was set, of all handles; counted where every N-th is flushed.
    written: Arc<AtomicU64>,
    /// Whose data these are; the last handle leaves the file marked as ours.
    kept: Arc<Kept>,
    pool: Pool,
    completions: CompletionQueue,
    watch: Watch,
    watched: Arc<Watched>,
}

impl DirectDevice {
    pub(crate) fn new(info: DeviceInfo, file: File, data: Data, kept: Arc<Kept>) -> DirectDevice {
        kept.listen(&file);
        DirectDevice::watched_by(Watch::new(&info.url), info, file, data, kept)
    }

    fn watched_by(
        watch: Watch,
        info: DeviceInfo,
        file: File,
        data: Data,
        kept: Arc<Kept>,
    ) -> DirectDevice {
        let pool = Pool::new(POOL_BYTES, 1, data, kept.brand());
        let watched = watch.handle();
        DirectDevice {
            info,
            file,
            data,
            durability: Durability::default(),
            polls: false,
            written: Arc::default(),
            kept,
            pool,
            completions: CompletionQueue::default(),
            watch,
            watched,
        }
    }

    /// What writes wait for from now on.
    pub fn set_durability(&mut self, durability: Durability) {
        (self.durability, self.written) = (durability, Arc::default());
    }

    /// Say how the end of an I/O in a queue is learned of, from now on; whether it is by polling.
    ///
    /// # Errors
    /// It was to be polled, and cannot.
    pub fn choose_completions(&mut self, completions: Completions) -> Result<bool> {
        self.polls = false;
        if completions == Completions::Interrupt {
            return Ok(false);
        }
        let sector = self.info.sector_bytes.0;
        let why = if self.info.io.contains("buffered") {
            Some(BUFFERED.into())
        } else {
            let mut pool = self.pool(sector as usize, 1);
            why_not_polled(&self.file, pool.sink(), sector as u32)
        };
        match why {
            Some(why) if completions == Completions::Polled => {
                return Err(not_polled(&self.info.url, &why));
            }
            why => self.polls = why.is_none(),
        }
        Ok(self.polls)
    }

    /// Make durable what was written.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| {
            Error::os("The device could not be flushed", &self.info.url, &error)
                .action("the device may have lost what was written: see the kernel's log")
        })
    }

    /// Write what `data` points at, as durably as was asked for; returns the number of bytes written.
    #[inline]
    fn write(&self, data: *const u8, size: usize, offset: libc::off_t) -> isize {
        let fd = self.file.as_raw_fd();
        let moved = if self.durability == Durability::Fua {
            let all = libc::iovec { iov_base: data.cast_mut().cast(), iov_len: size };
            // SAFETY: one piece, at least `size` bytes long, which is only read.
            unsafe { libc::pwritev2(fd, &raw const all, 1, offset, libc::RWF_DSYNC) }
        } else {
            // SAFETY: `data` is at least `size` bytes long.
            unsafe { libc::pwrite(fd, data.cast(), size, offset) }
        };
        if moved == size as isize && matches!(self.durability, Durability::Flush(_)) {
            let before = self.written.fetch_add(1, Ordering::Relaxed);
            // SAFETY: an open descriptor.
            if self.durability.flushes_after(before) && unsafe { libc::fdatasync(fd) } != 0 {
                return -1;
            }
        }
        moved
    }

    /// Tell what is below that `size` bytes at `offset` are not needed any more: a block device discards
    /// them, of a file they become a hole, which its file system passes on if it is mounted to.
    ///
    /// # Errors
    /// The target was opened for reading, or cannot do that.
    pub fn trim(&mut self, offset: Bytes, size: Bytes) -> Result<()> {
        if !self.deallocate(offset, size) {
            let error = std::io::Error::last_os_error();
            let what = format!("{size} at byte {} could not be deallocated", offset.0);
            return Err(Error::os(what, &self.info.url, &error).action(not_deallocated(&error)));
        }
        self.grown();
        Ok(())
    }

    /// The system call alone; whether it did it.
    #[inline]
    fn deallocate(&self, offset: Bytes, size: Bytes) -> bool {
        let fd = self.file.as_raw_fd();
        self.watch.deallocates();
        let done = if self.info.kind == DeviceKind::Block {
            let range = [offset.0, size.0];
            // SAFETY: an open descriptor, and the two numbers that this request reads.
            unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) }
        } else {
            let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            let (offset, size) = (offset.0 as libc::off_t, size.0 as libc::off_t);
            // SAFETY: an open descriptor.
            unsafe { libc::fallocate(fd, how, offset, size) }
        };
        done == 0
    }

    /// A trim, or a command to a zone, as an I/O: when it began, how many bytes it was about, and when it
    /// was over.
    #[inline]
    pub(crate) fn timed_call(&self, request: &Io) -> (Nanos, isize, Nanos) {
        let submitted = clock::now();
        let done = match request.mode {
            Mode::Trim => self.deallocate(request.offset, request.size),
            mode => zoned::manage(&self.file, mode, request.offset, request.size),
        };
        let completed = clock::now();
        (submitted, if done { request.size.0 as isize } else { -1 }, completed)
    }

    /// Something is about to be done that may write: what others wrote until now is no doing of ours.
    pub fn begin(&self) {
        self.kept.begin();
    }

    /// It is done: take note that what is there now is ours, unless others wrote.
    pub fn rest(&self) {
        self.kept.renew();
    }

    /// Sees from outside which I/O is under way, and whether a file is cut from now on.
    #[must_use]
    pub fn watch(&self) -> Watch {
        let is_random = self.data == Data::Random;
        self.watch.following(&self.file, self.info.capacity_bytes, is_random)
    }

    /// How the target stands now: to be asked before and after a run.
    pub fn standing(&mut self) -> Standing {
        let name = self.info.url.strip_prefix("file:").unwrap_or(&self.info.url);
        let mut now = standing(self.info.kind, name, &self.file);
        self.kept.tell(&mut now);
        now
    }

    /// Take note of how much of a file is there: what is not allocated is a hole, and reads of it
    /// never reach the device.
    pub fn grown(&mut self) {
        if let Ok(metadata) = self.file.metadata() {
            let allocated = metadata.blocks() * SECTOR_BYTES_MIN;
            self.info.details.insert("allocated_bytes".into(), allocated.into());
        }
    }

    /// What writes wait for.
    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// Whether completions of a queue are looked for.
    pub(crate) fn polls(&self) -> bool {
        self.polls
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Say how I/Os are made, where not by this device itself.
    pub(crate) fn tell_io(&mut self, io: String) {
        self.info.io = io;
    }

    /// Memory for I/Os of up to `longest` bytes, of which so many read at a time.
    pub(crate) fn pool(&self, longest: usize, sinks: usize) -> Pool {
        Pool::new(longest, sinks, self.data, self.kept.brand())
    }

    /// Note the oldest I/O of a queue, or that there is none.
    pub(crate) fn watch_queue(&self, oldest: Option<&Io>) {
        self.watched.rests();
        if let Some(io) = oldest {
            self.watched.begins(io);
        }
    }

    /// The error of an I/O of a queue that ended with `result`: an error number below zero, or too few
    /// bytes.
    pub(crate) fn failed_in_queue(&self, request: &Io, result: i32) -> Error {
        let error = std::io::Error::from_raw_os_error(-result.min(0));
        self.explained(request, result as isize, &error)
    }

    pub(crate) fn failed(&self, request: &Io, moved: isize) -> Error {
        self.explained(request, moved, &std::io::Error::last_os_error())
    }

    fn explained(&self, request: &Io, moved: isize, error: &std::io::Error) -> Error {
        let what = format!("{request} failed");
        if moved >= 0 {
            return Error::device(what)
                .at(&self.info.url)
                .got(format!("{moved} bytes moved"))
                .action("the device or file is shorter than it was when it was opened");
        }
        let action = match error.raw_os_error() {
            _ if request.mode == Mode::Trim => not_deallocated(error),
            _ if request.mode.requires_zones() => zoned::refused(error),
            Some(libc::ETOOMANYREFS) => zoned::TOO_MANY_OPEN,
            Some(libc::EOVERFLOW) => zoned::TOO_MANY_ACTIVE,
            Some(libc::ENOSPC) if self.info.kind == DeviceKind::Block => {
                "what lies below the device has no room left: give it more, or use less of the device"
            }
            Some(libc::ENOSPC) => "the file system is full: free some space, or use a smaller file",
            Some(libc::EINVAL) => "the device does not accept this alignment with direct I/O",
            Some(libc::EOPNOTSUPP) => "this file system has no durable writes: see --durability",
            Some(libc::EIO) => "the device failed: see the kernel's log",
            _ => "see the system's message above",
        };
        Error::os(what, &self.info.url, error).action(action)
    }
}

/// What to do where a range cannot be deallocated.
fn not_deallocated(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => "the device has no such command: choose another one",
        Some(libc::EBADF | libc::EACCES | libc::EPERM) => "open it for writing",
        _ => "see the system's message above",
    }
}

impl Device for DirectDevice {
    type Request = Io;
    type Status = ();
    type Breakdown = ();

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    #[inline]
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn wait_until(&mut self, t: Nanos) {
        clock::wait_until(t);
    }

    #[inline]
    fn submit(&mut self, request: &Io) -> Result<Ticket> {
        assert!(self.completions.is_empty(), "a direct device is synchronous");
        let size = request.size.0 as usize;
        if size > self.pool.longest() && request.mode.moves_data() {
            self.pool = Pool::new(size, 1, self.data, self.kept.brand());
        }
        let (fd, offset) = (self.file.as_raw_fd(), request.offset.0 as libc::off_t);
        let (submitted, moved, completed);
        self.watched.begins(request);
        match request.mode {
            Mode::Read => {
                let sink = self.pool.sink();
                submitted = clock::now();
                // SAFETY: the pool is at least `size` bytes long and ours alone.
                moved = unsafe { libc::pread(fd, sink.cast(), size, offset) };
                completed = clock::now();
            }
            Mode::Write => {
                let data = self.pool.next_data();
                submitted = clock::now();
                // `next_data` leaves at least `size` bytes behind it.
                moved = self.write(data, size, offset);
                completed = clock::now();
            }
            _ => (submitted, moved, completed) = self.timed_call(request),
        }
        self.watched.ends();
        if moved != size as isize {
            return Err(self.failed(request, moved));
        }
        Ok(self.completions.push(submitted, completed))
    }

    #[inline]
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.completions.next_completion()
    }

    #[inline]
    fn complete(&mut self) -> Result<Completion<()>> {
        Ok(self.completions.complete())
    }

    fn counters(&self) -> Option<Counters> {
        None
    }

    fn zones(&self) -> Result<Option<ZoneReport>> {
        zoned::report(&self.file, &self.info)
    }

    fn split(&self, submitters: usize) -> Result<Option<Vec<DirectDevice>>> {
        let handle = |_| {
            let file = self.file.try_clone().map_err(|error| {
                Error::os("The device handle cannot be duplicated", &self.info.url, &error)
            })?;
            let (watch, info) = (self.watch.clone(), self.info.clone());
            let kept = Arc::clone(&self.kept);
            let handle = DirectDevice::watched_by(watch, info, file, self.data, kept);
            let written = Arc::clone(&self.written);
            let (durability, polls) = (self.durability, self.polls);
            Ok(DirectDevice { durability, polls, written, ..handle })
        };
        (0..submitters).map(handle).collect::<Result<Vec<_>>>().map(Some)
    }
}
