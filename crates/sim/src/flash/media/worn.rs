//! Plans where others stand in for the places that an FTL knows: on flash that wears out what is read is
//! read again until it is right, and blocks that fail are replaced; on flash that asks for it the pages of a
//! block are programmed in order. What was done then takes the place of what was planned.
//!
//! ```text
//! planned   copy A3 → B3                                  erase A
//! done      read A3 in vain, copy A3 → B3 (fails),        erase A (fails): Z stands in for A
//!           copy B0 → R0, copy B1 → R1: R stands in for B,
//!           copy A3 → R3
//! ```

use super::{CollectMedia as _, Flash, Media as _};
use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Place};
use crate::flash::plan::{Cmd, Move, Plan};
use crate::flash::replaced::Replaced;

impl Flash {
    /// [`Flash::carry_out`] where others stand in for blocks or pages.
    #[inline(never)]
    pub(super) fn carry_out_worn(&mut self, plan: &mut Plan) {
        let mut asked = std::mem::take(&mut self.replaced().planned);
        std::mem::swap(plan, &mut asked);
        plan.clear();
        let mut worn = Worn { flash: self, done: plan };
        for command in asked.commands() {
            worn.obey(command, &asked);
        }
        self.replaced().planned = asked;
    }

    /// Whether a block has failed that nothing could replace.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.replaced.as_ref().is_some_and(|replaced| replaced.used_up)
    }

    fn replaced(&mut self) -> &mut Replaced {
        self.replaced.as_mut().expect("blocks are replaced")
    }

    /// Where the page is that the FTL knows as `place`.
    #[inline]
    pub(crate) fn place(&self, place: Place) -> Place {
        self.replaced.as_ref().map_or(place, |replaced| replaced.place(place, &self.geometry))
    }
}

/// Flash that wears out, and what was done on it.
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
            Cmd::CopyStream(pages) => self.stream(asked.moves(pages), false),
            Cmd::Erase { block, .. } => self.erase(block),
            Cmd::ProgramMap(to) => {
                self.attempt(to, |worn, to| {
                    worn.done.program_map(to);
                    worn.flash.program_metadata(to)
                });
            }
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
            Cmd::FailedRead(_) | Cmd::FailedProgram(_) => unreachable!("no FTL asks for it"),
        }
    }

    /// The page at `from` was read: so often in vain.
    fn read_again(&mut self, from: Place) {
        for _ in 0..std::mem::take(&mut self.flash.retries) {
            self.done.read_in_vain(from);
        }
    }

    /// The same where no I/O of the host reads it.
    fn read_again_inside(&mut self, from: Place) {
        self.read_again(from);
        self.flash.read_failed = false;
    }

    /// Program the page that the FTL knows as `to` by `program`, which is given where it is and says
    /// whether that went well, until it does; false where nothing is left to replace its block with.
    fn attempt(&mut self, to: Place, mut program: impl FnMut(&mut Self, Place) -> bool) -> bool {
        self.flash.replaced().take(to);
        loop {
            let at = self.flash.place(to);
            if program(self, at) {
                return true;
            }
            if !self.replace(to.block, Some(at)) {
                self.flash.give_up(1);
                return false;
            }
        }
    }

    fn program(&mut self, to: Place, rest: Option<Place>) {
        let rest = rest.map(|rest| self.flash.place(rest));
        if let Some(rest) = rest {
            self.flash.read_to_modify(rest);
            self.read_again_inside(rest);
        }
        self.attempt(to, |worn, to| {
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
            // Nothing is read again, and no program fails.
            self.flash.replaced().take(to);
            let (from, to) = (self.flash.place(from), self.flash.place(to));
            self.flash.relocate(from, to);
            return self.done.copy(from, to);
        }
        self.attempt(to, |worn, to| worn.move_to(worn.flash.place(from), to));
    }

    /// Move a page; both places are where they are. False where it cannot be programmed.
    fn move_to(&mut self, from: Place, to: Place) -> bool {
        let programmed = self.flash.relocate(from, to);
        self.read_again_inside(from);
        self.done.copy(from, to);
        programmed
    }

    /// Pages one after the other, of a merge or of the map: one stream up to what fails.
    fn stream(&mut self, pages: &[Move], of_map: bool) {
        let mut moved: Vec<Move> = Vec::with_capacity(pages.len());
        for Move { from, to } in pages {
            self.attempt(*to, |worn, to| {
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

    /// What was moved so far was one stream.
    fn send(&mut self, moved: &mut Vec<Move>, of_map: bool) {
        match of_map {
            _ if moved.is_empty() => {}
            true => self.done.store_map_of(moved),
            false => self.done.copy_stream_of(moved),
        }
        moved.clear();
    }

    fn erase(&mut self, known: BlockIdx) {
        let block = self.flash.replaced().block(known);
        let extra_ns = self.flash.erase_extra_ns(block);
        let erased = self.flash.erase(block);
        self.flash.replaced().erased(known);
        self.done.erase_worn(block, extra_ns);
        self.is_erased(known, erased);
        let may_fail = self.flash.wears_out();
        let Flash { replaced, nand, .. } = &mut *self.flash;
        let replaced = replaced.as_mut().expect("blocks are replaced");
        if let Some((cold, free)) = replaced.levels(known, may_fail, |block| nand.erases(block)) {
            self.level(cold, free);
        }
    }

    /// What stands in for `known` was erased, with success or not: another does from now on where it is not fit to.
    fn is_erased(&mut self, known: BlockIdx, erased: bool) {
        let block = self.flash.replaced().block(known);
        let unfit = !erased || self.flash.replaced().retire_worn && self.has_worn_pages(block);
        if !unfit || self.replace(known, None) {
            self.stands_in_erased(known);
        }
    }

    /// What stands in for `known` is erased.
    fn stands_in_erased(&mut self, known: BlockIdx) {
        let block = self.flash.replaced().block(known);
        let wear = self.flash.nand.erases(block);
        self.flash.replaced().is_erased(known, wear);
    }

    /// What the FTL knows as `cold` moves to the block that stands in for `free`, which is erased, and its own block
    /// stands in for that.
    fn level(&mut self, cold: BlockIdx, free: BlockIdx) {
        let old = self.flash.replaced().block(cold);
        let by = self.flash.replaced().block(free);
        let kept = self.flash.nand.programmed(old);
        self.done.barrier();
        if !self.stands_in(cold, by, &kept) {
            let next = self.flash.replaced().next(free).expect("one is left");
            self.flash.replaced().replace(free, next);
            return self.stands_in_erased(free);
        }
        let extra_ns = self.flash.erase_extra_ns(old);
        self.done.barrier();
        self.done.erase_worn(old, extra_ns);
        let erased = self.flash.erase(old);
        self.done.barrier();
        self.flash.counters.blocks_levelled += 1;
        self.flash.replaced().replace(free, old);
        self.is_erased(free, erased);
    }

    fn has_worn_pages(&self, block: BlockIdx) -> bool {
        let geometry = &self.flash.geometry;
        let units = geometry.units() as usize;
        let mut pages = (0..geometry.shape().pages_per_block).step_by(units);
        pages.any(|page| self.flash.is_worn(geometry.place(block, page)))
    }

    /// Another block stands in for the one that the FTL knows as `known`, of which the program of `failed`
    /// went wrong, or which is empty. False where there is none.
    fn replace(&mut self, known: BlockIdx, failed: Option<Place>) -> bool {
        let old = self.flash.replaced().block(known);
        let mut kept = match failed {
            Some(_) => self.flash.nand.programmed(old),
            None => Vec::new(),
        };
        kept.retain(|page| Some(self.flash.geometry.place(old, *page)) != failed);
        while let Some(by) = self.flash.replaced().next(known) {
            if self.stands_in(known, by, &kept) {
                self.flash.retire_block(old);
                return true;
            }
        }
        false
    }

    /// `by` stands in for the block that the FTL knows as `known`, with copies of the pages `kept`; false where
    /// one of them fails, and `by` is retired.
    fn stands_in(&mut self, known: BlockIdx, by: BlockIdx, kept: &[u32]) -> bool {
        let old = self.flash.replaced().block(known);
        let geometry = self.flash.geometry;
        let mut moves =
            kept.iter().map(|page| (geometry.place(old, *page), geometry.place(by, *page)));
        let copied = moves.all(|(from, to)| self.move_to(from, to));
        match copied {
            true => self.flash.replaced().replace(known, by),
            false => self.flash.retire_block(by),
        }
        copied
    }

    /// A block in reserve stands in for the one that the FTL knows as `known`, which is erased and comes into
    /// reserve; false where there is none.
    pub(super) fn scrub(&mut self, known: BlockIdx) -> bool {
        let old = self.flash.replaced().block(known);
        let kept = self.flash.nand.programmed(old);
        while let Some(by) = self.flash.replaced().spare(known) {
            if !self.stands_in(known, by, &kept) {
                continue;
            }
            let extra_ns = self.flash.erase_extra_ns(old);
            self.done.barrier();
            self.done.erase_worn(old, extra_ns);
            match self.flash.erase(old) {
                true => self.flash.replaced().give_back(known, old),
                false => self.flash.retire_block(old),
            }
            return true;
        }
        false
    }
}
