//! Which blocks a plan is about: two that have none in common may be carried out at once.

use super::geometry::BlockIdx;
use super::plan::{Cmd, Plan};

impl Plan {
    /// It is what was done of `asked`, for whose blocks others stand in.
    pub(crate) fn stands_for(&mut self, asked: &Plan) {
        asked.blocks(|block| self.asked.push(block));
    }

    /// The blocks of all that it reads, programs and erases, one by one; as its FTL knows them, too, where what is on
    /// flash is kept by these.
    pub(crate) fn blocks(&self, mut each: impl FnMut(BlockIdx)) {
        self.asked.iter().for_each(|block| each(*block));
        for command in self.commands() {
            match *command {
                Cmd::Read(at)
                | Cmd::LoadMap(at)
                | Cmd::ProgramMap(at)
                | Cmd::FailedRead(at)
                | Cmd::FailedProgram(at) => each(at.block),
                Cmd::Program { to, rest } => {
                    each(to.block);
                    rest.into_iter().for_each(|rest| each(rest.block));
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
