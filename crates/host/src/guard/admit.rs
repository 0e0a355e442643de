//! Whether a target may be written to: everything that is asked of it, in this order. What it is; who
//! uses it; what it holds; and whether the user said that exactly that may be lost.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use uflip_core::{Error, ErrorKind, Result};

use super::data_mark::{self, Served};
use super::kind::FileSystem;
use super::machine::{Machine, Node, Number, Place, place_of};
use super::mark::{self, Seen, Standing};
use super::named::{Named, below_dev};
use super::signature::{Signature, UNPROBED, probe};
use super::{Roots, lock, token, uses::Uses, writers};
use crate::brand::Brand;

/// As many uses are told.
const TOLD: usize = 3;

/// A file that may be written to.
pub(crate) struct Admitted {
    /// That of its data, where it is one of ours.
    pub(crate) brand: Option<Brand>,
    /// As it was when it was looked at.
    pub(crate) seen: Seen,
}

/// What is known of a block device without writing to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockReport {
    /// Who uses it; it can be written to only if nobody does.
    pub uses: Vec<String>,
    /// What it holds.
    pub signatures: Vec<Signature>,
    /// What must be typed to have it overwritten; empty for a device that the kernel does not tell of.
    pub token: String,
}

/// Look at the block device of a number. Without a reader nothing is known of what it holds.
pub(crate) fn report(machine: &Machine, number: Number, reader: Option<&File>) -> BlockReport {
    let signatures = reader.map_or_else(
        || vec![Signature { name: UNPROBED.into(), label: "it cannot be opened".into() }],
        probe,
    );
    let mut uses = machine.uses_of_block(number);
    let pools = signatures.iter().filter(|s| s.name == "zfs_member");
    let imported = pools.filter(|pool| machine.pools.contains(&pool.label));
    uses.extend(imported.map(|pool| format!("a device of the imported ZFS pool {}", pool.label)));
    let name = machine.nodes.get(&number).map(|node| token::name_of(machine, node));
    let token = name.map(|name| name + &token::held(&signatures)).unwrap_or_default();
    BlockReport { uses, signatures, token }
}

/// Refuse to write to a block device that is in use, or that `destroy` does not name together with all
/// that it holds.
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
    let name = token::name_of(machine, node);
    if destroy.is_some_and(|typed| token::permits(typed, &name, &signatures)) {
        let writers = writers::of_block(machine, number);
        refuse_used("The block device is in use", place, &writers)?;
        return refuse_used_below(machine, node, place);
    }
    Err(Error::new(ErrorKind::Refused, "Everything on this block device would be lost")
        .at(place)
        .got(typed(destroy) + &holding(&signatures))
        .allowed(format!("--destroy '{token}'"))
        .action("check that this is the device you mean, then type exactly this --destroy"))
}

/// Refuse a loop device, or a partition of one, whose file somebody else has locked, or writes to.
fn refuse_used_below(machine: &Machine, node: &Node, place: &str) -> Result<()> {
    let disk = node.disk.and_then(|disk| machine.nodes.get(&disk));
    let shown = [Some(node), disk].into_iter().flatten().filter_map(|node| node.backing.as_ref());
    for backing in shown.flat_map(|backing| &backing.places) {
        let Place::File(device, inode) = *backing else { continue };
        lock::refuse_locked(device, inode, place)?;
        let writers = writers::of_file(machine, device, inode);
        refuse_used("The file behind the block device is in use", place, &writers)?;
    }
    Ok(())
}

/// Refuse to use as a file what is none, or shows the kernel's own state.
///
/// # Errors
/// Not a regular file; [`ErrorKind::Refused`] for one below /dev, or in a file system that keeps none.
pub(crate) fn admit_kind(machine: &Machine, named: &Named, place: &str) -> Result<FileSystem> {
    refuse_below_dev(&named.real_path(), place)?;
    if !named.metadata.is_file() {
        let kind = if named.metadata.is_dir() { "a directory" } else { "a special file" };
        return Err(Error::device("This is not a regular file")
            .at(place)
            .got(kind)
            .allowed("a regular file")
            .action("name a regular file"));
    }
    admit_file_system(machine, named.held(), place)
}

/// Refuse a place where no file of ours can be.
///
/// # Errors
/// [`ErrorKind::Refused`] for a file system that keeps no files.
pub(crate) fn admit_file_system(machine: &Machine, file: &File, place: &str) -> Result<FileSystem> {
    let system = FileSystem::of(machine, file);
    if system.keeps_files {
        return Ok(system);
    }
    let kind = if system.kind.is_empty() { "one that cannot be told" } else { &system.kind };
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

/// A file that is to be written, as the user named it.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// How errors name it.
    pub(crate) place: &'a str,
    /// What a `destroy` has to begin with.
    pub(crate) path: &'a str,
    pub(crate) destroy: Option<&'a str>,
    /// What to do instead of giving the file up.
    pub(crate) instead: &'a str,
}

/// Refuse to write to a file that is in use, or holds something that is not ours unless `destroy` is
/// its path and names what it holds.
///
/// # Errors
/// [`ErrorKind::Refused`].
///
/// `known` is what it was when it was found to be ours.
pub(crate) fn admit_file(
    machine: &Machine,
    reader: &File,
    wanted: Wanted,
    known: Option<Seen>,
    stop: &dyn Fn() -> bool,
) -> Result<Admitted> {
    let metadata = unused(machine, reader, wanted)?;
    let seen = mark::seen(&metadata);
    let why = match mark::standing(reader, known, stop) {
        Standing::Expendable(brand) => {
            refuse_writers(machine, &metadata, wanted)?;
            return Ok(Admitted { brand: Some(brand), seen });
        }
        Standing::Unmarked if data_mark::served(reader) != Served::Unmarked => {
            "it holds the data of a served device"
        }
        Standing::Unmarked => "",
        Standing::Void(why) => why,
    };
    refuse_kept(reader, &metadata, wanted, why)?;
    refuse_writers(machine, &metadata, wanted)?;
    Ok(Admitted { brand: None, seen })
}

/// Refuse to let clients of a served device write to a file that is in use, or holds something that no
/// server of ours left there unless `destroy` is its path and names what it holds.
///
/// # Errors
/// [`ErrorKind::Refused`].
pub(crate) fn admit_data_file(machine: &Machine, reader: &File, wanted: Wanted) -> Result<()> {
    let metadata = unused(machine, reader, wanted)?;
    let is_expendable =
        || matches!(mark::standing(reader, None, &|| false), Standing::Expendable(_));
    match data_mark::served(reader) {
        Served::Ours => {}
        Served::Unmarked if is_expendable() => {}
        Served::Unmarked => refuse_kept(reader, &metadata, wanted, "")?,
        Served::Void(why) => refuse_kept(reader, &metadata, wanted, why)?,
    }
    refuse_writers(machine, &metadata, wanted)
}

/// Refuse a file that the kernel, this program or the holder of a lock uses; what it is otherwise.
fn unused(machine: &Machine, reader: &File, wanted: Wanted) -> Result<Metadata> {
    let metadata = reader.metadata();
    let metadata =
        metadata.map_err(|e| Error::os("The file cannot be opened", wanted.place, &e))?;
    let mut uses = machine.uses_of_file(metadata.dev(), metadata.ino());
    if is_part_of_us(&machine.roots, metadata.dev(), metadata.ino()) {
        uses.push("a part of this running program".to_owned());
    }
    refuse_used("The file is in use", wanted.place, &uses)?;
    lock::refuse_locked(metadata.dev(), metadata.ino(), wanted.place)?;
    Ok(metadata)
}

/// Refuse a file that another process has open for writing.
fn refuse_writers(machine: &Machine, metadata: &Metadata, wanted: Wanted) -> Result<()> {
    let writers = writers::of_file(machine, metadata.dev(), metadata.ino());
    refuse_used("The file is in use", wanted.place, &writers)
}

/// Refuse a file that is not ours, for the reason `why` where it once was, unless the user gave it up.
fn refuse_kept(reader: &File, metadata: &Metadata, wanted: Wanted, why: &str) -> Result<()> {
    let Wanted { place, path, destroy, instead } = wanted;
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
        .got(typed(destroy) + &holding(&signatures) + &why)
        .allowed(format!("--destroy {path}{}", token::held(&signatures)))
        .action(format!("{instead}; or give exactly this --destroy")))
}

fn refuse_used(what: &str, place: &str, uses: &Uses) -> Result<()> {
    if uses.is_empty() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Refused, what)
        .at(place)
        .got(told(uses))
        .allowed("a target that nothing else uses")
        .action(
            "unmount it, or end what uses it (swap, LVM, RAID, dm-crypt, a loop device, a program)",
        ))
}

/// The first uses, and how many more there are.
#[must_use]
pub fn told(uses: &[String]) -> String {
    let shown = uses[..uses.len().min(TOLD)].join("; ");
    match uses.len().saturating_sub(TOLD) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn typed(destroy: Option<&str>) -> String {
    destroy.map_or_else(|| "no --destroy".into(), |typed| format!("--destroy '{typed}'"))
}

fn holding(signatures: &[Signature]) -> String {
    let name = |signature: &Signature| match signature.label.as_str() {
        "" => signature.name.clone(),
        label => format!("{} ({label})", signature.name),
    };
    let names: Vec<String> = signatures.iter().map(name).collect();
    if names.is_empty() { String::new() } else { format!("; it holds {}", names.join(", ")) }
}

/// Whether a file is mapped into this process: the program, a library.
fn is_part_of_us(roots: &Roots, device: u64, inode: u64) -> bool {
    let maps = super::attribute(&roots.proc.join("self/maps"));
    let mut paths: Vec<&str> =
        maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.into_iter().any(|path| place_of(Path::new(path)) == Some(Place::File(device, inode)))
}
