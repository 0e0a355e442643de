//! The die with the most free blocks: evens out dies of which some collect more than others.
//!
//! **Source**: OFC (2011) §IV.C says that round robin must be relaxed when dies differ in usable
//! blocks; this is one way.
//! **Faithful**: nothing is claimed.
//! **Simplified**: a scan over the dies for every block; between two blocks it stays in turn.
//! **Ambiguous**: which of several: the one whose turn comes first.

use super::WriteAllocator;
use crate::flash::geometry::{DieIdx, Geometry, Lpn};
use crate::pool::blocks::{Blocks, Stream};

/// Whose turn it is among equals.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct MostFree {
    dies: u32,
    next: u32,
}

impl WriteAllocator for MostFree {
    fn new(geometry: &Geometry) -> MostFree {
        MostFree { dies: geometry.shape().dies, next: 0 }
    }

    #[inline]
    fn choose(&mut self, blocks: &Blocks, _: Option<Lpn>) -> DieIdx {
        let mut die = DieIdx(self.next);
        if !blocks.has_open_page(die, Stream::Host) {
            let turn = |other: u32| DieIdx((self.next + other) % self.dies);
            // The first of several maxima, hence the reversed order.
            let most = (0..self.dies).rev().max_by_key(|other| blocks.free_in(turn(*other)));
            die = turn(most.unwrap_or(0));
        }
        self.next = if die.0 + 1 == self.dies { 0 } else { die.0 + 1 };
        die
    }
}
