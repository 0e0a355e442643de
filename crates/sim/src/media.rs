//! Flash operations: what an FTL asks for. NAND checks and applies them; in the timed gear the
//! timeline charges them, in the untimed gear nobody does.

use uflip_core::Counters;

use crate::bits;
use crate::breakdown::{Account, Cause};
use crate::geometry::{BlockIdx, Geometry, Place, Ppn};
use crate::nand::{Nand, PageOrder};
use crate::timeline::{Purpose, Timeline};

/// Where flash operations go. An FTL calls these in the order in which they must take effect; which
/// of them overlap in time is not its business.
pub(crate) trait Media {
    /// Read `from` for the host.
    fn read(&mut self, from: Place);
    /// Program `to` with host data; the rest of the page comes from `merge_from` where given.
    fn program(&mut self, to: Place, merge_from: Option<Place>);
    /// Program the metadata page of a block that is full.
    fn program_metadata(&mut self, to: Place);
}

/// What FTLs that collect blocks beside the host ask for besides.
pub(crate) trait CollectMedia: Media {
    /// A victim was chosen; its metadata page is read where it has one.
    fn begin_collection(&mut self, victim: BlockIdx, metadata: Option<Place>);
    /// Read `from` for a relocation that turns out not to be needed.
    fn read_for_nothing(&mut self, from: Place);
    /// Move the page `from` to `to`.
    fn relocate(&mut self, from: Place, to: Place);
    /// Erase `block`.
    fn erase(&mut self, block: BlockIdx);
    /// So many valid pages of a victim are not moved: their data is lost (OFC figure 5(a)).
    fn give_up(&mut self, pages: u32);
    /// The cached map was asked for an entry.
    fn look_up_map(&mut self, hit: bool);
    /// Read a page of the map. What follows waits for it.
    fn read_mapping(&mut self, from: Place);
    /// Program a page of the map; the entries that have not changed come from `merge_from` where
    /// given. What follows waits for it.
    fn program_mapping(&mut self, to: Place, merge_from: Option<Place>);
}

/// What FTLs that merge ask for besides. Operations of one merge begin together; their dies decide
/// what runs at the same time and what after another. [`MergeMedia::await_merges`] lets everything
/// that follows begin when all of them have ended.
pub(crate) trait MergeMedia: Media {
    /// Move the page `from` to `to` in a merge.
    fn copy(&mut self, from: Place, to: Place);
    /// [`MergeMedia::copy`] of several pages of a block to the same places of another: those that `set`
    /// has, of which `first` and the `pages` that follow stand for the pages of the block. `from` and
    /// `to` are the first pages of the blocks.
    fn copy_set(&mut self, from: Place, to: Place, set: &[u64], first: usize, pages: usize) {
        for index in bits::members(set, first, first + pages) {
            let at =
                |place: Place| Place { page: Ppn(place.page.0 + (index - first) as u32), ..place };
            self.copy(at(from), at(to));
        }
    }
    /// Erase `block` in a merge.
    fn erase_merged(&mut self, block: BlockIdx);
    /// The firmware stores its map on `to`.
    fn program_map(&mut self, to: Place);
    /// A log block was chosen to be reclaimed.
    fn begin_reclaim(&mut self);
    /// A merge of this kind was done.
    fn count_merge(&mut self, merge: Merge);
    /// What follows begins when all that was asked for so far has ended.
    fn await_merges(&mut self);
}

/// The even pages of a word.
const EVEN: u64 = u64::MAX / 3;

/// How a merge came by its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Merge {
    /// The log block holds every page, each in its place: it becomes the data block.
    Switch,
    /// The log block holds the first pages in their places; the others are copied to it.
    Partial,
    /// The newest version of every page is copied to a new block.
    Full,
}

/// NAND and counters: what both gears share. As [`Media`] it is the untimed gear.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Flash {
    pub(crate) geometry: Geometry,
    pub(crate) nand: Nand,
    pub(crate) counters: Counters,
}

impl Flash {
    /// A device as it comes from the factory.
    pub(crate) fn new(geometry: Geometry, order: PageOrder) -> Flash {
        Flash { geometry, nand: Nand::new(geometry, order), counters: Counters::default() }
    }
}

impl Media for Flash {
    #[inline]
    fn read(&mut self, from: Place) {
        self.nand.read(from);
        self.counters.host_pages_read += 1;
        self.counters.pages_read += 1;
    }

    #[inline]
    fn program(&mut self, to: Place, merge_from: Option<Place>) {
        if let Some(from) = merge_from {
            self.nand.read(from);
            self.counters.pages_read += 1;
            self.counters.pages_read_to_modify += 1;
        }
        self.nand.program(to);
        self.counters.host_pages_written += 1;
        self.counters.pages_programmed += 1;
    }

    #[inline]
    fn program_metadata(&mut self, to: Place) {
        self.nand.program(to);
        self.counters.pages_programmed += 1;
        self.counters.metadata_pages_programmed += 1;
    }
}

impl CollectMedia for Flash {
    #[inline]
    fn begin_collection(&mut self, _: BlockIdx, metadata: Option<Place>) {
        self.counters.blocks_collected += 1;
        if let Some(page) = metadata {
            self.nand.read(page);
            self.counters.pages_read += 1;
        }
    }

    #[inline]
    fn read_for_nothing(&mut self, from: Place) {
        self.nand.read(from);
        self.counters.pages_read += 1;
    }

    #[inline]
    fn relocate(&mut self, from: Place, to: Place) {
        self.nand.read(from);
        self.nand.program(to);
        self.counters.pages_read += 1;
        self.counters.pages_programmed += 1;
        self.counters.pages_relocated += 1;
    }

    #[inline]
    fn erase(&mut self, block: BlockIdx) {
        self.nand.erase(block);
        self.counters.blocks_erased += 1;
    }

    fn give_up(&mut self, pages: u32) {
        self.counters.pages_given_up += u64::from(pages);
    }

    #[inline]
    fn look_up_map(&mut self, hit: bool) {
        let counters = &mut self.counters;
        *(if hit { &mut counters.mapping_hits } else { &mut counters.mapping_misses }) += 1;
    }

    fn read_mapping(&mut self, from: Place) {
        self.nand.read(from);
        self.counters.pages_read += 1;
        self.counters.mapping_pages_read += 1;
    }

    fn program_mapping(&mut self, to: Place, merge_from: Option<Place>) {
        if let Some(from) = merge_from {
            self.read_mapping(from);
        }
        self.nand.program(to);
        self.counters.pages_programmed += 1;
        self.counters.mapping_pages_programmed += 1;
    }
}

impl MergeMedia for Flash {
    #[inline]
    fn copy(&mut self, from: Place, to: Place) {
        self.relocate(from, to);
    }

    #[inline]
    fn copy_set(&mut self, from: Place, to: Place, set: &[u64], first: usize, pages: usize) {
        for at in (0..pages).step_by(64) {
            let word = bits::word(set, first + at, (pages - at).min(64));
            let place = |place: Place| Place { page: Ppn(place.page.0 + at as u32), ..place };
            self.nand.copy_word(place(from), place(to), word);
            let copied = u64::from(word.count_ones());
            self.counters.pages_read += copied;
            self.counters.pages_programmed += copied;
            self.counters.pages_relocated += copied;
        }
    }

    #[inline]
    fn erase_merged(&mut self, block: BlockIdx) {
        self.erase(block);
    }

    #[inline]
    fn program_map(&mut self, to: Place) {
        self.program_metadata(to);
    }

    #[inline]
    fn begin_reclaim(&mut self) {
        self.counters.blocks_collected += 1;
    }

    #[inline]
    fn count_merge(&mut self, merge: Merge) {
        match merge {
            Merge::Switch => self.counters.switch_merges += 1,
            Merge::Partial => self.counters.partial_merges += 1,
            Merge::Full => self.counters.full_merges += 1,
        }
    }

    #[inline]
    fn await_merges(&mut self) {}
}

/// The timed gear: operations begin at `at` at the earliest, and are charged to `path` where they are
/// the host's.
pub(crate) struct Timed<'a, A> {
    flash: &'a mut Flash,
    timeline: &'a mut Timeline,
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
        timeline: &'a mut Timeline,
        at: u64,
        path: &'a mut A,
    ) -> Timed<'a, A> {
        Timed { flash, timeline, at, path, end: at, merged_until: 0 }
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
        self.end = self.timeline.read(from.die, self.at, Purpose::Host, self.path);
    }

    #[inline]
    fn program(&mut self, to: Place, merge_from: Option<Place>) {
        self.flash.program(to, merge_from);
        // What was merged for it comes first.
        let mut ready = self.at.max(self.merged_until);
        let begin = ready;
        if let Some(from) = merge_from {
            ready = self.timeline.read(from.die, ready, Purpose::Host, &mut ());
            self.path.add(Cause::ReadToModify, ready - begin);
        }
        let high = self.is_high(to);
        self.end = self.timeline.program(to.die, high, ready, Purpose::Host, self.path);
    }

    #[inline]
    fn program_metadata(&mut self, to: Place) {
        self.flash.program_metadata(to);
        let high = self.is_high(to);
        self.timeline.program(to.die, high, self.at, Purpose::Metadata, &mut ());
    }
}

impl<A: Account> MergeMedia for Timed<'_, A> {
    #[inline]
    fn copy(&mut self, from: Place, to: Place) {
        self.flash.copy(from, to);
        let high = self.is_high(to);
        let end = self.timeline.copy(from.die, to.die, high, self.at);
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
            let end = self.timeline.copy_many(from.die, to.die, low, high, self.at);
            self.extend(end, Cause::Merge);
        }
    }

    #[inline]
    fn erase_merged(&mut self, block: BlockIdx) {
        self.flash.erase_merged(block);
        let die = self.flash.geometry.die_of(block);
        let end = self.timeline.erase(die, self.at);
        self.extend(end, Cause::Erase);
    }

    #[inline]
    fn program_map(&mut self, to: Place) {
        self.flash.program_map(to);
        let high = self.is_high(to);
        let end = self.timeline.program(to.die, high, self.at, Purpose::Metadata, &mut ());
        self.extend(end, Cause::Metadata);
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
