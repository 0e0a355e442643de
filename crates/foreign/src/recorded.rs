//! A recorded trace: I/Os of any offset and length, each with its time and response time if they are
//! known.

use std::collections::{BTreeMap, HashMap};

use uflip_core::{Mode, SpooledVec};
use uflip_engine::{IO_SIZE_MAX, LIST_IOS_MAX};

use crate::lines::{LineError, LineReader, OddLines};

/// The I/Os of several files or disks are placed side by side, each beginning at a multiple of this
/// [bytes].
const SOURCE_ALIGNMENT: u64 = 1 << 20;
/// The largest offset, and size of a trim [bytes].
const MAX_BYTES: u64 = 1 << 56;
/// The most files or disks: a file of Tencent's traces has 5,584 volumes.
const MAX_SOURCES: usize = 1 << 16;
/// Times are below this [ns]: the year 2116 since 1970.
pub(crate) const MAX_TIME_NS: u64 = 1 << 62;
/// No response takes longer [ns]: a day.
pub(crate) const MAX_RESPONSE_NS: u64 = 86_400_000_000_000;

/// One recorded I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedIo {
    /// The offset [bytes].
    pub offset: u64,
    /// The size [bytes]; not 0.
    pub size: u64,
    /// The time of its beginning [ns], from the earliest.
    pub at: u64,
    /// The recorded response time [ns]; 0 if it is unknown.
    pub response_ns: u64,
    /// The index of the file or disk.
    source: u32,
    /// Read, write or trim.
    pub mode: Mode,
}

/// Properties of a file that its format does not fix, and the way they were understood.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Assumptions {
    /// The version of the program or format; empty if it has none.
    pub version: String,
    /// The recorded quantity, such as "clat" or "Q2C".
    pub quantity: String,
    /// The unit of the response times; empty if the format fixes it.
    pub unit: String,
    /// The columns, in order.
    pub columns: String,
    /// Further remarks, one sentence each.
    pub notes: Vec<String>,
}

/// All I/Os of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordedTrace {
    /// The name of its format.
    pub format: &'static str,
    /// The I/Os, in the order of the file.
    pub ios: SpooledVec<RecordedIo>,
    /// Whether the trace contains times.
    pub has_times: bool,
    /// Whether the trace contains offsets.
    pub has_offsets: bool,
    /// Whether times are measured in steps longer than most I/Os: only the response times are exact.
    pub has_coarse_times: bool,
    /// Of I/Os that begin when they are queued, the times from their issue to their completion [ns].
    pub device_times: SpooledVec<u64>,
    /// Each "I/O" is the average of all in this time [ns], as fio's log_avg_msec makes them.
    pub averaged_ns: Option<u64>,
    /// The times of `ios` that are smaller than the one before.
    pub steps_back: u64,
    /// The response times of 0, which count as one tick of the clock.
    pub zero_times: u64,
    /// The operations that are not replayed, by name, with their counts.
    pub left_out: BTreeMap<&'static str, u64>,
    /// The lines that do not belong to the format.
    pub odd: OddLines,
    /// The files or disks, in order of appearance.
    pub sources: Vec<String>,
    /// What the file leaves open.
    pub assumptions: Assumptions,
    /// The index of each of `sources`.
    source_indices: HashMap<String, u32>,
}

/// One I/O as a parser found it.
#[derive(Clone, Copy)]
pub(crate) struct FoundIo {
    pub(crate) source: u32,
    pub(crate) mode: Mode,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// The beginning or, with `ends`, the end [ns].
    pub(crate) at: u64,
    pub(crate) ends: bool,
    /// The response time [ns]; `None` if it is unknown.
    pub(crate) response_ns: Option<u64>,
}

impl RecordedTrace {
    pub(crate) fn with_offsets(has_times: bool) -> RecordedTrace {
        RecordedTrace { has_times, has_offsets: true, ..RecordedTrace::default() }
    }

    /// Add one I/O of a file or disk. An I/O without bytes is left out; an impossible one is odd.
    pub(crate) fn push(
        &mut self,
        lines: &mut LineReader<'_>,
        found: FoundIo,
    ) -> Result<(), LineError> {
        let FoundIo { source, mode, offset, size, at, ends, response_ns } = found;
        if size == 0 {
            self.skip_operation("empty");
            return Ok(());
        }
        let response = response_ns.unwrap_or(0);
        let max_size = if mode == Mode::Trim { MAX_BYTES } else { IO_SIZE_MAX };
        if offset > MAX_BYTES || size > max_size || at >= MAX_TIME_NS || response > MAX_RESPONSE_NS
        {
            lines.skip_odd_line();
            return Ok(());
        }
        self.check_room(lines)?;
        // Times are shifted, so that an end minus its response time stays positive; `finish` counts
        // them from the first.
        let begin = at + MAX_RESPONSE_NS - if ends { response } else { 0 };
        self.ios.push(RecordedIo { offset, size, mode, at: begin, response_ns: response, source });
        if lines.ends_after(self.ios.len()) {
            self.assumptions.notes.push(format!("the first {} I/Os only", self.ios.len()));
        }
        Ok(())
    }

    fn check_room(&self, lines: &LineReader<'_>) -> Result<(), LineError> {
        if self.ios.len() < LIST_IOS_MAX {
            return Ok(());
        }
        Err(lines.error("one I/O more", &format!("up to {LIST_IOS_MAX} I/Os")))
    }

    /// Return the trace without trims, for a device that does not support them.
    #[must_use]
    pub fn without_trims(&self) -> RecordedTrace {
        let mut trace = self.clone();
        trace.ios.retain(|io| io.mode != Mode::Trim);
        for _ in trace.ios.len()..self.ios.len() {
            trace.skip_operation("trim");
        }
        trace
    }

    /// Count an operation that is not an I/O.
    pub(crate) fn skip_operation(&mut self, operation: &'static str) {
        *self.left_out.entry(operation).or_default() += 1;
    }

    /// Return the index of a file or disk that has I/Os.
    pub(crate) fn source_index(&self, name: &str) -> Option<u32> {
        self.source_indices.get(name).copied()
    }

    /// Return the index of a file or disk.
    pub(crate) fn source(&mut self, lines: &LineReader<'_>, name: &str) -> Result<u32, LineError> {
        if let Some(index) = self.source_indices.get(name) {
            return Ok(*index);
        }
        if self.sources.len() == MAX_SOURCES {
            return Err(lines.error(name, &format!("up to {MAX_SOURCES} files or disks")));
        }
        let index = self.sources.len() as u32;
        self.sources.push(name.to_owned());
        self.source_indices.insert(name.to_owned(), index);
        Ok(index)
    }

    /// Add the I/Os of another file of the same trace, with its disks beside those of this one.
    pub(crate) fn append(&mut self, other: RecordedTrace) -> Result<(), String> {
        if self.ios.len() + other.ios.len() > LIST_IOS_MAX {
            return Err(format!("more than {LIST_IOS_MAX} I/Os"));
        }
        let indices: Vec<u32> = other
            .sources
            .iter()
            .map(|name| {
                *self.source_indices.entry(name.clone()).or_insert_with(|| {
                    self.sources.push(name.clone());
                    self.sources.len() as u32 - 1
                })
            })
            .collect();
        if self.sources.len() > MAX_SOURCES {
            return Err(format!("more than {MAX_SOURCES} files or disks"));
        }
        let of_this = |io: RecordedIo| RecordedIo {
            source: indices.get(io.source as usize).copied().unwrap_or(0),
            ..io
        };
        self.ios.extend(other.ios.iter().copied().map(of_this));
        self.has_times &= other.has_times;
        self.has_offsets &= other.has_offsets;
        self.has_coarse_times |= other.has_coarse_times;
        self.steps_back += other.steps_back;
        self.device_times.extend(other.device_times.iter().copied());
        self.odd.count += other.odd.count;
        self.odd.first = self.odd.first.take().or(other.odd.first);
        for (operation, count) in other.left_out {
            *self.left_out.entry(operation).or_default() += count;
        }
        Ok(())
    }

    /// Count the times that are smaller than the one before.
    pub(crate) fn count_steps_back(&mut self) {
        let falls = self.ios.windows(2).filter(|pair| pair[1].at < pair[0].at);
        self.steps_back += falls.count() as u64;
    }

    /// Merge the I/Os of several files by time, where `ends` are the ends of the files in `ios`. Those
    /// of one file keep their order. Without times, the files follow each other.
    pub(crate) fn merge(&mut self, ends: &[usize]) {
        if !self.has_times {
            return;
        }
        let mut latest = SpooledVec::default();
        let mut begin = 0;
        for end in ends {
            let mut last = 0;
            latest.extend((begin..*end).map(|index| {
                last = self.ios[index].at.max(last);
                (last, index)
            }));
            begin = *end;
        }
        latest.sort_in_parts(|(last, _)| *last);
        self.ios = latest.iter().map(|(_, index)| self.ios[*index]).collect();
    }

    /// Count times from the first I/O, and place several files side by side. The order stays.
    pub(crate) fn finish(&mut self) {
        let first = self.ios.iter().map(|io| io.at).min().unwrap_or(0);
        let mut ends = vec![0; self.sources.len().max(1)];
        for io in self.ios.iter_mut() {
            io.at -= first;
            let end = &mut ends[io.source as usize];
            *end = (io.offset + io.size).max(*end);
        }
        let mut begin = 0u64;
        let begins: Vec<u64> = ends
            .iter()
            .map(|end: &u64| {
                let start = begin;
                begin = begin.saturating_add(end.next_multiple_of(SOURCE_ALIGNMENT));
                start
            })
            .collect();
        for io in self.ios.iter_mut() {
            io.offset = io.offset.saturating_add(begins[io.source as usize]);
        }
    }

    /// Return the end of the highest I/O [bytes].
    #[must_use]
    pub fn end(&self) -> u64 {
        self.ios.iter().map(|io| io.offset.saturating_add(io.size)).max().unwrap_or(0)
    }

    /// Return the time from the first to the last I/O [ns].
    #[must_use]
    pub fn span(&self) -> u64 {
        self.ios.iter().map(|io| io.at).max().unwrap_or(0)
    }

    /// Return the number of I/Os with a recorded response time.
    #[must_use]
    pub fn response_times(&self) -> usize {
        self.ios.iter().filter(|io| io.response_ns > 0).count()
    }

    /// Create from a trace of uflip: I/Os with their submissions and response times [ns].
    ///
    /// # Errors
    /// If it has no I/Os, or too many.
    pub fn from_ios(
        ios: impl Iterator<Item = (uflip_core::Io, u64, u64)>,
    ) -> Result<RecordedTrace, String> {
        let mut trace = RecordedTrace { format: "uflip", ..RecordedTrace::with_offsets(true) };
        for (io, at, response_ns) in ios {
            if trace.ios.len() == LIST_IOS_MAX {
                return Err(format!("more than {LIST_IOS_MAX} I/Os"));
            }
            let (offset, size, mode) = (io.offset.0, io.size.0, io.mode);
            trace.ios.push(RecordedIo { offset, size, mode, at, response_ns, source: 0 });
        }
        trace.ios.sort_in_parts(|io| io.at);
        trace.finish();
        if trace.ios.is_empty() { Err("no I/O".to_owned()) } else { Ok(trace) }
    }
}
