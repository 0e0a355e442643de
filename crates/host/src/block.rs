//! Block devices: their properties, and how they are opened. The [guard](crate::guard) decides
//! whether one may be written.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::Map;
use uflip_core::{Bytes, DeviceInfo, DeviceKind, Error, ErrorKind, Result, SECTOR_BYTES_MIN};

use crate::buffer::Data;
use crate::direct::{DirectDevice, insert_stamp, io_method};
use crate::guard::admit::{self, BlockReport};
use crate::guard::machine::{BlockNode, DeviceNumber, Machine};
use crate::guard::ownership::{OwnershipMark, SectorStamp};
use crate::guard::target::{TargetHandle, drop_cache};
use crate::guard::token::Identity;
use crate::guard::{Roots, attribute, lock};
use crate::zoned;

/// `_IO(0x12, 94)`: returns whether a block device is read-only.
const BLKROGET: u32 = 0x125E;

/// The options for opening a block device.
#[derive(Clone, Copy, Debug)]
pub struct BlockOptions<'a> {
    /// Whether it may be written.
    pub writable: bool,
    /// Accept I/O through the page cache.
    pub buffered: bool,
    /// The content of writes.
    pub data: Data,
    /// The `--destroy` token that the user typed.
    pub destroy: Option<&'a str>,
    /// The stamp of data written earlier, if none is found on the medium.
    pub stamp: Option<SectorStamp>,
}

/// Open the block device at `path`. A writable device is opened exclusively: the kernel then
/// refuses a device that is mounted, used as swap or held by another device, and prevents others from mounting
/// it.
///
/// # Errors
/// Not a block device, read-only, not permitted; [`ErrorKind::Refused`] for a device in use, and
/// unless `destroy` is exactly its [`BlockReport::token`] when `writable`.
pub fn open_block(path: &str, options: BlockOptions) -> Result<DirectDevice> {
    let target = find(path)?;
    let machine = Machine::examine(&Roots::default());
    let number = DeviceNumber::from_dev(target.metadata.rdev());
    let node = find_node(&machine, number, path)?;
    let mut info = describe(&machine, node, path);
    let mut flags = if options.buffered { 0 } else { libc::O_DIRECT };
    if options.writable {
        // A first check, before opening for writing.
        let reader = target.reader().ok();
        admit::admit_block(&machine, number, reader.as_ref(), path, options.destroy)?;
        refuse_read_only(node.attribute("ro") == "1", path)?;
        flags |= libc::O_EXCL;
    }
    let file = target.open(options.writable, flags).map_err(|error| not_opened(path, &error))?;
    target.check_same(&file, path)?;
    lock::hold(&file, options.writable, path)?;
    let reader = target.reader().map_err(|error| not_opened(path, &error))?;
    if options.writable {
        // A second check under the exclusive open: the medium may have been changed.
        refuse_read_only(is_read_only(&file), path)?;
        let machine = Machine::examine(&machine.roots);
        admit::admit_block(&machine, number, Some(&reader), path, options.destroy)?;
    }
    let found_stamp = SectorStamp::find_on(&reader, info.capacity_bytes.0);
    drop_cache(&reader);
    let stamp = found_stamp.or(options.stamp).unwrap_or_else(SectorStamp::generate);
    insert_stamp(&mut info, found_stamp, options.writable.then_some((stamp, options.data)));
    info.io = io_method(options.buffered);
    info.data = options.data.name();
    Ok(DirectDevice::new(info, file, options.data, Arc::new(OwnershipMark::device(stamp))))
}

/// Check whether the block device at `path` may be written, without opening it for writing.
///
/// # Errors
/// As [`open_block`].
pub fn check_block(path: &str, destroy: Option<&str>) -> Result<()> {
    let target = find(path)?;
    let machine = Machine::examine(&Roots::default());
    let number = DeviceNumber::from_dev(target.metadata.rdev());
    let node = find_node(&machine, number, path)?;
    admit::admit_block(&machine, number, target.reader().ok().as_ref(), path, destroy)?;
    refuse_read_only(node.attribute("ro") == "1", path)
}

/// Return the properties of the block device at `path`, from sysfs, and from its data if it is
/// readable.
///
/// # Errors
/// Missing, or not a block device.
pub fn inspect_block(path: &str) -> Result<DeviceInfo> {
    Ok(inspect(&Machine::examine(&Roots::default()), path)?.0)
}

/// Return the properties, users, contents and `--destroy` token of each block device at `paths`.
/// Devices without a name or capacity are left out. The machine is examined once for all of them.
#[must_use]
pub fn report_blocks(paths: &[String]) -> Vec<(DeviceInfo, BlockReport)> {
    let machine = Machine::examine(&Roots::default());
    let report = |path: &String| {
        let (info, target) = inspect(&machine, path).ok()?;
        (info.capacity_bytes.0 > 0).then(|| (info, report_of(&machine, &target)))
    };
    paths.iter().filter_map(report).collect()
}

fn inspect(machine: &Machine, path: &str) -> Result<(DeviceInfo, TargetHandle)> {
    let target = find(path)?;
    let node = find_node(machine, DeviceNumber::from_dev(target.metadata.rdev()), path)?;
    let mut info = describe(machine, node, path);
    let stamp =
        target.reader().ok().and_then(|file| SectorStamp::find_on(&file, info.capacity_bytes.0));
    insert_stamp(&mut info, stamp, None);
    Ok((info, target))
}

/// Return the users, contents and `--destroy` token of the block device at `path`.
///
/// # Errors
/// Missing, or not a block device.
pub fn report_block(path: &str) -> Result<BlockReport> {
    let target = find(path)?;
    Ok(report_of(&Machine::examine(&Roots::default()), &target))
}

fn report_of(machine: &Machine, target: &TargetHandle) -> BlockReport {
    admit::report(
        machine,
        DeviceNumber::from_dev(target.metadata.rdev()),
        target.reader().ok().as_ref(),
    )
}

fn find(path: &str) -> Result<TargetHandle> {
    let target = TargetHandle::find(Path::new(path)).map_err(|error| {
        Error::os("The block device cannot be opened", path, &error)
            .action("check the path and your permissions")
    })?;
    let target = target.ok_or_else(|| {
        let error = std::io::Error::from_raw_os_error(libc::ENOENT);
        Error::os("The block device cannot be opened", path, &error)
            .action("`uflip devices` lists the block devices of this machine")
    })?;
    if !target.is_block() {
        return Err(Error::device("This is not a block device")
            .at(path)
            .action("`uflip devices` lists the block devices; a file is named file:PATH"));
    }
    Ok(target)
}

fn find_node<'a>(machine: &'a Machine, number: DeviceNumber, path: &str) -> Result<&'a BlockNode> {
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
    // SAFETY: an open descriptor, and a valid integer to write to.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), BLKROGET as _, &raw mut read_only) };
    status == 0 && read_only != 0
}

fn describe(machine: &Machine, node: &BlockNode, path: &str) -> DeviceInfo {
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
        disk.attribute("queue/discard_max_bytes").parse().is_ok_and(|bytes: u64| bytes > 0);
    details.insert("deallocates".into(), discards.into());
    details.insert("backing_file".into(), disk.attribute("loop/backing_file").into());
    // Together they identify a medium until the next boot.
    details.insert("diskseq".into(), disk.attribute("diskseq").into());
    if let Some(limits) = zoned::limits_of(disk) {
        details.insert("zones".into(), limits.into());
    }
    let boot = attribute(&machine.roots.proc.join("sys/kernel/random/boot_id"));
    details.insert("boot_id".into(), boot.into());
    details.retain(|_, value| value.as_str() != Some(""));
    let identity = Identity::read(disk);
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
        io: io_method(false),
        data: Data::Random.name(),
        details,
    }
}
