//! Several host write streams, each of which fills blocks of its own.
//!
//! ```text
//! host stream   0        1        2         relocated pages                          mapping pages
//! open block   [ ▓▓░ ]  [ ▓░░ ]  [ ▓▓▓ ]    [ ▓░░ ]  [ ▓▓░ ]  [ ▓░░ ] one a stream   [ ▓░░ ]
//!                                           or [ ▓░░ ] one for those of all
//! ```
//!
//! One host stream and one stream of relocated pages are selected at a time. The caller selects a stream
//! before it allocates a page, so a device with one stream pays nothing.

use super::{Blocks, PageStream, RelocationFrontier};
use crate::flash::geometry::{BlockIdx, PlaneIdx, Ppn};

/// Maximum number of write streams: more than drives with streams or placement handles offer.
pub(crate) const WRITE_STREAMS_MAX: u32 = 16;

/// The number of the host stream that is the SLC cache, on devices that have one.
pub(crate) const CACHE: u8 = 1;

/// Maximum number of open blocks of a plane: those of the host's streams and as many for relocated pages, or
/// one for relocated and one for mapping pages.
pub(super) const KINDS_MAX: usize = 2 * WRITE_STREAMS_MAX as usize;

impl Blocks {
    /// Return the number of host streams.
    #[inline]
    pub(crate) fn write_streams(&self) -> u8 {
        self.hosts
    }

    /// Select the stream of the host pages that are allocated next.
    #[inline]
    pub(crate) fn select_stream(&mut self, stream: u8) {
        debug_assert!(stream < self.hosts, "the stream exists");
        self.kinds[PageStream::Host as usize] = stream;
    }

    /// Select the stream of the pages that are relocated from `block` next.
    #[inline]
    pub(crate) fn select_stream_of(&mut self, block: BlockIdx) {
        if self.relocation != RelocationFrontier::Single {
            self.kinds[PageStream::Relocated as usize] = self.relocation_role(block);
        }
    }

    /// Return the role that `block` had when it was last opened: its index among a plane's open blocks.
    #[inline]
    pub(super) fn role_of(&self, block: BlockIdx) -> u8 {
        self.role_of.get(block.0 as usize).copied().unwrap_or(0)
    }

    /// Return the stream whose pages `block` holds; numbers beyond those of the host stand for relocated
    /// pages of all streams.
    #[inline]
    pub(crate) fn stream_of(&self, block: BlockIdx) -> u8 {
        let role = self.role_of(block);
        match self.relocation {
            RelocationFrontier::PerStream if role >= self.hosts => role - self.hosts,
            _ => role,
        }
    }

    /// Return the role of the open block that takes pages relocated from `block`.
    #[inline]
    pub(crate) fn relocation_role(&self, block: BlockIdx) -> u8 {
        match (self.relocation, self.stream_of(block)) {
            (RelocationFrontier::Single, _) => self.hosts,
            (RelocationFrontier::PerStream, stream) => self.hosts + stream,
            // Folded pages go where the host's pages go when they bypass the cache.
            (RelocationFrontier::Shared, CACHE) if self.slc_pages.is_some() => 0,
            (RelocationFrontier::Shared, stream) => stream,
        }
    }

    /// Return whether `block` belongs to an SLC cache, or did when it was last opened.
    #[inline]
    pub(crate) fn is_cache(&self, block: BlockIdx) -> bool {
        self.slc_pages.is_some() && self.role_of(block) == CACHE
    }

    /// Return whether `plane` has an open SLC cache block with a free page.
    pub(crate) fn has_open_cache(&self, plane: PlaneIdx) -> bool {
        let open = &self.open[plane.0 as usize * self.streams + usize::from(CACHE)];
        open.next != open.end
    }

    /// Return the pages of the open block at `index` if it is an SLC cache block, which holds fewer than
    /// others.
    pub(super) fn pages_of(&self, index: usize) -> Option<u32> {
        self.slc_pages.filter(|_| index % self.streams == usize::from(CACHE))
    }

    /// Return the role of the open block that takes host pages now.
    #[inline]
    pub(crate) fn selected_role(&self) -> u8 {
        self.kinds[PageStream::Host as usize]
    }

    /// Return, per role that takes data, the free pages in the open blocks of all planes.
    pub(crate) fn open_pages(&self) -> &[u32] {
        &self.open_pages[..usize::from(self.hosts + self.relocation.open_blocks(self.hosts))]
    }

    /// Return how many pages are left in the flash page that is partly filled on `plane` for a host stream.
    #[inline]
    pub(crate) fn free_in_flash_page(&self, plane: PlaneIdx, stream: u8) -> u32 {
        let next = self.open[plane.0 as usize * self.streams + usize::from(stream)].next;
        match self.geometry.begun_in_flash_page(Ppn(next)) {
            0 => 0,
            begun => self.geometry.units() - begun,
        }
    }

    /// Return the fewest usable pages of any block.
    pub(crate) fn least_usable(&self) -> u32 {
        self.least_usable
    }
}
