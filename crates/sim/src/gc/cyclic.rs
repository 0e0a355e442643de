//! The cyclic buffer: the victim is the block that was filled longest ago.
//!
//! **Source**: OFC (2011) §IV.C; Menon & Stockmeyer (1998); FIFO in the write-amplification theory.
//! **Faithful**: blocks form a ring in the order of being filled; no further wear levelling needed.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use std::collections::VecDeque;

use super::VictimPolicy;
use crate::blocks::Blocks;
use crate::geometry::BlockIdx;

/// The ring.
#[derive(Clone, Default, Debug)]
pub(crate) struct Cyclic {
    ring: VecDeque<BlockIdx>,
}

impl VictimPolicy for Cyclic {
    fn closed(&mut self, block: BlockIdx) {
        self.ring.push_back(block);
    }

    fn choose(&mut self, _: &Blocks) -> Option<BlockIdx> {
        self.ring.pop_front()
    }

    fn boxed_clone(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}
