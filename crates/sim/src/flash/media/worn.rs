//! Execution of plans on a device that replaces the FTL's blocks or pages. On flash that wears out, reads are
//! retried and failed blocks are replaced; on flash that requires it, the pages of a block are programmed in
//! order. The executed operations take the place of the planned ones.
//!
//! ```text
//! planned   copy A3 → B3                                  erase A
//! executed  read A3 in vain, copy A3 → B3 (fails),        erase A (fails): Z replaces A
//!           copy B0 → R0, copy B1 → R1: R replaces B,
//!           copy A3 → R3
//! ```

use super::{CollectMedia as _, Flash, Media as _};
use crate::collections::bits;
use crate::flash::done::{Holds, Note};
use crate::flash::geometry::{BlockIdx, Place};
use crate::flash::moves::Row;
use crate::flash::plan::{Cmd, Move, Plan};
use crate::flash::replaced::Replaced;

impl Flash {
    /// [`Flash::carry_out`] on a device that replaces blocks or pages.
    #[inline(never)]
    pub(super) fn carry_out_worn(&mut self, plan: &mut Plan) {
        let mut asked = self.replaced().planned.take().unwrap_or_default();
        std::mem::swap(plan, &mut *asked);
        plan.clear();
        self.replaced().notes.clear();
        let mut worn = Worn { flash: self, done: plan };
        for command in asked.commands() {
            worn.obey(command, &asked);
        }
        if self.keeps_notes() {
            plan.stands_for(&asked);
        }
        self.replaced().planned = Some(asked);
    }

    /// Whether a block has failed and no replacement was left.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.replaced.as_ref().is_some_and(|replaced| replaced.used_up)
    }

    pub(super) fn replaced(&mut self) -> &mut Replaced {
        self.replaced.as_mut().expect("blocks are replaced")
    }

    /// Whether executed operations are recorded as notes.
    #[inline]
    pub(crate) fn keeps_notes(&self) -> bool {
        self.replaced.as_ref().is_some_and(|replaced| replaced.keeps_notes)
    }

    /// Whether blocks or pages can be replaced by others.
    pub(crate) fn others_stand_in(&self) -> bool {
        self.replaced.is_some()
    }

    /// Return the physical block of an FTL's block.
    #[cfg(test)]
    pub(crate) fn stands_in(&self, known: BlockIdx) -> BlockIdx {
        self.replaced.as_ref().map_or(known, |replaced| replaced.block(known))
    }

    /// Whether pages of a block are programmed in the FTL's order.
    pub(crate) fn is_ordered(&self) -> bool {
        let by_table = self.replaced.as_ref().is_some_and(|replaced| replaced.is_by_table());
        !self.nand.is_in_any_order() && !by_table
    }

    /// Return the notes of the last plan, if they are recorded.
    pub(crate) fn notes(&self) -> &[Note] {
        self.replaced.as_ref().map_or(&[], |replaced| &replaced.notes)
    }

    /// Record notes: the content of the flash is tracked.
    pub(crate) fn keep_notes(&mut self) {
        self.replaced().keeps_notes = true;
    }

    /// Return the physical place of the FTL's page at `place`.
    #[inline]
    pub(crate) fn place(&self, place: Place) -> Place {
        self.replaced.as_ref().map_or(place, |replaced| replaced.place(place, &self.geometry))
    }
}

/// Flash that replaces blocks or pages, and the executed operations.
pub(super) struct Worn<'a> {
    pub(super) flash: &'a mut Flash,
    pub(super) done: &'a mut Plan,
}

impl Worn<'_> {
    fn obey(&mut self, command: &Cmd, asked: &Plan) {
        match *command {
            Cmd::Read(from) => {
                let from = self.flash.place(from);
                self.flash.read(from);
                self.read_again(from);
                self.done.read(from);
            }
            Cmd::Program { to, rest } => self.program(to, rest),
            Cmd::Copy { from, to } => self.copy(from, to),
            Cmd::CopySet { from, to, set } => {
                let words = asked.words(set);
                for page in bits::members(words, 0, 64 * words.len()) {
                    self.copy(from.behind(page as u32), to.behind(page as u32));
                }
            }
            Cmd::CopyRow(row) => self.copy_row(asked.row(row)),
            Cmd::CopyStream(pages) => self.stream(asked.moves(pages), false),
            Cmd::Erase { block, .. } => self.erase(block),
            Cmd::ProgramMap(to) => {
                self.attempt(to, Holds::Nothing, |worn, to| {
                    worn.done.program_map(to);
                    worn.flash.program_metadata(to)
                });
            }
            Cmd::LoadMap(_) if self.is_over() => {}
            Cmd::LoadMap(from) => {
                let from = self.flash.place(from);
                self.flash.read_mapping(from);
                self.read_again_inside(from);
                self.done.load_map(from);
            }
            Cmd::StoreMap(pages) => self.stream(asked.moves(pages), true),
            Cmd::Count(counted) => {
                self.flash.count(counted);
                self.done.count(counted);
            }
            Cmd::Barrier => self.done.barrier(),
            Cmd::FailedRead(_) | Cmd::FailedProgram(_) | Cmd::List(_) | Cmd::Settle => {
                unreachable!("no FTL asks for it")
            }
        }
    }

    /// Record the read retries of the page at `from`.
    fn read_again(&mut self, from: Place) {
        for _ in 0..std::mem::take(&mut self.flash.retries) {
            self.done.read_in_vain(from);
        }
    }

    /// Like [`Worn::read_again`], for a read that is not an I/O of the host.
    fn read_again_inside(&mut self, from: Place) {
        self.read_again(from);
        self.flash.read_failed = false;
    }

    #[inline]
    pub(super) fn note(&mut self, note: Note) {
        let replaced = self.flash.replaced();
        if replaced.keeps_notes {
            replaced.notes.push(note);
        }
    }

    /// Whether to stop executing the plan: a block has failed without a replacement, and the content of the
    /// flash is tracked. The data must stay as it is, since the rest of the plan erases pages that should
    /// have been copied by now.
    #[inline]
    fn is_over(&self) -> bool {
        self.flash.keeps_notes() && self.flash.is_used_up()
    }

    /// Program the FTL's page `to` with the content `holds` until that succeeds. `program` receives the
    /// physical place and returns whether it succeeded. Returns false if no block is left to replace a failed
    /// one.
    fn attempt(
        &mut self,
        to: Place,
        holds: Holds,
        mut program: impl FnMut(&mut Self, Place) -> bool,
    ) -> bool {
        if self.is_over() {
            return false;
        }
        self.flash.replaced().take(to);
        loop {
            let at = self.flash.place(to);
            let programmed = program(self, at);
            self.note(Note::Program { to, by: at.block, holds, fails: !programmed });
            if programmed {
                return true;
            }
            if !self.replace(to.block, Some((at, to))) {
                self.flash.give_up(1);
                return false;
            }
        }
    }

    fn program(&mut self, to: Place, rest: Option<Place>) {
        if self.is_over() {
            return;
        }
        let rest = rest.map(|rest| self.flash.place(rest));
        if let Some(rest) = rest {
            self.flash.read_to_modify(rest);
            self.read_again_inside(rest);
        }
        self.attempt(to, Holds::Host, |worn, to| {
            let programmed = worn.flash.program(to, None);
            match programmed {
                true => worn.done.program(to, rest),
                false => worn.done.program_in_vain(to),
            }
            programmed
        });
    }

    #[inline]
    fn copy(&mut self, from: Place, to: Place) {
        if !self.flash.wears_out() {
            // No read is retried, and no program fails.
            let Flash { replaced, geometry, .. } = &mut *self.flash;
            let replaced = replaced.as_mut().expect("blocks are replaced");
            replaced.take(to);
            let (at, by) = (replaced.place(from, geometry), replaced.place(to, geometry));
            if replaced.keeps_notes {
                let holds = Holds::Page(from.page);
                replaced.notes.push(Note::Program { to, by: by.block, holds, fails: false });
            }
            self.flash.relocate(at, by);
            return self.done.copy(at, by);
        }
        let holds = Holds::Page(from.page);
        self.attempt(to, holds, |worn, to| worn.move_to(worn.flash.place(from), to));
    }

    /// Move pages that are at their places plane by plane, the others one by one.
    #[inline]
    fn copy_row(&mut self, row: &Row) {
        if !self.flash.wears_out() && self.flash.moves_in_order(row) {
            return self.done.copy_row(*row);
        }
        row.moves().for_each(|(from, to)| self.copy(from, to));
    }

    /// Move a page between physical places. Returns false if it cannot be programmed.
    pub(super) fn move_to(&mut self, from: Place, to: Place) -> bool {
        let programmed = self.flash.relocate(from, to);
        self.read_again_inside(from);
        self.done.copy(from, to);
        programmed
    }

    /// Move pages of a merge, or of the map, one after the other: one stream up to each failure.
    fn stream(&mut self, pages: &[Move], of_map: bool) {
        let mut moved: Vec<Move> = Vec::with_capacity(pages.len());
        for Move { from, to } in pages {
            let holds = from.filter(|_| !of_map).map_or(Holds::Map, |from| Holds::Page(from.page));
            self.attempt(*to, holds, |worn, to| {
                let from = from.map(|from| worn.flash.place(from));
                let programmed = if of_map {
                    worn.flash.program_mapping(to, from)
                } else {
                    worn.flash.relocate(from.expect("a page that moves is somewhere"), to)
                };
                from.into_iter().for_each(|from| worn.read_again_inside(from));
                moved.push(Move { from, to });
                if !programmed {
                    worn.send(&mut moved, of_map);
                }
                programmed
            });
        }
        self.send(&mut moved, of_map);
    }

    /// Record the pages moved so far as one stream.
    fn send(&mut self, moved: &mut Vec<Move>, of_map: bool) {
        match of_map {
            _ if moved.is_empty() => {}
            true => self.done.store_map_of(moved),
            false => self.done.copy_stream_of(moved),
        }
        moved.clear();
    }

    fn erase(&mut self, known: BlockIdx) {
        if self.is_over() {
            return;
        }
        let block = self.flash.replaced().block(known);
        let extra_ns = self.flash.erase_extra_ns(block);
        let erased = self.flash.erase(block);
        self.flash.replaced().erased(known);
        self.done.erase_worn(block, extra_ns);
        self.note(Note::Erase { known: Some(known), block, fails: !erased });
        self.is_erased(known, erased);
        let may_fail = self.flash.wears_out();
        let Flash { replaced, nand, .. } = &mut *self.flash;
        let replaced = replaced.as_mut().expect("blocks are replaced");
        if let Some((cold, free)) = replaced.levels(known, may_fail, |block| nand.erases(block)) {
            self.level(cold, free);
        }
    }
}
