//! The checks before a target may be written, in this order: its kind, its users, its contents, and
//! whether the user confirmed the loss of exactly these contents.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use uflip_core::{Error, ErrorKind, Result};

use super::data_mark::{self, DataMarkStatus};
use super::kind::FileSystem;
use super::machine::{BlockOrFile, Machine, Node, Number, block_or_file_at};
use super::mark::{self, FileVersion, MarkStatus};
use super::signature::{Signature, UNPROBED, probe};
use super::target::{Target, below_dev};
use super::{Roots, lock, token, uses::Uses, writers};
use crate::sector_stamp::SectorStamp;

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
pub(crate) fn report(machine: &Machine, number: Number, reader: Option<&File>) -> BlockReport {
    let signatures = reader.map_or_else(
        || vec![Signature { name: UNPROBED.into(), label: "it cannot be opened".into() }],
        probe,
    );
    let mut uses = machine.uses_of_block(number);
    let pools = signatures.iter().filter(|s| s.name == "zfs_member");
    let imported = pools.filter(|pool| machine.pools.contains(&pool.label));
    uses.extend(imported.map(|pool| format!("a device of the imported ZFS pool {}", pool.label)));
    let name = machine.nodes.get(&number).map(|node| token::device_name(machine, node));
    let token = name.map(|name| name + &token::contents(&signatures)).unwrap_or_default();
    BlockReport { uses, signatures, token }
}

/// Refuse to write to a block device that is in use, or whose name and contents `destroy` does not
/// list.
///
/// # Errors
/// [`ErrorKind::Refused`].
pub(crate) fn admit_block(
    machine: &Machine,
    number: Number,
    reader: Option<&File>,
    place: &str,
    destroy: Option<&str>,
) -> Result<()> {
    let BlockReport { uses, signatures, token } = report(machine, number, reader);
    refuse_used("The block device is in use", place, &uses)?;
    let Some(node) = machine.nodes.get(&number) else {
        return Err(Error::new(ErrorKind::Refused, "The kernel does not describe this device")
            .at(place)
            .action("is sysfs mounted on /sys?"));
    };
    let name = token::device_name(machine, node);
    if destroy.is_some_and(|typed| token::permits(typed, &name, &signatures)) {
        let writers = writers::find_block_writers(machine, number);
        refuse_used("The block device is in use", place, &writers)?;
        return refuse_used_below(machine, node, place);
    }
    Err(Error::new(ErrorKind::Refused, "Everything on this block device would be lost")
        .at(place)
        .got(format_destroy(destroy) + &format_contents(&signatures))
        .allowed(format!("--destroy '{token}'"))
        .action("check that this is the device you mean, then type exactly this --destroy"))
}

/// Refuse a loop device, or a partition of one, whose file is locked or written by another process.
fn refuse_used_below(machine: &Machine, node: &Node, place: &str) -> Result<()> {
    let disk = node.disk.and_then(|disk| machine.nodes.get(&disk));
    let shown = [Some(node), disk].into_iter().flatten().filter_map(|node| node.backing.as_ref());
    for backing in shown.flat_map(|backing| &backing.targets) {
        let BlockOrFile::File(device, inode) = *backing else { continue };
        lock::refuse_locked(device, inode, place)?;
        let writers = writers::find_file_writers(machine, device, inode);
        refuse_used("The file behind the block device is in use", place, &writers)?;
    }
    Ok(())
}

/// Refuse a path that is not a regular file, or that belongs to the kernel's state.
///
/// # Errors
/// Not a regular file; [`ErrorKind::Refused`] for one below /dev, or in a file system without
/// storage.
pub(crate) fn admit_kind(machine: &Machine, target: &Target, place: &str) -> Result<FileSystem> {
    refuse_below_dev(&target.real_path(), place)?;
    if !target.metadata.is_file() {
        let kind = if target.metadata.is_dir() { "a directory" } else { "a special file" };
        return Err(Error::device("This is not a regular file")
            .at(place)
            .got(kind)
            .allowed("a regular file")
            .action("name a regular file"));
    }
    admit_file_system(machine, target.held(), place)
}

/// Refuse a file system that cannot store files.
///
/// # Errors
/// [`ErrorKind::Refused`] for a file system that shows the kernel's state.
pub(crate) fn admit_file_system(machine: &Machine, file: &File, place: &str) -> Result<FileSystem> {
    let system = FileSystem::containing(machine, file);
    if system.keeps_files {
        return Ok(system);
    }
    let kind = if system.kind.is_empty() { "an unknown one" } else { &system.kind };
    Err(Error::new(
        ErrorKind::Refused,
        "This file system keeps no files: it shows the kernel's state",
    )
    .at(place)
    .got(kind.to_owned())
    .allowed("a file system on a disk (ext4, xfs, btrfs, …), on a network, or in memory (tmpfs)")
    .action("choose a file in another place"))
}

/// Refuse a path below /dev.
///
/// # Errors
/// [`ErrorKind::Refused`].
pub(crate) fn refuse_below_dev(real: &Path, place: &str) -> Result<()> {
    if !below_dev(real) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Refused, "A path under /dev is never used as a file")
        .at(place)
        .got(real.display().to_string())
        .action("name a block device by its path alone, as in /dev/nvme0n1"))
}

/// A file to be written, as the user named it.
#[derive(Clone, Copy)]
pub(crate) struct WriteRequest<'a> {
    /// Its name in errors.
    pub(crate) place: &'a str,
    /// The path with which `destroy` must begin.
    pub(crate) path: &'a str,
    pub(crate) destroy: Option<&'a str>,
    /// The alternative to destroying the file.
    pub(crate) instead: &'a str,
}

/// Refuse to write to a file that is in use, or holds foreign data, unless `destroy` is its path
/// and lists its contents.
///
/// # Errors
/// [`ErrorKind::Refused`].
///
/// `known` is its earlier state, if it was found to be ours.
pub(crate) fn admit_file(
    machine: &Machine,
    reader: &File,
    request: WriteRequest,
    known: Option<FileVersion>,
    stop: &dyn Fn() -> bool,
) -> Result<Admitted> {
    let metadata = check_unused(machine, reader, request)?;
    let version = mark::file_version(&metadata);
    let why = match mark::status(reader, known, stop) {
        MarkStatus::Expendable(stamp) => {
            refuse_writers(machine, &metadata, request)?;
            return Ok(Admitted { stamp: Some(stamp), version });
        }
        MarkStatus::Unmarked if data_mark::status(reader) != DataMarkStatus::Unmarked => {
            "it holds the data of a served device"
        }
        MarkStatus::Unmarked => "",
        MarkStatus::Void(why) => why,
    };
    refuse_foreign_data(reader, &metadata, request, why)?;
    refuse_writers(machine, &metadata, request)?;
    Ok(Admitted { stamp: None, version })
}

/// Refuse a data file of a served device that is in use, or holds data that no uflip server wrote,
/// unless `destroy` is its path and lists its contents.
///
/// # Errors
/// [`ErrorKind::Refused`].
pub(crate) fn admit_data_file(
    machine: &Machine,
    reader: &File,
    request: WriteRequest,
) -> Result<()> {
    let metadata = check_unused(machine, reader, request)?;
    let is_expendable =
        || matches!(mark::status(reader, None, &|| false), MarkStatus::Expendable(_));
    match data_mark::status(reader) {
        DataMarkStatus::Ours => {}
        DataMarkStatus::Unmarked if is_expendable() => {}
        DataMarkStatus::Unmarked => refuse_foreign_data(reader, &metadata, request, "")?,
        DataMarkStatus::Void(why) => refuse_foreign_data(reader, &metadata, request, why)?,
    }
    refuse_writers(machine, &metadata, request)
}

/// Refuse a file that is used by the kernel, this program or the holder of a lock; return its
/// metadata.
fn check_unused(machine: &Machine, reader: &File, request: WriteRequest) -> Result<Metadata> {
    let metadata = reader.metadata();
    let metadata =
        metadata.map_err(|e| Error::os("The file cannot be opened", request.place, &e))?;
    let mut uses = machine.uses_of_file(metadata.dev(), metadata.ino());
    if is_mapped_by_us(&machine.roots, metadata.dev(), metadata.ino()) {
        uses.push("a part of this running program".to_owned());
    }
    refuse_used("The file is in use", request.place, &uses)?;
    lock::refuse_locked(metadata.dev(), metadata.ino(), request.place)?;
    Ok(metadata)
}

/// Refuse a file that another process has open for writing.
fn refuse_writers(machine: &Machine, metadata: &Metadata, request: WriteRequest) -> Result<()> {
    let writers = writers::find_file_writers(machine, metadata.dev(), metadata.ino());
    refuse_used("The file is in use", request.place, &writers)
}

/// Refuse a file that is not ours, unless the user released it; `why` tells why its mark is void.
fn refuse_foreign_data(
    reader: &File,
    metadata: &Metadata,
    request: WriteRequest,
    why: &str,
) -> Result<()> {
    let WriteRequest { place, path, destroy, instead } = request;
    let signatures = if metadata.len() == 0 { vec![] } else { probe(reader) };
    if destroy.is_some_and(|typed| token::permits(typed, path, &signatures)) {
        return Ok(());
    }
    let what = if metadata.len() == 0 {
        "This empty file was not made by uflip"
    } else {
        "This file was not made by uflip, and its content would be lost"
    };
    let why = if why.is_empty() { String::new() } else { format!("; {why}") };
    Err(Error::new(ErrorKind::Refused, what)
        .at(place)
        .got(format_destroy(destroy) + &format_contents(&signatures) + &why)
        .allowed(format!("--destroy {path}{}", token::contents(&signatures)))
        .action(format!("{instead}; or give exactly this --destroy")))
}

fn refuse_used(what: &str, place: &str, uses: &Uses) -> Result<()> {
    if uses.is_empty() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Refused, what)
        .at(place)
        .got(format_uses(uses))
        .allowed("a target that nothing else uses")
        .action(
            "unmount it, or end what uses it (swap, LVM, RAID, dm-crypt, a loop device, a program)",
        ))
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
fn is_mapped_by_us(roots: &Roots, device: u64, inode: u64) -> bool {
    let maps = super::attribute(&roots.proc.join("self/maps"));
    let mut paths: Vec<&str> =
        maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
        .into_iter()
        .any(|path| block_or_file_at(Path::new(path)) == Some(BlockOrFile::File(device, inode)))
}
