//! Two users of one target exclude each other: whoever writes has it alone, whoever only reads shares
//! it with readers.
//!
//! An advisory lock (`flock`) on the very descriptor that does the I/O: it ends with the descriptor,
//! however the process ends. Block devices that are written are opened with `O_EXCL` besides, which
//! the kernel itself respects when somebody mounts.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use uflip_core::{Error, ErrorKind, Result};

use super::attribute;

/// udev locks a disk for a moment after anything has happened to it.
const TRIES: u32 = 4;
const BETWEEN: Duration = Duration::from_millis(10);

/// Lock `file` until it is closed: alone, or shared with others that only read.
///
/// # Errors
/// [`ErrorKind::Refused`] where somebody else has it; it says who, where the kernel tells.
pub(crate) fn hold(file: &File, alone: bool, place: &str) -> Result<()> {
    let how = if alone { libc::LOCK_EX } else { libc::LOCK_SH };
    for attempt in 1.. {
        // SAFETY: an open descriptor.
        if unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        // A file system without locks (some network and FUSE ones) excludes nobody.
        if error.raw_os_error() != Some(libc::EWOULDBLOCK) {
            return Ok(());
        }
        if attempt == TRIES {
            break;
        }
        std::thread::sleep(BETWEEN);
    }
    let holders = holders(Path::new("/proc"), file, None);
    let who = if holders.is_empty() { "another process".to_owned() } else { holders.join(", ") };
    Err(Error::new(ErrorKind::Refused, "The target is in use by another benchmark")
        .at(place)
        .got(format!("locked by {who}"))
        .allowed(if alone {
            "a target that nobody reads or writes"
        } else {
            "one that nobody writes"
        })
        .action("wait until it is over, or choose another target"))
}

/// Refuse a file that somebody else holds any lock on: a virtual machine, a database.
///
/// # Errors
/// [`ErrorKind::Refused`], saying who.
pub(crate) fn refuse_locked(file: &File, place: &str) -> Result<()> {
    let holders = holders(Path::new("/proc"), file, Some(std::process::id()));
    if holders.is_empty() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Refused, "The target is in use by another process")
        .at(place)
        .got(format!("locked by {}", holders.join(", ")))
        .allowed("a target that nobody has locked")
        .action("end that process, or choose another target"))
}

/// Who holds a lock on `file`, but for the process `except`; from lines such as
/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:131075 0 EOF`.
fn holders(proc: &Path, file: &File, except: Option<u32>) -> Vec<String> {
    let Ok(metadata) = file.metadata() else { return vec![] };
    let (device, inode) = (metadata.dev(), metadata.ino());
    let (major, minor) = (libc::major(device), libc::minor(device));
    let key = format!("{major:02x}:{minor:02x}:{inode}");
    let mut found = vec![];
    for line in attribute(&proc.join("locks")).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A lock that is waited for has an arrow before its kind, and holds nothing.
        let [_, kind, _, _, process, place, ..] = words[..] else { continue };
        if !["POSIX", "OFDLCK", "FLOCK"].contains(&kind) || place != key {
            continue;
        }
        if except.is_some_and(|except| process == except.to_string()) {
            continue;
        }
        let name = attribute(&proc.join(process).join("comm"));
        let who = match (process, name.as_str()) {
            // Locks of open file descriptions belong to no process.
            ("-1" | "0", _) => "a process that is not told".to_owned(),
            (_, "") => format!("process {process}"),
            (_, name) => format!("process {process} ({name})"),
        };
        if !found.contains(&who) {
            found.push(who);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_excludes_everybody_and_readers_only_writers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let open = || File::options().create(true).append(true).open(&path).expect("opened");
        let (first, second) = (open(), open());
        hold(&first, true, "f").expect("free");
        let refused = hold(&second, false, "f").expect_err("taken");
        assert_eq!(refused.kind(), ErrorKind::Refused);
        let (_, _, got, _, _) = refused.parts();
        assert!(got.contains(&std::process::id().to_string()), "{got}");
        drop(first);
        hold(&second, false, "f").expect("free again");
        hold(&open(), false, "f").expect("readers share");
        hold(&open(), true, "f").expect_err("a reader is there");
    }
}
