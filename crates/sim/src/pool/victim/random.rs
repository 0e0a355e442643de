//! Random: any closed block, each equally likely.
//!
//! **Source**: the limit d = 1 of Van Houdt, SIGMETRICS 2013.
//! **Faithful**: one uniform draw.
//! **Simplified**: one pool a die.
//! **Ambiguous**: nothing.

use uflip_core::Result;

use super::d_choices::DChoices;
use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, DieIdx};
use crate::pool::blocks::Blocks;

/// d choices with one choice.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Random(DChoices);

impl VictimPolicy for Random {
    fn new(options: &PolicyOptions) -> Result<Random> {
        options.no_parameter("random")?;
        Ok(Random(DChoices::with_choices(1, options)))
    }

    #[inline]
    fn closed(&mut self, die: DieIdx, block: BlockIdx, valid: u16) {
        self.0.closed(die, block, valid);
    }

    fn choose(&mut self, die: DieIdx, blocks: &Blocks) -> Option<BlockIdx> {
        self.0.choose(die, blocks)
    }

    fn remove(&mut self, die: DieIdx, block: BlockIdx, blocks: &Blocks) {
        self.0.remove(die, block, blocks);
    }
}
