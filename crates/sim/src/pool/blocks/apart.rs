//! Several streams of the host, each of which fills blocks of its own.
//!
//! ```text
//! host stream   0        1        2         relocated pages                          mapping pages
//! open block   [ ▓▓░ ]  [ ▓░░ ]  [ ▓▓▓ ]    [ ▓░░ ]  [ ▓▓░ ]  [ ▓░░ ] one a stream   [ ▓░░ ]
//!                                           or [ ▓░░ ] one for those of all
//! ```
//!
//! The books serve one stream of the host, and one of relocated pages, at a time: whoever takes a page says
//! before whose it is. So nothing is asked where there is only one.

use super::{Blocks, RelocationFrontier, Stream};
use crate::flash::geometry::{BlockIdx, PlaneIdx, Ppn};

/// More than drives with streams or placement handles offer.
pub(crate) const WRITE_STREAMS_MAX: u32 = 16;

/// Which of the host's streams is an SLC cache, where there is one.
pub(crate) const CACHE: u8 = 1;

/// Open blocks of a plane: those of the host's streams, and as many of relocated pages, or one of these and one of
/// mapping pages.
pub(super) const KINDS_MAX: usize = 2 * WRITE_STREAMS_MAX as usize;

impl Blocks {
    /// How many streams of the host are kept apart.
    #[inline]
    pub(crate) fn write_streams(&self) -> u8 {
        self.hosts
    }

    /// Host pages that are taken from now on are of this stream.
    #[inline]
    pub(crate) fn serve(&mut self, stream: u8) {
        debug_assert!(stream < self.hosts, "a stream that there is");
        self.kinds[Stream::Host as usize] = stream;
    }

    /// Relocated pages that are taken from now on are those of `block`.
    #[inline]
    pub(crate) fn serve_pages_of(&mut self, block: BlockIdx) {
        if self.relocation != RelocationFrontier::Single {
            self.kinds[Stream::Relocated as usize] = self.goes_with(block);
        }
    }

    /// Which of a plane's open blocks `block` was when it was opened last.
    #[inline]
    pub(super) fn role_of(&self, block: BlockIdx) -> u8 {
        self.role_of.get(block.0 as usize).copied().unwrap_or(0)
    }

    /// The stream whose pages `block` holds; beyond those of the host that of the relocated pages of all.
    #[inline]
    pub(crate) fn stream_of(&self, block: BlockIdx) -> u8 {
        let role = self.role_of(block);
        match self.relocation {
            RelocationFrontier::PerStream if role >= self.hosts => role - self.hosts,
            _ => role,
        }
    }

    /// Which of a plane's open blocks takes the pages that are moved away from `block`.
    #[inline]
    pub(crate) fn goes_with(&self, block: BlockIdx) -> u8 {
        match (self.relocation, self.stream_of(block)) {
            (RelocationFrontier::Single, _) => self.hosts,
            (RelocationFrontier::PerStream, stream) => self.hosts + stream,
            // What is folded goes where the host's pages go past the cache.
            (RelocationFrontier::Shared, CACHE) if self.slc_pages.is_some() => 0,
            (RelocationFrontier::Shared, stream) => stream,
        }
    }

    /// Whether `block` is, or was last, one of an SLC cache.
    #[inline]
    pub(crate) fn is_cache(&self, block: BlockIdx) -> bool {
        self.slc_pages.is_some() && self.role_of(block) == CACHE
    }

    /// Whether `plane` has a block of an SLC cache open with a page left.
    pub(crate) fn has_open_cache(&self, plane: PlaneIdx) -> bool {
        let open = &self.open[plane.0 as usize * self.streams + usize::from(CACHE)];
        open.next != open.end
    }

    /// How many pages the block of this one of all open ones holds, where that is fewer than others do.
    pub(super) fn pages_of(&self, index: usize) -> Option<u32> {
        self.slc_pages.filter(|_| index % self.streams == usize::from(CACHE))
    }

    /// Which of a plane's open blocks takes host pages now.
    #[inline]
    pub(crate) fn served(&self) -> u8 {
        self.kinds[Stream::Host as usize]
    }

    /// Pages left in the open blocks of all planes, of those that take data, one after the other.
    pub(crate) fn open_pages(&self) -> &[u32] {
        &self.open_pages[..usize::from(self.hosts + self.relocation.open_blocks(self.hosts))]
    }

    /// How many pages the flash page has left that has begun on `plane` for a stream of the host.
    #[inline]
    pub(crate) fn left_to_gather(&self, plane: PlaneIdx, stream: u8) -> u32 {
        let next = self.open[plane.0 as usize * self.streams + usize::from(stream)].next;
        match self.geometry.begun_in_flash_page(Ppn(next)) {
            0 => 0,
            begun => self.geometry.units() - begun,
        }
    }

    /// The fewest pages that take data in any block.
    pub(crate) fn least_usable(&self) -> u32 {
        self.least_usable
    }
}
