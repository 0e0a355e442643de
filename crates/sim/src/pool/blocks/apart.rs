//! Several streams of the host, each of which fills blocks of its own.
//!
//! ```text
//! host stream   0        1        2         relocated pages                          mapping pages
//! open block   [ ▓▓░ ]  [ ▓░░ ]  [ ▓▓▓ ]    of the stream that they came from,      [ ▓░░ ]
//!                                           or [ ▓░░ ] one for those of all
//! ```
//!
//! The books serve one stream of the host, and one of relocated pages, at a time: whoever takes a page says
//! before whose it is. So nothing is asked where there is only one.

use super::{Blocks, Stream};
use crate::flash::geometry::{BlockIdx, DieIdx};

/// More than drives with streams or placement handles offer.
pub(crate) const WRITE_STREAMS_MAX: u32 = 16;

/// Open blocks of a die: those of the host's streams, of relocated and of mapping pages.
pub(super) const KINDS_MAX: usize = WRITE_STREAMS_MAX as usize + 2;

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
        if !self.separate {
            self.kinds[Stream::Relocated as usize] = self.stream_of(block);
        }
    }

    /// Which of a die's open blocks `block` was when it was opened last: the stream whose pages it holds, and
    /// beyond those of the host that of relocated pages.
    #[inline]
    pub(crate) fn stream_of(&self, block: BlockIdx) -> u8 {
        self.stream_of.get(block.0 as usize).copied().unwrap_or(0)
    }

    /// Which of a die's open blocks takes the pages that are moved away from `block`.
    #[inline]
    pub(crate) fn goes_with(&self, block: BlockIdx) -> u8 {
        if self.separate { self.hosts } else { self.stream_of(block) }
    }

    /// Which of a die's open blocks takes host pages now.
    #[inline]
    pub(crate) fn served(&self) -> u8 {
        self.kinds[Stream::Host as usize]
    }

    /// Pages left in the open blocks of all dies, of those that take data, one after the other.
    pub(crate) fn open_pages(&self) -> &[u32] {
        &self.open_pages[..usize::from(self.hosts) + usize::from(self.separate)]
    }

    /// How many pages the flash page has left that has begun on `die` for a stream of the host.
    pub(crate) fn left_to_gather(&self, die: DieIdx, stream: u8) -> u32 {
        let next = self.open[die.0 as usize * self.streams + usize::from(stream)].next;
        next.next_multiple_of(self.geometry.units()) - next
    }

    /// The fewest pages that take data in any block.
    pub(crate) fn least_usable(&self) -> u32 {
        self.least_usable
    }
}
