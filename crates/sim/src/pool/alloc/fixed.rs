//! Static allocation: the logical address selects the plane. Neighbours go to channel after channel, then to
//! the next plane of each.
//!
//! **Source**: static allocation, the order CWDP of MQSim (Tavakkol et al., FAST 2018) and of Jung & Kandemir
//! (HotStorage 2012).
//! **Faithful**: the plane follows from the address alone, whatever the planes are doing; relocated pages
//! stay there.
//! **Simplified**: where its plane has no free page and nothing to reclaim, a page goes to another plane, as
//! with every allocator.
//! **Ambiguous**: pages that are not the host's (parts of the map) are placed round robin.

use super::WriteAllocator;
use crate::flash::geometry::{Geometry, Lpn, PlaneIdx};
use crate::pool::blocks::Blocks;

/// The planes, and the next plane for pages without a logical address.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Fixed {
    planes: u32,
    next: u32,
}

impl WriteAllocator for Fixed {
    fn new(geometry: &Geometry) -> Fixed {
        Fixed { planes: geometry.shape().planes, next: 0 }
    }

    #[inline]
    fn choose(&mut self, _: &Blocks, page: Option<Lpn>) -> PlaneIdx {
        if let Some(page) = page {
            return PlaneIdx(page.0 % self.planes);
        }
        let plane = PlaneIdx(self.next);
        self.next = (self.next + 1) % self.planes;
        plane
    }
}
