//! An explicit list of I/Os: the I/Os of a replayed trace, which no location function can generate.
//!
//! A list is not part of a pattern. The pattern contains the list's digest and summary, so it
//! can be planned, stored and compared like any other without the I/Os; the caller that runs it
//! provides them. An I/O takes 12 bytes, and 8 more with an arrival time; a long list is in a file.

use serde::{Deserialize, Serialize};
use uflip_core::{Bytes, Error, Io, Mode, Nanos, Result, SpooledVec};

use crate::drive::{NextRequest, When};

/// The largest I/O [bytes].
pub const IO_SIZE_MAX: u64 = 128 << 20;
/// The longest list.
pub const LIST_IOS_MAX: usize = 1 << 32;
/// The largest device [bytes] and the longest trace [ns].
const MAX_OFFSET: u64 = 1 << 62;
/// The bit position of the mode in a packed size, above all valid sizes.
const MODE_SHIFT: u32 = 30;

/// The summary of a list without its I/Os; part of the pattern.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSummary {
    /// The digest of all I/Os.
    pub ios: String,
    /// The number of I/Os.
    pub io_count: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes deallocated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_trimmed: u64,
    /// The end of the highest I/O on the device [bytes].
    pub end: u64,
    /// The common alignment of all offsets and sizes [bytes].
    pub align: u64,
    /// The largest I/O [bytes].
    pub io_size_max: u64,
    /// The last arrival [ns]; `None` if each I/O follows the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<u64>,
}

/// I/Os in order, either all with an arrival time or all without.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoList {
    offsets: SpooledVec<u64>,
    /// Size and mode, as [`packed`] encodes them.
    sizes: SpooledVec<u32>,
    /// Arrivals from the start; empty if each I/O follows the previous one.
    instants: SpooledVec<u64>,
    summary: ListSummary,
}

impl IoList {
    /// Create a list of `ios`; `instants` is empty, or has one arrival per I/O, in order.
    ///
    /// # Errors
    /// The first invalid I/O, with the reason.
    pub fn new(
        ios: impl Iterator<Item = Io>,
        instants: impl Into<SpooledVec<u64>>,
    ) -> std::result::Result<IoList, String> {
        let instants = instants.into();
        let (mut offsets, mut sizes) = (SpooledVec::default(), SpooledVec::default());
        for io in ios {
            let (offset, size, number) = (io.offset.0, io.size.0, offsets.len());
            if size == 0 || size > IO_SIZE_MAX {
                return Err(format!("I/O {number} has {size} bytes, outside 1 to {IO_SIZE_MAX}"));
            }
            if io.mode.requires_zones() {
                return Err(format!("I/O {number} is a zone command: {}", io.mode.name()));
            }
            if offset > MAX_OFFSET {
                return Err(format!("I/O {number} begins at byte {offset}"));
            }
            if number == LIST_IOS_MAX {
                return Err(format!("more than {LIST_IOS_MAX} I/Os"));
            }
            offsets.push(offset);
            sizes.push(packed(size as u32, io.mode));
        }
        if offsets.is_empty() {
            return Err("no I/O".to_owned());
        }
        if !instants.is_empty() && instants.len() != offsets.len() {
            return Err(format!("{} instants for {} I/Os", instants.len(), offsets.len()));
        }
        if let Some(index) = instants.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(format!("I/O {} arrives before I/O {index}", index + 1));
        }
        if instants.last().is_some_and(|last| *last > MAX_OFFSET) {
            return Err("an I/O that arrives after a hundred years".to_owned());
        }
        let summary = summary(&offsets, &sizes, &instants);
        Ok(IoList { offsets, sizes, instants, summary })
    }

    /// Return the number of I/Os, at least one.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Return the summary.
    #[must_use]
    pub fn summary(&self) -> &ListSummary {
        &self.summary
    }

    /// Return I/O number `index`.
    ///
    /// # Panics
    /// If the list is shorter.
    #[inline]
    #[must_use]
    pub fn io(&self, index: usize) -> Io {
        let (size, mode) = unpacked(self.sizes[index]);
        let (offset, size) = (Bytes(self.offsets[index]), Bytes(size));
        Io { offset, size, mode, stream: 0 }
    }

    /// Return all I/Os in order.
    pub fn ios(&self) -> impl ExactSizeIterator<Item = Io> + '_ {
        (0..self.len()).map(|index| self.io(index))
    }

    /// Return the arrival of each I/O [ns]; empty if each follows the previous one.
    #[must_use]
    pub fn instants(&self) -> &[u64] {
        &self.instants
    }

    #[inline]
    pub(crate) fn next_at(&self, index: usize) -> NextRequest {
        let when = match self.instants.get(index) {
            Some(instant) => When::At(Nanos(*instant)),
            None => When::After(Nanos(0)),
        };
        NextRequest { io: self.io(index), when }
    }
}

/// Encode a size with its mode.
fn packed(size: u32, mode: Mode) -> u32 {
    size | u32::from(mode.number()) << MODE_SHIFT
}

#[inline]
fn unpacked(packed: u32) -> (u64, Mode) {
    let mode = Mode::ALL[(packed >> MODE_SHIFT) as usize];
    (u64::from(packed & ((1 << MODE_SHIFT) - 1)), mode)
}

/// Return the form of a size and mode in the digest. Writes set the highest bit, as before trims
/// existed; trims set the next one.
fn digest_form(packed: u32) -> u32 {
    let (size, mode) = unpacked(packed);
    let mode_bits = match mode {
        Mode::Read => 0,
        Mode::Write => 1 << 31,
        Mode::Trim => 1 << 30,
        _ => unreachable!("a list has no zone commands"),
    };
    size as u32 | mode_bits
}

#[allow(clippy::trivially_copy_pass_by_ref)] // required by serde
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

fn summary(offsets: &[u64], sizes: &[u32], instants: &[u64]) -> ListSummary {
    let mut digest = blake3::Hasher::new();
    let (mut bytes_read, mut bytes_written, mut bytes_trimmed) = (0, 0, 0);
    let (mut end, mut align) = (0, 0u64);
    let mut io_size_max = 0;
    for (offset, size) in offsets.iter().zip(sizes) {
        digest.update(&offset.to_le_bytes());
        let (bytes, mode) = unpacked(*size);
        digest.update(&digest_form(*size).to_le_bytes());
        match mode {
            Mode::Read => bytes_read += bytes,
            Mode::Write => bytes_written += bytes,
            Mode::Trim => bytes_trimmed += bytes,
            _ => unreachable!("a list has no zone commands"),
        }
        end = end.max(offset + bytes);
        io_size_max = io_size_max.max(bytes);
        align |= offset | bytes;
    }
    for instant in instants {
        digest.update(&instant.to_le_bytes());
    }
    ListSummary {
        ios: digest.finalize().to_hex().to_string(),
        io_count: offsets.len() as u64,
        bytes_read,
        bytes_written,
        bytes_trimmed,
        end,
        align: 1 << align.trailing_zeros(),
        io_size_max,
        span: instants.last().copied(),
    }
}

impl ListSummary {
    /// Check that a list can have this summary: it may come from a damaged file.
    pub(crate) fn check(&self) -> Result<()> {
        let transferred = self.bytes_read.checked_add(self.bytes_written);
        let bytes = transferred.and_then(|transferred| transferred.checked_add(self.bytes_trimmed));
        let inconsistent = |field: &str, got: u64, allowed: &str| {
            Error::usage("The summary of a list of I/Os is inconsistent")
                .at(field)
                .got(got.to_string())
                .allowed(allowed)
                .action("let `uflip replay` create the specification")
        };
        if self.io_count == 0 || self.io_count > LIST_IOS_MAX as u64 {
            return Err(inconsistent("io_count", self.io_count, &format!("1 to {LIST_IOS_MAX}")));
        }
        let max_bytes = self.io_count * self.io_size_max.min(IO_SIZE_MAX);
        if bytes.is_none_or(|bytes| bytes > max_bytes || bytes < self.io_size_max) {
            return Err(inconsistent(
                "bytes_read",
                self.bytes_read,
                &format!("up to {max_bytes} bytes in all"),
            ));
        }
        if self.io_size_max == 0 || self.io_size_max > IO_SIZE_MAX {
            return Err(inconsistent(
                "io_size_max",
                self.io_size_max,
                &format!("1 to {IO_SIZE_MAX}"),
            ));
        }
        if self.end < self.io_size_max || self.end > MAX_OFFSET + IO_SIZE_MAX {
            return Err(inconsistent("end", self.end, "io_size_max or more"));
        }
        if !self.align.is_power_of_two() || !self.end.is_multiple_of(self.align) {
            return Err(inconsistent("align", self.align, "a power of two that divides end"));
        }
        if self.span.is_some_and(|span| span > MAX_OFFSET) {
            return Err(inconsistent("span", self.span.unwrap_or(0), "less than a hundred years"));
        }
        Ok(())
    }
}
