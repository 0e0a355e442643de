//! Free pages left for relocated pages, for mapping pages, and so for the host.

use super::streams::KINDS_MAX;
use super::{Blocks, PageStream, RelocationFrontier};

impl Blocks {
    /// Return the usable pages of all blocks that are not retired.
    pub(crate) fn usable_pages(&self) -> u32 {
        self.usable_pages
    }

    /// Return the number of erased blocks of all planes.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.free_blocks
    }

    /// Return how many pages relocation can still take, on all planes.
    #[inline]
    pub(crate) fn pages_for_relocation(&self) -> u32 {
        self.free_pages + self.open_pages[self.kind(PageStream::Relocated)]
    }

    /// Return whether `relocated` and `mapping` pages fit together. Each stream fills blocks of its
    /// own.
    pub(crate) fn fits(&self, relocated: u32, mapping: u32) -> bool {
        self.fits_with(relocated, mapping, self.free_blocks, &self.open_pages)
    }

    /// Like [`Blocks::fits`], once `stream` has taken a page and, if `opens`, opened a block for it.
    pub(crate) fn fits_after(
        &self,
        stream: PageStream,
        opens: bool,
        relocated: u32,
        mapping: u32,
    ) -> bool {
        let Some(free) = self.free_blocks.checked_sub(u32::from(opens)) else {
            return false;
        };
        let mut open_pages = self.open_pages;
        let left = &mut open_pages[self.kind(stream)];
        *left = (*left + u32::from(opens) * self.least_usable).saturating_sub(1);
        self.fits_with(relocated, mapping, free, &open_pages)
    }

    fn fits_with(
        &self,
        relocated: u32,
        mapping: u32,
        free: u32,
        open_pages: &[u32; KINDS_MAX],
    ) -> bool {
        let blocks = |stream, pages: u32| {
            let beyond = pages.saturating_sub(open_pages[self.kind(stream)]);
            beyond.div_ceil(self.least_usable)
        };
        blocks(PageStream::Relocated, relocated) + blocks(PageStream::Mapping, mapping) <= free
    }

    /// Return how often a block was freed or opened.
    #[inline]
    pub(crate) fn supply_changes(&self) -> u64 {
        self.supply_changes
    }

    /// Return how many pages for relocation a host page consumes: one where relocated pages share the host's
    /// blocks. Otherwise none, or the whole block that it opens.
    #[inline]
    pub(crate) fn cost_of_host_page(&self, opens: bool) -> u32 {
        match (self.relocation, opens) {
            (RelocationFrontier::Shared, _) => 1,
            (_, false) => 0,
            (_, true) => self.geometry.data_pages(),
        }
    }
}
