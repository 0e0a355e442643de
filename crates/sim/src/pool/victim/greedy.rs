//! Greedy: the victim is the block with the fewest valid pages.
//!
//! **Source**: Desnoyers (2012); OFC (2011) §IV.D as the limit of the greedy window.
//! **Faithful**: the minimum over all closed blocks of the die.
//! **Simplified**: one pool a die.
//! **Ambiguous**: which of several minima: here the first in the order of the blocks.

use uflip_core::Result;

use super::min_tree::MinTrees;
use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, DieIdx, Geometry};
use crate::pool::blocks::Blocks;

/// Minima over the valid counts of each die; blocks that are not closed are absent.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Greedy {
    geometry: Geometry,
    pools: MinTrees,
}

impl VictimPolicy for Greedy {
    fn new(options: &PolicyOptions) -> Result<Greedy> {
        options.no_parameter("greedy")?;
        let shape = options.geometry.shape();
        let pools = MinTrees::new(shape.dies as usize, shape.blocks_per_die as usize);
        Ok(Greedy { geometry: options.geometry, pools })
    }

    #[inline]
    fn closed(&mut self, die: DieIdx, block: BlockIdx, valid: u16) {
        self.pools.lower(die.0 as usize, self.index(die, block), valid);
    }

    #[inline]
    fn invalidated(&mut self, die: DieIdx, block: BlockIdx, valid: u16) {
        self.pools.lower(die.0 as usize, self.index(die, block), valid);
    }

    fn choose(&mut self, die: DieIdx, blocks: &Blocks) -> Option<BlockIdx> {
        let counts = blocks.closed_counts(die);
        let index = self.pools.smallest(die.0 as usize, counts)?;
        self.pools.remove(die.0 as usize, index, counts);
        Some(BlockIdx(die.0 * self.geometry.shape().blocks_per_die + index as u32))
    }

    fn remove(&mut self, die: DieIdx, block: BlockIdx, blocks: &Blocks) {
        self.pools.remove(die.0 as usize, self.index(die, block), blocks.closed_counts(die));
    }
}

impl Greedy {
    /// The number of `block` within `die`.
    #[inline]
    fn index(&self, die: DieIdx, block: BlockIdx) -> usize {
        (block.0 - die.0 * self.geometry.shape().blocks_per_die) as usize
    }
}
