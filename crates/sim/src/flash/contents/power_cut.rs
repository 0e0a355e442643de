//! Power loss: operations in progress stop, and the state that is found afterwards, with the erase counts.

use std::collections::BTreeMap;

use super::{Contents, Label, PhysicalPage, RecordKind};
use crate::flash::geometry::{BlockIdx, Geometry, PageAddress, Ppn};

/// The effect of a power loss on the flash.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct PowerCutEffect {
    /// Flash pages whose cells were being programmed.
    pub(crate) torn: u32,
    /// Flash pages whose program was queued.
    pub(crate) not_begun: u32,
    /// Blocks that were being erased.
    pub(crate) half_erased: u32,
    /// Logical pages whose newest version on the device is not on flash.
    pub(crate) lost: u32,
}

/// The state in which a block is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockCondition {
    Erased,
    /// Its erase was interrupted.
    HalfErased,
    /// The number of its pages, from the first on, that are programmed, torn, or skipped and lost.
    Programmed(u32),
}

/// The map that the spare areas yield, and the state of every block.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// Per logical page: the address of its newest readable version.
    pub(crate) map: Vec<Option<Ppn>>,
    pub(crate) blocks: Vec<(BlockCondition, Label)>,
}

impl Contents {
    /// Lose power at `at`. If `protected`, capacitors keep power long enough to program all accepted data.
    pub(crate) fn cut(&mut self, at: u64, protected: bool) -> PowerCutEffect {
        self.apply_ended(at);
        let mut cut = PowerCutEffect::default();
        let newest = if protected { self.newest() } else { BTreeMap::new() };
        self.stop_at(at, protected, &mut cut);
        self.saved.clear();
        self.forget();
        let image = self.read_image();
        let of_host = self.geometry.shape().logical_pages as usize;
        for (page, at) in image.map.iter().enumerate() {
            let mut found_version = at.map_or(0, |at| self.version_at(page as u32, at));
            let saved = newest.get(&(page as u32)).filter(|version| **version > found_version);
            if let Some(version) = saved.filter(|_| page < of_host) {
                self.saved.insert(page as u32, *version);
                found_version = *version;
            }
            // Later versions are counted from the version that was found.
            let newest = std::mem::replace(&mut self.written[page], found_version);
            let needed = newest > self.deallocated_version(page as u32, newest, found_version);
            cut.lost += u32::from(newest > found_version && needed && page < of_host);
        }
        cut
    }

    /// Return the version of `page` that the host no longer needs, 0 for none. If the host has not written it
    /// since, `newest` is that version; then the version `recovered` after a power loss is no longer needed
    /// either.
    fn deallocated_version(&mut self, page: u32, newest: u64, recovered: u64) -> u64 {
        let Some(version) = self.deallocated.get_mut(&page) else { return 0 };
        let was = *version;
        if newest > was {
            self.deallocated.remove(&page);
        } else {
            *version = recovered;
        }
        was
    }

    /// Stop operations that have not ended by `at` or, if `protected`, finish them. Only data on flash
    /// remains.
    pub(super) fn stop_at(&mut self, at: u64, protected: bool, cut: &mut PowerCutEffect) {
        for record in self.records.drain() {
            let has_begun = record.begin < at;
            match record.kind {
                kind if protected => self.apply(kind, &record.cells, record.label),
                kind if has_begun => {
                    self.stop_operation(kind, record.cells.len(), record.label, cut)
                }
                RecordKind::Program(_) | RecordKind::List(..) | RecordKind::Copy(_) => {
                    cut.not_begun += 1
                }
                RecordKind::Erase { .. } => {}
            }
        }
        self.forget_listed();
        self.tear_skipped_pages();
        self.decided.clone_from(&self.on_flash);
        self.relabel();
        self.labels.clone_from(&self.labels_on_flash);
    }

    /// Stop an operation on `pages` pages that had begun.
    fn stop_operation(
        &mut self,
        kind: RecordKind,
        pages: usize,
        label: Label,
        cut: &mut PowerCutEffect,
    ) {
        match kind {
            RecordKind::Program(first) => {
                self.fill(first, &vec![PhysicalPage::Torn; pages], label);
                let block = self.geometry.block_of(first);
                self.labels_on_flash[block.0 as usize] = label;
                self.on_flash[first.0 as usize..][..pages].fill(PhysicalPage::Torn);
                cut.torn += 1;
            }
            RecordKind::Copy(copied) => {
                self.copy(copied, true);
                cut.torn += 1;
            }
            RecordKind::List(..) => cut.torn += 1,
            RecordKind::Erase { logical, block, .. } => {
                self.half_erase_physical(logical, block);
                cut.half_erased += 1;
            }
        }
    }

    /// Clear the state of requests and data in memory.
    pub(super) fn forget(&mut self) {
        self.arrivals.clear();
        self.cached.clear();
        self.flushing.clear();
        self.in_memory.clear();
    }

    /// Return the newest versions that the device has accepted, in memory or on flash.
    fn newest(&self) -> BTreeMap<u32, u64> {
        let mut newest = self.cached.clone();
        let mut add = |page: u32, version: u64| {
            let newest_version = newest.entry(page).or_insert(0);
            *newest_version = (*newest_version).max(version);
        };
        let elsewhere = self.in_memory.iter().chain(&self.saved);
        elsewhere.for_each(|(page, version)| add(*page, *version));
        for (page, versions) in &self.flushing {
            versions.iter().for_each(|version| add(*page, *version));
        }
        for cell in &self.decided {
            if let PhysicalPage::Holds { page, version } = *cell {
                add(page, version);
            }
        }
        newest
    }

    /// Return whether capacitors have saved any page.
    pub(crate) fn has_saved(&self) -> bool {
        !self.saved.is_empty()
    }

    /// Keep `page` saved: a worn-out device has no page for it. The page `at` holds an older version.
    pub(crate) fn mark_saved(&mut self, page: u32, at: Option<PageAddress>, version: u64) {
        self.saved.insert(page, self.written[page as usize]);
        for cells in [&mut self.decided, &mut self.on_flash] {
            at.iter()
                .for_each(|at| cells[at.page.0 as usize] = PhysicalPage::Holds { page, version });
        }
    }

    /// Return the version of `page` that capacitors have saved, if any.
    pub(crate) fn saved_version(&self, page: u32) -> Option<u64> {
        self.saved.get(&page).copied()
    }

    /// Return the pages that capacitors have saved, and clear them.
    pub(crate) fn take_saved(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.saved).into_keys().collect()
    }

    /// Return whether the spare area of `at` can be read, and `at` is not erased.
    pub(crate) fn is_readable(&self, at: Ppn) -> bool {
        matches!(self.on_flash[at.0 as usize], PhysicalPage::Nothing | PhysicalPage::Holds { .. })
    }

    /// Clear the labels of blocks without programmed pages.
    fn relabel(&mut self) {
        for block in (0..self.geometry.blocks()).map(BlockIdx) {
            if self.block_condition(block) == BlockCondition::Erased {
                self.labels_on_flash[block.0 as usize] = Label::default();
            }
        }
    }

    pub(super) fn block_condition(&self, block: BlockIdx) -> BlockCondition {
        if self.half_erased[block.0 as usize] {
            return BlockCondition::HalfErased;
        }
        let pages = &self.on_flash[self.pages_of(block)];
        match pages.iter().rposition(|cell| *cell != PhysicalPage::Erased) {
            None => BlockCondition::Erased,
            Some(last) => {
                let units = self.geometry.units();
                BlockCondition::Programmed((last as u32 + 1).next_multiple_of(units))
            }
        }
    }

    /// Return the state that the spare areas of all pages and blocks yield. Of each logical page the newest
    /// version counts; among copies of one version, the copy in the block that was opened last.
    pub(crate) fn read_image(&self) -> Image {
        let blocks = (0..self.geometry.blocks()).map(BlockIdx);
        Image {
            map: self.newest_of(&self.on_flash, &self.labels_on_flash),
            blocks: blocks
                .map(|block| (self.block_condition(block), self.labels_on_flash[block.0 as usize]))
                .collect(),
        }
    }

    /// Return the address of the newest version of every logical page, as decided.
    pub(crate) fn newest_decided(&self) -> Vec<Option<Ppn>> {
        self.newest_of(&self.decided, &self.labels)
    }

    fn newest_of(&self, cells: &[PhysicalPage], labels: &[Label]) -> Vec<Option<Ppn>> {
        let mut newest: Vec<Option<(u64, u64, Ppn)>> = vec![None; self.written.len()];
        for (at, cell) in (0..).map(Ppn).zip(cells) {
            let PhysicalPage::Holds { page, version } = *cell else { continue };
            let opened = labels[self.geometry.block_of(at).0 as usize].opened;
            let candidate = Some((version, opened, at));
            let best = &mut newest[page as usize];
            *best = (*best).max(candidate);
        }
        newest.into_iter().map(|best| best.map(|(.., at)| at)).collect()
    }

    /// Return the geometry of the blocks and pages that the FTL sees.
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Return the version of `page` at `at`; 0 if `at` does not hold `page`.
    pub(crate) fn version_at(&self, page: u32, at: Ppn) -> u64 {
        match self.on_flash[at.0 as usize] {
            PhysicalPage::Holds { page: there, version } if there == page => version,
            _ => 0,
        }
    }

    /// Return whether `at` was not programmed since its block was erased.
    pub(crate) fn is_erased(&self, at: Ppn) -> bool {
        self.cell(at) == PhysicalPage::Erased
    }

    /// Return the number of pages of `block` that are not erased.
    pub(crate) fn programmed_pages(&self, block: BlockIdx) -> u32 {
        let pages = &self.on_flash[self.pages_of(block)];
        pages.iter().filter(|cell| **cell != PhysicalPage::Erased).count() as u32
    }

    /// Return the content on flash at `at`.
    pub(crate) fn cell(&self, at: Ppn) -> PhysicalPage {
        self.on_flash[at.0 as usize]
    }

    /// Return the label of `block`: its role, and when it was opened.
    pub(crate) fn label(&self, block: BlockIdx) -> Label {
        self.labels_on_flash[block.0 as usize]
    }

    /// Return the number of logical pages.
    pub(crate) fn logical_pages(&self) -> usize {
        self.written.len()
    }

    /// Mark the erase of `block` as interrupted.
    pub(crate) fn half_erase(&mut self, block: BlockIdx) {
        let pages = self.pages_of(block);
        self.on_flash[pages.clone()].fill(PhysicalPage::Torn);
        self.decided[pages].fill(PhysicalPage::Torn);
        self.half_erased[block.0 as usize] = true;
    }

    /// Mark `block`, whose erase was interrupted, as erased again.
    pub(crate) fn erased_again(&mut self, block: BlockIdx) {
        let pages = self.pages_of(block);
        self.on_flash[pages.clone()].fill(PhysicalPage::Erased);
        self.decided[pages].fill(PhysicalPage::Erased);
        self.half_erased[block.0 as usize] = false;
        self.labels[block.0 as usize] = Label::default();
        self.labels_on_flash[block.0 as usize] = Label::default();
    }

    /// Set the state after untimed operation. `pages` gives every mapped logical page and its address; if
    /// `new_versions`, it is a new version. `programmed` returns the programmed pages of a block, `label` its label.
    pub(crate) fn settle(
        &mut self,
        pages: impl Iterator<Item = (u32, PageAddress)>,
        new_versions: bool,
        programmed: impl Fn(BlockIdx) -> Vec<u32>,
        label: impl Fn(BlockIdx) -> Label,
    ) {
        self.records.drain();
        self.forget();
        self.decided.fill(PhysicalPage::Erased);
        for block in (0..self.geometry.blocks()).map(BlockIdx) {
            let first = self.geometry.first_page(block).0;
            let programmed_pages = programmed(block);
            self.erases[block.0 as usize] = label(block).erases;
            self.labels[block.0 as usize] =
                if programmed_pages.is_empty() { Label::default() } else { label(block) };
            self.opened = self.opened.max(self.labels[block.0 as usize].opened);
            programmed_pages
                .iter()
                .for_each(|page| self.decided[(first + page) as usize] = PhysicalPage::Nothing);
        }
        self.deallocated =
            (0..).zip(self.written.iter().copied()).filter(|(_, n)| *n > 0).collect();
        for (page, at) in pages {
            let version = &mut self.written[page as usize];
            *version += u64::from(new_versions);
            self.decided[at.page.0 as usize] = PhysicalPage::Holds { page, version: *version };
            self.deallocated.remove(&page);
        }
        self.on_flash.clone_from(&self.decided);
        self.labels_on_flash.clone_from(&self.labels);
    }
}

// Erase counts from spare areas: known for every block with a readable page.
//
// **Source**: T. Gleixner, F. Haverkamp, A. Bityutskiy, UBI, Unsorted Block Images (2006): the erase counter is in the
// header of its block, and one that was lost is taken to be the mean of the others.
// **Faithful**: a count is programmed with the first page of its block, and erased with the block.
// **Simplified**: nothing.
// **Ambiguous**: nothing.

impl Contents {
    /// Return the erase count of each block as far as it can be read; otherwise the mean of the readable
    /// ones.
    pub(crate) fn estimated_erases(&self) -> Vec<u32> {
        let known_erases = |block: BlockIdx| {
            let mut pages = self.on_flash[self.pages_of(block)].iter();
            let readable = pages
                .any(|cell| matches!(cell, PhysicalPage::Nothing | PhysicalPage::Holds { .. }));
            readable.then(|| self.labels_on_flash[block.0 as usize].erases)
        };
        let erases: Vec<Option<u32>> =
            (0..self.geometry.blocks()).map(BlockIdx).map(known_erases).collect();
        let sum: u64 = erases.iter().flatten().map(|erases| u64::from(*erases)).sum();
        let mean = sum / (erases.iter().flatten().count() as u64).max(1);
        erases.iter().map(|erases| erases.unwrap_or(mean as u32)).collect()
    }

    /// Set the erase counts that the FTL has.
    pub(crate) fn set_erases(&mut self, erases: impl Fn(BlockIdx) -> u32) {
        for (block, erases_of) in (0..).map(BlockIdx).zip(&mut self.erases) {
            *erases_of = erases(block);
        }
    }
}
