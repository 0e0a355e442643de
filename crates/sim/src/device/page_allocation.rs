//! Allocation of free pages for host writes. A write joins the backlog if no plane has a free page.

use super::backend::{Hardware, Write};
use super::paged::PageMapBackend;
use super::write_backlog::{Attempt, BlockSupply, PendingWrite};
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::PlaneIdx;
use crate::timeline::breakdown::Cause;

impl PageMapBackend {
    /// Try to allocate on `plane`; `None` if it has neither a free page nor anything to collect.
    #[inline]
    fn try_plane(
        &mut self,
        plane: PlaneIdx,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) -> Option<Attempt> {
        if self.ftl.has_free_page::<AllFeatures>(plane) {
            self.ftl.reset_urgency();
            return Some(Attempt::FreePage(plane));
        }
        if self.collector.is_collecting(plane) {
            return Some(Attempt::NoSpace);
        }
        let (collector, mut parts) = self.split_collector(hardware);
        collector.begin(plane, at, &mut parts).then_some(Attempt::CollectionBegun)
    }

    /// Try every plane except `preferred`, which has nothing to collect (OFC
    /// §IV.C: the round robin is relaxed where planes differ).
    #[cold]
    fn try_other_planes(
        &mut self,
        preferred: PlaneIdx,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) -> Attempt {
        loop {
            let mut planes = self.ftl.planes_from(preferred);
            if let Some(attempt) = planes.find_map(|plane| self.try_plane(plane, at, hardware)) {
                return attempt;
            }
            if self.collector.is_collecting_any() {
                return Attempt::NoSpace;
            }
            if !self.ftl.overrule_policy() {
                self.ftl.end_of_life();
                return Attempt::NoSpace;
            }
        }
    }

    /// Try to allocate for a page that prefers `preferred`. `others_wait` records that all planes were
    /// tried without success since the last change.
    #[cold]
    pub(super) fn allocate(
        &mut self,
        preferred: PlaneIdx,
        others_wait: &mut bool,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) -> Attempt {
        let attempt = match self.try_plane(preferred, at, hardware) {
            Some(attempt) => attempt,
            None if *others_wait => Attempt::NoSpace,
            None => {
                *others_wait = true;
                self.try_other_planes(preferred, at, hardware)
            }
        };
        *others_wait &= matches!(attempt, Attempt::NoSpace);
        attempt
    }

    /// Choose which waiting pages to try, at the start of a pass and after each change. With
    /// thousands of pages waiting, usually no plane has a free page. Then pages of a plane that
    /// collects keep waiting without a try. Returns the supply if all pages keep waiting for lack of
    /// blocks.
    #[inline]
    fn choose_candidates(&mut self) -> Option<BlockSupply> {
        let no_space = self.ftl.no_plane_has_space();
        debug_assert!(
            !no_space
                || self
                    .ftl
                    .planes_from(PlaneIdx(0))
                    .all(|plane| !self.ftl.has_free_page::<AllFeatures>(plane)),
            "a plane has a free page although `waits` excludes it"
        );
        let in_progress = self.ftl.host_plane_in_progress();
        let supply = self.supply();
        let lack_blocks = !no_space
            && in_progress.is_none()
            && self.backlog.planes().all(|plane| self.waits(plane, supply));
        if lack_blocks || no_space && self.collector.is_collecting_all() {
            self.backlog.end_pass();
            return lack_blocks.then_some(supply);
        }
        let (ftl, collector) = (&self.ftl, &self.collector);
        self.backlog.resume_pass(|preferred| {
            let plane = in_progress.unwrap_or(preferred);
            (no_space || ftl.lacks_block(plane, supply.may_open)) && collector.is_collecting(plane)
        });
        None
    }

    /// Return whether a page that prefers `plane` certainly gets no free page: the plane lacks
    /// blocks, and it collects; or no collection may begin, and the first other plane to try waits
    /// for its own.
    #[inline]
    fn waits(&self, plane: PlaneIdx, supply: BlockSupply) -> bool {
        let (ftl, collector) = (&self.ftl, &self.collector);
        let lacks = |plane| ftl.lacks_block(plane, supply.may_open);
        let is_tried = |other: &PlaneIdx| collector.is_collecting(*other) || !lacks(*other);
        lacks(plane)
            && (collector.is_collecting(plane)
                || !supply.may_collect && ftl.planes_from(plane).find(is_tried).is_some_and(lacks))
    }

    /// Return the current supply.
    #[inline]
    fn supply(&self) -> BlockSupply {
        BlockSupply {
            changes: self.ftl.supply_changes(),
            completed_collections: self.collector.completed_collections(),
            may_open: self.ftl.may_open_any(),
            may_collect: self.collector.has_limit() || self.ftl.may_begin_collection(),
        }
    }

    /// Return whether no waiting page can get a free page, because nothing has changed since a pass
    /// in which each waited for lack of blocks.
    #[inline]
    fn is_stuck(&mut self) -> bool {
        let stuck =
            self.stuck_at == Some(self.supply()) && self.ftl.host_plane_in_progress().is_none();
        debug_assert!(
            !stuck || {
                let planes: Vec<PlaneIdx> = self.backlog.planes().collect();
                planes.into_iter().all(|plane| self.ends_at_collecting_plane(plane))
            },
            "a waiting page can get a free page although `is_stuck` excludes it"
        );
        stuck
    }

    /// Return whether an attempt on `plane` and on the others after it ends at a plane that
    /// collects.
    fn ends_at_collecting_plane(&mut self, plane: PlaneIdx) -> bool {
        for plane in self.ftl.planes_from(plane) {
            if self.ftl.has_free_page::<AllFeatures>(plane) {
                return false;
            }
            if self.collector.is_collecting(plane) {
                return true;
            }
            if self.supply().may_collect {
                return false;
            }
        }
        false
    }

    /// Add a write to the backlog; `plane` is the plane it prefers.
    pub(super) fn add_to_backlog(&mut self, plane: PlaneIdx, write: Write, at: u64) {
        if self.stuck_at.is_some() && !self.waits(plane, self.supply()) {
            self.stuck_at = None;
        }
        self.backlog.push(plane, write, at);
    }

    /// Retry the waiting pages after a collection step.
    #[cold]
    pub(super) fn retry_backlog(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        self.steps_without_progress += 1;
        // If two passes over the device gained nothing, more will not either.
        let shape = *hardware.flash.geometry.shape();
        let steps = u64::from(shape.planes * shape.blocks_per_plane)
            * u64::from(hardware.flash.geometry.data_pages() + 2);
        if self.steps_without_progress > self.ftl.max_attempts(steps) {
            if self.ftl.overrule_policy() {
                self.steps_without_progress = 0;
            } else {
                self.ftl.end_of_life();
            }
        }
        if !self.is_stuck() {
            self.retry_waiting(at, hardware);
        }
        if self.ftl.is_read_only() {
            self.fail_backlog(at, hardware);
        }
    }

    /// Try the waiting pages in FIFO order.
    fn retry_waiting(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        let mut others_wait = false;
        self.backlog.begin_pass();
        self.stuck_at = self.choose_candidates();
        while !self.ftl.is_read_only()
            && let Some(preferred) = self.backlog.next()
        {
            self.serve(self.backlog.stream());
            // A partly filled flash page is filled up first.
            let preferred = self.ftl.host_plane_in_progress().unwrap_or(preferred);
            match self.allocate(preferred, &mut others_wait, at, hardware) {
                Attempt::NoSpace => {
                    self.backlog.skip_candidate();
                    continue; // nothing has changed
                }
                Attempt::CollectionBegun => self.backlog.skip_candidate(),
                Attempt::FreePage(plane) => {
                    let ftl = &self.ftl;
                    let mut waiter = self.backlog.take_candidate(|next, one_more| {
                        next.iter().for_each(|page| ftl.prefetch_old(*page));
                        one_more.iter().for_each(|page| ftl.prefetch(*page));
                    });
                    if hardware.events.contents.is_some() {
                        waiter = self.backlog.swap_for_oldest(waiter);
                    }
                    let PendingWrite { write, since, .. } = waiter;
                    self.steps_without_progress = 0;
                    let Write { page, target, .. } = write;
                    hardware.events.charge_account(target.account, Cause::FreePage, at - since);
                    let die = hardware.flash.geometry.die_of(plane);
                    hardware.events.waited_for_page(target.account, die, page, since, at);
                    self.write_to::<AllFeatures>(plane, &write, at, hardware);
                    self.pad_late_unit(write.write_through, at, hardware);
                }
            }
            self.stuck_at = self.choose_candidates();
        }
    }

    /// Fail all waiting pages: the device is read-only.
    #[cold]
    pub(super) fn fail_backlog(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        for PendingWrite { write, since, .. } in self.backlog.drain() {
            hardware.events.charge_account(write.target.account, Cause::FreePage, at - since);
            hardware.events.end(at, at, write.target.failed().op());
        }
    }
}
