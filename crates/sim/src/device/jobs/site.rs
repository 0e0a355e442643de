//! Cell times and page types, as needed for a layout.

use crate::flash::geometry::{Geometry, PageAddress};
use crate::timeline::Timing;
use crate::timeline::cells::PageType;

/// The device, as needed for a layout.
#[derive(Clone, Copy)]
pub(super) struct LayoutSite<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) timing: &'a Timing,
}

impl LayoutSite<'_> {
    /// Return the program time of the cells of `page`.
    #[inline]
    pub(super) fn program_ns(&self, page: PageAddress) -> u64 {
        self.timing.cells.program_page(self.geometry.page_in_block(page))
    }

    /// Return the read time of the cells of `page`.
    #[inline]
    pub(super) fn read_ns(&self, page: PageAddress) -> u64 {
        self.timing.cells.read_page(|| self.geometry.page_in_block(page))
    }

    /// Return the page type of `page`.
    #[inline]
    pub(super) fn kind(&self, page: PageAddress) -> PageType {
        self.timing.cells.kind(self.geometry.page_in_block(page))
    }
}
