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
//! ([`crate::host_gap`]). A trace of several processes stores them one after another.
//! [`crate::recorder`] fills it.

use crate::host_gap::HostGaps;
use crate::mix_order::MixOrder;
use crate::pattern::Pattern;
use crate::spec::Resolved;
use uflip_core::Io;

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

    /// Return the component of a mix for each I/O: 0 the first pattern, 1 the second.
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
    /// The component of a mix: 0 the first pattern, 1 the second.
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
