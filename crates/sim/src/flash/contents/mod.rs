//! What is on flash, page by page, while power is on and after it was cut: the spare areas.
//!
//! An FTL and its [`Nand`](super::nand::Nand) know what was decided; what dies have done of that follows in time. So
//! this is kept twice, and every operation in between is a record:
//!
//! ```text
//! decided    ▓▓▓▓▓▓▓▓░░   what spare areas will say once everything under way has ended
//! records         ▒▒▒     programs and erases: waiting for their die │ under way │ known to have ended
//! on flash   ▓▓▓▓▓        what they say now
//! ```
//!
//! Where power is cut, what waited never happened, a page whose cells were being programmed cannot be read
//! (it is *torn*), and a block that was being erased has to be erased again.
//!
//! **Source**: uFLIP (2009) §2.2: "the inverse map is stored in the flash"; Gupta et al. (2009) §3 and Birrell
//! et al. (2007) keep logical page and a sequence number in the spare area.
//! **Faithful**: nothing is known after power was lost but what pages say that can be read; a page is whole or
//! torn; of cells that hold several bits those programmed before are not disturbed.
//! **Simplified**: which number a version of a page has counts the writes of that page, where drives count all
//! writes; it keeps its number as it is moved. Reading a torn page always fails.
//! **Ambiguous**: in which of the two an operation is at the very moment of its end; it has ended.

mod cut;
mod defects;
mod physical_image;
pub(crate) mod planned;
mod records;
pub(crate) mod survey;
mod wear;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::geometry::{BlockIdx, Geometry, Place, Ppn};
use cut::Cut;
pub(crate) use cut::{Found, Image};
pub(crate) use defects::{Defect, Defects};
use physical_image::Beneath;
use records::{Records, What};

/// What a page says of itself when it is read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) enum Cell {
    /// That it was not programmed since its block was erased.
    #[default]
    Erased,
    /// Nothing: it was being programmed when power was lost, or that failed.
    Torn,
    /// That it was programmed with nothing of the host's: metadata of its block, or to fill up a page.
    Nothing,
    /// Which logical page it holds, and which version of that; beyond the pages of the host those of the map.
    Holds { page: u32, version: u64 },
}

/// What the spare areas of a block say of it.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Label {
    /// Which of its plane's open blocks it was.
    pub(crate) role: u8,
    /// So many blocks had been opened by then, it among them; 0: nothing was programmed in it.
    pub(crate) opened: u64,
    /// How often it had been erased.
    pub(crate) erases: u32,
    /// The block of the flash that it is: itself, unless another stands in for it.
    pub(crate) by: BlockIdx,
}

/// What is on flash, and what will be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    geometry: Geometry,
    decided: Vec<Cell>,
    on_flash: Vec<Cell>,
    /// What blocks will say of themselves, and what they say now.
    labels: Vec<Label>,
    labels_on_flash: Vec<Label>,
    opened: u64,
    /// Per block: how often it was erased, as the FTL knows.
    erases: Vec<u32>,
    /// Blocks whose erase was interrupted.
    half_erased: Vec<bool>,
    records: Records,
    /// Per logical page: how often it was written.
    written: Vec<u64>,
    /// By the number of its account: which version a page of the host brings that is under way.
    arrivals: Vec<u64>,
    /// Of pages in the write cache the newest version there, and those that have left it and are not decided.
    cached: BTreeMap<u32, u64>,
    leaving: BTreeMap<u32, VecDeque<u64>>,
    /// Of pages that an FTL keeps in memory the version there. What the write cache has of them is newer: nothing
    /// comes past it that it has not let go before.
    kept: BTreeMap<u32, u64>,
    /// Pages of which capacitors have saved a version that is nowhere else.
    saved: BTreeMap<u32, u64>,
    /// Pages that the host has deallocated, with the version that it needs no more.
    deallocated: BTreeMap<u32, u64>,
    /// What is not to be used, where flash wears out.
    defects: Option<Box<Defects>>,
    /// The blocks of the flash, where others stand in for those that are known here.
    beneath: Option<Box<Beneath>>,
}

/// Whose version a page of the host is that is programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// That which came with the I/O of this account.
    Account(u32),
    /// That which left the write cache.
    Cache,
    /// That which an FTL has kept in memory.
    Kept,
    /// That which another page holds, or held.
    Page(Ppn),
    /// A new one of the map.
    Map,
    /// The newest of which the device knows.
    Newest,
}

impl Contents {
    /// Nothing is programmed, of so many logical pages.
    pub(crate) fn new(geometry: Geometry, logical_pages: u32) -> Contents {
        let pages = geometry.pages() as usize;
        Contents {
            geometry,
            decided: vec![Cell::Erased; pages],
            on_flash: vec![Cell::Erased; pages],
            labels: vec![Label::default(); geometry.blocks() as usize],
            labels_on_flash: vec![Label::default(); geometry.blocks() as usize],
            opened: 0,
            erases: vec![0; geometry.blocks() as usize],
            half_erased: vec![false; geometry.blocks() as usize],
            records: Records::default(),
            written: vec![0; logical_pages as usize],
            arrivals: Vec::new(),
            cached: BTreeMap::new(),
            leaving: BTreeMap::new(),
            kept: BTreeMap::new(),
            saved: BTreeMap::new(),
            deallocated: BTreeMap::new(),
            defects: None,
            beneath: None,
        }
    }

    /// The data of the host's `page` has come, and is under way with this account or in the write cache.
    pub(crate) fn arrived(&mut self, page: u32, account: u32, is_cached: bool) {
        let version = &mut self.written[page as usize];
        *version += 1;
        if is_cached {
            self.cached.insert(page, *version);
            return;
        }
        let place = account as usize;
        self.arrivals.resize(self.arrivals.len().max(place + 1), 0);
        self.arrivals[place] = *version;
    }

    /// What has come of `page` from the host or from the write cache stays in memory.
    pub(crate) fn keeps(&mut self, page: u32, from: Origin) {
        let version = self.version(page, from, true);
        self.kept.insert(page, version);
    }

    /// What stayed in memory of `page` is not needed any more.
    pub(crate) fn keeps_no_more(&mut self, page: u32) {
        self.kept.remove(&page);
    }

    /// Which version stays in memory of which page.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> Vec<(u32, u64)> {
        self.kept.iter().map(|(page, version)| (*page, *version)).collect()
    }

    /// What the write cache has of `page` leaves it for the flash.
    pub(crate) fn leaves_cache(&mut self, page: u32) {
        let version = self.cached.remove(&page).unwrap_or(self.written[page as usize]);
        self.leaving.entry(page).or_default().push_back(version);
    }

    /// `page` is in the write cache no more: it holds nothing.
    pub(crate) fn trimmed(&mut self, page: u32) {
        self.cached.remove(&page);
        self.deallocated.insert(page, self.written[page as usize]);
    }

    /// What has left the write cache of `page` first is not written: it was trimmed meanwhile.
    pub(crate) fn forgets(&mut self, page: u32) {
        let Some(leaving) = self.leaving.get_mut(&page) else { return };
        leaving.pop_front();
        if leaving.is_empty() {
            self.leaving.remove(&page);
        }
    }

    fn version(&mut self, page: u32, from: Origin, programmed: bool) -> u64 {
        match from {
            Origin::Account(account) => self.arrivals[account as usize],
            Origin::Cache => {
                let leaving = self.leaving.get_mut(&page).expect("it has left the cache");
                let version = leaving[0];
                if programmed {
                    leaving.pop_front();
                    if leaving.is_empty() {
                        self.leaving.remove(&page);
                    }
                }
                version
            }
            Origin::Kept => self.kept.remove(&page).expect("it was kept"),
            Origin::Page(from) => match self.decided[from.0 as usize] {
                Cell::Holds { version, .. } => version,
                _ => 0,
            },
            Origin::Map => {
                self.written[page as usize] += 1;
                self.written[page as usize]
            }
            Origin::Newest => self.written[page as usize],
        }
    }

    /// The FTL puts `page`, or nothing of anybody's, to `to`; of which block of its plane `role` says.
    pub(crate) fn decide(
        &mut self,
        to: Place,
        page: Option<(u32, Origin)>,
        role: u8,
        programmed: bool,
    ) {
        let cell = match page {
            None => Cell::Nothing,
            Some((page, from)) => {
                Cell::Holds { page, version: self.version(page, from, programmed) }
            }
        };
        let label = &mut self.labels[to.block.0 as usize];
        if label.opened == 0 {
            self.opened += 1;
            let erases = self.erases[to.block.0 as usize];
            *label = Label { role, opened: self.opened, erases, by: to.block };
        }
        self.decided[to.page.0 as usize] = if programmed { cell } else { Cell::Torn };
    }

    /// The flash page of `to` is to be programmed with what was decided; returns the number of the record.
    pub(crate) fn program(&mut self, to: Place) -> u32 {
        let units = self.geometry.units();
        let first = to.page.0 / units * units;
        let cells = &self.decided[first as usize..(first + units) as usize];
        let label = self.labels[to.block.0 as usize];
        self.records.add(What::Program(Ppn(first)), cells, label)
    }

    /// `block` is to be erased; returns the number of the record.
    pub(crate) fn erase(&mut self, block: BlockIdx) -> u32 {
        let what = What::Erase { known: Some(block), block, fails: false };
        self.records.add(what, &[], Label::default())
    }

    /// The FTL takes `block` for erased.
    pub(crate) fn decide_erased(&mut self, block: BlockIdx) {
        let pages = self.pages_of(block);
        self.decided[pages].fill(Cell::Erased);
        self.labels[block.0 as usize] = Label::default();
        self.erases[block.0 as usize] += 1;
    }

    fn pages_of(&self, block: BlockIdx) -> std::ops::Range<usize> {
        let first = self.geometry.first_page(block).0 as usize;
        first..first + self.geometry.shape().pages_per_block as usize
    }

    /// The cells of a record are at work from `begin` on, and perhaps not all the time until they end.
    pub(crate) fn begun(&mut self, record: u32, begin: u64) {
        self.records.begun(record, begin);
    }

    /// The cells of a record are at work from `begin` to `end`. Whoever waited for that, when it is over.
    pub(crate) fn known(&mut self, record: u32, begin: u64, end: u64, now: u64) -> Vec<(u64, u64)> {
        let told = self.records.known(record, begin, end);
        self.let_end(now);
        told
    }

    /// `token` is to be told when all programs have ended that were asked for by now: when that is where it
    /// is known already, which may be past.
    pub(crate) fn after_programs(&mut self, token: u64) -> Option<u64> {
        self.records.after_programs(token)
    }

    /// The same of programs that were asked for before `record` was.
    pub(crate) fn after_programs_before(&mut self, record: u32, token: u64) -> Option<u64> {
        self.records.after_programs_before(record, token)
    }

    /// What has ended by `until` is on flash.
    fn let_end(&mut self, until: u64) {
        while let Some((what, cells, label)) = self.records.ended(until) {
            self.ends(what, &cells, label);
            self.records.reuse(cells);
        }
    }

    /// An operation has ended.
    fn ends(&mut self, what: What, cells: &[Cell], label: Label) {
        match what {
            What::Program(first) => {
                self.fill(first, cells, label);
                let block = self.geometry.block_of(first);
                self.labels_on_flash[block.0 as usize] = label;
                self.on_flash[first.0 as usize..][..cells.len()].copy_from_slice(cells);
            }
            What::List(defect, block) => self.listed(defect, block, cells),
            What::Copy(copied) => self.copy(copied, false),
            What::Erase { known, block, fails } => self.erase_of(known, block, fails),
        }
    }
}
