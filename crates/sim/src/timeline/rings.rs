//! Who waits for a die, and who of them is next.

use std::collections::VecDeque;

use super::op::Purpose;

/// Which of the operations that wait for a die it takes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DieQueue {
    /// The one that came first, as OFC was built (§III).
    #[default]
    Fifo,
    /// Relocations and erases before host I/Os: OFC §VI, so that collection keeps up.
    CollectionFirst,
    /// Host reads before everything else, then host writes: OFC §VI, for a device used as a cache.
    ReadsFirst,
}

impl DieQueue {
    /// Of two that wait, the one of the lower rank is taken; of equal ranks the first.
    fn rank(self, purpose: Purpose) -> u8 {
        match (self, purpose) {
            (DieQueue::Fifo, _) => 0,
            (DieQueue::CollectionFirst, Purpose::HostRead | Purpose::HostWrite) => 1,
            (DieQueue::CollectionFirst, _) => 0,
            (DieQueue::ReadsFirst, Purpose::HostRead) => 0,
            (DieQueue::ReadsFirst, Purpose::HostWrite) => 1,
            (DieQueue::ReadsFirst, _) => 2,
        }
    }
}

/// The time of an end that is not known yet.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// A die: what it does, and who waits for it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Die {
    /// When it has done what it does; `UNKNOWN` while that waits for a channel.
    pub(super) free_at: u64,
    pub(super) held_since: u64,
    pub(super) purpose: Purpose,
    pub(super) ring: VecDeque<u32>,
}

impl Default for Die {
    fn default() -> Die {
        Die { free_at: 0, held_since: 0, purpose: Purpose::HostRead, ring: VecDeque::new() }
    }
}

impl Die {
    /// Take the next one out of the ring.
    pub(super) fn next(
        &mut self,
        queue: DieQueue,
        purpose_of: impl Fn(u32) -> Purpose,
    ) -> Option<u32> {
        if queue == DieQueue::Fifo {
            return self.ring.pop_front();
        }
        let ranks = self.ring.iter().map(|index| queue.rank(purpose_of(*index)));
        let (place, _) = ranks.enumerate().min_by_key(|(place, rank)| (*rank, *place))?;
        self.ring.remove(place)
    }
}
