//! The cyclic buffer: the victim is the block that was filled longest ago.
//!
//! **Source**: OFC (2011) §IV.C–D; Menon & Stockmeyer (1998); FIFO in the write-amplification theory.
//! **Faithful**: blocks form a ring in the order of being filled; no further wear levelling needed.
//! **Simplified**: one ring a plane; as every plane is filled at the same rate, the rings together are
//! the ring of the whole device.
//! **Ambiguous**: nothing.

use std::collections::VecDeque;

use uflip_core::Result;

use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::Blocks;

/// One ring a plane.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Cyclic {
    rings: Vec<VecDeque<BlockIdx>>,
}

impl VictimPolicy for Cyclic {
    fn new(options: &PolicyOptions) -> Result<Cyclic> {
        options.no_parameter("cyclic")?;
        Ok(Cyclic { rings: vec![VecDeque::new(); options.geometry.shape().planes as usize] })
    }

    #[inline]
    fn closed(&mut self, plane: PlaneIdx, block: BlockIdx, _: u16) {
        self.rings[plane.0 as usize].push_back(block);
    }

    fn choose(&mut self, plane: PlaneIdx, _: &Blocks) -> Option<BlockIdx> {
        self.rings[plane.0 as usize].pop_front()
    }

    fn remove(&mut self, plane: PlaneIdx, block: BlockIdx, _: &Blocks) {
        self.rings[plane.0 as usize].retain(|other| *other != block);
    }
}
