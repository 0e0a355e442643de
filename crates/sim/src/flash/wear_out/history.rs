//! The history of a block between two erases: its data ages, and every read disturbs it. Blocks whose data
//! is too old, or was read too often, are due for scrubbing.
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

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

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

// Blocks that are due for scrubbing: their reads since the last erase, or their age, have reached a limit.
//
// ```text
// read      ─▶ reads reach the limit ─▶ due ─┐
// programmed ─▶ │ oldest │ … │ youngest │    ├─▶ next ─▶ the controller moves the valid pages, and erases it
//                    └─ age reaches the limit ┘
// ```
//
// **Source**: Y. Cai et al., Flash Correct-and-Refresh (ICCD 2012): remapping-based refresh of blocks; read
// reclaim, as data sheets of NAND flash require it after a number of reads of a block.
// **Faithful**: a block is due once between two erases, when its reads or its age reach the limit.
// **Simplified**: ages are checked when the host sends a request or becomes idle, and not during an idle
// time; no page is read to count its errors.
// **Ambiguous**: nothing.

/// The limits at which a block is due; without limits, no block is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct ScrubLimits {
    /// Reads of its pages since it was erased.
    pub(crate) reads: Option<u32>,
    /// Age of its oldest page [ns].
    pub(crate) age_ns: Option<u64>,
}

/// Blocks that are due, and those that will be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Scrub {
    limits: ScrubLimits,
    /// Blocks that have reached the limit of reads; some may have been erased since.
    read: VecDeque<BlockIdx>,
    /// Blocks with data and the time of their first program; the oldest first, and some may have been erased
    /// since.
    ages: VecDeque<(BlockIdx, u64)>,
}

impl Scrub {
    pub(super) fn new(limits: ScrubLimits) -> Scrub {
        Scrub { limits, read: VecDeque::new(), ages: VecDeque::new() }
    }

    /// Rebuild the lists from the reads of each block and the time of its first program; `is_there` tests
    /// whether such a time stands for data.
    pub(super) fn reset_after_power_loss(
        &mut self,
        reads: &[u32],
        since: &[u64],
        is_there: impl Fn(u64) -> bool,
    ) {
        let limit = self.limits.reads.unwrap_or(u32::MAX);
        let blocks = (0..).map(BlockIdx);
        let read = blocks.clone().zip(reads).filter(|(_, reads)| **reads >= limit);
        self.read = read.map(|(block, _)| block).collect();
        let held = blocks.zip(since).filter(|(_, since)| is_there(**since));
        let mut ages: Vec<(BlockIdx, u64)> = held.map(|(block, since)| (block, *since)).collect();
        // Data written before the hand-over is the oldest.
        ages.sort_by_key(|(block, since)| (since.wrapping_add(2), *block));
        let keeps_ages = self.limits.age_ns.is_some();
        self.ages = ages.into_iter().filter(|_| keeps_ages).collect();
    }

    /// Record that the reads of `block` went from `before` to `after`.
    pub(super) fn read(&mut self, block: BlockIdx, before: u32, after: u32) {
        if self.limits.reads.is_some_and(|limit| before < limit && limit <= after) {
            self.read.push_back(block);
        }
    }

    /// Record that the first page of `block` was programmed at `clock`; `since` has these times of all
    /// blocks.
    pub(super) fn programmed(&mut self, block: BlockIdx, clock: u64, since: &[u64]) {
        if self.limits.age_ns.is_none() {
            return;
        }
        // Each block counts once: a block listed twice was erased in between.
        if self.ages.len() > 2 * since.len() {
            self.ages.retain(|(block, at)| since[block.0 as usize] == *at);
        }
        self.ages.push_back((block, clock));
    }

    /// Return whether a block may be due; `age` computes the age of its data.
    pub(super) fn is_due(&self, age: impl Fn(BlockIdx) -> u64) -> bool {
        !self.read.is_empty() || self.oldest().is_some_and(|(block, limit)| age(block) >= limit)
    }

    /// Return the next block that is due, by its `reads` or by its `age`; `since` detects blocks erased
    /// meanwhile.
    pub(super) fn next(
        &mut self,
        reads: &[u32],
        since: &[u64],
        age: impl Fn(BlockIdx) -> u64,
    ) -> Option<BlockIdx> {
        while let Some(block) = self.read.pop_front() {
            if self.limits.reads.is_some_and(|limit| reads[block.0 as usize] >= limit) {
                return Some(block);
            }
        }
        while let Some((block, limit)) = self.oldest() {
            let (_, at) = self.ages[0];
            let stale = since[block.0 as usize] != at;
            if !stale && age(block) < limit {
                return None;
            }
            self.ages.pop_front();
            if !stale {
                return Some(block);
            }
        }
        None
    }

    /// Return the block that was programmed longest ago, and the age at which it is due.
    fn oldest(&self) -> Option<(BlockIdx, u64)> {
        Some(self.ages.front()?.0).zip(self.limits.age_ns)
    }
}
