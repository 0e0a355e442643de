//! The host gap of each I/O: the time from its due time to its submission, which the host spent
//! elsewhere.
//!
//! ```text
//!  I/O i−1  ├────── response time ──────┤
//!                                       due          submitted
//!  I/O i                                 ├─ host gap ─┤──── response time ────┤
//! ```
//!
//! Between two I/Os the loop takes tens of nanoseconds. A much longer gap means that another
//! process had the CPU, or that a page fault occurred; the device was idle meanwhile, without a
//! requested pause.
//!
//! An I/O is due when its queue has a free entry, the pause before it is over, or it arrives; and
//! never before the previously submitted I/O. All of that follows from the pattern and the recorded
//! times, so nothing more is measured or stored. Time spent by the host *within* a system call is
//! part of the response time and cannot be separated from the device's time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::pattern::{NextRequest, Pattern, When};
use crate::spec::Resolved;

/// Computes the host gaps of the I/Os of a pattern, in order.
#[derive(Clone, Debug)]
pub struct HostGaps {
    process: usize,
    remaining: u64,
    sequence: Pattern,
    depth: usize,
    /// The submission of the previous I/O; `None` before the first one of a process.
    last_submission: Option<u64>,
    /// The completions of outstanding I/Os, earliest first: at most as many as the queue depth.
    outstanding: BinaryHeap<Reverse<u64>>,
    last_end: u64,
}

impl HostGaps {
    /// Start before the first I/O of `pattern`, which has at least one process.
    #[must_use]
    pub fn new(pattern: &Resolved) -> HostGaps {
        HostGaps::at(pattern, 0)
    }

    fn at(pattern: &Resolved, process: usize) -> HostGaps {
        let spec = &pattern.streams[process];
        HostGaps {
            process,
            remaining: spec.total_ios,
            sequence: Pattern::new(spec),
            depth: spec.queue_depth as usize,
            last_submission: None,
            outstanding: BinaryHeap::new(),
            last_end: 0,
        }
    }

    /// Return the host gap of the next I/O of the same pattern [ns]. Its response time counts from
    /// `from`, and it was submitted `waited` later, on one clock. The first I/O of a process has no
    /// gap, unless it has an arrival.
    pub fn next(&mut self, pattern: &Resolved, from: u64, waited: u64, response_time: u64) -> u64 {
        while self.remaining == 0 && self.process + 1 < pattern.streams.len() {
            *self = HostGaps::at(pattern, self.process + 1);
        }
        self.remaining = self.remaining.saturating_sub(1);
        let NextRequest { when, .. } = self.sequence.next_io();
        let submitted = from.saturating_add(waited);
        let is_full = self.outstanding.len() == self.depth;
        let freed = if is_full { self.outstanding.pop().map_or(0, |Reverse(end)| end) } else { 0 };
        let free_at = freed.max(self.last_submission.unwrap_or(0));
        let due = match when {
            When::At(instant) => free_at.max(instant.0),
            When::After(_) if self.last_submission.is_none() => submitted,
            When::After(pause) if pause.0 > 0 => self.last_end.saturating_add(pause.0),
            When::After(_) => free_at,
        };
        let end = from.saturating_add(response_time);
        self.last_submission = Some(submitted);
        self.outstanding.push(Reverse(end));
        self.last_end = self.last_end.max(end);
        submitted.saturating_sub(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PatternSpec;
    use serde_json::{Value, json};
    use uflip_core::Bytes;

    fn gaps(more: Value, ios: &[(u64, u64, u64)]) -> Vec<u64> {
        let mut spec = json!({
            "kind": "basic", "mode": "read", "location": "sequential", "io_size": 512,
            "io_count": ios.len(), "target_size": 1 << 20,
        });
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let spec = PatternSpec::parse(&spec.to_string()).unwrap();
        let pattern = spec.resolve(Bytes(1 << 30), Bytes(512)).unwrap();
        let mut gaps = HostGaps::new(&pattern);
        ios.iter()
            .map(|(from, waited, response_time)| {
                gaps.next(&pattern, *from, *waited, *response_time)
            })
            .collect()
    }

    #[test]
    fn consecutive_ios_have_the_time_between_as_gap() {
        assert_eq!(
            gaps(json!({}), &[(7, 0, 10), (17, 0, 10), (90, 0, 5), (96, 0, 5)]),
            [0, 0, 63, 1]
        );
    }

    #[test]
    fn only_time_beyond_the_pause_is_a_gap() {
        let paused = json!({"time": "burst", "pause": 100, "burst": 2});
        let ios = [(0, 0, 10), (10, 0, 10), (120, 0, 10), (130, 0, 10), (290, 0, 10)];
        assert_eq!(gaps(paused, &ios), [0, 0, 0, 0, 50]);
    }

    /// Depth 2: the third I/O finds a free entry when the second, the first to complete, ends.
    #[test]
    fn queue_has_a_free_entry_after_the_first_completion() {
        let ios = [(0, 0, 100), (1, 0, 9), (30, 0, 200), (100, 0, 5), (110, 0, 1)];
        assert_eq!(gaps(json!({"queue_depth": 2}), &ios), [0, 1, 20, 0, 5]);
    }

    /// Arrivals at 0, 100, 200, …: the second waits for the first, the third for the host.
    #[test]
    fn waiting_for_a_queue_entry_is_not_host_gap() {
        let open = json!({"time": "fixed", "interval": 100});
        assert_eq!(gaps(open, &[(0, 0, 150), (100, 50, 60), (200, 30, 40)]), [0, 0, 30]);
    }

    #[test]
    fn each_process_has_its_own_gaps() {
        let parallel = json!({"parallel_degree": 2, "io_count": 2});
        assert_eq!(
            gaps(parallel, &[(0, 0, 10), (15, 0, 10), (3, 0, 10), (13, 0, 10)]),
            [0, 5, 0, 0]
        );
    }
}
