//! What a device takes for its pages, as far as work has to be laid out.

use crate::flash::geometry::{Geometry, Place};
use crate::timeline::Timing;
use crate::timeline::cells::Kind;

/// A device, as far as its work has to be laid out.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) timing: &'a Timing,
}

impl Site<'_> {
    /// How long the cells of `page` are programmed.
    #[inline]
    pub(super) fn program_ns(&self, page: Place) -> u64 {
        self.timing.cells.program_page(self.geometry.page_in_block(page))
    }

    /// How long they are read.
    #[inline]
    pub(super) fn read_ns(&self, page: Place) -> u64 {
        self.timing.cells.read_page(|| self.geometry.page_in_block(page))
    }

    /// Which of those that share their cells `page` is.
    #[inline]
    pub(super) fn kind(&self, page: Place) -> Kind {
        self.timing.cells.kind(self.geometry.page_in_block(page))
    }
}
