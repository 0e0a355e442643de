//! The completion mode of queued I/Os: by interrupt, or by polling, in which the submitting CPU
//! checks the queue. Polling is faster and leaves the CPU no time for other work.
//!
//! A device can be polled if it has hardware queues without interrupts (`queue/io_poll`; on an NVMe
//! drive `nvme.poll_queues` sets their number), with direct I/O, and if the layers above it, such
//! as a file system, support polling. A read of one sector tests all of this, because no single
//! layer decides it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use io_uring::{IoUring, opcode, types};
use uflip_core::{Error, Result};

use crate::watch::disk_of;

/// The completion mode of queued I/Os.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Completions {
    /// Polled if the device supports it, else by interrupt.
    #[default]
    Auto,
    /// By interrupt.
    Interrupt,
    /// By polling.
    Polled,
}

impl Completions {
    /// The names of all modes.
    pub const NAMES: &'static [&'static str] = &["auto", "interrupt", "polled"];

    /// Return the mode with this name.
    ///
    /// # Errors
    /// An unknown name; the error lists the known ones.
    pub fn by_name(name: &str) -> Result<Completions> {
        match name {
            "auto" => Ok(Completions::Auto),
            "interrupt" => Ok(Completions::Interrupt),
            "polled" => Ok(Completions::Polled),
            _ => Err(Error::unknown("completion", name, Completions::NAMES)),
        }
    }
}

/// The reason why buffered I/Os cannot be polled.
pub(crate) const BUFFERED: &str = "its I/Os go through the page cache";

/// Create a polled queue.
pub(crate) fn polled_ring(depth: u32) -> io::Result<IoUring> {
    IoUring::builder().setup_iopoll().build(depth)
}

/// Return why `file` cannot be polled, or `None`. Reads a sector to `sink` as a test.
pub(crate) fn find_polling_obstacle(file: &File, sink: *mut u8, sector: u32) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let number =
        if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    let disk_reason = why_disk_cannot_poll(number);
    disk_reason.or_else(|| read_polled(file, sink, sector).err().map(|error| error.to_string()))
}

/// Return why the disk below the device of this number cannot be polled, or `None`.
fn why_disk_cannot_poll(number: libc::dev_t) -> Option<String> {
    let Ok(disk) = disk_of(number) else {
        return Some("it is not on a single disk".into());
    };
    let polls = std::fs::read_to_string(disk.join("queue/io_poll")).unwrap_or_default();
    let name = disk.file_name().unwrap_or_default().to_string_lossy();
    let reason = || format!("{name} has no poll queue (queue/io_poll is 0)");
    (polls.trim() != "1").then(reason)
}

/// Check that the file at `path`, which may not exist yet, can be polled, as far as its disk
/// decides.
///
/// # Errors
/// If it cannot be polled.
pub fn check_polled(path: &str, buffered: bool) -> Result<()> {
    let path = Path::new(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let metadata = path.metadata().or_else(|_| folder.unwrap_or(Path::new(".")).metadata());
    let reason = match metadata {
        _ if buffered => Some(BUFFERED.into()),
        Ok(metadata) => why_disk_cannot_poll(metadata.dev()),
        // Opening the file reports the error.
        Err(_) => None,
    };
    let url = format!("file:{}", path.display());
    reason.map_or(Ok(()), |reason| Err(not_polled(&url, &reason)))
}

fn read_polled(file: &File, sink: *mut u8, sector: u32) -> io::Result<()> {
    let mut ring = polled_ring(1)?;
    let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), sink, sector).build();
    // SAFETY: the memory is at least a sector long, and lives until the read completes.
    unsafe { ring.submission().push(&entry) }.expect("the submission queue is empty");
    // A polling call returns early if the CPU is needed elsewhere.
    let result = loop {
        if let Err(error) = ring.submit_and_wait(1)
            && error.raw_os_error() != Some(libc::EINTR)
        {
            return Err(error);
        }
        if let Some(entry) = ring.completion().next() {
            break entry.result();
        }
    };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// Create the error of a device that does not support the requested polling.
pub(crate) fn not_polled(url: &str, reason: &str) -> Error {
    Error::usage("The device cannot be polled")
        .at(url)
        .got(format!("completion polled: {reason}"))
        .allowed(
            "direct I/O on a disk with poll queues, such as an NVMe drive with nvme.poll_queues=1",
        )
        .action("use --completion auto, or boot the kernel with this parameter")
}
