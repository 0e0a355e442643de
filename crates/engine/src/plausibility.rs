//! The plausibility check of traces: made before a run is stored, and of every trace that is read.
//!
//! Implausible values come from a bug, or from bytes changed since:
//!
//! - a response time of zero, because two clock readings differ. It is possible only on a simulated
//!   device, whose causes then sum to zero, and on the null device, which is as fast as the clock;
//! - times beyond 2⁶³ ns, which is 292 years;
//! - causes that do not sum to the response time;
//! - a wait before submission in a closed loop, whose I/Os arrive when they are submitted;
//! - submissions of a process that go back in time;
//! - more outstanding I/Os of a process than its queue depth.
//!
//! Long traces are checked piece by piece.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::spec::Resolved;
use crate::trace::wait_column;
use crate::{Columns, Trace};

/// All instants are below this [ns].
const TIME_LIMIT_NS: u64 = 1 << 63;

impl Trace {
    /// Check that the trace is plausible; the error names the I/O.
    ///
    /// `allow_zero_time`: whether an I/O may take no time although no cause explains it.
    ///
    /// # Errors
    /// The first implausible value.
    pub fn check_plausible(&self, allow_zero_time: bool) -> Result<(), String> {
        let mut check = PlausibilityCheck::new(&self.pattern, &self.causes, allow_zero_time);
        check.check(&self.columns)?;
        check.finish()
    }
}

/// Checks the I/Os of a pattern in order.
pub struct PlausibilityCheck<'a> {
    pattern: &'a Resolved,
    /// The index of the column of submission waits.
    wait_column: Option<usize>,
    allow_zero_time: bool,
    /// The number of checked I/Os.
    checked: usize,
    /// The process of the next I/O, and its remaining I/Os.
    process: usize,
    remaining: u64,
    /// The last submission of the process.
    last_submission: u64,
    /// The completions of its outstanding I/Os, earliest first: at most as many as its queue depth.
    outstanding: BinaryHeap<Reverse<u64>>,
}

impl<'a> PlausibilityCheck<'a> {
    /// Create the check of a trace of `pattern` with these causes; `allow_zero_time` as for
    /// [`Trace::check_plausible`].
    #[must_use]
    pub fn new(
        pattern: &'a Resolved,
        causes: &[String],
        allow_zero_time: bool,
    ) -> PlausibilityCheck<'a> {
        let remaining = pattern.streams.first().map_or(0, |stream| stream.total_ios);
        let (checked, process, last_submission) = (0, 0, 0);
        let outstanding = BinaryHeap::new();
        let wait_column = wait_column(causes);
        PlausibilityCheck {
            pattern,
            wait_column,
            allow_zero_time,
            checked,
            process,
            remaining,
            last_submission,
            outstanding,
        }
    }

    /// Check the next I/Os.
    ///
    /// # Errors
    /// The first implausible value.
    pub fn check(&mut self, columns: &Columns) -> Result<(), String> {
        let ios = columns.len();
        let mut lengths = columns.cause_ns.iter().map(Vec::len);
        let expected = self.pattern.streams.iter().map(|stream| stream.total_ios).sum::<u64>();
        let total = (self.checked + ios) as u64;
        if columns.response_time_ns.len() != ios
            || lengths.any(|length| length != ios)
            || total > expected
        {
            return Err(format!("{total} I/Os where the pattern has {expected}"));
        }
        self.check_times(columns)?;
        self.check_causes(columns)?;
        // In an open loop an I/O is outstanding only after its wait for submission.
        let waits = self.wait_column.and_then(|number| columns.cause_ns.get(number));
        for (row, (submit, time)) in
            columns.submit_ns.iter().zip(&columns.response_time_ns).enumerate()
        {
            let wait = waits.map_or(0, |waits| waits[row]);
            self.check_order(*submit, wait, *time)
                .map_err(|message| format!("I/O {}: {message}", self.checked))?;
            self.checked += 1;
        }
        Ok(())
    }

    /// Check that all I/Os of the pattern were checked.
    ///
    /// # Errors
    /// If the pattern has more I/Os.
    pub fn finish(&self) -> Result<(), String> {
        let expected = self.pattern.streams.iter().map(|stream| stream.total_ios).sum::<u64>();
        if self.checked as u64 == expected {
            return Ok(());
        }
        Err(format!("{} I/Os where the pattern has {expected}", self.checked))
    }

    fn check_times(&self, columns: &Columns) -> Result<(), String> {
        let allow_zero_time = self.allow_zero_time || !columns.cause_ns.is_empty();
        let times = columns.submit_ns.iter().zip(&columns.response_time_ns);
        for (index, (submit, time)) in (self.checked..).zip(times) {
            if submit.checked_add(*time).is_none_or(|end| end >= TIME_LIMIT_NS) {
                return Err(format!("I/O {index}: submitted at {submit} ns, took {time} ns"));
            }
            if *time == 0 && !allow_zero_time {
                return Err(format!("I/O {index}: took no time"));
            }
        }
        Ok(())
    }

    fn check_causes(&self, columns: &Columns) -> Result<(), String> {
        if columns.cause_ns.is_empty() {
            return Ok(());
        }
        for (index, time) in columns.response_time_ns.iter().enumerate() {
            let mut parts = columns.cause_ns.iter().map(|part| part[index]);
            let sum = parts.try_fold(0u64, u64::checked_add);
            if sum != Some(*time) {
                let sum = sum.map_or("too much".to_owned(), |sum| format!("{sum} ns"));
                let index = self.checked + index;
                return Err(format!("I/O {index}: took {time} ns, its causes sum to {sum}"));
            }
        }
        Ok(())
    }

    /// Check one I/O: submissions of a process are in order, outstanding I/Os never exceed the
    /// queue depth, and only I/Os of an open loop wait for submission. Times count from `arrived`.
    fn check_order(&mut self, arrived: u64, wait: u64, time: u64) -> Result<(), String> {
        while self.remaining == 0 {
            self.process += 1;
            self.remaining = self.pattern.streams[self.process].total_ios;
            self.last_submission = 0;
            self.outstanding.clear();
        }
        self.remaining -= 1;
        let pattern = self.pattern;
        let stream = &pattern.streams[self.process];
        if wait > 0 && !stream.is_open() {
            return Err(format!("waited {wait} ns for its submission, in a closed loop"));
        }
        let submit = arrived + wait;
        if submit < self.last_submission {
            return Err(format!(
                "submitted at {submit} ns, the one before at {} ns",
                self.last_submission
            ));
        }
        self.last_submission = submit;
        while self.outstanding.peek().is_some_and(|Reverse(end)| *end <= submit) {
            self.outstanding.pop();
        }
        let (depth, outstanding) = (stream.queue_depth, self.outstanding.len());
        if outstanding as u64 >= depth {
            return Err(format!(
                "submitted at {submit} ns with {outstanding} I/Os outstanding, queue depth {depth}"
            ));
        }
        self.outstanding.push(Reverse(arrived + time));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_core::Bytes;

    use crate::PatternSpec;

    fn trace(queue_depth: u64, submit_ns: &[u64], response_time_ns: &[u64]) -> Trace {
        let spec = serde_json::json!({
            "kind": "basic", "mode": "read", "location": "sequential", "io_size": 512,
            "io_count": submit_ns.len(), "io_ignore": 0, "queue_depth": queue_depth,
            "target_size": 1 << 20,
        });
        let spec = PatternSpec::parse(&spec.to_string()).unwrap();
        let pattern = spec.resolve(Bytes(1 << 30), Bytes(512)).unwrap();
        let (submit_ns, response_time_ns) = (submit_ns.to_vec(), response_time_ns.to_vec());
        let columns = Columns { submit_ns, response_time_ns, cause_ns: Vec::new() };
        Trace { pattern, columns, causes: Vec::new(), stop_record: None }
    }

    fn check_error(trace: &Trace) -> String {
        trace.check_plausible(false).unwrap_err()
    }

    #[test]
    fn possible_trace_passes() {
        assert_eq!(trace(1, &[0, 10, 25], &[10, 15, 1]).check_plausible(false), Ok(()));
        // Two outstanding; the second ends first, exactly when the third is submitted.
        assert_eq!(trace(2, &[0, 0, 5], &[100, 5, 7]).check_plausible(false), Ok(()));
    }

    #[test]
    fn zero_latency_of_a_real_device_is_refused() {
        let trace_without_time = trace(1, &[0, 10], &[10, 0]);
        assert_eq!(check_error(&trace_without_time), "I/O 1: took no time");
        assert_eq!(trace_without_time.check_plausible(true), Ok(()));
    }

    #[test]
    fn zero_latency_is_allowed_if_the_causes_sum_to_it() {
        let mut simulated = trace(1, &[0, 10], &[10, 0]);
        simulated.causes = vec!["a".into(), "b".into()];
        simulated.columns.cause_ns = vec![vec![4, 0], vec![6, 0]];
        assert_eq!(simulated.check_plausible(false), Ok(()));
        simulated.columns.cause_ns[1][1] = 1;
        assert_eq!(check_error(&simulated), "I/O 1: took 0 ns, its causes sum to 1 ns");
        simulated.columns.cause_ns = vec![vec![4, u64::MAX], vec![6, 1]];
        assert_eq!(check_error(&simulated), "I/O 1: took 0 ns, its causes sum to too much");
    }

    #[test]
    fn latency_beyond_the_clock_range_is_refused() {
        let below_zero = (-5i64) as u64;
        assert!(check_error(&trace(1, &[0], &[below_zero])).contains("I/O 0"));
        assert!(check_error(&trace(1, &[u64::MAX], &[1])).contains("I/O 0"));
        assert!(check_error(&trace(1, &[TIME_LIMIT_NS - 1], &[1])).contains("I/O 0"));
        assert_eq!(trace(1, &[TIME_LIMIT_NS - 2], &[1]).check_plausible(false), Ok(()));
    }

    #[test]
    fn decreasing_submission_times_are_refused() {
        let expected = "I/O 2: submitted at 19 ns, the one before at 20 ns";
        assert_eq!(check_error(&trace(8, &[0, 20, 19], &[1, 1, 1])), expected);
    }

    #[test]
    fn more_outstanding_ios_than_queue_depth_are_refused() {
        let expected = "I/O 1: submitted at 9 ns with 1 I/Os outstanding, queue depth 1";
        assert_eq!(check_error(&trace(1, &[0, 9], &[10, 1])), expected);
        let expected = "I/O 2: submitted at 9 ns with 2 I/Os outstanding, queue depth 2";
        assert_eq!(check_error(&trace(2, &[0, 0, 9], &[10, 10, 1])), expected);
        assert_eq!(trace(3, &[0, 0, 9], &[10, 10, 1]).check_plausible(false), Ok(()));
    }

    /// Both traces sum to the response time; only an open loop may wait before submission.
    #[test]
    fn submission_wait_is_refused_in_a_closed_loop() {
        let causes = |trace: &mut Trace| {
            trace.causes = vec!["submission_wait_ns".into(), "device_ns".into()];
            trace.columns.cause_ns = vec![vec![0, 3], vec![10, 12]];
        };
        let mut closed = trace(1, &[0, 10], &[10, 15]);
        causes(&mut closed);
        let expected = "I/O 1: waited 3 ns for its submission, in a closed loop";
        assert_eq!(check_error(&closed), expected);
        let spec = PatternSpec::parse(
            r#"{"kind": "basic", "mode": "read", "location": "random", "io_size": 512,
                "time": "fixed", "interval": 10, "io_count": 2, "io_ignore": 0}"#,
        );
        let mut open = trace(1, &[0, 10], &[10, 15]);
        open.pattern = spec.unwrap().resolve(Bytes(1 << 30), Bytes(512)).unwrap();
        causes(&mut open);
        assert_eq!(open.check_plausible(false), Ok(()));
    }

    #[test]
    fn wrong_io_count_is_refused() {
        let mut short = trace(1, &[0, 10], &[1, 1]);
        short.columns.submit_ns.pop();
        short.columns.response_time_ns.pop();
        assert_eq!(check_error(&short), "1 I/Os where the pattern has 2");
    }
}
