//! Read-only access to the inside of a device, for recordings and drawings: contents of its blocks,
//! operations of its dies.

use super::SimDevice;
use super::any::AnyBackend;
use super::event::{DeviceEvent, EventTag};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::timeline::log::{OpSource, Operations};

impl SimDevice {
    /// Record every flash operation from now on. I/Os are numbered from here as well.
    ///
    /// # Panics
    /// If an I/O is outstanding.
    pub fn record_operations(&mut self) {
        assert!(self.host.is_idle(), "no I/O may be outstanding");
        self.host.number_from_here();
        self.events.begin_log(self.events.now(), work_of);
    }

    /// Note an I/O that was submitted at `begin` and ended at `end`: a long log keeps only the
    /// operations around the slowest I/Os.
    pub fn note_completion(&mut self, begin: u64, end: u64) {
        self.events.log_completion(begin, end);
    }

    /// Stop recording; return the operations since [`SimDevice::record_operations`].
    pub fn recorded_operations(&mut self) -> Operations {
        self.events.end_log()
    }

    /// Return the channel of each plane, and the time of a page transfer [ns].
    #[must_use]
    pub fn channels(&self) -> (Vec<u32>, u64) {
        let planes = 0..self.flash.geometry.shape().planes;
        let channels =
            planes.map(|plane| self.flash.geometry.channel_of(PlaneIdx(plane)) as u32).collect();
        (channels, self.events.timing.transfer_ns)
    }

    /// Return the clock of each plane: its own, or that of the first plane of its die.
    #[must_use]
    pub fn clocks(&self) -> Vec<u32> {
        let geometry = &self.flash.geometry;
        (0..geometry.shape().planes).map(|plane| geometry.die_of(PlaneIdx(plane)).0).collect()
    }

    /// Return channels, planes, data and metadata pages per block, and bytes per page.
    #[must_use]
    pub fn shape(&self) -> [u32; 4] {
        let shape = self.flash.geometry.shape();
        [shape.channels, shape.planes, shape.pages_per_block, shape.page_bytes]
    }

    /// Return the erase count of each block, plane by plane.
    #[must_use]
    pub fn erases(&self) -> Vec<u32> {
        let blocks = 0..self.flash.geometry.blocks();
        blocks.map(|block| self.flash.nand.erases(BlockIdx(block))).collect()
    }

    /// Return the number of erased blocks per plane without programmed pages.
    #[must_use]
    pub fn erased_blocks(&self) -> Vec<u32> {
        let (geometry, nand) = (&self.flash.geometry, &self.flash.nand);
        let erased = |plane| {
            let blocks = geometry.blocks_of(PlaneIdx(plane));
            blocks.filter(|block| nand.is_erased(*block)).count() as u32
        };
        (0..geometry.shape().planes).map(erased).collect()
    }

    /// Return the number of valid pages of each full block, `None` for others. Return nothing if
    /// the FTL does not count them, as a merging FTL.
    #[must_use]
    pub fn valid_pages(&self) -> Option<Vec<Option<u16>>> {
        let AnyBackend::Paged(paged) = &self.backend else { return None };
        let blocks = 0..self.flash.geometry.blocks();
        Some(blocks.map(|block| paged.ftl().valid_in(BlockIdx(block))).collect())
    }
}

/// Return the purpose of the operation of an event tag.
fn work_of(token: u64) -> OpSource {
    match EventTag::from(token).event() {
        DeviceEvent::Collect(plane) => OpSource::Collection(plane.0),
        DeviceEvent::StepDone(job, _) => OpSource::Plan(job.0),
        _ => OpSource::Other,
    }
}
