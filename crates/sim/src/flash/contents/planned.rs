//! What plans of FTLs that merge will change on flash.

use super::{Contents, Origin};
use crate::collections::bits;
use crate::flash::geometry::{Place, Ppn};
use crate::flash::plan::{Cmd, Plan};

impl Contents {
    /// `plan` is carried out: what it programs is decided. It programs `pages` of the host, one after the other;
    /// which page of the map a place is to hold, `of_map` says. Where it takes `time`, returns a record of every
    /// operation, in order.
    pub(crate) fn decide_plan(
        &mut self,
        plan: &Plan,
        pages: impl Iterator<Item = (u32, Origin)>,
        of_map: impl Fn(Place) -> Option<u32>,
        time: bool,
    ) -> Vec<u32> {
        let mut pages = pages;
        let mut records = Vec::new();
        for command in plan.commands() {
            match *command {
                Cmd::Program { to, .. } => {
                    self.decide_page(to, pages.next(), time, &mut records);
                }
                Cmd::Copy { from, to } => self.decide_copy(from, to, time, &mut records),
                Cmd::CopySet { from, to, set } => {
                    let words = plan.words(set);
                    for page in bits::members(words, 0, 64 * words.len()) {
                        let (from, to) = (from.behind(page as u32), to.behind(page as u32));
                        self.decide_copy(from, to, time, &mut records);
                    }
                }
                Cmd::CopyStream(pages) => {
                    for moved in plan.moves(pages) {
                        let from = moved.from.expect("a page that moves is somewhere");
                        self.decide_copy(from, moved.to, time, &mut records);
                    }
                }
                Cmd::StoreMap(pages) => {
                    for moved in plan.moves(pages) {
                        let page = of_map(moved.to).map(|page| (page, Origin::Map));
                        self.decide_page(moved.to, page, time, &mut records);
                    }
                }
                Cmd::ProgramMap(to) => self.decide_page(to, None, time, &mut records),
                Cmd::Erase { block, .. } => {
                    self.decide_erased(block);
                    records.extend(time.then(|| self.erase(block)));
                }
                Cmd::Read(_) | Cmd::LoadMap(_) | Cmd::FailedRead(_) | Cmd::FailedProgram(_) => {}
                Cmd::Count(_) | Cmd::Barrier | Cmd::List(_) | Cmd::Settle => {}
            }
        }
        records
    }

    fn decide_page(
        &mut self,
        to: Place,
        page: Option<(u32, Origin)>,
        time: bool,
        records: &mut Vec<u32>,
    ) {
        self.decide(to, page, 0, true);
        records.extend(time.then(|| self.program(to)));
    }

    fn decide_copy(&mut self, from: Place, to: Place, time: bool, records: &mut Vec<u32>) {
        let page = self.decided_at(from.page).map(|page| (page, Origin::Page(from.page)));
        self.decide_page(to, page, time, records);
    }

    pub(super) fn decided_at(&self, at: Ppn) -> Option<u32> {
        match self.decided[at.0 as usize] {
            super::Cell::Holds { page, .. } => Some(page),
            _ => None,
        }
    }

    /// Everything that was decided has been done.
    pub(crate) fn all_is_done(&mut self) {
        self.records.drain();
        self.forget();
        self.on_flash.clone_from(&self.decided);
        self.labels_on_flash.clone_from(&self.labels);
    }
}
