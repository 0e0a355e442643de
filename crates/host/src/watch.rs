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
    turn: AtomicU64,
    offset: AtomicU64,
    /// The size in bytes, with the number of the mode in the three lowest bits.
    size_mode: AtomicU64,
}

impl InflightIo {
    #[inline]
    pub(crate) fn begin(&self, io: &Io) {
        self.offset.store(io.offset.0, Ordering::Relaxed);
        self.size_mode.store(io.size.0 << 3 | u64::from(io.mode.number()), Ordering::Relaxed);
        self.turn.store(self.turn.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn end(&self) {
        self.turn.store(self.turn.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Mark the handle as idle, if it is not.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.turn.load(Ordering::Relaxed) % 2 == 1 {
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

/// The last observation of a handle: its turn, and since when.
#[derive(Debug)]
struct Observation {
    handle: Weak<InflightIo>,
    turn: u64,
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
const CUT_PART: u64 = 8;

/// All handles of a device. The observer derives the age of an I/O from repeated observations: no
/// clock is read per I/O.
#[derive(Clone, Debug)]
pub struct Watch {
    url: String,
    observations: Arc<Mutex<Vec<Observation>>>,
    extent: Option<TrackedFile>,
    /// Whether blocks were deallocated on purpose since the tracking began.
    deallocated: Arc<AtomicBool>,
}

impl Watch {
    pub(crate) fn new(url: &str) -> Watch {
        let (observations, deallocated) = (Arc::default(), Arc::default());
        Watch { url: url.to_owned(), observations, extent: None, deallocated }
    }

    /// Return a watch that also tracks the size of `file`; `incompressible` describes the data
    /// written to it.
    pub(crate) fn with_file(&self, file: &Arc<File>, size: Bytes, incompressible: bool) -> Watch {
        let found =
            CachedStat::of_file(file).filter(|found| found.is_file() && found.length >= size.0);
        let extent = found.map(|found| {
            let is_allocated = incompressible && found.allocated >= size.0;
            TrackedFile { file: Arc::downgrade(file), size: size.0, is_allocated }
        });
        self.deallocated.store(false, Ordering::Relaxed);
        Watch { extent, ..self.clone() }
    }

    /// Note that blocks are deallocated on purpose.
    #[inline]
    pub(crate) fn deallocates(&self) {
        self.deallocated.store(true, Ordering::Relaxed);
    }

    /// Return the error of a truncated file: shorter than before, or with missing blocks.
    #[must_use]
    pub fn cut(&self) -> Option<Error> {
        let extent = self.extent.as_ref()?;
        let found = CachedStat::of_file(extent.file.upgrade()?.as_ref())?;
        let allocated = found.allocated;
        let got = if found.length < extent.size {
            format!("{} bytes", found.length)
        } else if extent.is_allocated
            && !self.deallocated.load(Ordering::Relaxed)
            && extent.size - allocated.min(extent.size) > extent.size / CUT_PART
        {
            format!("{allocated} bytes allocated: it was cut, and has grown since")
        } else {
            return None;
        };
        Some(
            Error::device("The target shrank after it was opened")
                .at(&self.url)
                .got(got)
                .allowed(format!("{} bytes", extent.size))
                .action("see who else uses it, and bring it into its state again"),
        )
    }

    /// Register another handle.
    pub(crate) fn handle(&self) -> Arc<InflightIo> {
        let inflight = Arc::new(InflightIo::default());
        let mut observations = self.observations.lock().expect("no panic while held");
        observations.retain(|one| one.handle.strong_count() > 0);
        observations.push(Observation {
            handle: Arc::downgrade(&inflight),
            turn: 0,
            since: clock::now(),
        });
        inflight
    }

    /// Return the error of an I/O that has been outstanding for longer than `limit`.
    #[must_use]
    pub fn overdue(&self, limit: Nanos) -> Option<Error> {
        let now = clock::now();
        let mut observations = self.observations.lock().expect("no panic while held");
        let longest = observations.iter_mut().filter_map(|one| {
            let handle = one.handle.upgrade()?;
            let turn = handle.turn.load(Ordering::Acquire);
            if turn != one.turn {
                (one.turn, one.since) = (turn, now);
            }
            (turn % 2 == 1).then(|| (now - one.since, handle.io()))
        });
        let (taken, io) = longest.max_by_key(|(taken, _)| *taken)?;
        (taken > limit).then(|| self.error(io, taken, limit))
    }

    fn error(&self, io: Io, taken: Nanos, limit: Nanos) -> Error {
        let seconds = |time: Nanos| format!("{:.1} s", time.0 as f64 / 1e9);
        Error::device(format!("{io} does not end"))
            .at(&self.url)
            .got(format!("no answer for {}", seconds(taken)))
            .allowed(format!("{} (--io-timeout)", seconds(limit)))
            .action("see the kernel's log; --io-timeout gives a device longer, 0 for ever")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_cut_is_seen_after_it_has_grown_again_and_a_trimmed_one_is_not() {
        use std::os::unix::fs::FileExt;
        const SIZE: u64 = 1 << 20;
        let file = Arc::new(tempfile::tempfile().expect("a file"));
        file.write_all_at(&vec![7; SIZE as usize], 0).expect("room");
        let watch = Watch::new("file:x").with_file(&file, Bytes(SIZE), true);
        assert!(watch.cut().is_none(), "it is whole");
        file.set_len(SIZE / 2).expect("cut");
        assert!(watch.cut().expect("it is shorter").to_string().contains("524288 bytes"));
        file.write_all_at(&[7; 4096], SIZE - 4096).expect("room");
        let error = watch.cut().expect("it lacks blocks").to_string();
        assert!(error.contains("has grown since"), "{error}");
        file.write_all_at(&vec![7; SIZE as usize], 0).expect("room");
        assert!(watch.cut().is_none(), "it is whole again");
        let zeroes = Watch::new("file:x").with_file(&file, Bytes(SIZE), false);
        watch.deallocates();
        file.set_len(SIZE / 2).expect("cut");
        file.set_len(SIZE).expect("a hole");
        assert!(watch.cut().is_none() && zeroes.cut().is_none(), "it may have holes");
        let growing = Watch::new("file:x").with_file(&file, Bytes(2 * SIZE), true);
        assert!(growing.cut().is_none(), "it is not as long yet");
    }

    #[test]
    fn the_io_that_takes_longest_is_the_one_that_is_overdue() {
        let watch = Watch::new("file:x");
        let (one, other) = (watch.handle(), watch.handle());
        let io =
            |offset| Io { offset: Bytes(offset), size: Bytes(512), mode: Mode::Write, stream: 0 };
        assert!(watch.overdue(Nanos(0)).is_none(), "nothing is under way");
        one.begin(&io(4096));
        assert!(watch.overdue(Nanos(0)).is_none(), "it is seen for the first time");
        other.begin(&io(8192));
        while watch.overdue(Nanos(1000)).is_none() {}
        let error = watch.overdue(Nanos(1000)).expect("two are under way");
        assert!(error.to_string().contains("write of 512 B at byte 4096"), "{error}");
        assert!(watch.overdue(Nanos(u64::MAX)).is_none(), "so long may it take");
        one.end();
        one.begin(&io(0));
        let error = watch.overdue(Nanos(0)).expect("the other one still is");
        assert!(error.to_string().contains("at byte 8192"), "{error}");
        drop(other);
        assert_eq!(watch.handle().turn.load(Ordering::Relaxed), 0);
        one.end();
        assert!(watch.overdue(Nanos(0)).is_none(), "one is over, one is gone, one has not begun");
    }
}
