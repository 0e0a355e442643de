//! A look inside a device, for whoever records or draws it: what its blocks hold, and what its dies do.
//! Changes nothing.

use super::SimDevice;
use super::any::AnyBackend;
use super::event::{DeviceEvent, EventTag};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::timeline::log::{Operations, Work};

impl SimDevice {
    /// Write down every operation of the flash from now on. I/Os count from here as well.
    ///
    /// # Panics
    /// Where an I/O is under way.
    pub fn record_operations(&mut self) {
        assert!(self.host.is_idle(), "I/Os are numbered from where none is under way");
        self.host.number_from_here();
        self.events.begin_log(self.events.now(), work_of);
    }

    /// An I/O ended at `end` which was submitted at `begin`: of a long log, what happened beside the
    /// slowest is kept.
    pub fn note_completion(&mut self, begin: u64, end: u64) {
        self.events.completed(begin, end);
    }

    /// What was written down since [`SimDevice::record_operations`]; no more is.
    pub fn recorded_operations(&mut self) -> Operations {
        self.events.end_log()
    }

    /// The channel of each plane, and how long a page is on it [ns].
    #[must_use]
    pub fn channels(&self) -> (Vec<u32>, u64) {
        let planes = 0..self.flash.geometry.shape().planes;
        let channels =
            planes.map(|plane| self.flash.geometry.channel_of(PlaneIdx(plane)) as u32).collect();
        (channels, self.events.timing.transfer_ns)
    }

    /// By whose time each plane goes: its own, or that of the first one of its die.
    #[must_use]
    pub fn clocks(&self) -> Vec<u32> {
        let geometry = &self.flash.geometry;
        (0..geometry.shape().planes).map(|plane| geometry.die_of(PlaneIdx(plane)).0).collect()
    }

    /// Channels, planes, data and metadata pages of a block, bytes of a page.
    #[must_use]
    pub fn shape(&self) -> [u32; 4] {
        let shape = self.flash.geometry.shape();
        [shape.channels, shape.planes, shape.pages_per_block, shape.page_bytes]
    }

    /// How often each block was erased, plane after plane.
    #[must_use]
    pub fn erases(&self) -> Vec<u32> {
        let blocks = 0..self.flash.geometry.blocks();
        blocks.map(|block| self.flash.nand.erases(BlockIdx(block))).collect()
    }

    /// How many blocks of each plane are erased, and nothing is programmed in them.
    #[must_use]
    pub fn erased_blocks(&self) -> Vec<u32> {
        let (geometry, nand) = (&self.flash.geometry, &self.flash.nand);
        let erased = |plane| {
            let blocks = geometry.blocks_of(PlaneIdx(plane));
            blocks.filter(|block| nand.is_erased(*block)).count() as u32
        };
        (0..geometry.shape().planes).map(erased).collect()
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

/// For whom what bears the token is done.
fn work_of(token: u64) -> Work {
    match EventTag::from(token).event() {
        DeviceEvent::Collect(plane) => Work::Collection(plane.0),
        DeviceEvent::StepDone(job, _) => Work::Plan(job.0),
        _ => Work::Other,
    }
}
