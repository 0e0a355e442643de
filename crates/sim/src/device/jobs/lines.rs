//! Where plans wait for each other: which of them go on, and what these have to themselves.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::device::event::JobIdx;
use crate::flash::plan::Plan;

/// A line: who goes on, and who waits behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Queue {
    /// So many go on at once, where they share no block.
    at_once: u32,
    begun: Vec<JobIdx>,
    waiting: VecDeque<JobIdx>,
}

impl Queue {
    pub(super) fn new(at_once: u32) -> Queue {
        Queue { at_once, begun: Vec::new(), waiting: VecDeque::new() }
    }

    pub(super) fn at_once(&self) -> u32 {
        self.at_once
    }

    /// Whether nobody is here.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.begun.is_empty() && self.waiting.is_empty()
    }

    /// `job` comes; whether nobody waits before it.
    pub(super) fn come(&mut self, job: JobIdx) -> bool {
        self.waiting.push_back(job);
        self.waiting.len() == 1
    }

    /// Who waits for the longest.
    pub(super) fn first(&self) -> Option<JobIdx> {
        self.waiting.front().copied()
    }

    /// Whether the first may begin, which `is_apart` of those that go on.
    pub(super) fn lets_begin(&self, is_apart: impl Fn(JobIdx) -> bool) -> bool {
        self.begun.is_empty()
            || self.begun.len() < self.at_once as usize
                && self.begun.iter().all(|job| is_apart(*job))
    }

    /// The first begins.
    pub(super) fn begin(&mut self) {
        self.begun.extend(self.waiting.pop_front());
    }

    /// `job` holds nobody up any more.
    pub(super) fn end(&mut self, job: JobIdx) {
        self.begun.retain(|other| *other != job);
    }
}

/// The blocks that a plan reads, programs and erases, in order; kept where several plans go on at once.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(super) struct Shared(Vec<u32>);

impl Shared {
    pub(super) fn fill(&mut self, plan: &Plan) {
        self.0.clear();
        plan.blocks(|block| self.0.push(block.0));
        self.0.sort_unstable();
        self.0.dedup();
    }

    /// Whether it has no block that another has.
    pub(super) fn is_apart(&self, other: &Shared) -> bool {
        let (mut one, mut two) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(a), Some(b)) = (one.peek(), two.peek()) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => one.next(),
                std::cmp::Ordering::Greater => two.next(),
                std::cmp::Ordering::Equal => return false,
            };
        }
        true
    }
}
