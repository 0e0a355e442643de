//! The physical blocks under an FTL whose blocks can be replaced: spare areas name the logical one.
//!
//! ```text
//! blocks of the FTL      0      1      2         cells and labels are stored for these
//! label names block      A      D      –         a copy changes only the label
//! physical blocks        A ▓▓   B ▓░   C ░░   D ▓▒        B: copied in part, not used
//! ```
//!
//! The content of an FTL's block does not change when it moves. The old block is erased once all copies are
//! made, so the label of the copy counts from its last page on. A block with programmed pages that no label
//! names was copied in part, or left; it is erased when power returns.
//!
//! **Source**: the table of replacement blocks that NFTL rebuilds from the spare areas of its blocks (Gal &
//! Toledo, ACM Computing Surveys 2005, §2.2).
//! **Faithful**: after a power loss only labels and lists of defects are known.
//! **Simplified**: marking a copy as complete takes no program of its own; erase counts are known.
//! **Ambiguous**: nothing.

use serde::{Deserialize, Serialize};

use super::{
    BlockCondition, Contents, Defect, Label, Origin, PageCopy, PhysicalPage, PowerCutEffect,
    RecordKind,
};
use crate::flash::geometry::{BlockIdx, Geometry, PageAddress, Ppn};
use crate::flash::nand::Nand;
use crate::flash::replacement::{BlockMove, Note, PageContent};

/// In place of a page count: the erase of the block was interrupted, or has failed.
const HALF_ERASED: u32 = u32::MAX;

/// The physical blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PhysicalImage {
    /// Per block: pages programmed since it was erased.
    filled: Vec<u32>,
    /// Pages of a block are programmed in order: a skipped page can no longer be programmed.
    is_ordered: bool,
    /// Their content, to check that labels name the right blocks.
    #[cfg(test)]
    #[serde(skip)]
    holds: Vec<Vec<PhysicalPage>>,
}

impl PhysicalImage {
    /// Program a page of `block` after `before` others.
    fn program(&mut self, block: BlockIdx, _cell: PhysicalPage, before: u32) {
        let filled = &mut self.filled[block.0 as usize];
        assert!(*filled == before, "{block:?} has {filled} pages where a label says {before}");
        *filled += 1;
        #[cfg(test)]
        self.holds[block.0 as usize].push(_cell);
    }

    /// Copy a page, or a torn part of it, to another block.
    fn copy(&mut self, PageCopy { old, into, pages, failed, .. }: PageCopy, _torn: bool) {
        let [before, present] = [into, old].map(|block| self.filled[block.0 as usize]);
        assert!(before < pages, "{into:?} has {before} pages, and all of {old:?}");
        assert_eq!(present, pages + u32::from(failed), "some pages of {old:?} are in progress");
        self.filled[into.0 as usize] += 1;
        #[cfg(test)]
        {
            let mut cells = self.holds[old.0 as usize].clone();
            let torn = cells.iter().rposition(|cell| *cell == PhysicalPage::Torn);
            if let Some(torn) = torn.filter(|_| failed) {
                cells.remove(torn);
            }
            let cell = if _torn { PhysicalPage::Torn } else { cells[before as usize] };
            self.holds[into.0 as usize].push(cell);
        }
    }

    fn erase(&mut self, block: BlockIdx, erased: bool) {
        self.filled[block.0 as usize] = if erased { 0 } else { HALF_ERASED };
        #[cfg(test)]
        self.holds[block.0 as usize].clear();
    }
}

impl Contents {
    /// Track the physical blocks of the geometry `whole`. `is_ordered`: pages of a block are programmed in
    /// the FTL's order.
    pub(crate) fn track_physical_blocks(&mut self, whole: &Geometry, is_ordered: bool) {
        let blocks = whole.blocks() as usize;
        self.physical_image = Some(Box::new(PhysicalImage {
            filled: vec![0; blocks],
            is_ordered,
            #[cfg(test)]
            holds: vec![Vec::new(); blocks],
        }));
    }

    /// Record the decisions in `notes`, which were carried out or will be. `pages` are the host pages that
    /// they program, in order; `of_map` returns the mapping page at an address. If `time`, returns a record of
    /// every operation, in order.
    pub(crate) fn decide_notes(
        &mut self,
        notes: &[Note],
        pages: impl Iterator<Item = (u32, Origin)>,
        of_map: impl Fn(PageAddress) -> Option<u32>,
        time: bool,
        nand: &Nand,
    ) -> Vec<u32> {
        if !time {
            self.finish();
        }
        let mut pages = pages;
        let mut records = Vec::new();
        for note in notes {
            records.extend(match *note {
                Note::Program { to, by, holds, fails } => {
                    let page = match holds {
                        _ if fails => None,
                        PageContent::Host => pages.next(),
                        PageContent::Page(from) => {
                            self.decided_at(from).map(|page| (page, Origin::Page(from)))
                        }
                        PageContent::Map => of_map(to).map(|page| (page, Origin::Map)),
                        PageContent::Nothing => None,
                    };
                    self.decide(to, page, 0, !fails);
                    self.labels[to.block.0 as usize].by = by;
                    Some(self.program(to))
                }
                Note::Copy { old, into, pages, failed, ends } => {
                    if let Some(BlockMove { logical, .. }) = ends {
                        self.labels[logical.0 as usize].by = into;
                    }
                    let copied = PageCopy { old, into, pages, failed, ends: ends.map(named) };
                    Some(self.records.add(RecordKind::Copy(copied), &[], Label::default()))
                }
                Note::Erase { logical, block, fails } => {
                    logical.into_iter().for_each(|logical| self.decide_erased(logical));
                    let kind = RecordKind::Erase { logical, block, fails };
                    Some(self.records.add(kind, &[], Label::default()))
                }
                Note::List(block) => self.list(Defect::Block, block, nand),
            });
        }
        if !time {
            self.finish();
            records.clear();
        }
        records
    }

    /// Finish all operations in progress.
    pub(crate) fn finish(&mut self) {
        for record in self.records.drain() {
            self.apply(record.kind, &record.cells, record.label);
        }
    }

    /// Program `cells` from `first` on, in the physical block of `label`.
    pub(super) fn fill(&mut self, first: Ppn, cells: &[PhysicalPage], label: Label) {
        if self.physical_image.is_none() {
            return;
        }
        let logical = self.geometry.block_of(first);
        let pages = self.pages_of(logical);
        let Some(physical_image) = &mut self.physical_image else { return };
        let before = &mut self.on_flash[pages];
        if self.labels_on_flash[logical.0 as usize].by != label.by {
            // All pages programmed in the previous block have failed.
            assert!(before.iter().all(|cell| !matches!(cell, PhysicalPage::Holds { .. })));
            before.fill(PhysicalPage::Erased);
        }
        let before = before.iter().filter(|cell| **cell != PhysicalPage::Erased).count() as u32;
        for (more, cell) in (0..).zip(cells) {
            physical_image.program(label.by, *cell, before + more);
        }
    }

    /// Apply a copy that has ended. If `torn`, it was stopped after it had begun, and completes no move.
    pub(super) fn copy(&mut self, copied: PageCopy, torn: bool) {
        self.physical_image.iter_mut().for_each(|image| image.copy(copied, torn));
        let Some((logical, failed)) = copied.ends.filter(|_| !torn) else { return };
        failed.into_iter().for_each(|page| self.on_flash[page.0 as usize] = PhysicalPage::Erased);
        self.labels_on_flash[logical.0 as usize].by = copied.into;
    }

    /// Apply an erase that has ended.
    pub(super) fn erase_physical(
        &mut self,
        logical: Option<BlockIdx>,
        block: BlockIdx,
        fails: bool,
    ) {
        self.physical_image.iter_mut().for_each(|image| image.erase(block, !fails));
        if fails {
            self.cannot_be_erased(block);
        }
        if let Some(logical) = logical {
            let pages = self.pages_of(logical);
            self.on_flash[pages].fill(PhysicalPage::Erased);
            self.labels_on_flash[logical.0 as usize] = Label::default();
        }
    }

    /// Apply an erase that was stopped after it had begun.
    pub(super) fn half_erase_physical(&mut self, logical: Option<BlockIdx>, block: BlockIdx) {
        self.physical_image.iter_mut().for_each(|image| image.erase(block, false));
        if let Some(logical) = logical {
            let pages = self.pages_of(logical);
            self.on_flash[pages].fill(PhysicalPage::Torn);
            self.half_erased[logical.0 as usize] = true;
            self.labels_on_flash[logical.0 as usize].by = block;
        }
    }

    /// Record that the physical `block` was erased again, or that this failed.
    pub(crate) fn erase_physical_again(&mut self, block: BlockIdx, erased: bool) {
        let logical = self.named_blocks().iter().position(|by| *by == Some(block));
        logical.into_iter().for_each(|logical| self.erased_again(BlockIdx(logical as u32)));
        self.erase_physical(None, block, !erased);
    }

    /// Return whether blocks can be replaced by others.
    pub(crate) fn tracks_physical_blocks(&self) -> bool {
        self.physical_image.is_some()
    }

    /// Clear blocks whose physical block is listed: all programs in it have failed, or its pages were copied.
    pub(super) fn forget_listed(&mut self) {
        for logical in (0..self.geometry.blocks()).map(BlockIdx) {
            let pages = self.pages_of(logical);
            let by = self.labels_on_flash[logical.0 as usize].by;
            let erased =
                self.on_flash[pages.clone()].iter().all(|cell| *cell == PhysicalPage::Erased);
            if self.physical_image.is_some() && !erased && self.is_listed(by) {
                let cells = &mut self.on_flash[pages];
                let none =
                    |cell: &PhysicalPage| matches!(cell, PhysicalPage::Erased | PhysicalPage::Torn);
                assert!(cells.iter().all(none), "{by:?} holds something");
                cells.fill(PhysicalPage::Erased);
            }
        }
    }

    /// Mark the skipped pages of a block as torn.
    pub(super) fn tear_skipped_pages(&mut self) {
        let Some(physical_image) = self.physical_image.as_mut().filter(|image| image.is_ordered)
        else {
            return;
        };
        let pages = self.geometry.shape().pages_per_block as usize;
        for (cells, label) in self.on_flash.chunks_mut(pages).zip(&self.labels_on_flash) {
            let end = cells
                .iter()
                .rposition(|cell| *cell != PhysicalPage::Erased)
                .map_or(0, |last| last + 1);
            let before = cells.iter().filter(|cell| **cell != PhysicalPage::Erased).count() as u32;
            let left_out = cells[..end].iter_mut().filter(|cell| **cell == PhysicalPage::Erased);
            for (before, cell) in (before..).zip(left_out) {
                *cell = PhysicalPage::Torn;
                physical_image.program(label.by, PhysicalPage::Torn, before);
            }
        }
    }

    /// Return, per block of the FTL, the physical block that its label names, if any.
    pub(crate) fn named_blocks(&self) -> Vec<Option<BlockIdx>> {
        let blocks = (0..self.geometry.blocks()).map(BlockIdx);
        let label = |block: BlockIdx| self.labels_on_flash[block.0 as usize];
        let named = blocks.map(|block| {
            (self.block_condition(block) != BlockCondition::Erased).then(|| label(block).by)
        });
        named.collect()
    }

    /// Return, per physical block, its state, its programmed pages, and whether it is in use.
    pub(crate) fn block_states(&self) -> Vec<(BlockCondition, u32, bool)> {
        let condition = |block| (self.block_condition(block), self.programmed_pages(block));
        let all = (0..self.geometry.blocks()).map(BlockIdx);
        let Some(physical_image) = &self.physical_image else {
            return all.map(condition).map(|(states, pages)| (states, pages, true)).collect();
        };
        let state = |filled: &u32| match *filled {
            0 => (BlockCondition::Erased, 0, true),
            HALF_ERASED => (BlockCondition::HalfErased, 0, false),
            pages => (BlockCondition::Programmed(pages), pages, false),
        };
        let mut states: Vec<(BlockCondition, u32, bool)> =
            physical_image.filled.iter().map(state).collect();
        for (block, by) in all.zip(self.named_blocks()) {
            if let Some(by) = by {
                let (is, pages) = condition(block);
                states[by.0 as usize] = (is, pages, is != BlockCondition::HalfErased);
            }
        }
        states
    }

    /// Return the physical blocks without programmed pages.
    pub(crate) fn erased_blocks(&self) -> impl Iterator<Item = BlockIdx> {
        let states = self.block_states().into_iter();
        let erased = (0..)
            .map(BlockIdx)
            .zip(states)
            .filter(|(_, (condition, ..))| *condition == BlockCondition::Erased);
        erased.map(|(block, _)| block)
    }

    /// Set the times of the operations in `records`, and stop those that have not ended by `at`.
    pub(crate) fn stop(
        &mut self,
        records: &[u32],
        times: impl Iterator<Item = (u64, u64)>,
        at: u64,
    ) {
        for (record, (begin, end)) in records.iter().zip(times) {
            self.set_times(*record, begin, end, 0);
        }
        self.apply_ended(at);
        self.stop_at(at, false, &mut PowerCutEffect::default());
    }
}

fn named(moved: BlockMove) -> (BlockIdx, Option<Ppn>) {
    (moved.logical, moved.failed.map(|place| place.page))
}

#[cfg(test)]
impl Contents {
    /// Check that every label names a block with the right content, and that no two name the same. `by` gives
    /// the expected physical block.
    pub(crate) fn audit_physical_blocks(&self, by: Option<&dyn Fn(BlockIdx) -> BlockIdx>) {
        let Some(physical_image) = &self.physical_image else { return };
        let mut used = vec![false; physical_image.filled.len()];
        for (logical, named) in (0..).map(BlockIdx).zip(self.named_blocks()) {
            let Some(named) = named else { continue };
            let twice = std::mem::replace(&mut used[named.0 as usize], true);
            assert!(!twice, "{named:?} replaces two blocks");
            if let Some(by) = by {
                assert_eq!(by(logical), named, "the physical block of {logical:?}");
            }
            if self.block_condition(logical) == BlockCondition::HalfErased {
                continue;
            }
            let order = |cell: &PhysicalPage| match *cell {
                PhysicalPage::Erased | PhysicalPage::Torn => (0, 0),
                PhysicalPage::Nothing => (1, 0),
                PhysicalPage::Holds { page, version } => (2 + u64::from(page), version),
            };
            let cells = &self.on_flash[self.pages_of(logical)];
            let labels = cells.iter().filter(|cell| **cell != PhysicalPage::Erased);
            let mut from_labels: Vec<(u64, u64)> = labels.map(order).collect();
            let mut holds: Vec<(u64, u64)> =
                physical_image.holds[named.0 as usize].iter().map(order).collect();
            from_labels.sort_unstable();
            holds.sort_unstable();
            assert_eq!(
                from_labels, holds,
                "the content of {named:?}, the physical block of {logical:?}"
            );
        }
    }
}
