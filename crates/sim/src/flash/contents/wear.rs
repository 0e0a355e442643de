//! Erase counts from spare areas: known for every block with a readable page.
//!
//! **Source**: T. Gleixner, F. Haverkamp, A. Bityutskiy, UBI, Unsorted Block Images (2006): the erase counter is in the
//! header of its block, and one that was lost is taken to be the mean of the others.
//! **Faithful**: a count is programmed with the first page of its block, and erased with the block.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use super::{Contents, PhysicalPage};
use crate::flash::geometry::BlockIdx;

impl Contents {
    /// Return the erase count of each block as far as it can be read; otherwise the mean of the readable
    /// ones.
    pub(crate) fn estimated_erases(&self) -> Vec<u32> {
        let known_erases = |block: BlockIdx| {
            let mut pages = self.on_flash[self.pages_of(block)].iter();
            let readable = pages
                .any(|cell| matches!(cell, PhysicalPage::Nothing | PhysicalPage::Holds { .. }));
            readable.then(|| self.labels_on_flash[block.0 as usize].erases)
        };
        let erases: Vec<Option<u32>> =
            (0..self.geometry.blocks()).map(BlockIdx).map(known_erases).collect();
        let sum: u64 = erases.iter().flatten().map(|erases| u64::from(*erases)).sum();
        let mean = sum / (erases.iter().flatten().count() as u64).max(1);
        erases.iter().map(|erases| erases.unwrap_or(mean as u32)).collect()
    }

    /// Set the erase counts that the FTL has.
    pub(crate) fn set_erases(&mut self, erases: impl Fn(BlockIdx) -> u32) {
        for (block, erases_of) in (0..).map(BlockIdx).zip(&mut self.erases) {
            *erases_of = erases(block);
        }
    }
}
