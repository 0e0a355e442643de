//! Recovery of data blocks after a power loss.
//!
//! ```text
//! blocks of one logical block, every page of each at its own offset
//! one of them           it is the data block
//! any other case        the newest of all pages, from these and from logs, is copied to a new block; these are erased
//! ```
//!
//! **Source**: the inverse map of uFLIP (2009) §2.2.
//! **Faithful**: only spare areas are used; the copies of a merge count if it was finished.
//! **Simplified**: a log that was being filled in order is merged.
//! **Ambiguous**: nothing.

use std::collections::BTreeMap;

use super::data_blocks::DataBlocks;
use crate::flash::contents::survey::{Holding, Survey};
use crate::flash::geometry::{BlockIdx, Lpn};
use crate::flash::plan::{FlashPlan, Merge};

impl DataBlocks {
    /// Find the data block of every logical block. If its blocks are not a single one with all pages at
    /// their own offsets, `fits` receives them in the order in which they were opened; if it returns false they are
    /// merged. Blocks with pages of several logical blocks are ignored.
    pub(crate) fn restore(
        &mut self,
        survey: &Survey<'_>,
        plan: &mut FlashPlan,
        mut fits: impl FnMut(&mut DataBlocks, &[(BlockIdx, Holding)]) -> bool,
    ) {
        let mut by_logical_block: BTreeMap<u32, Vec<(BlockIdx, Holding)>> = BTreeMap::new();
        for block in survey.blocks() {
            self.take_used(block);
            let holding = survey.holding(block);
            match holding {
                Holding::InPlace(logical) | Holding::Of(logical) => {
                    by_logical_block.entry(logical).or_default().push((block, holding));
                }
                Holding::Mixed => {}
            }
        }
        for (logical, blocks) in by_logical_block {
            match blocks[..] {
                [(block, Holding::InPlace(_))] => self.adopt(logical, block, survey),
                _ if fits(self, &blocks) => {}
                _ => {
                    let old = blocks.iter().map(|(block, _)| *block);
                    self.merge_all(logical, old, survey, plan);
                }
            }
        }
    }

    /// Make `block` the data block of `logical`.
    pub(crate) fn adopt(&mut self, logical: u32, block: BlockIdx, survey: &Survey<'_>) {
        self.set_block(logical, block);
        for page in self.pages_of(logical).map(Lpn) {
            let at = self.address_in(block, page);
            if !survey.is_erased_at(at) {
                self.set_spent(page);
            }
            if survey.address_of(page) == Some(at) {
                self.set_programmed(page);
            }
        }
    }

    /// Copy the newest version of every page of `logical` to a new block, and erase `old`.
    fn merge_all(
        &mut self,
        logical: u32,
        old: impl Iterator<Item = BlockIdx>,
        survey: &Survey<'_>,
        plan: &mut FlashPlan,
    ) {
        let block = self.take_free(self.home_plane(logical));
        plan.count_merge(Merge::Full);
        self.set_block(logical, block);
        for page in self.pages_of(logical).map(Lpn) {
            if let Some(from) = survey.address_of(page) {
                plan.copy(from, self.address_in(block, page));
                self.set_programmed(page);
            }
        }
        plan.barrier();
        for old in old {
            plan.erase(old);
            self.release(old);
        }
        plan.barrier();
    }
}
