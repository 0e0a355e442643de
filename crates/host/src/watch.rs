//! A watch on a real device, for other threads: the outstanding I/O, and its age.
//!
//! A thread that is blocked in the kernel cannot report. Each handle therefore publishes its next
//! I/O first: plain stores to a cache line of its own, outside the timed part.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use uflip_core::{Bytes, Error, Io, Mode, Nanos};

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
}
