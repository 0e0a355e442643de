//! Does a trace make physical sense? Asked before a run is stored, and of every trace that is read.
//!
//! What cannot have been measured is a mistake of ours, or bytes that have changed since:
//!
//! - a response time of zero: two readings of a clock differ. Possible only of a simulated device, whose
//!   causes then sum to zero, and of the null device, which is as fast as the clock;
//! - times beyond 2⁶³ ns, which is 292 years;
//! - causes that do not sum to the response time;
//! - submissions of a process that go back in time;
//! - more I/Os of a process under way than its queue is deep.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Trace;

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
        let (submitted, times) = (&self.submit_ns, &self.response_time_ns);
        let lengths = [times.len(), self.packed_io.len()].into_iter();
        let mut lengths = lengths.chain(self.cause_ns.iter().map(Vec::len));
        let expected = self.pattern.streams.iter().map(|stream| stream.total_ios).sum::<u64>();
        if lengths.any(|length| length != submitted.len()) || submitted.len() as u64 != expected {
            return Err(format!("{} I/Os where the pattern has {expected}", submitted.len()));
        }
        self.check_times(at_once || !self.causes.is_empty())?;
        self.check_causes()?;
        let mut from = 0;
        for stream in &self.pattern.streams {
            let to = from + stream.total_ios as usize;
            let (submitted, times) = (&submitted[from..to], &times[from..to]);
            check_order(submitted, times, stream.queue_depth as usize)
                .map_err(|(index, message)| format!("I/O {}: {message}", from + index))?;
            from = to;
        }
        Ok(())
    }

    fn check_times(&self, at_once: bool) -> Result<(), String> {
        for (index, (submit, time)) in self.submit_ns.iter().zip(&self.response_time_ns).enumerate()
        {
            if submit.checked_add(*time).is_none_or(|end| end >= LATEST) {
                return Err(format!("I/O {index}: submitted at {submit} ns, took {time} ns"));
            }
            if *time == 0 && !at_once {
                return Err(format!("I/O {index}: took no time"));
            }
        }
        Ok(())
    }

    fn check_causes(&self) -> Result<(), String> {
        if self.causes.is_empty() {
            return Ok(());
        }
        for (index, time) in self.response_time_ns.iter().enumerate() {
            let parts =
                self.cause_ns.iter().try_fold(0u64, |sum, part| sum.checked_add(part[index]));
            if parts != Some(*time) {
                let sum = parts.map_or("too much".to_owned(), |sum| format!("{sum} ns"));
                return Err(format!("I/O {index}: took {time} ns, its causes sum to {sum}"));
            }
        }
        Ok(())
    }
}

/// Submissions of one process follow each other, and no more than `depth` are ever under way.
fn check_order(submitted: &[u64], times: &[u64], depth: usize) -> Result<(), (usize, String)> {
    // Ends of what is under way, the next first: never more than the queue is deep.
    let mut under_way = BinaryHeap::with_capacity(depth.min(submitted.len()) + 1);
    let mut before = 0;
    for (index, (submit, time)) in submitted.iter().zip(times).enumerate() {
        if *submit < before {
            return Err((
                index,
                format!("submitted at {submit} ns, the one before at {before} ns"),
            ));
        }
        before = *submit;
        while under_way.peek().is_some_and(|Reverse(end)| end <= submit) {
            under_way.pop();
        }
        if under_way.len() >= depth {
            let depths = format!("{} I/Os under way already, queue depth {depth}", under_way.len());
            return Err((index, format!("submitted at {submit} ns with {depths}")));
        }
        under_way.push(Reverse(submit + time));
    }
    Ok(())
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
        let (submit, times) = (submit_ns.to_vec(), response_time_ns.to_vec());
        Trace::from_columns(pattern, submit, times, Vec::new(), Vec::new())
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
        simulated.cause_ns = vec![vec![4, 0], vec![6, 0]];
        assert_eq!(simulated.check_sense(false), Ok(()));
        simulated.cause_ns[1][1] = 1;
        assert_eq!(wrong(&simulated), "I/O 1: took 0 ns, its causes sum to 1 ns");
        simulated.cause_ns = vec![vec![4, u64::MAX], vec![6, 1]];
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

    #[test]
    fn there_are_as_many_ios_as_the_pattern_says() {
        let mut short = trace(1, &[0, 10], &[1, 1]);
        short.submit_ns.pop();
        assert_eq!(wrong(&short), "1 I/Os where the pattern has 2");
    }
}
