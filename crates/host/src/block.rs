//! Block devices: who they are, and how they are opened.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::Map;
use uflip_core::{Bytes, DeviceInfo, DeviceKind, Error, ErrorKind, Result, SECTOR_BYTES_MIN};

use crate::buffer::Data;
use crate::direct::DirectDevice;
use crate::file::how;

/// `MODEL:SERIAL:SIZE` of a device: what a user types to say that it may be destroyed.
#[must_use]
pub fn block_identity(info: &DeviceInfo) -> String {
    let or_none = |text: &str| {
        if text.is_empty() { "none".to_owned() } else { text.to_owned() }
    };
    format!("{}:{}:{}", or_none(&info.model), or_none(&info.serial), info.capacity_bytes.0)
}

/// Open the block device at `path`. When writable it is opened exclusively: the kernel then refuses
/// a device that is mounted, swapped to, or held by another device.
///
/// # Errors
/// Not a block device, in use, not permitted; [`ErrorKind::Refused`] unless `destroy` is exactly
/// the device's [`block_identity`] when `writable`.
pub fn open_block(
    path: &str,
    writable: bool,
    buffered: bool,
    data: Data,
    destroy: Option<&str>,
) -> Result<DirectDevice> {
    let mut info = inspect_block(path)?;
    let identity = block_identity(&info);
    if writable && destroy != Some(identity.as_str()) {
        return Err(Error::new(
            ErrorKind::Refused,
            "Everything on this block device would be lost",
        )
        .at(path)
        .got(destroy.map_or_else(|| "no --destroy".into(), |got| format!("--destroy '{got}'")))
        .allowed(format!("--destroy '{identity}'"))
        .action("check that this is the device you mean, then type its MODEL:SERIAL:SIZE"));
    }
    let mut flags = libc::O_CLOEXEC | libc::O_NOCTTY;
    if !buffered {
        flags |= libc::O_DIRECT;
    }
    if writable {
        flags |= libc::O_DSYNC | libc::O_EXCL;
    }
    let file = OpenOptions::new().read(true).write(writable).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => Error::new(ErrorKind::Refused, "The block device is in use")
            .at(path)
            .got(error.to_string())
            .action("unmount it, or release whatever holds it (swap, LVM, RAID, dm-crypt)"),
        _ => Error::os("The block device cannot be opened", path, &error)
            .action("check the path and your permissions"),
    })?;
    info.io = how(buffered);
    info.data = data.name();
    Ok(DirectDevice::new(info, file, data))
}

/// What is known about the block device at `path`, from sysfs, without opening it.
///
/// # Errors
/// Missing, or not a block device.
pub fn inspect_block(path: &str) -> Result<DeviceInfo> {
    let metadata = std::fs::metadata(path).map_err(|error| {
        Error::os("The block device cannot be looked at", path, &error)
            .action("`uflip devices` lists the block devices of this machine")
    })?;
    if !metadata.file_type().is_block_device() {
        return Err(Error::device("This is not a block device")
            .at(path)
            .action("`uflip devices` lists the block devices; a file is named file:PATH"));
    }
    let (node, disk) = disk_of(metadata.rdev()).map_err(|error| {
        Error::os("The kernel does not describe this block device", path, &error)
    })?;
    let sectors: u64 = attribute(&node.join("size")).parse().unwrap_or(0);
    let sector = attribute(&disk.join("queue/logical_block_size")).parse();
    let mut details = Map::new();
    for name in
        ["scheduler", "rotational", "write_cache", "physical_block_size", "discard_granularity"]
    {
        details.insert(name.into(), attribute(&disk.join("queue").join(name)).into());
    }
    details.insert("backing_file".into(), attribute(&disk.join("loop/backing_file")).into());
    details.retain(|_, value| value.as_str() != Some(""));
    let name = disk.file_name().map(|name| name.to_string_lossy().into_owned());
    let model = attribute(&disk.join("device/model"));
    Ok(DeviceInfo {
        url: path.into(),
        kind: DeviceKind::Block,
        simulated: false,
        model: if model.is_empty() { name.unwrap_or_default() } else { model },
        serial: first_attribute(&disk, &["device/serial", "serial", "device/wwid"]),
        firmware: first_attribute(&disk, &["device/firmware_rev", "device/rev"]),
        capacity_bytes: Bytes(sectors * SECTOR_BYTES_MIN),
        sector_bytes: Bytes(sector.unwrap_or(SECTOR_BYTES_MIN)),
        clock: "monotonic",
        io: how(false),
        data: Data::Random.name(),
        details,
    })
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

fn first_attribute(disk: &Path, names: &[&str]) -> String {
    names.iter().map(|name| attribute(&disk.join(name))).find(|t| !t.is_empty()).unwrap_or_default()
}

/// A sysfs attribute; empty where it does not exist.
fn attribute(path: &Path) -> String {
    let mut text = String::new();
    let opened = File::open(path).and_then(|mut file| {
        use std::io::Read;
        file.read_to_string(&mut text)
    });
    if opened.is_err() { String::new() } else { text.trim().to_owned() }
}
