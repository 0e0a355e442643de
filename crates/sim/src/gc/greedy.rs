//! Greedy: the victim is the block with the fewest valid pages.
//!
//! **Source**: Desnoyers (2012); OFC (2011) §IV.D as the limit of the greedy window.
//! **Faithful**: the minimum over all closed blocks of the die.
//! **Simplified**: one pool a die.
//! **Ambiguous**: which of several minima: here the first in the order of the blocks.

use uflip_core::Result;

use super::min_tree::MinTree;
use super::{PolicyOptions, VictimPolicy};
use crate::blocks::Blocks;
use crate::geometry::{BlockIdx, DieIdx, Geometry};

/// One tree of valid counts a die; blocks that are not closed are absent.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Greedy {
    geometry: Geometry,
    pools: Vec<MinTree>,
}

impl VictimPolicy for Greedy {
    fn new(options: &PolicyOptions) -> Result<Greedy> {
        options.no_parameter("greedy")?;
        let shape = options.geometry.shape();
        let pool = MinTree::new(shape.blocks_per_die as usize);
        Ok(Greedy { geometry: options.geometry, pools: vec![pool; shape.dies as usize] })
    }

    #[inline]
    fn closed(&mut self, die: DieIdx, block: BlockIdx, valid: u16) {
        self.pools[die.0 as usize].lower(self.geometry.block_in_die(block), valid);
    }

    #[inline]
    fn invalidated(&mut self, die: DieIdx, block: BlockIdx, valid: u16) {
        self.pools[die.0 as usize].lower(self.geometry.block_in_die(block), valid);
    }

    fn choose(&mut self, die: DieIdx, _: &Blocks) -> Option<BlockIdx> {
        let pool = &mut self.pools[die.0 as usize];
        let index = pool.smallest()?;
        pool.remove(index);
        Some(BlockIdx(die.0 * self.geometry.shape().blocks_per_die + index as u32))
    }

    fn remove(&mut self, die: DieIdx, block: BlockIdx) {
        self.pools[die.0 as usize].remove(self.geometry.block_in_die(block));
    }
}
