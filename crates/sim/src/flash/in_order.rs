//! Page tables of blocks that must be programmed in order, under an FTL that writes in any order.
//!
//! ```text
//! pages of the FTL              0   1   2   3   4   5        written: 2, 3, 0
//! programmed pages              2   3   0   ·   ·   ·        the table: 0 → 2, 2 → 0, 3 → 1
//! ```
//!
//! A merging FTL has an offset for every page of a block, and writes to these offsets in any order; the flash
//! may require one page after the other. A page is therefore programmed on the next page of its block, and a
//! table stores where. Apart from that the FTL sees no difference. A block that is filled from its first page
//! on has every page at its own offset.
//!
//! **Source**: NFTL programs the pages of a replacement unit one after the other if pages have spare areas
//! that store their logical address (Gal & Toledo, ACM Computing Surveys 2005, §2.2, after Ban's patent US
//! 5,937,425); data sheets of NAND flash: "the pages must be programmed consecutively" within a block.
//! **Faithful**: pages of a block one after the other, without gaps.
//! **Simplified**: the table is in memory; after a power loss the logical offset of a page is known, but not
//! its physical page within the block.
//! **Ambiguous**: nothing.

use serde::{Deserialize, Serialize};

use crate::flash::geometry::{BlockIdx, Geometry, PageAddress};
use crate::flash::moves::RowPiece;

/// The tables of all blocks of an FTL. A block with every page at its own offset has no table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct InOrder {
    pages_per_block: u32,
    blocks: Vec<BlockFill>,
    /// Tables: per page of the FTL its physical page in the block, or [`UNMAPPED`]; and the unused tables.
    tables: Vec<Vec<u16>>,
    unused: Vec<u32>,
}

/// The fill state of a block: its number of programmed pages, and its table, or [`NONE`]. Stored together
/// because both are read together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename = "Filled")]
struct BlockFill {
    table: u32,
    next: u16,
}

const ERASED: BlockFill = BlockFill { table: NONE, next: 0 };
const NONE: u32 = u32::MAX;
const UNMAPPED: u16 = u16::MAX;

impl InOrder {
    /// Create the tables of erased blocks.
    pub(super) fn new(logical: &Geometry) -> InOrder {
        InOrder {
            pages_per_block: logical.shape().pages_per_block,
            blocks: vec![ERASED; logical.blocks() as usize],
            tables: Vec::new(),
            unused: Vec::new(),
        }
    }

    /// Return whether the page of the FTL at `address` is programmed at its own offset.
    #[inline]
    pub(super) fn is_in_place(&self, address: PageAddress) -> bool {
        let BlockFill { table, next } = self.blocks[address.block.0 as usize];
        table == NONE && self.offset(address) < u32::from(next)
    }

    /// Return the page of the block that holds the FTL's page at `address`, which was programmed.
    pub(super) fn page(&self, address: PageAddress) -> u32 {
        let offset = self.offset(address);
        if self.is_in_place(address) {
            return offset;
        }
        let at = match self.blocks[address.block.0 as usize].table {
            NONE => UNMAPPED,
            table => self.tables[table as usize][offset as usize],
        };
        assert!(at != UNMAPPED, "the page was not programmed: {address:?}");
        at.into()
    }

    /// Assign the FTL's page at `address` to the next page of its block.
    #[inline]
    pub(super) fn allocate(&mut self, address: PageAddress) {
        let offset = self.offset(address);
        let block = &mut self.blocks[address.block.0 as usize];
        let next = block.next;
        block.next += 1;
        if block.table != NONE || offset != u32::from(next) {
            self.allocate_out_of_place(address.block, offset, next);
        }
    }

    /// Return whether the pages of `piece` are at their own offsets in the source block, and will be in
    /// the target block.
    #[inline]
    pub(super) fn can_move(&self, piece: &RowPiece) -> bool {
        let RowPiece { from, to, first, pages } = *piece;
        let BlockFill { table, next } = self.blocks[from.0 as usize];
        let is_in_place = table == NONE && first + pages <= u32::from(next);
        let BlockFill { table, next } = self.blocks[to.0 as usize];
        is_in_place && table == NONE && first == u32::from(next)
    }

    /// Record the move of `piece`, which [`InOrder::can_move`] accepted.
    #[inline]
    pub(super) fn record_move(&mut self, piece: &RowPiece) {
        self.blocks[piece.to.0 as usize].next += piece.pages as u16;
    }

    /// Record that the FTL's page `offset` of `block` is on its page `next`.
    #[inline(never)]
    fn allocate_out_of_place(&mut self, block: BlockIdx, offset: u32, next: u16) {
        if self.blocks[block.0 as usize].table == NONE {
            self.blocks[block.0 as usize].table = self.table_in_order(next);
        }
        let table = self.blocks[block.0 as usize].table;
        let at = &mut self.tables[table as usize][offset as usize];
        assert!(
            *at == UNMAPPED,
            "a page is programmed once before its block is erased: {offset} of {block:?}"
        );
        *at = next;
    }

    /// Clear the table of `block`, which was erased.
    pub(super) fn erased(&mut self, block: BlockIdx) {
        let BlockFill { table, .. } = std::mem::replace(&mut self.blocks[block.0 as usize], ERASED);
        self.unused.extend(Some(table).filter(|table| *table != NONE));
    }

    /// Restore `block` after a power loss from its `programmed` pages, which are assumed to have been
    /// programmed in the order of their offsets. Returns their number.
    pub(super) fn rebuild_block(
        &mut self,
        block: BlockIdx,
        programmed: impl Fn(u32) -> bool,
    ) -> u32 {
        self.erased(block);
        let offsets: Vec<u32> =
            (0..self.pages_per_block).filter(|offset| programmed(*offset)).collect();
        let next = offsets.len() as u32;
        let mut table = NONE;
        if offsets.last().is_some_and(|last| *last >= next) {
            table = self.table_in_order(0);
            for (page, offset) in (0..).zip(&offsets) {
                self.tables[table as usize][*offset as usize] = page;
            }
        }
        self.blocks[block.0 as usize] = BlockFill { table, next: next as u16 };
        next
    }

    #[inline]
    fn offset(&self, address: PageAddress) -> u32 {
        address.page.0 - address.block.0 * self.pages_per_block
    }

    /// Return a table of a block whose first `pages` pages are at their own offsets, and the others unprogrammed.
    fn table_in_order(&mut self, pages: u16) -> u32 {
        let table = self.unused.pop().unwrap_or_else(|| {
            self.tables.push(vec![UNMAPPED; self.pages_per_block as usize]);
            self.tables.len() as u32 - 1
        });
        let at = &mut self.tables[table as usize];
        let (first, others) = at.split_at_mut(pages.into());
        (0..).zip(first).for_each(|(page, at)| *at = page);
        others.fill(UNMAPPED);
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::geometry::Shape;

    #[test]
    fn table_follows_programs_until_erase() {
        let geometry = Geometry::from(Shape {
            channels: 1,
            planes: 1,
            blocks_per_plane: 2,
            pages_per_block: 6,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 6,
        });
        let address = |page| geometry.address_at(BlockIdx(1), page);
        let mut table = InOrder::new(&geometry);
        [0, 2, 3, 1].into_iter().for_each(|page| table.allocate(address(page)));
        assert_eq!([0, 2, 3, 1].map(|page| table.page(address(page))), [0, 1, 2, 3]);
        table.erased(BlockIdx(1));
        table.allocate(address(5));
        table.allocate(address(0));
        assert_eq!([5, 0].map(|page| table.page(address(page))), [0, 1]);
        assert!(std::panic::catch_unwind(|| table.page(address(2))).is_err());
    }
}
