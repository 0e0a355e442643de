//! How the end of an I/O in a queue is learned of: the device interrupts a processor, or the processor that
//! submitted looks until it is there (polling), which is quicker and leaves no time for anything else.
//!
//! A device can be polled where it has hardware queues that interrupt nobody (`queue/io_poll`; of an NVMe drive
//! as many as `nvme.poll_queues` says), below direct I/O; and where what lies above, a file system for instance,
//! passes the looking on. That is tried with a read of a sector, as it is a property of no one of them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use io_uring::{IoUring, opcode, types};
use uflip_core::{Error, Result};

use crate::block::disk_of;

/// How the end of an I/O in a queue is learned of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Completions {
    /// Polled where the device can, else told by an interrupt.
    #[default]
    Auto,
    /// By an interrupt.
    Interrupt,
    /// By looking.
    Polled,
}

impl Completions {
    /// The names of all.
    pub const NAMES: &'static [&'static str] = &["auto", "interrupt", "polled"];

    /// By name.
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

/// Why what is buffered cannot be polled.
pub(crate) const BUFFERED: &str = "its I/Os go through the page cache";

/// A queue whose completions are looked for.
pub(crate) fn polled_ring(depth: u32) -> io::Result<IoUring> {
    IoUring::builder().setup_iopoll().build(depth)
}

/// Why `file` cannot be polled; `None` where it can. A sector is read to `sink` to find out.
pub(crate) fn why_not_polled(file: &File, sink: *mut u8, sector: u32) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let number =
        if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    let of_disk = why_no_disk_polls(number);
    of_disk.or_else(|| read_polled(file, sink, sector).err().map(|error| error.to_string()))
}

/// Why the disk below the device of this number cannot be polled; `None` where it can.
fn why_no_disk_polls(number: libc::dev_t) -> Option<String> {
    let Ok((_, disk)) = disk_of(number) else {
        return Some("no disk of its own lies below it".into());
    };
    let polls = std::fs::read_to_string(disk.join("queue/io_poll")).unwrap_or_default();
    let name = disk.file_name().unwrap_or_default().to_string_lossy();
    let why = || format!("{name} has no queue that interrupts nobody (queue/io_poll is 0)");
    (polls.trim() != "1").then(why)
}

/// Whether the file at `path`, which may not be there yet, can be polled, as far as the disk below it says.
///
/// # Errors
/// It cannot.
pub fn check_polled(path: &str, buffered: bool) -> Result<()> {
    let path = Path::new(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let there = path.metadata().or_else(|_| folder.unwrap_or(Path::new(".")).metadata());
    let why = match there {
        _ if buffered => Some(BUFFERED.into()),
        Ok(metadata) => why_no_disk_polls(metadata.dev()),
        // Who opens it says what is wrong.
        Err(_) => None,
    };
    let url = format!("file:{}", path.display());
    why.map_or(Ok(()), |why| Err(not_polled(&url, &why)))
}

fn read_polled(file: &File, sink: *mut u8, sector: u32) -> io::Result<()> {
    let mut ring = polled_ring(1)?;
    let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), sink, sector).build();
    // SAFETY: the memory is at least a sector long, and is not given back before the read is over.
    unsafe { ring.submission().push(&entry) }.expect("it is empty");
    // Whoever polls is sent back early where the processor is wanted elsewhere.
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

/// The error of a device that was asked to be polled and cannot.
pub(crate) fn not_polled(url: &str, why: &str) -> Error {
    Error::usage("The device cannot be polled")
        .at(url)
        .got(format!("completion polled: {why}"))
        .allowed(
            "direct I/O on a disk with such queues, as NVMe drives have with nvme.poll_queues=1",
        )
        .action("leave the completion to uflip (auto), or give the kernel that parameter")
}
