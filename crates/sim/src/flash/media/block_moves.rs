//! Moves of whole rows of pages, and of blocks under a merging FTL: a failed block is replaced; a block that
//! wears too little, or was read too often, is copied.

use super::plan_executor::PlanExecutor;
use super::{CollectMedia as _, Flash};
use crate::flash::geometry::{BlockIdx, PageAddress};
use crate::flash::moves::PageRow;
use crate::flash::notes::{BlockMove, Note};

impl PlanExecutor<'_> {
    /// Handle the erase of the FTL's block `logical`, successful or not: an unfit physical block is replaced.
    pub(super) fn is_erased(&mut self, logical: BlockIdx, erased: bool) {
        let block = self.flash.replacements().block(logical);
        let unusable =
            !erased || self.flash.replacements().retire_worn && self.has_worn_pages(block);
        if !unusable || self.replace(logical, None) {
            self.record_erased(logical);
        }
    }

    /// Record that the physical block of `logical` is erased.
    fn record_erased(&mut self, logical: BlockIdx) {
        let block = self.flash.replacements().block(logical);
        let wear = self.flash.nand.erases(block);
        self.flash.replacements().is_erased(logical, wear);
    }

    /// Move the data of the FTL's block `cold` to the physical block of `free`, which is erased; `free`
    /// receives the old block of `cold`.
    pub(super) fn level(&mut self, cold: BlockIdx, free: BlockIdx) {
        let old = self.flash.replacements().block(cold);
        let by = self.flash.replacements().block(free);
        let programmed = self.flash.nand.programmed(old);
        self.executed.barrier();
        if !self.move_block(BlockMove { logical: cold, failed: None }, by, &programmed) {
            let next = self.flash.replacements().next(free).expect("a replacement block is left");
            self.flash.replacements().replace(free, next);
            return self.record_erased(free);
        }
        let erased = self.erase_source(old);
        self.executed.barrier();
        self.flash.counters.blocks_levelled += 1;
        self.flash.replacements().replace(free, old);
        self.is_erased(free, erased);
    }

    /// Erase `old`, whose pages were all copied; returns false if that fails.
    fn erase_source(&mut self, old: BlockIdx) -> bool {
        let extra_ns = self.flash.erase_extra_ns(old);
        self.executed.barrier();
        self.executed.erase_worn(old, extra_ns);
        let erased = self.flash.erase(old);
        self.note(Note::Erase { logical: None, block: old, fails: !erased });
        erased
    }

    fn has_worn_pages(&self, block: BlockIdx) -> bool {
        let geometry = &self.flash.geometry;
        let units = geometry.units() as usize;
        let mut pages = (0..geometry.shape().pages_per_block).step_by(units);
        pages.any(|page| self.flash.is_worn(geometry.address_at(block, page)))
    }

    /// Replace the physical block of the FTL's block `logical`. `failed`: the page whose program failed,
    /// physical and as the FTL numbers it; `None` if the block is empty. Returns false if no block is left.
    pub(super) fn replace(
        &mut self,
        logical: BlockIdx,
        failed: Option<(PageAddress, PageAddress)>,
    ) -> bool {
        let old = self.flash.replacements().block(logical);
        let mut pages_to_copy = match failed {
            Some(_) => self.flash.nand.programmed(old),
            None => Vec::new(),
        };
        let (at, failed) = failed.unzip();
        pages_to_copy.retain(|page| Some(self.flash.geometry.address_at(old, *page)) != at);
        while let Some(by) = self.flash.replacements().next(logical) {
            if self.move_block(BlockMove { logical, failed }, by, &pages_to_copy) {
                self.retire(old);
                return true;
            }
        }
        false
    }

    /// Make `by` the physical block of the `moved` block, with copies of its pages `kept_pages`. Returns false if a
    /// copy fails; `by` is then retired.
    fn move_block(&mut self, moved: BlockMove, by: BlockIdx, kept_pages: &[u32]) -> bool {
        let old = self.flash.replacements().block(moved.logical);
        let geometry = self.flash.geometry;
        if self.flash.records_notes() && !kept_pages.is_empty() {
            // Some of them may still be in progress.
            self.executed.settle();
        }
        let (pages, failed) = (kept_pages.len() as u32, moved.failed.is_some());
        for (left, page) in (0..kept_pages.len()).rev().zip(kept_pages) {
            let copied =
                self.move_to(geometry.address_at(old, *page), geometry.address_at(by, *page));
            let ends = (copied && left == 0).then_some(moved);
            self.note(Note::Copy { old, into: by, pages, failed, ends });
            if !copied {
                self.retire(by);
                return false;
            }
        }
        self.flash.replacements().replace(moved.logical, by);
        true
    }

    /// Retire `block`.
    fn retire(&mut self, block: BlockIdx) {
        self.flash.retire_block(block);
        if self.flash.records_notes() {
            self.executed.list(self.flash.geometry.address_at(block, 0));
            self.note(Note::List(block));
        }
    }

    /// Copy the FTL's block `logical` to a reserve block; its old block is erased and joins the reserve.
    /// Returns false if the reserve is empty.
    pub(super) fn scrub(&mut self, logical: BlockIdx) -> bool {
        let old = self.flash.replacements().block(logical);
        let programmed = self.flash.nand.programmed(old);
        let moved = BlockMove { logical, failed: None };
        while let Some(by) = self.flash.replacements().spare(logical) {
            if !self.move_block(moved, by, &programmed) {
                continue;
            }
            match self.erase_source(old) {
                true => self.flash.replacements().release(logical, old),
                false => self.retire(old),
            }
            return true;
        }
        false
    }
}

impl Flash {
    /// Move the pages of `row`, if all its pieces are at their own offsets in the source and the target block;
    /// returns false if it moved none. No page can fail.
    pub(super) fn moves_in_order(&mut self, row: &PageRow) -> bool {
        let Flash { replacements, nand, counters, .. } = self;
        let replacements = replacements.as_mut().expect("the replacement table exists");
        if !nand.is_regular() || !replacements.collect_pieces(row) {
            return false;
        }
        for piece in replacements.take_pieces() {
            nand.copy_piece(piece);
        }
        let pages = u64::from(row.pages.count_ones());
        counters.pages_read += pages;
        counters.pages_programmed += pages;
        counters.pages_relocated += pages;
        true
    }
}
