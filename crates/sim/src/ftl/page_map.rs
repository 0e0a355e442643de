//! The page-mapped FTL: any logical page on any physical page.
//!
//! **Source**: OFC (2011) §IV.B–C.
//! **Faithful**: full page-level map in memory; host and relocated pages through one write page
//! allocator; a victim's valid pages are moved and the block erased before a die runs out of the
//! blocks that are reserved for that.
//! **Simplified**: no metadata page at the end of a block; the map is never stored on flash.
//! **Ambiguous**: the report does not say when collection begins; here it begins when the die whose
//! turn it is needs a new block and has no more than `reserved_blocks` left, and goes on until it
//! has one more.

use crate::alloc::Allocator;
use crate::blocks::Blocks;
use crate::gc::VictimPolicy;
use crate::geometry::{BlockIdx, Geometry, Lpn, Ppn};
use crate::media::Media;

/// What a page map is made of.
pub(crate) struct PageMapOptions {
    pub(crate) geometry: Geometry,
    pub(crate) allocator: Box<dyn Allocator>,
    pub(crate) victims: Box<dyn VictimPolicy>,
    /// Free blocks that every die keeps for relocated pages, at least 1.
    pub(crate) reserved_blocks: usize,
}

/// Map, reverse map, and the books of blocks.
#[derive(Clone, Debug)]
pub(crate) struct PageMap {
    /// Per logical page: where it is; `NOWHERE` where it was never written.
    map: Vec<u32>,
    /// Per physical page: which logical page was programmed there last.
    reverse: Vec<u32>,
    blocks: Blocks,
    allocator: Box<dyn Allocator>,
    victims: Box<dyn VictimPolicy>,
    reserved_blocks: usize,
}

/// Inside the two arrays only; outside of them it is an `Option`.
const NOWHERE: u32 = u32::MAX;

impl PageMap {
    pub(crate) fn new(options: PageMapOptions) -> PageMap {
        let PageMapOptions {
            geometry,
            allocator,
            victims,
            reserved_blocks,
        } = options;
        PageMap {
            map: vec![NOWHERE; geometry.logical_pages as usize],
            reverse: vec![NOWHERE; geometry.pages() as usize],
            blocks: Blocks::new(geometry),
            allocator,
            victims,
            reserved_blocks,
        }
    }

    /// Where `page` is; `None` where it was never written.
    #[inline]
    pub(crate) fn lookup(&self, page: Lpn) -> Option<Ppn> {
        let at = self.map[page.0 as usize];
        (at != NOWHERE).then_some(Ppn(at))
    }

    /// Write `page`; where only a part of it is written, the rest is merged from its old version.
    #[inline]
    pub(crate) fn write(&mut self, page: Lpn, whole: bool, media: &mut impl Media) {
        self.make_room(media);
        let old = self.lookup(page);
        let to = self.take_page();
        media.program(to, if whole { None } else { old });
        if let Some(old) = old {
            self.blocks.mark_invalid(old);
        }
        self.place(page, to);
    }

    /// Free blocks of all dies.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.blocks.free_blocks()
    }

    /// Collect one block: move its valid pages, erase it. False where no block is closed.
    pub(crate) fn collect(&mut self, media: &mut impl Media) -> bool {
        let Some(victim) = self.victims.choose(&self.blocks) else {
            return false;
        };
        self.relocate_all(victim, media);
        media.erase(victim);
        self.blocks.set_free(victim);
        true
    }

    /// Collect until the die whose turn it is may take a page.
    #[inline]
    fn make_room(&mut self, media: &mut impl Media) {
        let mut collected = 0;
        loop {
            let die = self.allocator.next();
            if self.blocks.has_open_page(die) || self.blocks.free_in(die) > self.reserved_blocks {
                return;
            }
            let progress = self.collect(media);
            collected += 1;
            // Twice round the ring frees every invalid page there is; more cannot help.
            let limit = 2 * self.blocks.geometry().blocks();
            assert!(
                progress && collected <= limit,
                "collection makes no progress: {collected} blocks collected for {die:?}, which has \
                 {} free of {} reserved",
                self.blocks.free_in(die),
                self.reserved_blocks
            );
        }
    }

    fn relocate_all(&mut self, victim: BlockIdx, media: &mut impl Media) {
        if self.blocks.valid_count(victim) == 0 {
            return;
        }
        let geometry = self.blocks.geometry();
        let first = geometry.first_page(victim).0;
        for from in (first..first + geometry.pages_per_block).map(Ppn) {
            if !self.blocks.is_valid(from) {
                continue;
            }
            let to = self.take_page();
            media.relocate(from, to);
            self.blocks.mark_invalid(from);
            self.place(Lpn(self.reverse[from.0 as usize]), to);
        }
    }

    #[inline]
    fn take_page(&mut self) -> Ppn {
        let die = self
            .allocator
            .choose(&self.blocks)
            .expect("reserved blocks are left");
        let (page, filled) = self.blocks.take_page(die);
        if let Some(block) = filled {
            self.victims.closed(block);
        }
        page
    }

    #[inline]
    fn place(&mut self, page: Lpn, at: Ppn) {
        self.map[page.0 as usize] = at.0;
        self.reverse[at.0 as usize] = page.0;
        self.blocks.mark_valid(at);
    }

    /// Check that map, reverse map and books agree; for tests.
    ///
    /// # Panics
    /// Where they do not.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let geometry = self.blocks.geometry();
        let mut valid = vec![0; geometry.blocks() as usize];
        let mut mapped = 0;
        for (lpn, at) in self
            .map
            .iter()
            .enumerate()
            .filter(|(_, at)| **at != NOWHERE)
        {
            mapped += 1;
            assert_eq!(
                self.reverse[*at as usize] as usize, lpn,
                "the reverse map agrees"
            );
            assert!(self.blocks.is_valid(Ppn(*at)), "a mapped page is valid");
            valid[geometry.block_of(Ppn(*at)).0 as usize] += 1;
        }
        let bits = (0..geometry.pages())
            .filter(|page| self.blocks.is_valid(Ppn(*page)))
            .count();
        assert_eq!(bits, mapped, "as many valid pages as mapped ones");
        for block in (0..geometry.blocks()).map(BlockIdx) {
            assert_eq!(
                self.blocks.valid_count(block),
                valid[block.0 as usize],
                "{block:?}"
            );
        }
    }
}
