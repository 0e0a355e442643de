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
mod power_cut;
pub(crate) mod survey;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};

use super::geometry::{BlockIdx, Geometry, PageAddress, Ppn};
use super::plan::{Cmd, FlashPlan};
use super::replacement::{Note, PageContent};
use crate::collections::bits;
pub(crate) use defects::{Defect, Defects};
use physical_image::PhysicalImage;
use power_cut::PowerCutEffect;
pub(crate) use power_cut::{BlockCondition, Image};

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

    /// Return the newest version of `page` that is in memory: cached, being flushed, or buffered.
    pub(crate) fn version_in_memory(&self, page: u32) -> Option<u64> {
        let flushing = || self.flushing.get(&page)?.back().copied();
        let cached = self.cached.get(&page).copied().or_else(flushing);
        cached.or_else(|| self.in_memory.get(&page).copied())
    }

    /// Return the version of `page` at `at`, once everything in progress has ended; 0 if another
    /// page is there.
    pub(crate) fn decided_version(&self, page: u32, at: Option<Ppn>) -> u64 {
        match at.map(|at| self.decided[at.0 as usize]) {
            Some(PhysicalPage::Holds { page: there, version }) if there == page => version,
            _ => 0,
        }
    }

    /// Return the number of writes of `page`.
    pub(crate) fn written_version(&self, page: u32) -> u64 {
        self.written[page as usize]
    }

    /// Return the version of `page` that was deallocated last; 0 if it never was.
    pub(crate) fn trimmed_version(&self, page: u32) -> u64 {
        self.deallocated.get(&page).copied().unwrap_or(0)
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

// Programs and erases that have not ended, and the waiters for them.

/// The change that an operation makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum RecordKind {
    /// Programs a flash page, from this first page on.
    Program(Ppn),
    /// Programs the list of defects of a plane, with an entry for this block.
    List(Defect, BlockIdx),
    /// Copies the next page of a block to another. If it `ends` the move, the new block holds the content of
    /// this block of the FTL, except that of the failed page.
    Copy(PageCopy),
    /// Erases a physical block, which was the block `logical` of the FTL, if any.
    Erase { logical: Option<BlockIdx>, block: BlockIdx, fails: bool },
}

/// A copy of a page of `old`, which holds `pages` pages, and one more if a program of it has `failed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct PageCopy {
    old: BlockIdx,
    into: BlockIdx,
    pages: u32,
    failed: bool,
    ends: Option<(BlockIdx, Option<Ppn>)>,
}

impl RecordKind {
    /// Return whether an erase waits for it.
    fn programs(&self) -> bool {
        matches!(self, RecordKind::Program(_) | RecordKind::Copy(_))
    }

    /// Return the physical block that it erases.
    fn erases(&self) -> Option<BlockIdx> {
        match *self {
            RecordKind::Erase { block, .. } => Some(block),
            RecordKind::Program(_) | RecordKind::List(..) | RecordKind::Copy(_) => None,
        }
    }
}

/// An operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "Record")]
struct OpRecord {
    #[serde(rename = "what")]
    kind: RecordKind,
    /// The content of the pages after it; for a list, the listed pages are torn.
    cells: Vec<PhysicalPage>,
    /// The label of its block after it.
    label: Label,
    /// The number of records before it.
    number: u64,
    /// The time its cells are busy. Both are [`UNKNOWN`] while it waits; the end alone is if it can be
    /// suspended.
    begin: u64,
    end: u64,
    /// It has ended, but its times are not recorded yet.
    ended: bool,
}

const UNKNOWN: u64 = u64::MAX;

/// A waiter for the end of all programs before it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Barrier {
    token: u64,
    /// It waits for the records before this number.
    number: u64,
    /// The number of those whose end is unknown, and the latest known end.
    #[serde(rename = "left")]
    remaining: u32,
    latest: u64,
}

/// All records, by their number; 0 is not used.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(rename = "Records")]
struct OpRecords {
    records: Vec<Option<OpRecord>>,
    unused: Vec<u32>,
    #[serde(rename = "came")]
    next_number: u64,
    /// The known ends.
    ends: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Erases without a known end, in the order in which they were queued.
    erases: Vec<(BlockIdx, u32)>,
    barriers: Vec<Barrier>,
    /// Reused to avoid allocation.
    #[serde(skip)]
    spare: Vec<Vec<PhysicalPage>>,
}

impl OpRecords {
    /// Add an operation; returns its number, which is valid until it has ended.
    fn add(&mut self, kind: RecordKind, cells: &[PhysicalPage], label: Label) -> u32 {
        let mut copied = self.spare.pop().unwrap_or_default();
        copied.clear();
        copied.extend_from_slice(cells);
        let (number, begin, end) = (self.next_number, UNKNOWN, UNKNOWN);
        self.next_number += 1;
        let record = OpRecord { kind, cells: copied, label, number, begin, end, ended: false };
        let index = self.unused.pop().unwrap_or_else(|| {
            self.records.push(None);
            self.records.len() as u32 - 1
        });
        self.records[index as usize] = Some(record);
        self.erases.extend(kind.erases().map(|block| (block, index)));
        index + 1
    }

    /// Record that the cells of a record are busy from `begin` on, unless they already were.
    fn set_begin(&mut self, record: u32, begin: u64) {
        let record =
            self.records[record as usize - 1].as_mut().expect("the operation has not completed");
        record.begin = record.begin.min(begin);
    }

    /// Record that the cells of a record are busy from `begin` to `end`. Returns the waiters that this
    /// completes, with their times.
    fn set_times(&mut self, record: u32, begin: u64, end: u64) -> Vec<(u64, u64)> {
        let index = record - 1;
        let record =
            self.records[index as usize].as_mut().expect("the operation has not completed");
        if record.kind.erases().is_some() {
            self.erases.retain(|(_, erase)| *erase != index);
        }
        if record.ended {
            self.records[index as usize] = None;
            self.unused.push(index);
            return Vec::new();
        }
        (record.begin, record.end) = (record.begin.min(begin), end);
        self.ends.push(Reverse((end, record.number, index)));
        if self.barriers.is_empty() || !record.kind.programs() {
            return Vec::new();
        }
        for barrier in self.barriers.iter_mut().filter(|barrier| record.number < barrier.number) {
            barrier.remaining -= 1;
            barrier.latest = barrier.latest.max(end);
        }
        let mut over = Vec::new();
        self.barriers.retain(|barrier| {
            over.extend((barrier.remaining == 0).then_some((barrier.latest, barrier.token)));
            barrier.remaining > 0
        });
        over
    }

    /// See [`Contents::after_programs`](Contents::after_programs).
    fn after_programs(&mut self, token: u64) -> Option<u64> {
        self.after_programs_until(self.next_number, token)
    }

    /// Like [`OpRecords::after_programs`], for the programs queued before `record`.
    fn after_programs_before(&mut self, record: u32, token: u64) -> Option<u64> {
        let record =
            self.records[record as usize - 1].as_ref().expect("the operation has not completed");
        self.after_programs_until(record.number, token)
    }

    fn after_programs_until(&mut self, number: u64, token: u64) -> Option<u64> {
        let programs = self.records.iter().flatten();
        let programs = programs.filter(|record| record.kind.programs() && record.number < number);
        let (mut remaining, mut latest) = (0, 0);
        for record in programs {
            if record.end == UNKNOWN {
                remaining += 1;
            } else {
                latest = latest.max(record.end);
            }
        }
        if remaining == 0 {
            return Some(latest);
        }
        self.barriers.push(Barrier { token, number, remaining, latest });
        None
    }

    /// Return the operation that ended first, if one has by `until`; its cells go back to [`OpRecords::reuse`].
    /// If a program has ended, so has the erase before it, even if its end is not recorded yet: both may end
    /// at the same moment.
    fn take_ended(&mut self, until: u64) -> Option<(RecordKind, Vec<PhysicalPage>, Label)> {
        let Reverse((end, _, index)) = *self.ends.peek()?;
        if end > until {
            return None;
        }
        if let Some(erase) = self.erase_before(index) {
            let record =
                self.records[erase as usize].as_mut().expect("a pending erase is recorded");
            record.ended = true;
            return Some((record.kind, std::mem::take(&mut record.cells), record.label));
        }
        self.ends.pop();
        self.unused.push(index);
        let record = self.records[index as usize].take().expect("the operation has not completed");
        Some((record.kind, record.cells, record.label))
    }

    /// Return the erase before the program `index` in the same block, if its end is unknown.
    fn erase_before(&self, index: u32) -> Option<u32> {
        let record =
            self.records[index as usize].as_ref().expect("the operation has not completed");
        let target_block = match record.kind {
            RecordKind::Program(_) => record.label.by,
            RecordKind::Copy(copied) => copied.into,
            RecordKind::Erase { .. } | RecordKind::List(..) => return None,
        };
        let mut erases = self.erases.iter().filter(|(block, _)| *block == target_block);
        let (_, erase) = erases.find(|(_, erase)| {
            let erase =
                self.records[*erase as usize].as_ref().expect("a pending erase is recorded");
            !erase.ended && erase.number < record.number
        })?;
        Some(*erase)
    }

    fn reuse(&mut self, cells: Vec<PhysicalPage>) {
        self.spare.push(cells);
    }

    /// Remove and return all records that have not ended, in the order in which they were queued.
    fn drain(&mut self) -> Vec<OpRecord> {
        let records = self.records.drain(..).flatten();
        let mut all: Vec<OpRecord> = records.filter(|record| !record.ended).collect();
        all.sort_unstable_by_key(|record| record.number);
        *self = OpRecords { next_number: self.next_number, ..OpRecords::default() };
        all
    }
}

// Flash changes of the plans of merging FTLs, on a device that replaces no blocks.

/// Return the programs and erases of `plan`, in order.
pub(crate) fn notes_of(plan: &FlashPlan) -> Vec<Note> {
    let program = |to: PageAddress, holds| Note::Program { to, by: to.block, holds, fails: false };
    let copy = |from: PageAddress, to| program(to, PageContent::Page(from.page));
    let mut notes = Vec::new();
    for command in plan.commands() {
        match *command {
            Cmd::Program { to, .. } => notes.push(program(to, PageContent::Host)),
            Cmd::Copy { from, to } => notes.push(copy(from, to)),
            Cmd::CopySet { from, to, set } => {
                let words = plan.words(set);
                let pages = bits::members(words, 0, 64 * words.len()).map(|page| page as u32);
                notes.extend(pages.map(|page| copy(from.plus_pages(page), to.plus_pages(page))));
            }
            Cmd::CopyRow(row) => {
                notes.extend(plan.row(row).moves().map(|(from, to)| copy(from, to)));
            }
            Cmd::CopyStream(pages) => {
                notes.extend(plan.moves(pages).iter().map(|moved| match moved.from {
                    Some(from) => copy(from, moved.to),
                    None => program(moved.to, PageContent::Nothing),
                }));
            }
            Cmd::StoreMap(pages) => {
                notes.extend(
                    plan.moves(pages).iter().map(|moved| program(moved.to, PageContent::Map)),
                );
            }
            Cmd::ProgramMap(to) | Cmd::Parity(to) => notes.push(program(to, PageContent::Nothing)),
            Cmd::Erase { block, .. } => {
                notes.push(Note::Erase { logical: Some(block), block, fails: false });
            }
            Cmd::Read(_) | Cmd::LoadMap(_) | Cmd::FailedRead(_) | Cmd::FailedProgram(_) => {}
            Cmd::Count(_) | Cmd::Barrier | Cmd::List(_) | Cmd::Settle => {}
        }
    }
    notes
}

impl Contents {
    fn decided_at(&self, at: Ppn) -> Option<u32> {
        match self.decided[at.0 as usize] {
            PhysicalPage::Holds { page, .. } => Some(page),
            _ => None,
        }
    }

    /// Apply all decisions.
    pub(crate) fn apply_all(&mut self) {
        self.finish();
        self.forget();
        self.on_flash.clone_from(&self.decided);
        self.labels_on_flash.clone_from(&self.labels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_program_ends_earlier_erase() {
        let by = BlockIdx(3);
        let erase = |block| RecordKind::Erase { logical: None, block, fails: false };
        let mut records = OpRecords::default();
        let other = records.add(erase(BlockIdx(0)), &[], Label::default());
        let before = records.add(erase(by), &[], Label::default());
        let label = Label { by, ..Label::default() };
        let program = records.add(RecordKind::Program(Ppn(0)), &[PhysicalPage::Nothing], label);
        let later = records.add(erase(by), &[], Label::default());
        records.set_times(program, 10, 10);
        let ended = |records: &mut OpRecords| records.take_ended(10).map(|(kind, ..)| kind);
        assert_eq!(ended(&mut records), Some(erase(by)));
        assert_eq!(ended(&mut records), Some(RecordKind::Program(Ppn(0))));
        assert_eq!(ended(&mut records), None);
        // Its end is recorded now, and it ends only once.
        records.set_times(before, 1, 10);
        assert_eq!(ended(&mut records), None);
        [other, later].into_iter().for_each(|erase| drop(records.set_times(erase, 11, 20)));
        let left: Vec<u64> = records.drain().iter().map(|record| record.number).collect();
        assert_eq!(left, [0, 3]);
    }
}
