//! d choices: of d blocks drawn at random, the one with the fewest valid pages.
//!
//! **Source**: Van Houdt, SIGMETRICS 2013; Li, Lee & Lui, SIGMETRICS 2013 (randomised greedy).
//! **Faithful**: d uniform draws with replacement.
//! **Simplified**: one pool a plane.
//! **Ambiguous**: which of several minima: here the one drawn first.

use uflip_core::Result;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::Blocks;

/// Already within 2–3 % of greedy (Van Houdt 2013).
const CHOICES: u32 = 10;

/// The closed blocks of each plane in no particular order, and the random generator.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct DChoices {
    choices: u32,
    pools: Vec<Vec<BlockIdx>>,
    rng: Xoshiro256PlusPlus,
}

impl VictimPolicy for DChoices {
    fn new(options: &PolicyOptions) -> Result<DChoices> {
        let max = options.geometry.shape().blocks_per_plane;
        let choices = options.parameter_of("d_choices", "number of draws", CHOICES.min(max))?;
        Ok(DChoices::with_choices(choices, options))
    }

    #[inline]
    fn closed(&mut self, plane: PlaneIdx, block: BlockIdx, _: u16) {
        self.pools[plane.0 as usize].push(block);
    }

    fn choose(&mut self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx> {
        let pool = &mut self.pools[plane.0 as usize];
        let length = pool.len() as u64;
        if length == 0 {
            return None;
        }
        let mut best = uniform(&mut self.rng, length) as usize;
        for _ in 1..self.choices {
            let other = uniform(&mut self.rng, length) as usize;
            if blocks.valid_count(pool[other]) < blocks.valid_count(pool[best]) {
                best = other;
            }
        }
        Some(pool.swap_remove(best))
    }

    fn remove(&mut self, plane: PlaneIdx, block: BlockIdx, _: &Blocks) {
        self.pools[plane.0 as usize].retain(|other| *other != block);
    }
}

impl DChoices {
    /// Create the policy with this number of draws, which may exceed the number of blocks.
    pub(super) fn with_choices(choices: u32, options: &PolicyOptions) -> DChoices {
        let pools = vec![Vec::new(); options.geometry.shape().planes as usize];
        DChoices { choices, pools, rng: Xoshiro256PlusPlus::seed_from_u64(options.seed) }
    }
}
