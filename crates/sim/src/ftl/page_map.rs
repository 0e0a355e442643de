//! The page-mapped FTL: any logical page on any physical page.
//!
//! **Source**: OFC (2011) §IV.B–E.
//! **Faithful**: full page-level map in memory; a write page allocator for host and relocated pages;
//! one metadata page at the end of a block where the geometry has it, written when the block is full
//! and read when it is collected; dynamic and static wear levelling.
//! **Simplified**: the map is never stored on flash.
//! **Ambiguous**: the report does not say when collection begins; here a die begins when the host has
//! opened the last block that it may (no more than `reserved_blocks` are left), so that it has the
//! time in which that block is filled, and goes on until it has one more. Figure 5(a)'s fixed number of relocated pages "independently of the actual number of
//! still valid pages" would lose data where more are valid; here it is a least number: what is valid
//! is always moved, and pages that are not valid are moved on top until the number is reached.

use crate::alloc::Allocator;
use crate::blocks::{Blocks, FreeOrder, Stream};
use crate::gc::Victims;
use crate::geometry::{BlockIdx, DieIdx, Geometry, Lpn, Place, Ppn};
use crate::media::Media;

/// What a page map is made of.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
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
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct PageMap {
    /// Per logical page: where it is; `NOWHERE` where it was never written.
    #[serde(with = "crate::huge::flat")]
    map: Vec<u32>,
    /// Per physical page: which logical page was programmed there last.
    #[serde(with = "crate::huge::flat")]
    reverse: Vec<u32>,
    blocks: Blocks,
    options: PageMapOptions,
    /// Per die: erases since the least-worn block was last looked for.
    since_static: Vec<u32>,
    /// Pages that collections under way may still have to move; the host leaves room for them.
    promised: u32,
    /// The valid pages of a victim; kept so that nothing is allocated.
    scratch: Vec<Ppn>,
}

/// A block being collected. Whoever holds it decides when its next page moves.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Collection {
    pub(crate) die: DieIdx,
    pub(crate) victim: BlockIdx,
    next: Ppn,
    moved: u32,
    /// Pages that it may still have to move.
    promised: u32,
}

/// A page to move: a valid one, or one that is moved for nothing (figure 5(a)).
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Item {
    pub(crate) from: Place,
    valid: bool,
}

/// Inside the two arrays only; outside of them it is an `Option`.
const NOWHERE: u32 = u32::MAX;

/// Static wear levelling looks at a die again after this share of its blocks was erased.
const STATIC_INTERVAL: u32 = 16;

impl PageMap {
    pub(crate) fn new(options: PageMapOptions) -> PageMap {
        let geometry = options.geometry;
        PageMap {
            map: crate::huge::filled(geometry.shape().logical_pages as usize, NOWHERE),
            reverse: crate::huge::filled(geometry.pages() as usize, NOWHERE),
            blocks: Blocks::new(geometry, options.separate, options.free_order),
            since_static: vec![0; geometry.shape().dies as usize],
            promised: 0,
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

    /// Write `page` in one go, collecting whatever is due at once; where only a part of it is written,
    /// the rest is merged from its old version.
    #[inline]
    pub(crate) fn write(&mut self, page: Lpn, whole: bool, media: &mut impl Media) {
        let turn = self.turn();
        let die = if self.has_room(turn) { turn } else { self.die_with_room(turn, media) };
        self.write_to(die, page, whole, media);
        if self.wants_collection(die) {
            self.make_room(die, media);
        }
    }

    /// The die that the next host page should go to.
    #[inline]
    pub(crate) fn turn(&mut self) -> DieIdx {
        self.options.allocator.choose(&self.blocks)
    }

    /// Whether a host page may go to `die` as it is.
    #[inline]
    pub(crate) fn has_room(&self, die: DieIdx) -> bool {
        let opens = !self.blocks.has_open_page(die, Stream::Host);
        if opens && self.blocks.free_in(die) <= self.options.reserved_blocks {
            return false;
        }
        let needed = self.promised + self.blocks.cost_of_host_page(opens);
        self.blocks.pages_for_relocation() >= needed
    }

    /// Write `page` to `die`, which has room.
    #[inline]
    pub(crate) fn write_to(&mut self, die: DieIdx, page: Lpn, whole: bool, media: &mut impl Media) {
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

    /// Whether the host has opened the last block of `die` that it may.
    #[inline]
    pub(crate) fn wants_collection(&self, die: DieIdx) -> bool {
        self.blocks.free_in(die) <= self.options.reserved_blocks
    }

    /// Whether `die` has fewer than `goal` free blocks.
    pub(crate) fn has_fewer_free(&self, die: DieIdx, goal: usize) -> bool {
        self.blocks.free_in(die) < goal
    }

    /// The dies to try for a host page: `turn` first, then all.
    pub(crate) fn dies_from(&self, turn: DieIdx) -> impl Iterator<Item = DieIdx> + use<> {
        [turn].into_iter().chain((0..self.options.geometry.shape().dies).map(DieIdx))
    }

    /// A die that has room, or can be given some: `turn` itself, or the first other one. A die on
    /// which nothing can be gained loses its turn (OFC §IV.C: the round robin is relaxed where dies
    /// differ).
    #[cold]
    fn die_with_room(&mut self, turn: DieIdx, media: &mut impl Media) -> DieIdx {
        for die in self.dies_from(turn) {
            if self.has_room(die) || self.make_room(die, media) {
                return die;
            }
        }
        self.full()
    }

    /// No die can take a page: the books must be wrong, since a profile leaves room on all.
    #[cold]
    pub(crate) fn full(&self) -> ! {
        panic!(
            "no die can be collected to take a page: {} blocks free in all, {} reserved a die",
            self.blocks.free_blocks(),
            self.options.reserved_blocks
        )
    }

    /// Collect blocks of `die` until it has one more than its reserve. False where it has nothing to
    /// gain.
    #[cold]
    fn make_room(&mut self, die: DieIdx, media: &mut impl Media) -> bool {
        // Twice through the die, a policy has seen every block; what it did not gain then is held by
        // pages that came back to this die.
        for _ in 0..2 * self.options.geometry.shape().blocks_per_die {
            if !self.wants_collection(die) {
                return true;
            }
            let Some(collection) = self.begin_collection(die, media) else {
                return false;
            };
            self.collect_rest(collection, media);
        }
        !self.wants_collection(die)
    }

    /// Move what is left of a victim and erase it, in one go: nothing else happens meanwhile, so the
    /// victim's books are cleared at once.
    pub(crate) fn collect_rest(&mut self, mut collection: Collection, media: &mut impl Media) {
        let Collection { die, victim: block, .. } = collection;
        let mut pages = std::mem::take(&mut self.scratch);
        pages.clear();
        pages.extend(self.blocks.valid_pages(block));
        for page in &pages {
            self.prefetch(Lpn(self.reverse[page.0 as usize]));
        }
        self.blocks.clear(block);
        for page in &pages {
            let to = self.copy(Place { page: *page, block, die }, media);
            self.place(Lpn(self.reverse[page.0 as usize]), to);
            self.close_if_full(to.die, Stream::Relocated, media);
        }
        let moved = pages.len() as u32;
        self.scratch = pages;
        collection.moved += moved;
        collection.promised -= moved;
        self.promised -= moved;
        while let Some(item) = self.next_item(&mut collection) {
            self.relocate(&mut collection, item, media);
        }
        self.finish(&collection, media);
    }

    /// Choose a victim of `die`. `None` where nothing can be gained.
    pub(crate) fn begin_collection(
        &mut self,
        die: DieIdx,
        media: &mut impl Media,
    ) -> Option<Collection> {
        // Whatever is begun can be finished: a victim holds at most a block of pages.
        let most = self.options.geometry.data_pages();
        if !self.blocks.has_reclaimable(die)
            || self.blocks.pages_for_relocation() < self.promised + most
        {
            return None;
        }
        let victim = self.least_worn_due(die);
        let victim = victim.or_else(|| self.options.victims.choose(die, &self.blocks))?;
        self.blocks.begin_collection(victim);
        // The reverse map is read along the victim: have its lines at hand, 16 entries each.
        let first = self.options.geometry.first_page(victim).0 as usize;
        for line in (0..most as usize).step_by(16) {
            crate::huge::prefetch(&self.reverse, first + line);
        }
        media.begin_collection(victim, self.metadata_page(die, victim));
        self.since_static[die.0 as usize] += 1;
        let next = self.options.geometry.first_page(victim);
        let valid = u32::from(self.blocks.valid_count(victim));
        let promised = valid.max(self.options.relocate_at_least.min(most));
        self.promised += promised;
        Some(Collection { die, victim, next, moved: 0, promised })
    }

    /// The next page of the victim to move; `None` where all that is valid has moved.
    #[inline]
    pub(crate) fn next_item(&self, collection: &mut Collection) -> Option<Item> {
        let Collection { die, victim, next, moved, .. } = collection;
        let place = |page| Place { page, block: *victim, die: *die };
        if let Some(page) = self.blocks.next_valid(*victim, *next) {
            *next = Ppn(page.0 + 1);
            *moved += 1;
            // Asked for again when the page has been read: by then it is at hand.
            self.prefetch(Lpn(self.reverse[page.0 as usize]));
            return Some(Item { from: place(page), valid: true });
        }
        if *moved >= self.options.relocate_at_least.min(self.options.geometry.data_pages()) {
            return None;
        }
        *moved += 1;
        let page = self.options.geometry.first_page(*victim);
        Some(Item { from: place(page), valid: false })
    }

    /// Move a page. What the host wrote anew since it was chosen was read for nothing.
    #[inline]
    pub(crate) fn relocate(
        &mut self,
        collection: &mut Collection,
        item: Item,
        media: &mut impl Media,
    ) {
        let Item { from, valid } = item;
        collection.promised -= 1;
        self.promised -= 1;
        let page = Lpn(self.reverse[from.page.0 as usize]);
        if valid && self.map[page.0 as usize] != from.page.0 {
            media.read_for_nothing(from);
            return;
        }
        let to = self.copy(from, media);
        if valid {
            self.blocks.mark_invalid(from);
            self.place(page, to);
        }
        self.close_if_full(to.die, Stream::Relocated, media);
    }

    /// Program what is in `from` where relocated pages go; returns where.
    #[inline]
    fn copy(&mut self, from: Place, media: &mut impl Media) -> Place {
        let die = self.die_for_relocation(from.die);
        let to = self.blocks.take_page(die, Stream::Relocated);
        media.relocate(from, to);
        to
    }

    /// Erase the victim, which holds nothing valid any more.
    pub(crate) fn finish(&mut self, collection: &Collection, media: &mut impl Media) {
        self.promised -= collection.promised;
        media.erase(collection.victim);
        self.blocks.set_free(collection.victim);
    }

    /// The page at the end of `block` that holds its metadata, where the geometry has one.
    #[inline]
    fn metadata_page(&self, die: DieIdx, block: BlockIdx) -> Option<Place> {
        let geometry = &self.options.geometry;
        let page = Ppn(geometry.first_page(block).0 + geometry.data_pages());
        (geometry.shape().metadata_pages > 0).then_some(Place { page, block, die })
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
