//! Greedy window: of the w blocks filled longest ago, the one with the fewest valid pages.
//!
//! **Source**: OFC (2011) §IV.D; Hu et al., SYSTOR 2009.
//! **Faithful**: the blocks that are not chosen keep their position in the order of being filled.
//! **Simplified**: one window a plane.
//! **Ambiguous**: which of several minima: here the oldest.

use std::collections::VecDeque;

use uflip_core::Result;

use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::Blocks;

/// The default window in blocks: OFC does not give a number; wide enough to differ from the cyclic buffer.
const WINDOW: u32 = 16;

/// Blocks of each plane in the order in which they were filled.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct GreedyWindow {
    window: usize,
    rings: Vec<VecDeque<BlockIdx>>,
}

impl VictimPolicy for GreedyWindow {
    fn new(options: &PolicyOptions) -> Result<GreedyWindow> {
        let max = options.geometry.shape().blocks_per_plane;
        let window = options.parameter_of("greedy_window", "window", WINDOW.min(max))?;
        let rings = vec![VecDeque::new(); options.geometry.shape().planes as usize];
        Ok(GreedyWindow { window: window as usize, rings })
    }

    #[inline]
    fn closed(&mut self, plane: PlaneIdx, block: BlockIdx, _: u16) {
        self.rings[plane.0 as usize].push_back(block);
    }

    fn choose(&mut self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx> {
        let ring = &mut self.rings[plane.0 as usize];
        let oldest = ring.iter().take(self.window).enumerate();
        let (at, _) = oldest.min_by_key(|(_, block)| blocks.valid_count(**block))?;
        ring.remove(at)
    }

    fn remove(&mut self, plane: PlaneIdx, block: BlockIdx, _: &Blocks) {
        self.rings[plane.0 as usize].retain(|other| *other != block);
    }
}
