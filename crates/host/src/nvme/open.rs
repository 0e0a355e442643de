//! Opening a namespace: the guard examines and claims its block device, and the commands go through
//! the generic character device of the same namespace.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uflip_core::{Bytes, DeviceInfo, DeviceKind, Error, Result};

use super::command::PAGE_BYTES;
use super::namespace::Namespace;
use super::queue::{NvmeDevice, NvmeQueue};
use super::status::os_action;
use super::transport::KernelTransport;
use crate::block::{BlockOptions, inspect_block, open_block};
use crate::guard::Roots;
use crate::guard::machine::{BlockNode, DeviceNumber, Machine};
use crate::guard::target::TargetHandle;
use crate::queued_device::QueuedDevice;

/// The form of the name of a device, before its path.
const SCHEME: &str = "nvme:";

/// Open the namespace whose block device is at `path`. The block device is examined, claimed and
/// locked as by [`open_block`]; all I/Os go past it.
///
/// # Errors
/// As [`open_block`]; if the namespace has no generic device, or passthrough is not permitted.
pub fn open_nvme(path: &str, options: BlockOptions) -> Result<NvmeDevice> {
    let url = format!("{SCHEME}{path}");
    let machine = Machine::examine(&Roots::default());
    let generic = GenericNode::of_block(&machine, path)?;
    let mut direct = open_block(path, options)?;
    let namespace = generic.open(&url, options.writable)?;
    describe(&mut direct.info, &url, &namespace.1);
    let (transport, namespace) = (Arc::new(namespace.0), Arc::new(namespace.1));
    let queue = NvmeQueue::open(transport, namespace, &mut direct, 1)?;
    QueuedDevice::with_queue(queue, direct, 1, PAGE_BYTES as usize)
}

/// Return the properties of the namespace whose block device is at `path`.
///
/// # Errors
/// As [`inspect_block`]; if the namespace has no generic device, or passthrough is not permitted.
pub fn inspect_nvme(path: &str) -> Result<DeviceInfo> {
    let url = format!("{SCHEME}{path}");
    let machine = Machine::examine(&Roots::default());
    let mut info = inspect_block(path)?;
    let (_, namespace) = GenericNode::of_block(&machine, path)?.open(&url, false)?;
    describe(&mut info, &url, &namespace);
    Ok(info)
}

/// Store the properties that commands have, and the block layer has not.
fn describe(info: &mut DeviceInfo, url: &str, namespace: &Namespace) {
    info.url = url.into();
    info.kind = DeviceKind::Nvme;
    info.io = "io_uring passthrough".into();
    info.capacity_bytes = Bytes(namespace.blocks * namespace.block_bytes);
    info.sector_bytes = Bytes(namespace.block_bytes);
    // The scheduler of the block layer has no part in it.
    info.details.remove("scheduler");
    info.details.insert("deallocates".into(), namespace.deallocates.into());
    info.details.insert("namespace".into(), namespace.details().into());
    if let Some(zones) = namespace.zones {
        let zone_bytes = zones.zone_blocks * namespace.block_bytes;
        let limits = serde_json::json!({
            "zone_bytes": zone_bytes,
            "zone_count": namespace.blocks / zones.zone_blocks.max(1),
            "max_open_zones": zones.max_open,
            "max_active_zones": zones.max_active,
        });
        info.details.insert("zones".into(), limits);
    }
}

/// The generic character device of a namespace.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct GenericNode {
    path: PathBuf,
    number: DeviceNumber,
    /// The largest command that the kernel accepts [bytes].
    command_bytes_max: u64,
}

impl GenericNode {
    /// Find the generic device of the block device at `path`.
    fn of_block(machine: &Machine, path: &str) -> Result<GenericNode> {
        let target = TargetHandle::find(Path::new(path)).ok().flatten();
        let target = target.filter(TargetHandle::is_block).ok_or_else(|| {
            Error::device("This NVMe namespace has no block device")
                .at(format!("{SCHEME}{path}"))
                .got("no block device at this path")
                .allowed("a namespace with a block device: the guard examines who uses it")
                .action("`uflip devices` lists the block devices; nvme:/dev/nvme0n1 names one")
        })?;
        let number = DeviceNumber::from_dev(target.metadata.rdev());
        let node = machine.nodes.get(&number);
        node.map_or_else(|| Err(not_nvme(path)), |node| GenericNode::of_node(machine, node, path))
    }

    /// Find the generic device of `node`: the kernel lists both in one folder.
    pub(crate) fn of_node(machine: &Machine, node: &BlockNode, path: &str) -> Result<GenericNode> {
        if let Some(disk) = node.disk.and_then(|disk| machine.nodes.get(&disk)) {
            return Err(Error::usage("A partition takes no NVMe commands")
                .at(format!("{SCHEME}{path}"))
                .got(format!("a partition of {}", disk.name))
                .allowed("a whole namespace")
                .action(format!(
                    "name {SCHEME}/dev/{}, or measure the partition {path}",
                    disk.name
                )));
        }
        let Some(digits) = node.name.strip_prefix("nvme") else { return Err(not_nvme(path)) };
        let name = format!("ng{digits}");
        let folder = node.folder.with_file_name(&name);
        let Some(number) = DeviceNumber::parse(&crate::guard::attribute(&folder.join("dev")))
        else {
            return Err(Error::device("The namespace has no generic device")
                .at(format!("{SCHEME}{path}"))
                .got(format!("no {name} beside {} in sysfs", node.name))
                .allowed("Linux 5.19 or later with /dev/ng devices")
                .action("measure the block device"));
        };
        let limit = |name: &str, unit: u64| {
            let value = node.attribute(&format!("queue/{name}")).parse().unwrap_or(0);
            // One page always fits.
            if value == 0 { PAGE_BYTES } else { value * unit }
        };
        let command_bytes_max =
            limit("max_hw_sectors_kb", 1 << 10).min(limit("max_segments", PAGE_BYTES));
        Ok(GenericNode { path: machine.roots.dev.join(name), number, command_bytes_max })
    }

    /// Open the device, and read the properties of its namespace.
    fn open(&self, url: &str, writable: bool) -> Result<(KernelTransport, Namespace)> {
        let not_opened = |error: &std::io::Error| {
            let action = match error.raw_os_error() {
                Some(libc::ENOENT) => "is udev running? The node has the number in sysfs",
                _ => os_action(error),
            };
            let path = self.path.display();
            Error::os(format!("The generic device {path} cannot be opened"), url, error)
                .action(action)
        };
        let file = File::options().read(true).write(writable).open(&self.path);
        let file = file.map_err(|error| not_opened(&error))?;
        let metadata = file.metadata().map_err(|error| not_opened(&error))?;
        if !metadata.file_type().is_char_device()
            || DeviceNumber::from_dev(metadata.rdev()) != self.number
        {
            let DeviceNumber { major, minor } = self.number;
            return Err(Error::new(uflip_core::ErrorKind::Refused, "This is another device")
                .at(url)
                .got(format!("{} is not {major}:{minor}", self.path.display()))
                .allowed("the generic device of the examined block device")
                .action("recreate the node (udevadm trigger)"));
        }
        let transport = KernelTransport::new(file);
        let id = transport.namespace_id().map_err(|error| {
            Error::os("The namespace has no number", url, &error).action(os_action(&error))
        })?;
        let namespace = Namespace::read(&transport, id, self.command_bytes_max, url)?;
        Ok((transport, namespace))
    }
}

fn not_nvme(path: &str) -> Error {
    Error::usage("This is not an NVMe namespace")
        .at(format!("{SCHEME}{path}"))
        .got("a block device of another kind")
        .allowed("nvme:/dev/ng0n1, nvme:/dev/nvme0n1")
        .action(format!("measure it as {path}"))
}
