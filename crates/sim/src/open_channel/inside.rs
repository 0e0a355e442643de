//! A look inside an open-channel device, for whoever records or draws it. Changes nothing.

use super::OpenChannelDevice;
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::timeline::log::{Operations, Work};

impl OpenChannelDevice {
    /// Write down every operation of the flash from now on. Commands count from here as well.
    ///
    /// # Panics
    /// Where a command is under way.
    pub fn record_operations(&mut self) {
        assert!(self.under_way.is_empty(), "commands are numbered from where none is under way");
        self.under_way.number_from_here();
        // The host places the data: nothing is done for anybody else.
        self.timeline.begin_log(self.now, |_| Work::Other);
    }

    /// A command ended at `end` which was submitted at `begin`: of a long log, what happened beside the
    /// slowest is kept.
    pub fn note_completion(&mut self, begin: u64, end: u64) {
        self.timeline.completed(begin, end);
    }

    /// What was written down since [`OpenChannelDevice::record_operations`]; no more is.
    pub fn recorded_operations(&mut self) -> Operations {
        self.timeline.end_log()
    }

    /// The channel of each LUN, which are counted channel by channel: first the first of each.
    #[must_use]
    pub fn channels(&self) -> Vec<u32> {
        let luns = 0..self.geometry.channels * self.geometry.luns_per_channel;
        luns.map(|lun| lun % self.geometry.channels).collect()
    }

    /// Channels, LUNs, pages of a block, bytes of a page of one plane.
    #[must_use]
    pub fn shape(&self) -> [u32; 4] {
        let geometry = &self.geometry;
        let page_bytes = geometry.sectors_per_page * geometry.sector_bytes;
        let luns = geometry.channels * geometry.luns_per_channel;
        [geometry.channels, luns, geometry.pages_per_block, page_bytes]
    }

    /// How often each block was erased, LUN after LUN.
    #[must_use]
    pub fn erases(&self) -> Vec<u32> {
        let blocks = 0..self.flash.geometry.blocks();
        let erases = |block| self.flash.nand.erases(BlockIdx(block));
        blocks.map(|block| self.erases_before.saturating_add(erases(block))).collect()
    }

    /// How many blocks of each LUN are erased, and nothing is programmed in them.
    #[must_use]
    pub fn erased_blocks(&self) -> Vec<u32> {
        let (geometry, nand) = (&self.flash.geometry, &self.flash.nand);
        let erased = |lun| {
            let blocks = geometry.blocks_of(PlaneIdx(lun));
            blocks.filter(|block| nand.is_erased(*block)).count() as u32
        };
        (0..geometry.shape().planes).map(erased).collect()
    }
}
