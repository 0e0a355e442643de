//! What a trace says that was done: I/Os of any place and length, each with its time where that is known.

use std::collections::BTreeMap;

use uflip_core::Mode;
use uflip_engine::LIST_IOS_MAX;

use crate::lines::{Lines, Wrong};

/// What was recorded of several files or disks lies side by side, each beginning at a multiple of this
/// [bytes].
const APART: u64 = 1 << 20;

/// Nothing lies behind it, and nothing is longer [bytes].
const LARGEST: u64 = 1 << 56;

/// One I/O as it was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedIo {
    /// Where it began [bytes].
    pub offset: u64,
    /// How long it was [bytes]; not 0.
    pub size: u64,
    /// Read, write or trim.
    pub mode: Mode,
    /// When [ns], from any instant; in order.
    pub at: u64,
    /// Which of the files or disks.
    source: u32,
}

/// All I/Os of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// The name of its format.
    pub format: &'static str,
    /// In the order of their times.
    pub ios: Vec<RecordedIo>,
    /// Whether the trace says when each was.
    pub has_times: bool,
    /// What is not replayed, by its name, and how often it was.
    pub left_out: BTreeMap<&'static str, u64>,
    /// The files or disks, in the order in which they appear.
    pub sources: Vec<String>,
}

impl Recorded {
    /// Take one I/O of a file or disk.
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

    /// The same for a device that has no command to deallocate.
    #[must_use]
    pub fn without_trims(&self) -> Recorded {
        let mut left = self.clone();
        left.ios.retain(|io| io.mode != Mode::Trim);
        for _ in left.ios.len()..self.ios.len() {
            left.leave_out("trim");
        }
        left
    }

    /// Count something that is no I/O.
    pub(crate) fn leave_out(&mut self, what: &'static str) {
        *self.left_out.entry(what).or_default() += 1;
    }

    /// The number of a file or disk.
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

    /// In the order of their times, which count from the first; those of several files side by side.
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

    /// Where the last of them ends [bytes].
    #[must_use]
    pub fn end(&self) -> u64 {
        self.ios.iter().map(|io| io.offset.saturating_add(io.size)).max().unwrap_or(0)
    }

    /// From the first to the last [ns].
    #[must_use]
    pub fn span(&self) -> u64 {
        self.ios.last().map_or(0, |io| io.at)
    }

    /// Of what a trace of ours holds.
    ///
    /// # Errors
    /// It has no I/Os, or too many.
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
