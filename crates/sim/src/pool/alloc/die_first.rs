//! Round robin over the dies of one channel, then those of the next: what OFC's order avoids.
//!
//! **Source**: the opposite of OFC (2011) §IV.C, for comparison.
//! **Faithful**: all dies of a channel take a page before the next channel does.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use super::WriteAllocator;
use crate::flash::geometry::{DieIdx, Geometry, Lpn};
use crate::pool::blocks::Blocks;

/// Whose turn it is.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct DieFirst {
    channels: u32,
    dies: u32,
    next: u32,
}

impl WriteAllocator for DieFirst {
    fn new(geometry: &Geometry) -> DieFirst {
        let shape = geometry.shape();
        DieFirst { channels: shape.channels, dies: shape.dies, next: 0 }
    }

    #[inline]
    fn choose(&mut self, _: &Blocks, _: Option<Lpn>) -> DieIdx {
        let die = DieIdx(self.next);
        // The next die of the same channel is `channels` further on; behind the last one comes the
        // first die of the next channel.
        self.next += self.channels;
        if self.next >= self.dies {
            self.next = (self.next % self.channels + 1) % self.channels;
        }
        die
    }
}
