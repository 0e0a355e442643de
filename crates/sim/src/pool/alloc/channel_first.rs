//! Round robin over channels, then dies.
//!
//! **Source**: OFC (2011) §IV.C, the write page allocator.
//! **Faithful**: a page of one die of every channel, then a page of the next die of every channel.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use super::WriteAllocator;
use crate::flash::geometry::{DieIdx, Geometry, Lpn};
use crate::pool::blocks::Blocks;

/// Whose turn it is; dies are numbered channels first.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ChannelFirst {
    dies: u32,
    next: u32,
}

impl WriteAllocator for ChannelFirst {
    fn new(geometry: &Geometry) -> ChannelFirst {
        ChannelFirst { dies: geometry.shape().dies, next: 0 }
    }

    #[inline]
    fn choose(&mut self, _: &Blocks, _: Option<Lpn>) -> DieIdx {
        let die = DieIdx(self.next);
        self.next = if self.next + 1 == self.dies { 0 } else { self.next + 1 };
        die
    }
}
