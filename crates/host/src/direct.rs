//! Synchronous positional I/O on an open descriptor, timed directly around the system calls.
//!
//! The end of a write depends on its [`Durability`]: when `pwrite` returns; when `pwritev2` with
//! `RWF_DSYNC` returns, which the kernel turns into a FUA write, or a write and a flush of the
//! device's cache; or, every N-th time, when `fdatasync` has made all of them durable.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uflip_core::content::{Content, ContentWriter, check_data_source};
use uflip_core::{
    Bytes, Completion, CompletionQueue, ContentShares, Device, DeviceInfo, DeviceKind, Durability,
    Error, Io, Mode, Nanos, Result, SECTOR_BYTES_MIN, Ticket, ZoneReport,
};

use crate::buffer::{Data, Pool};
use crate::completions::{BUFFERED, Completions, find_polling_obstacle, not_polled};
use crate::guard::ownership::{OwnershipMark, SectorStamp, unique_number};
use crate::watch::{DeviceWatch, InflightIo, TargetStatus, target_status};
use crate::{clock, zoned};

/// The initial size of a pool, before the first larger I/O.
const POOL_BYTES: usize = 1 << 20;

/// `_IO(0x12, 119)` of `linux/fs.h`; takes an offset and a length.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// A file or block device, opened by [`crate::open_file`] or [`crate::open_block`].
pub struct DirectDevice {
    /// The properties; another method of I/O changes some of them.
    pub(crate) info: DeviceInfo,
    pub(crate) file: Arc<File>,
    data: Data,
    /// The content of writes, if the pattern determines it; and the process of this handle.
    pub(crate) writer: Option<ContentWriter>,
    process: u64,
    pub(crate) durability: Durability,
    /// Whether completions of a queue are polled.
    pub(crate) polls: bool,
    /// Writes since the durability was set, over all handles; counted for `flush:N`.
    writes: Arc<AtomicU64>,
    /// The ownership mark; the last handle closes it.
    mark: Arc<OwnershipMark>,
    pool: Pool,
    completions: CompletionQueue,
    watch: DeviceWatch,
    inflight: Arc<InflightIo>,
}

impl DirectDevice {
    pub(crate) fn new(
        info: DeviceInfo,
        file: File,
        data: Data,
        mark: Arc<OwnershipMark>,
    ) -> DirectDevice {
        mark.count_opens(&file);
        DirectDevice::with_watch(DeviceWatch::new(&info.url), info, file, data, mark)
    }

    fn with_watch(
        watch: DeviceWatch,
        info: DeviceInfo,
        file: File,
        data: Data,
        mark: Arc<OwnershipMark>,
    ) -> DirectDevice {
        let pool = Pool::new(POOL_BYTES, 1, data, mark.stamp());
        let inflight = watch.handle();
        DirectDevice {
            info,
            file: Arc::new(file),
            data,
            writer: None,
            process: 0,
            durability: Durability::default(),
            polls: false,
            writes: Arc::default(),
            mark,
            pool,
            completions: CompletionQueue::default(),
            watch,
            inflight,
        }
    }

    /// Set the durability of all following writes.
    pub fn set_durability(&mut self, durability: Durability) {
        (self.durability, self.writes) = (durability, Arc::default());
    }

    /// Choose the completion mode of queued I/Os; return whether they are polled.
    ///
    /// # Errors
    /// If polling was required and is not supported.
    pub fn set_completions(&mut self, completions: Completions) -> Result<bool> {
        self.polls = false;
        if completions == Completions::Interrupt {
            return Ok(false);
        }
        let sector = self.info.sector_bytes.0;
        let reason = if self.info.io.contains("buffered") {
            Some(BUFFERED.into())
        } else {
            let mut pool = self.pool(sector as usize, 1);
            find_polling_obstacle(&self.file, pool.sink(), sector as u32)
        };
        match reason {
            Some(reason) if completions == Completions::Polled => {
                return Err(not_polled(&self.info.url, &reason));
            }
            reason => self.polls = reason.is_none(),
        }
        Ok(self.polls)
    }

    /// Make all written data durable.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| {
            Error::os("The device could not be flushed", &self.info.url, &error)
                .action("the device may have lost written data: see the kernel's log")
        })
    }

    /// Write `size` bytes with the chosen durability; return the number of bytes written.
    #[inline]
    fn write(&self, data: *const u8, size: usize, offset: libc::off_t) -> isize {
        let fd = self.file.as_raw_fd();
        let written_bytes = if self.durability == Durability::Fua {
            let buffer = libc::iovec { iov_base: data.cast_mut().cast(), iov_len: size };
            // SAFETY: one buffer of at least `size` bytes, which is only read.
            unsafe { libc::pwritev2(fd, &raw const buffer, 1, offset, libc::RWF_DSYNC) }
        } else {
            // SAFETY: `data` is at least `size` bytes long.
            unsafe { libc::pwrite(fd, data.cast(), size, offset) }
        };
        if written_bytes == size as isize && self.count_write() {
            // SAFETY: an open descriptor.
            let failed = unsafe { libc::fdatasync(fd) } != 0;
            if failed {
                return -1;
            }
        }
        written_bytes
    }

    /// Deallocate `size` bytes at `offset`: discard them on a block device; punch a hole into a
    /// file, which its file system passes on if it is mounted with discard.
    ///
    /// # Errors
    /// If the target was opened for reading, or does not support it.
    pub fn trim(&mut self, offset: Bytes, size: Bytes) -> Result<()> {
        if !self.deallocate(offset, size) {
            let error = std::io::Error::last_os_error();
            let problem = format!("{size} at byte {} could not be deallocated", offset.0);
            return Err(Error::os(problem, &self.info.url, &error).action(not_deallocated(&error)));
        }
        self.update_allocated_size();
        Ok(())
    }

    /// Issue the system call; return whether it succeeded.
    #[inline]
    fn deallocate(&self, offset: Bytes, size: Bytes) -> bool {
        let fd = self.file.as_raw_fd();
        self.watch.note_deallocation();
        let status = if self.info.kind == DeviceKind::Block {
            let range = [offset.0, size.0];
            // SAFETY: an open descriptor, and a range of two integers that the call reads.
            unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) }
        } else {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            let (offset, size) = (offset.0 as libc::off_t, size.0 as libc::off_t);
            // SAFETY: an open descriptor.
            unsafe { libc::fallocate(fd, mode, offset, size) }
        };
        status == 0
    }

    /// Execute a trim or zone command; return its start, its size in bytes or -1, and its end.
    #[inline]
    pub(crate) fn timed_call(&self, request: &Io) -> (Nanos, isize, Nanos) {
        let submitted = clock::now();
        let succeeded = match request.mode {
            Mode::Trim => self.deallocate(request.offset, request.size),
            mode => zoned::manage(&self.file, mode, request.offset, request.size),
        };
        let completed = clock::now();
        (submitted, if succeeded { request.size.0 as isize } else { -1 }, completed)
    }

    /// Note that uflip begins to write: earlier changes were made by others.
    pub fn begin_writes(&self) {
        self.mark.begin();
    }

    /// Update the mark after uflip's writes, unless others wrote meanwhile.
    pub fn end_writes(&self) {
        self.mark.renew();
    }

    /// Return a watch for other threads: the outstanding I/O, and whether the file was truncated.
    #[must_use]
    pub fn watch(&self) -> DeviceWatch {
        let is_random = self.data == Data::Random;
        self.watch.with_file(&self.file, self.info.capacity_bytes, is_random)
    }

    /// Return the present status of the target, for comparison before and after a run.
    pub fn status(&mut self) -> TargetStatus {
        let url = &self.info.url;
        let name = url.strip_prefix("file:").or_else(|| url.strip_prefix("nvme:")).unwrap_or(url);
        let mut status = target_status(self.info.kind, name, &self.file);
        self.mark.add_to(&mut status);
        status
    }

    /// Store the allocated size of a file: unallocated parts are holes, and reads of them never
    /// reach the device.
    pub fn update_allocated_size(&mut self) {
        if let Ok(metadata) = self.file.metadata() {
            let allocated = metadata.blocks() * SECTOR_BYTES_MIN;
            self.info.details.insert("allocated_bytes".into(), allocated.into());
        }
    }

    /// Return the content of the last run, if its pattern determined it.
    #[must_use]
    pub fn content(&self) -> Option<Content> {
        self.writer.map(|writer| writer.content())
    }

    /// Take over the content of a run on another handle.
    pub fn adopt_content(&mut self, content: Option<Content>) {
        self.writer = content.map(|content| ContentWriter::new(content, self.process));
    }

    /// Return the data of a read, and execute it now.
    ///
    /// # Errors
    /// Any error of the device.
    pub fn read_back(&mut self, io: &Io) -> Result<&[u8]> {
        self.submit(io)?;
        self.complete()?;
        Ok(self.pool.data(io.size.0 as usize))
    }

    /// Mark generated sectors as data of this medium.
    pub fn mark_sectors(&self, sectors: &mut [u8]) {
        self.mark.stamp().apply(sectors);
    }

    /// Count a write; return whether a flush follows it.
    #[inline]
    pub(crate) fn count_write(&self) -> bool {
        matches!(self.durability, Durability::Flush(_))
            && self.durability.flushes_after(self.writes.fetch_add(1, Ordering::Relaxed))
    }

    /// Create a pool for I/Os of up to `max_io_bytes`, with `sinks` read buffers.
    pub(crate) fn pool(&self, max_io_bytes: usize, sinks: usize) -> Pool {
        Pool::new(max_io_bytes, sinks, self.data, self.mark.stamp())
    }

    /// Store the oldest I/O of a queue for the watch; `None` if it is empty.
    pub(crate) fn watch_queue(&self, oldest: Option<&Io>) {
        self.inflight.clear();
        if let Some(io) = oldest {
            self.inflight.begin(io);
        }
    }

    /// Create the error of a queued I/O with `result`: a negative error number, or too few bytes.
    pub(crate) fn queued_io_failed(&self, request: &Io, result: i32) -> Error {
        let error = std::io::Error::from_raw_os_error(-result.min(0));
        self.io_error(request, result as isize, &error)
    }

    pub(crate) fn io_failed(&self, request: &Io, moved_bytes: isize) -> Error {
        self.io_error(request, moved_bytes, &std::io::Error::last_os_error())
    }

    fn io_error(&self, request: &Io, moved_bytes: isize, error: &std::io::Error) -> Error {
        let problem = format!("{request} failed");
        if moved_bytes >= 0 {
            return Error::device(problem)
                .at(&self.info.url)
                .got(format!("{moved_bytes} bytes moved"))
                .action("the device or file is shorter than it was when it was opened");
        }
        let action = match error.raw_os_error() {
            _ if request.mode == Mode::Trim => not_deallocated(error),
            _ if request.mode.requires_zones() => zoned::command_error_action(error),
            Some(libc::ETOOMANYREFS) => zoned::TOO_MANY_OPEN,
            Some(libc::EOVERFLOW) => zoned::TOO_MANY_ACTIVE,
            Some(libc::ENOSPC) if self.info.kind == DeviceKind::Block => {
                "the storage below the device is full: extend it, or use a smaller part of the device"
            }
            Some(libc::ENOSPC) => "the file system is full: free some space, or use a smaller file",
            Some(libc::EINVAL) => "the device does not accept this alignment with direct I/O",
            Some(libc::EOPNOTSUPP) => "this file system has no durable writes: see --durability",
            Some(libc::EIO) => "the device failed: see the kernel's log",
            _ => "see the message of the system above",
        };
        Error::os(problem, &self.info.url, error).action(action)
    }
}

/// Return the action for a failed deallocation.
fn not_deallocated(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => "the device has no such command: choose another one",
        Some(libc::EBADF | libc::EACCES | libc::EPERM) => "open it for writing",
        _ => "see the message of the system above",
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
        if size > self.pool.max_io_bytes && request.mode.moves_data() {
            self.pool = Pool::new(size, 1, self.data, self.mark.stamp());
        }
        let (fd, offset) = (self.file.as_raw_fd(), request.offset.0 as libc::off_t);
        let (submitted, moved_bytes, completed);
        self.inflight.begin(request);
        match request.mode {
            Mode::Read => {
                let sink = self.pool.sink();
                submitted = clock::now();
                // SAFETY: the buffer is at least `size` bytes long and not shared.
                moved_bytes = unsafe { libc::pread(fd, sink.cast(), size, offset) };
                completed = clock::now();
            }
            Mode::Write => {
                let data = match &mut self.writer {
                    None => self.pool.next_data(),
                    Some(writer) => self.pool.generate(0, writer, request.offset.0, size),
                };
                submitted = clock::now();
                // `next_data` points to at least `size` bytes.
                moved_bytes = self.write(data, size, offset);
                completed = clock::now();
            }
            _ => (submitted, moved_bytes, completed) = self.timed_call(request),
        }
        self.inflight.end();
        if moved_bytes != size as isize {
            return Err(self.io_failed(request, moved_bytes));
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

    fn set_content(&mut self, content: Option<ContentShares>) -> Result<()> {
        if content.is_some() {
            check_data_source(&self.info.url, self.data.name())?;
        }
        let run = |shares| Content { shares, run: unique_number() };
        self.adopt_content(content.map(run));
        Ok(())
    }

    fn zones(&self) -> Result<Option<ZoneReport>> {
        zoned::report(&self.file, &self.info)
    }

    fn split(&self, submitters: usize) -> Result<Option<Vec<DirectDevice>>> {
        let handle = |process: usize| {
            let file = self.file.try_clone().map_err(|error| {
                Error::os("The device handle cannot be duplicated", &self.info.url, &error)
            })?;
            let (watch, info) = (self.watch.clone(), self.info.clone());
            let mark = Arc::clone(&self.mark);
            let handle = DirectDevice::with_watch(watch, info, file, self.data, mark);
            let writes = Arc::clone(&self.writes);
            let (durability, polls) = (self.durability, self.polls);
            let process = process as u64;
            let writer = self.content().map(|content| ContentWriter::new(content, process));
            Ok(DirectDevice { durability, polls, writes, writer, process, ..handle })
        };
        (0..submitters).map(handle).collect::<Result<Vec<_>>>().map(Some)
    }
}

/// Return the I/O method, as stored with a result.
pub(crate) fn io_method(buffered: bool) -> String {
    if buffered { "pread/pwrite, buffered" } else { "pread/pwrite O_DIRECT" }.into()
}

/// Store the stamp that was found on a medium, or that will be written to it.
pub(crate) fn insert_stamp(
    info: &mut DeviceInfo,
    found: Option<SectorStamp>,
    new: Option<(SectorStamp, Data)>,
) {
    let new = new.filter(|(_, data)| *data == Data::Random).map(|(stamp, _)| stamp);
    if let Some(stamp) = found.or(new) {
        info.details.insert("brand".into(), stamp.text().into());
        if found.is_none() {
            info.details.insert("brand_is_new".into(), true.into());
        }
    }
}
