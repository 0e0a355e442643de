//! The block devices of a machine, as sysfs describes them: who is a part of whom, who holds whom.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::loops::{self, Backing};
use super::mounts::{self, Mount};
use super::{Roots, attribute};

/// The number of a block device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Number {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Number {
    pub(crate) fn of(device: libc::dev_t) -> Number {
        Number { major: libc::major(device), minor: libc::minor(device) }
    }

    /// From `MAJOR:MINOR`, as the kernel prints it.
    pub(crate) fn parse(text: &str) -> Option<Number> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Number { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

/// One block device.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) number: Number,
    /// As the kernel calls it, with `!` where its path has `/`.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// The disk, for a partition.
    pub(crate) disk: Option<Number>,
    /// Names of the devices that are made of this one (LVM, RAID, dm-crypt, multipath).
    pub(crate) holders: Vec<String>,
    /// Names of the devices that this one is made of.
    pub(crate) slaves: Vec<String>,
    /// What is below a loop device.
    pub(crate) backing: Option<Backing>,
    /// The name that the device mapper gave it; empty for others.
    pub(crate) mapped_name: String,
}

impl Node {
    /// Its name, with the one that people know it by.
    pub(crate) fn title(&self) -> String {
        let name = self.name.replace('!', "/");
        if self.mapped_name.is_empty() { name } else { format!("{name} ({})", self.mapped_name) }
    }

    pub(crate) fn attribute(&self, name: &str) -> String {
        attribute(&self.folder.join(name))
    }
}

/// What a path in a table of the kernel (mounts, swap) leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Block(Number),
    /// The device of its file system, and its inode.
    File(u64, u64),
}

/// All block devices and what is known of their use.
pub(crate) struct Machine {
    pub(crate) roots: Roots,
    pub(crate) nodes: BTreeMap<Number, Node>,
    by_name: BTreeMap<String, Number>,
    /// In all mount namespaces that can be seen.
    pub(crate) mounts: Vec<Mount>,
    /// The devices of each of them: of its number, and those that its source and options name.
    pub(crate) mounted: Vec<Vec<Number>>,
    /// Where the system swaps to, with the path as the kernel tells it.
    pub(crate) swaps: Vec<(String, Option<Place>)>,
    /// Members of the mounted btrfs file systems: which file system, which device.
    pub(crate) btrfs: Vec<(String, Number)>,
    /// Members of RAID arrays, active or not: which array, which device.
    pub(crate) arrays: Vec<(String, Number)>,
    /// Names of the imported ZFS pools.
    pub(crate) pools: Vec<String>,
}

impl Machine {
    /// Look at the machine below `roots`. What cannot be read is not there.
    pub(crate) fn look(roots: &Roots) -> Machine {
        let mut machine = Machine {
            roots: roots.clone(),
            nodes: BTreeMap::new(),
            by_name: BTreeMap::new(),
            mounts: mounts::all(&roots.proc),
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
            machine.nodes.get_mut(&number).expect("just listed").backing = backing;
        }
        machine.mounted = machine.mounts.iter().map(|mount| machine.devices_of(mount)).collect();
        machine.swaps = machine.read_swaps();
        machine.btrfs = machine.read_btrfs();
        machine.arrays = machine.read_arrays();
        machine
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(self.by_name.get(name)?)
    }

    /// The disk that a device is a part of; the device itself where it is a whole one.
    pub(crate) fn disk_of<'a>(&'a self, node: &'a Node) -> &'a Node {
        node.disk.and_then(|disk| self.nodes.get(&disk)).unwrap_or(node)
    }

    pub(crate) fn partitions(&self, disk: Number) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(move |node| node.disk == Some(disk))
    }

    fn read_nodes(&mut self) {
        let list = self.roots.sys.join("dev/block");
        for number in names_in(&list) {
            let Some(number) = Number::parse(&number) else { continue };
            let link = list.join(format!("{}:{}", number.major, number.minor));
            let Ok(folder) = link.canonicalize() else { continue };
            let name = file_name(&folder);
            let disk = folder.join("partition").exists().then(|| folder.parent()).flatten();
            let disk = disk.and_then(|disk| Number::parse(&attribute(&disk.join("dev"))));
            let node = Node {
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

    /// What a path in a table of the kernel leads to. Names below /dev are looked up among the
    /// devices that the kernel knows; only then is the path followed.
    pub(crate) fn place(&self, path: &str) -> Option<Place> {
        let path = path.trim_end_matches("\\040(deleted)").trim_end_matches(" (deleted)");
        if let Some(name) = path.strip_prefix("/dev/") {
            let link = self.roots.dev.join(name).canonicalize();
            let real = link.ok().map(|real| file_name(&real)).unwrap_or_default();
            let mapped = name.strip_prefix("mapper/").unwrap_or("");
            let known = |node: &&Node| !mapped.is_empty() && node.mapped_name == mapped;
            let node = self.node(&name.replace('/', "!"));
            let node = node.or_else(|| self.nodes.values().find(known));
            if let Some(node) = node.or_else(|| self.node(&real)) {
                return Some(Place::Block(node.number));
            }
        }
        place_of(Path::new(path))
    }

    fn devices_of(&self, mount: &Mount) -> Vec<Number> {
        // Several devices are separated by colons (bcachefs).
        let names = mount.source.split(':').chain(mount.named.iter().map(String::as_str));
        let named = names.filter(|name| name.starts_with("/dev/"));
        let places = named.filter_map(|name| match self.place(name) {
            Some(Place::Block(number)) => Some(number),
            _ => None,
        });
        std::iter::once(mount.number).chain(places).collect()
    }

    fn read_swaps(&self) -> Vec<(String, Option<Place>)> {
        let table = attribute(&self.roots.proc.join("swaps"));
        let paths = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        paths.map(mounts::unescape).map(|path| (path.clone(), self.place(&path))).collect()
    }

    fn read_btrfs(&self) -> Vec<(String, Number)> {
        let root = self.roots.sys.join("fs/btrfs");
        let mut members = vec![];
        for system in names_in(&root) {
            for device in names_in(&root.join(&system).join("devices")) {
                members.extend(self.node(&device).map(|node| (system.clone(), node.number)));
            }
        }
        members
    }

    /// From lines such as `md0 : active raid1 sdb1[1] sda1[0](F)`.
    fn read_arrays(&self) -> Vec<(String, Number)> {
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

/// What is at `path` now.
pub(crate) fn place_of(path: &Path) -> Option<Place> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let metadata = std::fs::metadata(path).ok()?;
    if metadata.file_type().is_block_device() {
        return Some(Place::Block(Number::of(metadata.rdev())));
    }
    metadata.is_file().then(|| Place::File(metadata.dev(), metadata.ino()))
}

/// The names in a folder, in order; none where there is no folder.
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
