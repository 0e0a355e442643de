//! A recorded trace: I/Os of any offset and length, each with its time if it is known.

use std::collections::BTreeMap;

use uflip_core::Mode;
use uflip_engine::LIST_IOS_MAX;

use crate::lines::{Lines, Wrong};

/// The I/Os of several files or disks are placed side by side, each beginning at a multiple of this
/// [bytes].
const APART: u64 = 1 << 20;

/// The largest offset and size [bytes].
const LARGEST: u64 = 1 << 56;

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
pub struct Recorded {
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

impl Recorded {
    /// Add one I/O of a file or disk.
    pub(crate) fn push(
        &mut self,
        lines: &Lines<'_>,
        source: u32,
        mode: Mode,
        (offset, size): (u64, u64),
        at: u64,
    ) -> Result<(), Wrong> {
        if size == 0 {
            self.leave_out("empty");
            return Ok(());
        }
        if offset > LARGEST || size > LARGEST {
            let got = format!("{size} bytes at {offset}");
            return Err(lines.wrong(&got, &format!("up to {LARGEST}")));
        }
        if self.ios.len() == LIST_IOS_MAX {
            return Err(lines.wrong("one I/O more", &format!("up to {LIST_IOS_MAX} I/Os")));
        }
        self.ios.push(RecordedIo { offset, size, mode, at, source });
        Ok(())
    }

    /// Return the trace without trims, for a device that does not support them.
    #[must_use]
    pub fn without_trims(&self) -> Recorded {
        let mut left = self.clone();
        left.ios.retain(|io| io.mode != Mode::Trim);
        for _ in left.ios.len()..self.ios.len() {
            left.leave_out("trim");
        }
        left
    }

    /// Count an operation that is not an I/O.
    pub(crate) fn leave_out(&mut self, what: &'static str) {
        *self.left_out.entry(what).or_default() += 1;
    }

    /// Return the index of a file or disk.
    pub(crate) fn source(&mut self, lines: &Lines<'_>, name: &str) -> Result<u32, Wrong> {
        const MOST: usize = 4096;
        if let Some(known) = self.sources.iter().rposition(|source| source == name) {
            return Ok(known as u32);
        }
        if self.sources.len() == MOST {
            return Err(lines.wrong(name, &format!("up to {MOST} files or disks")));
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
                let own = begin;
                begin = begin.saturating_add(end.next_multiple_of(APART));
                own
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
    pub fn of_ours(ios: impl Iterator<Item = (uflip_core::Io, u64)>) -> Result<Recorded, String> {
        let mut ours = Recorded { format: "uflip", has_times: true, ..Recorded::default() };
        for (io, at) in ios {
            if ours.ios.len() == LIST_IOS_MAX {
                return Err(format!("more than {LIST_IOS_MAX} I/Os"));
            }
            let (offset, size, mode) = (io.offset.0, io.size.0, io.mode);
            ours.ios.push(RecordedIo { offset, size, mode, at, source: 0 });
        }
        ours.put_in_order();
        if ours.ios.is_empty() { Err("no I/O".to_owned()) } else { Ok(ours) }
    }
}
