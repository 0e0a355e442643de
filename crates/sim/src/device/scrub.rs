//! When blocks are moved because of their reads or their age: as soon as one is due and its die collects nothing
//! else, beside the host. What a host waits meanwhile is told apart from other collections and merges: `scrub_ns`.

use crate::device::backend::Hardware;
use crate::device::jobs::Order;
use crate::device::merging::Merged;
use crate::device::paged::Paged;
use crate::flash::geometry::PlaneIdx;

impl Paged {
    /// Begin with blocks that are due at `at`.
    pub(super) fn begin_scrubs(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        while let Some(block) = hardware.flash.next_scrub(at) {
            self.ftl.must_scrub(block);
        }
        for plane in (0..hardware.flash.geometry.shape().planes).map(PlaneIdx) {
            if self.ftl.has_to_scrub(plane) {
                let (collector, mut parts) = self.split(hardware);
                collector.begin(plane, at, &mut parts);
            }
        }
    }
}

impl Merged {
    /// Plan to move blocks that are due at `at`.
    pub(super) fn plan_scrubs(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        while let Some(block) = hardware.flash.next_scrub(at) {
            self.plan.clear();
            if self.at_end.is_some() {
                continue;
            }
            hardware.flash.scrub(block, &mut self.plan);
            if !self.plan.is_timeless() {
                self.note_scrub(hardware);
                let order = Order::of_scrub(at);
                let line = Merged::beside(hardware);
                self.jobs.queue(&mut self.plan, order, line, hardware);
            }
        }
    }
}
