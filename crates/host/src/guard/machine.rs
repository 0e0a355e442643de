//! The block devices of a machine and their relations, from sysfs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::loops::{self, Backing};
use super::mounts::{self, Mount};
use super::{Roots, attribute};

/// The number of a block device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DeviceNumber {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl DeviceNumber {
    pub(crate) fn from_dev(device: libc::dev_t) -> DeviceNumber {
        DeviceNumber { major: libc::major(device), minor: libc::minor(device) }
    }

    /// Parse `MAJOR:MINOR`, as the kernel prints it.
    pub(crate) fn parse(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

/// One block device.
#[derive(Debug)]
pub(crate) struct BlockNode {
    pub(crate) number: DeviceNumber,
    /// The kernel's name, with `!` where its path has `/`.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// The disk, for a partition.
    pub(crate) disk: Option<DeviceNumber>,
    /// The devices built on this one (LVM, RAID, dm-crypt, multipath).
    pub(crate) holders: Vec<String>,
    /// The devices that this one is built on.
    pub(crate) slaves: Vec<String>,
    /// The backing of a loop device.
    pub(crate) backing: Option<Backing>,
    /// The name in the device mapper; empty for others.
    pub(crate) mapped_name: String,
}

impl BlockNode {
    /// Return the kernel's name, followed by the device mapper's name in parentheses.
    pub(crate) fn title(&self) -> String {
        let name = self.name.replace('!', "/");
        if self.mapped_name.is_empty() { name } else { format!("{name} ({})", self.mapped_name) }
    }

    pub(crate) fn attribute(&self, name: &str) -> String {
        attribute(&self.folder.join(name))
    }
}

/// A block device or file that a kernel table (mounts, swap) refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockOrFile {
    Block(DeviceNumber),
    /// The device of its file system, and its inode.
    File(u64, u64),
}

/// All block devices and their uses.
pub(crate) struct Machine {
    pub(crate) roots: Roots,
    pub(crate) nodes: BTreeMap<DeviceNumber, BlockNode>,
    by_name: BTreeMap<String, DeviceNumber>,
    /// The mounts of all visible mount namespaces.
    pub(crate) mounts: Vec<Mount>,
    /// The devices of each mount: by its number, its source and its options.
    pub(crate) mounted: Vec<Vec<DeviceNumber>>,
    /// The swap areas, with the path in the kernel's table.
    pub(crate) swaps: Vec<(String, Option<BlockOrFile>)>,
    /// Members of mounted btrfs file systems: file system and device.
    pub(crate) btrfs: Vec<(String, DeviceNumber)>,
    /// Members of RAID arrays, active or not: array and device.
    pub(crate) arrays: Vec<(String, DeviceNumber)>,
    /// The imported ZFS pools.
    pub(crate) pools: Vec<String>,
}

impl Machine {
    /// Examine the machine below `roots`. Unreadable files count as missing.
    pub(crate) fn examine(roots: &Roots) -> Machine {
        let mut machine = Machine {
            roots: roots.clone(),
            nodes: BTreeMap::new(),
            by_name: BTreeMap::new(),
            mounts: mounts::all_mounts(&roots.proc),
            mounted: vec![],
            swaps: vec![],
            btrfs: vec![],
            arrays: vec![],
            pools: names_in(&roots.proc.join("spl/kstat/zfs")),
        };
        machine.pools.retain(|name| roots.proc.join("spl/kstat/zfs").join(name).is_dir());
        machine.read_nodes();
        for number in machine.nodes.keys().copied().collect::<Vec<_>>() {
            let backing = loops::backing(&machine, number);
            machine.nodes.get_mut(&number).expect("the number is a key").backing = backing;
        }
        machine.mounted = machine.mounts.iter().map(|mount| machine.devices_of(mount)).collect();
        machine.swaps = machine.read_swaps();
        machine.btrfs = machine.read_btrfs();
        machine.arrays = machine.read_arrays();
        machine
    }

    pub(crate) fn node(&self, name: &str) -> Option<&BlockNode> {
        self.nodes.get(self.by_name.get(name)?)
    }

    /// Return the disk of a partition; any other device itself.
    pub(crate) fn disk_of<'a>(&'a self, node: &'a BlockNode) -> &'a BlockNode {
        node.disk.and_then(|disk| self.nodes.get(&disk)).unwrap_or(node)
    }

    pub(crate) fn partitions(&self, disk: DeviceNumber) -> impl Iterator<Item = &BlockNode> {
        self.nodes.values().filter(move |node| node.disk == Some(disk))
    }

    fn read_nodes(&mut self) {
        let list = self.roots.sys.join("dev/block");
        for number in names_in(&list) {
            let Some(number) = DeviceNumber::parse(&number) else { continue };
            let link = list.join(format!("{}:{}", number.major, number.minor));
            let Ok(folder) = link.canonicalize() else { continue };
            let name = file_name(&folder);
            let disk = folder.join("partition").exists().then(|| folder.parent()).flatten();
            let disk = disk.and_then(|disk| DeviceNumber::parse(&attribute(&disk.join("dev"))));
            let node = BlockNode {
                number,
                name: name.clone(),
                disk,
                holders: names_in(&folder.join("holders")),
                slaves: names_in(&folder.join("slaves")),
                backing: None,
                mapped_name: attribute(&folder.join("dm/name")),
                folder,
            };
            self.by_name.insert(name, number);
            self.nodes.insert(number, node);
        }
    }

    /// Resolve a path in a kernel table. Names below /dev are looked up among the known devices
    /// first; otherwise the path is followed.
    pub(crate) fn resolve(&self, path: &str) -> Option<BlockOrFile> {
        let path = path.trim_end_matches("\\040(deleted)").trim_end_matches(" (deleted)");
        if let Some(name) = path.strip_prefix("/dev/") {
            let link = self.roots.dev.join(name).canonicalize();
            let real = link.ok().map(|real| file_name(&real)).unwrap_or_default();
            let mapped = name.strip_prefix("mapper/").unwrap_or("");
            let is_mapped = |node: &&BlockNode| !mapped.is_empty() && node.mapped_name == mapped;
            let node = self.node(&name.replace('/', "!"));
            let node = node.or_else(|| self.nodes.values().find(is_mapped));
            if let Some(node) = node.or_else(|| self.node(&real)) {
                return Some(BlockOrFile::Block(node.number));
            }
        }
        block_or_file_at(Path::new(path))
    }

    fn devices_of(&self, mount: &Mount) -> Vec<DeviceNumber> {
        // Several devices are separated by colons (bcachefs).
        let names = mount.source.split(':').chain(mount.option_devices.iter().map(String::as_str));
        let devices = names.filter(|name| name.starts_with("/dev/"));
        let numbers = devices.filter_map(|name| match self.resolve(name) {
            Some(BlockOrFile::Block(number)) => Some(number),
            _ => None,
        });
        std::iter::once(mount.number).chain(numbers).collect()
    }

    fn read_swaps(&self) -> Vec<(String, Option<BlockOrFile>)> {
        let table = attribute(&self.roots.proc.join("swaps"));
        let paths = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        paths.map(mounts::unescape).map(|path| (path.clone(), self.resolve(&path))).collect()
    }

    fn read_btrfs(&self) -> Vec<(String, DeviceNumber)> {
        let root = self.roots.sys.join("fs/btrfs");
        let mut members = vec![];
        for system in names_in(&root) {
            for device in names_in(&root.join(&system).join("devices")) {
                members.extend(self.node(&device).map(|node| (system.clone(), node.number)));
            }
        }
        members
    }

    /// Parse lines such as `md0 : active raid1 sdb1[1] sda1[0](F)`.
    fn read_arrays(&self) -> Vec<(String, DeviceNumber)> {
        let mut members = vec![];
        for line in attribute(&self.roots.proc.join("mdstat")).lines() {
            let Some((array, rest)) = line.split_once(" : ") else { continue };
            for word in rest.split_whitespace() {
                let Some((device, _)) = word.split_once('[') else { continue };
                members.extend(self.node(device).map(|node| (array.to_owned(), node.number)));
            }
        }
        members
    }
}

/// Return the block device or file at `path` now.
pub(crate) fn block_or_file_at(path: &Path) -> Option<BlockOrFile> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let metadata = std::fs::metadata(path).ok()?;
    if metadata.file_type().is_block_device() {
        return Some(BlockOrFile::Block(DeviceNumber::from_dev(metadata.rdev())));
    }
    metadata.is_file().then(|| BlockOrFile::File(metadata.dev(), metadata.ino()))
}

/// Return the names in a folder, in order; empty if the folder is missing.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
