//! Where the pages of a block are that is programmed in order, whatever the FTL writes first.
//!
//! ```text
//! what an FTL knows      page   0   1   2   3   4   5        written: 2, 3, 0
//! what is programmed     page   2   3   0   ·   ·   ·        the table: 0 → 2, 2 → 0, 3 → 1
//! ```
//!
//! An FTL that merges has a place for every page of a block, and writes to these places in any order; the
//! flash may ask for one page after the other. So a page goes to the next one of its block, and a table says
//! where it is. It is not written at its place, but it is in its block, and nothing else is different for
//! the FTL. A block that is filled from its first page on has every page at its place.
//!
//! **Source**: NFTL programs the pages of a replacement unit one after the other where pages have spare
//! areas that say what they hold (Gal & Toledo, ACM Computing Surveys 2005, §2.2, after Ban's patent US
//! 5,937,425); data sheets of NAND flash: "the pages must be programmed consecutively" within a block.
//! **Faithful**: pages of a block one after the other, none left out.
//! **Simplified**: the table is in memory; after power was lost a page is known by its place, and which one of
//! its block that was is not.
//! **Ambiguous**: nothing.

use serde::{Deserialize, Serialize};

use crate::flash::geometry::{BlockIdx, Geometry, Place};
use crate::flash::moves::Piece;

/// The tables of all blocks that an FTL knows. One of which every page is at its place has none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct InOrder {
    pages_per_block: u32,
    blocks: Vec<Filled>,
    /// Tables: per page which one of its block holds it, or [`NOWHERE`]; and those that are of no block.
    tables: Vec<Vec<u16>>,
    unused: Vec<u32>,
}

/// How far a block is filled: so many pages were programmed, and its table, or [`NONE`]. Together: both are
/// asked for at once.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Filled {
    table: u32,
    next: u16,
}

const ERASED: Filled = Filled { table: NONE, next: 0 };
const NONE: u32 = u32::MAX;
const NOWHERE: u16 = u16::MAX;

impl InOrder {
    /// Those of erased blocks.
    pub(super) fn new(known: &Geometry) -> InOrder {
        InOrder {
            pages_per_block: known.shape().pages_per_block,
            blocks: vec![ERASED; known.blocks() as usize],
            tables: Vec::new(),
            unused: Vec::new(),
        }
    }

    /// Whether what belongs to `place` is there.
    #[inline]
    pub(super) fn is_there(&self, place: Place) -> bool {
        let Filled { table, next } = self.blocks[place.block.0 as usize];
        table == NONE && self.offset(place) < u32::from(next)
    }

    /// Which page of its block holds what belongs to `place`, which was programmed.
    pub(super) fn page(&self, place: Place) -> u32 {
        let offset = self.offset(place);
        if self.is_there(place) {
            return offset;
        }
        let at = match self.blocks[place.block.0 as usize].table {
            NONE => NOWHERE,
            table => self.tables[table as usize][offset as usize],
        };
        assert!(at != NOWHERE, "a page that was not programmed is nowhere: {place:?}");
        at.into()
    }

    /// What belongs to `place` goes to the next page of its block.
    #[inline]
    pub(super) fn take(&mut self, place: Place) {
        let offset = self.offset(place);
        let block = &mut self.blocks[place.block.0 as usize];
        let next = block.next;
        block.next += 1;
        if block.table != NONE || offset != u32::from(next) {
            self.take_elsewhere(place.block, offset, next);
        }
    }

    /// Whether the pages of `piece` are at their places in the block that they leave, and will be in the other one.
    #[inline]
    pub(super) fn moves(&self, piece: &Piece) -> bool {
        let Piece { from, to, first, pages } = *piece;
        let Filled { table, next } = self.blocks[from.0 as usize];
        let is_there = table == NONE && first + pages <= u32::from(next);
        let Filled { table, next } = self.blocks[to.0 as usize];
        is_there && table == NONE && first == u32::from(next)
    }

    /// What [`InOrder::moves`] has moved.
    #[inline]
    pub(super) fn took(&mut self, piece: &Piece) {
        self.blocks[piece.to.0 as usize].next += piece.pages as u16;
    }

    /// What belongs to page `offset` of `block` is on its page `next`.
    #[inline(never)]
    fn take_elsewhere(&mut self, block: BlockIdx, offset: u32, next: u16) {
        if self.blocks[block.0 as usize].table == NONE {
            self.blocks[block.0 as usize].table = self.table_in_order(next);
        }
        let table = self.blocks[block.0 as usize].table;
        let at = &mut self.tables[table as usize][offset as usize];
        assert!(
            *at == NOWHERE,
            "a page is programmed once before its block is erased: {offset} of {block:?}"
        );
        *at = next;
    }

    /// `block` was erased.
    pub(super) fn erased(&mut self, block: BlockIdx) {
        let Filled { table, .. } = std::mem::replace(&mut self.blocks[block.0 as usize], ERASED);
        self.unused.extend(Some(table).filter(|table| *table != NONE));
    }

    /// Power was lost: those pages of `block` are there of which `programmed` says so, and are taken to have
    /// been programmed in the order of their places. Returns how many there are.
    pub(super) fn found(&mut self, block: BlockIdx, programmed: impl Fn(u32) -> bool) -> u32 {
        self.erased(block);
        let kept: Vec<u32> =
            (0..self.pages_per_block).filter(|offset| programmed(*offset)).collect();
        let next = kept.len() as u32;
        let mut table = NONE;
        if kept.last().is_some_and(|last| *last >= next) {
            table = self.table_in_order(0);
            for (page, offset) in (0..).zip(&kept) {
                self.tables[table as usize][*offset as usize] = page;
            }
        }
        self.blocks[block.0 as usize] = Filled { table, next: next as u16 };
        next
    }

    #[inline]
    fn offset(&self, place: Place) -> u32 {
        place.page.0 - place.block.0 * self.pages_per_block
    }

    /// A table of a block whose first pages are at their places, and the others nowhere.
    fn table_in_order(&mut self, pages: u16) -> u32 {
        let table = self.unused.pop().unwrap_or_else(|| {
            self.tables.push(vec![NOWHERE; self.pages_per_block as usize]);
            self.tables.len() as u32 - 1
        });
        let at = &mut self.tables[table as usize];
        let (first, others) = at.split_at_mut(pages.into());
        (0..).zip(first).for_each(|(page, at)| *at = page);
        others.fill(NOWHERE);
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::geometry::Shape;

    #[test]
    fn a_page_is_where_it_was_programmed_and_nowhere_after_an_erase() {
        let geometry = Geometry::from(Shape {
            channels: 1,
            planes: 1,
            blocks_per_plane: 2,
            pages_per_block: 6,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 6,
        });
        let place = |page| geometry.place(BlockIdx(1), page);
        let mut table = InOrder::new(&geometry);
        [0, 2, 3, 1].into_iter().for_each(|page| table.take(place(page)));
        assert_eq!([0, 2, 3, 1].map(|page| table.page(place(page))), [0, 1, 2, 3]);
        table.erased(BlockIdx(1));
        table.take(place(5));
        table.take(place(0));
        assert_eq!([5, 0].map(|page| table.page(place(page))), [0, 1]);
        assert!(std::panic::catch_unwind(|| table.page(place(2))).is_err());
    }
}
