//! Recorded response times as the columns of a run: submissions in order, and a queue depth.
//!
//! Where times are exact, the depth is the largest number of I/Os at a time. fio's logs have whole
//! milliseconds, in which all I/Os of one millisecond overlap. There the depth follows from Little's
//! law, Σ response time / length of the log, and each I/O begins when one of the places is free:
//!
//! ```text
//!  logged  ├──────1 ms──────┤   ends of four I/Os, one at a time
//!  begin   ▏▏▏▏                  each as if it ended at the millisecond
//!  here    ▏   ▏   ▏   ▏         each after the one before
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use uflip_core::{Bytes, Io, Mode, SpooledVec};
use uflip_engine::IoList;

use crate::recorded::{RecordedIo, RecordedTrace};

const MS: u64 = 1_000_000;

/// I/Os with their response times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredRun {
    /// The I/Os, in the order of submission.
    pub list: IoList,
    /// The submission of each [ns], from the first.
    pub submit_ns: SpooledVec<u64>,
    /// The response time of each [ns].
    pub response_time_ns: SpooledVec<u64>,
    /// The number of outstanding I/Os.
    pub depth: u64,
    /// The number of trims, which are left out.
    pub trims: u64,
    /// The number of I/Os without a response time, which are left out.
    pub untimed: u64,
}

impl RecordedTrace {
    /// Return the recorded measurement as the columns of a run.
    ///
    /// # Errors
    /// If no I/O has a response time, or the trace has no times.
    pub fn measured(&self) -> Result<MeasuredRun, String> {
        if !self.has_times {
            return Err("no times of the I/Os".to_owned());
        }
        let trims = self.ios.iter().filter(|io| io.mode == Mode::Trim).count();
        let is_measured = |io: &&RecordedIo| io.mode != Mode::Trim && io.response_ns > 0;
        let mut ios: SpooledVec<RecordedIo> =
            self.ios.iter().filter(is_measured).copied().collect();
        if ios.is_empty() {
            return Err("no reads or writes with a response time".to_owned());
        }
        let untimed = (self.ios.len() - trims - ios.len()) as u64;
        // Coarse times keep the order of the file, which is that of the completions.
        let depth = if self.has_coarse_times {
            spread(&mut ios)
        } else {
            ios.sort_in_parts(|io| io.at);
            max_outstanding(&ios)
        };
        let first = ios[0].at;
        let submit_ns = ios.iter().map(|io| io.at - first).collect();
        let response_time_ns = ios.iter().map(|io| io.response_ns).collect();
        let io = |io: &RecordedIo| {
            let (offset, size) = (Bytes(io.offset), Bytes(io.size));
            Io { offset, size, mode: io.mode, stream: 0 }
        };
        let list = IoList::new(ios.iter().map(io), Vec::new())?;
        let trims = trims as u64;
        Ok(MeasuredRun { list, submit_ns, response_time_ns, depth, trims, untimed })
    }
}

/// Begin each I/O when one of `depth` places is free, and return the depth: the smallest, from
/// Little's law on, with which no I/O ends later than it was logged by more than the clock's error.
fn spread(ios: &mut SpooledVec<RecordedIo>) -> u64 {
    let end = |io: &RecordedIo| io.at + io.response_ns;
    let begin = ios.iter().map(|io| io.at).min().unwrap_or(0);
    let last = ios.iter().map(end).max().unwrap_or(0);
    let busy: u128 = ios.iter().map(|io| u128::from(io.response_ns)).sum();
    let span = u128::from((last - begin).max(1));
    // The length is known to 1 ms at each end. The mean number at a time is at most the depth, and
    // hardly less in a closed loop.
    let one_by_one = busy <= span + u128::from(2 * MS);
    let least = if one_by_one { 1 } else { (busy * 98).div_ceil(span * 100) as u64 };
    ios.sort_in_parts(end);
    let mut by_begin = ios.clone();
    by_begin.sort_in_parts(|io| io.at);
    let most = max_outstanding(&by_begin).max(1);
    drop(by_begin);
    let mut depth = least.min(most);
    while depth < most && starts(ios, depth).1 > 2 * MS {
        depth = (depth + depth.div_ceil(8)).min(most);
    }
    let (begins, _) = starts(ios, depth);
    for (io, at) in ios.iter_mut().zip(begins.iter()) {
        io.at = *at;
    }
    ios.sort_in_parts(|io| io.at);
    depth
}

/// Return the beginning of each I/O with `depth` places, and the median delay of their ends [ns].
fn starts(ios: &[RecordedIo], depth: u64) -> (SpooledVec<u64>, u64) {
    let mut busy: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut begins = SpooledVec::default();
    let mut delays = SpooledVec::default();
    for io in ios {
        let free = if busy.len() as u64 == depth { busy.pop().map_or(0, |end| end.0) } else { 0 };
        let begin = io.at.max(free);
        delays.push(begin - io.at);
        busy.push(Reverse(begin + io.response_ns));
        begins.push(begin);
    }
    let middle = delays.len() / 2;
    let median = *delays.select_nth_unstable(middle).1;
    (begins, median)
}

/// Return the largest number of outstanding I/Os, which are in the order of submission.
fn max_outstanding(ios: &[RecordedIo]) -> u64 {
    let (mut ends, mut max) = (BinaryHeap::new(), 0);
    for io in ios {
        while ends.peek().is_some_and(|Reverse(end)| *end <= io.at) {
            ends.pop();
        }
        ends.push(Reverse(io.at + io.response_ns));
        max = max.max(ends.len());
    }
    max as u64
}
