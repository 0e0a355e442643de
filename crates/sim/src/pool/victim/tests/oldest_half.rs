//! Oldest half: of the older half of all filled blocks, the one with the fewest valid pages.
//!
//! **Source**: none; an example of how a victim policy is added.
//! **Faithful**: nothing is claimed.
//! **Simplified**: all candidates are examined, which takes longer the more blocks a plane has.
//! **Ambiguous**: half of an odd number: rounded up, so that a single block is a candidate. Which of
//! several minima: the oldest.

use std::collections::VecDeque;

use uflip_core::Result;

use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::Blocks;

/// The filled blocks of each plane, oldest first.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct OldestHalf {
    pools: Vec<VecDeque<BlockIdx>>,
}

impl VictimPolicy for OldestHalf {
    fn new(options: &PolicyOptions) -> Result<OldestHalf> {
        options.no_parameter("oldest_half")?;
        Ok(OldestHalf { pools: vec![VecDeque::new(); options.geometry.shape().planes as usize] })
    }

    #[inline]
    fn closed(&mut self, plane: PlaneIdx, block: BlockIdx, _: u16) {
        self.pools[plane.0 as usize].push_back(block);
    }

    fn choose(&mut self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx> {
        let pool = &mut self.pools[plane.0 as usize];
        let older = pool.iter().take(pool.len().div_ceil(2)).enumerate();
        let (at, _) = older.min_by_key(|(_, block)| blocks.valid_count(**block))?;
        pool.remove(at)
    }

    fn remove(&mut self, plane: PlaneIdx, block: BlockIdx, _: &Blocks) {
        self.pools[plane.0 as usize].retain(|other| *other != block);
    }
}
