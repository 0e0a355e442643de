//! Round robin over channels, then planes.
//!
//! **Source**: OFC (2011) §IV.C, the write page allocator.
//! **Faithful**: a page of one plane of every channel, then a page of the next plane of every channel.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use super::WriteAllocator;
use crate::flash::geometry::{Geometry, Lpn, PlaneIdx};
use crate::pool::blocks::Blocks;

/// The next plane; planes are numbered channels first.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ChannelFirst {
    planes: u32,
    next: u32,
}

impl WriteAllocator for ChannelFirst {
    fn new(geometry: &Geometry) -> ChannelFirst {
        ChannelFirst { planes: geometry.shape().planes, next: 0 }
    }

    #[inline]
    fn choose(&mut self, _: &Blocks, _: Option<Lpn>) -> PlaneIdx {
        let plane = PlaneIdx(self.next);
        self.next = if self.next + 1 == self.planes { 0 } else { self.next + 1 };
        plane
    }
}
