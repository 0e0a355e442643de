//! The blocks that a plan concerns: two plans without a common block may be executed in parallel.

use super::geometry::BlockIdx;
use super::plan::{Cmd, FlashPlan};

impl FlashPlan {
    /// Record the blocks of the plan `requested`, which this plan executes with replaced blocks.
    pub(crate) fn record_requested(&mut self, requested: &FlashPlan) {
        requested.blocks(|block| self.requested.push(block));
    }

    /// Call `each` for all blocks that the plan reads, programs or erases; also with the FTL's block numbers,
    /// if the content of the flash is tracked by those.
    pub(crate) fn blocks(&self, mut each: impl FnMut(BlockIdx)) {
        self.requested.iter().for_each(|block| each(*block));
        for command in self.commands() {
            match *command {
                Cmd::Read(at)
                | Cmd::LoadMap(at)
                | Cmd::ProgramMap(at)
                | Cmd::FailedRead(at)
                | Cmd::FailedProgram(at) => each(at.block),
                Cmd::Program { to, merge_from } => {
                    each(to.block);
                    merge_from.into_iter().for_each(|merge_from| each(merge_from.block));
                }
                Cmd::Copy { from, to } | Cmd::CopySet { from, to, .. } => {
                    each(from.block);
                    each(to.block);
                }
                Cmd::CopyRow(row) => {
                    for (from, to) in self.row(row).moves() {
                        each(from.block);
                        each(to.block);
                    }
                }
                Cmd::CopyStream(pages) | Cmd::StoreMap(pages) => {
                    for moved in self.moves(pages) {
                        each(moved.to.block);
                        moved.from.into_iter().for_each(|from| each(from.block));
                    }
                }
                Cmd::Erase { block, .. } => each(block),
                Cmd::Count(_) | Cmd::Barrier | Cmd::List(_) | Cmd::Settle => {}
            }
        }
    }
}
