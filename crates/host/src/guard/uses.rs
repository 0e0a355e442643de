//! The users of a block device or file, which would be damaged if it were overwritten.
//!
//! ```text
//!         mounted   swap            devices built on this device's bytes: any use of them counts
//!            │       │
//!          dm-0 ── holders
//!            │
//!  sda ──── sda1    a partition shares its disk's bytes: uses of the whole disk also count
//!   │
//!  loop0 ── its file or device: other users of those bytes count
//! ```
//!
//! Two partitions of one disk, and two volumes on one physical volume, share no bytes: a use of one is
//! not a use of the other. Processes that have a device or file open for writing (a virtual machine,
//! `dd`, a database) need not hold a claim or lock, but their open descriptors are visible.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cached_stat::CachedStat;
use crate::guard::attribute;
use crate::guard::machine::{BlockNode, BlockOrFile, DeviceNumber, Machine};

/// Phrases that complete "it is …": `mounted on /`, `held by dm-0 (vg-root), which is mounted on
/// /`.
pub(crate) type Uses = Vec<String>;

/// The number of mount points shown for one device.
const MOUNTS_SHOWN: usize = 3;

impl Machine {
    /// Return the users of the block device of a number.
    pub(crate) fn uses_of_block(&self, number: DeviceNumber) -> Uses {
        let mut visited = BTreeSet::new();
        let mut uses = self.uses_above(number, &mut visited);
        uses.extend(self.uses_below(number, &mut visited));
        uses
    }

    /// Return the users of the file of an inode.
    pub(crate) fn uses_of_file(&self, device: u64, inode: u64) -> Uses {
        self.uses_of_bytes(BlockOrFile::File(device, inode), None)
    }

    /// Return the uses by devices built on this one.
    fn uses_above(&self, number: DeviceNumber, visited: &mut BTreeSet<DeviceNumber>) -> Uses {
        if !visited.insert(number) {
            return vec![];
        }
        let mut uses = self.direct_uses(number);
        let Some(node) = self.nodes.get(&number) else { return uses };
        uses.extend(self.holder_uses(node, visited));
        for upper in self.loops_over(BlockOrFile::Block(number)) {
            let use_text = format!("the backing device of {}", upper.title());
            uses.extend(chain(&use_text, self.uses_above(upper.number, visited)));
        }
        for partition in self.partitions(number) {
            let above = self.uses_above(partition.number, visited);
            uses.extend(above.into_iter().map(|user| describe("its partition", partition, &user)));
        }
        uses
    }

    /// Return the uses, by others, of the devices that this one is a part of or built on.
    fn uses_below(&self, number: DeviceNumber, visited: &mut BTreeSet<DeviceNumber>) -> Uses {
        let Some(node) = self.nodes.get(&number) else { return vec![] };
        let mut uses = vec![];
        if let Some(disk) = node.disk.and_then(|disk| self.nodes.get(&disk))
            && visited.insert(disk.number)
        {
            let mut disk_uses = self.direct_uses(disk.number);
            disk_uses.extend(self.holder_uses(disk, visited));
            for upper in self.loops_over(BlockOrFile::Block(disk.number)) {
                let use_text = format!("the backing device of {}", upper.title());
                disk_uses.extend(chain(&use_text, self.uses_above(upper.number, visited)));
            }
            uses.extend(disk_uses.iter().map(|user| describe("its disk", disk, user)));
            uses.extend(self.uses_below(disk.number, visited));
        }
        for slave in node.slaves.iter().filter_map(|name| self.node(name)) {
            if visited.insert(slave.number) {
                let direct = self.data_uses(slave.number);
                uses.extend(direct.iter().map(|user| describe("below it", slave, user)));
                uses.extend(self.uses_below(slave.number, visited));
            }
        }
        for target in node.backing.iter().flat_map(|backing| &backing.targets) {
            let backing_uses = self.uses_of_bytes(*target, Some(node));
            uses.extend(
                backing_uses.iter().map(|user| format!("its backing file or device is {user}")),
            );
            if let BlockOrFile::Block(lower) = target
                && visited.insert(*lower)
            {
                uses.extend(
                    self.direct_uses(*lower)
                        .iter()
                        .map(|user| format!("its backing file or device is {user}")),
                );
                if let Some(lower) = self.nodes.get(lower) {
                    uses.extend(self.holder_uses(lower, visited));
                }
                uses.extend(self.uses_below(*lower, visited));
            }
        }
        uses
    }

    /// Return the direct uses.
    fn direct_uses(&self, number: DeviceNumber) -> Uses {
        let mut uses = self.data_uses(number);
        let arrays = self.arrays.iter().filter(|(_, member)| *member == number);
        let is_holder = |array: &str| {
            self.nodes
                .get(&number)
                .is_some_and(|node| node.holders.iter().any(|holder| holder == array))
        };
        let arrays = arrays.filter(|(array, _)| !is_holder(array));
        uses.extend(arrays.map(|(array, _)| format!("a member of the array {array}")));
        uses
    }

    /// Return the uses that store data on the device itself: file systems and swap.
    fn data_uses(&self, number: DeviceNumber) -> Uses {
        let mut points_listed = BTreeSet::new();
        let mut points: Uses = vec![];
        for (mount, devices) in self.mounts.iter().zip(&self.mounted) {
            if devices.contains(&number) && points_listed.insert(&mount.point) {
                let in_process =
                    |process| format!("{} (as process {process} sees it)", mount.point);
                points.push(mount.process.map_or(mount.point.clone(), in_process));
            }
        }
        let this = Some(BlockOrFile::Block(number));
        let mut uses = vec![];
        if !points.is_empty() {
            let more = points.len().saturating_sub(MOUNTS_SHOWN);
            points.truncate(MOUNTS_SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            uses.push(format!("mounted on {}{more}", points.join(", ")));
        }
        let swaps = self.swaps.iter().filter(|(_, swap)| *swap == this);
        uses.extend(swaps.map(|_| "swapped to".to_owned()));
        // A file system on several devices is mounted by one name; here its other members are
        // found.
        let members = self.btrfs.iter().filter(|(_, member)| *member == number);
        let member = |(system, _): &(String, DeviceNumber)| {
            format!("a device of the mounted btrfs {system}")
        };
        if uses.is_empty() {
            uses.extend(members.map(member));
        }
        uses
    }

    fn holder_uses(&self, node: &BlockNode, visited: &mut BTreeSet<DeviceNumber>) -> Uses {
        let mut uses = vec![];
        for name in &node.holders {
            match self.node(name) {
                Some(holder) => {
                    let above = self.uses_above(holder.number, visited);
                    uses.extend(chain(&format!("held by {}", holder.title()), above));
                }
                None => uses.push(format!("held by {name}")),
            }
        }
        uses
    }

    /// Return the uses of the backing of loop devices, without those by the loop device `except`.
    fn uses_of_bytes(&self, target: BlockOrFile, except: Option<&BlockNode>) -> Uses {
        let mut uses = vec![];
        let own_backing = except.and_then(|node| node.backing.as_ref());
        for upper in self.loops_over(target) {
            let backing = upper.backing.as_ref().expect("the loop device has a backing file");
            if except.is_some_and(|node| node.number == upper.number)
                || own_backing.is_some_and(|own_backing| !own_backing.overlaps(backing))
            {
                continue;
            }
            let above = self.uses_above(upper.number, &mut BTreeSet::new());
            uses.extend(chain(&format!("shown by {}", upper.title()), above));
        }
        if matches!(target, BlockOrFile::File(..)) {
            let swaps = self.swaps.iter().filter(|(_, swap)| *swap == Some(target));
            uses.extend(swaps.map(|_| "swapped to".to_owned()));
            let mounted = self.mounts.iter().filter(|mount| {
                mount.source.starts_with('/')
                    && !mount.source.starts_with("/dev/")
                    && self.resolve(&mount.source) == Some(target)
            });
            uses.extend(mounted.map(|mount| format!("mounted on {}", mount.point)));
        }
        uses
    }

    fn loops_over(&self, target: BlockOrFile) -> impl Iterator<Item = &BlockNode> {
        self.nodes.values().filter(move |node| {
            node.backing.as_ref().is_some_and(|backing| backing.targets.contains(&target))
        })
    }
}

fn describe(relation: &str, node: &BlockNode, user: &str) -> String {
    format!("{relation} {} is {user}", node.title())
}

/// Return the use `use_text`, extended by each of its own uses.
fn chain(use_text: &str, above: Uses) -> Uses {
    if above.is_empty() {
        return vec![use_text.to_owned()];
    }
    above.into_iter().map(|user| format!("{use_text}, which is {user}")).collect()
}

/// Return other processes that have the block device of a number, its disk or one of its partitions
/// open for writing.
pub(crate) fn find_block_writers(machine: &Machine, number: DeviceNumber) -> Vec<String> {
    let mut numbers: Vec<DeviceNumber> =
        machine.partitions(number).map(|node| node.number).collect();
    numbers.push(number);
    numbers.extend(machine.nodes.get(&number).and_then(|node| node.disk));
    let matches = |stat: CachedStat| {
        stat.is_block_device() && numbers.contains(&DeviceNumber::from_dev(stat.node))
    };
    writers(&machine.roots.proc, &matches)
}

/// Return other processes that have the file of an inode open for writing.
pub(crate) fn find_file_writers(machine: &Machine, device: u64, inode: u64) -> Vec<String> {
    let matches = |stat: CachedStat| (stat.device, stat.inode) == (device, inode);
    writers(&machine.roots.proc, &matches)
}

fn writers(proc: &Path, matches: &dyn Fn(CachedStat) -> bool) -> Vec<String> {
    let own_id = std::process::id();
    let mut writers = vec![];
    let processes = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for process in numbers.filter(|process| *process != own_id) {
        let folder = proc.join(process.to_string());
        let descriptors = std::fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        let is_writer = descriptors.into_iter().any(|entry| {
            // Pipes and sockets have no path; their attributes are not read.
            let path = std::fs::read_link(entry.path());
            path.is_ok_and(|path| path.is_absolute())
                && CachedStat::at(&entry.path()).is_some_and(matches)
                && is_open_for_writing(&folder.join("fdinfo").join(entry.file_name()))
        });
        if is_writer {
            let name = attribute(&folder.join("comm"));
            writers.push(format!("open for writing in process {process} ({name})"));
        }
    }
    writers
}

/// Return whether the line `flags:`, in octal digits, means open for writing: the access mode is in
/// the last two bits.
fn is_open_for_writing(fdinfo: &Path) -> bool {
    let fdinfo = attribute(fdinfo);
    let flags = fdinfo.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::guard::Roots;

    #[test]
    fn find_writers_ignores_readers() {
        let machine = Machine::examine(&Roots::default());
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        let file = File::create(&path).expect("create the file");
        let metadata = file.metadata().expect("read the metadata");
        let writers = || find_file_writers(&machine, metadata.dev(), metadata.ino());
        assert_eq!(writers(), Vec::<String>::new(), "this process is not listed");
        let mut command = Command::new("sleep");
        let spawn_with = |command: &mut Command, file: File| {
            command.arg("60").stdin(Stdio::null()).stdout(file).spawn().expect("start the process")
        };
        let mut reader = spawn_with(&mut command, File::open(&path).expect("open the file"));
        assert_eq!(writers(), Vec::<String>::new());
        let mut writer = spawn_with(&mut Command::new("sleep"), file);
        let writer_list = writers();
        reader.kill().and_then(|()| reader.wait()).expect("end the process");
        writer.kill().and_then(|()| writer.wait()).expect("end the process");
        assert_eq!(writer_list, [format!("open for writing in process {} (sleep)", writer.id())]);
    }
}
