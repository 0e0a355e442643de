//! Each logical page has its die: neighbours go to channel after channel, then to the next die of each.
//!
//! **Source**: static allocation, the order CWDP of MQSim (Tavakkol et al., FAST 2018) and of Jung & Kandemir
//! (HotStorage 2012).
//! **Faithful**: the die follows from the address alone, whatever the dies are doing; relocated pages stay there.
//! **Simplified**: where its die has no room and nothing to gain, a page goes to another one, as it does from
//! every allocator.
//! **Ambiguous**: what is no page of the host (a part of the map) takes turns.

use super::WriteAllocator;
use crate::flash::geometry::{DieIdx, Geometry, Lpn};
use crate::pool::blocks::Blocks;

/// The dies, and whose turn it is for what has no address.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Fixed {
    dies: u32,
    next: u32,
}

impl WriteAllocator for Fixed {
    fn new(geometry: &Geometry) -> Fixed {
        Fixed { dies: geometry.shape().dies, next: 0 }
    }

    #[inline]
    fn choose(&mut self, _: &Blocks, page: Option<Lpn>) -> DieIdx {
        if let Some(page) = page {
            return DieIdx(page.0 % self.dies);
        }
        let die = DieIdx(self.next);
        self.next = (self.next + 1) % self.dies;
        die
    }
}
