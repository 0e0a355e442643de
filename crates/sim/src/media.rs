//! Flash operations: what an FTL asks for. NAND checks and applies them; in the timed gear the
//! timeline charges them, in the untimed gear nobody does.

use uflip_core::Counters;

use crate::bits;
use crate::breakdown::{Account, Cause};
use crate::clocks::{Clocks, Moved, Purpose};
use crate::geometry::{BlockIdx, Geometry, Place, Ppn};
use crate::nand::{Nand, PageOrder};
use crate::wear_out::{ReadOutcome, WearOut};

/// Where flash operations go. An FTL calls these in the order in which they must take effect; which
/// of them overlap in time is not its business.
pub(crate) trait Media {
    /// Read `from` for the host.
    fn read(&mut self, from: Place);
    /// Program `to` with host data; the rest of the page comes from `merge_from` where given. False
    /// where that fails: the page then holds nothing.
    fn program(&mut self, to: Place, merge_from: Option<Place>) -> bool;
    /// Program the metadata page of a block that is full; false where that fails.
    fn program_metadata(&mut self, to: Place) -> bool;
}

/// What FTLs that collect blocks beside the host ask for besides.
pub(crate) trait CollectMedia: Media {
    /// A victim was chosen; its metadata page is read where it has one.
    fn begin_collection(&mut self, victim: BlockIdx, metadata: Option<Place>);
    /// Read `from` for a relocation that turns out not to be needed.
    fn read_for_nothing(&mut self, from: Place);
    /// Move the page `from` to `to`; false where `to` cannot be programmed.
    fn relocate(&mut self, from: Place, to: Place) -> bool;
    /// Erase `block`; false where that fails.
    fn erase(&mut self, block: BlockIdx) -> bool;
    /// Whether `page`, which is erased, has too many bit errors to be used again.
    fn is_worn(&self, page: Place) -> bool;
    /// `block` will not be used any more.
    fn retire_block(&mut self, block: BlockIdx);
    /// `page`, which is erased, will not be used any more.
    fn retire_page(&mut self, page: Place);
    /// So many valid pages of a victim are not moved: their data is lost (OFC figure 5(a)).
    fn give_up(&mut self, pages: u32);
    /// The cached map was asked for an entry.
    fn look_up_map(&mut self, hit: bool);
    /// Read a page of the map. What follows waits for it.
    fn read_mapping(&mut self, from: Place);
    /// The flash itself, where no time passes and nothing wears out: whoever asks may do many
    /// operations at once, and must count them.
    #[inline]
    fn unworn(&mut self) -> Option<&mut Flash> {
        None
    }
    /// Program a page of the map; the entries that have not changed come from `merge_from` where
    /// given. What follows waits for it. False where that fails.
    fn program_mapping(&mut self, to: Place, merge_from: Option<Place>) -> bool;
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
    /// The part of the map in memory was asked for an entry.
    fn count_map_lookup(&mut self, hit: bool);
    /// Read a page of the map.
    fn load_map(&mut self, from: Place);
    /// Program pages of the map; entries that have not changed come from a second place where given.
    fn store_map(&mut self, pages: &[(Place, Option<Place>)]);
    /// [`MergeMedia::copy`] of several pages, each from the first place to the second, as one stream.
    fn copy_stream(&mut self, pages: &[(Place, Place)]) {
        pages.iter().for_each(|(from, to)| self.copy(*from, *to));
    }
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
    /// What wear does; `None` where nothing wears out.
    wear_out: Option<Box<WearOut>>,
    /// How often the page that was read last was read again.
    pub(crate) retries: u32,
    /// Whether a page that cannot be read fails the I/O, and whether one did.
    fail_uncorrectable: bool,
    pub(crate) read_failed: bool,
}

impl Flash {
    /// A device as it comes from the factory.
    pub(crate) fn new(geometry: Geometry, order: PageOrder) -> Flash {
        let (nand, counters) = (Nand::new(geometry, order), Counters::default());
        Flash {
            geometry,
            nand,
            counters,
            wear_out: None,
            retries: 0,
            fail_uncorrectable: false,
            read_failed: false,
        }
    }

    /// The same with flash that wears out, and of which these blocks are bad.
    pub(crate) fn wearing_out(
        mut self,
        wear_out: WearOut,
        bad: &[BlockIdx],
        fail_uncorrectable: bool,
    ) -> Flash {
        self.fail_uncorrectable = fail_uncorrectable;
        bad.iter().for_each(|block| self.nand.retire_block(*block));
        self.wear_out = Some(Box::new(wear_out));
        self
    }

    /// How much longer than the first the next erase of `block` takes [ns].
    #[inline]
    pub(crate) fn erase_extra_ns(&self, block: BlockIdx) -> u64 {
        let wear_out = self.wear_out.as_ref();
        wear_out.map_or(0, |wear_out| wear_out.erase_extra_ns(self.nand.erases(block)))
    }

    #[inline]
    fn read_page(&mut self, from: Place) {
        self.nand.read(from);
        self.counters.pages_read += 1;
        if self.wear_out.is_some() {
            self.judge_read(from.page, from.block);
        }
    }

    // Addresses one by one: a place would be in memory in the hot path already.
    #[inline(never)]
    fn judge_read(&mut self, page: Ppn, block: BlockIdx) {
        let from = Place { page, block, die: self.geometry.die_of(block) };
        let Some(wear_out) = &self.wear_out else { return };
        let ReadOutcome { retries, corrected } = wear_out.read(from, self.nand.erases(from.block));
        self.retries = retries;
        self.counters.pages_read += u64::from(retries);
        self.counters.read_retries += u64::from(retries);
        self.counters.uncorrectable_reads += u64::from(!corrected);
        self.read_failed = !corrected && self.fail_uncorrectable;
    }

    /// False where it fails.
    #[inline]
    fn program_page(&mut self, to: Place) -> bool {
        self.nand.program(to);
        self.counters.pages_programmed += 1;
        self.wear_out.is_none() || self.judge_program(to.page, to.block)
    }

    #[inline(never)]
    fn judge_program(&mut self, page: Ppn, block: BlockIdx) -> bool {
        let to = Place { page, block, die: self.geometry.die_of(block) };
        let erases = self.nand.erases(to.block);
        let fails = self.wear_out.as_ref().is_some_and(|wear| wear.program_fails(to, erases));
        self.counters.program_failures += u64::from(fails);
        !fails
    }
}

impl Flash {
    /// Read what is left of a page that is written in part.
    #[inline]
    pub(crate) fn read_to_modify(&mut self, from: Place) {
        self.read_page(from);
        self.counters.pages_read_to_modify += 1;
    }
}

impl Media for Flash {
    #[inline]
    fn read(&mut self, from: Place) {
        self.read_page(from);
        self.counters.host_pages_read += 1;
    }

    #[inline]
    fn program(&mut self, to: Place, merge_from: Option<Place>) -> bool {
        if let Some(from) = merge_from {
            self.read_to_modify(from);
        }
        let programmed = self.program_page(to);
        self.counters.host_pages_written += u64::from(programmed);
        programmed
    }

    #[inline]
    fn program_metadata(&mut self, to: Place) -> bool {
        let programmed = self.program_page(to);
        self.counters.metadata_pages_programmed += u64::from(programmed);
        programmed
    }
}

impl CollectMedia for Flash {
    #[inline]
    fn unworn(&mut self) -> Option<&mut Flash> {
        (self.wear_out.is_none() && self.nand.is_regular()).then_some(self)
    }

    #[inline]
    fn begin_collection(&mut self, _: BlockIdx, metadata: Option<Place>) {
        self.counters.blocks_collected += 1;
        if let Some(page) = metadata {
            self.read_page(page);
        }
    }

    #[inline]
    fn read_for_nothing(&mut self, from: Place) {
        self.read_page(from);
    }

    #[inline]
    fn relocate(&mut self, from: Place, to: Place) -> bool {
        self.read_page(from);
        let programmed = self.program_page(to);
        self.counters.pages_relocated += u64::from(programmed);
        programmed
    }

    #[inline]
    fn erase(&mut self, block: BlockIdx) -> bool {
        self.nand.erase(block);
        self.counters.blocks_erased += 1;
        let erases = self.nand.erases(block);
        let fails = self.wear_out.as_ref().is_some_and(|wear| wear.erase_fails(block, erases));
        self.counters.erase_failures += u64::from(fails);
        !fails
    }

    fn is_worn(&self, page: Place) -> bool {
        let erases = self.nand.erases(page.block);
        self.wear_out.as_ref().is_some_and(|wear| wear.is_worn(page, erases))
    }

    fn retire_block(&mut self, block: BlockIdx) {
        self.nand.retire_block(block);
        self.counters.blocks_retired += 1;
    }

    fn retire_page(&mut self, page: Place) {
        self.nand.retire_page(page);
        self.counters.pages_retired += 1;
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
        self.read_page(from);
        self.counters.mapping_pages_read += 1;
    }

    fn program_mapping(&mut self, to: Place, merge_from: Option<Place>) -> bool {
        if let Some(from) = merge_from {
            self.read_mapping(from);
        }
        let programmed = self.program_page(to);
        self.counters.mapping_pages_programmed += u64::from(programmed);
        programmed
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
    fn count_map_lookup(&mut self, hit: bool) {
        self.look_up_map(hit);
    }

    #[inline]
    fn load_map(&mut self, from: Place) {
        self.read_mapping(from);
    }

    #[inline]
    fn store_map(&mut self, pages: &[(Place, Option<Place>)]) {
        for (to, merge_from) in pages {
            self.program_mapping(*to, *merge_from);
        }
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
