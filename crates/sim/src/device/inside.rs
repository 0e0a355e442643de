//! A look inside a device, for whoever records or draws it: what its blocks hold. Changes nothing.

use super::SimDevice;
use super::any::AnyBackend;
use crate::flash::geometry::{BlockIdx, DieIdx};

impl SimDevice {
    /// Channels, dies, data and metadata pages of a block, bytes of a page.
    #[must_use]
    pub fn shape(&self) -> [u32; 4] {
        let shape = self.flash.geometry.shape();
        [shape.channels, shape.dies, shape.pages_per_block, shape.page_bytes]
    }

    /// How often each block was erased, die after die.
    #[must_use]
    pub fn erases(&self) -> Vec<u32> {
        let blocks = 0..self.flash.geometry.blocks();
        blocks.map(|block| self.flash.nand.erases(BlockIdx(block))).collect()
    }

    /// How many blocks of each die are erased, and nothing is programmed in them.
    #[must_use]
    pub fn erased_blocks(&self) -> Vec<u32> {
        let (geometry, nand) = (&self.flash.geometry, &self.flash.nand);
        let erased = |die| {
            let blocks = geometry.blocks_of(DieIdx(die));
            blocks.filter(|block| nand.is_erased(*block)).count() as u32
        };
        (0..geometry.shape().dies).map(erased).collect()
    }

    /// How many valid pages each block has that was filled, and `None` for any other; nothing where the
    /// FTL keeps no book of them, as a merging one.
    #[must_use]
    pub fn valid_pages(&self) -> Option<Vec<Option<u16>>> {
        let AnyBackend::Paged(paged) = &self.backend else { return None };
        let blocks = 0..self.flash.geometry.blocks();
        Some(blocks.map(|block| paged.ftl().valid_in(BlockIdx(block))).collect())
    }
}
