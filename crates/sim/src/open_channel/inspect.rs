//! Read-only access to the inside of an open-channel device, for recordings and drawings.

use super::OpenChannelDevice;
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::timeline::log::{OpSource, Operations};

impl OpenChannelDevice {
    /// Record every flash operation from now on. Commands are numbered from here as well.
    ///
    /// # Panics
    /// If a command is outstanding.
    pub fn record_operations(&mut self) {
        assert!(self.outstanding.is_empty(), "no command may be outstanding");
        self.outstanding.number_from_here();
        // The host places the data: all work is for commands.
        self.timeline.begin_log(self.now, |_| OpSource::Other);
    }

    /// Note a command that was submitted at `begin` and ended at `end`: a long log keeps only the
    /// operations around the slowest.
    pub fn note_completion(&mut self, begin: u64, end: u64) {
        self.timeline.log_completion(begin, end);
    }

    /// Stop recording; return the operations since [`OpenChannelDevice::record_operations`].
    pub fn recorded_operations(&mut self) -> Operations {
        self.timeline.end_log()
    }

    /// Return the channel of each LUN; the channel index varies fastest.
    #[must_use]
    pub fn channels(&self) -> Vec<u32> {
        let luns = 0..self.geometry.channels * self.geometry.luns_per_channel;
        luns.map(|lun| lun % self.geometry.channels).collect()
    }

    /// Return channels, LUNs, pages per block, and bytes per page of one plane.
    #[must_use]
    pub fn shape(&self) -> [u32; 4] {
        let geometry = &self.geometry;
        let page_bytes = geometry.sectors_per_page * geometry.sector_bytes;
        let luns = geometry.channels * geometry.luns_per_channel;
        [geometry.channels, luns, geometry.pages_per_block, page_bytes]
    }

    /// Return the erase count of each block, LUN by LUN.
    #[must_use]
    pub fn erases(&self) -> Vec<u32> {
        let blocks = 0..self.flash.geometry.blocks();
        let erases = |block| self.flash.nand.erases(BlockIdx(block));
        blocks.map(|block| self.erases_before.saturating_add(erases(block))).collect()
    }

    /// Return the number of erased blocks per LUN without programmed pages.
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
