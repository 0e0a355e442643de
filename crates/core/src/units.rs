//! Newtypes for bytes and nanoseconds. Values of one unit add and subtract; different units do not
//! mix. There is no `Deref`: `.0` gives the bare integer.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// The smallest addressing unit of any device [bytes]; every logical block size is a multiple of
/// it.
pub const SECTOR_BYTES_MIN: u64 = 512;

/// A length or an offset [bytes].
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A duration, or an instant on a device's own clock [ns].
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

macro_rules! arithmetic {
    ($unit:ident, $add:ident) => {
        impl Add for $unit {
            type Output = $unit;
            #[inline]
            fn add(self, other: $unit) -> $unit {
                $unit(self.0.$add(other.0))
            }
        }
        impl AddAssign for $unit {
            #[inline]
            fn add_assign(&mut self, other: $unit) {
                *self = *self + other;
            }
        }
        impl Sub for $unit {
            type Output = $unit;
            #[inline]
            fn sub(self, other: $unit) -> $unit {
                $unit(self.0 - other.0)
            }
        }
    };
}
arithmetic!(Bytes, add);
// A clock does not go back: sums saturate at the last instant.
arithmetic!(Nanos, saturating_add);

impl Nanos {
    /// Return `self − other`, or zero if `other` is later.
    #[inline]
    #[must_use]
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_bytes(self.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_nanos(self.0))
    }
}

/// Format bytes: `32768` → `32 KiB`. Exact: a size that is not a whole number of a unit is shown in
/// a smaller unit.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (name, shift) in UNITS {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{} {name}", bytes >> shift);
        }
    }
    format!("{bytes} B")
}

/// Format a duration with three decimals: `1500000` → `1.500 ms`.
#[must_use]
pub fn format_nanos(ns: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000)];
    for (name, unit) in UNITS {
        if ns >= unit {
            return format!("{}.{:03} {name}", ns / unit, ns % unit * 1000 / unit);
        }
    }
    format!("{ns} ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_formatted_exactly() {
        assert_eq!(format_bytes(0), "0 B");
        assert_eq!(format_bytes(513), "513 B");
        assert_eq!(format_bytes(32 << 10), "32 KiB");
        assert_eq!(format_bytes((1 << 30) + (1 << 20)), "1025 MiB");
    }

    #[test]
    fn durations_are_formatted_with_three_digits() {
        assert_eq!(format_nanos(999), "999 ns");
        assert_eq!(format_nanos(1_500_000), "1.500 ms");
        assert_eq!(format_nanos(2_000_000_001), "2.000 s");
    }

    #[test]
    fn difference_of_instants_saturates() {
        assert_eq!(Nanos(3).saturating_sub(Nanos(5)), Nanos(0));
    }
}
