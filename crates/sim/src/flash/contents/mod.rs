//! The content of the flash, page by page, while power is on and after a power loss: the spare areas.
//!
//! An FTL and its [`Nand`](super::nand::Nand) hold decisions; the dies carry them out later. The content is
//! therefore stored twice, and every operation in between is a record:
//!
//! ```text
//! decided    ▓▓▓▓▓▓▓▓░░   the spare areas once everything in progress has ended
//! records         ▒▒▒     programs and erases: waiting for their die │ under way │ end known
//! on flash   ▓▓▓▓▓        the spare areas now
//! ```
//!
//! After a power loss, queued operations never happened, a page whose cells were being programmed cannot be
//! read (it is *torn*), and a block that was being erased must be erased again.
//!
//! **Source**: uFLIP (2009) §2.2: "the inverse map is stored in the flash"; Gupta et al. (2009) §3 and Birrell
//! et al. (2007) keep logical page and a sequence number in the spare area.
//! **Faithful**: after a power loss only readable pages are known; a page is whole or torn; if cells hold
//! several bits, those programmed before are not disturbed.
//! **Simplified**: the version number of a page counts the writes of that page, whereas drives count all
//! writes; a page keeps its number when it is moved. Reading a torn page always fails.
//! **Ambiguous**: the state of an operation at the very moment of its end; it has ended.

mod defects;
mod physical_image;
pub(crate) mod plan_notes;
mod power_cut;
mod records;
pub(crate) mod survey;
mod wear;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::geometry::{BlockIdx, Geometry, PageAddress, Ppn};
pub(crate) use defects::{Defect, Defects};
use physical_image::PhysicalImage;
use power_cut::PowerCutEffect;
pub(crate) use power_cut::{BlockCondition, Image};
use records::{OpRecords, RecordKind};

/// The content of a page according to its spare area.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename = "Cell")]
pub(crate) enum PhysicalPage {
    /// Not programmed since its block was erased.
    #[default]
    Erased,
    /// Unreadable: it was being programmed when power was lost, or the program failed.
    Torn,
    /// Programmed without a logical page: metadata of its block, or padding.
    Nothing,
    /// A logical page and its version; numbers beyond the host's pages are mapping pages.
    Holds { page: u32, version: u64 },
}

/// The label of a block in its spare areas.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Label {
    /// Its role: which of its plane's open blocks it was.
    pub(crate) role: u8,
    /// The number of blocks opened by then, including this one; 0: no page of it is programmed.
    pub(crate) opened: u64,
    /// Its erase count.
    pub(crate) erases: u32,
    /// The physical block: the block itself, unless another one replaces it.
    pub(crate) by: BlockIdx,
}

/// The content of the flash, now and after the operations in progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    geometry: Geometry,
    decided: Vec<PhysicalPage>,
    on_flash: Vec<PhysicalPage>,
    /// Decided labels of blocks, and those on flash.
    labels: Vec<Label>,
    labels_on_flash: Vec<Label>,
    opened: u64,
    /// Per block: its erase count as the FTL has it.
    erases: Vec<u32>,
    /// Blocks whose erase was interrupted.
    half_erased: Vec<bool>,
    records: OpRecords,
    /// Per logical page: the number of its writes.
    written: Vec<u64>,
    /// By account number: the version that a host page under way brings.
    arrivals: Vec<u64>,
    /// The newest version of each page in the write cache, and versions that have left it and are not
    /// decided.
    cached: BTreeMap<u32, u64>,
    #[serde(rename = "leaving")]
    flushing: BTreeMap<u32, VecDeque<u64>>,
    /// The version of each page that an FTL holds in memory. A version in the write cache is newer: data
    /// bypasses the cache only after the cache has released the page.
    in_memory: BTreeMap<u32, u64>,
    /// Pages whose only copy was saved by capacitors.
    saved: BTreeMap<u32, u64>,
    /// Deallocated pages, with the version that the host no longer needs.
    deallocated: BTreeMap<u32, u64>,
    /// Lists of defects, if flash wears out.
    defects: Option<Box<Defects>>,
    /// The physical blocks, if the FTL's blocks can be replaced by others.
    physical_image: Option<Box<PhysicalImage>>,
}

/// The source of the version of a host page that is programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// It came with the I/O of this account.
    Account(u32),
    /// It left the write cache.
    Cache,
    /// It was held in memory by an FTL.
    InMemory,
    /// It is a copy of another page.
    Page(Ppn),
    /// It is a new version of a mapping page.
    Map,
    /// It is the newest version that the device has.
    Newest,
}

impl Contents {
    /// Create erased flash for `logical_pages` logical pages.
    pub(crate) fn new(geometry: Geometry, logical_pages: u32) -> Contents {
        let pages = geometry.pages() as usize;
        Contents {
            geometry,
            decided: vec![PhysicalPage::Erased; pages],
            on_flash: vec![PhysicalPage::Erased; pages],
            labels: vec![Label::default(); geometry.blocks() as usize],
            labels_on_flash: vec![Label::default(); geometry.blocks() as usize],
            opened: 0,
            erases: vec![0; geometry.blocks() as usize],
            half_erased: vec![false; geometry.blocks() as usize],
            records: OpRecords::default(),
            written: vec![0; logical_pages as usize],
            arrivals: Vec::new(),
            cached: BTreeMap::new(),
            flushing: BTreeMap::new(),
            in_memory: BTreeMap::new(),
            saved: BTreeMap::new(),
            deallocated: BTreeMap::new(),
            defects: None,
            physical_image: None,
        }
    }

    /// Note that the data of the host's `page` arrived, with this account or in the write cache.
    pub(crate) fn arrived(&mut self, page: u32, account: u32, is_cached: bool) {
        let version = &mut self.written[page as usize];
        *version += 1;
        if is_cached {
            self.cached.insert(page, *version);
            return;
        }
        let index = account as usize;
        self.arrivals.resize(self.arrivals.len().max(index + 1), 0);
        self.arrivals[index] = *version;
    }

    /// Note that the version of `page` from the host or from the write cache stays in memory.
    pub(crate) fn mark_in_memory(&mut self, page: u32, from: Origin) {
        let version = self.version(page, from, true);
        self.in_memory.insert(page, version);
    }

    /// Note that the version of `page` in memory is no longer needed.
    pub(crate) fn release_from_memory(&mut self, page: u32) {
        self.in_memory.remove(&page);
    }

    /// Return the version of each page that is held in memory.
    #[cfg(test)]
    pub(crate) fn in_memory(&self) -> Vec<(u32, u64)> {
        self.in_memory.iter().map(|(page, version)| (*page, *version)).collect()
    }

    /// Note that the version of `page` in the write cache leaves it for the flash.
    pub(crate) fn page_left_cache(&mut self, page: u32) {
        let version = self.cached.remove(&page).unwrap_or(self.written[page as usize]);
        self.flushing.entry(page).or_default().push_back(version);
    }

    /// Note that `page` was trimmed; the write cache drops it.
    pub(crate) fn trimmed(&mut self, page: u32) {
        self.cached.remove(&page);
        self.deallocated.insert(page, self.written[page as usize]);
    }

    /// Drop the version of `page` that left the write cache first: it was trimmed meanwhile and is not
    /// written.
    pub(crate) fn forget_flush(&mut self, page: u32) {
        let Some(leaving) = self.flushing.get_mut(&page) else { return };
        leaving.pop_front();
        if leaving.is_empty() {
            self.flushing.remove(&page);
        }
    }

    fn version(&mut self, page: u32, from: Origin, programmed: bool) -> u64 {
        match from {
            Origin::Account(account) => self.arrivals[account as usize],
            Origin::Cache => {
                let leaving = self.flushing.get_mut(&page).expect("the page is being flushed");
                let version = leaving[0];
                if programmed {
                    leaving.pop_front();
                    if leaving.is_empty() {
                        self.flushing.remove(&page);
                    }
                }
                version
            }
            Origin::InMemory => self.in_memory.remove(&page).expect("the FTL buffers the page"),
            Origin::Page(from) => match self.decided[from.0 as usize] {
                PhysicalPage::Holds { version, .. } => version,
                _ => 0,
            },
            Origin::Map => {
                self.written[page as usize] += 1;
                self.written[page as usize]
            }
            Origin::Newest => self.written[page as usize],
        }
    }

    /// Record the FTL's decision to program `page`, or no logical page, at `to`, in a block with this `role`.
    pub(crate) fn decide(
        &mut self,
        to: PageAddress,
        page: Option<(u32, Origin)>,
        role: u8,
        programmed: bool,
    ) {
        let cell = match page {
            None => PhysicalPage::Nothing,
            Some((page, from)) => {
                PhysicalPage::Holds { page, version: self.version(page, from, programmed) }
            }
        };
        let label = &mut self.labels[to.block.0 as usize];
        if label.opened == 0 {
            self.opened += 1;
            let erases = self.erases[to.block.0 as usize];
            *label = Label { role, opened: self.opened, erases, by: to.block };
        }
        self.decided[to.page.0 as usize] = if programmed { cell } else { PhysicalPage::Torn };
    }

    /// Queue the program of the flash page of `to` with the decided content; returns the number of the
    /// record.
    pub(crate) fn program(&mut self, to: PageAddress) -> u32 {
        let units = self.geometry.units();
        let first = to.page.0 / units * units;
        let cells = &self.decided[first as usize..(first + units) as usize];
        let label = self.labels[to.block.0 as usize];
        self.records.add(RecordKind::Program(Ppn(first)), cells, label)
    }

    /// Queue the erase of `block`; returns the number of the record.
    pub(crate) fn erase(&mut self, block: BlockIdx) -> u32 {
        let kind = RecordKind::Erase { logical: Some(block), block, fails: false };
        self.records.add(kind, &[], Label::default())
    }

    /// Record the FTL's decision to erase `block`.
    pub(crate) fn decide_erased(&mut self, block: BlockIdx) {
        let pages = self.pages_of(block);
        self.decided[pages].fill(PhysicalPage::Erased);
        self.labels[block.0 as usize] = Label::default();
        self.erases[block.0 as usize] += 1;
    }

    fn pages_of(&self, block: BlockIdx) -> std::ops::Range<usize> {
        let first = self.geometry.first_page(block).0 as usize;
        first..first + self.geometry.shape().pages_per_block as usize
    }

    /// Record that the cells of a record are busy from `begin` on, possibly with interruptions.
    pub(crate) fn set_begin(&mut self, record: u32, begin: u64) {
        self.records.set_begin(record, begin);
    }

    /// Record that the cells of a record are busy from `begin` to `end`. Returns the waiters that this
    /// completes, with their times.
    pub(crate) fn set_times(
        &mut self,
        record: u32,
        begin: u64,
        end: u64,
        now: u64,
    ) -> Vec<(u64, u64)> {
        let waiters = self.records.set_times(record, begin, end);
        self.apply_ended(now);
        waiters
    }

    /// Register `token` to be returned when all programs queued so far have ended. Returns that time,
    /// possibly past, if it is already known.
    pub(crate) fn after_programs(&mut self, token: u64) -> Option<u64> {
        self.records.after_programs(token)
    }

    /// Like [`Contents::after_programs`], for the programs queued before `record`.
    pub(crate) fn after_programs_before(&mut self, record: u32, token: u64) -> Option<u64> {
        self.records.after_programs_before(record, token)
    }

    /// Apply the operations that have ended by `until`.
    fn apply_ended(&mut self, until: u64) {
        while let Some((kind, cells, label)) = self.records.take_ended(until) {
            self.apply(kind, &cells, label);
            self.records.reuse(cells);
        }
    }

    /// Apply an operation that has ended.
    fn apply(&mut self, kind: RecordKind, cells: &[PhysicalPage], label: Label) {
        match kind {
            RecordKind::Program(first) => {
                self.fill(first, cells, label);
                let block = self.geometry.block_of(first);
                self.labels_on_flash[block.0 as usize] = label;
                self.on_flash[first.0 as usize..][..cells.len()].copy_from_slice(cells);
            }
            RecordKind::List(defect, block) => self.list_defect(defect, block, cells),
            RecordKind::Copy(copied) => self.copy(copied, false),
            RecordKind::Erase { logical, block, fails } => {
                self.erase_physical(logical, block, fails)
            }
        }
    }
}
