//! Every I/O of one run, in memory: 16 bytes an I/O, and 8 more per cause on simulated devices, where
//! whoever takes the blocks of a long run packs them ([`crate::Sink`]).
//!
//! ```text
//!  submit_ns            u64   on the device's clock, from the start of the run
//!  response_time_ns     u64   completed − submitted
//!  one per cause        u64
//! ```
//!
//! Offset, size and mode follow from the pattern, and are worked out when they are asked for; so is how
//! long the host let an I/O wait ([`crate::host_gap`]). A trace
//! of several processes holds them one after another. How it comes about: [`crate::recorder`].

use crate::host_gap::HostGaps;
use crate::pattern::Pattern;
use crate::spec::Resolved;
use crate::turns::Turns;
use uflip_core::Io;

/// No response time takes so long: it stands where none is known yet.
pub(crate) const UNTOLD: u64 = u64::MAX;

/// What is kept of I/Os that follow each other: columns of one length.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Columns {
    /// When each I/O was submitted [ns], from the start of the run on the device's clock.
    pub submit_ns: Vec<u64>,
    /// How long each took [ns].
    pub response_time_ns: Vec<u64>,
    /// One column per cause [ns]; none for a device that cannot know them.
    pub cause_ns: Vec<Vec<u64>>,
}

impl Columns {
    /// Columns of no I/O, of a device that knows so many causes.
    #[must_use]
    pub fn of(causes: usize) -> Columns {
        let cause_ns = vec![Vec::new(); causes];
        Columns { submit_ns: Vec::new(), response_time_ns: Vec::new(), cause_ns }
    }

    /// How many I/Os there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.submit_ns.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.submit_ns.is_empty()
    }

    /// Every column.
    pub fn each(&mut self) -> impl Iterator<Item = &mut Vec<u64>> {
        [&mut self.submit_ns, &mut self.response_time_ns].into_iter().chain(&mut self.cause_ns)
    }

    /// Keep the first `ios` I/Os, and give the memory of the others back.
    pub fn truncate(&mut self, ios: usize) {
        for column in self.each() {
            column.truncate(ios);
            column.shrink_to_fit();
        }
    }

    /// The I/Os of all `parts` in one; the memory of each column is given back as it is copied, because
    /// two traces do not fit where one did.
    #[must_use]
    pub fn concat(mut parts: Vec<Columns>, causes: usize) -> Columns {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let ios = parts.iter().map(Columns::len).sum();
        let mut whole = Columns::of(causes);
        for (number, column) in whole.each().enumerate() {
            column.reserve_exact(ios);
            for part in &mut parts {
                let taken = std::mem::take(part.each().nth(number).expect("as many columns"));
                column.extend_from_slice(&taken);
            }
        }
        whole
    }
}

/// Every I/O of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// The pattern that was run, complete.
    pub pattern: Resolved,
    /// What was measured.
    pub columns: Columns,
    /// Names of the causes; empty for a device that cannot know them.
    pub causes: Vec<String>,
    /// How the run came to its length, where that was not given.
    pub ended: Option<serde_json::Value>,
}

impl Trace {
    /// How many I/Os there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// All I/Os in order.
    pub fn ios(&self) -> impl Iterator<Item = Io> + '_ {
        self.pattern.issued()
    }

    /// The process of each I/O.
    pub fn stream_of_each(&self) -> impl Iterator<Item = u16> + '_ {
        let streams = self.pattern.streams.iter().enumerate();
        streams.flat_map(|(number, spec)| repeat(number as u16, spec.total_ios))
    }

    /// Whether each I/O is among the `io_ignore` first of its process.
    pub fn ignored_of_each(&self) -> impl Iterator<Item = bool> + '_ {
        self.pattern.streams.iter().flat_map(|spec| {
            let kept = spec.total_ios - spec.ignored_ios;
            repeat(true, spec.ignored_ios).chain(repeat(false, kept))
        })
    }

    /// Which pattern of a mix each I/O belongs to: 0 the first, 1 the second.
    pub fn component_of_each(&self) -> impl Iterator<Item = u8> + '_ {
        self.pattern.streams.iter().flat_map(|spec| {
            let mut turns = Turns::new(spec);
            (0..spec.total_ios).map(move |_| turns.next_part())
        })
    }

    /// From the first submission to the last completion [ns].
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        let Columns { submit_ns, response_time_ns, .. } = &self.columns;
        let ends = submit_ns.iter().zip(response_time_ns).map(|(s, r)| s + r);
        let first = submit_ns.iter().min().copied().unwrap_or(0);
        ends.max().unwrap_or(0) - first
    }
}

/// What follows from the pattern for one I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The process.
    pub stream: u16,
    /// Offset, size and mode.
    pub io: Io,
    /// Which pattern of a mix it belongs to: 0 the first, 1 the second.
    pub component: u8,
    /// Whether it is among the `io_ignore` first of its process.
    pub ignored: bool,
}

/// Goes over the I/Os of a pattern in their order; where it stands is worth keeping, because what comes
/// later can only be found by going there.
#[derive(Clone, Debug)]
pub struct Walk {
    stream: usize,
    done: u64,
    sequence: Pattern,
    turns: Turns,
    /// Made when it is asked for.
    gaps: Option<Box<HostGaps>>,
}

impl Walk {
    /// Stands before the first I/O of `pattern`.
    #[must_use]
    pub fn new(pattern: &Resolved) -> Walk {
        Walk::at(pattern, 0)
    }

    fn at(pattern: &Resolved, stream: usize) -> Walk {
        let spec = &pattern.streams[stream];
        let (sequence, turns) = (Pattern::new(spec), Turns::new(spec));
        Walk { stream, done: 0, sequence, turns, gaps: None }
    }

    /// The host's gaps before I/Os, from the first one on: whoever asks for that of one has asked for all
    /// before it.
    pub fn host_gaps(&mut self, pattern: &Resolved) -> &mut HostGaps {
        self.gaps.get_or_insert_with(|| Box::new(HostGaps::new(pattern)))
    }

    /// The next I/O of the same pattern.
    pub fn next(&mut self, pattern: &Resolved) -> Option<Row> {
        while self.done == pattern.streams[self.stream].total_ios {
            if self.stream + 1 == pattern.streams.len() {
                return None;
            }
            let gaps = self.gaps.take();
            *self = Walk { gaps, ..Walk::at(pattern, self.stream + 1) };
        }
        let ignored = self.done < pattern.streams[self.stream].ignored_ios;
        self.done += 1;
        let (stream, component) = (self.stream as u16, self.turns.next_part());
        Some(Row { stream, io: self.sequence.next_io().io, component, ignored })
    }
}

fn repeat<T: Copy>(value: T, times: u64) -> impl Iterator<Item = T> {
    std::iter::repeat_n(value, times as usize)
}
