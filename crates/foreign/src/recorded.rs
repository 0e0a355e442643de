//! A recorded trace: I/Os of any offset and length, each with its time if it is known.

use std::collections::BTreeMap;

use uflip_core::Mode;
use uflip_engine::LIST_IOS_MAX;

use crate::lines::{LineError, LineReader};

/// The I/Os of several files or disks are placed side by side, each beginning at a multiple of this
/// [bytes].
const SOURCE_ALIGNMENT: u64 = 1 << 20;

/// The largest offset and size [bytes].
const MAX_BYTES: u64 = 1 << 56;

/// One recorded I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedIo {
    /// The offset [bytes].
    pub offset: u64,
    /// The size [bytes]; not 0.
    pub size: u64,
    /// Read, write or trim.
    pub mode: Mode,
    /// The time [ns], from an arbitrary zero; in order.
    pub at: u64,
    /// The index of the file or disk.
    source: u32,
}

/// All I/Os of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordedTrace {
    /// The name of its format.
    pub format: &'static str,
    /// The I/Os, sorted by time.
    pub ios: Vec<RecordedIo>,
    /// Whether the trace contains times.
    pub has_times: bool,
    /// The operations that are not replayed, by name, with their counts.
    pub left_out: BTreeMap<&'static str, u64>,
    /// The files or disks, in order of appearance.
    pub sources: Vec<String>,
}

impl RecordedTrace {
    /// Add one I/O of a file or disk.
    pub(crate) fn push(
        &mut self,
        lines: &LineReader<'_>,
        source: u32,
        mode: Mode,
        (offset, size): (u64, u64),
        at: u64,
    ) -> Result<(), LineError> {
        if size == 0 {
            self.skip_operation("empty");
            return Ok(());
        }
        if offset > MAX_BYTES || size > MAX_BYTES {
            let got = format!("{size} bytes at {offset}");
            return Err(lines.error(&got, &format!("up to {MAX_BYTES}")));
        }
        if self.ios.len() == LIST_IOS_MAX {
            return Err(lines.error("one I/O more", &format!("up to {LIST_IOS_MAX} I/Os")));
        }
        self.ios.push(RecordedIo { offset, size, mode, at, source });
        Ok(())
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

    /// Return the index of a file or disk.
    pub(crate) fn source(&mut self, lines: &LineReader<'_>, name: &str) -> Result<u32, LineError> {
        const MAX_SOURCES: usize = 4096;
        if let Some(index) = self.sources.iter().rposition(|source| source == name) {
            return Ok(index as u32);
        }
        if self.sources.len() == MAX_SOURCES {
            return Err(lines.error(name, &format!("up to {MAX_SOURCES} files or disks")));
        }
        self.sources.push(name.to_owned());
        Ok(self.sources.len() as u32 - 1)
    }

    /// Sort by time, counted from the first I/O, and place several files side by side.
    pub(crate) fn put_in_order(&mut self) {
        if self.has_times {
            self.ios.sort_by_key(|io| io.at);
        }
        let first = self.ios.first().map_or(0, |io| io.at);
        let mut ends = vec![0; self.sources.len().max(1)];
        for io in &mut self.ios {
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
        for io in &mut self.ios {
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
        self.ios.last().map_or(0, |io| io.at)
    }

    /// Create from a trace of uflip.
    ///
    /// # Errors
    /// If it has no I/Os, or too many.
    pub fn from_ios(
        ios: impl Iterator<Item = (uflip_core::Io, u64)>,
    ) -> Result<RecordedTrace, String> {
        let mut trace =
            RecordedTrace { format: "uflip", has_times: true, ..RecordedTrace::default() };
        for (io, at) in ios {
            if trace.ios.len() == LIST_IOS_MAX {
                return Err(format!("more than {LIST_IOS_MAX} I/Os"));
            }
            let (offset, size, mode) = (io.offset.0, io.size.0, io.mode);
            trace.ios.push(RecordedIo { offset, size, mode, at, source: 0 });
        }
        trace.put_in_order();
        if trace.ios.is_empty() { Err("no I/O".to_owned()) } else { Ok(trace) }
    }
}
