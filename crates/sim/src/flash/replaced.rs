//! Blocks that stand in for others: what a controller does about blocks that fail where its FTL has a
//! place for every page of a block, and none for a block that lacks some. Where flash asks for the pages of a
//! block in order, others stand in for pages as well ([`InOrder`]).
//!
//! ```text
//! what the FTL knows    0   1   2   3                     of every plane
//!                       │   │   │   └──────────────┐
//! what stands in        0   ✗   2   3 ✗            │      1 is bad from the factory, 3 has failed
//!                           └── 4 …  in reserve    5
//! ```
//!
//! An FTL that merges sees the blocks of a plane without those in reserve, and never hears that one was
//! replaced. What was programmed in a block of which a program failed is copied to the one that replaces
//! it; one that cannot be erased, or has worn pages, is replaced when it is empty.
//!
//! **Source**: bad blocks replaced out of a reserve, as data sheets of NAND flash ask for (Micron TN-29-59,
//! Bad Block Management); retirement of whole blocks OFC (2011) §IV.C.
//! **Faithful**: a block is replaced by one of its plane, so that what goes on side by side stays so.
//! **Simplified**: the table takes no flash of its own; everything that is programmed is copied, valid or not; the
//! reserve does not wear before it is used.
//! **Ambiguous**: when a device ends: here when a plane has none left to replace a block with.

use serde::{Deserialize, Serialize};

use crate::flash::done::Note;
use crate::flash::geometry::{BlockIdx, Geometry, Place, PlaneIdx};
use crate::flash::in_order::InOrder;
use crate::flash::levelling::Levelling;
use crate::flash::moves::{Piece, Row};
use crate::flash::plan::Plan;

/// Which block stands in for which.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Replaced {
    /// The device as the FTL knows it: fewer blocks a plane.
    known: Geometry,
    stands_in: Vec<BlockIdx>,
    /// Every block stands for itself.
    by_nothing: bool,
    /// Blocks that have not been used, per plane; the last is the next.
    reserve: Vec<Vec<BlockIdx>>,
    /// A block with worn pages is replaced; otherwise only one that fails.
    pub(super) retire_worn: bool,
    /// A block has failed, and its plane had none to replace it with.
    pub(super) used_up: bool,
    /// Where pages are that are programmed in order, whatever the FTL writes first.
    in_order: Option<InOrder>,
    /// Which blocks change places, so that all wear alike.
    levelling: Option<Box<Levelling>>,
    /// It is kept what is on flash: what is done is written down, and nothing more is done when `used_up`.
    pub(super) keeps_notes: bool,
    #[serde(skip)]
    pub(super) notes: Vec<Note>,
    /// What was planned last; kept, so that nothing is allocated, and apart, since it is taken out for every write.
    #[serde(skip)]
    pub(super) planned: Option<Box<Plan>>,
    #[serde(skip)]
    pieces: Vec<Piece>,
}

impl Replaced {
    /// For an FTL that knows `known` of `whole`, of whose blocks `bad` cannot be used; `None` where a plane
    /// has fewer good blocks than are known.
    pub(crate) fn new(
        known: Geometry,
        whole: &Geometry,
        bad: &[BlockIdx],
        retire_worn: bool,
    ) -> Option<Replaced> {
        let (mut stands_in, mut reserve) = (Vec::new(), Vec::new());
        let needed = known.shape().blocks_per_plane as usize;
        for plane in (0..whole.shape().planes).map(PlaneIdx) {
            let good = whole.blocks_of(plane).filter(|block| bad.binary_search(block).is_err());
            let mut good: Vec<BlockIdx> = good.collect();
            if good.len() < needed {
                return None;
            }
            let mut spare = good.split_off(needed);
            spare.reverse();
            stands_in.extend(good);
            reserve.push(spare);
        }
        let (used_up, in_order, levelling, planned) = (false, None, None, None);
        let (by_nothing, keeps_notes, notes) = (false, false, Vec::new());
        Some(Replaced {
            known,
            stands_in,
            by_nothing,
            reserve,
            retire_worn,
            used_up,
            in_order,
            levelling,
            keeps_notes,
            notes,
            planned,
            pieces: Vec::new(),
        })
    }

    /// Every block that an FTL knows stands for itself.
    pub(crate) fn by_nothing(known: Geometry) -> Replaced {
        let replaced = Replaced::new(known, &known, &[], false).expect("no block is bad");
        Replaced { by_nothing: true, ..replaced }
    }

    /// The same where the pages of a block are programmed in order.
    pub(crate) fn in_order(self) -> Replaced {
        Replaced { in_order: Some(InOrder::new(&self.known)), ..self }
    }

    /// The same where blocks change places by their wear.
    pub(crate) fn levelled(self, dynamic: bool, static_threshold: u32) -> Replaced {
        let levelling = Levelling::new(self.known, dynamic, static_threshold);
        Replaced { levelling: Some(Box::new(levelling)), ..self }
    }

    /// The block that stands in for `block`.
    #[inline]
    pub(super) fn block(&self, block: BlockIdx) -> BlockIdx {
        self.stands_in[block.0 as usize]
    }

    /// Where in `whole` the page is that the FTL knows as `place`.
    #[inline(always)]
    pub(crate) fn place(&self, place: Place, whole: &Geometry) -> Place {
        if self.by_nothing && self.in_order.as_ref().is_none_or(|table| table.is_there(place)) {
            return place;
        }
        let own = || self.known.page_in_block(place);
        let page = self.in_order.as_ref().map_or_else(own, |table| table.page(place));
        whole.place(self.block(place.block), page)
    }

    /// The page that the FTL knows as `place` is programmed next.
    #[inline]
    pub(super) fn take(&mut self, place: Place) {
        if let Some(table) = &mut self.in_order {
            table.take(place);
        }
        if let Some(levelling) = &mut self.levelling
            && let Some(other) = levelling.programs(place.block)
        {
            self.change_places(place.block, other);
        }
    }

    /// Whether `row` can move piece by piece: all blocks stand for themselves, its pages are at their places there, and
    /// will be here; and nobody wants to know of each.
    #[inline]
    pub(super) fn finds_pieces(&mut self, row: &Row) -> bool {
        let is_minimal = self.by_nothing && self.levelling.is_none() && !self.keeps_notes;
        let Some(table) = self.in_order.as_ref().filter(|_| is_minimal) else { return false };
        self.pieces.clear();
        for piece in row.pieces() {
            match piece.filter(|piece| table.moves(piece)) {
                Some(piece) => self.pieces.push(piece),
                None => return false,
            }
        }
        true
    }

    /// Its pieces move.
    #[inline]
    pub(super) fn take_pieces(&mut self) -> &[Piece] {
        let table = self.in_order.as_mut().expect("it moves piece by piece");
        self.pieces.iter().for_each(|piece| table.took(piece));
        &self.pieces
    }

    /// What stands in for one block stands in for the other.
    pub(super) fn change_places(&mut self, one: BlockIdx, other: BlockIdx) {
        self.stands_in.swap(one.0 as usize, other.0 as usize);
        self.by_nothing = false;
    }

    /// What stands in for `block` is erased, for the `wear`-th time.
    pub(super) fn is_erased(&mut self, block: BlockIdx, wear: u32) {
        if let Some(levelling) = &mut self.levelling {
            levelling.is_erased(block, wear);
        }
    }

    /// Whether data is to move now that `block` was erased: which block's, and which erased one takes it. Where that may
    /// fail, its plane has a block left to replace it with. `wear` says how often a block was erased.
    pub(super) fn levels(
        &mut self,
        block: BlockIdx,
        may_fail: bool,
        wear: impl Fn(BlockIdx) -> u32,
    ) -> Option<(BlockIdx, BlockIdx)> {
        let Replaced { levelling, stands_in, reserve, known, .. } = self;
        let levelling = levelling.as_mut()?;
        let is_safe = !may_fail || !reserve[known.plane_of(block).0 as usize].is_empty();
        is_safe.then(|| levelling.moves(block, |block| wear(stands_in[block.0 as usize])))?
    }

    /// Which of the pages that the FTL knows of `block` turn out to be programmed, `programmed` says; returns how
    /// many that are, where they are programmed in order whatever the FTL writes first.
    pub(super) fn found(
        &mut self,
        block: BlockIdx,
        programmed: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let table = self.in_order.as_mut()?;
        Some(table.found(block, programmed))
    }

    /// Power was lost: blocks say for which of those that the FTL knows they stand in, `named`, and `erased` ones for
    /// none. Those stand in for the others, and the rest is in reserve; `wear` says how often a block was erased.
    pub(super) fn begin_anew(
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
        for (known, by) in (0..).map(BlockIdx).zip(named) {
            if let Some(by) = by.or_else(|| self.next(known)) {
                self.stands_in[known.0 as usize] = by;
            }
        }
        let stands_in = &self.stands_in;
        self.by_nothing = (0..).map(BlockIdx).zip(stands_in).all(|(known, by)| known == *by);
        self.in_order = self.in_order.take().map(|_| InOrder::new(&self.known));
        if let Some(levelling) = &mut self.levelling {
            levelling.begin_anew(|known| match named[known.0 as usize] {
                Some(_) => None,
                None => Some(wear(stands_in[known.0 as usize])),
            });
        }
    }

    /// Whether a table says where the pages of a block are.
    pub(super) fn is_by_table(&self) -> bool {
        self.in_order.is_some()
    }

    /// What the FTL knows as `block` was erased.
    pub(super) fn erased(&mut self, block: BlockIdx) {
        if let Some(table) = &mut self.in_order {
            table.erased(block);
        }
    }

    /// A block of the same plane that may stand in for `block`, and has not been used.
    pub(super) fn next(&mut self, block: BlockIdx) -> Option<BlockIdx> {
        let next = self.spare(block);
        self.used_up |= next.is_none();
        next
    }

    /// The same where it is not missed if there is none.
    pub(super) fn spare(&mut self, block: BlockIdx) -> Option<BlockIdx> {
        self.reserve[self.known.plane_of(block).0 as usize].pop()
    }

    /// `erased`, which stood in for `block`, is in reserve, behind all others of its plane.
    pub(super) fn give_back(&mut self, block: BlockIdx, erased: BlockIdx) {
        self.reserve[self.known.plane_of(block).0 as usize].insert(0, erased);
    }

    /// What the FTL knows that `block` stands in for, if anything.
    pub(super) fn known(&self, block: BlockIdx) -> Option<BlockIdx> {
        let at = self.stands_in.iter().position(|other| *other == block);
        at.map(|at| BlockIdx(at as u32))
    }

    /// From now on `by` stands in for `block`.
    pub(super) fn replace(&mut self, block: BlockIdx, by: BlockIdx) {
        self.stands_in[block.0 as usize] = by;
        self.by_nothing = false;
    }
}
