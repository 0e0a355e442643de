//! A channel and its announced arrivals.
//!
//! Service is FIFO, except for plans with many page moves: whichever page of the plan arrived, the
//! one planned first is served, as one processor would send its pages in order. So reads of later
//! pages do not delay the program of a page that has been read.

use super::Lane;

/// A channel transfers one operation's data at a time. An operation's arrival time is known when
/// its die starts it; earlier arrivals of others are not.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Channel {
    pub(super) lane: Lane,
    /// Arrival times and operations, latest first; ties in the order of announcement. At most one
    /// per die.
    announced: Vec<(u64, u32)>,
}

impl Channel {
    /// Announce the operation for `at`.
    #[inline(always)]
    pub(super) fn announce(&mut self, at: u64, index: u32) {
        let mut position = self.announced.len();
        self.announced.push((at, index));
        while position > 0 && self.announced[position - 1].0 <= at {
            self.announced[position] = self.announced[position - 1];
            position -= 1;
        }
        self.announced[position] = (at, index);
    }

    /// Return whether any operation has arrived by `now`.
    #[inline(always)]
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.announced.last().is_some_and(|first| first.0 <= now)
    }

    /// Remove the first operation that has arrived by `now`.
    #[inline]
    pub(super) fn take(&mut self, now: u64) -> Option<(u64, u32)> {
        let first = *self.announced.last()?;
        if first.0 > now {
            return None;
        }
        self.announced.pop();
        Some(first)
    }

    /// Remove the announced operation for which `matches` holds; return it and its arrival time.
    pub(super) fn take_matching(&mut self, matches: impl Fn(u32) -> bool) -> Option<(u64, u32)> {
        let position = self.announced.iter().position(|(_, index)| matches(*index))?;
        Some(self.announced.remove(position))
    }

    /// Like [`Channel::take`], if operations have an order within a plan: `turn` returns plan and
    /// position. Only arrivals before `now` are certain: at `now` others may still arrive.
    #[inline]
    pub(super) fn take_in_plan_order(
        &mut self,
        now: u64,
        turn: impl Fn(u32) -> Option<(u32, u32)>,
    ) -> Option<u32> {
        let (at, first) = *self.announced.last()?;
        let start = self.lane.free_at.max(at);
        if start >= now {
            return None;
        }
        self.announced.pop();
        let Some((plan, mut best)) = turn(first) else { return Some(first) };
        let mut chosen = None;
        let announced = self.announced.iter().enumerate().rev();
        for (position, (_, index)) in announced.take_while(|(_, (at, _))| *at <= start) {
            if let Some((_, rank)) =
                turn(*index).filter(|(other, rank)| *other == plan && *rank < best)
            {
                (chosen, best) = (Some(position), rank);
            }
        }
        let Some(position) = chosen else { return Some(first) };
        // They swap positions.
        Some(std::mem::replace(&mut self.announced[position].1, first))
    }

    /// Return whether an operation that arrives at `at` has to wait.
    #[inline]
    pub(super) fn is_taken(&self, at: u64) -> bool {
        self.lane.free_at > at || self.announced.last().is_some_and(|(other, _)| *other <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_serves_plan_in_planning_order() {
        let mut channel = Channel { lane: Lane { free_at: 11 }, ..Channel::default() };
        // Two of plan 1, one of no plan, and another of plan 1 which comes too late to be first.
        let turns = [Some((1, 7)), None, Some((1, 3)), Some((1, 2))];
        for (at, index) in [(9, 0), (10, 1), (10, 2), (12, 3)] {
            channel.announce(at, index);
        }
        let mut take = |now| channel.take_in_plan_order(now, |index| turns[index as usize]);
        assert_eq!(take(11), None, "at 11 others may still arrive");
        assert_eq!(take(12), Some(2));
        assert_eq!(take(12), Some(1), "the operation before the overtaken page");
        assert_eq!(take(12), Some(0));
        assert_eq!(take(12), None);
        assert_eq!(take(13), Some(3));
    }
}
