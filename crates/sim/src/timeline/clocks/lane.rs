//! Something that carries one thing at a time, and may be taken ahead: a gap that is long enough is used.

use std::collections::VecDeque;

/// Something that carries one thing at a time.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Lane {
    /// The last interval that is taken.
    last: (u64, u64),
    /// Those before it that may end in the future, in order, neighbours merged. Mostly none.
    before: VecDeque<(u64, u64)>,
}

impl Lane {
    /// Take the first gap of `length` at or after `ready`; returns its start. Nothing will be ready
    /// before `now` any more.
    #[inline]
    pub(super) fn take(&mut self, now: u64, ready: u64, length: u64) -> u64 {
        if length == 0 {
            return ready;
        }
        if ready < self.last.1 {
            return self.take_gap(now, ready, length);
        }
        if self.last.1 <= now {
            self.before.clear();
        } else {
            self.before.push_back(self.last);
        }
        self.last = (ready, ready + length);
        ready
    }

    fn take_gap(&mut self, now: u64, ready: u64, length: u64) -> u64 {
        while self.before.front().is_some_and(|(_, end)| *end <= now) {
            self.before.pop_front();
        }
        // What lies in the future is a handful of intervals: one by one is faster than by halves.
        let mut start = ready;
        for index in 0..self.before.len() {
            let (from, to) = self.before[index];
            if start + length <= from {
                self.insert_before(index, start, length);
                return start;
            }
            start = start.max(to);
        }
        if start + length <= self.last.0 {
            self.insert_before(self.before.len(), start, length);
            return start;
        }
        start = start.max(self.last.1);
        if start == self.last.1 {
            self.last.1 = start + length;
        } else {
            self.before.push_back(self.last);
            self.last = (start, start + length);
        }
        start
    }

    fn insert_before(&mut self, index: usize, start: u64, length: u64) {
        match index.checked_sub(1).map(|previous| &mut self.before[previous]) {
            Some(previous) if previous.1 == start => previous.1 = start + length,
            _ => self.before.insert(index, (start, start + length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_transfer_takes_the_first_gap_that_is_long_enough() {
        let mut lane = Lane::default();
        assert_eq!(lane.take(0, 100, 10), 100);
        assert_eq!(lane.take(0, 130, 10), 130);
        assert_eq!(lane.take(0, 95, 10), 110, "5 before the first are too few");
        assert_eq!(lane.take(0, 90, 10), 90, "just before the first");
        assert_eq!(lane.take(0, 90, 20), 140, "no gap of 20 before the end");
        assert_eq!(lane.take(120, 120, 10), 120);
    }

    proptest! {
        /// Against a lane that keeps every interval for ever and looks at all of them.
        #[test]
        fn forgetting_the_past_changes_nothing(
            steps in prop::collection::vec((0u64..40, 0u64..200, 1u64..30), 1..300),
        ) {
            let mut lane = Lane::default();
            let mut all: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            for (passes, later, length) in steps {
                now += passes;
                let ready = now + later;
                let ends = all.iter().map(|(_, end)| *end).filter(|end| *end > ready);
                let mut starts: Vec<u64> = ends.chain([ready]).collect();
                starts.sort_unstable();
                let free = |start: u64| all.iter().all(|(from, to)| start + length <= *from || *to <= start);
                let expected = starts.into_iter().find(|start| free(*start)).expect("the end is free");
                prop_assert_eq!(lane.take(now, ready, length), expected);
                all.push((expected, expected + length));
            }
        }
    }
}
