//! Locks on targets: a writer has a target exclusively, readers share it with other readers.
//!
//! An advisory lock (`flock`) on the descriptor that does the I/O ends with the descriptor, however
//! the process ends. Block devices opened for writing also use `O_EXCL`, which the kernel enforces
//! against mounts.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use uflip_core::{Error, ErrorKind, Result};

use super::attribute;

/// udev briefly locks a disk after each change to it.
const TRIES: u32 = 4;
const RETRY_DELAY: Duration = Duration::from_millis(10);
/// The locks of a killed process end with its outstanding I/O, which is after its parent is
/// notified.
const TRIES_AFTER_EXIT: u32 = 200;

/// Lock `file` until it is closed: exclusively, or shared with other readers.
pub(crate) fn hold(file: &File, exclusive: bool, location: &str) -> Result<()> {
    for attempt in 1.. {
        match if exclusive { file.try_lock() } else { file.try_lock_shared() } {
            Err(TryLockError::WouldBlock) => {}
            // A file system without locks (some network and FUSE ones) cannot exclude others.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
        let holders_have_ended = || have_ended(&holders(Path::new("/proc"), file));
        if attempt >= TRIES && !(attempt < TRIES_AFTER_EXIT && holders_have_ended()) {
            break;
        }
        std::thread::sleep(RETRY_DELAY);
    }
    let holders = holders(Path::new("/proc"), file);
    let names =
        if holders.is_empty() { "another process".to_owned() } else { format_holders(&holders) };
    Err(Error::new(ErrorKind::Refused, "The target is in use by another benchmark")
        .at(location)
        .got(format!("locked by {names}"))
        .allowed(if exclusive {
            "a target without readers or writers"
        } else {
            "a target without writers"
        })
        .action("wait until that benchmark ends, or choose another target"))
}

/// Refuse a file that cannot be locked exclusively, tested through its `reader`: opening it for
/// writing would look like a writer to the process that holds it.
pub(crate) fn refuse_held(reader: &File, location: &str) -> Result<()> {
    hold(reader, true, location)?;
    let _ = reader.unlock();
    Ok(())
}

/// Refuse a file on which another process holds any lock: a virtual machine, a database.
pub(crate) fn refuse_locked(device: u64, inode: u64, location: &str) -> Result<()> {
    let find_holders =
        || holders_of_inode(Path::new("/proc"), (device, inode), Some(std::process::id()));
    let mut holders = find_holders();
    for _ in 1..TRIES_AFTER_EXIT {
        if !have_ended(&holders) {
            break;
        }
        std::thread::sleep(RETRY_DELAY);
        holders = find_holders();
    }
    if holders.is_empty() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Refused, "The target is in use by another process")
        .at(location)
        .got(format!("locked by {}", format_holders(&holders)))
        .allowed("a target without locks")
        .action("end that process, or choose another target"))
}

/// The holder of a lock.
#[derive(PartialEq, Eq, Debug)]
struct Holder {
    name: String,
    /// The process no longer exists.
    has_ended: bool,
}

/// Return whether there are holders and all of them have ended.
fn have_ended(holders: &[Holder]) -> bool {
    !holders.is_empty() && holders.iter().all(|holder| holder.has_ended)
}

fn format_holders(holders: &[Holder]) -> String {
    let names: Vec<&str> = holders.iter().map(|holder| holder.name.as_str()).collect();
    names.join(", ")
}

/// Return the holders of locks on `file`.
fn holders(proc: &Path, file: &File) -> Vec<Holder> {
    let Ok(metadata) = file.metadata() else { return vec![] };
    holders_of_inode(proc, (metadata.dev(), metadata.ino()), None)
}

/// Return the holders of locks on an inode, without the process `except`; parsed from lines such as
/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:131075 0 EOF`.
fn holders_of_inode(proc: &Path, (device, inode): (u64, u64), except: Option<u32>) -> Vec<Holder> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let key = format!("{major:02x}:{minor:02x}:{inode}");
    let mut holders = vec![];
    for line in attribute(&proc.join("locks")).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A blocked lock request has an arrow before its kind, and holds nothing.
        let [_, kind, _, _, process, inode_key, ..] = words[..] else { continue };
        if !["POSIX", "OFDLCK", "FLOCK"].contains(&kind) || inode_key != key {
            continue;
        }
        if except.is_some_and(|except| process == except.to_string()) {
            continue;
        }
        let comm = attribute(&proc.join(process).join("comm"));
        let (name, has_ended) = match (process, comm.as_str()) {
            // Locks of open file descriptions do not belong to a process.
            ("-1" | "0", _) => ("an unknown process".to_owned(), false),
            (_, "") => (format!("process {process}"), true),
            (_, comm) => (format!("process {process} ({comm})"), false),
        };
        let holder = Holder { name, has_ended };
        if !holders.contains(&holder) {
            holders.push(holder);
        }
    }
    holders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writer_lock_is_exclusive_and_reader_lock_is_shared() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        let open = || File::options().create(true).append(true).open(&path).expect("open the file");
        let (first, second) = (open(), open());
        hold(&first, true, "f").expect("the file is not locked");
        let refused = hold(&second, false, "f").expect_err("another handle has the lock");
        assert_eq!(refused.kind(), ErrorKind::Refused);
        let (_, _, got, _, _) = refused.parts();
        assert!(got.contains(&std::process::id().to_string()), "{got}");
        drop(first);
        hold(&second, false, "f").expect("the lock was released");
        hold(&open(), false, "f").expect("readers share the lock");
        hold(&open(), true, "f").expect_err("a reader has the lock");
    }

    #[test]
    fn lock_of_an_ended_process_is_detected() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        let file = File::create(&path).expect("create the file");
        let metadata = file.metadata().expect("read the metadata");
        let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
        let inode_key = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
        let locks = |processes: &[u32]| {
            let line =
                |process: &u32| format!("1: FLOCK  ADVISORY  WRITE {process} {inode_key} 0 EOF\n");
            let lines: String = processes.iter().map(line).collect();
            std::fs::write(folder.path().join("locks"), lines).expect("write the file");
            holders(folder.path(), &file)
        };
        std::fs::create_dir(folder.path().join("7")).expect("create the folder");
        std::fs::write(folder.path().join("7/comm"), "fio\n").expect("write the file");
        assert!(!have_ended(&locks(&[])));
        assert!(have_ended(&locks(&[8])));
        assert!(!have_ended(&locks(&[7])));
        assert!(!have_ended(&locks(&[8, 7])), "the running process holds the lock");
        assert_eq!(format_holders(&locks(&[8, 7])), "process 8, process 7 (fio)");
    }
}
