//! Flash changes of the plans of merging FTLs, on a device that replaces no blocks.

use super::Contents;
use crate::collections::bits;
use crate::flash::geometry::{PageAddress, Ppn};
use crate::flash::notes::{Note, PageContent};
use crate::flash::plan::{Cmd, FlashPlan};

/// Return the programs and erases of `plan`, in order.
pub(crate) fn notes_of(plan: &FlashPlan) -> Vec<Note> {
    let program = |to: PageAddress, holds| Note::Program { to, by: to.block, holds, fails: false };
    let copy = |from: PageAddress, to| program(to, PageContent::Page(from.page));
    let mut notes = Vec::new();
    for command in plan.commands() {
        match *command {
            Cmd::Program { to, .. } => notes.push(program(to, PageContent::Host)),
            Cmd::Copy { from, to } => notes.push(copy(from, to)),
            Cmd::CopySet { from, to, set } => {
                let words = plan.words(set);
                let pages = bits::members(words, 0, 64 * words.len()).map(|page| page as u32);
                notes.extend(pages.map(|page| copy(from.plus_pages(page), to.plus_pages(page))));
            }
            Cmd::CopyRow(row) => {
                notes.extend(plan.row(row).moves().map(|(from, to)| copy(from, to)));
            }
            Cmd::CopyStream(pages) => notes.extend(
                plan.moves(pages)
                    .iter()
                    .map(|moved| copy(moved.from.expect("a moved page has a source"), moved.to)),
            ),
            Cmd::StoreMap(pages) => {
                notes.extend(
                    plan.moves(pages).iter().map(|moved| program(moved.to, PageContent::Map)),
                );
            }
            Cmd::ProgramMap(to) => notes.push(program(to, PageContent::Nothing)),
            Cmd::Erase { block, .. } => {
                notes.push(Note::Erase { logical: Some(block), block, fails: false });
            }
            Cmd::Read(_) | Cmd::LoadMap(_) | Cmd::FailedRead(_) | Cmd::FailedProgram(_) => {}
            Cmd::Count(_) | Cmd::Barrier | Cmd::List(_) | Cmd::Settle => {}
        }
    }
    notes
}

impl Contents {
    pub(super) fn decided_at(&self, at: Ppn) -> Option<u32> {
        match self.decided[at.0 as usize] {
            super::PhysicalPage::Holds { page, .. } => Some(page),
            _ => None,
        }
    }

    /// Apply all decisions.
    pub(crate) fn apply_all(&mut self) {
        self.finish();
        self.forget();
        self.on_flash.clone_from(&self.decided);
        self.labels_on_flash.clone_from(&self.labels);
    }
}
