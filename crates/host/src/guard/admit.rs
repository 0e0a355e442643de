//! The checks before a target may be written, in this order: its kind, its users, its contents, and
//! whether the user confirmed the loss of exactly these contents.
//!
//! The kind is a block device, or a regular file in a file system that stores files: one on a block
//! device, according to the kernel's list, or a known one that stores files elsewhere
//! ([`STORAGE_FILE_SYSTEMS`]). All others (procfs, sysfs, devtmpfs, debugfs, cgroups, …) show the kernel's
//! state as files, and a write there is a command to the kernel.

use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use uflip_core::{Error, ErrorKind, Result};

use crate::guard::machine::{
    self, BlockNode, BlockOrFile, DeviceNumber, Machine, block_or_file_at,
};
use crate::guard::ownership::{self, DataMarkStatus, FileVersion, MarkStatus, SectorStamp};
use crate::guard::signature::{Signature, UNPROBED, probe};
use crate::guard::target::{TargetHandle, is_below_dev};
use crate::guard::uses::{self, Uses};
use crate::guard::{Roots, attribute, lock, token};

/// The number of uses shown in a message.
const USES_SHOWN: usize = 3;

/// A file that may be written.
pub(crate) struct Admitted {
    /// The stamp of its data, if uflip wrote them.
    pub(crate) stamp: Option<SectorStamp>,
    /// Its size and modification time at the check.
    pub(crate) version: FileVersion,
}

/// The users, contents and token of a block device, found without writing to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockReport {
    /// The users; the device can be written only if there are no users.
    pub uses: Vec<String>,
    /// The contents.
    pub signatures: Vec<Signature>,
    /// The `--destroy` token; empty for a device that the kernel does not describe.
    pub token: String,
}

/// Examine the block device of a number. Without a reader its contents are unknown.
pub(crate) fn report(
    machine: &Machine,
    number: DeviceNumber,
    reader: Option<&File>,
) -> BlockReport {
    let signatures = reader.map_or_else(
        || vec![Signature { name: UNPROBED.into(), label: "it cannot be opened".into() }],
        probe,
    );
    let mut uses = machine.uses_of_block(number);
    let pools = signatures.iter().filter(|signature| signature.name == "zfs_member");
    let imported = pools.filter(|pool| machine.pools.contains(&pool.label));
    uses.extend(imported.map(|pool| format!("a device of the imported ZFS pool {}", pool.label)));
    let name = machine.nodes.get(&number).map(|node| token::device_name(machine, node));
    let token = name.map(|name| name + &token::contents(&signatures)).unwrap_or_default();
    BlockReport { uses, signatures, token }
}

/// Refuse to write to a block device that is in use, or whose name and contents `destroy` does not
/// list.
pub(crate) fn admit_block(
    machine: &Machine,
    number: DeviceNumber,
    reader: Option<&File>,
    location: &str,
    destroy: Option<&str>,
) -> Result<()> {
    let BlockReport { uses, signatures, token } = report(machine, number, reader);
    refuse_used("The block device is in use", location, &uses)?;
    let Some(node) = machine.nodes.get(&number) else {
        return Err(Error::new(ErrorKind::Refused, "The kernel does not describe this device")
            .at(location)
            .action("is sysfs mounted on /sys?"));
    };
    let name = token::device_name(machine, node);
    if destroy.is_some_and(|token| token::permits(token, &name, &signatures)) {
        let writers = uses::find_block_writers(machine, number);
        refuse_used("The block device is in use", location, &writers)?;
        return refuse_used_below(machine, node, location);
    }
    Err(Error::new(ErrorKind::Refused, "Everything on this block device would be lost")
        .at(location)
        .got(format_destroy(destroy) + &format_contents(&signatures))
        .allowed(format!("--destroy '{token}'"))
        .action("check that this is the intended device, then repeat this --destroy exactly"))
}

/// Refuse a loop device, or a partition of one, whose file is locked or written by another process.
fn refuse_used_below(machine: &Machine, node: &BlockNode, location: &str) -> Result<()> {
    let disk = node.disk.and_then(|disk| machine.nodes.get(&disk));
    let nodes = [Some(node), disk].into_iter().flatten().filter_map(|node| node.backing.as_ref());
    for backing in nodes.flat_map(|backing| &backing.targets) {
        let BlockOrFile::File(device, inode) = *backing else { continue };
        lock::refuse_locked(device, inode, location)?;
        let writers = uses::find_file_writers(machine, device, inode);
        refuse_used("The file behind the block device is in use", location, &writers)?;
    }
    Ok(())
}

/// Refuse a path that is not a regular file, or that belongs to the kernel's state.
pub(crate) fn admit_kind(
    machine: &Machine,
    target: &TargetHandle,
    location: &str,
) -> Result<FileSystem> {
    refuse_below_dev(&target.real_path(), location)?;
    if !target.metadata.is_file() {
        let kind = if target.metadata.is_dir() { "a directory" } else { "a special file" };
        return Err(Error::device("This is not a regular file")
            .at(location)
            .got(kind)
            .allowed("a regular file")
            .action("name a regular file"));
    }
    admit_file_system(machine, target.descriptor(), location)
}

/// Refuse a file system that cannot store files.
pub(crate) fn admit_file_system(
    machine: &Machine,
    file: &File,
    location: &str,
) -> Result<FileSystem> {
    let system = FileSystem::containing(machine, file);
    if system.stores_files {
        return Ok(system);
    }
    let kind = if system.kind.is_empty() { "an unknown one" } else { &system.kind };
    Err(Error::new(
        ErrorKind::Refused,
        "This file system does not store files: it shows the kernel's state",
    )
    .at(location)
    .got(kind.to_owned())
    .allowed("a file system on a disk (ext4, xfs, btrfs, …), on a network, or in memory (tmpfs)")
    .action("choose a file in another file system"))
}

/// Refuse a path below /dev.
pub(crate) fn refuse_below_dev(real: &Path, location: &str) -> Result<()> {
    if !is_below_dev(real) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Refused, "A path under /dev is never used as a file")
        .at(location)
        .got(real.display().to_string())
        .action("give a block device as a plain path, as in /dev/nvme0n1"))
}

/// A file to be written, as the user named it.
#[derive(Clone, Copy)]
pub(crate) struct WriteRequest<'a> {
    /// Its name in errors.
    pub(crate) location: &'a str,
    /// The path with which `destroy` must begin.
    pub(crate) path: &'a str,
    pub(crate) destroy: Option<&'a str>,
    /// The alternative to destroying the file.
    pub(crate) alternative: &'a str,
}

/// Refuse to write to a file that is in use, or holds foreign data, unless `destroy` is its path
/// and lists its contents.
///
/// `earlier` is its state when it was last found to be ours.
pub(crate) fn admit_file(
    machine: &Machine,
    reader: &File,
    request: WriteRequest,
    earlier: Option<FileVersion>,
    stop: &dyn Fn() -> bool,
) -> Result<Admitted> {
    let metadata = check_unused(machine, reader, request)?;
    let version = ownership::file_version(&metadata);
    let void_reason = match ownership::mark_status(reader, earlier, stop) {
        MarkStatus::Expendable(stamp) => {
            refuse_writers(machine, &metadata, request)?;
            return Ok(Admitted { stamp: Some(stamp), version });
        }
        MarkStatus::Unmarked if ownership::data_status(reader) != DataMarkStatus::Unmarked => {
            "it holds the data of a served device".to_owned()
        }
        MarkStatus::Unmarked => String::new(),
        MarkStatus::Void(void_reason) => void_reason,
    };
    refuse_foreign_data(reader, &metadata, request, &void_reason)?;
    refuse_writers(machine, &metadata, request)?;
    Ok(Admitted { stamp: None, version })
}

/// Refuse a data file of a served device that is in use, or holds data that no uflip server wrote,
/// unless `destroy` is its path and lists its contents.
pub(crate) fn admit_data_file(
    machine: &Machine,
    reader: &File,
    request: WriteRequest,
) -> Result<()> {
    let metadata = check_unused(machine, reader, request)?;
    let is_expendable =
        || matches!(ownership::mark_status(reader, None, &|| false), MarkStatus::Expendable(_));
    match ownership::data_status(reader) {
        DataMarkStatus::Ours => {}
        DataMarkStatus::Unmarked if is_expendable() => {}
        DataMarkStatus::Unmarked => refuse_foreign_data(reader, &metadata, request, "")?,
        DataMarkStatus::Void(reason) => refuse_foreign_data(reader, &metadata, request, &reason)?,
    }
    refuse_writers(machine, &metadata, request)
}

/// Refuse a file that is used by the kernel, this program or the holder of a lock; return its
/// metadata.
fn check_unused(machine: &Machine, reader: &File, request: WriteRequest) -> Result<Metadata> {
    let metadata = reader.metadata();
    let metadata =
        metadata.map_err(|e| Error::os("The file cannot be opened", request.location, &e))?;
    let mut uses = machine.uses_of_file(metadata.dev(), metadata.ino());
    if is_mapped_here(&machine.roots, metadata.dev(), metadata.ino()) {
        uses.push("a part of this running program".to_owned());
    }
    refuse_used("The file is in use", request.location, &uses)?;
    lock::refuse_locked(metadata.dev(), metadata.ino(), request.location)?;
    Ok(metadata)
}

/// Refuse a file that another process has open for writing.
fn refuse_writers(machine: &Machine, metadata: &Metadata, request: WriteRequest) -> Result<()> {
    let writers = uses::find_file_writers(machine, metadata.dev(), metadata.ino());
    refuse_used("The file is in use", request.location, &writers)
}

/// Refuse a file that is not ours, unless the user released it; `void_reason` is the reason why its mark is void.
fn refuse_foreign_data(
    reader: &File,
    metadata: &Metadata,
    request: WriteRequest,
    void_reason: &str,
) -> Result<()> {
    let WriteRequest { location, path, destroy, alternative } = request;
    let signatures = if metadata.len() == 0 { vec![] } else { probe(reader) };
    if destroy.is_some_and(|typed| token::permits(typed, path, &signatures)) {
        return Ok(());
    }
    let problem = if metadata.len() == 0 {
        "This empty file was not made by uflip"
    } else {
        "This file was not made by uflip, and its content would be lost"
    };
    let void_reason =
        if void_reason.is_empty() { String::new() } else { format!("; {void_reason}") };
    Err(Error::new(ErrorKind::Refused, problem)
        .at(location)
        .got(format_destroy(destroy) + &format_contents(&signatures) + &void_reason)
        .allowed(format!("--destroy {path}{}", token::contents(&signatures)))
        .action(format!("{alternative}; or repeat this --destroy exactly")))
}

fn refuse_used(problem: &str, location: &str, uses: &Uses) -> Result<()> {
    if uses.is_empty() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Refused, problem)
        .at(location)
        .got(format_uses(uses))
        .allowed("an unused target")
        .action("unmount it, or end its use (swap, LVM, RAID, dm-crypt, a loop device, a program)"))
}

/// Return the first uses, and the number of further ones.
#[must_use]
pub fn format_uses(uses: &[String]) -> String {
    let shown = uses[..uses.len().min(USES_SHOWN)].join("; ");
    match uses.len().saturating_sub(USES_SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn format_destroy(destroy: Option<&str>) -> String {
    destroy.map_or_else(|| "no --destroy".into(), |typed| format!("--destroy '{typed}'"))
}

fn format_contents(signatures: &[Signature]) -> String {
    let name = |signature: &Signature| match signature.label.as_str() {
        "" => signature.name.clone(),
        label => format!("{} ({label})", signature.name),
    };
    let names: Vec<String> = signatures.iter().map(name).collect();
    if names.is_empty() { String::new() } else { format!("; it holds {}", names.join(", ")) }
}

/// Return whether a file is mapped into this process: the program, or a library.
fn is_mapped_here(roots: &Roots, device: u64, inode: u64) -> bool {
    let maps = super::attribute(&roots.proc.join("self/maps"));
    let mut paths: Vec<&str> =
        maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
        .into_iter()
        .any(|path| block_or_file_at(Path::new(path)) == Some(BlockOrFile::File(device, inode)))
}

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
        let kind = mount_id(file).and_then(|id| machine::by_id(&machine.mounts, id));
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
