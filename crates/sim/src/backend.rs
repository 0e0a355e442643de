//! What stands between the host interface and the flash: an FTL, and when it does its work.
//!
//! There are two kinds. A page map collects blocks beside the host, on a clock of its own
//! (`paged.rs`); a merging FTL merges in the path of the write that needs room, and in steps while
//! the host leaves the device alone (`merging.rs`). The device is written once, for both.

use uflip_core::{Counters, Error, Io, Mode};

use crate::geometry::{DieIdx, Lpn, Place};
use crate::issued::{Target, Token};
use crate::media::{CollectMedia, Flash, Media as _};
use crate::timeline::Timeline;

/// The flash and its clocks, which outlive every operation of an FTL.
pub(crate) struct Hardware<'a> {
    pub(crate) flash: &'a mut Flash,
    pub(crate) events: &'a mut Timeline<Token>,
}

/// A page that is to be written, which belongs to `extent` and whose data is there.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Write {
    pub(crate) page: Lpn,
    pub(crate) extent: Extent,
    pub(crate) target: Target,
}

/// A page that an I/O in the untimed gear touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) mode: Mode,
    pub(crate) page: Lpn,
    pub(crate) extent: Extent,
}

/// An FTL and the times of its work.
pub(crate) trait Backend {
    /// Whether the pages of a host write are planned as one, as soon as the controller has taken it in,
    /// and none of another write may come between them.
    const PLANS_WHOLE_WRITES: bool;

    /// Where `page` is, for a read of it; `None` where it was never written. Whatever must be read to
    /// find out is asked of `media`.
    fn find(&mut self, page: Lpn, media: &mut impl CollectMedia) -> Option<Place>;

    /// Read `page` from `at` on; `bytes` of it go to the host.
    fn read(&mut self, page: Lpn, bytes: u64, at: u64, target: Target, hardware: &mut Hardware<'_>);

    /// Write a page from `at` on, when its data is there.
    fn write(&mut self, write: Write, at: u64, hardware: &mut Hardware<'_>);

    /// What the collection of `die` waited for has happened.
    fn collect(&mut self, die: DieIdx, at: u64, hardware: &mut Hardware<'_>);

    /// A read of the host ends at `end`.
    #[inline]
    fn after_read(&mut self, _end: u64, _hardware: &mut Hardware<'_>) {}

    /// Keep nothing in memory that the host takes for written, or what is usual.
    fn set_write_through(&mut self, _write_through: bool) {}

    /// Write to flash, from `at` on, what memory alone has; returns when it is there.
    #[inline]
    fn drain(&mut self, at: u64, _hardware: &mut Hardware<'_>) -> u64 {
        at
    }

    /// The host leaves the device alone from `now` to `until`.
    fn begin_idle(&mut self, now: u64, until: u64, hardware: &mut Hardware<'_>);

    /// The host is back.
    fn end_idle(&mut self) {}

    /// Nothing will happen any more after `at`, and an I/O has not ended: it ends now, and fails.
    ///
    /// # Panics
    /// Where none waits for anything: the books must be wrong.
    fn stuck(&mut self, at: u64, hardware: &mut Hardware<'_>);

    /// Whether too little flash is left to write to the device.
    #[inline]
    fn is_read_only(&self) -> bool {
        false
    }

    /// Why it is.
    fn why_read_only(&self) -> Error;

    /// Until when operations are planned already, where they are planned ahead.
    #[inline]
    fn planned_until(&self) -> u64 {
        0
    }

    /// What is under way ends now; the untimed gear follows.
    fn end_untimed(&mut self, flash: &mut Flash);

    /// [`Backend::write`] in the untimed gear.
    fn write_untimed(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash);

    /// Do what a batch of I/Os asks for in the untimed gear, in order.
    fn apply(&mut self, pieces: &[Piece], flash: &mut Flash) {
        for Piece { mode, page, extent } in pieces {
            match mode {
                Mode::Write => self.write_untimed(*page, extent, flash),
                Mode::Read => {
                    if let Some(at) = self.find(*page, flash) {
                        flash.read(at);
                    }
                }
            }
        }
    }

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Extent {
    /// The first page that is covered, as a whole or not.
    begin: u32,
    /// The first page that is covered as a whole.
    first: u32,
    /// The first page behind them that is not.
    end: u32,
    /// The first page behind all that are covered, as a whole or not.
    until: u32,
}

impl Extent {
    /// The extent of `io` on pages of so many bytes.
    #[inline]
    pub(crate) fn of(io: &Io, page_bytes: u64) -> Extent {
        let (from, to) = (io.offset.0, io.offset.0 + io.size.0);
        let (begin, end) = (page_number(from, page_bytes), page_number(to, page_bytes));
        Extent {
            begin: begin as u32,
            first: (begin + u64::from(from > begin * page_bytes)) as u32,
            end: end as u32,
            until: (end + u64::from(to > end * page_bytes)) as u32,
        }
    }

    /// The pages that are touched.
    #[inline]
    pub(crate) fn touched(&self) -> std::ops::Range<u32> {
        self.begin..self.until
    }

    /// A single page, covered as a whole or not.
    #[inline]
    pub(crate) fn single(page: Lpn, whole: bool) -> Extent {
        Extent { begin: page.0, first: page.0, end: page.0 + u32::from(whole), until: page.0 + 1 }
    }

    /// Whether every page is covered as a whole.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.begin == self.first && self.end == self.until && self.first < self.end
    }

    /// The pages of an extent that is whole.
    pub(crate) fn pages(&self) -> impl Iterator<Item = Lpn> + use<> {
        (self.begin..self.end).map(Lpn)
    }

    /// The pages that the host brings as a whole.
    pub(crate) fn covered(&self) -> impl Iterator<Item = Lpn> + use<> {
        (self.first..self.end).map(Lpn)
    }

    /// Whether the host brings all of `page`.
    #[inline]
    pub(crate) fn covers(&self, page: Lpn) -> bool {
        self.first <= page.0 && page.0 < self.end
    }

    /// Whether the host will bring something of `other` once it has brought `page`.
    #[inline]
    pub(crate) fn touches_after(&self, page: Lpn, other: Lpn) -> bool {
        page < other && other.0 < self.until
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

/// The number of the page that holds `byte`. A shift where it will do: a division takes as long as
/// everything else about a small I/O.
#[inline]
pub(crate) fn page_number(byte: u64, page_bytes: u64) -> u64 {
    let shift = page_bytes.trailing_zeros();
    if page_bytes == 1 << shift { byte >> shift } else { byte / page_bytes }
}
