//! The rules of NAND flash, checked at every operation: erase before program, pages of a block in
//! order, no read of a page that was not programmed, and no use of bad or retired blocks and pages.
//!
//! If the host places data itself, a violated rule is the host's mistake: `try_program`, `check_read` and
//! `check_erase` return it as a [`Violation`], and change no state. Under an FTL it is a bug of the FTL:
//! `program`, `read` and `erase` panic with the state printed, so that no error can be overlooked.
//!
//! If pages are programmed in order and none is retired, one number per block is enough: the page that may be
//! programmed next. One comparison checks a program, one a read; all other cases are out of the hot path.

use super::geometry::{BlockIdx, Geometry, PageAddress, PlaneIdx, Ppn};
use super::plan::RowPiece;
use crate::collections::bits;

/// The order in which the pages of a block may be programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageOrder {
    /// One after the other, as MLC NAND and large SLC blocks demand.
    Ascending,
    /// Any order, each once, as the SLC NAND allowed for which block-mapped FTLs were designed.
    Any,
}

/// A violated rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Violation {
    /// A program that is not of the next page of its block, or of a page that is not erased.
    OutOfOrder,
    /// A read of a page that was not programmed.
    Unwritten,
    /// Use of a bad or retired block or page.
    Retired,
}

/// The state of all blocks.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Nand {
    geometry: Geometry,
    /// `next` of a block is not sufficient: pages are programmed in any order, or some are bad or retired.
    irregular: bool,
    /// Per block: the page that may be programmed next; the end of the block if it is full.
    next: Vec<u32>,
    /// Programmed pages, one bit each, if pages may be programmed in any order; otherwise empty.
    programmed: Vec<u64>,
    /// Per block: its erase count.
    erase_count: Vec<u32>,
    /// Bad or retired: pages, one bit each, and whole blocks. Each is empty while there is no such page or
    /// block.
    retired: Vec<u64>,
    bad: Vec<bool>,
}

impl Nand {
    /// Create a device in its factory state: every block erased.
    pub(crate) fn new(geometry: Geometry, order: PageOrder) -> Nand {
        let blocks = geometry.blocks() as usize;
        let words = match order {
            PageOrder::Ascending => 0,
            PageOrder::Any => geometry.pages().div_ceil(64) as usize,
        };
        Nand {
            geometry,
            irregular: order == PageOrder::Any,
            next: (0..geometry.blocks())
                .map(|block| geometry.first_page(BlockIdx(block)).0)
                .collect(),
            programmed: vec![0; words],
            erase_count: vec![0; blocks],
            retired: Vec::new(),
            bad: Vec::new(),
        }
    }

    /// Retire `block`.
    pub(crate) fn retire_block(&mut self, block: BlockIdx) {
        self.begin_retiring();
        self.bad[block.0 as usize] = true;
    }

    /// Retire `page`, which is erased.
    pub(crate) fn retire_page(&mut self, page: PageAddress) {
        self.begin_retiring();
        if self.retired.is_empty() {
            self.retired = vec![0; self.geometry.pages().div_ceil(64) as usize];
        }
        let (word, bit) = Nand::bit(page);
        self.retired[word] |= bit;
    }

    fn begin_retiring(&mut self) {
        self.irregular = true;
        if self.bad.is_empty() {
            self.bad = vec![false; self.geometry.blocks() as usize];
        }
    }

    fn is_retired(&self, page: PageAddress) -> bool {
        let (word, bit) = Nand::bit(page);
        self.bad[page.block.0 as usize]
            || self.retired.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Check that a page is neither bad nor retired.
    #[inline]
    fn check_usable(&self, page: PageAddress) -> Result<(), Violation> {
        let retired = !self.bad.is_empty() && self.is_retired(page);
        if retired { Err(Violation::Retired) } else { Ok(()) }
    }

    /// Return the word and the bit of `address`, for flash that is programmed in any order.
    #[inline]
    fn bit(address: PageAddress) -> (usize, u64) {
        (address.page.0 as usize / 64, 1 << (address.page.0 % 64))
    }

    #[inline]
    pub(crate) fn program(&mut self, to: PageAddress) {
        let next = &mut self.next[to.block.0 as usize];
        if self.irregular || to.page.0 != *next {
            return self.program_irregular(to.page, to.block);
        }
        *next += 1;
    }

    /// Programs in any order, with retired pages, or against the rules. Addresses are passed one by one: a
    /// [`PageAddress`] would have to be in memory in the hot path already.
    #[inline(never)]
    fn program_irregular(&mut self, page: Ppn, block: BlockIdx) {
        let to = self.geometry.address_in(block, page);
        if let Err(violation) = self.try_program(to, 1) {
            self.fail_violation(violation, to);
        }
    }

    /// Program `to` and the pages that follow, `pages` in all, if that is within the rules. On flash that is
    /// programmed in any order it is one page.
    #[inline]
    pub(crate) fn try_program(&mut self, to: PageAddress, pages: u32) -> Result<(), Violation> {
        let next = self.next[to.block.0 as usize];
        if self.irregular || to.page.0 != next {
            return self.try_irregular(to, pages);
        }
        self.next[to.block.0 as usize] = next + pages;
        Ok(())
    }

    #[inline(never)]
    fn try_irregular(&mut self, to: PageAddress, pages: u32) -> Result<(), Violation> {
        self.check_usable(to)?;
        if !self.programmed.is_empty() {
            let (word, bit) = Nand::bit(to);
            if self.programmed[word] & bit != 0 {
                return Err(Violation::OutOfOrder);
            }
            self.programmed[word] |= bit;
            return Ok(());
        }
        // Only retired pages may be skipped.
        let next = self.next[to.block.0 as usize];
        let left_out =
            |page| !self.bad.is_empty() && self.is_retired(PageAddress { page: Ppn(page), ..to });
        if to.page.0 < next || !(next..to.page.0).all(left_out) {
            return Err(Violation::OutOfOrder);
        }
        self.next[to.block.0 as usize] = to.page.0 + pages;
        Ok(())
    }

    #[inline]
    pub(crate) fn read(&self, from: PageAddress) {
        if self.irregular || from.page.0 >= self.next[from.block.0 as usize] {
            self.read_irregular(from.page, from.block);
        }
    }

    #[inline(never)]
    fn read_irregular(&self, page: Ppn, block: BlockIdx) {
        let from = self.geometry.address_in(block, page);
        if let Err(violation) = self.check_read(from) {
            self.fail_violation(violation, from);
        }
    }

    /// Check that `from` may be read.
    #[inline]
    pub(crate) fn check_read(&self, from: PageAddress) -> Result<(), Violation> {
        self.check_usable(from)?;
        let programmed = if self.programmed.is_empty() {
            from.page.0 < self.next[from.block.0 as usize]
        } else {
            let (word, bit) = Nand::bit(from);
            self.programmed[word] & bit != 0
        };
        if programmed { Ok(()) } else { Err(Violation::Unwritten) }
    }

    /// Return whether pages are programmed in order and none is retired: then a valid read of the
    /// last page of a block implies valid reads of those before it.
    #[inline]
    pub(crate) fn is_regular(&self) -> bool {
        !self.irregular
    }

    /// Panic: an FTL violated a rule.
    #[cold]
    fn fail_violation(&self, violation: Violation, address: PageAddress) -> ! {
        let problem = match violation {
            Violation::OutOfOrder => "program out of order or on an unerased page",
            Violation::Unwritten => "read of an unwritten page",
            Violation::Retired => "use of a bad or retired page",
        };
        panic!("{problem}: {address:?} is {}", self.state(address))
    }

    /// Describe the state of `address` and its block for a panic message.
    fn state(&self, address: PageAddress) -> String {
        let first = self.geometry.first_page(address.block).0;
        let next = match self.programmed.is_empty() {
            true => format!("whose next page is {}", self.next[address.block.0 as usize] - first),
            false => "which is programmed in any order".to_owned(),
        };
        let erases = self.erases(address.block);
        format!("page {} of its block, {next}, erased {erases} times", address.page.0 - first)
    }

    /// Check that `block` may be erased.
    #[inline]
    pub(crate) fn check_erase(&self, block: BlockIdx) -> Result<(), Violation> {
        let bad = !self.bad.is_empty() && self.bad[block.0 as usize];
        if bad { Err(Violation::Retired) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn erase(&mut self, block: BlockIdx) {
        if self.check_erase(block).is_err() {
            broken_erase(block);
        }
        self.next[block.0 as usize] = self.geometry.first_page(block).0;
        if !self.programmed.is_empty() {
            let first = self.geometry.first_page(block).0 as usize;
            let end = first + self.geometry.shape().pages_per_block as usize;
            bits::clear(&mut self.programmed, first, end);
        }
        self.erase_count[block.0 as usize] += 1;
    }

    /// Set the first `pages` pages of `block` as programmed or unusable (recovery).
    pub(crate) fn restore_programmed(&mut self, block: BlockIdx, pages: u32) {
        assert!(self.programmed.is_empty(), "pages are programmed in order");
        self.next[block.0 as usize] = self.geometry.first_page(block).0 + pages;
    }

    /// Set the programmed pages of `block`, on flash that is programmed in any order (recovery).
    pub(crate) fn restore_pages(&mut self, block: BlockIdx, programmed: impl Fn(u32) -> bool) {
        let pages = self.geometry.shape().pages_per_block;
        let first = self.geometry.first_page(block).0;
        bits::clear(&mut self.programmed, first as usize, (first + pages) as usize);
        let programmed_pages = (0..pages).filter(|page| programmed(*page));
        programmed_pages
            .for_each(|page| bits::insert(&mut self.programmed, (first + page) as usize));
    }

    /// Return whether pages of a block may be programmed in any order.
    pub(crate) fn is_in_any_order(&self) -> bool {
        !self.programmed.is_empty()
    }

    /// Return the erase count of `block`.
    #[inline]
    pub(crate) fn erases(&self, block: BlockIdx) -> u32 {
        self.erase_count[block.0 as usize]
    }

    /// Return the next page of `block` to program, on flash that is programmed in order.
    pub(crate) fn next_page(&self, block: BlockIdx) -> u32 {
        self.next[block.0 as usize] - self.geometry.first_page(block).0
    }

    /// Return whether `block` is usable and has no programmed page.
    pub(crate) fn is_erased(&self, block: BlockIdx) -> bool {
        let first = self.geometry.first_page(block).0;
        let usable = !self.bad.get(block.0 as usize).is_some_and(|bad| *bad);
        if self.programmed.is_empty() {
            return usable && self.next[block.0 as usize] == first;
        }
        let end = first + self.geometry.shape().pages_per_block;
        usable && bits::members(&self.programmed, first as usize, end as usize).next().is_none()
    }

    /// Return the programmed pages of `block`, by their number in it.
    pub(crate) fn programmed(&self, block: BlockIdx) -> Vec<u32> {
        let first = self.geometry.first_page(block).0;
        let end = first + self.geometry.shape().pages_per_block;
        if self.programmed.is_empty() {
            return (0..self.next[block.0 as usize] - first).collect();
        }
        let members = bits::members(&self.programmed, first as usize, end as usize);
        members.map(|page| page as u32 - first).collect()
    }

    /// Return the least, mean and most erases of a block.
    pub(crate) fn wear(&self) -> (u32, f64, u32) {
        let min = self.erase_count.iter().min().copied().unwrap_or(0);
        let max = self.erase_count.iter().max().copied().unwrap_or(0);
        let sum: u64 = self.erase_count.iter().map(|count| u64::from(*count)).sum();
        (min, sum as f64 / self.erase_count.len().max(1) as f64, max)
    }

    /// Return the number of erased blocks of each plane.
    pub(crate) fn erased_blocks(&self) -> Vec<u32> {
        let erased = |plane| {
            let blocks = self.geometry.blocks_of(PlaneIdx(plane));
            blocks.filter(|block| self.is_erased(*block)).count() as u32
        };
        (0..self.geometry.shape().planes).map(erased).collect()
    }
}

#[cold]
#[inline(never)]
fn broken_erase(block: BlockIdx) -> ! {
    panic!("erase of a bad or retired block: {block:?}")
}

// Copies of several pages at once from one block to another.

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

    // Retired blocks and pages found after a power loss.

    /// Set the retired blocks and pages, a bit each, and no others.
    pub(crate) fn restore_retired(&mut self, bad: &[bool], pages: &[u64]) {
        self.begin_retiring();
        (self.bad, self.retired) = (bad.to_vec(), pages.to_vec());
    }

    /// Return whether `block` is retired.
    pub(crate) fn is_bad(&self, block: BlockIdx) -> bool {
        self.bad.get(block.0 as usize).is_some_and(|bad| *bad)
    }

    /// Return whether `page` is retired individually.
    pub(crate) fn is_page_retired(&self, page: Ppn) -> bool {
        !self.retired.is_empty() && bits::has(&self.retired, page.0 as usize)
    }
}

/// The rules of flash, each violated once.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::geometry::Shape;

    fn at(nand: &Nand, page: u32) -> PageAddress {
        nand.geometry.address_of(Ppn(page))
    }

    fn program(nand: &mut Nand, page: u32) {
        nand.program(at(nand, page));
    }

    fn small() -> Nand {
        ordered(PageOrder::Ascending)
    }

    fn ordered(order: PageOrder) -> Nand {
        let geometry = Geometry::from(Shape {
            channels: 1,
            planes: 1,
            blocks_per_plane: 2,
            pages_per_block: 2,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 2,
        });
        Nand::new(geometry, order)
    }

    #[test]
    fn any_order_allows_programs_anywhere() {
        let mut nand = ordered(PageOrder::Any);
        program(&mut nand, 3);
        nand.read(at(&nand, 3));
        program(&mut nand, 2);
        nand.erase(BlockIdx(1));
        program(&mut nand, 3);
    }

    #[test]
    #[should_panic(expected = "on an unerased page")]
    fn any_order_refuses_second_program() {
        let mut nand = ordered(PageOrder::Any);
        program(&mut nand, 1);
        program(&mut nand, 1);
    }

    #[test]
    #[should_panic(expected = "read of an unwritten page")]
    fn any_order_refuses_read_of_erased_page() {
        let mut nand = ordered(PageOrder::Any);
        program(&mut nand, 1);
        nand.read(at(&nand, 0));
    }

    #[test]
    fn erased_block_is_programmable() {
        let mut nand = small();
        program(&mut nand, 0);
        program(&mut nand, 1);
        nand.read(at(&nand, 1));
        nand.erase(BlockIdx(0));
        program(&mut nand, 0);
        assert_eq!(nand.wear(), (0, 0.5, 1));
    }

    #[test]
    fn programs_skip_retired_pages() {
        let mut nand = small();
        nand.retire_page(at(&nand, 0));
        program(&mut nand, 1);
        nand.read(at(&nand, 1));
        nand.erase(BlockIdx(0));
        program(&mut nand, 1);
    }

    #[test]
    #[should_panic(expected = "use of a bad or retired page")]
    fn program_of_retired_page_is_refused() {
        let mut nand = small();
        nand.retire_page(at(&nand, 0));
        program(&mut nand, 0);
    }

    #[test]
    #[should_panic(expected = "program out of order")]
    fn only_retired_pages_are_skipped() {
        let mut nand = small();
        nand.retire_page(at(&nand, 0));
        program(&mut nand, 3);
    }

    #[test]
    #[should_panic(expected = "use of a bad or retired page")]
    fn program_of_bad_block_is_refused() {
        let mut nand = small();
        nand.retire_block(BlockIdx(1));
        program(&mut nand, 0);
        program(&mut nand, 2);
    }

    #[test]
    #[should_panic(expected = "use of a bad or retired page")]
    fn read_of_bad_block_is_refused() {
        let mut nand = small();
        program(&mut nand, 0);
        nand.retire_block(BlockIdx(0));
        nand.read(at(&nand, 0));
    }

    #[test]
    #[should_panic(expected = "erase of a bad or retired block")]
    fn erase_of_bad_block_is_refused() {
        let mut nand = small();
        nand.retire_block(BlockIdx(0));
        nand.erase(BlockIdx(0));
    }

    #[test]
    #[should_panic(expected = "program out of order or on an unerased page")]
    fn second_program_is_refused() {
        let mut nand = small();
        program(&mut nand, 0);
        program(&mut nand, 0);
    }

    #[test]
    #[should_panic(expected = "program out of order")]
    fn program_out_of_order_is_refused() {
        program(&mut small(), 1);
    }

    #[test]
    #[should_panic(expected = "read of an unwritten page")]
    fn read_of_erased_page_is_refused() {
        let mut nand = small();
        program(&mut nand, 0);
        nand.read(at(&nand, 1));
    }
}
