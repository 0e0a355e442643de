//! Scrubbing: blocks are relocated because of their reads or their age. A scrub starts as soon as a
//! block is due and its die does no other collection, concurrently with the host. The host's wait
//! for it has a cause of its own: `scrub_ns`.

use crate::device::backend::Hardware;
use crate::device::jobs::PlanRequest;
use crate::device::merging::MergingBackend;
use crate::device::paged::PageMapBackend;
use crate::flash::geometry::PlaneIdx;

impl PageMapBackend {
    /// Start scrubs of the blocks that are due at `at`.
    pub(super) fn begin_scrubs(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        while let Some(block) = hardware.flash.next_scrub(at) {
            self.ftl.queue_scrub(block);
        }
        for plane in (0..hardware.flash.geometry.shape().planes).map(PlaneIdx) {
            if self.ftl.has_scrub_waiting(plane) {
                let (collector, mut parts) = self.split_collector(hardware);
                collector.begin(plane, at, &mut parts);
            }
        }
    }
}

impl MergingBackend {
    /// Plan scrubs of the blocks that are due at `at`.
    pub(super) fn plan_scrubs(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        while let Some(block) = hardware.flash.next_scrub(at) {
            self.plan.clear();
            if self.last_addresses.is_some() {
                continue;
            }
            hardware.flash.scrub(block, &mut self.plan);
            if !self.plan.takes_no_time() {
                self.note_scrub(hardware);
                let order = PlanRequest::of_scrub(at);
                let line = MergingBackend::idle_class(hardware);
                self.jobs.queue(&mut self.plan, order, line, hardware);
            }
        }
    }
}
