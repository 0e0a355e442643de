//! Merge units: groups of blocks that are filled, mapped and erased as a whole. Each is spread over the
//! planes of one bank, and its pages go to them round robin.
//!
//! ```text
//! bank 0: plane 0, plane 1, …, plane w − 1     unit = the same blocks of each of them
//! bank 1: plane w, …                       page i of a unit: plane i mod w, then in order
//! ```
//!
//! Planes are counted over the channels first, so such a bank has planes on every channel. With
//! `own_channels`, a bank takes every banks-th plane instead: a unit is as fast as its channels, and merges
//! in two banks do not share any channel.
//!
//! A logical unit always stays in one bank: logical unit mod banks. This file also holds the journal in which
//! the firmware stores changes of its map.

use std::collections::BTreeMap;

use uflip_core::{Error, Result, format_bytes};

use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PageAddresses};
use crate::flash::plan::{FlashPlan, Merge};
use crate::pool::free::FreePool;

/// The number of a merge unit.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub(crate) struct UnitIdx(pub(crate) u32);

/// The layout of merge units over the planes, checked to fit.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Layout")]
pub(crate) struct UnitLayout {
    geometry: Geometry,
    pub(crate) unit_pages: u32,
    pub(crate) cluster_pages: u32,
    pub(crate) banks: u32,
    own_channels: bool,
    planes_per_bank: u32,
    blocks_per_plane: u32,
    per_bank: u32,
}

impl UnitLayout {
    /// Create a layout of units of `unit_bytes` on `banks` banks, filled in clusters.
    ///
    /// # Errors
    /// Sizes that do not divide each other, the banks, or the capacity.
    pub(crate) fn new(
        geometry: Geometry,
        unit_bytes: u32,
        cluster_bytes: u32,
        banks: u32,
        own_channels: bool,
    ) -> Result<UnitLayout> {
        let shape = geometry.shape();
        let page = shape.page_bytes;
        let bytes = |bytes: u32| format_bytes(u64::from(bytes));
        if cluster_bytes == 0 || !cluster_bytes.is_multiple_of(page) || cluster_bytes / page > 64 {
            return Err(Error::usage("Clusters must be 1 to 64 whole flash pages")
                .got(format!("cluster_bytes = {cluster_bytes}"))
                .allowed(format!("1 to 64 pages of {}", bytes(page)))
                .action("change cluster_bytes"));
        }
        if banks == 0 || !shape.planes.is_multiple_of(banks) {
            return Err(Error::usage("The banks do not divide the dies")
                .got(format!("banks = {banks} of {} dies", shape.planes))
                .allowed("a number that divides the dies")
                .action("change banks"));
        }
        if own_channels && !shape.channels.is_multiple_of(banks) {
            return Err(Error::usage("The banks do not divide the channels")
                .got(format!("banks = {banks}, {} channels, own_channels = true", shape.channels))
                .allowed("banks that divide the channels")
                .action("change banks, or set own_channels = false"));
        }
        let planes_per_bank = shape.planes / banks;
        let row = u64::from(planes_per_bank) * u64::from(shape.pages_per_block) * u64::from(page);
        let is_aligned = unit_bytes > 0
            && u64::from(unit_bytes).is_multiple_of(row)
            && unit_bytes.is_multiple_of(cluster_bytes);
        if !is_aligned {
            return Err(Error::usage("Merge units are not whole blocks and clusters")
                .got(format!("unit_bytes = {unit_bytes}"))
                .allowed(format!(
                    "multiples of {} (a block of each of {planes_per_bank} dies) and of {}",
                    format_bytes(row),
                    bytes(cluster_bytes)
                ))
                .action("change unit_bytes, banks or pages_per_block"));
        }
        let unit_pages = unit_bytes / page;
        if !shape.logical_pages.is_multiple_of(unit_pages) {
            let capacity = u64::from(shape.logical_pages) * u64::from(page);
            return Err(Error::usage("Merge units do not divide the capacity")
                .got(format!("unit_bytes = {unit_bytes}, {capacity} bytes for the host"))
                .allowed(format!("a capacity of whole units of {}", bytes(unit_bytes)))
                .action("change spare_factor or unit_bytes"));
        }
        let blocks_per_plane = unit_pages / shape.pages_per_block / planes_per_bank;
        let per_bank = shape.blocks_per_plane / blocks_per_plane;
        let cluster_pages = cluster_bytes / page;
        Ok(UnitLayout {
            geometry,
            unit_pages,
            cluster_pages,
            banks,
            own_channels,
            planes_per_bank,
            blocks_per_plane,
            per_bank,
        })
    }

    /// Check that the device holds the host's data, `extra_per_bank` more units in every bank, and `extra_anywhere` more
    /// units in any bank.
    ///
    /// # Errors
    /// The device has too few units.
    pub(crate) fn check(
        &self,
        extra_per_bank: u64,
        extra_anywhere: u64,
        extra_uses: &str,
    ) -> Result<()> {
        let data = u64::from(self.data_per_bank());
        // Saturating: a number near the end of the range exceeds any device.
        let needed = data.saturating_add(extra_per_bank).saturating_mul(self.banks.into());
        let needed = needed.saturating_add(extra_anywhere);
        let units = u64::from(self.banks) * u64::from(self.per_bank);
        if needed <= units {
            return Ok(());
        }
        Err(Error::usage("The device has too few merge units for its FTL")
            .got(format!("{units} units, of which the host's data takes {}", self.logical_units()))
            .allowed(format!("{needed} units or more, for the data plus {extra_uses}"))
            .action("raise spare_factor or blocks_per_die"))
    }

    /// Return the number of units of the host's data.
    pub(crate) fn logical_units(&self) -> u32 {
        self.geometry.shape().logical_pages / self.unit_pages
    }

    /// Return the most units of the host's data in one bank.
    fn data_per_bank(&self) -> u32 {
        self.logical_units().div_ceil(self.banks)
    }

    pub(crate) fn clusters_per_unit(&self) -> u32 {
        self.unit_pages / self.cluster_pages
    }

    /// Return the bank of a logical unit.
    #[inline]
    pub(crate) fn bank_of_logical(&self, logical: u32) -> u32 {
        logical % self.banks
    }

    pub(crate) fn bank_of(&self, unit: UnitIdx) -> u32 {
        unit.0 / self.per_bank
    }

    /// Return the address of page `offset` of `unit`.
    #[inline]
    pub(crate) fn address_of(&self, unit: UnitIdx, offset: u32) -> PageAddress {
        self.addresses_from(unit, offset).address()
    }

    /// Return the addresses of the pages of `unit` from page `offset` on.
    #[inline]
    pub(crate) fn addresses_from(&self, unit: UnitIdx, offset: u32) -> PageAddresses {
        let shape = self.geometry.shape();
        let (bank, index) = (unit.0 / self.per_bank, unit.0 % self.per_bank);
        let (first_plane, planes_apart) =
            if self.own_channels { (bank, self.banks) } else { (bank * self.planes_per_bank, 1) };
        let row = offset / self.planes_per_bank;
        PageAddresses {
            first_plane,
            planes_apart,
            planes: self.planes_per_bank,
            blocks_per_plane: shape.blocks_per_plane,
            pages_per_block: shape.pages_per_block,
            block: index * self.blocks_per_plane + row / shape.pages_per_block,
            page: row % shape.pages_per_block,
            plane_offset: offset % self.planes_per_bank,
        }
    }

    /// Return the unit that contains `block`; `None` for the blocks left over at the end of a plane.
    pub(crate) fn unit_of(&self, block: BlockIdx) -> Option<UnitIdx> {
        let blocks_per_plane = self.geometry.shape().blocks_per_plane;
        let (plane, index) =
            (block.0 / blocks_per_plane, block.0 % blocks_per_plane / self.blocks_per_plane);
        let bank =
            if self.own_channels { plane % self.banks } else { plane / self.planes_per_bank };
        (index < self.per_bank).then(|| UnitIdx(bank * self.per_bank + index))
    }

    /// Return the blocks of `unit`, those of different planes first, so that they are erased in parallel.
    pub(crate) fn blocks(&self, unit: UnitIdx) -> impl Iterator<Item = BlockIdx> + use<> {
        let layout = *self;
        let pages = layout.geometry.shape().pages_per_block;
        (0..layout.blocks_per_plane).flat_map(move |row| {
            let first = row * pages * layout.planes_per_bank;
            (first..first + layout.planes_per_bank)
                .map(move |page| layout.address_of(unit, page).block)
        })
    }
}

/// The free merge units.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct FreeUnits {
    layout: UnitLayout,
    /// Per bank: erased units.
    clean: FreePool,
    /// Per bank: units that must be erased before they are used.
    dirty: FreePool,
    /// Each bank keeps one more erased unit, to finish merges that a power loss interrupted.
    #[serde(rename = "keeps_one")]
    reserves_unit: bool,
}

impl FreeUnits {
    /// Create the pool with every unit of the device erased.
    pub(crate) fn new(layout: UnitLayout, reserves_unit: bool) -> FreeUnits {
        FreeUnits {
            layout,
            reserves_unit,
            clean: FreePool::full(layout.banks, layout.per_bank),
            dirty: FreePool::empty(layout.banks),
        }
    }

    /// Take an erased unit of `bank`; erases one now if the bank has no erased unit.
    ///
    /// # Panics
    /// If the bank has no free unit. The accounting is then wrong: a valid profile leaves a free unit.
    pub(crate) fn take(&mut self, bank: u32, plan: &mut FlashPlan) -> UnitIdx {
        if self.reserves_unit {
            // Units that are already in the pool are older and are used first.
            self.erase_one(bank, plan);
        }
        if let Some(unit) = self.clean.take(bank) {
            return UnitIdx(unit);
        }
        let unit = UnitIdx(
            self.dirty.take(bank).expect("a valid profile leaves an erased unit in each bank"),
        );
        self.layout.blocks(unit).for_each(|block| plan.erase(block));
        unit
    }

    /// Erase one more unit in `bank`, if one is waiting to be erased.
    fn erase_one(&mut self, bank: u32, plan: &mut FlashPlan) -> bool {
        let unit = self.dirty.take(bank);
        if let Some(unit) = unit {
            self.layout.blocks(UnitIdx(unit)).for_each(|block| plan.erase(block));
            self.clean.put(bank, unit);
        }
        unit.is_some()
    }

    /// Remove `unit`, which is not erased, from the pool.
    pub(crate) fn take_used(&mut self, unit: UnitIdx) {
        self.clean.retain(|free| free != unit.0);
    }

    /// Add `unit`, which was erased.
    pub(crate) fn release(&mut self, unit: UnitIdx) {
        self.clean.put(self.layout.bank_of(unit), unit.0);
    }

    /// Add `unit`, whose content is obsolete and still to be erased.
    pub(crate) fn discard(&mut self, unit: UnitIdx) {
        self.dirty.put(self.layout.bank_of(unit), unit.0);
    }

    /// Erase a waiting unit in every bank; returns false if no bank has one.
    pub(crate) fn erase_some(&mut self, plan: &mut FlashPlan) -> bool {
        let mut erased = false;
        for bank in 0..self.layout.banks {
            erased |= self.erase_one(bank, plan);
        }
        erased
    }

    /// Check that every unit is either free or one of `others`, and listed once.
    #[cfg(test)]
    pub(crate) fn audit(&self, others: impl Iterator<Item = UnitIdx>) {
        let mut owners = vec![0; (self.layout.banks * self.layout.per_bank) as usize];
        let free = self.clean.iter().chain(self.dirty.iter()).map(UnitIdx);
        for unit in free.chain(others) {
            owners[unit.0 as usize] += 1;
        }
        assert!(owners.iter().all(|owners| *owners == 1), "every unit has one owner: {owners:?}");
    }
}

/// The journal of map changes: pages in order, in two alternating units of bank 0.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Journal {
    layout: UnitLayout,
    unit: Option<UnitIdx>,
    next: u32,
}

impl Journal {
    /// Units of bank 0 that the journal needs: one being filled, and one being erased.
    pub(crate) const UNITS: u32 = 2;

    pub(crate) fn new(layout: UnitLayout) -> Journal {
        Journal { layout, unit: None, next: 0 }
    }

    /// Store `pages` pages, one after the other; later steps of the plan wait for them.
    pub(crate) fn store(&mut self, pages: u32, free: &mut FreeUnits, plan: &mut FlashPlan) {
        for _ in 0..pages {
            if self.next == self.layout.unit_pages {
                self.unit.take().into_iter().for_each(|unit| free.discard(unit));
                self.next = 0;
            }
            let unit = *self.unit.get_or_insert_with(|| free.take(0, plan));
            plan.program_map(self.layout.address_of(unit, self.next));
            plan.barrier();
            self.next += 1;
        }
    }

    /// Return the unit being filled.
    #[cfg(test)]
    pub(crate) fn unit(&self) -> Option<UnitIdx> {
        self.unit
    }
}

// Recovery of merge units after a power loss.
//
// ```text
// all pages of a unit at their own offsets of one logical unit, of which no other has any       its data unit
// anything else                   the newest of every page is copied to a new unit; these are erased
// ```
//
// A log unit holds pages of several logical units, so all of those are merged.

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{UnitIdx, UnitLayout};
    use crate::flash::geometry::{Geometry, Shape};

    /// Two banks of two planes each, units of two blocks of each. Every page occurs once, in blocks of the unit,
    /// from whichever page the iteration starts.
    #[test]
    fn address_iterator_matches_single_addresses() {
        let geometry = Geometry::from(Shape {
            channels: 2,
            planes: 4,
            blocks_per_plane: 8,
            pages_per_block: 6,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 48,
        });
        for own_channels in [true, false] {
            let layout = UnitLayout::new(geometry, 24 * 4096, 4 * 4096, 2, own_channels).unwrap();
            for unit in (0..8).map(UnitIdx) {
                let places: Vec<_> = layout.addresses_from(unit, 0).take(24).collect();
                for offset in 0..24 {
                    assert_eq!(layout.address_of(unit, offset), places[offset as usize]);
                    assert!(
                        layout
                            .addresses_from(unit, offset)
                            .zip(&places[offset as usize..])
                            .all(|(one, other)| one == *other)
                    );
                }
                assert_eq!(
                    places.iter().map(|place| place.page.0).collect::<BTreeSet<_>>().len(),
                    24
                );
                for place in places {
                    assert_eq!(geometry.address_of(place.page), place);
                    assert_eq!(layout.unit_of(place.block), Some(unit));
                }
            }
        }
    }
}
