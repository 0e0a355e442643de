//! The in-memory trace of one run: 16 bytes an I/O, and 8 more per cause. The sink of a long run
//! packs its blocks ([`crate::Sink`]).
//!
//! ```text
//!  submit_ns            u64   on the device's clock, from the start of the run
//!  response_time_ns     u64   completed − submitted
//!  one per cause        u64
//! ```
//!
//! Offset, size and mode follow from the pattern and are computed on demand; so is the host gap
//! ([`HostGaps`]). A trace of several processes stores them one after another.
//! [`crate::recorder`] fills it.
//!
//! The cause columns of a run split its response times:
//!
//! ```text
//!  the device reports causes   a process is an open loop   columns
//!  no                          no                          none
//!  no                          yes                         submission_wait_ns, device_ns
//!  yes                         no                          those of the device
//!  yes                         yes                         submission_wait_ns, those of the device
//! ```
//!
//! A run may have processes of both kinds. The columns belong to the run, so an I/O of a closed
//! loop in the same run also has a wait, of 0 ns. Only [`Causes`] defines the names, their number
//! and the values of each I/O.
//!
//! The host gap of an I/O is the time from its due time to its submission, which the host spent
//! elsewhere:
//!
//! ```text
//!  I/O i−1  ├────── response time ──────┤
//!                                       due          submitted
//!  I/O i                                 ├─ host gap ─┤──── response time ────┤
//! ```
//!
//! Between two I/Os the loop takes tens of nanoseconds. A much longer gap means that another
//! process had the CPU, or that a page fault occurred; the device was idle meanwhile, without a
//! requested pause. An I/O is due when its queue has a free entry, the pause before it is over, or it
//! arrives; and never before the previously submitted I/O. All of that follows from the pattern and the
//! recorded times, so nothing more is measured or stored. Time spent by the host *within* a system call
//! is part of the response time and cannot be separated from the device's time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use uflip_core::{Breakdown, CauseColumn, Device, Io};

use crate::drive::{NextRequest, When};
use crate::pattern::Pattern;
use crate::spec::Resolved;
use crate::spec::mix_order::MixOrder;

/// The response time of an I/O that has not completed; no response takes this long.
pub(crate) const NOT_COMPLETED: u64 = u64::MAX;

/// The recorded values of consecutive I/Os: columns of one length.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Columns {
    /// The submission of each I/O [ns], from the start of the run on the device's clock.
    pub submit_ns: Vec<u64>,
    /// The response time of each I/O [ns].
    pub response_time_ns: Vec<u64>,
    /// One column per cause [ns]; empty for a device that reports no causes.
    pub cause_ns: Vec<Vec<u64>>,
}

impl Columns {
    /// Create empty columns for `causes` causes.
    #[must_use]
    pub fn empty(causes: usize) -> Columns {
        let cause_ns = vec![Vec::new(); causes];
        Columns { submit_ns: Vec::new(), response_time_ns: Vec::new(), cause_ns }
    }

    /// Return the number of I/Os.
    #[must_use]
    pub fn len(&self) -> usize {
        self.submit_ns.len()
    }

    /// Return whether there are no I/Os.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.submit_ns.is_empty()
    }

    /// Iterate over every column.
    pub fn each(&mut self) -> impl Iterator<Item = &mut Vec<u64>> {
        [&mut self.submit_ns, &mut self.response_time_ns].into_iter().chain(&mut self.cause_ns)
    }

    /// Keep the first `ios` I/Os, and free the memory of the others.
    pub fn truncate(&mut self, ios: usize) {
        for column in self.each() {
            column.truncate(ios);
            column.shrink_to_fit();
        }
    }

    /// Concatenate all `parts`. The memory of each column is freed as it is copied, because two
    /// copies of a long trace may not fit.
    #[must_use]
    pub fn concat(mut parts: Vec<Columns>, causes: usize) -> Columns {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let ios = parts.iter().map(Columns::len).sum();
        let mut whole = Columns::empty(causes);
        for (number, column) in whole.each().enumerate() {
            column.reserve_exact(ios);
            for part in &mut parts {
                let values = std::mem::take(
                    part.each().nth(number).expect("all parts have the same columns"),
                );
                column.extend_from_slice(&values);
            }
        }
        whole
    }
}

/// Every I/O of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// The complete pattern that was run.
    pub pattern: Resolved,
    /// The recorded values.
    pub columns: Columns,
    /// The names of the causes; empty for a device that reports no causes.
    pub causes: Vec<String>,
    /// The stopping record, if the run had a stop rule.
    pub stop_record: Option<serde_json::Value>,
}

impl Trace {
    /// Return the number of I/Os.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Return whether there are no I/Os.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Return all I/Os in order.
    pub fn ios(&self) -> impl Iterator<Item = Io> + '_ {
        self.pattern.issued()
    }

    /// Return the process of each I/O.
    pub fn stream_of_each(&self) -> impl Iterator<Item = u16> + '_ {
        let streams = self.pattern.streams.iter().enumerate();
        streams.flat_map(|(number, spec)| repeat(number as u16, spec.total_ios))
    }

    /// Return whether each I/O is among the `io_ignore` first of its process.
    pub fn ignored_of_each(&self) -> impl Iterator<Item = bool> + '_ {
        self.pattern.streams.iter().flat_map(|spec| {
            let counted = spec.total_ios - spec.ignored_ios;
            repeat(true, spec.ignored_ios).chain(repeat(false, counted))
        })
    }

    /// Return the component of a mix for each I/O: 0 the first pattern, 1 the second, and so on.
    pub fn component_of_each(&self) -> impl Iterator<Item = u8> + '_ {
        self.pattern.streams.iter().flat_map(|spec| {
            let mut mix_order = MixOrder::new(spec);
            (0..spec.total_ios).map(move |_| mix_order.next_part())
        })
    }

    /// Return the time from the first submission to the last completion [ns].
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        let Columns { submit_ns, response_time_ns, .. } = &self.columns;
        let ends = submit_ns.iter().zip(response_time_ns).map(|(s, r)| s + r);
        let first = submit_ns.iter().min().copied().unwrap_or(0);
        ends.max().unwrap_or(0) - first
    }
}

/// The properties of one I/O that follow from the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRow {
    /// The process.
    pub stream: u16,
    /// Offset, size and mode.
    pub io: Io,
    /// The component of a mix: 0 the first pattern, 1 the second, and so on.
    pub component: u8,
    /// Whether it is among the `io_ignore` first of its process.
    pub ignored: bool,
}

/// Walks over the I/Os of a pattern in order. Its state is worth caching: a later I/O can only be
/// reached by stepping through all earlier ones.
#[derive(Clone, Debug)]
pub struct PatternWalk {
    stream: usize,
    done: u64,
    sequence: Pattern,
    mix_order: MixOrder,
    /// Created on first use.
    gaps: Option<Box<HostGaps>>,
}

impl PatternWalk {
    /// Start before the first I/O of `pattern`.
    #[must_use]
    pub fn new(pattern: &Resolved) -> PatternWalk {
        PatternWalk::at(pattern, 0)
    }

    fn at(pattern: &Resolved, stream: usize) -> PatternWalk {
        let spec = &pattern.streams[stream];
        let (sequence, mix_order) = (Pattern::new(spec), MixOrder::new(spec));
        PatternWalk { stream, done: 0, sequence, mix_order, gaps: None }
    }

    /// Return the host gaps, from the first I/O on. The caller must compute them for every earlier
    /// I/O.
    pub fn host_gaps(&mut self, pattern: &Resolved) -> &mut HostGaps {
        self.gaps.get_or_insert_with(|| Box::new(HostGaps::new(pattern)))
    }

    /// Return the next I/O of the same pattern.
    pub fn next(&mut self, pattern: &Resolved) -> Option<TraceRow> {
        while self.done == pattern.streams[self.stream].total_ios {
            if self.stream + 1 == pattern.streams.len() {
                return None;
            }
            let gaps = self.gaps.take();
            *self = PatternWalk { gaps, ..PatternWalk::at(pattern, self.stream + 1) };
        }
        let ignored = self.done < pattern.streams[self.stream].ignored_ios;
        self.done += 1;
        let (stream, component) = (self.stream as u16, self.mix_order.next_part());
        Some(TraceRow { stream, io: self.sequence.next_io().io, component, ignored })
    }
}

fn repeat<T: Copy>(value: T, times: u64) -> impl Iterator<Item = T> {
    std::iter::repeat_n(value, times as usize)
}

/// The wait of an I/O from arrival to submission.
const WAIT: CauseColumn = CauseColumn {
    column: "submission_wait_ns",
    label: "wait for submission",
    color: "#c9c2ff",
    meaning: "in an open loop, on any device: from the arrival of the I/O to its submission, \
              because its queue was full",
};
/// The time after submission, on a device that reports no causes.
const DEVICE: CauseColumn = CauseColumn {
    column: "device_ns",
    label: "device",
    color: "#3b7fb8",
    meaning: "in an open loop on a real device: from submission to completion",
};

/// The columns of a run with an open loop on a device that reports no causes.
pub const HOST_COLUMNS: [CauseColumn; 2] = [WAIT, DEVICE];
/// Their names.
pub const HOST_CAUSES: [&str; 2] = [WAIT.column, DEVICE.column];

/// The causes of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Causes {
    has_wait: bool,
    /// The causes that the device reports.
    device_causes: &'static [&'static str],
}

impl Causes {
    /// Return the causes of a run of `pattern` on a device of the type `D`.
    #[must_use]
    pub fn for_run<D: Device>(pattern: &Resolved) -> Causes {
        Causes { has_wait: pattern.is_open(), device_causes: <D::Breakdown as Breakdown>::CAUSES }
    }

    /// Return the names of the columns, in their order.
    #[must_use]
    pub fn names(self) -> Vec<String> {
        let names: Vec<&str> = match (self.has_wait, self.device_causes) {
            (false, device_causes) => device_causes.to_vec(),
            (true, []) => HOST_CAUSES.to_vec(),
            (true, device_causes) => [&[WAIT.column], device_causes].concat(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    /// Return the number of columns.
    #[must_use]
    pub fn count(self) -> usize {
        let device_columns =
            if self.has_wait { self.device_causes.len().max(1) } else { self.device_causes.len() };
        usize::from(self.has_wait) + device_columns
    }

    /// Store the causes of one I/O in row `at` of `columns`: its wait before submission [ns], the
    /// device's time after that [ns], and the causes of the device.
    #[inline]
    pub(crate) fn store(
        self,
        columns: &mut [Vec<u64>],
        row: usize,
        wait_ns: u64,
        device_ns: u64,
        values: &[u64],
    ) {
        let device_columns = if self.has_wait {
            columns[0][row] = wait_ns;
            &mut columns[1..]
        } else {
            columns
        };
        if self.has_wait && self.device_causes.is_empty() {
            device_columns[0][row] = device_ns;
        }
        for (column, part) in device_columns.iter_mut().zip(values) {
            column[row] = *part;
        }
    }
}

/// Return the index of the column of submission waits; `None` if no process is an open loop.
#[must_use]
pub fn wait_column(causes: &[String]) -> Option<usize> {
    causes.iter().position(|cause| cause == WAIT.column)
}

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
    use serde_json::{Value, json};
    use uflip_core::Bytes;

    use super::*;
    use crate::PatternSpec;

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
