//! Replacement block: a block map in which a few blocks at a time may have rewritten pages in a replacement block.
//!
//! ```text
//! data block     A B C D      C is rewritten
//! replacement    . . c .      lookup: c here, and A B D in the data block
//!                A B c D      folded: the rest is copied to it, the data block erased
//! ```
//!
//! **Source**: A. Ban, Flash file system optimized for page-mode flash technologies (US patent 5,937,425, 1999), whose
//! replacement units keep the offsets of the unit that they replace.
//! **Faithful**: fixed offsets in both blocks; the replacement becomes the data block when it is folded.
//! **Simplified**: one replacement behind a block, where the patent chains several behind each unit.
//! **Ambiguous**: when it is folded: here when a page is written a third time, or when another block needs a
//! replacement and this one is the oldest.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use uflip_core::Result;

use super::{FtlOptions, MergingFtl};
use crate::collections::bits;
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::data_blocks::DataBlocks;
use crate::ftl::extent::PageExtent;
use crate::keys::parameters;

parameters! {
    /// The table [replacement] of the profile.
    #[derive(Clone, PartialEq, Debug)]
    pub struct ReplacementPart {
        replaced_at_once: u32 = "1 or more",
            "logical blocks whose pages can be written once more at the same time, each in a \
             replacement block of its own";
    }
}

/// The map of blocks, and the replacement blocks, the oldest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReplacementBlock {
    data: DataBlocks,
    max_replacements: usize,
    replacements: VecDeque<Replacement>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Replacement {
    logical: u32,
    block: BlockIdx,
    /// Per page of the logical block, one bit: it was programmed here, and is the newest version.
    programmed: Vec<u64>,
    newest: Vec<u64>,
}

impl MergingFtl for ReplacementBlock {
    type Table = ReplacementPart;

    fn check(options: &FtlOptions<'_, ReplacementPart>) -> Result<()> {
        let max_replacements = options.table.replaced_at_once;
        DataBlocks::check(
            options,
            max_replacements.into(),
            &format!("{max_replacements} for replacements"),
        )
    }

    fn new(options: &FtlOptions<'_, ReplacementPart>) -> ReplacementBlock {
        let max_replacements = options.table.replaced_at_once as usize;
        let data = DataBlocks::new(options.geometry);
        ReplacementBlock { data, max_replacements, replacements: VecDeque::new() }
    }

    fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let (logical, offset) = self.split(page);
        let replacement = self.replacement_of(logical).map(|at| &self.replacements[at]);
        match replacement.filter(|other| bits::has(&other.newest, offset)) {
            Some(replacement) => Some(self.data.address_in(replacement.block, page)),
            None => self.data.lookup(page),
        }
    }

    fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let (logical, offset) = self.split(page);
        if self.data.block_of(logical).is_none() {
            let block = self.data.take_free(self.data.home_plane(logical));
            self.data.set_block(logical, block);
        }
        if let Some(address) = self.data.erased_page(page) {
            plan.program(address, None);
            return self.data.set_programmed(page);
        }
        let own = self.replacement_of(logical);
        let takes = |at: &usize| !bits::has(&self.replacements[*at].programmed, offset);
        let at = own.filter(takes).unwrap_or_else(|| {
            let full = self.replacements.len() == self.max_replacements;
            own.or(full.then_some(0)).into_iter().for_each(|at| self.fold(at, plan));
            self.begin(logical)
        });
        let merge_from = extent.merge_source(page, || self.lookup(page));
        self.data.set_invalid(page);
        let replacement = &mut self.replacements[at];
        bits::insert(&mut replacement.programmed, offset);
        bits::insert(&mut replacement.newest, offset);
        plan.program(self.data.address_in(replacement.block, page), merge_from);
    }

    fn trim(&mut self, page: Lpn) {
        let (logical, offset) = self.split(page);
        self.data.set_invalid(page);
        if let Some(at) = self.replacement_of(logical) {
            bits::remove(&mut self.replacements[at].newest, offset);
        }
    }

    fn rebuild(&mut self, survey: &Survey<'_>, plan: &mut FlashPlan) {
        // A logical block with a replacement is found twice, and is merged.
        self.data.restore(survey, plan, |_, _| false);
    }

    #[cfg(test)]
    fn audit(&self) {
        self.data.audit(self.replacements.iter().map(|other| other.block));
    }
}

impl ReplacementBlock {
    /// Return the logical block of `page`, and its offset there.
    fn split(&self, page: Lpn) -> (u32, usize) {
        let logical = self.data.logical_block(page);
        (logical, (page.0 - self.data.pages_of(logical).start) as usize)
    }

    /// Return the index of the replacement of `logical`.
    fn replacement_of(&self, logical: u32) -> Option<usize> {
        self.replacements.iter().position(|other| other.logical == logical)
    }

    /// Begin a replacement of `logical`; returns its index.
    fn begin(&mut self, logical: u32) -> usize {
        let block = self.data.take_free(self.data.home_plane(logical));
        let none = vec![0; self.data.pages_of(logical).len().div_ceil(64)];
        let (programmed, newest) = (none.clone(), none);
        self.replacements.push_back(Replacement { logical, block, programmed, newest });
        self.replacements.len() - 1
    }

    /// Copy the missing pages to the replacement, which becomes the data block.
    fn fold(&mut self, at: usize, plan: &mut FlashPlan) {
        let Some(replacement) = self.replacements.remove(at) else { return };
        let Replacement { logical, block, programmed, newest } = replacement;
        let pages: Vec<Lpn> = self.data.pages_of(logical).map(Lpn).collect();
        let copied: Vec<Option<PageAddress>> =
            pages.iter().map(|page| self.data.lookup(*page)).collect();
        let old =
            self.data.set_block(logical, block).expect("a replacement block replaces a data block");
        for (offset, (page, from)) in pages.into_iter().zip(copied).enumerate() {
            if let Some(from) = from {
                plan.copy(from, self.data.address_in(block, page));
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
        self.data.release(old);
    }
}
