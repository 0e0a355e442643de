//! The logical pages that a host write covers, in whole or in part.

use std::hint::cold_path;
use std::ops::Range;

use uflip_core::Io;

use crate::flash::geometry::{Lpn, PageAddress};

/// The logical pages that one host write covers. FTLs that move several pages at once check whether the host
/// brings all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Extent")]
pub(crate) struct PageExtent {
    /// The first page that is covered, in whole or in part.
    begin: u32,
    /// The first page that is covered as a whole.
    first: u32,
    /// The end of the pages that are covered as a whole.
    end: u32,
    /// The end of the pages that are covered, in whole or in part.
    until: u32,
    /// The write stream that the host named.
    stream: u8,
}

/// The extent of a request without data: a flush, a trim.
pub(crate) const NO_PAGES: PageExtent =
    PageExtent { begin: 0, first: 0, end: 0, until: 0, stream: 0 };

impl PageExtent {
    /// Return the extent of `io` on pages of `page_bytes`. Shifts instead of dividing if possible: a division
    /// takes as long as the rest of a small I/O.
    #[inline]
    pub(crate) fn of_io(io: &Io, page_bytes: u64) -> PageExtent {
        let (from, to) = (io.offset.0, io.offset.0 + io.size.0);
        let shift = page_bytes.trailing_zeros();
        let (begin, end, is_before, is_behind) = if page_bytes >> shift == 1 {
            let last_byte = page_bytes - 1;
            (from >> shift, to >> shift, from & last_byte != 0, to & last_byte != 0)
        } else {
            cold_path();
            let (begin, end) = (from / page_bytes, to / page_bytes);
            (begin, end, from != begin * page_bytes, to != end * page_bytes)
        };
        let (begin, end) = (begin as u32, end as u32);
        let (first, until) = (begin + u32::from(is_before), end + u32::from(is_behind));
        PageExtent { begin, first, end, until, stream: io.stream }
    }

    /// Return the pages that are touched.
    #[inline]
    pub(crate) fn touched(&self) -> std::ops::Range<u32> {
        self.begin..self.until
    }

    /// Return the extent of a single page, covered as a whole or in part.
    #[inline]
    pub(crate) fn single(page: Lpn, whole: bool, stream: u8) -> PageExtent {
        let (begin, end) = (page.0, page.0 + u32::from(whole));
        PageExtent { begin, first: begin, end, until: begin + 1, stream }
    }

    /// Return its write stream.
    #[inline]
    pub(crate) fn stream(&self) -> u8 {
        self.stream
    }

    /// Set its write stream.
    #[inline]
    pub(crate) fn set_stream(&mut self, stream: u8) {
        self.stream = stream;
    }

    /// Return whether every page is covered as a whole.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.begin == self.first && self.end == self.until && self.first < self.end
    }

    /// Return the pages of an extent that covers whole pages only.
    pub(crate) fn pages(&self) -> impl Iterator<Item = Lpn> + use<> {
        (self.begin..self.end).map(Lpn)
    }

    /// Return the pages that the host writes as a whole.
    pub(crate) fn covered(&self) -> Range<u32> {
        self.first..self.end
    }

    /// Return whether `page` is the last covered page, in whole or in part.
    pub(crate) fn ends_with(&self, page: Lpn) -> bool {
        self.until == page.0 + 1
    }

    /// Return whether the host writes all of `page`.
    #[inline]
    pub(crate) fn covers(&self, page: Lpn) -> bool {
        self.first <= page.0 && page.0 < self.end
    }

    /// Return the address of the old version, `old`, that supplies the rest of `page`; `None` if the host
    /// brings all of it.
    #[inline]
    pub(crate) fn merge_source(
        &self,
        page: Lpn,
        old: impl FnOnce() -> Option<PageAddress>,
    ) -> Option<PageAddress> {
        if self.covers(page) { None } else { old() }
    }

    /// Return whether the host will write a part of `other` after `page`.
    #[inline]
    pub(crate) fn covers_part_later(&self, page: Lpn, other: Lpn) -> bool {
        page < other && other.0 < self.until
    }

    /// Return the first page that the host writes, in whole or in part.
    #[inline]
    pub(crate) fn begin(&self) -> u32 {
        self.begin
    }

    /// Return whether the host writes all of the `pages` pages from `first` on.
    #[inline]
    pub(crate) fn covers_all(&self, first: Lpn, pages: u32) -> bool {
        self.first <= first.0 && first.0 + pages <= self.end
    }

    /// Return whether it ends just before `page`.
    #[inline]
    pub(crate) fn end_before(&self, page: u32) -> bool {
        self.end == page
    }

    /// Return whether it brings everything from `page` up to `end`, and ends there.
    #[inline]
    pub(crate) fn is_last_before(&self, page: Lpn, end: u32) -> bool {
        self.covers(page) && self.end == end
    }

    /// Return whether the host will write all of `other` after `page`: pages come in order.
    #[inline]
    pub(crate) fn covers_later(&self, page: Lpn, other: Lpn) -> bool {
        other > page && self.covers(other)
    }
}
