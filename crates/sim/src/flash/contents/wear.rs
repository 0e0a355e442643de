//! How often blocks were erased, as their spare areas say: known of every block in which a page can be read.
//!
//! **Source**: T. Gleixner, F. Haverkamp, A. Bityutskiy, UBI, Unsorted Block Images (2006): the erase counter is in the
//! header of its block, and one that was lost is taken to be the mean of the others.
//! **Faithful**: a count is programmed with the first page of its block, and gone when that is erased.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use super::{Cell, Contents};
use crate::flash::geometry::BlockIdx;

impl Contents {
    /// Per block: how often it was erased, as far as that can be read; the mean of those where it cannot.
    pub(crate) fn erases_found(&self) -> Vec<u32> {
        let known = |block: BlockIdx| {
            let mut pages = self.on_flash[self.pages_of(block)].iter();
            let readable = pages.any(|cell| matches!(cell, Cell::Nothing | Cell::Holds { .. }));
            readable.then(|| self.labels_on_flash[block.0 as usize].erases)
        };
        let known: Vec<Option<u32>> =
            (0..self.geometry.blocks()).map(BlockIdx).map(known).collect();
        let sum: u64 = known.iter().flatten().map(|erases| u64::from(*erases)).sum();
        let mean = sum / (known.iter().flatten().count() as u64).max(1);
        known.iter().map(|erases| erases.unwrap_or(mean as u32)).collect()
    }

    /// The FTL takes `block` to have been erased so often.
    pub(crate) fn know_erases(&mut self, erases: impl Fn(BlockIdx) -> u32) {
        for (block, known) in (0..).map(BlockIdx).zip(&mut self.erases) {
            *known = erases(block);
        }
    }
}
