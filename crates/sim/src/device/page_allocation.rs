//! Pages of the host that look for room, and wait where no plane has any.

use super::backend::{Hardware, Write};
use super::paged::Paged;
use super::write_backlog::{Attempt, PendingWrite};
use crate::flash::fast_path::Full;
use crate::flash::geometry::PlaneIdx;
use crate::timeline::breakdown::Cause;

impl Paged {
    /// What a page meets on `plane`; `None` where that has no room and nothing to gain.
    #[inline]
    fn try_plane(
        &mut self,
        plane: PlaneIdx,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) -> Option<Attempt> {
        if self.ftl.has_room::<Full>(plane) {
            self.ftl.found_room();
            return Some(Attempt::FreePage(plane));
        }
        if self.collector.collects(plane) {
            return Some(Attempt::NoRoom);
        }
        let (collector, mut parts) = self.split(hardware);
        collector.begin(plane, at, &mut parts).then_some(Attempt::CollectionBegun)
    }

    /// What a page meets on any other plane than `turn`, whose turn it was and which has nothing to gain
    /// (OFC §IV.C: the round robin is relaxed where planes differ).
    #[cold]
    fn try_other_planes(
        &mut self,
        turn: PlaneIdx,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) -> Attempt {
        loop {
            let mut planes = self.ftl.planes_from(turn);
            if let Some(attempt) = planes.find_map(|plane| self.try_plane(plane, at, hardware)) {
                return attempt;
            }
            if self.collector.collects_any() {
                return Attempt::NoRoom;
            }
            if !self.ftl.overrule_policy() {
                self.ftl.end_of_life();
                return Attempt::NoRoom;
            }
        }
    }

    /// Somebody waits: see whether there is room for a page whose turn is `turn`. `others_wait` says
    /// whether somebody has looked elsewhere in vain since anything has changed.
    #[cold]
    pub(super) fn allocate(
        &mut self,
        turn: PlaneIdx,
        others_wait: &mut bool,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) -> Attempt {
        let attempt = match self.try_plane(turn, at, hardware) {
            Some(attempt) => attempt,
            None if *others_wait => Attempt::NoRoom,
            None => {
                *others_wait = true;
                self.try_other_planes(turn, at, hardware)
            }
        };
        *others_wait &= matches!(attempt, Attempt::NoRoom);
        attempt
    }

    /// Something has changed, or a pass begins: who of those that wait is to be tried. Mostly, while thousands wait,
    /// it is certain that there is no room anywhere, and then who would look at a plane that collects waits for it,
    /// without a try.
    #[inline]
    fn choose_candidates(&mut self) {
        let nowhere = self.ftl.has_room_nowhere();
        debug_assert!(
            !nowhere
                || self.ftl.planes_from(PlaneIdx(0)).all(|plane| !self.ftl.has_room::<Full>(plane)),
            "a plane has room, and none was to have any"
        );
        if nowhere && self.collector.collects_all() {
            return self.waiting.end_pass();
        }
        let (goes_on, collector) = (self.ftl.host_goes_on(), &self.collector);
        self.waiting.resume_pass(|plane| nowhere && collector.collects(goes_on.unwrap_or(plane)));
    }

    /// Something was collected: see who of those that wait has room now.
    #[cold]
    pub(super) fn retry_backlog(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        self.in_vain += 1;
        // What two passes over the device did not gain, more will not.
        let shape = *hardware.flash.geometry.shape();
        let steps = u64::from(shape.planes * shape.blocks_per_plane)
            * u64::from(hardware.flash.geometry.data_pages() + 2);
        if self.in_vain > self.ftl.patience(steps) {
            if self.ftl.overrule_policy() {
                self.in_vain = 0;
            } else {
                self.ftl.end_of_life();
            }
        }
        let mut others_wait = false;
        self.waiting.begin_pass();
        self.choose_candidates();
        while !self.ftl.is_read_only()
            && let Some(turn) = self.waiting.next()
        {
            self.serve(self.waiting.stream());
            // A flash page that has begun is gone on with.
            let turn = self.ftl.host_goes_on().unwrap_or(turn);
            match self.allocate(turn, &mut others_wait, at, hardware) {
                Attempt::NoRoom => {
                    self.waiting.keep();
                    continue; // and nothing has changed
                }
                Attempt::CollectionBegun => self.waiting.keep(),
                Attempt::FreePage(plane) => {
                    let ftl = &self.ftl;
                    let mut waiter = self.waiting.take(|next, one_more| {
                        next.iter().for_each(|page| ftl.prefetch_old(*page));
                        one_more.iter().for_each(|page| ftl.prefetch(*page));
                    });
                    if hardware.events.contents.is_some() {
                        waiter = self.waiting.swap_for_oldest(waiter);
                    }
                    let PendingWrite { write, since, .. } = waiter;
                    self.in_vain = 0;
                    let Write { page, target, .. } = write;
                    hardware.events.spent(target.account, Cause::FreePage, at - since);
                    let die = hardware.flash.geometry.die_of(plane);
                    hardware.events.waited_for_page(target.account, die, page, since, at);
                    self.write_to::<Full>(plane, &write, at, hardware);
                    self.gathered_late(write.through, at, hardware);
                }
            }
            self.choose_candidates();
        }
        if self.ftl.is_read_only() {
            self.fail_backlog(at, hardware);
        }
    }

    /// The device is read-only: what waits for a page is not written.
    #[cold]
    pub(super) fn fail_backlog(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        for PendingWrite { write, since, .. } in self.waiting.drain() {
            hardware.events.spent(write.target.account, Cause::FreePage, at - since);
            hardware.events.end(at, at, write.target.failed().op());
        }
    }
}
