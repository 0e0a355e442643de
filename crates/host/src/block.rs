//! Block devices: who they are, and how they are opened. Who may be written to is the
//! [guard](crate::guard)'s business.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Map;
use uflip_core::{Bytes, DeviceInfo, DeviceKind, Error, ErrorKind, Result, SECTOR_BYTES_MIN};

use crate::brand::Brand;
use crate::buffer::Data;
use crate::direct::DirectDevice;
use crate::file::how;
use crate::guard::admit::{self, BlockReport};
use crate::guard::machine::{Machine, Node, Number};
use crate::guard::mark::Kept;
use crate::guard::named::{Named, forget};
use crate::guard::token::Identity;
use crate::guard::{Roots, attribute, lock};
use crate::zoned;

/// `_IO(0x12, 94)`: whether a block device is read-only.
const BLKROGET: u32 = 0x125E;

/// How to open a block device.
#[derive(Clone, Copy, Debug)]
pub struct BlockOptions<'a> {
    /// Whether it may be written.
    pub writable: bool,
    /// Accept I/O through the page cache.
    pub buffered: bool,
    /// What is written.
    pub data: Data,
    /// What the user typed to give it up.
    pub destroy: Option<&'a str>,
    /// The brand of data that were written to it before, where none is found on it.
    pub brand: Option<Brand>,
}

/// Open the block device at `path`. When writable it is opened exclusively: the kernel then refuses
/// a device that is mounted, swapped to, or held by another device, and nobody can mount it.
///
/// # Errors
/// Not a block device, read-only, not permitted; [`ErrorKind::Refused`] for a device in use, and
/// unless `destroy` is exactly its [`BlockReport::token`] when `writable`.
pub fn open_block(path: &str, options: BlockOptions) -> Result<DirectDevice> {
    let named = find(path)?;
    let machine = Machine::look(&Roots::default());
    let number = Number::of(named.metadata.rdev());
    let node = node_of(&machine, number, path)?;
    let mut info = describe(&machine, node, path);
    let mut flags = if options.buffered { 0 } else { libc::O_DIRECT };
    if options.writable {
        // Looked at first, without opening it for writing.
        let reader = named.reader().ok();
        admit::admit_block(&machine, number, reader.as_ref(), path, options.destroy)?;
        refuse_read_only(node.attribute("ro") == "1", path)?;
        flags |= libc::O_EXCL;
    }
    let file = named.open(options.writable, flags).map_err(|error| not_opened(path, &error))?;
    named.check_same(&file, path)?;
    lock::hold(&file, options.writable, path)?;
    let reader = named.reader().map_err(|error| not_opened(path, &error))?;
    if options.writable {
        // Once more, now that nobody can come in between: a medium may have been changed.
        refuse_read_only(is_read_only(&file), path)?;
        let machine = Machine::look(&machine.roots);
        admit::admit_block(&machine, number, Some(&reader), path, options.destroy)?;
    }
    let found = Brand::found_on(&reader, info.capacity_bytes.0);
    forget(&reader);
    let brand = found.or(options.brand).unwrap_or_else(Brand::fresh);
    tell_brand(&mut info, found, options.writable.then_some((brand, options.data)));
    info.io = how(options.buffered);
    info.data = options.data.name();
    Ok(DirectDevice::new(info, file, options.data, Arc::new(Kept::device(brand))))
}

/// Whether the block device at `path` may be written to, without opening it for writing.
///
/// # Errors
/// As [`open_block`].
pub fn check_block(path: &str, destroy: Option<&str>) -> Result<()> {
    let named = find(path)?;
    let machine = Machine::look(&Roots::default());
    let number = Number::of(named.metadata.rdev());
    let node = node_of(&machine, number, path)?;
    admit::admit_block(&machine, number, named.reader().ok().as_ref(), path, destroy)?;
    refuse_read_only(node.attribute("ro") == "1", path)
}

/// What is known about the block device at `path`, from sysfs, and from a look at its data where it may
/// be read.
///
/// # Errors
/// Missing, or not a block device.
pub fn inspect_block(path: &str) -> Result<DeviceInfo> {
    Ok(look_at(&Machine::look(&Roots::default()), path)?.0)
}

/// What is known about each of the block devices at `paths`, who uses it, what it holds, and what must be typed to
/// have it overwritten; of those that can be named and hold anything. The machine is looked at once for all of them.
#[must_use]
pub fn known_blocks(paths: &[String]) -> Vec<(DeviceInfo, BlockReport)> {
    let machine = Machine::look(&Roots::default());
    let known = |path: &String| {
        let (info, named) = look_at(&machine, path).ok()?;
        (info.capacity_bytes.0 > 0).then(|| (info, report_of(&machine, &named)))
    };
    paths.iter().filter_map(known).collect()
}

fn look_at(machine: &Machine, path: &str) -> Result<(DeviceInfo, Named)> {
    let named = find(path)?;
    let node = node_of(machine, Number::of(named.metadata.rdev()), path)?;
    let mut info = describe(machine, node, path);
    let brand = named.reader().ok().and_then(|file| Brand::found_on(&file, info.capacity_bytes.0));
    tell_brand(&mut info, brand, None);
    Ok((info, named))
}

/// Note the brand that was found on a medium, or that will be written to it.
pub(crate) fn tell_brand(
    info: &mut DeviceInfo,
    found: Option<Brand>,
    written: Option<(Brand, Data)>,
) {
    let written = written.filter(|(_, data)| *data == Data::Random).map(|(brand, _)| brand);
    if let Some(brand) = found.or(written) {
        info.details.insert("brand".into(), brand.text().into());
        if found.is_none() {
            info.details.insert("brand_is_new".into(), true.into());
        }
    }
}

/// Who uses the block device at `path`, what it holds, and what must be typed to have it overwritten.
///
/// # Errors
/// Missing, or not a block device.
pub fn report_block(path: &str) -> Result<BlockReport> {
    let named = find(path)?;
    Ok(report_of(&Machine::look(&Roots::default()), &named))
}

fn report_of(machine: &Machine, named: &Named) -> BlockReport {
    admit::report(machine, Number::of(named.metadata.rdev()), named.reader().ok().as_ref())
}

fn find(path: &str) -> Result<Named> {
    let named = Named::find(Path::new(path)).map_err(|error| {
        Error::os("The block device cannot be opened", path, &error)
            .action("check the path and your permissions")
    })?;
    let named = named.ok_or_else(|| {
        let error = std::io::Error::from_raw_os_error(libc::ENOENT);
        Error::os("The block device cannot be opened", path, &error)
            .action("`uflip devices` lists the block devices of this machine")
    })?;
    if !named.is_block() {
        return Err(Error::device("This is not a block device")
            .at(path)
            .action("`uflip devices` lists the block devices; a file is named file:PATH"));
    }
    Ok(named)
}

fn node_of<'a>(machine: &'a Machine, number: Number, path: &str) -> Result<&'a Node> {
    machine.nodes.get(&number).ok_or_else(|| {
        Error::device("The kernel does not describe this block device")
            .at(path)
            .got(format!("device {}:{}", number.major, number.minor))
            .action("is the device still connected, and sysfs mounted on /sys?")
    })
}

fn not_opened(path: &str, error: &std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EBUSY) => Error::new(ErrorKind::Refused, "The block device is in use")
            .at(path)
            .got(error.to_string())
            .action("unmount it, or release whatever holds it (swap, LVM, RAID, dm-crypt)"),
        _ => Error::os("The block device cannot be opened", path, error)
            .action("check the path and your permissions"),
    }
}

fn refuse_read_only(read_only: bool, path: &str) -> Result<()> {
    if !read_only {
        return Ok(());
    }
    Err(Error::device("The block device is read-only and the benchmark writes")
        .at(path)
        .action("measure reads only, as in `uflip pattern --pattern RR`, or make it writable"))
}

fn is_read_only(file: &File) -> bool {
    let mut read_only: libc::c_int = 0;
    // SAFETY: an open descriptor and a place for the number.
    let told = unsafe { libc::ioctl(file.as_raw_fd(), BLKROGET as _, &raw mut read_only) };
    told == 0 && read_only != 0
}

fn describe(machine: &Machine, node: &Node, path: &str) -> DeviceInfo {
    let disk = machine.disk_of(node);
    let sectors: u64 = node.attribute("size").parse().unwrap_or(0);
    let sector = disk.attribute("queue/logical_block_size").parse();
    let mut details = Map::new();
    for name in
        ["scheduler", "rotational", "write_cache", "physical_block_size", "discard_granularity"]
    {
        details.insert(name.into(), disk.attribute(&format!("queue/{name}")).into());
    }
    let discards =
        disk.attribute("queue/discard_max_bytes").parse().is_ok_and(|most: u64| most > 0);
    details.insert("deallocates".into(), discards.into());
    details.insert("backing_file".into(), disk.attribute("loop/backing_file").into());
    // Together they name a medium until the next start of the machine.
    details.insert("diskseq".into(), disk.attribute("diskseq").into());
    if let Some(limits) = zoned::limits_of(disk) {
        details.insert("zones".into(), limits.into());
    }
    let boot = attribute(&machine.roots.proc.join("sys/kernel/random/boot_id"));
    details.insert("boot_id".into(), boot.into());
    details.retain(|_, value| value.as_str() != Some(""));
    let identity = Identity::of(disk);
    DeviceInfo {
        url: path.into(),
        kind: DeviceKind::Block,
        simulated: false,
        model: identity.model,
        serial: identity.serial,
        firmware: identity.firmware,
        capacity_bytes: Bytes(sectors * SECTOR_BYTES_MIN),
        sector_bytes: Bytes(sector.unwrap_or(SECTOR_BYTES_MIN)),
        clock: "monotonic",
        io: how(false),
        data: Data::Random.name(),
        details,
    }
}

/// Where the kernel describes the block device of a number, and the disk that it is a part of.
pub(crate) fn disk_of(number: libc::dev_t) -> std::io::Result<(PathBuf, PathBuf)> {
    let (major, minor) = (libc::major(number), libc::minor(number));
    let node = PathBuf::from(format!("/sys/dev/block/{major}:{minor}")).canonicalize()?;
    // A partition has no queue of its own; its disk, one level up, has.
    let disk = if node.join("queue").is_dir() { node.clone() } else { parent(&node) };
    Ok((node, disk))
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}
