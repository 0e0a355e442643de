//! The page-mapped FTL: any logical page on any physical page.
//!
//! **Source**: OFC (2011) §IV.B–E.
//! **Faithful**: full page-level map in memory; a write page allocator for host and relocated pages;
//! one metadata page at the end of a block where the geometry has it, written when the block is full
//! and read when it is collected; dynamic and static wear levelling.
//! **Simplified**: the map is never stored on flash.
//! **Ambiguous**: the report does not say when collection begins; here it begins when the die whose
//! turn it is needs a new block and has no more than `reserved_blocks` left, and goes on until it has
//! one more. Figure 5(a)'s fixed number of relocated pages "independently of the actual number of
//! still valid pages" would lose data where more are valid; here it is a least number: what is valid
//! is always moved, and pages that are not valid are moved on top until the number is reached.

use crate::alloc::Allocator;
use crate::blocks::{Blocks, FreeOrder, Stream};
use crate::gc::Victims;
use crate::geometry::{BlockIdx, DieIdx, Geometry, Lpn, Place, Ppn};
use crate::media::Media;

/// What a page map is made of.
#[derive(Clone, Debug)]
pub(crate) struct PageMapOptions {
    pub(crate) geometry: Geometry,
    pub(crate) allocator: Allocator,
    pub(crate) victims: Victims,
    /// Free blocks that every die keeps for relocated pages, at least 1.
    pub(crate) reserved_blocks: usize,
    /// Relocated pages stay on their die; otherwise they take turns like host pages.
    pub(crate) same_die: bool,
    /// Relocated pages fill blocks of their own: hot and cold separated by their history.
    pub(crate) separate: bool,
    pub(crate) free_order: FreeOrder,
    /// Static wear levelling moves the least-worn block when another one of its die was erased so
    /// many times more often; 0: never.
    pub(crate) static_gap: u32,
    /// See the header on figure 5(a); 0: what is valid.
    pub(crate) relocate_at_least: u32,
}

/// Map, reverse map, and the books of blocks.
#[derive(Clone, Debug)]
pub(crate) struct PageMap {
    /// Per logical page: where it is; `NOWHERE` where it was never written.
    map: Vec<u32>,
    /// Per physical page: which logical page was programmed there last.
    reverse: Vec<u32>,
    blocks: Blocks,
    options: PageMapOptions,
    /// Per die: erases since the least-worn block was last looked for.
    since_static: Vec<u32>,
    /// The victim's valid pages; kept so that nothing is allocated.
    scratch: Vec<Ppn>,
}

/// Inside the two arrays only; outside of them it is an `Option`.
const NOWHERE: u32 = u32::MAX;

/// Static wear levelling looks at a die again after this share of its blocks was erased.
const STATIC_INTERVAL: u32 = 4;

impl PageMap {
    pub(crate) fn new(options: PageMapOptions) -> PageMap {
        let geometry = options.geometry;
        PageMap {
            map: crate::huge::filled(geometry.shape().logical_pages as usize, NOWHERE),
            reverse: crate::huge::filled(geometry.pages() as usize, NOWHERE),
            blocks: Blocks::new(geometry, options.separate, options.free_order),
            since_static: vec![0; geometry.shape().dies as usize],
            scratch: Vec::with_capacity(geometry.shape().pages_per_block as usize),
            options,
        }
    }

    /// Where `page` is; `None` where it was never written.
    #[inline]
    pub(crate) fn lookup(&self, page: Lpn) -> Option<Place> {
        let at = self.map[page.0 as usize];
        (at != NOWHERE).then(|| self.options.geometry.place_of(Ppn(at)))
    }

    /// `page` will be looked up soon: have its entry of the map at hand.
    #[inline]
    pub(crate) fn prefetch(&self, page: Lpn) {
        crate::huge::prefetch(&self.map, page.0 as usize);
    }

    /// `page`, whose entry of the map is at hand, will be written soon: have at hand what is known of
    /// where it is.
    #[inline]
    pub(crate) fn prefetch_old(&self, page: Lpn) {
        if let Some(old) = self.lookup(page) {
            self.blocks.prefetch(old);
        }
    }

    /// Write `page`; where only a part of it is written, the rest is merged from its old version.
    #[inline]
    pub(crate) fn write(&mut self, page: Lpn, whole: bool, media: &mut impl Media) {
        let die = self.die_for_host(media);
        let to = self.blocks.take_page(die, Stream::Host);
        let old = self.lookup(page);
        media.program(to, if whole { None } else { old });
        if let Some(old) = old {
            self.invalidate(old);
        }
        self.place(page, to);
        self.close_if_full(die, Stream::Host, media);
    }

    /// `page` holds nothing any more (TRIM).
    pub(crate) fn trim(&mut self, page: Lpn) {
        if let Some(old) = self.lookup(page) {
            self.invalidate(old);
            self.map[page.0 as usize] = NOWHERE;
        }
    }

    /// Free blocks of all dies.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.blocks.free_blocks()
    }

    /// Collect a block of the die with the fewest free ones. False where no block is closed.
    pub(crate) fn collect_any(&mut self, media: &mut impl Media) -> bool {
        let dies = (0..self.options.geometry.shape().dies).map(DieIdx);
        let die = dies.min_by_key(|die| self.blocks.free_in(*die));
        die.is_some_and(|die| self.collect(die, media))
    }

    /// The die whose turn it is, with room made where it has none. A die on which nothing can be
    /// gained loses its turn (OFC §IV.C: the round robin is relaxed where dies differ).
    #[inline]
    fn die_for_host(&mut self, media: &mut impl Media) -> DieIdx {
        let die = self.options.allocator.choose(&self.blocks);
        if self.has_room(die) || self.make_room(die, media) {
            return die;
        }
        self.any_die_for_host(media)
    }

    #[cold]
    fn any_die_for_host(&mut self, media: &mut impl Media) -> DieIdx {
        for die in (0..self.options.geometry.shape().dies).map(DieIdx) {
            if self.has_room(die) || self.make_room(die, media) {
                return die;
            }
        }
        panic!(
            "no die can be collected to take a page: {} blocks free in all, {} reserved a die",
            self.blocks.free_blocks(),
            self.options.reserved_blocks
        )
    }

    /// Whether a host page may go to `die` as it is.
    #[inline]
    fn has_room(&self, die: DieIdx) -> bool {
        self.blocks.has_open_page(die, Stream::Host)
            || self.blocks.free_in(die) > self.options.reserved_blocks
    }

    /// Collect blocks of `die` until it has room. False where it has nothing to gain.
    #[cold]
    fn make_room(&mut self, die: DieIdx, media: &mut impl Media) -> bool {
        // Twice through the die, a policy has seen every block; what it did not gain then is held by
        // pages that came back to this die.
        for _ in 0..2 * self.options.geometry.shape().blocks_per_die {
            if !self.blocks.has_reclaimable(die) || !self.collect(die, media) {
                return false;
            }
            if self.has_room(die) {
                return true;
            }
        }
        false
    }

    /// Collect one block of `die`: move its valid pages, erase it. False where none is closed.
    fn collect(&mut self, die: DieIdx, media: &mut impl Media) -> bool {
        let victim = self.least_worn_due(die);
        let Some(victim) = victim.or_else(|| self.options.victims.choose(die, &self.blocks)) else {
            return false;
        };
        media.begin_collection(victim, self.metadata_page(die, victim));
        self.relocate_all(die, victim, media);
        media.erase(victim);
        self.blocks.set_free(victim);
        self.since_static[die.0 as usize] += 1;
        true
    }

    /// The page at the end of `block` that holds its metadata, where the geometry has one.
    #[inline]
    fn metadata_page(&self, die: DieIdx, block: BlockIdx) -> Option<Place> {
        let geometry = &self.options.geometry;
        let page = Ppn(geometry.first_page(block).0 + geometry.data_pages());
        (geometry.shape().metadata_pages > 0).then_some(Place { page, block, die })
    }

    fn relocate_all(&mut self, home: DieIdx, victim: BlockIdx, media: &mut impl Media) {
        let mut pages = std::mem::take(&mut self.scratch);
        pages.clear();
        self.blocks.begin_collection(victim, &mut pages);
        for from in &pages {
            self.prefetch(Lpn(self.reverse[from.0 as usize]));
        }
        for page in &pages {
            let die = self.die_for_relocation(home);
            let to = self.blocks.take_page(die, Stream::Relocated);
            media.relocate(Place { page: *page, block: victim, die: home }, to);
            self.place(Lpn(self.reverse[page.0 as usize]), to);
            self.close_if_full(die, Stream::Relocated, media);
        }
        let least = self.options.relocate_at_least;
        if (pages.len() as u32) < least {
            self.relocate_for_nothing(home, victim, least - pages.len() as u32, media);
        }
        self.scratch = pages;
    }

    /// Move the victim's first page so many times to places where nobody will look for it.
    #[cold]
    fn relocate_for_nothing(
        &mut self,
        home: DieIdx,
        victim: BlockIdx,
        times: u32,
        media: &mut impl Media,
    ) {
        let page = self.options.geometry.first_page(victim);
        for _ in 0..times {
            let die = self.die_for_relocation(home);
            let to = self.blocks.take_page(die, Stream::Relocated);
            media.relocate(Place { page, block: victim, die: home }, to);
            self.close_if_full(die, Stream::Relocated, media);
        }
    }

    #[inline]
    fn die_for_relocation(&mut self, home: DieIdx) -> DieIdx {
        if self.options.same_die && self.blocks.has_page(home, Stream::Relocated) {
            return home;
        }
        let die = self.options.allocator.choose_with_page(&self.blocks, Stream::Relocated);
        die.expect("the reserved blocks of all dies hold what a victim holds")
    }

    /// Close the block of the page that was just taken from `die`, where that page filled it up.
    #[inline]
    fn close_if_full(&mut self, die: DieIdx, stream: Stream, media: &mut impl Media) {
        if let Some(block) = self.blocks.close_if_full(die, stream) {
            if let Some(page) = self.metadata_page(die, block) {
                media.program_metadata(page);
            }
            // Only now, with its last page accounted for, may it be chosen.
            self.options.victims.closed(die, block, self.blocks.valid_count(block));
        }
    }

    /// The block that static wear levelling wants to move now.
    fn least_worn_due(&mut self, die: DieIdx) -> Option<BlockIdx> {
        let gap = self.options.static_gap;
        let per_die = self.options.geometry.shape().blocks_per_die;
        if gap == 0 || self.since_static[die.0 as usize] < per_die.div_ceil(STATIC_INTERVAL) {
            return None;
        }
        self.since_static[die.0 as usize] = 0;
        let blocks = || self.options.geometry.blocks_of(die);
        let most = blocks().map(|block| self.blocks.wear(block)).max()?;
        let closed = blocks().filter(|block| self.blocks.is_closed(*block));
        let least = closed.min_by_key(|block| self.blocks.wear(*block))?;
        if most - self.blocks.wear(least) <= gap {
            return None;
        }
        self.options.victims.remove(die, least);
        Some(least)
    }

    #[inline]
    fn invalidate(&mut self, at: Place) {
        let (left, closed) = self.blocks.mark_invalid(at);
        if closed {
            self.options.victims.invalidated(at.die, at.block, left);
        }
    }

    #[inline]
    fn place(&mut self, page: Lpn, at: Place) {
        self.map[page.0 as usize] = at.page.0;
        self.reverse[at.page.0 as usize] = page.0;
        self.blocks.mark_valid(at);
    }

    /// Check that map, reverse map and books agree; for tests.
    ///
    /// # Panics
    /// Where they do not.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let geometry = self.options.geometry;
        let mut valid = vec![0; geometry.blocks() as usize];
        let mut mapped = 0;
        for (lpn, at) in self.map.iter().enumerate().filter(|(_, at)| **at != NOWHERE) {
            mapped += 1;
            assert_eq!(self.reverse[*at as usize] as usize, lpn, "the reverse map agrees");
            assert!(self.blocks.is_valid(Ppn(*at)), "a mapped page is valid");
            valid[geometry.block_of(Ppn(*at)).0 as usize] += 1;
        }
        let bits = (0..geometry.pages()).filter(|page| self.blocks.is_valid(Ppn(*page))).count();
        assert_eq!(bits, mapped, "as many valid pages as mapped ones");
        for block in (0..geometry.blocks()).map(BlockIdx) {
            assert_eq!(self.blocks.valid_count(block), valid[block.0 as usize], "{block:?}");
        }
    }

    /// The books; for tests.
    #[cfg(test)]
    pub(crate) fn blocks(&self) -> &Blocks {
        &self.blocks
    }
}
