//! An open target, observed from outside its I/O: by other threads, and before and after a run.
//!
//! A thread that is blocked in the kernel cannot report. Each handle therefore publishes its next
//! I/O first: plain stores to a cache line of its own, outside the timed part.
//!
//! An open target may be truncated, deleted, replaced under its name, or detached meanwhile, and
//! others may open, read or write it. The descriptor is compared with the name, a block device
//! counts sectors, and inotify reports opens of a file. This is not checked during a run.

use std::fs::{File, read_to_string};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use serde::Serialize;
use uflip_core::{Bytes, DeviceKind, Error, Io, Mode, Nanos, SECTOR_BYTES_MIN};

use crate::cached_stat::CachedStat;
use crate::clock;

/// The present I/O of one handle.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct InflightIo {
    /// Odd while an I/O is outstanding; changes with each I/O.
    sequence: AtomicU64,
    offset: AtomicU64,
    /// The size in bytes, with the number of the mode in the three lowest bits.
    size_mode: AtomicU64,
}

impl InflightIo {
    #[inline]
    pub(crate) fn begin(&self, io: &Io) {
        self.offset.store(io.offset.0, Ordering::Relaxed);
        self.size_mode.store(io.size.0 << 3 | u64::from(io.mode.number()), Ordering::Relaxed);
        self.sequence.store(self.sequence.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn end(&self) {
        self.sequence.store(self.sequence.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Mark the handle as idle, if it is not.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.sequence.load(Ordering::Relaxed) % 2 == 1 {
            self.end();
        }
    }

    fn io(&self) -> Io {
        let size_mode = self.size_mode.load(Ordering::Relaxed);
        let mode = Mode::from_number(size_mode & 7).unwrap_or(Mode::Read);
        let (offset, size) = (Bytes(self.offset.load(Ordering::Relaxed)), Bytes(size_mode >> 3));
        Io { offset, size, mode, stream: 0 }
    }
}

/// The last observation of a handle: its sequence number, and the time of its last change.
#[derive(Debug)]
struct Observation {
    handle: Weak<InflightIo>,
    sequence: u64,
    since: Nanos,
}

/// A file whose size is tracked while it is used.
#[derive(Clone, Debug)]
struct TrackedFile {
    /// The device's: a watch that outlives it keeps no file open.
    file: Weak<File>,
    /// The required size [bytes].
    size: u64,
    /// Whether it was fully allocated, with data that a file system cannot store in less space.
    is_allocated: bool,
}

/// A file that lacks more than this part of its blocks was truncated, even if writes have restored
/// its length. Outstanding I/Os account for less on copy-on-write file systems.
const TRUNCATION_PART: u64 = 8;

/// All handles of a device. The observer derives the age of an I/O from repeated observations: no
/// clock is read per I/O.
#[derive(Clone, Debug)]
pub struct DeviceWatch {
    url: String,
    observations: Arc<Mutex<Vec<Observation>>>,
    tracked_file: Option<TrackedFile>,
    /// Whether blocks were deallocated on purpose since the tracking began.
    deallocated: Arc<AtomicBool>,
}

impl DeviceWatch {
    pub(crate) fn new(url: &str) -> DeviceWatch {
        let (observations, deallocated) = (Arc::default(), Arc::default());
        DeviceWatch { url: url.to_owned(), observations, tracked_file: None, deallocated }
    }

    /// Return a watch that also tracks the size of `file`; `incompressible` describes the data
    /// written to it.
    pub(crate) fn with_file(
        &self,
        file: &Arc<File>,
        size: Bytes,
        incompressible: bool,
    ) -> DeviceWatch {
        let stat = CachedStat::of_file(file).filter(|stat| stat.is_file() && stat.length >= size.0);
        let tracked_file = stat.map(|stat| {
            let is_allocated = incompressible && stat.allocated >= size.0;
            TrackedFile { file: Arc::downgrade(file), size: size.0, is_allocated }
        });
        self.deallocated.store(false, Ordering::Relaxed);
        DeviceWatch { tracked_file, ..self.clone() }
    }

    /// Note that blocks are deallocated on purpose.
    #[inline]
    pub(crate) fn note_deallocation(&self) {
        self.deallocated.store(true, Ordering::Relaxed);
    }

    /// Return the error of a truncated file: shorter than before, or with missing blocks.
    #[must_use]
    pub fn truncation_error(&self) -> Option<Error> {
        let tracked_file = self.tracked_file.as_ref()?;
        let stat = CachedStat::of_file(tracked_file.file.upgrade()?.as_ref())?;
        let allocated = stat.allocated;
        let got = if stat.length < tracked_file.size {
            format!("{} bytes", stat.length)
        } else if tracked_file.is_allocated
            && !self.deallocated.load(Ordering::Relaxed)
            && tracked_file.size - allocated.min(tracked_file.size)
                > tracked_file.size / TRUNCATION_PART
        {
            format!("{allocated} bytes allocated: it was cut, and has grown since")
        } else {
            return None;
        };
        Some(
            Error::device("The target shrank after it was opened")
                .at(&self.url)
                .got(got)
                .allowed(format!("{} bytes", tracked_file.size))
                .action("find the other user, and restore the state of the device"),
        )
    }

    /// Register another handle.
    pub(crate) fn handle(&self) -> Arc<InflightIo> {
        let inflight = Arc::new(InflightIo::default());
        let mut observations = self.observations.lock().expect("the lock is not poisoned");
        observations.retain(|observation| observation.handle.strong_count() > 0);
        observations.push(Observation {
            handle: Arc::downgrade(&inflight),
            sequence: 0,
            since: clock::now(),
        });
        inflight
    }

    /// Return the error of an I/O that has been outstanding for longer than `limit`.
    #[must_use]
    pub fn overdue(&self, limit: Nanos) -> Option<Error> {
        let now = clock::now();
        let mut observations = self.observations.lock().expect("the lock is not poisoned");
        let ages = observations.iter_mut().filter_map(|observation| {
            let handle = observation.handle.upgrade()?;
            let sequence = handle.sequence.load(Ordering::Acquire);
            if sequence != observation.sequence {
                (observation.sequence, observation.since) = (sequence, now);
            }
            (sequence % 2 == 1).then(|| (now - observation.since, handle.io()))
        });
        let (age, io) = ages.max_by_key(|(age, _)| *age)?;
        (age > limit).then(|| self.overdue_error(io, age, limit))
    }

    fn overdue_error(&self, io: Io, age: Nanos, limit: Nanos) -> Error {
        let seconds = |time: Nanos| format!("{:.1} s", time.0 as f64 / 1e9);
        Error::device(format!("{io} does not end"))
            .at(&self.url)
            .got(format!("no answer for {}", seconds(age)))
            .allowed(format!("{} (--io-timeout)", seconds(limit)))
            .action("see the kernel's log; --io-timeout sets a longer limit, 0 none")
    }
}

/// The status of a target at one moment. Counts are totals of all processes since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TargetStatus {
    /// The addressable size [bytes].
    pub size_bytes: u64,
    /// Whether its name still leads to it.
    pub found_by_name: bool,
    /// Whether a file still has a name, or a device is still attached.
    pub exists: bool,
    /// The last modification [ns]; `None` for a block device.
    pub modified_ns: Option<u64>,
    /// The number of opens by others; `None` if unknown.
    pub opened: Option<u64>,
    /// The number of closes by others that could write.
    pub closed_by_writers: Option<u64>,
    /// The number of unexpected changes found; `None` if not tracked.
    pub changed_by_others: Option<u64>,
    /// Sectors read from the disk [512 bytes]; `None` for a file.
    pub sectors_read: Option<u64>,
    /// Sectors written to the disk.
    pub sectors_written: Option<u64>,
}

/// Counts opens of a file by others, with inotify.
#[derive(Debug)]
pub(crate) struct OpenCounter {
    events: OwnedFd,
    opened: u64,
    closed_by_writers: u64,
}

impl OpenCounter {
    /// Start to count; `None` if inotify is not available.
    pub(crate) fn start(file: &File) -> Option<OpenCounter> {
        // SAFETY: takes flags only.
        let events = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if events < 0 {
            return None;
        }
        // SAFETY: a new descriptor, not shared.
        let events = unsafe { OwnedFd::from_raw_fd(events) };
        let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
        let mask = libc::IN_OPEN | libc::IN_CLOSE_WRITE;
        // SAFETY: an open descriptor and a NUL-terminated string.
        let watch =
            unsafe { libc::inotify_add_watch(events.as_raw_fd(), path.as_ptr().cast(), mask) };
        (watch >= 0).then_some(OpenCounter { events, opened: 0, closed_by_writers: 0 })
    }

    /// Return the number of closes by writers so far.
    pub(crate) fn writers(&mut self) -> u64 {
        self.read_events();
        self.closed_by_writers
    }

    /// Add the counts of the last read to `now`.
    pub(crate) fn add_to(&self, status: &mut TargetStatus) {
        status.opened = Some(self.opened);
        status.closed_by_writers = Some(self.closed_by_writers);
    }

    /// Read the pending events.
    fn read_events(&mut self) {
        const HEADER: usize = size_of::<libc::inotify_event>();
        let mut buffer = [0u8; 4096];
        loop {
            // SAFETY: an open descriptor, and a buffer of the stated length.
            let length = unsafe {
                libc::read(self.events.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len())
            };
            let Ok(length @ 1..) = usize::try_from(length) else { return };
            let mut offset = 0;
            while offset + HEADER <= length {
                let word = |from: usize| {
                    u32::from_ne_bytes(buffer[from..from + 4].try_into().expect("4 bytes"))
                };
                let (mask, name) = (word(offset + 4), word(offset + 12) as usize);
                self.opened += u64::from(mask & libc::IN_OPEN != 0);
                self.closed_by_writers += u64::from(mask & libc::IN_CLOSE_WRITE != 0);
                offset += HEADER + name;
            }
        }
    }
}

/// Return the present status of the target behind `file`, without the counts of others.
pub(crate) fn target_status(kind: DeviceKind, name: &str, file: &File) -> TargetStatus {
    let mut status = TargetStatus::default();
    let Ok(metadata) = file.metadata() else { return status };
    let named = std::fs::metadata(name);
    if matches!(kind, DeviceKind::Block | DeviceKind::Nvme) {
        status.found_by_name = named.is_ok_and(|named| named.rdev() == metadata.rdev());
        status.size_bytes = block_size(file);
        status.exists = status.size_bytes > 0;
        let sectors = sectors_of_disk(metadata.rdev());
        status.sectors_read = sectors.map(|(read, _)| read);
        status.sectors_written = sectors.map(|(_, written)| written);
    } else {
        let is_same = |named: std::fs::Metadata| {
            (named.dev(), named.ino()) == (metadata.dev(), metadata.ino())
        };
        status.found_by_name = named.is_ok_and(is_same);
        status.size_bytes = metadata.size() / SECTOR_BYTES_MIN * SECTOR_BYTES_MIN;
        status.exists = metadata.nlink() > 0;
        status.modified_ns =
            Some((metadata.mtime() as u64 * 1_000_000_000) + metadata.mtime_nsec() as u64);
    }
    status
}

/// Return the size of the block device behind a descriptor; 0 if it is gone.
fn block_size(file: &File) -> u64 {
    /// `_IOR(0x12, 114, size_t)` of linux/fs.h.
    const BLKGETSIZE64: libc::Ioctl = 0x8008_1272_u32 as libc::Ioctl;
    let mut size = 0u64;
    // SAFETY: an open descriptor, and the 64-bit integer that this call writes.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut size) };
    if status == 0 { size } else { 0 }
}

/// Return the sysfs folder of the disk of the block device of a number.
pub(crate) fn disk_of(number: libc::dev_t) -> std::io::Result<PathBuf> {
    let (major, minor) = (libc::major(number), libc::minor(number));
    let node = PathBuf::from(format!("/sys/dev/block/{major}:{minor}")).canonicalize()?;
    // A partition has no queue of its own; its disk, one level up, does.
    let disk = if node.join("queue").is_dir() { Some(&*node) } else { node.parent() };
    Ok(disk.map(Path::to_path_buf).unwrap_or_default())
}

/// Return the sectors read from and written to the whole disk of a block device, by all processes.
fn sectors_of_disk(number: u64) -> Option<(u64, u64)> {
    // Users of other partitions of the disk interfere as well.
    let text = read_to_string(disk_of(number).ok()?.join("stat")).ok()?;
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    // Documentation/block/stat.rst: the third counts sectors read, the seventh those written.
    Some((*fields.get(2)?, *fields.get(6)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_is_detected_and_trim_is_not() {
        use std::os::unix::fs::FileExt;
        const SIZE: u64 = 1 << 20;
        let file = Arc::new(tempfile::tempfile().expect("create a temporary file"));
        file.write_all_at(&vec![7; SIZE as usize], 0).expect("write the file");
        let watch = DeviceWatch::new("file:x").with_file(&file, Bytes(SIZE), true);
        assert!(watch.truncation_error().is_none(), "the file is complete");
        file.set_len(SIZE / 2).expect("truncate the file");
        assert!(
            watch
                .truncation_error()
                .expect("the file is shorter")
                .to_string()
                .contains("524288 bytes")
        );
        file.write_all_at(&[7; 4096], SIZE - 4096).expect("write the file");
        let error = watch.truncation_error().expect("the file has a hole").to_string();
        assert!(error.contains("has grown since"), "{error}");
        file.write_all_at(&vec![7; SIZE as usize], 0).expect("write the file");
        assert!(watch.truncation_error().is_none(), "the file is complete again");
        let zeroes = DeviceWatch::new("file:x").with_file(&file, Bytes(SIZE), false);
        watch.note_deallocation();
        file.set_len(SIZE / 2).expect("truncate the file");
        file.set_len(SIZE).expect("extend the file");
        assert!(
            watch.truncation_error().is_none() && zeroes.truncation_error().is_none(),
            "the file may have holes"
        );
        let growing = DeviceWatch::new("file:x").with_file(&file, Bytes(2 * SIZE), true);
        assert!(growing.truncation_error().is_none(), "the file has not grown yet");
    }

    #[test]
    fn oldest_io_is_overdue_first() {
        let watch = DeviceWatch::new("file:x");
        let (one, other) = (watch.handle(), watch.handle());
        let io =
            |offset| Io { offset: Bytes(offset), size: Bytes(512), mode: Mode::Write, stream: 0 };
        assert!(watch.overdue(Nanos(0)).is_none(), "no I/O is outstanding");
        one.begin(&io(4096));
        assert!(watch.overdue(Nanos(0)).is_none(), "observed for the first time");
        other.begin(&io(8192));
        while watch.overdue(Nanos(1000)).is_none() {}
        let error = watch.overdue(Nanos(1000)).expect("an I/O is overdue");
        assert!(error.to_string().contains("write of 512 B at byte 4096"), "{error}");
        assert!(watch.overdue(Nanos(u64::MAX)).is_none(), "within the limit");
        one.end();
        one.begin(&io(0));
        let error = watch.overdue(Nanos(0)).expect("the other I/O is overdue");
        assert!(error.to_string().contains("at byte 8192"), "{error}");
        drop(other);
        assert_eq!(watch.handle().sequence.load(Ordering::Relaxed), 0);
        one.end();
        assert!(watch.overdue(Nanos(0)).is_none(), "one ended, one was dropped, one has not begun");
    }

    #[test]
    fn target_status_counts_opens_and_reports_changes() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        let name = path.to_str().expect("the path is UTF-8");
        std::fs::write(&path, [0; 4096]).expect("write the file");
        let file = File::options().read(true).write(true).open(&path).expect("open the file");
        let mut opens = OpenCounter::start(&file).expect("inotify is available");
        let mut observe = || {
            let mut status = target_status(DeviceKind::File, name, &file);
            opens.writers();
            opens.add_to(&mut status);
            status
        };
        let before = observe();
        assert_eq!((before.size_bytes, before.found_by_name, before.exists), (4096, true, true));
        assert_eq!((before.opened, before.closed_by_writers), (Some(0), Some(0)));
        drop(File::open(&path).expect("open the file"));
        assert_eq!((observe().opened, observe().closed_by_writers), (Some(1), Some(0)));
        std::fs::write(&path, [1; 1000]).expect("write the file");
        let after = observe();
        assert_eq!((after.opened, after.closed_by_writers), (Some(2), Some(1)));
        assert_eq!(after.size_bytes, 512, "the file is shorter");
        assert!(after.modified_ns > before.modified_ns);
        std::fs::rename(&path, folder.path().join("g")).expect("rename the file");
        assert_eq!((observe().found_by_name, observe().exists), (false, true));
        std::fs::write(&path, [0; 4096]).expect("write another file");
        assert!(!observe().found_by_name, "another file has its name");
        std::fs::remove_file(folder.path().join("g")).expect("remove the file");
        assert!(!observe().exists);
    }
}
