//! Random: any closed block, each equally likely.
//!
//! **Source**: the limit d = 1 of Van Houdt, SIGMETRICS 2013.
//! **Faithful**: one uniform draw.
//! **Simplified**: one pool a plane.
//! **Ambiguous**: nothing.

use uflip_core::Result;

use super::d_choices::DChoices;
use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
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
    fn closed(&mut self, plane: PlaneIdx, block: BlockIdx, valid: u16) {
        self.0.closed(plane, block, valid);
    }

    fn choose(&mut self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx> {
        self.0.choose(plane, blocks)
    }

    fn remove(&mut self, plane: PlaneIdx, block: BlockIdx, blocks: &Blocks) {
        self.0.remove(plane, block, blocks);
    }
}
