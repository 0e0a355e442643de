//! A run: pages of a merge unit that were written in order, upwards or downwards.
//!
//! ```text
//! upwards      low ▓▓▓▓▓▓▓▓▓ high ─▶
//! downwards    ◀─ low ▓▓▓▓▓▓▓▓▓ high        a host write below comes in order itself:
//!              low ▓▓──────▓▓▓▓ high        its last pages are missing until it is over
//! ```

use crate::flash::geometry::Lpn;
use crate::ftl::extent::Extent;

/// Pages from `low` on and before `high`, apart from those that the host write under way has still to
/// bring: from `missing.0` on and before `missing.1`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Run {
    pub(crate) low: u32,
    pub(crate) high: u32,
    missing: (u32, u32),
}

impl Run {
    /// An empty run at `offset`.
    pub(crate) fn at(offset: u32) -> Run {
        Run::between(offset, offset)
    }

    /// A run of the pages from `low` on and before `high`.
    pub(crate) fn between(low: u32, high: u32) -> Run {
        Run { low, high, missing: (0, 0) }
    }

    /// Whether page `offset` is in it.
    #[inline]
    pub(crate) fn has(&self, offset: u32) -> bool {
        let missing = self.missing.0 <= offset && offset < self.missing.1;
        self.low <= offset && offset < self.high && !missing
    }

    /// The page that goes on upwards, or with the host write under way.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        if self.missing.0 < self.missing.1 { self.missing.0 } else { self.high }
    }

    /// Whether `page` begins a host write that ends just below the run, in a unit from `first` on.
    #[inline]
    pub(crate) fn ends_below(&self, page: Lpn, extent: &Extent, first: u32) -> bool {
        self.missing.0 >= self.missing.1 && extent.is_last_before(page, first + self.low)
    }

    /// Page `offset`, which goes on upwards or downwards, was written.
    #[inline]
    pub(crate) fn take(&mut self, offset: u32) {
        if offset == self.high {
            self.high += 1;
        } else if offset < self.low {
            self.missing = (offset + 1, self.low);
            self.low = offset;
        } else {
            self.missing.0 += 1;
        }
    }

    /// Whether it has all of so many pages.
    #[inline]
    pub(crate) fn is_full(&self, pages: u32) -> bool {
        self.low == 0 && self.high == pages && self.missing.0 >= self.missing.1
    }

    /// How many pages it spans.
    #[inline]
    pub(crate) fn pages(&self) -> u32 {
        self.high - self.low
    }
}
