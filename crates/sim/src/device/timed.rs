//! The timed gear of merging FTLs, on clocks; that of page maps is in `issued.rs`.

use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Place};
use crate::flash::media::{Flash, Media, Merge, MergeMedia};
use crate::timeline::breakdown::{Account, Cause};
use crate::timeline::clocks::{Clocks, Moved, Purpose};

/// The even pages of a word.
const EVEN: u64 = u64::MAX / 3;

/// The timed gear: operations begin at `at` at the earliest, and are charged to `path` where they are
/// the host's.
pub(crate) struct Timed<'a, A> {
    flash: &'a mut Flash,
    clocks: &'a mut Clocks,
    /// From when on operations may begin.
    at: u64,
    /// Who keeps account of the host's page; `()` where there is none.
    path: &'a mut A,
    /// When the host's page ended, or when a collection can read its first page.
    pub(crate) end: u64,
    merged_until: u64,
}

impl<'a, A: Account> Timed<'a, A> {
    pub(crate) fn new(
        flash: &'a mut Flash,
        clocks: &'a mut Clocks,
        at: u64,
        path: &'a mut A,
    ) -> Timed<'a, A> {
        Timed { flash, clocks, at, path, end: at, merged_until: 0 }
    }

    /// Until when merges of this operation went on, or 0 where there were none.
    pub(crate) fn merged_until(&self) -> u64 {
        self.merged_until
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

    /// What the clocks want to know of a page that moves.
    fn moved(&self, from: Option<Place>, to: Place) -> Moved {
        Moved { source: from.map(|from| from.die), target: to.die, high: self.is_high(to) }
    }

    /// Whether `page` is the second of two that share their cells.
    #[inline]
    fn is_high(&self, page: Place) -> bool {
        self.flash.geometry.page_in_block(page) % 2 == 1
    }
}

impl<A: Account> Media for Timed<'_, A> {
    #[inline]
    fn read(&mut self, from: Place) {
        self.flash.read(from);
        self.end = self.clocks.read(from.die, self.at, Purpose::Host, self.path);
    }

    #[inline]
    fn program(&mut self, to: Place, merge_from: Option<Place>) -> bool {
        let programmed = self.flash.program(to, merge_from);
        // What was merged for it comes first.
        let mut ready = self.at.max(self.merged_until);
        let begin = ready;
        if let Some(from) = merge_from {
            ready = self.clocks.read(from.die, ready, Purpose::Host, &mut ());
            self.path.add(Cause::ReadToModify, ready - begin);
        }
        let high = self.is_high(to);
        self.end = self.clocks.program(to.die, high, ready, Purpose::Host, self.path);
        programmed
    }

    #[inline]
    fn program_metadata(&mut self, to: Place) -> bool {
        let programmed = self.flash.program_metadata(to);
        let high = self.is_high(to);
        self.clocks.program(to.die, high, self.at, Purpose::Metadata, &mut ());
        programmed
    }
}

impl<A: Account> MergeMedia for Timed<'_, A> {
    #[inline]
    fn copy(&mut self, from: Place, to: Place) {
        self.flash.copy(from, to);
        let high = self.is_high(to);
        let end = self.clocks.copy(from.die, to.die, high, self.at);
        self.extend(end, Cause::Merge);
    }

    #[inline]
    fn copy_set(&mut self, from: Place, to: Place, set: &[u64], first: usize, pages: usize) {
        self.flash.copy_set(from, to, set, first, pages);
        let count = |word: u64| u64::from(word.count_ones());
        let (mut low, mut high) = (0, 0);
        for at in (0..pages).step_by(64) {
            let word = bits::word(set, first + at, (pages - at).min(64));
            (low, high) = (low + count(word & EVEN), high + count(word & !EVEN));
        }
        if low + high > 0 {
            let end = self.clocks.copy_many(from.die, to.die, low, high, self.at);
            self.extend(end, Cause::Merge);
        }
    }

    #[inline]
    fn erase_merged(&mut self, block: BlockIdx) {
        self.flash.erase_merged(block);
        let die = self.flash.geometry.die_of(block);
        let end = self.clocks.erase(die, self.at);
        self.extend(end, Cause::Erase);
    }

    #[inline]
    fn program_map(&mut self, to: Place) {
        self.flash.program_map(to);
        let high = self.is_high(to);
        let end = self.clocks.program(to.die, high, self.at, Purpose::Metadata, &mut ());
        self.extend(end, Cause::Metadata);
    }

    #[inline]
    fn count_map_lookup(&mut self, hit: bool) {
        self.flash.count_map_lookup(hit);
    }

    #[inline]
    fn load_map(&mut self, from: Place) {
        self.flash.load_map(from);
        let end = self.clocks.read(from.die, self.at, Purpose::Mapping, &mut ());
        self.extend(end, Cause::Mapping);
    }

    fn store_map(&mut self, pages: &[(Place, Option<Place>)]) {
        self.flash.store_map(pages);
        let pages: Vec<Moved> = pages.iter().map(|(to, from)| self.moved(*from, *to)).collect();
        let end = self.clocks.stream(&pages, self.at, Purpose::Mapping);
        self.extend(end, Cause::Mapping);
    }

    fn copy_stream(&mut self, pages: &[(Place, Place)]) {
        self.flash.copy_stream(pages);
        let pages: Vec<Moved> =
            pages.iter().map(|(from, to)| self.moved(Some(*from), *to)).collect();
        let end = self.clocks.stream(&pages, self.at, Purpose::Merge);
        self.extend(end, Cause::Merge);
    }

    #[inline]
    fn begin_reclaim(&mut self) {
        self.flash.begin_reclaim();
    }

    #[inline]
    fn count_merge(&mut self, merge: Merge) {
        self.flash.count_merge(merge);
    }

    #[inline]
    fn await_merges(&mut self) {
        self.at = self.at.max(self.end);
    }
}
