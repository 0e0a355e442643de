//! The plane with the most free blocks: balances planes of which some collect more than others.
//!
//! **Source**: OFC (2011) §IV.C says that round robin must be relaxed when planes differ in usable
//! blocks; this is one way.
//! **Faithful**: nothing is claimed.
//! **Simplified**: one scan over the planes per block; between two blocks it stays round robin.
//! **Ambiguous**: which of several: the next one, round-robin.

use super::WriteAllocator;
use crate::flash::geometry::{Geometry, Lpn, PlaneIdx};
use crate::pool::blocks::{Blocks, PageStream};

/// The next plane among equals.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct MostFree {
    planes: u32,
    next: u32,
}

impl WriteAllocator for MostFree {
    fn new(geometry: &Geometry) -> MostFree {
        MostFree { planes: geometry.shape().planes, next: 0 }
    }

    #[inline]
    fn choose(&mut self, blocks: &Blocks, _: Option<Lpn>) -> PlaneIdx {
        let mut plane = PlaneIdx(self.next);
        if !blocks.has_open_page(plane, PageStream::Host) {
            let candidate = |other: u32| PlaneIdx((self.next + other) % self.planes);
            // The first of several maxima, hence the reversed order.
            let emptiest =
                (0..self.planes).rev().max_by_key(|other| blocks.free_in(candidate(*other)));
            plane = candidate(emptiest.unwrap_or(0));
        }
        self.next = if plane.0 + 1 == self.planes { 0 } else { plane.0 + 1 };
        plane
    }
}
