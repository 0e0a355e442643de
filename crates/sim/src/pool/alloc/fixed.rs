//! Each logical page has its plane: neighbours go to channel after channel, then to the next plane of each.
//!
//! **Source**: static allocation, the order CWDP of MQSim (Tavakkol et al., FAST 2018) and of Jung & Kandemir
//! (HotStorage 2012).
//! **Faithful**: the plane follows from the address alone, whatever the planes are doing; relocated pages stay there.
//! **Simplified**: where its plane has no room and nothing to gain, a page goes to another one, as it does from
//! every allocator.
//! **Ambiguous**: what is no page of the host (a part of the map) takes turns.

use super::WriteAllocator;
use crate::flash::geometry::{Geometry, Lpn, PlaneIdx};
use crate::pool::blocks::Blocks;

/// The planes, and whose turn it is for what has no address.
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
