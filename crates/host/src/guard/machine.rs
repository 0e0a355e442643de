//! The block devices of a machine, what is mounted from them, and the files behind loop devices.
//!
//! Devices and their relations are read from sysfs, mounts from every mount namespace of a visible
//! process. The backing of a loop device is a path in sysfs, as it was at the time of attachment,
//! relative to the root of the attaching process. The device itself gives the inode, which is reliable.
//! Both are read, and either counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::guard::{Roots, attribute};

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
            mounts: all_mounts(&roots.proc),
            mounted: vec![],
            swaps: vec![],
            btrfs: vec![],
            arrays: vec![],
            pools: names_in(&roots.proc.join("spl/kstat/zfs")),
        };
        machine.pools.retain(|name| roots.proc.join("spl/kstat/zfs").join(name).is_dir());
        machine.read_nodes();
        for number in machine.nodes.keys().copied().collect::<Vec<_>>() {
            let backing = backing(&machine, number);
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
        paths.map(unescape).map(|path| (path.clone(), self.resolve(&path))).collect()
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

/// One line of a `mountinfo`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    /// The number of the device below; a pseudo number for zero or several devices.
    pub(crate) number: DeviceNumber,
    pub(crate) point: String,
    /// The kind of file system, `fuse.NAME` cut to `fuse`.
    pub(crate) kind: String,
    pub(crate) source: String,
    /// Device paths in the options of the file system (a journal, a log).
    pub(crate) option_devices: Vec<String>,
    /// A process in the namespace, if it is not our own.
    pub(crate) process: Option<u32>,
}

/// Return the mounts of all visible namespaces, our own first.
fn all_mounts(proc: &Path) -> Vec<Mount> {
    let mut namespaces = BTreeSet::new();
    let mut mounts = vec![];
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let mut processes: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    processes.sort_unstable();
    let others = processes.into_iter().map(|process| (process.to_string(), Some(process)));
    for (name, process) in std::iter::once(("self".to_owned(), None)).chain(others) {
        let folder = proc.join(name);
        // The namespace is a link to something like mnt:[4026531841].
        if let Ok(namespace) = std::fs::read_link(folder.join("ns/mnt"))
            && !namespaces.insert(namespace)
        {
            continue;
        }
        let table = std::fs::read(folder.join("mountinfo")).unwrap_or_default();
        mounts.extend(parse(&String::from_utf8_lossy(&table), process));
    }
    mounts
}

/// Return the mount with an identifier from `fdinfo`.
pub(crate) fn by_id(mounts: &[Mount], id: u64) -> Option<&Mount> {
    mounts.iter().find(|mount| mount.id == id)
}

fn parse(table: &str, process: Option<u32>) -> Vec<Mount> {
    table.lines().filter_map(|line| parse_line(line, process)).collect()
}

/// Parse a line such as `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root
/// rw,errors=continue`, with any number of optional fields before the dash (proc(5)).
fn parse_line(line: &str, process: Option<u32>) -> Option<Mount> {
    let (fields, system) = line.split_once(" - ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let mut system = system.split(' ');
    let kind = system.next()?;
    let source = unescape(system.next()?);
    let options = system.next().unwrap_or("").split(',');
    let values = options.filter_map(|option| option.split_once('=')).map(|(_, value)| value);
    Some(Mount {
        id: fields.first()?.parse().ok()?,
        number: DeviceNumber::parse(fields.get(2)?)?,
        point: unescape(fields.get(4)?),
        kind: kind.split_once('.').map_or(kind, |(family, _)| family).to_owned(),
        source,
        option_devices: values.filter(|value| value.starts_with("/dev/")).map(unescape).collect(),
        process,
    })
}

/// Decode the octal escapes of blank, tab, line feed and backslash.
fn unescape(text: &str) -> String {
    let mut decoded = vec![];
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let code = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) if *byte == b'\\' => {
                decoded.push(code);
                rest = &tail[3..];
            }
            _ => {
                decoded.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

const LOOP_GET_STATUS64: u32 = 0x4C05;

/// The backing of a loop device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Backing {
    /// The path in sysfs.
    pub(crate) path: String,
    /// The target of that path now, and the one that the device reports; one entry if they are
    /// the same.
    pub(crate) targets: Vec<BlockOrFile>,
    /// The range of bytes; `to` is `u64::MAX` for a range up to the end.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Backing {
    /// Return whether two loop devices share a byte.
    pub(crate) fn overlaps(&self, other: &Backing) -> bool {
        let shared = self.targets.iter().any(|target| other.targets.contains(target));
        shared && self.from < other.to && other.from < self.to
    }
}

/// The beginning of `struct loop_info64` of `linux/loop.h`, as far as it is used here.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    real_device: u64,
    offset: u64,
    size_limit: u64,
    rest: [u8; 192],
}

const _: () = assert!(size_of::<LoopInfo>() == 232, "the size of the kernel's structure");

/// Return the backing of the loop device of a number; `None` for any other device, and for a
/// detached loop device.
pub(crate) fn backing(machine: &Machine, number: DeviceNumber) -> Option<Backing> {
    let node = &machine.nodes[&number];
    let folder = node.folder.join("loop");
    if !folder.is_dir() {
        return None;
    }
    let path = attribute(&folder.join("backing_file"));
    let from = attribute(&folder.join("offset")).parse().unwrap_or(0);
    let limit = attribute(&folder.join("sizelimit")).parse().unwrap_or(0);
    let mut targets: Vec<BlockOrFile> = machine.resolve(&path).into_iter().collect();
    targets.extend(
        query_device(machine, &node.name, number).filter(|target| !targets.contains(target)),
    );
    let to = if limit == 0 { u64::MAX } else { from + limit };
    Some(Backing { path, targets, from, to })
}

/// Return the backing that the device reports; `None` without permission to open it.
fn query_device(machine: &Machine, name: &str, number: DeviceNumber) -> Option<BlockOrFile> {
    let path = machine.roots.dev.join(name);
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.file_type().is_block_device() || DeviceNumber::from_dev(metadata.rdev()) != number
    {
        return None;
    }
    // SAFETY: plain data, for which all zeros is a valid value.
    let mut info: LoopInfo = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor and a structure of the size that the kernel copies.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) };
    if status != 0 {
        return None;
    }
    // `real_device` is the backing block device if there is one, else the device of the file
    // system.
    let real = decode_device(info.real_device);
    if info.real_device != info.device && machine.nodes.contains_key(&real) {
        return Some(BlockOrFile::Block(real));
    }
    let DeviceNumber { major, minor } = decode_device(info.device);
    Some(BlockOrFile::File(libc::makedev(major, minor), info.inode))
}

/// Decode a number from the kernel's `huge_encode_dev`.
fn decode_device(device: u64) -> DeviceNumber {
    DeviceNumber {
        major: (device >> 8 & 0xfff) as u32,
        minor: (device & 0xff | device >> 12 & 0xfff00) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first line is the example of proc(5).
    #[test]
    fn mount_lines_with_optional_fields_are_parsed() {
        let table = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
            29 1 8:2 / / rw shared:1 master:2 propagate_from:3 - xfs /dev/sda2 rw,logdev=/dev/sdb1\n\
            40 29 0:44 / /mnt/my\\040disk rw - fuse.sshfs a@b:/c rw\n\
            41 29 0:45 / /x rw - ext4\n\
            nonsense\n";
        let mounts = parse(table, None);
        assert_eq!(mounts.len(), 3);
        assert_eq!(
            (mounts[0].number, mounts[0].point.as_str()),
            (DeviceNumber { major: 98, minor: 0 }, "/mnt2")
        );
        assert_eq!(mounts[1].option_devices, ["/dev/sdb1"]);
        assert_eq!((mounts[2].point.as_str(), mounts[2].kind.as_str()), ("/mnt/my disk", "fuse"));
        assert_eq!(by_id(&mounts, 29), Some(&mounts[1]));
    }

    #[test]
    fn mounts_include_the_root() {
        assert!(all_mounts(Path::new("/proc")).iter().any(|mount| mount.point == "/"));
    }

    #[test]
    fn device_numbers_decode_like_the_kernel_s() {
        for (major, minor) in [(7u64, 0u64), (254, 0), (8, 17), (259, 300), (4095, 0xf_ffff)] {
            let encoded = minor & 0xff | major << 8 | (minor & !0xff) << 12;
            let expected = DeviceNumber { major: major as u32, minor: minor as u32 };
            assert_eq!(decode_device(encoded), expected);
        }
    }

    #[test]
    fn loops_over_disjoint_parts_of_a_file_do_not_overlap() {
        let backing = |from, to| Backing {
            path: "f".into(),
            targets: vec![BlockOrFile::File(1, 2)],
            from,
            to,
        };
        assert!(backing(0, u64::MAX).overlaps(&backing(512, 1024)));
        assert!(!backing(0, 512).overlaps(&backing(512, 1024)));
        assert!(
            !backing(0, 512)
                .overlaps(&Backing { targets: vec![BlockOrFile::File(1, 3)], ..backing(0, 512) })
        );
    }
}
