//! Cost-benefit: the victim has the largest age × (1 − u) / 2u, u being its share of valid pages.
//!
//! **Source**: Rosenblum & Ousterhout (1992), as Kawaguchi et al. (1995) use it for flash: a block of
//! utilisation u costs one read and one write of u, and gains 1 − u.
//! **Faithful**: the formula, compared in whole numbers, so that no rounding decides.
//! **Simplified**: age is the number of blocks filled since, not a time, which a policy cannot see.
//! **Ambiguous**: the age of a block: here since it was filled, not since its last invalidation.

use uflip_core::Result;

use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::Blocks;

/// The closed blocks of each plane, in the order in which they were filled.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct CostBenefit {
    pages: u64,
    pools: Vec<Vec<BlockIdx>>,
}

impl VictimPolicy for CostBenefit {
    fn new(options: &PolicyOptions) -> Result<CostBenefit> {
        options.no_parameter("cost_benefit")?;
        let pools = vec![Vec::new(); options.geometry.shape().planes as usize];
        Ok(CostBenefit { pages: u64::from(options.geometry.data_pages()), pools })
    }

    #[inline]
    fn closed(&mut self, plane: PlaneIdx, block: BlockIdx, _: u16) {
        self.pools[plane.0 as usize].push(block);
    }

    fn choose(&mut self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx> {
        let pool = &mut self.pools[plane.0 as usize];
        // a/b > c/d as a·d > c·b; a block without valid pages has b = 0 and beats all others.
        let terms = |block: BlockIdx| {
            let valid = u64::from(blocks.valid_count(block));
            let gain = u128::from((blocks.age(block) + 1) * (self.pages - valid));
            (gain, u128::from(2 * valid))
        };
        let mut best: Option<(usize, (u128, u128))> = None;
        for (at, block) in pool.iter().enumerate() {
            let (gain, cost) = terms(*block);
            if best.is_none_or(|(_, (best_gain, best_cost))| gain * best_cost > best_gain * cost) {
                best = Some((at, (gain, cost)));
            }
        }
        best.map(|(at, _)| pool.remove(at))
    }

    fn remove(&mut self, plane: PlaneIdx, block: BlockIdx, _: &Blocks) {
        self.pools[plane.0 as usize].retain(|other| *other != block);
    }
}
