//! The rules of NAND flash, checked at every operation: erase before program, pages of a block in
//! order, no read of a page that was not programmed. A broken rule is a fault of the FTL, so it is a
//! panic with the state printed, never an error that could be overlooked.

use crate::geometry::{BlockIdx, Geometry, Place};

/// The state of all blocks.
#[derive(Clone, Debug)]
pub(crate) struct Nand {
    geometry: Geometry,
    /// Per block: the page that may be programmed next; `pages_per_block` where full.
    next_page: Vec<u16>,
    /// Per block: how often it was erased.
    erase_count: Vec<u32>,
}

impl Nand {
    /// A device as it comes from the factory: every block erased.
    pub(crate) fn new(geometry: Geometry) -> Nand {
        let blocks = geometry.blocks() as usize;
        Nand { geometry, next_page: vec![0; blocks], erase_count: vec![0; blocks] }
    }

    #[inline]
    pub(crate) fn program(&mut self, to: Place) {
        let in_block = self.geometry.page_in_block(to);
        let next = &mut self.next_page[to.block.0 as usize];
        if in_block != u32::from(*next) {
            broken_program(to, in_block, *next);
        }
        *next += 1;
    }

    #[inline]
    pub(crate) fn read(&self, from: Place) {
        let in_block = self.geometry.page_in_block(from);
        let next = self.next_page[from.block.0 as usize];
        if in_block >= u32::from(next) {
            broken_read(from, in_block, next);
        }
    }

    #[inline]
    pub(crate) fn erase(&mut self, block: BlockIdx) {
        self.next_page[block.0 as usize] = 0;
        self.erase_count[block.0 as usize] += 1;
    }

    /// Least, mean and most erases of a block.
    pub(crate) fn wear(&self) -> (u32, f64, u32) {
        let least = self.erase_count.iter().min().copied().unwrap_or(0);
        let most = self.erase_count.iter().max().copied().unwrap_or(0);
        let sum: u64 = self.erase_count.iter().map(|count| u64::from(*count)).sum();
        (least, sum as f64 / self.erase_count.len().max(1) as f64, most)
    }
}

// Kept out of the way of the hot path.
#[cold]
#[inline(never)]
fn broken_program(to: Place, in_block: u32, next: u16) -> ! {
    panic!(
        "program out of order or on an unerased page: {to:?} is page {in_block} of its block, whose \
         next page is {next}"
    )
}

#[cold]
#[inline(never)]
fn broken_read(from: Place, in_block: u32, next: u16) -> ! {
    panic!(
        "read of an unwritten page: {from:?} is page {in_block} of its block, of which {next} are \
         programmed"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Ppn, Shape};

    fn at(nand: &Nand, page: u32) -> Place {
        nand.geometry.place_of(Ppn(page))
    }

    fn program(nand: &mut Nand, page: u32) {
        nand.program(at(nand, page));
    }

    fn small() -> Nand {
        Nand::new(Geometry::from(Shape {
            channels: 1,
            dies: 1,
            blocks_per_die: 2,
            pages_per_block: 2,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 2,
        }))
    }

    #[test]
    fn a_block_can_be_programmed_again_after_an_erase() {
        let mut nand = small();
        program(&mut nand, 0);
        program(&mut nand, 1);
        nand.read(at(&nand, 1));
        nand.erase(BlockIdx(0));
        program(&mut nand, 0);
        assert_eq!(nand.wear(), (0, 0.5, 1));
    }

    #[test]
    #[should_panic(expected = "program out of order or on an unerased page")]
    fn a_page_is_not_programmed_twice() {
        let mut nand = small();
        program(&mut nand, 0);
        program(&mut nand, 0);
    }

    #[test]
    #[should_panic(expected = "program out of order")]
    fn pages_are_programmed_in_order() {
        program(&mut small(), 1);
    }

    #[test]
    #[should_panic(expected = "read of an unwritten page")]
    fn an_unwritten_page_is_not_read() {
        let mut nand = small();
        program(&mut nand, 0);
        nand.read(at(&nand, 1));
    }
}
