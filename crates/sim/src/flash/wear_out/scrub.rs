//! Blocks that are due for scrubbing: their reads since the last erase, or their age, have reached a limit.
//!
//! ```text
//! read      ─▶ reads reach the limit ─▶ due ─┐
//! programmed ─▶ │ oldest │ … │ youngest │    ├─▶ next ─▶ the controller moves the valid pages, and erases it
//!                    └─ age reaches the limit ┘
//! ```
//!
//! **Source**: Y. Cai et al., Flash Correct-and-Refresh (ICCD 2012): remapping-based refresh of blocks; read
//! reclaim, as data sheets of NAND flash require it after a number of reads of a block.
//! **Faithful**: a block is due once between two erases, when its reads or its age reach the limit.
//! **Simplified**: ages are checked when the host sends a request or becomes idle, and not during an idle
//! time; no page is read to count its errors.
//! **Ambiguous**: nothing.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::flash::geometry::BlockIdx;

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
