//! The backend of a page map with its garbage collector. A write goes to a plane with a free page;
//! a plane without one starts to collect.

use std::ops::Range;

use uflip_core::{Error, Mode};

use super::backend::{Backend, Hardware, IoPage, Write};
use super::write_backlog::{Attempt, BlockSupply, PendingWrite, WriteBacklog};
use crate::device::collector::{Collector, CollectorContext, Pace};
use crate::device::data_reduction::DataReduction;
use crate::device::event::{CompletionTarget, DeviceEvent};
use crate::device::page_buffer::PageBuffer;
use crate::device::timed_flash::TimedFlash;
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{Lpn, PlaneIdx, Shape};
use crate::flash::media::{Flash, Media as _};
use crate::ftl::PageMap;
use crate::ftl::extent::PageExtent;
use crate::timeline::breakdown::Cause;

/// The page map, and the collections in progress.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Paged")]
pub(crate) struct PageMapBackend {
    pub(super) ftl: PageMap,
    pub(super) collector: Collector,
    /// Pages that wait for a free page.
    #[serde(rename = "waiting")]
    pub(super) backlog: WriteBacklog,
    /// Collection steps since a waiting page last got a free page.
    #[serde(rename = "in_vain")]
    steps_without_progress: u64,
    /// The supply with which no waiting page could get a free page.
    #[serde(skip)]
    stuck_at: Option<BlockSupply>,
    /// Page buffers, if the mapping unit is smaller than a flash page.
    pub(super) gather: Option<Box<PageBuffer>>,
    /// Compression and deduplication. It describes the present writes; the profile restores it.
    #[serde(skip)]
    pub(super) reduction: Option<Box<DataReduction>>,
}

impl PageMapBackend {
    /// Create the backend; planes collect at `pace`.
    pub(crate) fn new(
        ftl: PageMap,
        shape: &Shape,
        pace: Pace,
        gather: Option<PageBuffer>,
        reduction: Option<Box<DataReduction>>,
    ) -> PageMapBackend {
        let collector = Collector::new(shape.planes, shape.channels, pace);
        let (backlog, gather) = (WriteBacklog::new(shape.planes), gather.map(Box::new));
        PageMapBackend {
            ftl,
            collector,
            backlog,
            steps_without_progress: 0,
            stuck_at: None,
            gather,
            reduction,
        }
    }

    /// Return whether map and collector have no optional feature: see [`crate::flash::fast_path`].
    pub(crate) fn is_minimal(&self) -> bool {
        let plain = self.gather.is_none() && self.reduction.is_none();
        self.ftl.is_minimal() && self.collector.is_minimal() && plain
    }

    /// Return the FTL for inspection.
    pub(crate) fn ftl(&self) -> &PageMap {
        &self.ftl
    }

    #[inline]
    fn split_collector<'a>(
        &'a mut self,
        hardware: &'a mut Hardware<'_>,
    ) -> (&'a mut Collector, CollectorContext<'a>) {
        let Hardware { flash, events } = hardware;
        let gather = self.gather.as_deref_mut();
        (&mut self.collector, CollectorContext { ftl: &mut self.ftl, flash, events, gather })
    }

    /// Write to `plane`, which has a free page.
    #[inline(always)]
    pub(super) fn write_to<M: FastPath>(
        &mut self,
        plane: PlaneIdx,
        write: &Write,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) {
        let Write { page, extent, target, write_through: through } = write;
        if !M::MINIMAL
            && let Some(gather) = &mut self.gather
        {
            gather.select_stream(self.ftl.selected_role());
        }
        // With page buffers, the rest of a partly written unit has been read already.
        let whole = !M::MINIMAL && self.gather.is_some() || extent.covers(*page);
        let mut media = TimedFlash::<M>::for_path(hardware.flash, hardware.events, at, *target);
        if !M::MINIMAL {
            media = media.with_page_buffer(self.gather.as_deref_mut());
            media.write_through = *through;
        }
        if !self.ftl.write_to(plane, *page, whole, &mut media) {
            return hardware.events.end(at, at, target.failed().op());
        }
        if self.ftl.wants_collection::<M>(plane) {
            let (collector, mut parts) = self.split_collector(hardware);
            collector.begin(plane, at, &mut parts);
        }
    }

    /// Write a page if there is a free one; otherwise append it to the backlog.
    #[inline(always)]
    pub(super) fn allocate_and_write<M: FastPath>(
        &mut self,
        write: &Write,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) {
        if !M::MINIMAL {
            self.serve(write.extent.stream());
            // Keep writes to one logical page in order: a later write may not overtake one that
            // waits.
            let in_order = hardware.events.contents.is_some() && !self.backlog.is_empty();
            if let Some(plane) = in_order.then(|| self.backlog.plane_of(write.page)).flatten() {
                return self.add_to_backlog(plane, *write, at);
            }
        }
        let preferred = self.ftl.choose_plane::<M>(write.page);
        let attempt = match self.ftl.has_free_page::<M>(preferred) {
            true => Attempt::FreePage(preferred),
            false => self.allocate(preferred, &mut false, at, hardware),
        };
        match attempt {
            Attempt::FreePage(plane) => self.write_to::<M>(plane, write, at, hardware),
            Attempt::CollectionBegun | Attempt::NoSpace => {
                self.add_to_backlog(preferred, *write, at);
                if self.ftl.is_read_only() {
                    self.fail_backlog(at, hardware);
                }
            }
        }
    }

    /// Complete the write of a page whose data need not be stored.
    #[cold]
    fn drop_page(&mut self, write: &Write, at: u64, hardware: &mut Hardware<'_>) {
        let Write { page, target, .. } = *write;
        self.drop_trimmed_writes(page.0..page.0 + 1, at, hardware);
        if let Some(contents) = &mut hardware.events.contents {
            if write.has_left_cache(&(page.0..page.0 + 1)) {
                contents.forget_flush(page.0);
            }
            contents.trimmed(page.0);
        }
        self.ftl.trim(page);
        hardware.flash.counters.host_pages_written += 1;
        hardware.events.end(at, at, target.op());
    }

    /// Write a page in the untimed mode, unless its data need not be stored.
    fn reduce_untimed(&mut self, page: Lpn, whole: bool, stream: u8, flash: &mut Flash) {
        if self.reduction.as_mut().is_none_or(|reduction| reduction.stores(page)) {
            let stream = self.ftl.stream_of(page, stream);
            return self.ftl.write(page, whole, stream, flash);
        }
        self.ftl.trim(page);
        flash.counters.host_pages_written += 1;
    }

    /// Take the next step of the collection of `plane`.
    #[inline(always)]
    pub(super) fn step<M: FastPath>(
        &mut self,
        plane: PlaneIdx,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) {
        let (collector, mut parts) = self.split_collector(hardware);
        collector.step::<M>(plane, at, &mut parts);
        if !self.backlog.is_empty() {
            self.retry_backlog(at, hardware);
        }
    }
}

impl Backend for PageMapBackend {
    const PLANS_WHOLE_WRITES: bool = false;

    #[inline]
    fn read(
        &mut self,
        page: Lpn,
        bytes: u64,
        at: u64,
        target: CompletionTarget,
        hardware: &mut Hardware<'_>,
    ) {
        let mut media =
            TimedFlash::new(hardware.flash, hardware.events, at, target).with_host_transfer(bytes);
        let collected = self.ftl.fetch_entry(page, &mut media);
        match self.ftl.lookup(page) {
            Some(from) => media.read(from),
            None => media.answer_unwritten(),
        }
        if let Some(plane) = collected {
            let (collector, mut parts) = self.split_collector(hardware);
            collector.begin(plane, at, &mut parts);
        }
    }

    #[inline(always)]
    fn write(&mut self, write: &mut Write, at: u64, hardware: &mut Hardware<'_>) {
        self.scrub_if_due(at, hardware);
        if let Some(reduction) = &mut self.reduction
            && !reduction.stores(write.page)
        {
            return self.drop_page(write, at, hardware);
        }
        if self.ftl.has_write_streams() {
            let stream = self.ftl.stream_of(write.page, write.extent.stream());
            write.extent.set_stream(stream);
        }
        if self.gather.is_some() {
            return self.gather(write, at, hardware);
        }
        self.allocate_and_write::<AllFeatures>(write, at, hardware);
    }

    fn pad_for_flush(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        self.pad_all(at, hardware);
    }

    fn drain(&mut self, at: u64, target: CompletionTarget, hardware: &mut Hardware<'_>) -> bool {
        self.drain_gathered(at, target, hardware)
    }

    #[inline]
    fn handle_event(&mut self, event: DeviceEvent, at: u64, hardware: &mut Hardware<'_>) {
        let DeviceEvent::Collect(plane) = event else {
            return self.handle_sub_page_event(event, at, hardware);
        };
        self.step::<AllFeatures>(plane, at, hardware);
    }

    #[inline]
    fn after_read(&mut self, end: u64, hardware: &mut Hardware<'_>) {
        self.scrub_if_due(end, hardware);
    }

    #[cold]
    fn scrub(&mut self, at: u64, hardware: &mut Hardware<'_>) {
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

    fn begin_idle(&mut self, now: u64, _until: u64, hardware: &mut Hardware<'_>) {
        self.scrub_if_due(now, hardware);
        let (collector, mut parts) = self.split_collector(hardware);
        collector.begin_idle(now, &mut parts);
    }

    fn end_idle(&mut self) {
        self.collector.end_idle(&mut self.ftl);
    }

    /// Fail every page that waits for a free page.
    #[cold]
    fn fail_stuck_ios(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        if self.pad_waited_for(at, hardware) {
            return;
        }
        assert!(!self.backlog.is_empty(), "an outstanding I/O completes, or waits for a page");
        self.ftl.end_of_life();
        self.fail_backlog(at, hardware);
    }

    #[inline]
    fn is_read_only(&self) -> bool {
        self.ftl.is_read_only()
    }

    fn read_only_error(&self) -> Error {
        self.ftl.read_only_error()
    }

    fn end_untimed(&mut self, flash: &mut Flash) {
        self.collector.end_untimed(&mut self.ftl, flash);
        let gathers = self.gather.is_some();
        for PendingWrite { write: Write { page, extent, .. }, .. } in self.backlog.drain() {
            self.ftl.write(page, gathers || extent.covers(page), extent.stream(), flash);
        }
        for Write { page, extent, .. } in self.gather.iter_mut().flat_map(|gather| gather.end()) {
            self.ftl.write(page, true, extent.stream(), flash);
        }
    }

    #[inline]
    fn write_untimed(&mut self, page: Lpn, extent: &PageExtent, flash: &mut Flash) {
        self.reduce_untimed(page, extent.covers(page), extent.stream(), flash);
    }

    #[inline]
    fn read_untimed(&mut self, page: Lpn, flash: &mut Flash) {
        if let Some(at) = self.ftl.find(page, flash) {
            flash.read(at);
        }
    }

    fn apply(&mut self, pieces: &[IoPage], flash: &mut Flash) {
        for run in pieces.chunk_by(|one, next| one.mode == next.mode) {
            match run[0].mode {
                Mode::Write if self.reduction.is_some() => {
                    for IoPage { page, extent, .. } in run {
                        self.reduce_untimed(*page, extent.covers(*page), extent.stream(), flash);
                    }
                }
                Mode::Write => {
                    let pages = run.iter().map(|IoPage { page, extent, .. }| {
                        (*page, extent.covers(*page), extent.stream())
                    });
                    self.ftl.write_all(pages, flash);
                }
                Mode::Read => run.iter().for_each(|piece| self.read_untimed(piece.page, flash)),
                _ => run.iter().for_each(|piece| self.trim(piece.page)),
            }
        }
    }

    #[cold]
    fn drop_trimmed_writes(&mut self, pages: Range<u32>, at: u64, hardware: &mut Hardware<'_>) {
        let read = self.gather.iter_mut().flat_map(|gather| gather.cancel_trimmed(&pages));
        let waiting = self.backlog.remove_trimmed(&pages).into_iter().map(|waiter| waiter.write);
        for Write { page, target, .. } in read.chain(waiting) {
            hardware.events.contents.iter_mut().for_each(|contents| contents.forget_flush(page.0));
            hardware.events.end(at, at, target.op());
        }
    }

    fn trim(&mut self, page: Lpn) {
        self.ftl.trim(page);
    }

    #[inline]
    fn prefetch(&self, page: Lpn) {
        self.ftl.prefetch(page);
    }

    #[inline]
    fn prefetch_old(&self, page: Lpn) {
        self.ftl.prefetch_old(page);
    }
}

// Allocation of free pages for host writes. A write joins the backlog if no plane has a free page.

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
    fn add_to_backlog(&mut self, plane: PlaneIdx, write: Write, at: u64) {
        if self.stuck_at.is_some() && !self.waits(plane, self.supply()) {
            self.stuck_at = None;
        }
        self.backlog.push(plane, write, at);
    }

    /// Retry the waiting pages after a collection step.
    #[cold]
    fn retry_backlog(&mut self, at: u64, hardware: &mut Hardware<'_>) {
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
    fn fail_backlog(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        for PendingWrite { write, since, .. } in self.backlog.drain() {
            hardware.events.charge_account(write.target.account, Cause::FreePage, at - since);
            hardware.events.end(at, at, write.target.failed().op());
        }
    }
}
