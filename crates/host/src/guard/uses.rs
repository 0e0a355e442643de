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
//! not a use of the other.

use std::collections::BTreeSet;

use super::machine::{BlockOrFile, Machine, Node, Number};

/// Phrases that complete "it is …": `mounted on /`, `held by dm-0 (vg-root), which is mounted on
/// /`.
pub(crate) type Uses = Vec<String>;

/// The number of mount points shown for one device.
const USES_SHOWN: usize = 3;

impl Machine {
    /// Return the users of the block device of a number.
    pub(crate) fn uses_of_block(&self, number: Number) -> Uses {
        let mut seen = BTreeSet::new();
        let mut uses = self.uses_above(number, &mut seen);
        uses.extend(self.uses_below(number, &mut seen));
        uses
    }

    /// Return the users of the file of an inode.
    pub(crate) fn uses_of_file(&self, device: u64, inode: u64) -> Uses {
        self.uses_of_bytes(BlockOrFile::File(device, inode), None)
    }

    /// Return the uses by devices built on this one.
    fn uses_above(&self, number: Number, seen: &mut BTreeSet<Number>) -> Uses {
        if !seen.insert(number) {
            return vec![];
        }
        let mut uses = self.direct_uses(number);
        let Some(node) = self.nodes.get(&number) else { return uses };
        uses.extend(self.holder_uses(node, seen));
        for upper in self.loops_over(BlockOrFile::Block(number)) {
            let what = format!("the backing device of {}", upper.title());
            uses.extend(chain(&what, self.uses_above(upper.number, seen)));
        }
        for partition in self.partitions(number) {
            let above = self.uses_above(partition.number, seen);
            uses.extend(above.into_iter().map(|use_| describe("its partition", partition, &use_)));
        }
        uses
    }

    /// Return the uses, by others, of the devices that this one is a part of or built on.
    fn uses_below(&self, number: Number, seen: &mut BTreeSet<Number>) -> Uses {
        let Some(node) = self.nodes.get(&number) else { return vec![] };
        let mut uses = vec![];
        if let Some(disk) = node.disk.and_then(|disk| self.nodes.get(&disk))
            && seen.insert(disk.number)
        {
            let mut of_disk = self.direct_uses(disk.number);
            of_disk.extend(self.holder_uses(disk, seen));
            for upper in self.loops_over(BlockOrFile::Block(disk.number)) {
                let what = format!("the backing device of {}", upper.title());
                of_disk.extend(chain(&what, self.uses_above(upper.number, seen)));
            }
            uses.extend(of_disk.iter().map(|use_| describe("its disk", disk, use_)));
            uses.extend(self.uses_below(disk.number, seen));
        }
        for slave in node.slaves.iter().filter_map(|name| self.node(name)) {
            if seen.insert(slave.number) {
                let direct = self.data_uses(slave.number);
                uses.extend(direct.iter().map(|use_| describe("below it", slave, use_)));
                uses.extend(self.uses_below(slave.number, seen));
            }
        }
        for place in node.backing.iter().flat_map(|backing| &backing.targets) {
            let of_bytes = self.uses_of_bytes(*place, Some(node));
            uses.extend(of_bytes.iter().map(|use_| format!("what it shows is {use_}")));
            if let BlockOrFile::Block(lower) = place
                && seen.insert(*lower)
            {
                uses.extend(
                    self.direct_uses(*lower).iter().map(|use_| format!("what it shows is {use_}")),
                );
                if let Some(lower) = self.nodes.get(lower) {
                    uses.extend(self.holder_uses(lower, seen));
                }
                uses.extend(self.uses_below(*lower, seen));
            }
        }
        uses
    }

    /// Return the direct uses.
    fn direct_uses(&self, number: Number) -> Uses {
        let mut uses = self.data_uses(number);
        let arrays = self.arrays.iter().filter(|(_, member)| *member == number);
        let held = |array: &str| {
            self.nodes.get(&number).is_some_and(|node| node.holders.iter().any(|h| h == array))
        };
        let arrays = arrays.filter(|(array, _)| !held(array));
        uses.extend(arrays.map(|(array, _)| format!("a member of the array {array}")));
        uses
    }

    /// Return the uses that store data on the device itself: file systems and swap.
    fn data_uses(&self, number: Number) -> Uses {
        let mut known = BTreeSet::new();
        let mut points: Uses = vec![];
        for (mount, devices) in self.mounts.iter().zip(&self.mounted) {
            if devices.contains(&number) && known.insert(&mount.point) {
                let elsewhere = |process| format!("{} (as process {process} sees it)", mount.point);
                points.push(mount.process.map_or(mount.point.clone(), elsewhere));
            }
        }
        let place = Some(BlockOrFile::Block(number));
        let mut uses = vec![];
        if !points.is_empty() {
            let more = points.len().saturating_sub(USES_SHOWN);
            points.truncate(USES_SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            uses.push(format!("mounted on {}{more}", points.join(", ")));
        }
        let swaps = self.swaps.iter().filter(|(_, swap)| *swap == place);
        uses.extend(swaps.map(|_| "swapped to".to_owned()));
        // A file system on several devices is mounted by one name; here its other members are
        // found.
        let members = self.btrfs.iter().filter(|(_, member)| *member == number);
        let member =
            |(system, _): &(String, Number)| format!("a device of the mounted btrfs {system}");
        if uses.is_empty() {
            uses.extend(members.map(member));
        }
        uses
    }

    fn holder_uses(&self, node: &Node, seen: &mut BTreeSet<Number>) -> Uses {
        let mut uses = vec![];
        for name in &node.holders {
            match self.node(name) {
                Some(holder) => {
                    let above = self.uses_above(holder.number, seen);
                    uses.extend(chain(&format!("held by {}", holder.title()), above));
                }
                None => uses.push(format!("held by {name}")),
            }
        }
        uses
    }

    /// Return the uses of the backing of loop devices, without those by the loop device `except`.
    fn uses_of_bytes(&self, place: BlockOrFile, except: Option<&Node>) -> Uses {
        let mut uses = vec![];
        let ours = except.and_then(|node| node.backing.as_ref());
        for upper in self.loops_over(place) {
            let theirs = upper.backing.as_ref().expect("it is a loop device over something");
            if except.is_some_and(|node| node.number == upper.number)
                || ours.is_some_and(|ours| !ours.overlaps(theirs))
            {
                continue;
            }
            let above = self.uses_above(upper.number, &mut BTreeSet::new());
            uses.extend(chain(&format!("shown by {}", upper.title()), above));
        }
        if matches!(place, BlockOrFile::File(..)) {
            let swaps = self.swaps.iter().filter(|(_, swap)| *swap == Some(place));
            uses.extend(swaps.map(|_| "swapped to".to_owned()));
            let mounted = self.mounts.iter().filter(|mount| {
                mount.source.starts_with('/')
                    && !mount.source.starts_with("/dev/")
                    && self.resolve(&mount.source) == Some(place)
            });
            uses.extend(mounted.map(|mount| format!("mounted on {}", mount.point)));
        }
        uses
    }

    fn loops_over(&self, place: BlockOrFile) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(move |node| {
            node.backing.as_ref().is_some_and(|backing| backing.targets.contains(&place))
        })
    }
}

fn describe(relation: &str, node: &Node, use_: &str) -> String {
    format!("{relation} {} is {use_}", node.title())
}

/// Return the use `what`, extended by each of its own uses.
fn chain(what: &str, above: Uses) -> Uses {
    if above.is_empty() {
        return vec![what.to_owned()];
    }
    above.into_iter().map(|use_| format!("{what}, which is {use_}")).collect()
}
