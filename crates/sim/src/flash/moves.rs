//! Page moves that plans store beside their commands.

use std::ops::Range;

use crate::flash::geometry::{BlockIdx, PageAddress};
use crate::flash::page_addresses::PageAddresses;

/// A range of the data that a plan stores beside its commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Span")]
pub(crate) struct PlanSpan {
    first: u32,
    length: u32,
}

/// The index of a row in a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct RowIdx(pub(super) u32);

/// A page to program, and the page that it is copied from; `None`: from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Move {
    pub(crate) from: Option<PageAddress>,
    pub(crate) to: PageAddress,
}

impl PlanSpan {
    pub(super) fn new(first: usize, end: usize) -> PlanSpan {
        PlanSpan { first: first as u32, length: (end - first) as u32 }
    }

    /// Return the range as indices.
    #[inline]
    pub(super) fn range(self) -> Range<usize> {
        let first = self.first as usize;
        first..first + self.length as usize
    }
}

/// At most 64 pages that move from their offset in one unit to their offset in another: the lowest bit of
/// `pages` stands for the first offset of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Row")]
pub(crate) struct PageRow {
    pub(crate) from: PageAddresses,
    pub(crate) to: PageAddresses,
    pub(crate) pages: u64,
}

/// Consecutive pages of a row within one block, from `first` on, that move to the same offsets of another
/// block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowPiece {
    pub(crate) from: BlockIdx,
    pub(crate) to: BlockIdx,
    pub(crate) first: u32,
    pub(crate) pages: u32,
}

impl PageRow {
    /// Return the source and the target of each page, in order.
    #[inline]
    pub(crate) fn moves(&self) -> impl Iterator<Item = (PageAddress, PageAddress)> + use<> {
        let PageRow { from, to, pages } = *self;
        let length = 64 - pages.leading_zeros() as usize;
        let pairs = (0..length).zip(from.zip(to));
        pairs.filter(move |(at, _)| pages >> at & 1 == 1).map(|(_, pairs)| pairs)
    }

    /// Return the moves plane by plane; `None` in place of moves that do not form a [`RowPiece`].
    #[inline]
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Option<RowPiece>> + use<> {
        let PageRow { from, to, pages } = *self;
        let planes = from.planes;
        let aligned =
            (from.plane_offset, from.page, planes) == (to.plane_offset, to.page, to.planes);
        // The pages on the plane that has the first of them.
        let every = (0..64).step_by(planes as usize).fold(0, |every: u64, at| every | 1 << at);
        let of_plane = (0..planes.min(64)).map(move |at| (at, pages & (every << at)));
        of_plane.filter(|(_, pages)| *pages != 0).map(move |(at, pages)| {
            let (first, count) = (pages.trailing_zeros(), pages.count_ones());
            // As many consecutive pages as possible.
            let dense = every & u64::MAX >> (63 - (count - 1) * planes);
            let is_dense = pages >> first == dense;
            // Divides only if necessary.
            let before = if first == at { 0 } else { (first - at) / planes };
            let next = from.plane_offset + at >= planes;
            let plane = from.plane_offset + at - if next { planes } else { 0 };
            let page = from.page + before + u32::from(next);
            let ends_inside = page + count <= from.pages_per_block;
            let block = |addresses: &PageAddresses| {
                let plane = addresses.first_plane + plane * addresses.planes_apart;
                BlockIdx(plane * addresses.blocks_per_plane + addresses.block)
            };
            let piece = RowPiece { from: block(&from), to: block(&to), first: page, pages: count };
            (aligned && is_dense && ends_inside).then_some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn addresses(planes: u32, block: u32, page: u32, turn: u32) -> PageAddresses {
        let (planes_apart, first_plane, blocks_per_plane, pages_per_block) = (2, 1, 8, 16);
        let turn = turn % planes;
        PageAddresses {
            first_plane,
            planes_apart,
            planes,
            blocks_per_plane,
            pages_per_block,
            block,
            page,
            plane_offset: turn,
        }
    }

    proptest! {
        /// Moves plane by plane equal moves page by page, in the order of each plane.
        #[test]
        fn row_pieces_match_moves(
            planes in 1u32..9, page in (0u32..16, 0u32..2), turn in (0u32..8, 0u32..2), pages in any::<u64>(),
            holes in any::<bool>(), length in 1u32..64,
        ) {
            let from = addresses(planes, 2, page.0, turn.0);
            let to = addresses(planes, 5, (page.0 + page.1).min(15), turn.0 + turn.1);
            let pages = if holes { pages } else { u64::MAX >> (64 - length) };
            let row = PageRow { from, to, pages };
            prop_assert_eq!(row.moves().count(), pages.count_ones() as usize);
            let pieces: Option<Vec<RowPiece>> = row.pieces().collect();
            let Some(pieces) = pieces else { return Ok(()) };
            for piece in &pieces {
                let of_piece = row.moves().filter(|(from, _)| from.block == piece.from);
                let moves: Vec<(PageAddress, PageAddress)> = of_piece.collect();
                prop_assert_eq!(moves.len(), piece.pages as usize);
                for (page, (from, to)) in (piece.first..).zip(&moves) {
                    prop_assert_eq!(to.block, piece.to);
                    prop_assert_eq!(from.page.0, from.block.0 * 16 + page);
                    prop_assert_eq!(to.page.0, to.block.0 * 16 + page);
                }
            }
            prop_assert_eq!(pieces.iter().map(|piece| piece.pages).sum::<u32>(), pages.count_ones());
        }
    }

    #[test]
    fn whole_cluster_is_split_into_pieces() {
        let row = PageRow { from: addresses(4, 2, 3, 1), to: addresses(4, 5, 3, 1), pages: 0xffff };
        let pieces: Vec<_> = row.pieces().collect();
        assert_eq!(pieces.len(), 4);
        assert!(pieces.iter().all(|piece| piece.is_some_and(|piece| piece.pages == 4)));
        let other = PageRow { to: addresses(4, 5, 4, 1), ..row };
        assert!(other.pieces().all(|piece| piece.is_none()));
    }
}
