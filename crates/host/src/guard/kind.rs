//! The kind of file that may be written: a regular file in a file system that stores files.
//!
//! The rule: a file system on a block device, according to the kernel's list, or one of the known
//! ones that store files elsewhere ([`STORAGE_FILE_SYSTEMS`]). All others (procfs, sysfs, devtmpfs, debugfs,
//! cgroups, …) show the kernel's state as files, and a write there is a command to the kernel.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::machine::Machine;
use super::{Roots, attribute, mounts};

/// File systems without a block device of their own that store files.
const STORAGE_FILE_SYSTEMS: [&str; 24] = [
    "9p", "afs", "bcachefs", "beegfs", "btrfs", "ceph", "cifs", "ecryptfs", "fuse", "gfs2",
    "jffs2", "lustre", "nfs", "nfs4", "ocfs2", "orangefs", "overlay", "ramfs", "smb3", "smbfs",
    "tmpfs", "ubifs", "virtiofs", "zfs",
];

/// File systems in memory: since Linux 6.6 they accept `O_DIRECT` without bypassing memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// The file system of an open file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileSystem {
    /// The kernel's name for it; empty if unknown.
    pub(crate) kind: String,
    pub(crate) stores_files: bool,
}

impl FileSystem {
    /// Return the file system of `file`, which may be open with `O_PATH`.
    pub(crate) fn containing(machine: &Machine, file: &File) -> FileSystem {
        let kind = mount_id(file).and_then(|id| mounts::by_id(&machine.mounts, id));
        let kind = kind.map(|mount| mount.kind.clone()).unwrap_or_default();
        FileSystem { stores_files: stores_files(&machine.roots, &kind), kind }
    }

    pub(crate) fn in_memory(&self) -> bool {
        IN_MEMORY.contains(&self.kind.as_str())
    }
}

fn stores_files(roots: &Roots, kind: &str) -> bool {
    // `nodev` before the name: not on a block device.
    let file_systems = attribute(&roots.proc.join("filesystems"));
    STORAGE_FILE_SYSTEMS.contains(&kind)
        || file_systems.lines().any(|line| line.trim() == kind && !kind.is_empty())
}

/// Return the mount through which a file was opened.
fn mount_id(file: &File) -> Option<u64> {
    let fdinfo = attribute(format!("/proc/self/fdinfo/{}", file.as_raw_fd()).as_ref());
    let line = fdinfo.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    line.trim().parse().ok()
}
