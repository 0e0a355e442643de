//! What stands between the host interface and the flash: an FTL, and when it does its work.
//!
//! There are two kinds. A page map collects blocks beside the host, on a clock of its own
//! (`paged.rs`); a merging FTL merges in the path of the write that needs room, and in steps while
//! the host leaves the device alone (`merging.rs`). The device is written once, for both.

use uflip_core::{Counters, Io};

use crate::breakdown::Account;
use crate::geometry::{Lpn, Place};
use crate::media::{Flash, Media};
use crate::timeline::Timeline;

/// The flash and its clocks, which outlive every operation of an FTL.
pub(crate) struct Hardware<'a> {
    pub(crate) flash: &'a mut Flash,
    pub(crate) timeline: &'a mut Timeline,
}

/// An FTL and the times of its work.
pub(crate) trait Backend {
    /// Let everything happen that is due by `now`.
    fn advance(&mut self, now: u64, hardware: &mut Hardware<'_>);

    /// Where `page` is, for a read of it; `None` where it was never written. Whatever must be read to
    /// find out is asked of `media`.
    fn find(&mut self, page: Lpn, media: &mut impl Media) -> Option<Place>;

    /// Write `page`, which belongs to `extent` and whose data has arrived at `ready`; returns the end.
    /// What the time was spent on is added to `path`.
    fn write<A: Account>(
        &mut self,
        page: Lpn,
        extent: &Extent,
        ready: u64,
        hardware: &mut Hardware<'_>,
        path: &mut A,
    ) -> u64;

    /// The host has read something until `end`.
    #[inline]
    fn after_read(&mut self, _end: u64, _hardware: &mut Hardware<'_>) {}

    /// The host leaves the device alone from `now` to `until`.
    fn idle(&mut self, now: u64, until: u64, hardware: &mut Hardware<'_>);

    /// What is under way ends now; the untimed gear follows.
    fn end_untimed(&mut self, flash: &mut Flash);

    /// [`Backend::write`] in the untimed gear.
    fn write_untimed(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash);

    /// `page` holds nothing any more (TRIM).
    fn trim(&mut self, page: Lpn);

    /// `page` will be looked up soon.
    #[inline]
    fn prefetch(&self, _page: Lpn) {}

    /// `page`, for which [`Backend::prefetch`] was called, will be written soon.
    #[inline]
    fn prefetch_old(&self, _page: Lpn) {}

    /// Add what only the backend knows.
    fn count(&self, counters: &mut Counters);
}

/// Which logical pages one host write covers: FTLs that move several pages as one want to know
/// whether the host brings all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// The first page that is covered, as a whole or not.
    begin: u32,
    /// The first page that is covered as a whole.
    first: u32,
    /// The first page behind them that is not.
    end: u32,
}

impl Extent {
    /// The extent of `io` on pages of so many bytes.
    #[inline]
    pub(crate) fn of(io: &Io, page_bytes: u64) -> Extent {
        let end = io.offset.0 + io.size.0;
        // A shift where it will do: a division takes as long as everything else about a small I/O.
        let page_of = |byte: u64| {
            let shift = page_bytes.trailing_zeros();
            let page = if page_bytes == 1 << shift { byte >> shift } else { byte / page_bytes };
            page as u32
        };
        Extent {
            begin: page_of(io.offset.0),
            first: page_of(io.offset.0 + page_bytes - 1),
            end: page_of(end),
        }
    }

    /// A single page, covered as a whole or not.
    #[inline]
    pub(crate) fn single(page: Lpn, whole: bool) -> Extent {
        Extent { begin: page.0, first: page.0, end: page.0 + u32::from(whole) }
    }

    /// Whether the host brings all of `page`.
    #[inline]
    pub(crate) fn covers(&self, page: Lpn) -> bool {
        self.first <= page.0 && page.0 < self.end
    }

    /// The first page that the host brings, whole or in part.
    #[inline]
    pub(crate) fn begin(&self) -> u32 {
        self.begin
    }

    /// Whether the host brings all of the `pages` pages from `first` on.
    #[inline]
    pub(crate) fn covers_all(&self, first: Lpn, pages: u32) -> bool {
        self.first <= first.0 && first.0 + pages <= self.end
    }

    /// Whether it ends just before `page`.
    #[inline]
    pub(crate) fn end_before(&self, page: u32) -> bool {
        self.end == page
    }

    /// Whether it brings everything from `page` on up to `end`, of which it is the last.
    #[inline]
    pub(crate) fn is_last_before(&self, page: Lpn, end: u32) -> bool {
        self.covers(page) && self.end == end
    }

    /// Whether the host will bring all of `other` once it has brought `page`: pages come in order.
    #[inline]
    pub(crate) fn brings_after(&self, page: Lpn, other: Lpn) -> bool {
        other > page && self.covers(other)
    }
}
