//! Copies of several pages at once from one block to another.

use super::{Nand, Violation};
use crate::collections::bits;
use crate::flash::geometry::{PageAddress, Ppn};
use crate::flash::moves::RowPiece;

impl Nand {
    /// Read and program pages at the same offsets of two blocks, on flash that is programmed in any order.
    /// `pages` selects them; its lowest bit stands for `from` and for `to`.
    #[inline]
    pub(crate) fn copy_word(&mut self, from: PageAddress, to: PageAddress, pages: u64) {
        let (source, target) = (from.page.0 as usize, to.page.0 as usize);
        let length = 64 - pages.leading_zeros() as usize;
        if length == 0 {
            return;
        }
        let missing = pages & !bits::word(&self.programmed, source, length);
        if missing != 0 {
            let page = Ppn(from.page.0 + missing.trailing_zeros());
            self.fail_violation(Violation::Unwritten, PageAddress { page, ..from });
        }
        let already_programmed = pages & bits::word(&self.programmed, target, length);
        if already_programmed != 0 {
            let page = Ppn(to.page.0 + already_programmed.trailing_zeros());
            self.fail_violation(Violation::OutOfOrder, PageAddress { page, ..to });
        }
        bits::insert_word(&mut self.programmed, target, pages);
    }

    /// Read and program the pages of `piece`, on flash that is programmed in order and has no retired page.
    #[inline]
    pub(crate) fn copy_piece(&mut self, piece: &RowPiece) {
        let RowPiece { from, to, first, pages } = *piece;
        let address = |block, page| self.geometry.address_at(block, page);
        let (last, begin) = (address(from, first + pages - 1), address(to, first));
        self.read(last);
        if let Err(violation) = self.try_program(begin, pages) {
            self.fail_violation(violation, begin);
        }
    }
}
