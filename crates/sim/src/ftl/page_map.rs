//! The page-mapped FTL: any logical page on any physical page.
//!
//! **Source**: OFC (2011) §IV.B–E.
//! **Faithful**: full page-level map in memory; a write page allocator for host and relocated pages;
//! one metadata page at the end of a block where the geometry has it, written when the block is full
//! and read when it is collected; dynamic and static wear levelling.
//! **Simplified**: the map is never stored on flash; `dftl` does that (`dftl.rs`), on the same
//! machinery.
//! **Ambiguous**: the report does not say when collection begins; here a die begins when the host has
//! opened the last block that it may (no more than `reserved_blocks` are left), so that it has the
//! time in which that block is filled, and goes on until it has one more. Figure 5(a)'s fixed number
//! of relocated pages "independently of the actual number of still valid pages" loses data where more
//! are valid; both readings are here: a least number (what is valid is always moved, and pages that
//! are not valid are moved on top), and exactly that number, whose surplus is given up.

use super::dftl::{MapOnFlash, MappingOptions};
use super::retirement::{Retirement, RetirementOptions};
use crate::alloc::Allocator;
use crate::blocks::{Blocks, FreeOrder, Stream, Streams};
use crate::gc::Victims;
use crate::geometry::{BlockIdx, DieIdx, Geometry, Lpn, Place, Ppn};
use crate::media::CollectMedia;

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
    /// See the header on figure 5(a).
    pub(crate) load: RelocationLoad,
    /// The map is kept on flash (DFTL).
    pub(crate) mapping: Option<MappingOptions>,
    /// Blocks and pages are retired; they wear out.
    pub(crate) retirement: Option<RetirementOptions>,
}

/// How many pages of a victim are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum RelocationLoad {
    /// What is valid, and others on top where those are fewer than this; 0: what is valid.
    AtLeast(u32),
    /// So many; what else is valid is lost. An artificial load, for figure 5(a) only.
    Exactly(u32),
}

impl RelocationLoad {
    /// From how many pages on they are moved for nothing, or not moved.
    fn number(self) -> u32 {
        match self {
            RelocationLoad::AtLeast(number) | RelocationLoad::Exactly(number) => number,
        }
    }
}

/// Map, reverse map, and the books of blocks.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct PageMap {
    /// Per logical page: where it is; `NOWHERE` where it was never written. Mapping pages follow
    /// those of the host.
    #[serde(with = "crate::huge::flat")]
    map: Vec<u32>,
    /// Per physical page: which logical page was programmed there last.
    #[serde(with = "crate::huge::flat")]
    reverse: Vec<u32>,
    pub(super) blocks: Blocks,
    pub(super) options: PageMapOptions,
    /// Costs of a map that is kept on flash.
    pub(super) on_flash: Option<Box<MapOnFlash>>,
    /// What was retired, where flash wears out.
    pub(super) retirement: Option<Box<Retirement>>,
    /// Per die: erases since the least-worn block was last looked for.
    since_static: Vec<u32>,
    /// Pages that collections under way may still have to move; the host leaves room for them.
    pub(super) promised: u32,
    /// The valid pages of a victim; kept so that nothing is allocated.
    pub(super) scratch: Vec<Ppn>,
}

/// A block being collected. Whoever holds it decides when its next page moves.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Collection {
    pub(crate) die: DieIdx,
    pub(crate) victim: BlockIdx,
    next: Ppn,
    moved: u32,
    /// Where its pages go.
    stream: Stream,
    /// Pages that it may still have to move.
    promised: u32,
    /// Mapping pages that it may still have to program.
    promised_mapping: u32,
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
        let retirement = options.retirement.as_ref();
        let (bad, least) = match retirement {
            Some(of) => (&of.bad[..], of.usable_pages_min.clamp(1, geometry.data_pages())),
            None => (&[][..], geometry.data_pages()),
        };
        let on_flash = options.mapping.map(|mapping| Box::new(MapOnFlash::new(&geometry, mapping)));
        let mapping_pages = on_flash.as_ref().map_or(0, |kept| kept.mapping_pages());
        let pages = geometry.shape().logical_pages + mapping_pages;
        let streams = Streams { separate: options.separate, mapping: on_flash.is_some() };
        PageMap {
            map: crate::huge::filled(pages as usize, NOWHERE),
            reverse: crate::huge::filled(geometry.pages() as usize, NOWHERE),
            blocks: Blocks::new(geometry, streams, options.free_order, bad, least),
            on_flash,
            retirement: retirement.map(|options| Box::new(Retirement::new(options.clone()))),
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

    /// Where `page` is, for a read of it: where the map is on flash, its entry is fetched first.
    #[inline]
    pub(crate) fn find(&mut self, page: Lpn, media: &mut impl CollectMedia) -> Option<Place> {
        if self.on_flash.is_some() {
            self.need_entry(page, self.has_room_to_read(), media);
        }
        self.lookup(page)
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
    ///
    /// Where no die can take it, nothing is written and the device is read-only.
    #[inline]
    pub(crate) fn write(&mut self, page: Lpn, whole: bool, media: &mut impl CollectMedia) {
        let turn = self.turn();
        let die = if self.has_room(turn) { Some(turn) } else { self.die_with_room(turn, media) };
        let Some(die) = die else { return self.end_of_life() };
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
        if self.on_flash.is_some() {
            return self.has_room_with_map(opens);
        }
        let needed = self.promised + self.blocks.cost_of_host_page(opens);
        self.blocks.pages_for_relocation() >= needed
    }

    /// Write `page` to `die`, which has room. False where programs fail until no die has a page left:
    /// then nothing is written, and the device is read-only.
    #[inline]
    pub(crate) fn write_to(
        &mut self,
        mut die: DieIdx,
        page: Lpn,
        whole: bool,
        media: &mut impl CollectMedia,
    ) -> bool {
        if self.on_flash.is_some() {
            self.need_entry(page, true, media);
            // Mapping pages that could not be programmed may have taken what there was.
            if !self.blocks.has_page(die, Stream::Host) {
                match self.die_for(None, Stream::Host) {
                    Some(other) => die = other,
                    None => return self.refuse(),
                }
            }
        }
        let mut to = self.blocks.take_page(die, Stream::Host);
        let old = self.lookup(page);
        while !media.program(to, if whole { None } else { old }) {
            match self.page_instead(to, Stream::Host, media) {
                Some(page) => to = page,
                None => return self.refuse(),
            }
        }
        if let Some(old) = old {
            self.invalidate(old);
        }
        self.place(page, to);
        if let Some(kept) = &mut self.on_flash {
            kept.changed(page);
        }
        self.close_if_full(to.die, Stream::Host, media);
        true
    }

    /// Nothing can be written any more.
    #[cold]
    fn refuse(&mut self) -> bool {
        self.end_of_life();
        false
    }

    /// `page` holds nothing any more (TRIM).
    pub(crate) fn trim(&mut self, page: Lpn) {
        if let Some(old) = self.lookup(page) {
            self.invalidate(old);
            self.forget(page);
        }
    }

    /// `page` is nowhere any more.
    fn forget(&mut self, page: Lpn) {
        self.map[page.0 as usize] = NOWHERE;
        if let Some(kept) = &mut self.on_flash {
            kept.changed(page);
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
    fn die_with_room(&mut self, turn: DieIdx, media: &mut impl CollectMedia) -> Option<DieIdx> {
        self.dies_from(turn).find(|die| self.has_room(*die) || self.make_room(*die, media))
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
    fn make_room(&mut self, die: DieIdx, media: &mut impl CollectMedia) -> bool {
        // Twice through the die, a policy has seen every block; what it did not gain then is held by
        // pages that came back to this die.
        for _ in 0..2 * self.options.geometry.shape().blocks_per_die {
            if self.has_made_room(die) {
                return true;
            }
            let Some(collection) = self.begin_collection(die, media) else {
                return false;
            };
            self.collect_rest(collection, media);
        }
        self.has_made_room(die)
    }

    fn has_made_room(&self, die: DieIdx) -> bool {
        !self.wants_collection(die) && (self.on_flash.is_none() || self.has_room(die))
    }

    /// Move what is left of a victim and erase it, in one go: nothing else happens meanwhile, so the
    /// victim's books are cleared at once.
    pub(crate) fn collect_rest(
        &mut self,
        mut collection: Collection,
        media: &mut impl CollectMedia,
    ) {
        let Collection { die, victim: block, stream, .. } = collection;
        self.give_up_surplus(&collection, media);
        let mut pages = std::mem::take(&mut self.scratch);
        pages.clear();
        pages.extend(self.blocks.valid_pages(block));
        for page in &pages {
            self.prefetch(Lpn(self.reverse[page.0 as usize]));
        }
        self.blocks.clear(block);
        collection.next = Ppn(self.options.geometry.first_page(block).0
            + self.options.geometry.shape().pages_per_block);
        for page in &pages {
            let from = Place { page: *page, block, die };
            let Some(to) = self.copy(from, stream, media) else {
                self.blocks.mark_valid(from);
                continue;
            };
            let page = Lpn(self.reverse[page.0 as usize]);
            self.place(page, to);
            self.moved(&collection, page);
            self.close_if_full(to.die, stream, media);
        }
        collection.moved += pages.len() as u32;
        self.spend(&mut collection, pages.len() as u32);
        self.scratch = pages;
        while let Some(item) = self.next_item(&mut collection) {
            self.relocate(&mut collection, item, media);
        }
        self.finish(&collection, media);
    }

    /// Choose a victim of `die`. `None` where nothing can be gained.
    pub(crate) fn begin_collection(
        &mut self,
        die: DieIdx,
        media: &mut impl CollectMedia,
    ) -> Option<Collection> {
        if !self.blocks.has_reclaimable(die) {
            return None;
        }
        let (victim, stream) = self.choose_victim(die)?;
        self.blocks.begin_collection(victim);
        // The reverse map is read along the victim: have its lines at hand, 16 entries each.
        let first = self.options.geometry.first_page(victim).0 as usize;
        for line in (0..self.options.geometry.data_pages() as usize).step_by(16) {
            crate::huge::prefetch(&self.reverse, first + line);
        }
        media.begin_collection(victim, self.metadata_page(die, victim));
        self.since_static[die.0 as usize] += 1;
        let next = self.options.geometry.first_page(victim);
        let mut collection =
            Collection { die, victim, next, moved: 0, stream, promised: 0, promised_mapping: 0 };
        self.promise(&mut collection);
        Some(collection)
    }

    /// The next victim of `die`, and where its pages go. Whatever is begun can be finished: a victim
    /// holds at most a block of pages.
    fn choose_victim(&mut self, die: DieIdx) -> Option<(BlockIdx, Stream)> {
        let most = self.options.geometry.data_pages();
        if self.on_flash.is_some() {
            if let Some(victim) = self.mapping_victim(die) {
                return Some((victim, Stream::Mapping));
            }
            if !self.has_room_to_collect() {
                return None;
            }
        } else if self.blocks.pages_for_relocation() < self.promised + most {
            return None;
        }
        if let Some(victim) = self.least_worn_due(die) {
            let of_map = self.on_flash.as_mut().is_some_and(|kept| kept.remove(die, victim));
            if !of_map {
                self.options.victims.remove(die, victim);
            }
            return Some((victim, if of_map { Stream::Mapping } else { Stream::Relocated }));
        }
        let victim = self.options.victims.choose(die, &self.blocks)?;
        Some((victim, Stream::Relocated))
    }

    /// Set aside the pages that `collection` may need.
    fn promise(&mut self, collection: &mut Collection) {
        let most = self.options.geometry.data_pages();
        let valid = u32::from(self.blocks.valid_count(collection.victim));
        if collection.stream == Stream::Mapping {
            collection.promised_mapping = valid;
        } else {
            let number = self.options.load.number().min(most);
            collection.promised = match self.options.load {
                RelocationLoad::AtLeast(_) => valid.max(number),
                RelocationLoad::Exactly(_) => number,
            };
            let kept = self.on_flash.as_ref();
            collection.promised_mapping =
                kept.map_or(0, |kept| collection.promised.min(kept.mapping_pages()));
        }
        self.promised += collection.promised;
        if let Some(kept) = &mut self.on_flash {
            kept.promised += collection.promised_mapping;
        }
    }

    /// `collection` has moved so many of the pages that it promised.
    #[inline]
    fn spend(&mut self, collection: &mut Collection, pages: u32) {
        match (&mut self.on_flash, collection.stream) {
            (Some(kept), Stream::Mapping) => {
                collection.promised_mapping -= pages;
                kept.promised -= pages;
            }
            _ => {
                collection.promised -= pages;
                self.promised -= pages;
            }
        }
    }

    /// `page` has moved to another place by `collection`.
    #[inline]
    fn moved(&mut self, collection: &Collection, page: Lpn) {
        if let (Some(kept), Stream::Relocated) = (&mut self.on_flash, collection.stream) {
            kept.moved(collection.die, page);
        }
    }

    /// What `collection` does not move although it is valid is lost; see [`RelocationLoad::Exactly`].
    fn give_up_surplus(&mut self, collection: &Collection, media: &mut impl CollectMedia) {
        let (RelocationLoad::Exactly(number), Stream::Relocated) =
            (self.options.load, collection.stream)
        else {
            return;
        };
        let left = number.saturating_sub(collection.moved) as usize;
        let mut pages = std::mem::take(&mut self.scratch);
        pages.clear();
        pages.extend(self.blocks.valid_pages(collection.victim).skip(left));
        let Collection { victim: block, die, .. } = *collection;
        for page in &pages {
            self.blocks.mark_invalid(Place { page: *page, block, die });
            self.forget(Lpn(self.reverse[page.0 as usize]));
        }
        media.give_up(pages.len() as u32);
        self.scratch = pages;
    }

    /// The next page of the victim to move; `None` where all that is valid has moved.
    #[inline]
    pub(crate) fn next_item(&self, collection: &mut Collection) -> Option<Item> {
        let Collection { die, victim, next, moved, stream, .. } = collection;
        let number = self.options.load.number().min(self.options.geometry.data_pages());
        let loaded = *stream == Stream::Relocated;
        let exactly = matches!(self.options.load, RelocationLoad::Exactly(_));
        if loaded && exactly && *moved >= number {
            return None;
        }
        let place = |page| Place { page, block: *victim, die: *die };
        if let Some(page) = self.blocks.next_valid(*victim, *next) {
            *next = Ppn(page.0 + 1);
            *moved += 1;
            // Asked for again when the page has been read: by then it is at hand.
            self.prefetch(Lpn(self.reverse[page.0 as usize]));
            return Some(Item { from: place(page), valid: true });
        }
        if !loaded || *moved >= number {
            return None;
        }
        *moved += 1;
        let page = self.blocks.first_usable(*victim);
        Some(Item { from: place(page), valid: false })
    }

    /// Move a page. What the host wrote anew since it was chosen was read for nothing.
    #[inline]
    pub(crate) fn relocate(
        &mut self,
        collection: &mut Collection,
        item: Item,
        media: &mut impl CollectMedia,
    ) {
        let Item { from, valid } = item;
        self.spend(collection, 1);
        let page = Lpn(self.reverse[from.page.0 as usize]);
        if valid && self.map[page.0 as usize] != from.page.0 {
            media.read_for_nothing(from);
            return;
        }
        let Some(to) = self.copy(from, collection.stream, media) else { return };
        if valid {
            self.blocks.mark_invalid(from);
            self.place(page, to);
            self.moved(collection, page);
        }
        self.close_if_full(to.die, collection.stream, media);
    }

    /// Program what is in `from` to a page of `stream`; returns where. `None` where no die can take a
    /// page any more: the page stays where it is.
    #[inline]
    fn copy(
        &mut self,
        from: Place,
        stream: Stream,
        media: &mut impl CollectMedia,
    ) -> Option<Place> {
        let die = self.die_for(Some(from.die), stream)?;
        let mut to = self.blocks.take_page(die, stream);
        while !media.relocate(from, to) {
            to = self.page_instead(to, stream, media)?;
        }
        Some(to)
    }

    /// Erase the victim, which holds nothing valid any more.
    pub(crate) fn finish(&mut self, collection: &Collection, media: &mut impl CollectMedia) {
        self.promised -= collection.promised;
        self.give_up_surplus(collection, media);
        if self.on_flash.is_some() {
            self.write_moved(collection.die, collection.promised_mapping, media);
        }
        // What could not be moved for want of pages stays, and its block with it.
        if self.blocks.valid_count(collection.victim) > 0 {
            return self.end_of_life();
        }
        let erased = media.erase(collection.victim);
        self.reuse(collection.die, collection.victim, erased, media);
    }

    /// The page at the end of `block` that holds its metadata, where the geometry has one.
    #[inline]
    pub(super) fn metadata_page(&self, die: DieIdx, block: BlockIdx) -> Option<Place> {
        let geometry = &self.options.geometry;
        let page = Ppn(geometry.first_page(block).0 + geometry.data_pages());
        (geometry.shape().metadata_pages > 0).then_some(Place { page, block, die })
    }

    #[inline]
    pub(super) fn die_for(&mut self, home: Option<DieIdx>, stream: Stream) -> Option<DieIdx> {
        if self.on_flash.is_some()
            && !self.may_open(stream)
            && let Some(die) = self.die_with_open_page(stream)
        {
            return Some(die);
        }
        match home {
            Some(home) if self.options.same_die && self.blocks.has_page(home, stream) => Some(home),
            _ => {
                let die = self.options.allocator.choose_with_page(&self.blocks, stream);
                assert!(
                    die.is_some() || self.retirement.is_some(),
                    "the reserved blocks of all dies hold what a victim holds"
                );
                die
            }
        }
    }

    /// Close the block of the page that was just taken from `die`, where that page filled it up.
    #[inline]
    pub(super) fn close_if_full(
        &mut self,
        die: DieIdx,
        stream: Stream,
        media: &mut impl CollectMedia,
    ) {
        if let Some(block) = self.blocks.close_if_full(die, stream) {
            if let Some(page) = self.metadata_page(die, block)
                && !media.program_metadata(page)
            {
                self.program_failed(block);
            }
            // Only now, with its last page accounted for, may it be chosen.
            match (&mut self.on_flash, stream) {
                (Some(kept), Stream::Mapping) => kept.closed(die, block),
                _ => self.options.victims.closed(die, block, self.blocks.valid_count(block)),
            }
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
    pub(super) fn place(&mut self, page: Lpn, at: Place) {
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
