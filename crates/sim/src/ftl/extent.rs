//! Which logical pages a host write covers, as a whole or in part.

use std::hint::cold_path;
use std::ops::Range;

use uflip_core::Io;

use crate::flash::geometry::{Lpn, Place};

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
    /// The stream of writes that the host named.
    stream: u8,
}

/// The extent of what moves no data: a flush, a trim.
pub(crate) const NO_PAGES: Extent = Extent { begin: 0, first: 0, end: 0, until: 0, stream: 0 };

impl Extent {
    /// The extent of `io` on pages of so many bytes. A shift where it will do: a division takes as
    /// long as everything else about a small I/O.
    #[inline]
    pub(crate) fn of(io: &Io, page_bytes: u64) -> Extent {
        let (from, to) = (io.offset.0, io.offset.0 + io.size.0);
        let shift = page_bytes.trailing_zeros();
        let (begin, end, is_before, is_behind) = if page_bytes >> shift == 1 {
            let rest = page_bytes - 1;
            (from >> shift, to >> shift, from & rest != 0, to & rest != 0)
        } else {
            cold_path();
            let (begin, end) = (from / page_bytes, to / page_bytes);
            (begin, end, from != begin * page_bytes, to != end * page_bytes)
        };
        let (begin, end) = (begin as u32, end as u32);
        let (first, until) = (begin + u32::from(is_before), end + u32::from(is_behind));
        Extent { begin, first, end, until, stream: io.stream }
    }

    /// The pages that are touched.
    #[inline]
    pub(crate) fn touched(&self) -> std::ops::Range<u32> {
        self.begin..self.until
    }

    /// A single page, covered as a whole or not.
    #[inline]
    pub(crate) fn single(page: Lpn, whole: bool, stream: u8) -> Extent {
        let (begin, end) = (page.0, page.0 + u32::from(whole));
        Extent { begin, first: begin, end, until: begin + 1, stream }
    }

    /// The stream of writes that it belongs to.
    #[inline]
    pub(crate) fn stream(&self) -> u8 {
        self.stream
    }

    /// It belongs to this one.
    #[inline]
    pub(crate) fn set_stream(&mut self, stream: u8) {
        self.stream = stream;
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
    pub(crate) fn covered(&self) -> Range<u32> {
        self.first..self.end
    }

    /// Whether `page` is the last that is covered, as a whole or not.
    pub(crate) fn ends_with(&self, page: Lpn) -> bool {
        self.until == page.0 + 1
    }

    /// Whether the host brings all of `page`.
    #[inline]
    pub(crate) fn covers(&self, page: Lpn) -> bool {
        self.first <= page.0 && page.0 < self.end
    }

    /// Where the rest of `page` is, `old`, unless the host brings all of it.
    #[inline]
    pub(crate) fn rest(&self, page: Lpn, old: impl FnOnce() -> Option<Place>) -> Option<Place> {
        if self.covers(page) { None } else { old() }
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
