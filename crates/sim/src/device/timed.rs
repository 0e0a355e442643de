//! How long a plan takes, on clocks; operations of page maps are timed in `issued.rs`.

use crate::flash::geometry::{Geometry, Place};
use crate::flash::plan::{Cmd, Move, Plan};
use crate::timeline::breakdown::{Account, Cause};
use crate::timeline::clocks::{Clocks, Moved, Purpose};

/// The even pages of a word.
const EVEN: u64 = u64::MAX / 3;

/// Charges plans: operations begin at `at` at the earliest, and are charged to `path` where they are
/// the host's.
pub(crate) struct Timed<'a, A> {
    geometry: Geometry,
    clocks: &'a mut Clocks,
    /// From when on operations may begin.
    at: u64,
    /// Who keeps account of the host's page; `()` where there is none.
    path: &'a mut A,
    /// When everything so far has ended.
    pub(crate) end: u64,
    merged_until: u64,
}

impl<'a, A: Account> Timed<'a, A> {
    pub(crate) fn new(
        geometry: Geometry,
        clocks: &'a mut Clocks,
        at: u64,
        path: &'a mut A,
    ) -> Timed<'a, A> {
        Timed { geometry, clocks, at, path, end: at, merged_until: 0 }
    }

    /// Until when merges went on, or 0 where there were none.
    pub(crate) fn merged_until(&self) -> u64 {
        self.merged_until
    }

    /// `plan` takes its time.
    #[inline]
    pub(crate) fn charge(&mut self, plan: &Plan) {
        for command in plan.commands() {
            self.charge_for(command, plan);
        }
    }

    #[inline]
    fn charge_for(&mut self, command: &Cmd, plan: &Plan) {
        match *command {
            Cmd::Read(from) => {
                self.end = self.clocks.read(from.die, self.at, Purpose::Host, self.path);
            }
            Cmd::Program { to, rest } => self.program(to, rest),
            Cmd::Copy { from, to } => {
                let end = self.clocks.copy(from.die, to.die, self.is_high(to), self.at);
                self.extend(end, Cause::Merge);
            }
            Cmd::CopySet { from, to, set } => self.copy_set(from, to, plan.words(set)),
            Cmd::CopyStream(pages) => self.stream(plan.moves(pages), Purpose::Merge, Cause::Merge),
            Cmd::Erase(block) => {
                let end = self.clocks.erase(self.geometry.die_of(block), self.at);
                self.extend(end, Cause::Erase);
            }
            Cmd::ProgramMap(to) => {
                let (high, clocks) = (self.is_high(to), &mut self.clocks);
                let end = clocks.program(to.die, high, self.at, Purpose::Metadata, &mut ());
                self.extend(end, Cause::Metadata);
            }
            Cmd::LoadMap(from) => {
                let end = self.clocks.read(from.die, self.at, Purpose::Mapping, &mut ());
                self.extend(end, Cause::Mapping);
            }
            Cmd::StoreMap(pages) => {
                self.stream(plan.moves(pages), Purpose::Mapping, Cause::Mapping);
            }
            Cmd::Count(_) => {}
            Cmd::Barrier => self.at = self.at.max(self.end),
        }
    }

    #[inline]
    fn program(&mut self, to: Place, rest: Option<Place>) {
        // What was merged for it comes first.
        let mut ready = self.at.max(self.merged_until);
        let begin = ready;
        if let Some(from) = rest {
            ready = self.clocks.read(from.die, ready, Purpose::Host, &mut ());
            self.path.add(Cause::ReadToModify, ready - begin);
        }
        let high = self.is_high(to);
        self.end = self.clocks.program(to.die, high, ready, Purpose::Host, self.path);
    }

    #[inline]
    fn copy_set(&mut self, from: Place, to: Place, set: &[u64]) {
        let count = |word: u64| u64::from(word.count_ones());
        let low = set.iter().map(|word| count(word & EVEN)).sum::<u64>();
        let high = set.iter().map(|word| count(word & !EVEN)).sum::<u64>();
        if low + high > 0 {
            let end = self.clocks.copy_many(from.die, to.die, low, high, self.at);
            self.extend(end, Cause::Merge);
        }
    }

    fn stream(&mut self, pages: &[Move], purpose: Purpose, cause: Cause) {
        let moved = |Move { from, to }: &Move| Moved {
            source: from.map(|from| from.die),
            target: to.die,
            high: self.is_high(*to),
        };
        let pages: Vec<Moved> = pages.iter().map(moved).collect();
        let end = self.clocks.stream(&pages, self.at, purpose);
        self.extend(end, cause);
    }

    /// An operation of a merge ends at `end`: what it adds to the host's time is spent on `cause`.
    #[inline]
    fn extend(&mut self, end: u64, cause: Cause) {
        if end > self.end {
            self.path.add(cause, end - self.end);
            self.end = end;
        }
        self.merged_until = self.end;
    }

    /// Whether `page` is the second of two that share their cells.
    #[inline]
    fn is_high(&self, page: Place) -> bool {
        self.geometry.page_in_block(page) % 2 == 1
    }
}
