//! Does a trace make physical sense? Asked before a run is stored, and of every trace that is read.
//!
//! What cannot have been measured is a mistake of ours, or bytes that have changed since:
//!
//! - a response time of zero: two readings of a clock differ. Possible only of a simulated device, whose
//!   causes then sum to zero, and of the null device, which is as fast as the clock;
//! - times beyond 2⁶³ ns, which is 292 years;
//! - causes that do not sum to the response time;
//! - a wait for the submission in a closed loop, whose I/Os arrive when they are submitted;
//! - submissions of a process that go back in time;
//! - more I/Os of a process under way than its queue is deep.
//!
//! Long traces are looked at piece by piece.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::causes::wait_column;
use crate::spec::Resolved;
use crate::{Columns, Trace};

/// Instants are below this [ns].
const LATEST: u64 = 1 << 63;

impl Trace {
    /// Say what of this trace cannot have happened, and at which I/O.
    ///
    /// `at_once`: whether an I/O may take no time although no cause says so.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_sense(&self, at_once: bool) -> Result<(), String> {
        let mut sense = Sense::of(&self.pattern, &self.causes, at_once);
        sense.look(&self.columns)?;
        sense.end()
    }
}

/// Looks at the I/Os of a pattern in their order.
pub struct Sense<'a> {
    pattern: &'a Resolved,
    /// Which column has the waits for submission.
    wait_column: Option<usize>,
    at_once: bool,
    /// I/Os that were looked at.
    seen: usize,
    /// The process of the next one, and the number of its I/Os to come.
    process: usize,
    to_come: u64,
    /// When the last one of the process was submitted.
    before: u64,
    /// Ends of what the process has under way, the next first: never more than its queue is deep.
    under_way: BinaryHeap<Reverse<u64>>,
}

impl<'a> Sense<'a> {
    /// Of a trace of `pattern` with columns of these causes; `at_once` as for [`Trace::check_sense`].
    #[must_use]
    pub fn of(pattern: &'a Resolved, causes: &[String], at_once: bool) -> Sense<'a> {
        let to_come = pattern.streams.first().map_or(0, |stream| stream.total_ios);
        let (seen, process, before) = (0, 0, 0);
        let under_way = BinaryHeap::new();
        let wait_column = wait_column(causes);
        Sense { pattern, wait_column, at_once, seen, process, to_come, before, under_way }
    }

    /// Look at the next I/Os.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn look(&mut self, columns: &Columns) -> Result<(), String> {
        let ios = columns.len();
        let mut lengths = columns.cause_ns.iter().map(Vec::len);
        let expected = self.pattern.streams.iter().map(|stream| stream.total_ios).sum::<u64>();
        let in_all = (self.seen + ios) as u64;
        if columns.response_time_ns.len() != ios
            || lengths.any(|length| length != ios)
            || in_all > expected
        {
            return Err(format!("{in_all} I/Os where the pattern has {expected}"));
        }
        self.check_times(columns)?;
        self.check_causes(columns)?;
        // In an open loop an I/O is under way after it has waited for its submission.
        let waits = self.wait_column.and_then(|number| columns.cause_ns.get(number));
        for (row, (submit, time)) in
            columns.submit_ns.iter().zip(&columns.response_time_ns).enumerate()
        {
            let wait = waits.map_or(0, |waits| waits[row]);
            self.check_order(*submit, wait, *time)
                .map_err(|message| format!("I/O {}: {message}", self.seen))?;
            self.seen += 1;
        }
        Ok(())
    }

    /// That was all.
    ///
    /// # Errors
    /// The pattern has more I/Os.
    pub fn end(&self) -> Result<(), String> {
        let expected = self.pattern.streams.iter().map(|stream| stream.total_ios).sum::<u64>();
        if self.seen as u64 == expected {
            return Ok(());
        }
        Err(format!("{} I/Os where the pattern has {expected}", self.seen))
    }

    fn check_times(&self, columns: &Columns) -> Result<(), String> {
        let at_once = self.at_once || !columns.cause_ns.is_empty();
        let times = columns.submit_ns.iter().zip(&columns.response_time_ns);
        for (index, (submit, time)) in (self.seen..).zip(times) {
            if submit.checked_add(*time).is_none_or(|end| end >= LATEST) {
                return Err(format!("I/O {index}: submitted at {submit} ns, took {time} ns"));
            }
            if *time == 0 && !at_once {
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
                let index = self.seen + index;
                return Err(format!("I/O {index}: took {time} ns, its causes sum to {sum}"));
            }
        }
        Ok(())
    }

    /// Submissions of one process follow each other, no more than its queue is deep are ever under way, and
    /// only what arrives at instants of its own waits for its submission. Times count from `arrived`.
    fn check_order(&mut self, arrived: u64, wait: u64, time: u64) -> Result<(), String> {
        while self.to_come == 0 {
            self.process += 1;
            self.to_come = self.pattern.streams[self.process].total_ios;
            self.before = 0;
            self.under_way.clear();
        }
        self.to_come -= 1;
        let pattern = self.pattern;
        let stream = &pattern.streams[self.process];
        if wait > 0 && !stream.is_open() {
            return Err(format!("waited {wait} ns for its submission, in a closed loop"));
        }
        let submit = arrived + wait;
        if submit < self.before {
            return Err(format!("submitted at {submit} ns, the one before at {} ns", self.before));
        }
        self.before = submit;
        while self.under_way.peek().is_some_and(|Reverse(end)| *end <= submit) {
            self.under_way.pop();
        }
        let (depth, under_way) = (stream.queue_depth, self.under_way.len());
        if under_way as u64 >= depth {
            return Err(format!(
                "submitted at {submit} ns with {under_way} I/Os under way already, queue depth {depth}"
            ));
        }
        self.under_way.push(Reverse(arrived + time));
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
        Trace { pattern, columns, causes: Vec::new(), ended: None }
    }

    fn wrong(trace: &Trace) -> String {
        trace.check_sense(false).unwrap_err()
    }

    #[test]
    fn what_a_device_can_do_makes_sense() {
        assert_eq!(trace(1, &[0, 10, 25], &[10, 15, 1]).check_sense(false), Ok(()));
        // Two under way; the second ends first, and the third comes at the very end of it.
        assert_eq!(trace(2, &[0, 0, 5], &[100, 5, 7]).check_sense(false), Ok(()));
    }

    #[test]
    fn no_io_of_a_real_device_takes_no_time() {
        let at_once = trace(1, &[0, 10], &[10, 0]);
        assert_eq!(wrong(&at_once), "I/O 1: took no time");
        assert_eq!(at_once.check_sense(true), Ok(()));
    }

    #[test]
    fn a_simulated_one_may_where_its_causes_say_so() {
        let mut simulated = trace(1, &[0, 10], &[10, 0]);
        simulated.causes = vec!["a".into(), "b".into()];
        simulated.columns.cause_ns = vec![vec![4, 0], vec![6, 0]];
        assert_eq!(simulated.check_sense(false), Ok(()));
        simulated.columns.cause_ns[1][1] = 1;
        assert_eq!(wrong(&simulated), "I/O 1: took 0 ns, its causes sum to 1 ns");
        simulated.columns.cause_ns = vec![vec![4, u64::MAX], vec![6, 1]];
        assert_eq!(wrong(&simulated), "I/O 1: took 0 ns, its causes sum to too much");
    }

    #[test]
    fn nothing_takes_three_hundred_years() {
        let below_zero = (-5i64) as u64;
        assert!(wrong(&trace(1, &[0], &[below_zero])).contains("I/O 0"));
        assert!(wrong(&trace(1, &[u64::MAX], &[1])).contains("I/O 0"));
        assert!(wrong(&trace(1, &[LATEST - 1], &[1])).contains("I/O 0"));
        assert_eq!(trace(1, &[LATEST - 2], &[1]).check_sense(false), Ok(()));
    }

    #[test]
    fn a_process_does_not_go_back_in_time() {
        let expected = "I/O 2: submitted at 19 ns, the one before at 20 ns";
        assert_eq!(wrong(&trace(8, &[0, 20, 19], &[1, 1, 1])), expected);
    }

    #[test]
    fn no_more_is_under_way_than_the_queue_is_deep() {
        let expected = "I/O 1: submitted at 9 ns with 1 I/Os under way already, queue depth 1";
        assert_eq!(wrong(&trace(1, &[0, 9], &[10, 1])), expected);
        let expected = "I/O 2: submitted at 9 ns with 2 I/Os under way already, queue depth 2";
        assert_eq!(wrong(&trace(2, &[0, 0, 9], &[10, 10, 1])), expected);
        assert_eq!(trace(3, &[0, 0, 9], &[10, 10, 1]).check_sense(false), Ok(()));
    }

    /// Both traces sum to the response time; only the second loop may wait before it submits.
    #[test]
    fn only_an_open_loop_waits_for_its_submission() {
        let causes = |trace: &mut Trace| {
            trace.causes = vec!["submission_wait_ns".into(), "device_ns".into()];
            trace.columns.cause_ns = vec![vec![0, 3], vec![10, 12]];
        };
        let mut closed = trace(1, &[0, 10], &[10, 15]);
        causes(&mut closed);
        let expected = "I/O 1: waited 3 ns for its submission, in a closed loop";
        assert_eq!(wrong(&closed), expected);
        let spec = PatternSpec::parse(
            r#"{"kind": "basic", "mode": "read", "location": "random", "io_size": 512,
                "time": "fixed", "interval": 10, "io_count": 2, "io_ignore": 0}"#,
        );
        let mut open = trace(1, &[0, 10], &[10, 15]);
        open.pattern = spec.unwrap().resolve(Bytes(1 << 30), Bytes(512)).unwrap();
        causes(&mut open);
        assert_eq!(open.check_sense(false), Ok(()));
    }

    #[test]
    fn there_are_as_many_ios_as_the_pattern_says() {
        let mut short = trace(1, &[0, 10], &[1, 1]);
        short.columns.submit_ns.pop();
        short.columns.response_time_ns.pop();
        assert_eq!(wrong(&short), "1 I/Os where the pattern has 2");
    }
}
