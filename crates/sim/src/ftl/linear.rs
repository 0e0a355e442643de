//! The linear FTL of low-end sticks: a few merge units are open at a time, each filled in order from where it
//! was opened; every other write goes to the unit's own log, or merges a whole unit.
//!
//! ```text
//! open unit   ....▓▓▓▓▓▓▓▓─▶      continues upwards, and downwards within a small window
//!                 ▒▒              a page that is written again goes to a replacement unit, once
//! its log     ░░░░─▶              all other pages, in the order of the writes, if it has one
//! ```
//!
//! **Source**: inferred from uFLIP (2009) Table 3 (Kingston DTI: no locality, four partitions, reverse
//! ×8, in place ×40, period 128; Kingston DTHX: 16 MB and eight partitions, both ×20); allocation units of
//! some megabytes and a handful of open ones are what users of low-end sticks report. No vendor published
//! it. A log for each unit is BAST's (Kim et al. 2002), for units instead of blocks.
//! **Faithful**: one run an open unit; the unit that was opened longest ago is closed for another one,
//! and gets the rest of its pages copied.
//! **Simplified**: pages of a block are written in any order, for which flash may need a table (`flash/replacement.rs`);
//! the map is in memory, its changes go to a journal.
//! **Ambiguous**: how a rewritten page is stored: here its unit has replacement units of its own, as many as
//! a page may be rewritten; then it goes to the log, and the unit is merged when that is full.

use uflip_core::{Error, Result};

use super::{FtlOptions, MergingFtl};
use crate::collections::bits;
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::extent::PageExtent;
use crate::ftl::run::Run;
use crate::keys::parameters;
use crate::pool::units::{FreeUnits, Journal, UnitIdx, UnitLayout};

parameters! {
    /// The linear FTL of low-end sticks.
    #[derive(Clone, PartialEq, Debug)]
    pub struct LinearPart {
        unit_bytes: u32 = "see above" in "bytes",
            "granularity of mapping, filling, merging and erasing";
        cluster_bytes: u32 = "a page to 64 pages; divides `unit_bytes`" in "bytes",
            "granularity of the log's map, and unit of windows";
        banks: u32 = "a divisor of the number of dies",
            "groups of dies; different banks merge at the same time";
        open_units: u32 = "1 or more",
            "units that may be open at a time";
        backward_clusters: u32 = "0 or more" in "clusters",
            "distance below its first write to which a unit may still be filled, downwards";
        rewrites: u32 = "0 or more",
            "number of times that a page of an open unit may be written again, in a replacement \
             unit each, before a merge";
        #[serde(default)]
        log_clusters: u32 = "0 to the clusters of a unit; 0 without the key" in "clusters",
            "clusters of the log of each open unit, which takes the pages that do not continue it; \
             0: such a page causes a merge";
        open_map_pages: u32 = "0 to all pages" in "pages",
            "map pages that are programmed when a unit is opened at its first page";
        switch_map_pages: u32 = "0 to all pages" in "pages",
            "map pages that are programmed when another stream or open unit continues";
        merge_map_pages: u32 = "0 to all pages" in "pages",
            "the same when a unit moves to a new location";
    }
}

/// The map and the open units.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Linear {
    part: LinearPart,
    layout: UnitLayout,
    free: FreeUnits,
    journal: Journal,
    /// Per logical unit: its data unit.
    map: Vec<Option<UnitIdx>>,
    /// Per logical page, one bit: the host wrote it and did not trim it.
    live: Vec<u64>,
    /// Units being filled, the one opened longest ago first.
    open: Vec<OpenUnit>,
    /// The logical unit of the last write.
    active: Option<u32>,
}

/// Marks a page of a log whose newest version is elsewhere.
const NONE: u32 = u32::MAX;

/// A unit being filled.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct OpenUnit {
    logical: u32,
    unit: UnitIdx,
    run: Run,
    /// The offset at which it was opened.
    base: u32,
    /// Rewritten pages, each round in a unit of its own, at their offsets.
    replacements: Vec<UnitReplacement>,
    /// Pages that the unit cannot take, in the order of the writes.
    #[serde(default)]
    log: Option<UnitLog>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct UnitLog {
    unit: UnitIdx,
    /// The offset in the data unit of each page of the log; a page may be there several times.
    pages: Vec<u32>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Replacement")]
struct UnitReplacement {
    unit: UnitIdx,
    /// One bit a page.
    programmed: Vec<u64>,
}

impl UnitReplacement {
    fn has(&self, offset: u32) -> bool {
        bits::has(&self.programmed, offset as usize)
    }
}

impl OpenUnit {
    /// Return the unit that has page `offset`, and its offset there, the newest version first.
    fn newest(&self, offset: u32) -> Option<(UnitIdx, u32)> {
        let logged = self.log.as_ref().and_then(|log| {
            let index = log.pages.iter().rposition(|page| *page == offset)?;
            Some((log.unit, index as u32))
        });
        let replaced = self.replacements.iter().rev().find(|other| other.has(offset));
        let unit = self.run.has(offset).then_some(self.unit);
        logged.or_else(|| Some((replaced.map(|other| other.unit).or(unit)?, offset)))
    }

    /// Return whether the unit has older versions of pages, so that a merge needs another unit.
    fn is_superseded(&self) -> bool {
        let log = self.log.as_ref();
        !self.replacements.is_empty()
            || log.is_some_and(|log| log.pages.iter().any(|page| self.run.has(*page)))
    }
}

fn layout(part: &LinearPart, geometry: Geometry) -> Result<UnitLayout> {
    UnitLayout::new(geometry, part.unit_bytes, part.cluster_bytes, part.banks, false)
}

impl MergingFtl for Linear {
    type Table = LinearPart;

    fn check(options: &FtlOptions<'_, LinearPart>) -> Result<()> {
        let part = options.table;
        options.check_map_pages(&[
            ("open_map_pages", part.open_map_pages),
            ("switch_map_pages", part.switch_map_pages),
            ("merge_map_pages", part.merge_map_pages),
        ])?;
        let layout = layout(part, options.geometry)?;
        if part.open_units > layout.logical_units() {
            return Err(Error::usage("The number of open units is out of range")
                .got(format!("open_units = {}", part.open_units))
                .allowed(format!("1 to {}, the units of the host's data", layout.logical_units()))
                .action("change open_units"));
        }
        if part.log_clusters > layout.clusters_per_unit() {
            return Err(Error::usage("The log of an open unit is larger than a unit")
                .got(format!("log_clusters = {}", part.log_clusters))
                .allowed(format!("0 to {}, the clusters of a unit", layout.clusters_per_unit()))
                .action("change log_clusters"));
        }
        // All open units may be in one bank, and one more is needed while one is merged.
        let per_open_unit = u64::from(part.rewrites) + 1 + u64::from(part.log_clusters > 0);
        let in_bank = u64::from(part.open_units) * per_open_unit;
        let extra_uses = "open units with their replacements and logs, and one for merges, in every \
                          bank; a journal";
        layout.check(in_bank + 1 + u64::from(options.durable), Journal::UNITS.into(), extra_uses)
    }

    fn new(options: &FtlOptions<'_, LinearPart>) -> Linear {
        let part = options.table.clone();
        let layout = layout(&part, options.geometry).expect("the options were checked");
        let pages = options.geometry.shape().logical_pages as usize;
        Linear {
            layout,
            free: FreeUnits::new(layout, options.durable),
            journal: Journal::new(layout),
            map: vec![None; layout.logical_units() as usize],
            live: vec![0; pages.div_ceil(64)],
            open: Vec::with_capacity(part.open_units as usize),
            active: None,
            part,
        }
    }

    fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        if !bits::has(&self.live, page.0 as usize) {
            return None;
        }
        let (logical, offset) = self.unit_of(page);
        let open = self.open.iter().find(|open| open.logical == logical);
        let data = self.map[logical as usize].map(|unit| (unit, offset));
        let newest = open.and_then(|open| open.newest(offset)).or(data);
        newest.map(|(unit, offset)| self.layout.address_of(unit, offset))
    }

    fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let (logical, offset) = self.unit_of(page);
        if self.active != Some(logical) {
            self.active = Some(logical);
            self.store_map(self.part.switch_map_pages, plan);
        }
        let index = self.open_for(page, extent, plan);
        let merge_from = extent.merge_source(page, || self.lookup(page));
        let open = &mut self.open[index];
        let first = logical * self.layout.unit_pages;
        let below = open.run.ends_below(page, extent, first) && self.is_in_window(index, offset);
        let open = &mut self.open[index];
        if offset == open.run.next() || below {
            plan.program(self.layout.address_of(open.unit, offset), merge_from);
            open.run.take(offset);
            // An older version in the log must not be read.
            open.log.iter_mut().for_each(|log| {
                log.pages.iter_mut().filter(|page| **page == offset).for_each(|page| *page = NONE);
            });
        } else if self.is_rewritable(index, offset) {
            self.replace(index, offset, merge_from, plan);
        } else {
            self.append(index, offset, merge_from, plan);
        }
        bits::insert(&mut self.live, page.0 as usize);
        let open = &self.open[index];
        if open.run.is_full(self.layout.unit_pages) && !open.is_superseded() {
            plan.barrier();
            self.close(index, plan);
        }
    }

    fn trim(&mut self, page: Lpn) {
        bits::remove(&mut self.live, page.0 as usize);
    }

    fn group_of(&self, block: BlockIdx) -> u32 {
        self.layout.group_of(block)
    }

    /// Open units are merged; the journal starts empty.
    fn rebuild(&mut self, survey: &Survey<'_>, plan: &mut FlashPlan) {
        let units = self.layout.restore(survey, &mut self.free);
        for (logical, unit) in self.layout.merge_found(units, survey, &mut self.free, plan) {
            self.map[logical as usize] = Some(unit);
        }
        let pages = (0..self.layout.logical_units() * self.layout.unit_pages).map(Lpn);
        pages.filter(|page| survey.address_of(*page).is_some()).for_each(|page| {
            bits::insert(&mut self.live, page.0 as usize);
        });
    }

    #[cfg(test)]
    fn audit(&self) {
        let data = self.map.iter().flatten().copied();
        let open = self.open.iter().map(|open| open.unit);
        let replacements = self.open.iter().flat_map(|open| &open.replacements);
        let replacements = replacements.map(|replacement| replacement.unit);
        let logs = self.open.iter().filter_map(|open| open.log.as_ref()).map(|log| log.unit);
        let open = open.chain(replacements).chain(logs);
        self.free.audit(data.chain(open).chain(self.journal.unit()));
    }
}

impl Linear {
    /// Return the logical unit of `page`, and its offset there.
    #[inline]
    fn unit_of(&self, page: Lpn) -> (u32, u32) {
        (page.0 / self.layout.unit_pages, page.0 % self.layout.unit_pages)
    }

    /// Return an open unit that can take `page`: the one that is open, if it can, or a new one.
    fn open_for(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) -> usize {
        let (logical, offset) = self.unit_of(page);
        if let Some(index) = self.open.iter().position(|open| open.logical == logical) {
            if self.takes(index, page, extent) {
                return index;
            }
            self.close(index, plan);
        } else if self.open.len() >= self.part.open_units as usize {
            self.close(0, plan);
        }
        plan.barrier();
        if offset == 0 {
            self.store_map(self.part.open_map_pages, plan);
        }
        let unit = self.free.take(self.layout.bank_of_logical(logical), plan);
        let run = Run::at(offset);
        self.open.push(OpenUnit {
            logical,
            unit,
            run,
            base: offset,
            replacements: Vec::new(),
            log: None,
        });
        self.open.len() - 1
    }

    /// Return whether an open unit can take `page` without a merge.
    fn takes(&self, index: usize, page: Lpn, extent: &PageExtent) -> bool {
        let open = &self.open[index];
        let (logical, offset) = self.unit_of(page);
        let first = logical * self.layout.unit_pages;
        if offset == open.run.next() {
            return true;
        }
        if open.run.ends_below(page, extent, first) && self.is_in_window(index, offset) {
            return true;
        }
        let used = open.log.as_ref().map_or(0, |log| log.pages.len());
        let limit = self.part.log_clusters.saturating_mul(self.layout.cluster_pages);
        self.is_rewritable(index, offset) || used < limit as usize
    }

    /// Return whether page `offset` is near enough below the first write of an open unit.
    fn is_in_window(&self, index: usize, offset: u32) -> bool {
        let window = self.part.backward_clusters.saturating_mul(self.layout.cluster_pages);
        self.open[index].base.saturating_sub(offset) <= window
    }

    /// Return whether a replacement unit can take page `offset`, which an open unit already has.
    fn is_rewritable(&self, index: usize, offset: u32) -> bool {
        let open = &self.open[index];
        let rounds = open.replacements.iter().filter(|other| other.has(offset)).count();
        open.run.has(offset) && rounds < self.part.rewrites as usize
    }

    /// Append page `offset` to the log of an open unit.
    fn append(
        &mut self,
        index: usize,
        offset: u32,
        merge_from: Option<PageAddress>,
        plan: &mut FlashPlan,
    ) {
        let open = &mut self.open[index];
        let bank = self.layout.bank_of_logical(open.logical);
        let log = open.log.get_or_insert_with(|| {
            let capacity = (self.part.log_clusters * self.layout.cluster_pages) as usize;
            UnitLog { unit: self.free.take(bank, plan), pages: Vec::with_capacity(capacity) }
        });
        let to = self.layout.address_of(log.unit, log.pages.len() as u32);
        plan.program(to, merge_from);
        log.pages.push(offset);
    }

    /// Rewrite page `offset`, which an open unit already has.
    fn replace(
        &mut self,
        index: usize,
        offset: u32,
        merge_from: Option<PageAddress>,
        plan: &mut FlashPlan,
    ) {
        let open = &mut self.open[index];
        let round = open.replacements.iter().take_while(|other| other.has(offset)).count();
        if round == open.replacements.len() {
            let unit = self.free.take(self.layout.bank_of_logical(open.logical), plan);
            let programmed = vec![0; self.layout.unit_pages.div_ceil(64) as usize];
            open.replacements.push(UnitReplacement { unit, programmed });
        }
        let replacement = &mut open.replacements[round];
        plan.program(self.layout.address_of(replacement.unit, offset), merge_from);
        bits::insert(&mut replacement.programmed, offset as usize);
    }

    /// Merge an open unit: it becomes the data unit, and the rest of the old one is copied to it. If pages of
    /// it were replaced, all are copied to a new unit.
    fn close(&mut self, index: usize, plan: &mut FlashPlan) {
        let OpenUnit { logical, unit, run, .. } = self.open[index];
        let replaced = self.open[index].is_superseded();
        let target = if replaced {
            self.free.take(self.layout.bank_of_logical(logical), plan)
        } else {
            unit
        };
        let first = logical * self.layout.unit_pages;
        for offset in 0..self.layout.unit_pages {
            if (replaced || !run.has(offset))
                && let Some(from) = self.lookup(Lpn(first + offset))
            {
                plan.copy(from, self.layout.address_of(target, offset));
            }
        }
        plan.count_merge(match (replaced, run.is_full(self.layout.unit_pages)) {
            (true, _) => Merge::Full,
            (false, true) => Merge::Switch,
            (false, false) => Merge::Partial,
        });
        let open = self.open.remove(index);
        if replaced {
            self.free.discard(unit);
        }
        open.replacements.iter().for_each(|replacement| self.free.discard(replacement.unit));
        open.log.iter().for_each(|log| self.free.discard(log.unit));
        let old = self.map[logical as usize].replace(target);
        old.into_iter().for_each(|old| self.free.discard(old));
        self.store_map(self.part.merge_map_pages, plan);
    }

    fn store_map(&mut self, pages: u32, plan: &mut FlashPlan) {
        self.journal.store(pages, &mut self.free, plan);
    }
}
