//! A channel, and who will arrive there.

use super::Lane;

/// A channel carries one thing at a time. When an operation will arrive is known when its die begins
/// with it; who else arrives before is not.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Channel {
    pub(super) lane: Lane,
    /// When who will arrive, latest first; at one time in the order in which they were announced. One of
    /// a die at most.
    announced: Vec<(u64, u32)>,
}

impl Channel {
    /// The operation will arrive at `at`.
    #[inline]
    pub(super) fn announce(&mut self, at: u64, index: u32) {
        let mut place = self.announced.len();
        self.announced.push((at, index));
        while place > 0 && self.announced[place - 1].0 <= at {
            self.announced[place] = self.announced[place - 1];
            place -= 1;
        }
        self.announced[place] = (at, index);
    }

    /// The first to arrive, where it has arrived by `now`.
    #[inline]
    pub(super) fn take(&mut self, now: u64) -> Option<(u64, u32)> {
        let first = *self.announced.last()?;
        if first.0 > now {
            return None;
        }
        self.announced.pop();
        Some(first)
    }
}
