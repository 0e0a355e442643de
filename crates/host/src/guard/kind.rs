//! What kind of file may be written to: a regular file of a file system that keeps files.
//!
//! The rule: a file system that lies on a block device, as the kernel's own list says, or one of the
//! known ones that keep files elsewhere ([`KEEPS_FILES`]). Everything else (procfs, sysfs, devtmpfs,
//! debugfs, cgroups, …) shows the kernel's own state as files, and writing there is a command to it.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::machine::Machine;
use super::{Roots, attribute, mounts};

/// Kinds of file systems without a block device of their own that keep what is written.
const KEEPS_FILES: [&str; 24] = [
    "9p", "afs", "bcachefs", "beegfs", "btrfs", "ceph", "cifs", "ecryptfs", "fuse", "gfs2",
    "jffs2", "lustre", "nfs", "nfs4", "ocfs2", "orangefs", "overlay", "ramfs", "smb3", "smbfs",
    "tmpfs", "ubifs", "virtiofs", "zfs",
];

/// Kinds that lie in memory: they take `O_DIRECT` since Linux 6.6 and serve it from memory all the same.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// The file system that an open file is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileSystem {
    /// As the kernel calls it; empty where it cannot be told.
    pub(crate) kind: String,
    pub(crate) keeps_files: bool,
}

impl FileSystem {
    /// The file system that `file`, which may be open by path alone, is in.
    pub(crate) fn of(machine: &Machine, file: &File) -> FileSystem {
        let kind = mount_id(file).and_then(|id| mounts::by_id(&machine.mounts, id));
        let kind = kind.map(|mount| mount.kind.clone()).unwrap_or_default();
        FileSystem { keeps_files: keeps_files(&machine.roots, &kind), kind }
    }

    pub(crate) fn in_memory(&self) -> bool {
        IN_MEMORY.contains(&self.kind.as_str())
    }
}

fn keeps_files(roots: &Roots, kind: &str) -> bool {
    // `nodev` before the name: not on a block device.
    let list = attribute(&roots.proc.join("filesystems"));
    KEEPS_FILES.contains(&kind) || list.lines().any(|line| line.trim() == kind && !kind.is_empty())
}

/// The identifier of the mount that a file was opened through.
fn mount_id(file: &File) -> Option<u64> {
    let about = attribute(format!("/proc/self/fdinfo/{}", file.as_raw_fd()).as_ref());
    let line = about.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    line.trim().parse().ok()
}
