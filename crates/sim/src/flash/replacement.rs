//! Block replacement: how a controller handles failed blocks if its FTL has an offset for every page of a
//! block, and cannot use a block that lacks some. On flash that must be programmed in order, pages are mapped
//! as well ([`InOrder`]).
//!
//! ```text
//! blocks of the FTL     0   1   2   3                     of every plane
//!                       │   │   │   └──────────────┐
//! physical blocks       0   ✗   2   3 ✗            │      1 is bad from the factory, 3 has failed
//!                           └── 4 …  in reserve    5
//! ```
//!
//! A merging FTL sees the blocks of a plane without those in reserve, and does not notice a replacement.
//! After a failed program, the programmed pages of the block are copied to its replacement. A block that
//! cannot be erased, or has worn pages, is replaced when it is empty.
//!
//! **Source**: bad blocks replaced out of a reserve, as data sheets of NAND flash require (Micron TN-29-59,
//! Bad Block Management); retirement of whole blocks OFC (2011) §IV.C.
//! **Faithful**: a block is replaced by one of its plane, so that parallel operations stay parallel.
//! **Simplified**: the table takes no flash of its own; all programmed pages are copied, valid or not; the
//! reserve does not wear before it is used.
//! **Ambiguous**: when a device ends: here when a plane has no block left to replace another with.

use serde::{Deserialize, Serialize};

use super::geometry::{BlockIdx, Geometry, PageAddress, PlaneIdx, Ppn};
use super::plan::{FlashPlan, PageRow, RowPiece};
use crate::flash::levelling::Levelling;

/// The replacement table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReplacementTable {
    /// The device as the FTL sees it: fewer blocks a plane.
    logical: Geometry,
    physical: Vec<BlockIdx>,
    /// Every block is its own physical block.
    is_identity: bool,
    /// Per plane: unused blocks; the last is the next.
    reserve: Vec<Vec<BlockIdx>>,
    /// A block with worn pages is replaced; otherwise only failures are.
    pub(super) retire_worn: bool,
    /// A block has failed, and its plane had no replacement left.
    pub(super) used_up: bool,
    /// Page tables, if pages must be programmed in order while the FTL writes in any order.
    in_order: Option<InOrder>,
    /// Wear levelling, which swaps blocks.
    levelling: Option<Box<Levelling>>,
    /// The content of the flash is tracked: notes are recorded, and execution stops when `used_up`.
    pub(super) records_notes: bool,
    #[serde(skip)]
    pub(super) notes: Vec<Note>,
    /// The last plan; reused to avoid allocation, and boxed, since it is taken out for every write.
    #[serde(skip)]
    pub(super) planned: Option<Box<FlashPlan>>,
    #[serde(skip)]
    pieces: Vec<RowPiece>,
}

impl ReplacementTable {
    /// Create the table for an FTL that sees `logical` of `whole`, whose `bad` blocks cannot be used; `None` if
    /// a plane has fewer good blocks than the FTL sees.
    pub(crate) fn new(
        logical: Geometry,
        whole: &Geometry,
        bad: &[BlockIdx],
        retire_worn: bool,
    ) -> Option<ReplacementTable> {
        let (mut physical, mut reserve) = (Vec::new(), Vec::new());
        let needed = logical.shape().blocks_per_plane as usize;
        for plane in (0..whole.shape().planes).map(PlaneIdx) {
            let good_blocks =
                whole.blocks_of(plane).filter(|block| bad.binary_search(block).is_err());
            let mut good: Vec<BlockIdx> = good_blocks.collect();
            if good.len() < needed {
                return None;
            }
            let mut spare = good.split_off(needed);
            spare.reverse();
            physical.extend(good);
            reserve.push(spare);
        }
        let (used_up, in_order, levelling, planned) = (false, None, None, None);
        let (is_identity, records_notes, notes) = (false, false, Vec::new());
        Some(ReplacementTable {
            logical,
            physical,
            is_identity,
            reserve,
            retire_worn,
            used_up,
            in_order,
            levelling,
            records_notes,
            notes,
            planned,
            pieces: Vec::new(),
        })
    }

    /// Create a table without replacements: every block of the FTL is its own physical block.
    pub(crate) fn identity(logical: Geometry) -> ReplacementTable {
        let replacements =
            ReplacementTable::new(logical, &logical, &[], false).expect("no block is bad");
        ReplacementTable { is_identity: true, ..replacements }
    }

    /// Return this table with pages programmed in order.
    pub(crate) fn in_order(self) -> ReplacementTable {
        ReplacementTable { in_order: Some(InOrder::new(&self.logical)), ..self }
    }

    /// Return this table with wear levelling.
    pub(crate) fn levelled(self, dynamic: bool, static_threshold: u32) -> ReplacementTable {
        let levelling = Levelling::new(self.logical, dynamic, static_threshold);
        ReplacementTable { levelling: Some(Box::new(levelling)), ..self }
    }

    /// Return the physical block of `block`.
    #[inline]
    pub(super) fn block(&self, block: BlockIdx) -> BlockIdx {
        self.physical[block.0 as usize]
    }

    /// Return the address in `whole` of the FTL's page at `address`.
    #[inline(always)]
    pub(crate) fn physical_address(&self, address: PageAddress, whole: &Geometry) -> PageAddress {
        if self.is_identity && self.in_order.as_ref().is_none_or(|table| table.is_in_place(address))
        {
            return address;
        }
        let own_offset = || self.logical.page_in_block(address);
        let page = self.in_order.as_ref().map_or_else(own_offset, |table| table.page(address));
        whole.address_at(self.block(address.block), page)
    }

    /// Note that the FTL's page at `address` is programmed next.
    #[inline]
    pub(super) fn allocate(&mut self, address: PageAddress) {
        if let Some(table) = &mut self.in_order {
            table.allocate(address);
        }
        if let Some(levelling) = &mut self.levelling
            && let Some(other) = levelling.programmed(address.block)
        {
            self.swap(address.block, other);
        }
    }

    /// Return whether `row` can move piece by piece: no block is replaced, its pages are at their own
    /// offsets in the source and will be in the target, and no notes are recorded.
    #[inline]
    pub(super) fn collect_pieces(&mut self, row: &PageRow) -> bool {
        let is_minimal = self.is_identity && self.levelling.is_none() && !self.records_notes;
        let Some(table) = self.in_order.as_ref().filter(|_| is_minimal) else { return false };
        self.pieces.clear();
        for piece in row.pieces() {
            match piece.filter(|piece| table.can_move(piece)) {
                Some(piece) => self.pieces.push(piece),
                None => return false,
            }
        }
        true
    }

    /// Move its pieces, and return them.
    #[inline]
    pub(super) fn take_pieces(&mut self) -> &[RowPiece] {
        let table = self.in_order.as_mut().expect("pages are programmed in order");
        self.pieces.iter().for_each(|piece| table.record_move(piece));
        &self.pieces
    }

    /// Swap the physical blocks of two blocks.
    pub(super) fn swap(&mut self, one: BlockIdx, other: BlockIdx) {
        self.physical.swap(one.0 as usize, other.0 as usize);
        self.is_identity = false;
    }

    /// Record that the physical block of `block` is erased, with the erase count `wear`.
    pub(super) fn is_erased(&mut self, block: BlockIdx, wear: u32) {
        if let Some(levelling) = &mut self.levelling {
            levelling.is_erased(block, wear);
        }
    }

    /// Return the source block, and the erased block that receives its data, if static levelling moves data
    /// after the erase of `block`. If a copy may fail, the plane must have a replacement left. `wear` returns
    /// the erase count of a block.
    pub(super) fn next_levelling_move(
        &mut self,
        block: BlockIdx,
        may_fail: bool,
        wear: impl Fn(BlockIdx) -> u32,
    ) -> Option<(BlockIdx, BlockIdx)> {
        let ReplacementTable { levelling, physical, reserve, logical, .. } = self;
        let levelling = levelling.as_mut()?;
        let is_safe = !may_fail || !reserve[logical.plane_of(block).0 as usize].is_empty();
        is_safe.then(|| levelling.next_move(block, |block| wear(physical[block.0 as usize])))?
    }

    /// Restore the programmed pages of the FTL's `block`; returns their number, if pages are programmed in
    /// order under an FTL that writes in any order.
    pub(super) fn rebuild(
        &mut self,
        block: BlockIdx,
        programmed: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let table = self.in_order.as_mut()?;
        Some(table.rebuild_block(block, programmed))
    }

    /// Restore the table after a power loss. `named` is the physical block of each of the FTL's blocks, if
    /// its label is readable. `erased` blocks replace the others, and the rest is in reserve; `wear` returns
    /// the erase count of a block.
    pub(super) fn reset_after_power_loss(
        &mut self,
        named: &[Option<BlockIdx>],
        erased: &[BlockIdx],
        whole: &Geometry,
        wear: impl Fn(BlockIdx) -> u32,
    ) {
        self.used_up = false;
        self.reserve.iter_mut().for_each(Vec::clear);
        for block in erased.iter().rev() {
            self.reserve[whole.plane_of(*block).0 as usize].push(*block);
        }
        for (logical, by) in (0..).map(BlockIdx).zip(named) {
            if let Some(by) = by.or_else(|| self.next(logical)) {
                self.physical[logical.0 as usize] = by;
            }
        }
        let physical = &self.physical;
        self.is_identity = (0..).map(BlockIdx).zip(physical).all(|(logical, by)| logical == *by);
        self.in_order = self.in_order.take().map(|_| InOrder::new(&self.logical));
        if let Some(levelling) = &mut self.levelling {
            levelling.reset_after_power_loss(|logical| match named[logical.0 as usize] {
                Some(_) => None,
                None => Some(wear(physical[logical.0 as usize])),
            });
        }
    }

    /// Return whether a table stores the addresses of the pages of a block.
    pub(super) fn is_by_table(&self) -> bool {
        self.in_order.is_some()
    }

    /// Record the erase of the FTL's `block`.
    pub(super) fn erased(&mut self, block: BlockIdx) {
        if let Some(table) = &mut self.in_order {
            table.erased(block);
        }
    }

    /// Take an unused block of the same plane as a replacement of `block`.
    pub(super) fn next(&mut self, block: BlockIdx) -> Option<BlockIdx> {
        let next = self.spare(block);
        self.used_up |= next.is_none();
        next
    }

    /// Like [`ReplacementTable::next`], but an empty reserve is not an end of life.
    pub(super) fn spare(&mut self, block: BlockIdx) -> Option<BlockIdx> {
        self.reserve[self.logical.plane_of(block).0 as usize].pop()
    }

    /// Add `erased`, the former physical block of `block`, to the end of the reserve of its plane.
    pub(super) fn release(&mut self, block: BlockIdx, erased: BlockIdx) {
        self.reserve[self.logical.plane_of(block).0 as usize].insert(0, erased);
    }

    /// Return the FTL's block whose physical block is `block`, if any.
    pub(super) fn logical(&self, block: BlockIdx) -> Option<BlockIdx> {
        let at = self.physical.iter().position(|other| *other == block);
        at.map(|at| BlockIdx(at as u32))
    }

    /// Make `by` the physical block of `block`.
    pub(super) fn replace(&mut self, block: BlockIdx, by: BlockIdx) {
        self.physical[block.0 as usize] = by;
        self.is_identity = false;
    }
}

// Page tables of blocks that must be programmed in order, under an FTL that writes in any order.
//
// ```text
// pages of the FTL              0   1   2   3   4   5        written: 2, 3, 0
// programmed pages              2   3   0   ·   ·   ·        the table: 0 → 2, 2 → 0, 3 → 1
// ```
//
// A merging FTL has an offset for every page of a block, and writes to these offsets in any order; the flash
// may require one page after the other. A page is therefore programmed on the next page of its block, and a
// table stores where. Apart from that the FTL sees no difference. A block that is filled from its first page
// on has every page at its own offset.
//
// **Source**: NFTL programs the pages of a replacement unit one after the other if pages have spare areas
// that store their logical address (Gal & Toledo, ACM Computing Surveys 2005, §2.2, after Ban's patent US
// 5,937,425); data sheets of NAND flash: "the pages must be programmed consecutively" within a block.
// **Faithful**: pages of a block one after the other, without gaps.
// **Simplified**: the table is in memory; after a power loss the logical offset of a page is known, but not
// its physical page within the block.
// **Ambiguous**: nothing.

/// The tables of all blocks of an FTL. A block with every page at its own offset has no table.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct InOrder {
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
    fn is_in_place(&self, address: PageAddress) -> bool {
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
    fn can_move(&self, piece: &RowPiece) -> bool {
        let RowPiece { from, to, first, pages } = *piece;
        let BlockFill { table, next } = self.blocks[from.0 as usize];
        let is_in_place = table == NONE && first + pages <= u32::from(next);
        let BlockFill { table, next } = self.blocks[to.0 as usize];
        is_in_place && table == NONE && first == u32::from(next)
    }

    /// Record the move of `piece`, which [`InOrder::can_move`] accepted.
    #[inline]
    fn record_move(&mut self, piece: &RowPiece) {
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
    fn rebuild_block(&mut self, block: BlockIdx, programmed: impl Fn(u32) -> bool) -> u32 {
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

// Notes of executed operations on a device that replaces blocks: one for each program and each erase, in
// order, for the recorded content of the flash. An executed plan gives the physical addresses; a note gives
// their meaning for the FTL.

/// A program or an erase.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// The FTL's page `to` was programmed in the physical block `by`, or that failed.
    Program { to: PageAddress, by: BlockIdx, holds: PageContent, fails: bool },
    /// The next of `pages` pages of `old` was copied to `into`. `failed`: `old` also has a page whose program
    /// failed. `ends`: the move that this copy completes, if any.
    Copy { old: BlockIdx, into: BlockIdx, pages: u32, failed: bool, ends: Option<BlockMove> },
    /// The physical block `block`, which was the block `logical` of the FTL if any, was erased, or that failed.
    Erase { logical: Option<BlockIdx>, block: BlockIdx, fails: bool },
    /// The block is retired, and listed as a defect of its plane.
    List(BlockIdx),
}

/// The content of a programmed page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageContent {
    Host,
    /// A copy of another page, as the FTL numbers pages.
    Page(Ppn),
    Map,
    Nothing,
}

/// All pages of the FTL's block `logical` were copied, except the content of `failed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockMove {
    pub(crate) logical: BlockIdx,
    pub(crate) failed: Option<PageAddress>,
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
