//! Round robin over channels, then dies.
//!
//! **Source**: OFC (2011) §IV.C, the write page allocator.
//! **Faithful**: one open block a die; host and relocated pages take turns over the dies alike.
//! **Simplified**: nothing.
//! **Ambiguous**: what happens when a die has no page left: here its turn is skipped.

use super::Allocator;
use crate::blocks::Blocks;
use crate::geometry::{DieIdx, Geometry};

/// Whose turn it is.
#[derive(Clone, Debug)]
pub(crate) struct RoundRobin {
    dies: u32,
    next: u32,
}

impl RoundRobin {
    pub(crate) fn new(geometry: Geometry) -> RoundRobin {
        RoundRobin {
            dies: geometry.dies,
            next: 0,
        }
    }
}

impl Allocator for RoundRobin {
    #[inline]
    fn next(&self) -> DieIdx {
        DieIdx(self.next)
    }

    #[inline]
    fn choose(&mut self, blocks: &Blocks) -> Option<DieIdx> {
        for _ in 0..self.dies {
            let die = DieIdx(self.next);
            self.next = if self.next + 1 == self.dies {
                0
            } else {
                self.next + 1
            };
            if blocks.has_page(die) {
                return Some(die);
            }
        }
        None
    }

    fn boxed_clone(&self) -> Box<dyn Allocator> {
        Box::new(self.clone())
    }
}
