//! The status of a target before and after a run: whether it is unchanged, and whether others used
//! it.
//!
//! An open target may be truncated, deleted, replaced under its name, or detached meanwhile, and
//! others may open, read or write it. The descriptor is compared with the name, a block device
//! counts sectors, and inotify reports opens of a file. Nothing is checked during a run.

use std::fs::{File, read_to_string};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;
use uflip_core::{DeviceKind, SECTOR_BYTES_MIN};

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
    if kind == DeviceKind::Block {
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

/// Return the sectors read from and written to the whole disk of a block device, by all processes.
fn sectors_of_disk(number: u64) -> Option<(u64, u64)> {
    let (major, minor) = (libc::major(number), libc::minor(number));
    let node = Path::new("/sys/dev/block").join(format!("{major}:{minor}")).canonicalize().ok()?;
    // Users of other partitions of the disk interfere as well.
    let disk = if node.join("partition").exists() { node.parent()? } else { &node };
    let text = read_to_string(disk.join("stat")).ok()?;
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    // Documentation/block/stat.rst: the third counts sectors read, the seventh those written.
    Some((*fields.get(2)?, *fields.get(6)?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
