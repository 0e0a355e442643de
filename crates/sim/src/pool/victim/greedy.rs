//! Greedy: the victim is the block with the fewest valid pages.
//!
//! **Source**: Desnoyers (2012); OFC (2011) §IV.D as the limit of the greedy window.
//! **Faithful**: the minimum over all closed blocks of the plane.
//! **Simplified**: one pool a plane.
//! **Ambiguous**: which of several minima: here the first in the order of the blocks.

use uflip_core::Result;

use super::min_tree::MinTrees;
use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, Geometry, PlaneIdx};
use crate::pool::blocks::Blocks;

/// Minima over the valid counts of each plane; blocks that are not closed are absent.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Greedy {
    geometry: Geometry,
    pools: MinTrees,
}

impl VictimPolicy for Greedy {
    fn new(options: &PolicyOptions) -> Result<Greedy> {
        options.no_parameter("greedy")?;
        let shape = options.geometry.shape();
        let pools = MinTrees::new(shape.planes as usize, shape.blocks_per_plane as usize);
        Ok(Greedy { geometry: options.geometry, pools })
    }

    #[inline]
    fn closed(&mut self, plane: PlaneIdx, block: BlockIdx, valid: u16) {
        self.pools.lower(plane.0 as usize, self.index(plane, block), valid);
    }

    #[inline]
    fn invalidated(&mut self, plane: PlaneIdx, block: BlockIdx, valid: u16) {
        self.pools.lower(plane.0 as usize, self.index(plane, block), valid);
    }

    fn choose(&mut self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx> {
        let counts = blocks.closed_counts(plane);
        let index = self.pools.smallest(plane.0 as usize, counts)?;
        self.pools.remove(plane.0 as usize, index, counts);
        Some(BlockIdx(plane.0 * self.geometry.shape().blocks_per_plane + index as u32))
    }

    fn remove(&mut self, plane: PlaneIdx, block: BlockIdx, blocks: &Blocks) {
        self.pools.remove(plane.0 as usize, self.index(plane, block), blocks.closed_counts(plane));
    }
}

impl Greedy {
    /// Return the index of `block` within `plane`.
    #[inline]
    fn index(&self, plane: PlaneIdx, block: BlockIdx) -> usize {
        (block.0 - plane.0 * self.geometry.shape().blocks_per_plane) as usize
    }
}
