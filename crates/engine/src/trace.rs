//! Every I/O of one run, in memory: 24 bytes an I/O, and 8 more per cause on simulated devices.
//!
//! ```text
//!  submit_ns            u64   on the device's clock, from the start of the run
//!  response_time_ns     u64   completed − submitted
//!  io                   u64   offset [512 B] 44 bits │ size [512 B] 19 bits │ write 1 bit
//! ```
//!
//! A trace of several processes holds them one after another. How it comes about: [`crate::recorder`].

use crate::turns::Turns;
use uflip_core::{Bytes, Io, Mode, SECTOR_BYTES_MIN};

use crate::spec::Resolved;

/// No response time takes so long: it stands where none is known yet.
pub(crate) const UNTOLD: u64 = u64::MAX;

const SIZE_BITS: u32 = 19;
const SIZE_MASK: u64 = (1 << SIZE_BITS) - 1;

/// Every I/O of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// The pattern that was run, complete.
    pub pattern: Resolved,
    /// When each I/O was submitted [ns], from the start of the run on the device's clock.
    pub submit_ns: Vec<u64>,
    /// How long each took [ns].
    pub response_time_ns: Vec<u64>,
    /// Offset, size and mode of each, packed; see [`Trace::io`].
    pub(crate) packed_io: Vec<u64>,
    /// Names of the causes; empty for a device that cannot know them.
    pub causes: Vec<String>,
    /// One column per cause [ns].
    pub cause_ns: Vec<Vec<u64>>,
    /// How the run came to its length, where that was not given.
    pub ended: Option<serde_json::Value>,
}

impl Trace {
    /// A trace of no I/O, of a device that knows `causes`.
    pub(crate) fn empty(causes: usize) -> Trace {
        Trace {
            pattern: Resolved {
                canonical: serde_json::Value::Null,
                streams: Vec::new(),
                totals: crate::spec::Totals::default(),
                stop: None,
                parts: Vec::new(),
            },
            submit_ns: Vec::new(),
            response_time_ns: Vec::new(),
            packed_io: Vec::new(),
            causes: Vec::new(),
            cause_ns: vec![Vec::new(); causes],
            ended: None,
        }
    }

    /// Every column.
    pub(crate) fn columns(&mut self) -> impl Iterator<Item = &mut Vec<u64>> {
        let fixed = [&mut self.submit_ns, &mut self.response_time_ns, &mut self.packed_io];
        fixed.into_iter().chain(&mut self.cause_ns)
    }

    /// Put together a trace that was read from disk; offsets, sizes and modes follow from `pattern`.
    ///
    /// # Panics
    /// Where the columns differ in length from what `pattern` issues.
    #[must_use]
    pub fn from_columns(
        pattern: Resolved,
        submit_ns: Vec<u64>,
        response_time_ns: Vec<u64>,
        causes: Vec<String>,
        cause_ns: Vec<Vec<u64>>,
    ) -> Trace {
        let packed_io = pattern.issued().map(pack).collect::<Vec<u64>>();
        assert_eq!(packed_io.len(), submit_ns.len(), "as many I/Os as the pattern issues");
        assert_eq!(packed_io.len(), response_time_ns.len(), "columns of one length");
        let ended = None;
        Trace { pattern, submit_ns, response_time_ns, packed_io, causes, cause_ns, ended }
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

    /// I/O number `index`.
    ///
    /// # Panics
    /// Where `index` is not below [`Trace::len`].
    #[must_use]
    pub fn io(&self, index: usize) -> Io {
        unpack(self.packed_io[index])
    }

    /// All I/Os in order.
    pub fn ios(&self) -> impl ExactSizeIterator<Item = Io> + '_ {
        self.packed_io.iter().map(|packed| unpack(*packed))
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
        let ends = self.submit_ns.iter().zip(&self.response_time_ns).map(|(s, r)| s + r);
        let first = self.submit_ns.iter().min().copied().unwrap_or(0);
        ends.max().unwrap_or(0) - first
    }

    /// Keep the first `ios` I/Os, and give the memory of the others back.
    pub(crate) fn truncate(&mut self, ios: usize) {
        for column in self.columns() {
            column.truncate(ios);
            column.shrink_to_fit();
        }
    }

    /// Append the I/Os of another process.
    pub(crate) fn append(&mut self, mut other: Trace) {
        self.submit_ns.append(&mut other.submit_ns);
        self.response_time_ns.append(&mut other.response_time_ns);
        self.packed_io.append(&mut other.packed_io);
        for (column, mut more) in self.cause_ns.iter_mut().zip(other.cause_ns) {
            column.append(&mut more);
        }
    }
}

fn repeat<T: Copy>(value: T, times: u64) -> impl Iterator<Item = T> {
    std::iter::repeat_n(value, times as usize)
}

#[inline]
pub(crate) fn pack(io: Io) -> u64 {
    let sectors = |bytes: Bytes| bytes.0 / SECTOR_BYTES_MIN;
    sectors(io.offset) << (SIZE_BITS + 1)
        | sectors(io.size) << 1
        | u64::from(io.mode == Mode::Write)
}

#[inline]
fn unpack(packed: u64) -> Io {
    Io {
        offset: Bytes((packed >> (SIZE_BITS + 1)) * SECTOR_BYTES_MIN),
        size: Bytes((packed >> 1 & SIZE_MASK) * SECTOR_BYTES_MIN),
        mode: if packed & 1 == 1 { Mode::Write } else { Mode::Read },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_survives_packing() {
        for mode in [Mode::Read, Mode::Write] {
            let io = Io { offset: Bytes((1 << 52) - 512), size: Bytes(128 << 20), mode };
            assert_eq!(unpack(pack(io)), io);
        }
    }
}
