//! Replacement block: a block map, where one block at a time may have its pages written once more elsewhere.
//!
//! ```text
//! data block     A B C D      C is written again
//! replacement    . . c .      lookup: c, and A B D where they were
//!                A B c D      it is needed for something else: the rest is copied to it, the data block erased
//! ```
//!
//! **Source**: A. Ban, Flash file system optimized for page-mode flash technologies (US patent 5,937,425, 1999), whose
//! replacement units keep the offsets of the unit that they replace.
//! **Faithful**: fixed offsets in both blocks; the replacement becomes the data block when it is folded.
//! **Simplified**: one replacement block for the whole device, where the patent chains several behind each unit.
//! **Ambiguous**: when it is folded: here when another block needs it, or a page is written a third time.

use uflip_core::Result;

use super::{MergingFtl, MergingOptions};
use crate::collections::bits;
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Lpn, Place};
use crate::flash::plan::{Merge, Plan};
use crate::ftl::data_blocks::DataBlocks;
use crate::ftl::extent::Extent;

/// The map of blocks, and the one that has a replacement.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ReplacementBlock {
    data: DataBlocks,
    replacement: Option<Replacement>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Replacement {
    logical: u32,
    block: BlockIdx,
    /// Of each page of the logical block, one bit: it was programmed here, and is the newest.
    programmed: Vec<u64>,
    newest: Vec<u64>,
}

impl MergingFtl for ReplacementBlock {
    fn check(options: &MergingOptions<'_>) -> Result<()> {
        DataBlocks::check(options, 1, "1 for the replacement")
    }

    fn new(options: &MergingOptions<'_>) -> ReplacementBlock {
        ReplacementBlock { data: DataBlocks::new(options.geometry), replacement: None }
    }

    fn lookup(&self, page: Lpn) -> Option<Place> {
        let (logical, offset) = self.split(page);
        let replacement = self.replacement.as_ref().filter(|other| other.logical == logical);
        match replacement.filter(|other| bits::has(&other.newest, offset)) {
            Some(replacement) => Some(self.data.place_in(replacement.block, page)),
            None => self.data.lookup(page),
        }
    }

    fn write(&mut self, page: Lpn, extent: &Extent, plan: &mut Plan) {
        let (logical, offset) = self.split(page);
        if self.data.block_of(logical).is_none() {
            let block = self.data.take_free(self.data.home(logical));
            self.data.set_block(logical, block);
        }
        if let Some(place) = self.data.erased_place(page) {
            plan.program(place, None);
            return self.data.set_programmed(page);
        }
        let takes =
            |other: &Replacement| other.logical == logical && !bits::has(&other.programmed, offset);
        if !self.replacement.as_ref().is_some_and(takes) {
            self.fold(plan);
            self.begin(logical);
        }
        let rest = extent.rest(page, || self.lookup(page));
        self.data.set_invalid(page);
        let replacement = self.replacement.as_mut().expect("it has just begun, or takes the page");
        bits::insert(&mut replacement.programmed, offset);
        bits::insert(&mut replacement.newest, offset);
        plan.program(self.data.place_in(replacement.block, page), rest);
    }

    fn trim(&mut self, page: Lpn) {
        let (logical, offset) = self.split(page);
        self.data.set_invalid(page);
        if let Some(other) = self.replacement.as_mut().filter(|other| other.logical == logical) {
            bits::remove(&mut other.newest, offset);
        }
    }

    fn rebuild(&mut self, found: &Survey<'_>, plan: &mut Plan) {
        // A block that had a replacement is found twice, and is merged.
        self.data.restore(found, plan, |_, _| false);
    }

    #[cfg(test)]
    fn audit(&self) {
        self.data.audit(self.replacement.iter().map(|other| other.block));
    }
}

impl ReplacementBlock {
    /// The logical block of `page`, and its number there.
    fn split(&self, page: Lpn) -> (u32, usize) {
        let logical = self.data.logical_block(page);
        (logical, (page.0 - self.data.pages_of(logical).start) as usize)
    }

    /// From now on pages of `logical` are written once more.
    fn begin(&mut self, logical: u32) {
        let block = self.data.take_free(self.data.home(logical));
        let none = vec![0; self.data.pages_of(logical).len().div_ceil(64)];
        let (programmed, newest) = (none.clone(), none);
        self.replacement = Some(Replacement { logical, block, programmed, newest });
    }

    /// The replacement gets what it has not, and becomes the data block.
    fn fold(&mut self, plan: &mut Plan) {
        let Some(Replacement { logical, block, programmed, newest }) = self.replacement.take()
        else {
            return;
        };
        let pages: Vec<Lpn> = self.data.pages_of(logical).map(Lpn).collect();
        let copied: Vec<Option<Place>> = pages.iter().map(|page| self.data.lookup(*page)).collect();
        let old = self.data.set_block(logical, block).expect("a replacement stands for a block");
        for (offset, (page, from)) in pages.into_iter().zip(copied).enumerate() {
            if let Some(from) = from {
                plan.copy(from, self.data.place_in(block, page));
                self.data.set_programmed(page);
            } else if bits::has(&newest, offset) {
                self.data.set_programmed(page);
            } else if bits::has(&programmed, offset) {
                self.data.set_spent(page);
            }
        }
        plan.count_merge(Merge::Partial);
        plan.barrier();
        plan.erase(old);
        plan.barrier();
        self.data.give_back(old);
    }
}
