//! Queues of plans: which plans run, and which blocks they use exclusively.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::device::event::JobIdx;
use crate::flash::plan::FlashPlan;

/// A queue of plans: those that run, and those that wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "Queue")]
pub(super) struct PlanQueue {
    /// Maximum number of plans that run at once if they share no block.
    at_once: u32,
    #[serde(rename = "begun")]
    running: Vec<JobIdx>,
    waiting: VecDeque<JobIdx>,
}

impl PlanQueue {
    pub(super) fn new(at_once: u32) -> PlanQueue {
        PlanQueue { at_once, running: Vec::new(), waiting: VecDeque::new() }
    }

    pub(super) fn at_once(&self) -> u32 {
        self.at_once
    }

    /// Return whether the queue is empty.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Add `job`; return whether it is first in the queue.
    pub(super) fn push(&mut self, job: JobIdx) -> bool {
        self.waiting.push_back(job);
        self.waiting.len() == 1
    }

    /// Return the job that has waited longest.
    pub(super) fn first(&self) -> Option<JobIdx> {
        self.waiting.front().copied()
    }

    /// Return whether the first job may start; `is_disjoint` checks it against each running job.
    pub(super) fn may_start(&self, is_disjoint: impl Fn(JobIdx) -> bool) -> bool {
        self.running.is_empty()
            || self.running.len() < self.at_once as usize
                && self.running.iter().all(|job| is_disjoint(*job))
    }

    /// Start the first job.
    pub(super) fn begin(&mut self) {
        self.running.extend(self.waiting.pop_front());
    }

    /// Remove `job` from the running jobs.
    pub(super) fn end(&mut self, job: JobIdx) {
        self.running.retain(|other| *other != job);
    }
}

/// The blocks that a plan reads, programs or erases, sorted; empty unless several plans run at
/// once.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(rename = "Shared")]
pub(super) struct BlockSet(Vec<u32>);

impl BlockSet {
    pub(super) fn fill(&mut self, plan: &FlashPlan) {
        self.0.clear();
        plan.blocks(|block| self.0.push(block.0));
        self.0.sort_unstable();
        self.0.dedup();
    }

    /// Return whether it shares no block with `other`.
    pub(super) fn is_disjoint(&self, other: &BlockSet) -> bool {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => left.next(),
                std::cmp::Ordering::Greater => right.next(),
                std::cmp::Ordering::Equal => return false,
            };
        }
        true
    }
}
