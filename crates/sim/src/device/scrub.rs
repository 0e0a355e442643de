//! When blocks are moved because of their reads or their age: as soon as one is due and its die collects nothing
//! else, beside the host. Whoever wants the die meanwhile waits as it does for any other collection or merge.

use crate::device::backend::Hardware;
use crate::device::jobs::{Line, Order};
use crate::device::merging::Merged;
use crate::device::paged::Paged;
use crate::flash::geometry::DieIdx;

impl Paged {
    /// Begin with blocks that are due at `at`.
    #[inline]
    pub(super) fn scrub_if_due(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        if hardware.flash.has_scrubs(at) {
            self.scrub(at, hardware);
        }
    }

    #[cold]
    fn scrub(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        while let Some(block) = hardware.flash.next_scrub(at) {
            self.ftl.must_scrub(block);
        }
        for die in (0..hardware.flash.geometry.shape().dies).map(DieIdx) {
            if self.ftl.has_to_scrub(die) {
                let (collector, mut parts) = self.split(hardware);
                collector.begin(die, at, &mut parts);
            }
        }
    }
}

impl Merged {
    /// Move blocks that are due at `at`.
    #[inline]
    pub(super) fn scrub_if_due(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        if hardware.flash.has_scrubs(at) {
            self.scrub(at, hardware);
        }
    }

    #[cold]
    fn scrub(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        while let Some(block) = hardware.flash.next_scrub(at) {
            self.plan.clear();
            hardware.flash.scrub(block, &mut self.plan);
            if !self.plan.is_timeless() {
                let order = Order { ready: at, target: None, read_bytes: None };
                self.jobs.queue(&mut self.plan, order, Line::Beside, hardware);
            }
        }
    }
}
