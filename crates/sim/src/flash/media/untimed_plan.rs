//! Execution of the plans of merging FTLs in the untimed mode.

use super::{CollectMedia as _, Flash, Media as _};
use crate::flash::geometry::PageAddress;
use crate::flash::plan::{Cmd, Counted, FlashPlan, Merge, Move};

impl Flash {
    /// Execute `plan` in order. If blocks or pages can be replaced, `plan` then contains the executed
    /// operations instead: physical addresses and failures.
    #[inline]
    pub(crate) fn execute(&mut self, plan: &mut FlashPlan) {
        if self.replacements.is_some() {
            return self.execute_replaced(plan);
        }
        for command in plan.commands() {
            self.execute_command(command, plan);
        }
    }

    #[inline]
    fn execute_command(&mut self, command: &Cmd, plan: &FlashPlan) {
        match *command {
            Cmd::Read(from) => self.read(from),
            Cmd::Program { to, merge_from } => {
                self.program(to, merge_from);
            }
            Cmd::Copy { from, to } => {
                self.relocate(from, to);
            }
            Cmd::CopySet { from, to, set } => self.copy_set(from, to, plan.words(set)),
            Cmd::CopyRow(row) => {
                for (from, to) in plan.row(row).moves() {
                    self.relocate(from, to);
                }
            }
            Cmd::CopyStream(pages) => {
                for Move { from, to } in plan.moves(pages) {
                    self.relocate(from.expect("a moved page has a source"), *to);
                }
            }
            Cmd::Erase { block, .. } => {
                self.erase(block);
            }
            Cmd::ProgramMap(to) => {
                self.program_metadata(to);
            }
            Cmd::LoadMap(from) => self.read_mapping(from),
            Cmd::StoreMap(pages) => {
                for Move { from, to } in plan.moves(pages) {
                    self.program_mapping(*to, *from);
                }
            }
            Cmd::Count(counted) => self.count(counted),
            Cmd::FailedRead(_) | Cmd::FailedProgram(_) | Cmd::List(_) | Cmd::Settle => {
                unreachable!("an FTL does not plan this command")
            }
            Cmd::Barrier => {}
        }
    }

    fn copy_set(&mut self, from: PageAddress, to: PageAddress, set: &[u64]) {
        for (at, word) in (0..).step_by(64).zip(set) {
            self.nand.copy_word(from.plus_pages(at), to.plus_pages(at), *word);
            let copied = u64::from(word.count_ones());
            self.counters.pages_read += copied;
            self.counters.pages_programmed += copied;
            self.counters.pages_relocated += copied;
        }
    }

    pub(super) fn count(&mut self, counted: Counted) {
        match counted {
            Counted::Reclaim => self.counters.blocks_collected += 1,
            Counted::Merge(Merge::Switch) => self.counters.switch_merges += 1,
            Counted::Merge(Merge::Partial) => self.counters.partial_merges += 1,
            Counted::Merge(Merge::Full) => self.counters.full_merges += 1,
            Counted::MapLookup(hit) => self.look_up_map(hit),
        }
    }
}
