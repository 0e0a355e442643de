//! Blocks that are moved because of their reads or their age.
//!
//! A page map moves what is valid, as when it collects. An FTL that merges never hears of it: what is programmed
//! is copied to a block in reserve, page by page, which stands in for the block from then on, and the block is the
//! last in reserve when it is erased.

use super::Flash;
use super::worn::Worn;
use crate::flash::geometry::BlockIdx;
use crate::flash::plan::Plan;

impl Flash {
    /// Whether a block may be due at `clock`.
    #[inline]
    pub(crate) fn has_scrubs(&self, clock: u64) -> bool {
        self.wear_out.as_ref().is_some_and(|wear_out| wear_out.has_due(clock))
    }

    /// The next block that is.
    pub(crate) fn next_scrub(&mut self, clock: u64) -> Option<BlockIdx> {
        self.wear_out.as_mut()?.next_due(clock)
    }

    /// Let another block stand in for `block`; `plan` is what was done. Nothing where no block is in reserve, or
    /// none stands behind it.
    pub(crate) fn scrub(&mut self, block: BlockIdx, plan: &mut Plan) {
        let known = self.replaced.as_ref().and_then(|replaced| replaced.known(block));
        let held = known.filter(|_| !self.nand.programmed(block).is_empty());
        if let Some(known) = held {
            self.replaced().notes.clear();
            let scrubbed = Worn { flash: self, done: plan }.scrub(known);
            self.counters.blocks_scrubbed += u64::from(scrubbed);
        }
    }
}
