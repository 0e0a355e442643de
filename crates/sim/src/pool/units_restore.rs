//! Recovery of merge units after a power loss.
//!
//! ```text
//! all pages of a unit at their own offsets of one logical unit, of which no other has any       its data unit
//! anything else                   the newest of every page is copied to a new unit; these are erased
//! ```
//!
//! A log unit holds pages of several logical units, so all of those are merged.

use std::collections::BTreeMap;

use super::units::{FreeUnits, UnitIdx, UnitLayout};
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Lpn};
use crate::flash::plan::{FlashPlan, Merge};

/// Units found with content.
#[derive(Default)]
pub(crate) struct FoundUnits {
    /// By logical unit: the units that hold only its pages, each at its own offset.
    in_place: BTreeMap<u32, Vec<UnitIdx>>,
    /// All other units.
    of_logs: Vec<UnitIdx>,
    /// Logical units whose newest pages are partly in those.
    logged: Vec<u32>,
}

impl UnitLayout {
    /// Return the number of the unit that contains `block`; `u32::MAX` if no unit does.
    pub(crate) fn group_of(&self, block: BlockIdx) -> u32 {
        self.unit_of(block).map_or(u32::MAX, |unit| unit.0)
    }

    /// Classify all units found with content, and remove them from the free units.
    pub(crate) fn restore(&self, survey: &Survey<'_>, free: &mut FreeUnits) -> FoundUnits {
        let mut units = FoundUnits::default();
        for unit in survey.groups().iter().map(|unit| UnitIdx(*unit)) {
            free.take_used(unit);
            let places = (0..self.unit_pages).map(|offset| (offset, self.address_of(unit, offset)));
            let held = places.filter_map(|(offset, at)| {
                let (Lpn(page), newest) = survey.page_at(at)?;
                let in_place = page % self.unit_pages == offset;
                Some((page / self.unit_pages, in_place, newest))
            });
            let held: Vec<(u32, bool, bool)> = held.collect();
            let (first, ..) = held[0];
            if held.iter().all(|(logical, in_place, _)| *in_place && *logical == first) {
                units.in_place.entry(first).or_default().push(unit);
                continue;
            }
            units.of_logs.push(unit);
            let newest = held.iter().filter(|(.., newest)| *newest);
            units.logged.extend(newest.map(|(logical, ..)| *logical));
        }
        units.logged.sort_unstable();
        units.logged.dedup();
        units
    }

    /// Merge where necessary; returns the data unit of every logical unit that has one.
    pub(crate) fn merge_found(
        &self,
        units: FoundUnits,
        survey: &Survey<'_>,
        free: &mut FreeUnits,
        plan: &mut FlashPlan,
    ) -> Vec<(u32, UnitIdx)> {
        let FoundUnits { mut in_place, of_logs, logged } = units;
        for logical in &logged {
            in_place.entry(*logical).or_default();
        }
        let mut data = Vec::new();
        for (logical, units) in in_place {
            let is_logged = logged.binary_search(&logical).is_ok();
            let unit = match units[..] {
                [unit] if !is_logged => unit,
                _ => self.merge_one(logical, &units, survey, free, plan),
            };
            data.push((logical, unit));
        }
        self.erase(&of_logs, free, plan);
        data
    }

    /// Copy the newest version of every page of `logical` to a new unit, and erase `units`.
    fn merge_one(
        &self,
        logical: u32,
        units: &[UnitIdx],
        survey: &Survey<'_>,
        free: &mut FreeUnits,
        plan: &mut FlashPlan,
    ) -> UnitIdx {
        let unit = free.take(self.bank_of_logical(logical), plan);
        plan.count_merge(Merge::Full);
        for offset in 0..self.unit_pages {
            if let Some(from) = survey.address_of(Lpn(logical * self.unit_pages + offset)) {
                plan.copy(from, self.address_of(unit, offset));
            }
        }
        plan.barrier();
        self.erase(units, free, plan);
        unit
    }

    fn erase(&self, units: &[UnitIdx], free: &mut FreeUnits, plan: &mut FlashPlan) {
        for unit in units {
            self.blocks(*unit).for_each(|block| plan.erase(block));
            free.release(*unit);
        }
        plan.barrier();
    }
}
