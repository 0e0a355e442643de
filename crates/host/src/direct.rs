//! Synchronous positional I/O on an open descriptor, timed right around the system call.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use uflip_core::{
    Completion, Counters, Device, DeviceInfo, Error, Io, Mode, Nanos, Result, SECTOR_BYTES_MIN,
    Ticket,
};

use crate::buffer::{Data, Pool};
use crate::clock;
use crate::guard::mark::Kept;
use crate::standing::{Others, Standing, standing};
use crate::watch::{Watch, Watched};

/// What a pool holds before the first longer I/O asks for more.
const POOL_BYTES: usize = 1 << 20;

/// A file or block device, opened by [`crate::open_file`] or [`crate::open_block`].
pub struct DirectDevice {
    info: DeviceInfo,
    file: File,
    data: Data,
    /// Whose data these are; the last handle leaves the file marked as ours.
    kept: Arc<Kept>,
    pool: Pool,
    tickets: u64,
    outstanding: Option<Completion<()>>,
    watch: Watch,
    watched: Arc<Watched>,
    /// Of the first handle only.
    others: Option<Others>,
}

impl DirectDevice {
    pub(crate) fn new(info: DeviceInfo, file: File, data: Data, kept: Arc<Kept>) -> DirectDevice {
        let (watch, others) = (Watch::new(&info.url), Others::of(&file));
        DirectDevice { others, ..DirectDevice::watched_by(watch, info, file, data, kept) }
    }

    fn watched_by(
        watch: Watch,
        info: DeviceInfo,
        file: File,
        data: Data,
        kept: Arc<Kept>,
    ) -> DirectDevice {
        let pool = Pool::new(POOL_BYTES, data, kept.brand());
        let watched = watch.handle();
        DirectDevice {
            info,
            file,
            data,
            kept,
            pool,
            tickets: 0,
            outstanding: None,
            watch,
            watched,
            others: None,
        }
    }

    /// A run is over: take note that what is there now is ours.
    pub fn rest(&self) {
        self.kept.renew();
    }

    /// Sees from outside which I/O is under way.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// How the target stands now: to be asked before and after a run.
    pub fn standing(&mut self) -> Standing {
        let name = self.info.url.strip_prefix("file:").unwrap_or(&self.info.url);
        standing(self.info.kind, name, &self.file, self.others.as_mut())
    }

    /// Take note of how much of a file is there: what is not allocated is a hole, and reads of it
    /// never reach the device.
    pub fn grown(&mut self) {
        if let Ok(metadata) = self.file.metadata() {
            let allocated = metadata.blocks() * SECTOR_BYTES_MIN;
            self.info.details.insert("allocated_bytes".into(), allocated.into());
        }
    }

    fn failed(&self, request: &Io, moved: isize) -> Error {
        let verb = match request.mode {
            Mode::Read => "read",
            Mode::Write => "write",
        };
        let what = format!("A {verb} of {} at byte {} failed", request.size, request.offset.0);
        let error = std::io::Error::last_os_error();
        if moved >= 0 {
            return Error::device(what)
                .at(&self.info.url)
                .got(format!("{moved} bytes moved"))
                .action("the device or file is shorter than it was when it was opened");
        }
        let action = match error.raw_os_error() {
            Some(libc::ENOSPC) => "the file system is full: free some space, or use a smaller file",
            Some(libc::EINVAL) => "the device does not accept this alignment with direct I/O",
            Some(libc::EIO) => "the device failed: see the kernel's log",
            _ => "see the system's message above",
        };
        Error::os(what, &self.info.url, &error).action(action)
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
        assert!(self.outstanding.is_none(), "a direct device is synchronous");
        let size = request.size.0 as usize;
        if size > self.pool.longest() {
            self.pool = Pool::new(size, self.data, self.kept.brand());
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
                // SAFETY: `next_data` leaves at least `size` bytes behind it.
                moved = unsafe { libc::pwrite(fd, data.cast(), size, offset) };
                completed = clock::now();
            }
        }
        self.watched.ends();
        if moved != size as isize {
            return Err(self.failed(request, moved));
        }
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.outstanding =
            Some(Completion { ticket, submitted, completed, breakdown: (), status: () });
        Ok(ticket)
    }

    #[inline]
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.outstanding.as_ref().map(|completion| completion.completed)
    }

    #[inline]
    fn complete(&mut self) -> Result<Completion<()>> {
        Ok(self.outstanding.take().expect("something is outstanding"))
    }

    fn counters(&self) -> Option<Counters> {
        None
    }

    fn split(&self, submitters: usize) -> Result<Option<Vec<DirectDevice>>> {
        let handle = |_| {
            let file = self.file.try_clone().map_err(|error| {
                Error::os("A further handle cannot be made", &self.info.url, &error)
            })?;
            let (watch, info) = (self.watch.clone(), self.info.clone());
            Ok(DirectDevice::watched_by(watch, info, file, self.data, Arc::clone(&self.kept)))
        };
        (0..submitters).map(handle).collect::<Result<Vec<_>>>().map(Some)
    }
}
