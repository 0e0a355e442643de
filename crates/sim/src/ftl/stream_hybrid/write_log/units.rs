//! The units of a write log: the slot of the next cluster, and the reuse of superseded slots.

use super::{ClusterSlot, LogUnit, NONE, WriteLog};
use crate::flash::plan::FlashPlan;
use crate::pool::units::FreeUnits;

impl WriteLog {
    /// Return the next erased slot: of the unit being filled, of a new one, or of one that was compacted.
    pub(super) fn next_slot(&mut self, free: &mut FreeUnits, plan: &mut FlashPlan) -> (usize, u32) {
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
