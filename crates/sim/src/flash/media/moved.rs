//! Moves of whole rows of pages, and of blocks under a merging FTL: a failed block is replaced; a block that
//! wears too little, or was read too often, is copied.

use super::worn::Worn;
use super::{CollectMedia as _, Flash};
use crate::flash::done::{Moved, Note};
use crate::flash::geometry::{BlockIdx, Place};
use crate::flash::moves::Row;

impl Worn<'_> {
    /// Handle the erase of the FTL's block `known`, successful or not: an unfit physical block is replaced.
    pub(super) fn is_erased(&mut self, known: BlockIdx, erased: bool) {
        let block = self.flash.replaced().block(known);
        let unfit = !erased || self.flash.replaced().retire_worn && self.has_worn_pages(block);
        if !unfit || self.replace(known, None) {
            self.stands_in_erased(known);
        }
    }

    /// Record that the physical block of `known` is erased.
    fn stands_in_erased(&mut self, known: BlockIdx) {
        let block = self.flash.replaced().block(known);
        let wear = self.flash.nand.erases(block);
        self.flash.replaced().is_erased(known, wear);
    }

    /// Move the data of the FTL's block `cold` to the physical block of `free`, which is erased; `free`
    /// receives the old block of `cold`.
    pub(super) fn level(&mut self, cold: BlockIdx, free: BlockIdx) {
        let old = self.flash.replaced().block(cold);
        let by = self.flash.replaced().block(free);
        let kept = self.flash.nand.programmed(old);
        self.done.barrier();
        if !self.stands_in(Moved { known: cold, failed: None }, by, &kept) {
            let next = self.flash.replaced().next(free).expect("one is left");
            self.flash.replaced().replace(free, next);
            return self.stands_in_erased(free);
        }
        let erased = self.erase_left(old);
        self.done.barrier();
        self.flash.counters.blocks_levelled += 1;
        self.flash.replaced().replace(free, old);
        self.is_erased(free, erased);
    }

    /// Erase `old`, whose pages were all copied; returns false if that fails.
    fn erase_left(&mut self, old: BlockIdx) -> bool {
        let extra_ns = self.flash.erase_extra_ns(old);
        self.done.barrier();
        self.done.erase_worn(old, extra_ns);
        let erased = self.flash.erase(old);
        self.note(Note::Erase { known: None, block: old, fails: !erased });
        erased
    }

    fn has_worn_pages(&self, block: BlockIdx) -> bool {
        let geometry = &self.flash.geometry;
        let units = geometry.units() as usize;
        let mut pages = (0..geometry.shape().pages_per_block).step_by(units);
        pages.any(|page| self.flash.is_worn(geometry.place(block, page)))
    }

    /// Replace the physical block of the FTL's block `known`. `failed`: the page whose program failed,
    /// physical and as the FTL numbers it; `None` if the block is empty. Returns false if no block is left.
    pub(super) fn replace(&mut self, known: BlockIdx, failed: Option<(Place, Place)>) -> bool {
        let old = self.flash.replaced().block(known);
        let mut kept = match failed {
            Some(_) => self.flash.nand.programmed(old),
            None => Vec::new(),
        };
        let (at, failed) = failed.unzip();
        kept.retain(|page| Some(self.flash.geometry.place(old, *page)) != at);
        while let Some(by) = self.flash.replaced().next(known) {
            if self.stands_in(Moved { known, failed }, by, &kept) {
                self.retire(old);
                return true;
            }
        }
        false
    }

    /// Make `by` the physical block of the `moved` block, with copies of its pages `kept`. Returns false if a
    /// copy fails; `by` is then retired.
    fn stands_in(&mut self, moved: Moved, by: BlockIdx, kept: &[u32]) -> bool {
        let old = self.flash.replaced().block(moved.known);
        let geometry = self.flash.geometry;
        if self.flash.keeps_notes() && !kept.is_empty() {
            // Some of them may still be in progress.
            self.done.settle();
        }
        let (pages, failed) = (kept.len() as u32, moved.failed.is_some());
        for (left, page) in (0..kept.len()).rev().zip(kept) {
            let copied = self.move_to(geometry.place(old, *page), geometry.place(by, *page));
            let ends = (copied && left == 0).then_some(moved);
            self.note(Note::Copy { old, into: by, pages, failed, ends });
            if !copied {
                self.retire(by);
                return false;
            }
        }
        self.flash.replaced().replace(moved.known, by);
        true
    }

    /// Retire `block`.
    fn retire(&mut self, block: BlockIdx) {
        self.flash.retire_block(block);
        if self.flash.keeps_notes() {
            self.done.list(self.flash.geometry.place(block, 0));
            self.note(Note::List(block));
        }
    }

    /// Copy the FTL's block `known` to a reserve block; its old block is erased and joins the reserve.
    /// Returns false if the reserve is empty.
    pub(super) fn scrub(&mut self, known: BlockIdx) -> bool {
        let old = self.flash.replaced().block(known);
        let kept = self.flash.nand.programmed(old);
        let moved = Moved { known, failed: None };
        while let Some(by) = self.flash.replaced().spare(known) {
            if !self.stands_in(moved, by, &kept) {
                continue;
            }
            match self.erase_left(old) {
                true => self.flash.replaced().give_back(known, old),
                false => self.retire(old),
            }
            return true;
        }
        false
    }
}

impl Flash {
    /// Move the pages of `row`, if all its pieces are at their places in the source and the target block;
    /// returns false if it moved none. No page can fail.
    pub(super) fn moves_in_order(&mut self, row: &Row) -> bool {
        let Flash { replaced, nand, counters, .. } = self;
        let replaced = replaced.as_mut().expect("pages are programmed in order");
        if !nand.is_regular() || !replaced.finds_pieces(row) {
            return false;
        }
        for piece in replaced.take_pieces() {
            nand.copy_piece(piece);
        }
        let pages = u64::from(row.pages.count_ones());
        counters.pages_read += pages;
        counters.pages_programmed += pages;
        counters.pages_relocated += pages;
        true
    }
}
