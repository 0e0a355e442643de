//! Scrubbing: blocks are moved because of their reads or their age.
//!
//! A page map moves the valid pages, as in a collection. Under a merging FTL it is invisible: the programmed
//! pages are copied to a reserve block, page by page, which replaces the block; the block is erased and joins
//! the end of the reserve.

use super::Flash;
use super::plan_executor::PlanExecutor;
use crate::flash::geometry::BlockIdx;
use crate::flash::plan::FlashPlan;

impl Flash {
    /// Return whether a block may be due at `clock`.
    #[inline]
    pub(crate) fn has_scrubs(&self, clock: u64) -> bool {
        self.wear_out.as_ref().is_some_and(|wear_out| wear_out.has_due(clock))
    }

    /// Return the next block that is due.
    pub(crate) fn next_scrub(&mut self, clock: u64) -> Option<BlockIdx> {
        self.wear_out.as_mut()?.next_due(clock)
    }

    /// Copy `block` to a reserve block; `plan` receives the executed operations. Does nothing if the reserve
    /// is empty or the FTL does not use `block`.
    pub(crate) fn scrub(&mut self, block: BlockIdx, plan: &mut FlashPlan) {
        let logical =
            self.replacements.as_ref().and_then(|replacements| replacements.logical(block));
        let held = logical.filter(|_| !self.nand.programmed(block).is_empty());
        if let Some(logical) = held {
            self.replacements().notes.clear();
            let scrubbed = PlanExecutor { flash: self, executed: plan }.scrub(logical);
            self.counters.blocks_scrubbed += u64::from(scrubbed);
        }
    }
}
