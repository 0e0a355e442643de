//! A run: pages of a merge unit that were written in order, upwards or downwards.
//!
//! ```text
//! upwards      low ▓▓▓▓▓▓▓▓▓ high ─▶
//! downwards    ◀─ low ▓▓▓▓▓▓▓▓▓ high        a host write below comes in order itself:
//!              low ▓▓──────▓▓▓▓ high        its last pages are missing until it is over
//! ```

use crate::flash::geometry::Lpn;
use crate::ftl::extent::PageExtent;

/// Pages in `low..high`, except those that the current host write has yet to write: `missing.0..missing.1`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Run {
    pub(crate) low: u32,
    pub(crate) high: u32,
    missing: (u32, u32),
}

impl Run {
    /// Create an empty run at `offset`.
    pub(crate) fn at(offset: u32) -> Run {
        Run::between(offset, offset)
    }

    /// Create a run of the pages `low..high`.
    pub(crate) fn between(low: u32, high: u32) -> Run {
        Run { low, high, missing: (0, 0) }
    }

    /// Return whether page `offset` is in the run.
    #[inline]
    pub(crate) fn has(&self, offset: u32) -> bool {
        let missing = self.missing.0 <= offset && offset < self.missing.1;
        self.low <= offset && offset < self.high && !missing
    }

    /// Return the page that continues the run upwards, or within the current host write.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        if self.missing.0 < self.missing.1 { self.missing.0 } else { self.high }
    }

    /// Return whether `page` begins a host write that ends just below the run, in a unit that
    /// starts at page `first`.
    #[inline]
    pub(crate) fn ends_below(&self, page: Lpn, extent: &PageExtent, first: u32) -> bool {
        self.missing.0 >= self.missing.1 && extent.is_last_before(page, first + self.low)
    }

    /// Add the written page `offset`, which continues the run upwards or downwards.
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

    /// Return whether it has all of `pages` pages.
    #[inline]
    pub(crate) fn is_full(&self, pages: u32) -> bool {
        self.low == 0 && self.high == pages && self.missing.0 >= self.missing.1
    }

    /// Return the number of pages that it spans.
    #[inline]
    pub(crate) fn pages(&self) -> u32 {
        self.high - self.low
    }
}
