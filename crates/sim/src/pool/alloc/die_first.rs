//! Round robin over the planes of one channel, then those of the next: the order that OFC avoids.
//!
//! **Source**: the opposite of OFC (2011) §IV.C, for comparison.
//! **Faithful**: all planes of a channel take a page before the next channel does.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use super::WriteAllocator;
use crate::flash::geometry::{Geometry, Lpn, PlaneIdx};
use crate::pool::blocks::Blocks;

/// The next plane.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct DieFirst {
    channels: u32,
    planes: u32,
    next: u32,
}

impl WriteAllocator for DieFirst {
    fn new(geometry: &Geometry) -> DieFirst {
        let shape = geometry.shape();
        DieFirst { channels: shape.channels, planes: shape.planes, next: 0 }
    }

    #[inline]
    fn choose(&mut self, _: &Blocks, _: Option<Lpn>) -> PlaneIdx {
        let plane = PlaneIdx(self.next);
        // The next plane of the same channel is `channels` further on; after the last one comes the first
        // plane of the next channel.
        self.next += self.channels;
        if self.next >= self.planes {
            self.next = (self.next % self.channels + 1) % self.channels;
        }
        plane
    }
}
