//! The history of a block between two erases: its data ages, and every read disturbs it.
//!
//! ```text
//!  RBER × (1 + (A / A₂)^g)      A since the block's first page was programmed (retention_by_block)
//!  RBER × (1 + R / R₂)          R pages read of the block since it was erased (read_disturb_doubling)
//! ```
//!
//! **Source**: Y. Cai et al., Data Retention in MLC NAND Flash Memory (HPCA 2015), and Read Disturb Errors in MLC
//! NAND Flash Memory (DSN 2015): errors grow in proportion to reads, and faster where there was more wear.
//! **Faithful**: both are reset by an erase; moved data is young again; a retried read disturbs as well.
//! **Simplified**: the oldest page of a block gives its age; a read disturbs all pages of the block equally,
//! whereas it disturbs neighbours most; wear, age and reads multiply.
//! **Ambiguous**: nothing.

use serde::{Deserialize, Serialize};

use super::scrub::{Scrub, ScrubLimits};
use crate::flash::geometry::BlockIdx;
use crate::flash::reliability::{Rber, interpolate, tabulate};

/// The clock value before the device was handed over.
pub(crate) const BEFORE: u64 = u64::MAX - 1;
/// No page was programmed since the last erase.
const NEVER: u64 = u64::MAX;

/// The history of every block.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "History")]
pub(crate) struct BlockHistory {
    /// When its first page was programmed since its last erase [ns]; empty if all data has one age.
    since: Vec<u64>,
    /// Pages read since its last erase; empty if reads do not disturb.
    reads: Vec<u32>,
    /// Factor of errors by reads, see [`interpolate`].
    disturbed: Vec<Rber>,
    /// The blocks that must be scrubbed because of either, if scrubbing is enabled.
    scrub: Option<Scrub>,
}

impl BlockHistory {
    /// Create the history of `blocks` blocks, of their ages, their reads, or both; `doubling` reads double
    /// the errors.
    pub(crate) fn new(blocks: u32, ages: bool, doubling: Option<u32>) -> BlockHistory {
        let disturbed = doubling
            .map_or(Vec::new(), |doubling| tabulate(32, |reads| 1.0 + reads / f64::from(doubling)));
        let of_all = |is_recorded: bool| if is_recorded { blocks as usize } else { 0 };
        BlockHistory {
            since: vec![NEVER; of_all(ages)],
            reads: vec![0; of_all(doubling.is_some())],
            disturbed,
            scrub: None,
        }
    }

    /// Return this history with scrubbing at `limits`.
    pub(crate) fn scrubbed(self, limits: ScrubLimits) -> BlockHistory {
        BlockHistory {
            scrub: (limits != ScrubLimits::default()).then(|| Scrub::new(limits)),
            ..self
        }
    }

    /// Record that a page of `block` was programmed at `clock`.
    #[inline]
    pub(super) fn programmed(&mut self, block: BlockIdx, clock: u64) {
        if let Some(since) = self.since.get_mut(block.0 as usize).filter(|since| **since == NEVER) {
            *since = clock;
            if let Some(scrub) = &mut self.scrub {
                scrub.programmed(block, clock, &self.since);
            }
        }
    }

    /// Record that pages of `block` were read `times` times.
    #[inline]
    pub(super) fn read(&mut self, block: BlockIdx, times: u32) {
        if let Some(reads) = self.reads.get_mut(block.0 as usize) {
            let before = *reads;
            *reads = reads.saturating_add(times);
            if let Some(scrub) = &mut self.scrub {
                scrub.read(block, before, *reads);
            }
        }
    }

    /// Return whether a block may be due at `clock`; data written before the hand-over was `before`
    /// old then.
    pub(super) fn has_due(&self, clock: u64, before: u64) -> bool {
        let due = |scrub: &Scrub| scrub.is_due(|block| self.age_ns(block, clock, before));
        self.scrub.as_ref().is_some_and(due)
    }

    /// Return the next block that is due.
    pub(super) fn next_due(&mut self, clock: u64, before: u64) -> Option<BlockIdx> {
        let mut scrub = self.scrub.take()?;
        let age = |block| self.age_ns(block, clock, before);
        let next = scrub.next(&self.reads, &self.since, age);
        self.scrub = Some(scrub);
        next
    }

    /// Reset after a power loss, with these erased blocks.
    pub(super) fn reset_after_power_loss(&mut self, erased: impl Iterator<Item = BlockIdx>) {
        erased.for_each(|block| self.erased(block));
        if let Some(scrub) = &mut self.scrub {
            scrub.reset_after_power_loss(&self.reads, &self.since, |since| since != NEVER);
        }
    }

    /// Record that `block` was erased.
    pub(super) fn erased(&mut self, block: BlockIdx) {
        self.since.get_mut(block.0 as usize).into_iter().for_each(|since| *since = NEVER);
        self.reads.get_mut(block.0 as usize).into_iter().for_each(|reads| *reads = 0);
    }

    /// Return the age of the data of `block` [ns]; data written before the hand-over was `before` old then.
    pub(super) fn age_ns(&self, block: BlockIdx, clock: u64, before: u64) -> u64 {
        match self.since.get(block.0 as usize) {
            None => before,
            Some(&BEFORE) if clock == BEFORE => before,
            Some(&BEFORE) => before.saturating_add(clock),
            Some(since) => clock.saturating_sub(*since),
        }
    }

    /// Return the factor of errors that the reads of `block` cause.
    pub(super) fn disturbed(&self, block: BlockIdx) -> Rber {
        let reads = self.reads.get(block.0 as usize).copied().unwrap_or(0);
        interpolate(&self.disturbed, reads.into())
    }
}
