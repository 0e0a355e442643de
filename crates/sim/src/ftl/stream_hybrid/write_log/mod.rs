//! The write log of a stream hybrid: a small region of flash that maps clusters wherever they are.
//!
//! A cluster that is written again goes to a new place of the log; what it leaves behind is empty space
//! that comes back when its unit is empty, or when the unit with the fewest clusters is compacted.
//!
//! ```text
//! log unit    │ c7 │ -- │ c2 │ c9 │ -- │ .. │ .. │      --: written again elsewhere   ..: still erased
//! in order    c7 ← c2 ← c9                              the oldest first: it is merged first
//! ```

mod units;

use crate::collections::lru::Lru;
use crate::flash::geometry::{Lpn, Place};
use crate::flash::places::Places;
use crate::flash::plan::Plan;
use crate::pool::units::{FreeUnits, Layout, UnitIdx};

/// A cluster in the log.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Slot {
    cluster: u32,
    /// The log unit and the place in it.
    unit: u32,
    index: u32,
    /// Which pages of its place were programmed, and which of them hold the newest version.
    programmed: u64,
    valid: u64,
}

/// A unit of the log: which slots lie in it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct LogUnit {
    unit: UnitIdx,
    slots: Vec<u32>,
    live: u32,
}

/// How much a log may hold.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Limits {
    pub(crate) clusters: u32,
    /// Units of flash that it has for them.
    pub(crate) units: u32,
    /// Logical units that it may have clusters of at a time; 0: any number.
    pub(crate) members: u32,
    /// Whether what superseded clusters leave behind is used again before the log is empty.
    pub(crate) compacts: bool,
}

/// The log.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct WriteLog {
    layout: Layout,
    limits: Limits,
    /// Per logical cluster: its slot, or [`NONE`].
    slot_of: Vec<u32>,
    slots: Vec<Slot>,
    unused: Vec<u32>,
    /// Slots in the order of age.
    order: Lru,
    units: Vec<LogUnit>,
    /// The unit being filled and its next place, where one is.
    open: Option<(usize, u32)>,
    /// Units that it holds in each bank, so that they are spread.
    in_bank: Vec<u32>,
    /// Per logical unit: its clusters that are here; and how many units have any.
    members: Vec<u16>,
    member_units: u32,
}

const NONE: u32 = u32::MAX;

impl WriteLog {
    /// An empty log of clusters as `layout` has them.
    pub(crate) fn new(layout: Layout, limits: Limits) -> WriteLog {
        let logical = layout.logical_units() * layout.clusters_per_unit();
        let mut in_bank = vec![0; layout.banks as usize];
        // The journal has its place there.
        in_bank[0] = crate::pool::units::Journal::UNITS;
        WriteLog {
            layout,
            limits,
            slot_of: vec![NONE; logical as usize],
            slots: Vec::with_capacity(limits.clusters as usize),
            unused: Vec::new(),
            order: Lru::with_capacity(limits.clusters as usize),
            units: Vec::with_capacity(limits.units as usize + 1),
            open: None,
            in_bank,
            members: vec![0; layout.logical_units() as usize],
            member_units: 0,
        }
    }

    /// Clusters in it.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.order.len()
    }

    /// Whether it has `cluster`.
    #[inline]
    pub(crate) fn has(&self, cluster: u32) -> bool {
        self.slot_of[cluster as usize] != NONE
    }

    /// The cluster of `page`, and its number there.
    #[inline]
    pub(crate) fn cluster_of(&self, page: Lpn) -> (u32, u32) {
        (page.0 / self.layout.cluster_pages, page.0 % self.layout.cluster_pages)
    }

    /// The first page of `cluster`.
    #[inline]
    pub(crate) fn first_page(&self, cluster: u32) -> Lpn {
        Lpn(cluster * self.layout.cluster_pages)
    }

    /// The logical unit of `cluster`.
    #[inline]
    pub(crate) fn unit_of(&self, cluster: u32) -> u32 {
        cluster / self.layout.clusters_per_unit()
    }

    /// Pages of a cluster.
    #[inline]
    pub(crate) fn cluster_pages(&self) -> u32 {
        self.layout.cluster_pages
    }

    /// Whether it cannot take `cluster` before something leaves it.
    pub(crate) fn lacks_room(&self, cluster: u32) -> bool {
        let Limits { clusters, members, compacts, .. } = self.limits;
        let another =
            members > 0 && !self.is_member(self.unit_of(cluster)) && self.member_units >= members;
        another || (!self.has(cluster) && self.len() >= clusters) || (!compacts && self.is_full())
    }

    /// Whether `logical` has clusters in it.
    #[inline]
    pub(crate) fn is_member(&self, logical: u32) -> bool {
        self.members[logical as usize] > 0
    }

    /// Whether every place was used and something is still there.
    fn is_full(&self) -> bool {
        self.open.is_none_or(|(_, next)| next == self.layout.clusters_per_unit())
            && self.units.len() == self.limits.units as usize
            && self.len() > 0
    }

    /// Where `page` is, if its newest version is here.
    #[inline]
    pub(crate) fn lookup(&self, page: Lpn) -> Option<Place> {
        let (cluster, within) = self.cluster_of(page);
        let slot = self.slot_of[cluster as usize];
        if slot == NONE || self.slots[slot as usize].valid >> within & 1 == 0 {
            return None;
        }
        Some(self.place(slot, within))
    }

    /// Which pages of the cluster that begins with `first` have their newest version here, and where all of them are.
    #[inline]
    pub(crate) fn newest_of(&self, first: Lpn) -> Option<(u64, Places)> {
        let slot = self.slot_of[self.cluster_of(first).0 as usize];
        (slot != NONE).then(|| {
            let Slot { unit, index, valid, .. } = self.slots[slot as usize];
            let unit = self.units[unit as usize].unit;
            (valid, self.layout.places(unit, index * self.layout.cluster_pages))
        })
    }

    /// Which of the 64 pages from `first` on, or as many as there are before `end`, have their newest version here;
    /// `first` begins a cluster.
    #[inline]
    pub(crate) fn newest_from(&self, first: Lpn, end: Lpn) -> u64 {
        let pages = self.layout.cluster_pages;
        let clusters = (first.0 / pages..end.0.div_ceil(pages)).map(|cluster| cluster as usize);
        let slots = clusters.zip((0..).step_by(pages as usize));
        let held = slots.filter(|(cluster, _)| self.slot_of[*cluster] != NONE);
        held.fold(0, |newest, (cluster, at)| {
            newest | self.slots[self.slot_of[cluster] as usize].valid << at
        })
    }

    /// Where page `within` of `cluster` can be programmed beside the others that it has here.
    #[inline]
    pub(crate) fn erased_place(&self, cluster: u32, within: u32) -> Option<Place> {
        let slot = self.slot_of[cluster as usize];
        if slot == NONE || self.slots[slot as usize].programmed >> within & 1 == 1 {
            return None;
        }
        Some(self.place(slot, within))
    }

    /// The newest version of page `within` of `cluster` was programmed in its place.
    #[inline]
    pub(crate) fn set_programmed(&mut self, cluster: u32, within: u32) {
        let slot = &mut self.slots[self.slot_of[cluster as usize] as usize];
        slot.programmed |= 1 << within;
        slot.valid |= 1 << within;
    }

    /// The newest version of `page` is not here, or nowhere.
    #[inline]
    pub(crate) fn invalidate(&mut self, page: Lpn) {
        let (cluster, within) = self.cluster_of(page);
        let slot = self.slot_of[cluster as usize];
        if slot != NONE {
            self.slots[slot as usize].valid &= !(1 << within);
            if self.slots[slot as usize].valid == 0 {
                self.drop_cluster(cluster);
            }
        }
    }

    /// `cluster` is here no more.
    pub(crate) fn drop_cluster(&mut self, cluster: u32) {
        let slot = std::mem::replace(&mut self.slot_of[cluster as usize], NONE);
        if slot != NONE {
            self.leave_place(slot);
            self.order.leave(slot);
            self.unused.push(slot);
            let members = &mut self.members[(cluster / self.layout.clusters_per_unit()) as usize];
            *members -= 1;
            self.member_units -= u32::from(*members == 0);
        }
    }

    /// Nothing of the logical unit is here any more.
    pub(crate) fn drop_unit(&mut self, logical: u32) {
        if self.is_member(logical) {
            let clusters = self.layout.clusters_per_unit();
            (logical * clusters..(logical + 1) * clusters)
                .for_each(|cluster| self.drop_cluster(cluster));
        }
    }

    /// Give `cluster` a new, erased place; it is the newest from now on. Returns the old place and its
    /// valid pages, where it had one.
    pub(crate) fn renew(
        &mut self,
        cluster: u32,
        free: &mut FreeUnits,
        plan: &mut Plan,
    ) -> Option<(UnitIdx, u32, u64)> {
        let (unit, index) = self.next_place(free, plan);
        let slot = self.slot_of[cluster as usize];
        let old = (slot != NONE).then(|| {
            let Slot { unit, index, valid, .. } = self.slots[slot as usize];
            self.leave_place(slot);
            self.order.leave(slot);
            (self.units[unit as usize].unit, index * self.layout.cluster_pages, valid)
        });
        let slot = if slot == NONE { self.new_slot(cluster) } else { slot };
        self.enter_place(slot, unit as u32, index);
        self.order.enter(slot);
        old
    }

    /// The clusters, the oldest first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.by_age().map(|slot| self.slots[slot as usize].cluster)
    }

    fn place(&self, slot: u32, within: u32) -> Place {
        let Slot { unit, index, .. } = self.slots[slot as usize];
        let offset = index * self.layout.cluster_pages + within;
        self.layout.place(self.units[unit as usize].unit, offset)
    }

    fn new_slot(&mut self, cluster: u32) -> u32 {
        let blank = Slot { cluster, unit: 0, index: 0, programmed: 0, valid: 0 };
        let slot = self.unused.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(slot as usize) {
            Some(old) => *old = blank,
            None => self.slots.push(blank),
        }
        self.slot_of[cluster as usize] = slot;
        let members = &mut self.members[(cluster / self.layout.clusters_per_unit()) as usize];
        self.member_units += u32::from(*members == 0);
        *members += 1;
        slot
    }

    fn leave_place(&mut self, slot: u32) {
        let Slot { unit, index, .. } = self.slots[slot as usize];
        let unit = &mut self.units[unit as usize];
        unit.slots[index as usize] = NONE;
        unit.live -= 1;
    }

    fn enter_place(&mut self, slot: u32, unit: u32, index: u32) {
        let books = &mut self.slots[slot as usize];
        (books.unit, books.index) = (unit, index);
        (books.programmed, books.valid) = (0, 0);
        let unit = &mut self.units[unit as usize];
        unit.slots[index as usize] = slot;
        unit.live += 1;
    }

    /// The units that it holds.
    #[cfg(test)]
    pub(crate) fn units(&self) -> impl Iterator<Item = UnitIdx> + '_ {
        self.units.iter().map(|unit| unit.unit)
    }

    /// Check that slots, units and order agree.
    #[cfg(test)]
    pub(crate) fn audit(&self) {
        assert_eq!(self.by_age().count(), self.len() as usize, "every slot has an age");
        for cluster in self.by_age() {
            let slot = self.slots[self.slot_of[cluster as usize] as usize];
            assert_eq!(slot.cluster, cluster);
            assert_eq!(slot.valid & !slot.programmed, 0, "what is valid was programmed");
            let there = self.units[slot.unit as usize].slots[slot.index as usize];
            assert_eq!(there, self.slot_of[cluster as usize], "a slot lies where it says");
        }
        let live: u32 = self.units.iter().map(|unit| unit.live).sum();
        assert_eq!(live, self.len());
    }
}
