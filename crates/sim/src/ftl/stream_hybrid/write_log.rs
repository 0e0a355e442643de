//! The write log of a stream hybrid: a small region of flash that maps clusters to any slot.
//!
//! A cluster that is written again goes to a new slot of the log. Its old slot is reclaimed when its unit
//! is empty, or when the unit with the fewest clusters is compacted.
//!
//! ```text
//! log unit    │ c7 │ -- │ c2 │ c9 │ -- │ .. │ .. │      --: written again elsewhere   ..: still erased
//! in order    c7 ← c2 ← c9                              the oldest first: it is merged first
//! ```

use crate::collections::lru::Lru;
use crate::flash::geometry::{Lpn, PageAddress, PageAddresses};
use crate::flash::plan::FlashPlan;
use crate::pool::units::{FreeUnits, UnitIdx, UnitLayout};

/// A cluster in the log.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Slot")]
struct ClusterSlot {
    cluster: u32,
    /// Its log unit and the index in it.
    unit: u32,
    index: u32,
    /// The pages of its slot that were programmed, and those of them that are the newest version.
    programmed: u64,
    valid: u64,
}

/// A unit of the log, and the slots in it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct LogUnit {
    unit: UnitIdx,
    slots: Vec<u32>,
    live: u32,
}

/// The size limits of a log.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Limits")]
pub(crate) struct LogLimits {
    pub(crate) clusters: u32,
    /// Flash units of the log.
    pub(crate) units: u32,
    /// Logical units that may have clusters in the log at a time; 0: any number.
    pub(crate) members: u32,
    /// The slots of superseded clusters are reused before the log is empty.
    pub(crate) compacts: bool,
}

/// The log.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct WriteLog {
    layout: UnitLayout,
    limits: LogLimits,
    /// Per logical cluster: its slot, or [`NONE`].
    slot_of: Vec<u32>,
    slots: Vec<ClusterSlot>,
    unused: Vec<u32>,
    /// Slots ordered by age.
    order: Lru,
    units: Vec<LogUnit>,
    /// The unit being filled and its next slot, if there is one.
    open: Option<(usize, u32)>,
    /// Units of the log in each bank, to spread them.
    in_bank: Vec<u32>,
    /// Per logical unit: its clusters in the log; and the number of units that have any.
    members: Vec<u16>,
    member_units: u32,
}

const NONE: u32 = u32::MAX;

impl WriteLog {
    /// Create an empty log of clusters of `layout`.
    pub(crate) fn new(layout: UnitLayout, limits: LogLimits) -> WriteLog {
        let logical = layout.logical_units() * layout.clusters_per_unit();
        let mut in_bank = vec![0; layout.banks as usize];
        // The journal's units are in bank 0.
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

    /// Return the number of clusters in the log.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.order.len()
    }

    /// Return whether `cluster` is in the log.
    #[inline]
    pub(crate) fn has(&self, cluster: u32) -> bool {
        self.slot_of[cluster as usize] != NONE
    }

    /// Return the cluster of `page`, and the offset in it.
    #[inline]
    pub(crate) fn cluster_of(&self, page: Lpn) -> (u32, u32) {
        (page.0 / self.layout.cluster_pages, page.0 % self.layout.cluster_pages)
    }

    /// Return the first page of `cluster`.
    #[inline]
    pub(crate) fn first_page(&self, cluster: u32) -> Lpn {
        Lpn(cluster * self.layout.cluster_pages)
    }

    /// Return the logical unit of `cluster`.
    #[inline]
    pub(crate) fn unit_of(&self, cluster: u32) -> u32 {
        cluster / self.layout.clusters_per_unit()
    }

    /// Return the pages of a cluster.
    #[inline]
    pub(crate) fn cluster_pages(&self) -> u32 {
        self.layout.cluster_pages
    }

    /// Return whether it cannot take `cluster` until another one leaves it.
    pub(crate) fn lacks_space(&self, cluster: u32) -> bool {
        let LogLimits { clusters, members, compacts, .. } = self.limits;
        let another =
            members > 0 && !self.is_member(self.unit_of(cluster)) && self.member_units >= members;
        another || (!self.has(cluster) && self.len() >= clusters) || (!compacts && self.is_full())
    }

    /// Return whether `logical` has clusters in the log.
    #[inline]
    pub(crate) fn is_member(&self, logical: u32) -> bool {
        self.members[logical as usize] > 0
    }

    /// Return whether every slot was used and some cluster is still in the log.
    fn is_full(&self) -> bool {
        self.open.is_none_or(|(_, next)| next == self.layout.clusters_per_unit())
            && self.units.len() == self.limits.units as usize
            && self.len() > 0
    }

    /// Return the address of `page`, if its newest version is in the log.
    #[inline]
    pub(crate) fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let (cluster, within) = self.cluster_of(page);
        let slot = self.slot_of[cluster as usize];
        if slot == NONE || self.slots[slot as usize].valid >> within & 1 == 0 {
            return None;
        }
        Some(self.address_of(slot, within))
    }

    /// Return which pages of the cluster that begins with `first` have their newest version in the log, and
    /// the addresses of all its pages.
    #[inline]
    pub(crate) fn newest_of(&self, first: Lpn) -> Option<(u64, PageAddresses)> {
        let slot = self.slot_of[self.cluster_of(first).0 as usize];
        (slot != NONE).then(|| {
            let ClusterSlot { unit, index, valid, .. } = self.slots[slot as usize];
            let unit = self.units[unit as usize].unit;
            (valid, self.layout.addresses_from(unit, index * self.layout.cluster_pages))
        })
    }

    /// Return which of the 64 pages from `first` on, but before `end`, have their newest version in the log;
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

    /// Return the erased slot of page `within` of `cluster` in its current slot, if it has one.
    #[inline]
    pub(crate) fn erased_page(&self, cluster: u32, within: u32) -> Option<PageAddress> {
        let slot = self.slot_of[cluster as usize];
        if slot == NONE || self.slots[slot as usize].programmed >> within & 1 == 1 {
            return None;
        }
        Some(self.address_of(slot, within))
    }

    /// Note that the newest version of page `within` of `cluster` was programmed in its slot.
    #[inline]
    pub(crate) fn set_programmed(&mut self, cluster: u32, within: u32) {
        let slot = &mut self.slots[self.slot_of[cluster as usize] as usize];
        slot.programmed |= 1 << within;
        slot.valid |= 1 << within;
    }

    /// Invalidate the version of `page` in the log.
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

    /// Remove `cluster` from the log.
    pub(crate) fn drop_cluster(&mut self, cluster: u32) {
        let slot = std::mem::replace(&mut self.slot_of[cluster as usize], NONE);
        if slot != NONE {
            self.release_slot(slot);
            self.order.remove(slot);
            self.unused.push(slot);
            let members = &mut self.members[(cluster / self.layout.clusters_per_unit()) as usize];
            *members -= 1;
            self.member_units -= u32::from(*members == 0);
        }
    }

    /// Remove all clusters of the logical unit from the log.
    pub(crate) fn drop_unit(&mut self, logical: u32) {
        if self.is_member(logical) {
            let clusters = self.layout.clusters_per_unit();
            (logical * clusters..(logical + 1) * clusters)
                .for_each(|cluster| self.drop_cluster(cluster));
        }
    }

    /// Give `cluster` a new, erased slot; it becomes the newest. Returns its old slot and the valid pages
    /// there, if it had one.
    pub(crate) fn renew(
        &mut self,
        cluster: u32,
        free: &mut FreeUnits,
        plan: &mut FlashPlan,
    ) -> Option<(UnitIdx, u32, u64)> {
        let (unit, index) = self.next_slot(free, plan);
        let slot = self.slot_of[cluster as usize];
        let old = (slot != NONE).then(|| {
            let ClusterSlot { unit, index, valid, .. } = self.slots[slot as usize];
            self.release_slot(slot);
            self.order.remove(slot);
            (self.units[unit as usize].unit, index * self.layout.cluster_pages, valid)
        });
        let slot = if slot == NONE { self.new_slot(cluster) } else { slot };
        self.assign_slot(slot, unit as u32, index);
        self.order.push_newest(slot);
        old
    }

    /// Return the clusters, the oldest first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.by_age().map(|slot| self.slots[slot as usize].cluster)
    }

    fn address_of(&self, slot: u32, within: u32) -> PageAddress {
        let ClusterSlot { unit, index, .. } = self.slots[slot as usize];
        let offset = index * self.layout.cluster_pages + within;
        self.layout.address_of(self.units[unit as usize].unit, offset)
    }

    fn new_slot(&mut self, cluster: u32) -> u32 {
        let blank = ClusterSlot { cluster, unit: 0, index: 0, programmed: 0, valid: 0 };
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

    fn release_slot(&mut self, slot: u32) {
        let ClusterSlot { unit, index, .. } = self.slots[slot as usize];
        let unit = &mut self.units[unit as usize];
        unit.slots[index as usize] = NONE;
        unit.live -= 1;
    }

    fn assign_slot(&mut self, slot: u32, unit: u32, index: u32) {
        let slot_entry = &mut self.slots[slot as usize];
        (slot_entry.unit, slot_entry.index) = (unit, index);
        (slot_entry.programmed, slot_entry.valid) = (0, 0);
        let unit = &mut self.units[unit as usize];
        unit.slots[index as usize] = slot;
        unit.live += 1;
    }

    /// Return the units of the log.
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
            assert_eq!(slot.valid & !slot.programmed, 0, "valid pages are programmed");
            let cluster_slot = self.units[slot.unit as usize].slots[slot.index as usize];
            assert_eq!(
                cluster_slot, self.slot_of[cluster as usize],
                "the slot's unit and index lead to the slot"
            );
        }
        let live: u32 = self.units.iter().map(|unit| unit.live).sum();
        assert_eq!(live, self.len());
    }

    // The units of a write log: the slot of the next cluster, and the reuse of superseded slots.

    /// Return the next erased slot: of the unit being filled, of a new one, or of one that was compacted.
    fn next_slot(&mut self, free: &mut FreeUnits, plan: &mut FlashPlan) -> (usize, u32) {
        let per_unit = self.layout.clusters_per_unit();
        if self.open.is_none_or(|(_, next)| next == per_unit) {
            self.open = None;
            if self.limits.compacts || self.len() == 0 {
                self.release_empty(free);
            }
            let victim = (self.units.len() == self.limits.units as usize).then(|| self.emptiest());
            self.open_unit(free, plan);
            if let Some(victim) = victim {
                self.compact(victim, free, plan);
            }
        }
        let (unit, next) = self.open.as_mut().expect("a unit was just opened");
        *next += 1;
        (*unit, *next - 1)
    }

    fn open_unit(&mut self, free: &mut FreeUnits, plan: &mut FlashPlan) {
        let banks = 0..self.layout.banks;
        let bank =
            banks.min_by_key(|bank| self.in_bank[*bank as usize]).expect("at least one bank");
        self.in_bank[bank as usize] += 1;
        let slots = vec![NONE; self.layout.clusters_per_unit() as usize];
        self.units.push(LogUnit { unit: free.take(bank, plan), slots, live: 0 });
        self.open = Some((self.units.len() - 1, 0));
    }

    /// Free every unit without clusters. No unit is being filled at this point.
    fn release_empty(&mut self, free: &mut FreeUnits) {
        for index in (0..self.units.len()).rev() {
            if self.units[index].live == 0 {
                self.remove_unit(index, free);
            }
        }
    }

    /// Return the unit with the fewest clusters.
    fn emptiest(&self) -> usize {
        let units = 0..self.units.len();
        units.min_by_key(|unit| self.units[*unit].live).expect("a full log has units")
    }

    /// Copy the clusters of `victim` to the unit being filled, in order.
    fn compact(&mut self, victim: usize, free: &mut FreeUnits, plan: &mut FlashPlan) {
        plan.begin_reclaim();
        let pages = self.layout.cluster_pages;
        let moved: Vec<u32> =
            self.units[victim].slots.iter().copied().filter(|slot| *slot != NONE).collect();
        for slot in moved {
            let ClusterSlot { index, valid, .. } = self.slots[slot as usize];
            let (unit, next) = self.open.expect("a unit was just opened");
            let (from, to) = (self.units[victim].unit, self.units[unit].unit);
            for within in (0..pages).filter(|within| valid >> within & 1 == 1) {
                let from = self.layout.address_of(from, index * pages + within);
                plan.copy(from, self.layout.address_of(to, next * pages + within));
            }
            self.release_slot(slot);
            self.assign_slot(slot, unit as u32, next);
            let slot_entry = &mut self.slots[slot as usize];
            (slot_entry.programmed, slot_entry.valid) = (valid, valid);
            self.open = Some((unit, next + 1));
        }
        plan.barrier();
        self.remove_unit(victim, free);
    }

    fn remove_unit(&mut self, index: usize, free: &mut FreeUnits) {
        let unit = self.units.swap_remove(index).unit;
        self.in_bank[self.layout.bank_of(unit) as usize] -= 1;
        free.discard(unit);
        // The last unit moved to its index.
        if let Some(moved) = self.units.get(index) {
            for slot in moved.slots.iter().filter(|slot| **slot != NONE) {
                self.slots[*slot as usize].unit = index as u32;
            }
            if let Some((open, _)) = &mut self.open
                && *open == self.units.len()
            {
                *open = index;
            }
        }
    }
}
