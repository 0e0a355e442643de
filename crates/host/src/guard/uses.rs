//! Who uses a block device or a file: everything that would be hurt if it were written over.
//!
//! ```text
//!         mounted   swap            what lies above is made of this device's bytes: any use of it counts
//!            │       │
//!          dm-0 ── holders
//!            │
//!  sda ──── sda1    a partition's bytes are its disk's: uses of the disk as a whole count as well
//!   │
//!  loop0 ── its file or device: whoever else uses those bytes counts
//! ```
//!
//! Two partitions of one disk, and two volumes on one physical volume, share no bytes; a use of the one
//! is none of the other.

use std::collections::BTreeSet;

use super::machine::{Machine, Node, Number, Place};

/// Phrases that end "it is …": `mounted on /`, `held by dm-0 (vg-root), which is mounted on /`.
pub(crate) type Uses = Vec<String>;

/// As many mount points of one device are told.
const TOLD: usize = 3;

impl Machine {
    /// Who uses the block device of a number; nobody where there is none.
    pub(crate) fn uses_of_block(&self, number: Number) -> Uses {
        let mut seen = BTreeSet::new();
        let mut uses = self.above(number, &mut seen);
        uses.extend(self.below(number, &mut seen));
        uses
    }

    /// Who uses the file of an inode, but for the loop device `except`.
    pub(crate) fn uses_of_file(&self, device: u64, inode: u64) -> Uses {
        self.uses_of_bytes(Place::File(device, inode), None)
    }

    /// Uses of a device by what is made of it.
    fn above(&self, number: Number, seen: &mut BTreeSet<Number>) -> Uses {
        if !seen.insert(number) {
            return vec![];
        }
        let mut uses = self.direct(number);
        let Some(node) = self.nodes.get(&number) else { return uses };
        uses.extend(self.holders(node, seen));
        for upper in self.loops_over(Place::Block(number)) {
            let what = format!("the backing device of {}", upper.title());
            uses.extend(which_is(&what, self.above(upper.number, seen)));
        }
        for partition in self.partitions(number) {
            let above = self.above(partition.number, seen);
            uses.extend(above.into_iter().map(|use_| of("its partition", partition, &use_)));
        }
        uses
    }

    /// Uses, by others, of what a device is a part of or made of.
    fn below(&self, number: Number, seen: &mut BTreeSet<Number>) -> Uses {
        let Some(node) = self.nodes.get(&number) else { return vec![] };
        let mut uses = vec![];
        if let Some(disk) = node.disk.and_then(|disk| self.nodes.get(&disk))
            && seen.insert(disk.number)
        {
            let mut of_disk = self.direct(disk.number);
            of_disk.extend(self.holders(disk, seen));
            for upper in self.loops_over(Place::Block(disk.number)) {
                let what = format!("the backing device of {}", upper.title());
                of_disk.extend(which_is(&what, self.above(upper.number, seen)));
            }
            uses.extend(of_disk.iter().map(|use_| of("its disk", disk, use_)));
            uses.extend(self.below(disk.number, seen));
        }
        for slave in node.slaves.iter().filter_map(|name| self.node(name)) {
            if seen.insert(slave.number) {
                let direct = self.data_uses(slave.number);
                uses.extend(direct.iter().map(|use_| of("below it", slave, use_)));
                uses.extend(self.below(slave.number, seen));
            }
        }
        for place in node.backing.iter().flat_map(|backing| &backing.places) {
            let of_bytes = self.uses_of_bytes(*place, Some(node));
            uses.extend(of_bytes.iter().map(|use_| format!("what it shows is {use_}")));
            if let Place::Block(lower) = place
                && seen.insert(*lower)
            {
                uses.extend(
                    self.direct(*lower).iter().map(|use_| format!("what it shows is {use_}")),
                );
                if let Some(lower) = self.nodes.get(lower) {
                    uses.extend(self.holders(lower, seen));
                }
                uses.extend(self.below(*lower, seen));
            }
        }
        uses
    }

    /// Uses that need nothing in between.
    fn direct(&self, number: Number) -> Uses {
        let mut uses = self.data_uses(number);
        let arrays = self.arrays.iter().filter(|(_, member)| *member == number);
        let held = |array: &str| {
            self.nodes.get(&number).is_some_and(|node| node.holders.iter().any(|h| h == array))
        };
        let arrays = arrays.filter(|(array, _)| !held(array));
        uses.extend(arrays.map(|(array, _)| format!("a member of the array {array}")));
        uses
    }

    /// Whoever keeps data in the device as it is: file systems and swap.
    fn data_uses(&self, number: Number) -> Uses {
        let mut known = BTreeSet::new();
        let mut points: Uses = vec![];
        for (mount, devices) in self.mounts.iter().zip(&self.mounted) {
            if devices.contains(&number) && known.insert(&mount.point) {
                let elsewhere = |process| format!("{} (as process {process} sees it)", mount.point);
                points.push(mount.process.map_or(mount.point.clone(), elsewhere));
            }
        }
        let place = Some(Place::Block(number));
        let mut uses = vec![];
        if !points.is_empty() {
            let more = points.len().saturating_sub(TOLD);
            points.truncate(TOLD);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            uses.push(format!("mounted on {}{more}", points.join(", ")));
        }
        let swaps = self.swaps.iter().filter(|(_, swap)| *swap == place);
        uses.extend(swaps.map(|_| "swapped to".to_owned()));
        // A file system on several devices is mounted by one name; its members are told apart here.
        let members = self.btrfs.iter().filter(|(_, member)| *member == number);
        let member =
            |(system, _): &(String, Number)| format!("a device of the mounted btrfs {system}");
        if uses.is_empty() {
            uses.extend(members.map(member));
        }
        uses
    }

    fn holders(&self, node: &Node, seen: &mut BTreeSet<Number>) -> Uses {
        let mut uses = vec![];
        for name in &node.holders {
            match self.node(name) {
                Some(holder) => {
                    let above = self.above(holder.number, seen);
                    uses.extend(which_is(&format!("held by {}", holder.title()), above));
                }
                None => uses.push(format!("held by {name}")),
            }
        }
        uses
    }

    /// Uses of what is below loop devices, but for those by the loop device `except`.
    fn uses_of_bytes(&self, place: Place, except: Option<&Node>) -> Uses {
        let mut uses = vec![];
        let ours = except.and_then(|node| node.backing.as_ref());
        for upper in self.loops_over(place) {
            let theirs = upper.backing.as_ref().expect("it is a loop device over something");
            if except.is_some_and(|node| node.number == upper.number)
                || ours.is_some_and(|ours| !ours.overlaps(theirs))
            {
                continue;
            }
            let above = self.above(upper.number, &mut BTreeSet::new());
            uses.extend(which_is(&format!("shown by {}", upper.title()), above));
        }
        if matches!(place, Place::File(..)) {
            let swaps = self.swaps.iter().filter(|(_, swap)| *swap == Some(place));
            uses.extend(swaps.map(|_| "swapped to".to_owned()));
            let mounted = self.mounts.iter().filter(|mount| {
                mount.source.starts_with('/')
                    && !mount.source.starts_with("/dev/")
                    && self.place(&mount.source) == Some(place)
            });
            uses.extend(mounted.map(|mount| format!("mounted on {}", mount.point)));
        }
        uses
    }

    fn loops_over(&self, place: Place) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(move |node| {
            node.backing.as_ref().is_some_and(|backing| backing.places.contains(&place))
        })
    }
}

fn of(relation: &str, node: &Node, use_: &str) -> String {
    format!("{relation} {} is {use_}", node.title())
}

/// A use that may have uses of its own.
fn which_is(what: &str, above: Uses) -> Uses {
    if above.is_empty() {
        return vec![what.to_owned()];
    }
    above.into_iter().map(|use_| format!("{what}, which is {use_}")).collect()
}
