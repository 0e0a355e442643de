//! The backend of a merging FTL. A write that needs space waits for the merges that make it; other
//! space is reclaimed step by step while the host is idle.
//!
//! ```text
//! host write   ──┤ merges ├─┤ program ├──▶ end        its latency breakdown shows this
//! idle time    ──┤ step ├─┤ step ├─┤ step ├──▶        the last step may end after idle time does:
//! host read    ──┤ read ├──▶ end ─┤ step ├             an operation for its dies waits
//! ```
//!
//! The FTL plans a write when its command has been processed, and the plan starts when the data has
//! arrived (`jobs/`). The firmware does one merge at a time, or `merges_side_by_side`. A further
//! merge waits, and so does a write that needs a block of a running merge.

use uflip_core::Error;

use super::event::{CompletionTarget, DeviceEvent};
use crate::device::backend::{Backend, Hardware, Write};
use crate::device::jobs::{PlanClass, PlanJobs, PlanRequest, issue_host_command};
use crate::flash::contents::{Contents, Origin, notes_of};
use crate::flash::geometry::{Lpn, PageAddress};
use crate::flash::media::Flash;
use crate::flash::plan::FlashPlan;
use crate::ftl::extent::PageExtent;
use crate::ftl::{Merging, read_only};

/// The FTL and its plans.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Merged")]
pub(crate) struct MergingBackend {
    pub(super) ftl: Merging,
    /// The current plan; kept to avoid allocations.
    #[serde(skip)]
    pub(super) plan: FlashPlan,
    pub(super) jobs: PlanJobs,
    /// Idle-time steps begin until then.
    idle_until: u64,
    /// Host reads per reclaiming step (0: none), and host reads since the last step.
    reads_per_step: u32,
    reads: u32,
    /// Whether a write to exactly the extent of the last write stays in memory.
    pub(super) buffers: bool,
    /// The last write, and whether memory has a newer version than the flash.
    last: Option<PageExtent>,
    dirty: bool,
    /// A block has failed without a replacement: the device is read-only.
    pub(super) read_only: bool,
    /// The flash contents and the origin of new versions in untimed mode; otherwise the timeline
    /// has them.
    #[serde(skip)]
    pub(super) contents: Option<(Box<Contents>, Origin)>,
    /// Addresses of all pages, if a block has failed without a replacement and flash contents are
    /// recorded.
    #[serde(rename = "at_end")]
    pub(super) last_addresses: Option<Vec<Option<PageAddress>>>,
}

impl MergingBackend {
    pub(crate) fn new(
        ftl: Merging,
        jobs: PlanJobs,
        reads_per_step: u32,
        buffers: bool,
    ) -> MergingBackend {
        MergingBackend {
            ftl,
            plan: FlashPlan::default(),
            jobs,
            idle_until: 0,
            reads_per_step,
            reads: 0,
            buffers,
            last: None,
            dirty: false,
            read_only: false,
            contents: None,
            last_addresses: None,
        }
    }

    /// Plan a read of `page`.
    #[inline]
    fn plan_read(&mut self, page: Lpn) {
        self.plan.clear();
        let from = match &self.last_addresses {
            None => self.ftl.find(page, &mut self.plan),
            Some(addresses) => addresses[page.0 as usize],
        };
        if let Some(from) = from {
            self.plan.read(from);
        }
    }

    /// Return whether buffered data can no longer be written.
    pub(super) fn cannot_write_back(&self) -> bool {
        self.buffers && self.last_addresses.is_some()
    }

    /// Return the address of `page` in the FTL's geometry.
    pub(super) fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        match &self.last_addresses {
            None => self.ftl.lookup(page),
            Some(addresses) => addresses[page.0 as usize],
        }
    }

    /// Return whether the page of a write stays in memory: the previous write had the same extent.
    #[inline]
    fn absorbs(&mut self, write: &Write) -> bool {
        let Write { page, extent, write_through: through, .. } = write;
        if extent.begin() == page.0 {
            let is_rewrite = self.last == Some(*extent) && extent.is_whole();
            self.dirty = is_rewrite && !through;
            self.last = Some(*extent);
        }
        self.dirty
    }

    /// Write the buffered data to flash from `ready` on, unless a write to `extent` replaces it.
    /// Report the end to `target`. Return false without such data.
    fn flush(
        &mut self,
        ready: u64,
        extent: Option<&PageExtent>,
        target: Option<CompletionTarget>,
        hardware: &mut Hardware<'_>,
    ) -> bool {
        let Some(last) = self.last.filter(|last| self.dirty && Some(last) != extent) else {
            return false;
        };
        self.dirty = false;
        self.plan.clear();
        if self.last_addresses.is_none() {
            last.pages().for_each(|page| self.ftl.write(page, &last, &mut self.plan));
            self.execute(PlannedPages::Buffered(last), hardware);
        }
        let target = target.map(|target| target.failed_if(self.read_only));
        let request = PlanRequest { ready, target, read_bytes: None, scrubs: false };
        self.jobs.queue(&mut self.plan, request, PlanClass::Foreground, hardware);
        true
    }

    /// Do one reclaiming step from `ready` on. Return the earliest start of the next, or `None` if
    /// there is nothing to reclaim.
    fn step(&mut self, ready: u64, hardware: &mut Hardware<'_>) -> Option<u64> {
        if self.read_only {
            return None;
        }
        self.plan.clear();
        let reclaimed = self.ftl.reclaim(&mut self.plan);
        hardware.flash.counters.merges_idle += self.plan.merges();
        self.execute(PlannedPages::Nothing, hardware);
        if !self.plan.takes_no_time() {
            let request = PlanRequest { ready, target: None, read_bytes: None, scrubs: false };
            self.jobs.queue(
                &mut self.plan,
                request,
                MergingBackend::idle_class(hardware),
                hardware,
            );
        }
        // A step that only updates tables takes no time, but the clock must advance.
        reclaimed.then_some(ready + 1)
    }

    /// Return whether an idle-time step may begin.
    #[inline]
    fn may_step(&self, at: u64, hardware: &Hardware<'_>) -> bool {
        at < self.idle_until && self.jobs.is_free(MergingBackend::idle_class(hardware))
    }

    /// Do idle-time steps one after the other while the host is idle.
    fn reclaim_while_idle(&mut self, mut at: u64, hardware: &mut Hardware<'_>) {
        while self.may_step(at, hardware) {
            match self.step(at, hardware) {
                Some(next) => at = next,
                None => self.idle_until = 0,
            }
        }
    }

    /// Write `page` untimed.
    fn write_page_untimed(&mut self, page: Lpn, extent: &PageExtent, flash: &mut Flash) {
        if self.last_addresses.is_some() {
            return;
        }
        self.plan.clear();
        self.ftl.write(page, extent, &mut self.plan);
        self.execute_untimed(Some(page), flash);
    }
}

impl Backend for MergingBackend {
    const PLANS_WHOLE_WRITES: bool = true;

    #[inline]
    fn read(
        &mut self,
        page: Lpn,
        bytes: u64,
        at: u64,
        target: CompletionTarget,
        hardware: &mut Hardware<'_>,
    ) {
        self.plan_read(page);
        self.execute(PlannedPages::Nothing, hardware);
        let failed = std::mem::take(&mut hardware.flash.read_failed);
        let target = target.failed_if(failed);
        let request =
            PlanRequest { ready: at, target: Some(target), read_bytes: Some(bytes), scrubs: false };
        match self.plan.only() {
            Some(command) => issue_host_command(command, 0, request, hardware),
            // Programs and erases that make space for a map page are queued.
            None if !self.plan.records().is_empty() => {
                self.jobs.queue(&mut self.plan, request, PlanClass::Foreground, hardware);
            }
            // The controller alone answers a read of a page that was never written, once it knows
            // that.
            None => self.jobs.begin(&mut self.plan, request, hardware),
        }
    }

    #[inline]
    fn write(&mut self, write: &mut Write, ready: u64, hardware: &mut Hardware<'_>) {
        let Write { page, extent, target, .. } = *write;
        self.scrub_if_due(hardware.events.now(), hardware);
        if self.read_only {
            return hardware.events.end(ready, hardware.events.now(), target.failed().op());
        }
        if self.buffers {
            self.flush(ready, Some(&extent), None, hardware);
            if self.absorbs(write) {
                hardware.flash.counters.pages_absorbed += 1;
                self.record_buffered(page, target, hardware);
                return hardware.events.end(ready, hardware.events.now(), target.op());
            }
        }
        self.plan.clear();
        self.ftl.write(page, &extent, &mut self.plan);
        self.execute(PlannedPages::Page(page, target), hardware);
        let target = target.failed_if(self.read_only);
        let request = PlanRequest { ready, target: Some(target), read_bytes: None, scrubs: false };
        let record = self.plan.records().first().copied().unwrap_or(0);
        match self.plan.only().filter(|_| self.jobs.is_free(PlanClass::Foreground)) {
            Some(command) => {
                issue_host_command(command, record, request, hardware);
            }
            None => self.jobs.queue(&mut self.plan, request, PlanClass::Foreground, hardware),
        }
    }

    #[inline]
    fn after_read(&mut self, end: u64, hardware: &mut Hardware<'_>) {
        self.scrub_if_due(end, hardware);
        if self.reads_per_step == 0 {
            return;
        }
        self.reads += 1;
        if self.reads >= self.reads_per_step {
            self.reads = 0;
            self.step(end, hardware);
        }
    }

    #[inline]
    fn handle_event(&mut self, event: DeviceEvent, at: u64, hardware: &mut Hardware<'_>) {
        let may_run_ahead = !self.may_step(at, hardware);
        let until = if may_run_ahead { hardware.events.undisturbed_until() } else { 0 };
        self.jobs.handle_event(event, at, until, hardware);
        self.reclaim_while_idle(hardware.events.now(), hardware);
    }

    #[cold]
    fn scrub(&mut self, at: u64, hardware: &mut Hardware<'_>) {
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

    fn fail_stuck_ios(&mut self, _: u64, _: &mut Hardware<'_>) {
        unreachable!("a running plan always completes")
    }

    #[inline]
    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn read_only_error(&self) -> Error {
        read_only()
    }

    fn drain(&mut self, at: u64, target: CompletionTarget, hardware: &mut Hardware<'_>) -> bool {
        // Buffered data may already be in flight to flash.
        self.flush(at, None, Some(target), hardware)
            || self.buffers && hardware.events.wait_for_programs(target.token)
    }

    fn begin_idle(&mut self, now: u64, until: u64, hardware: &mut Hardware<'_>) {
        self.flush(now, None, None, hardware);
        self.scrub_if_due(now, hardware);
        self.idle_until = until;
        self.reclaim_while_idle(now, hardware);
    }

    fn end_idle(&mut self) {
        self.idle_until = 0;
    }

    /// Only time is outstanding, which untimed mode ignores.
    fn end_untimed(&mut self, flash: &mut Flash) {
        self.jobs.clear();
        if let Some(last) = self.last.take().filter(|_| self.dirty) {
            last.pages().for_each(|page| self.write_page_untimed(page, &last, flash));
        }
        self.dirty = false;
    }

    #[inline]
    fn write_untimed(&mut self, page: Lpn, extent: &PageExtent, flash: &mut Flash) {
        self.write_page_untimed(page, extent, flash);
    }

    #[inline]
    fn read_untimed(&mut self, page: Lpn, flash: &mut Flash) {
        self.plan_read(page);
        self.execute_untimed(None, flash);
    }

    fn trim(&mut self, page: Lpn) {
        match &mut self.last_addresses {
            None => self.ftl.trim(page),
            Some(addresses) => addresses[page.0 as usize] = None,
        }
        if let Some((contents, _)) = &mut self.contents {
            contents.trimmed(page.0);
        }
    }

    #[inline]
    fn prefetch(&self, page: Lpn) {
        self.ftl.prefetch(page);
    }
}

/// The host pages that a plan programs.
#[derive(Clone, Copy)]
enum PlannedPages {
    Nothing,
    /// A page that has arrived for this target.
    Page(Lpn, CompletionTarget),
    /// The buffered pages.
    Buffered(PageExtent),
}

// Records of the planned work of a merging FTL, kept if power may be cut.
//
// Such a device executes one plan after the other, including those of idle time: a later plan
// programs a block that an earlier one erased. An erase waits for all programs planned before.
// After a block has failed without a replacement nothing more is planned: reads go to the newest
// version on flash.

/// Execute `plan`, which programs `pages` of the host, and record its changes. `of_map` gives the
/// map page of an address. With `time`, return a record per operation, in order.
pub(super) fn execute(
    plan: &mut FlashPlan,
    pages: impl Iterator<Item = (u32, Origin)>,
    of_map: impl Fn(PageAddress) -> Option<u32>,
    time: bool,
    flash: &mut Flash,
    contents: &mut Contents,
) -> Vec<u32> {
    let planned = (!flash.records_notes()).then(|| notes_of(plan));
    flash.execute(plan);
    let notes = planned.as_deref().unwrap_or_else(|| flash.notes());
    contents.decide_notes(notes, pages, of_map, time, &flash.nand)
}

impl MergingBackend {
    /// Record that the page of a write stays in memory.
    #[inline]
    fn record_buffered(&self, page: Lpn, target: CompletionTarget, hardware: &mut Hardware<'_>) {
        if let Some(contents) = &mut hardware.events.contents {
            contents.mark_in_memory(page.0, MergingBackend::origin(target));
        }
    }

    /// Return the origin of the version that a write creates.
    fn origin(target: CompletionTarget) -> Origin {
        target.account.map_or(Origin::Cache, |account| Origin::Account(account.number()))
    }

    /// Return the queue of idle-time steps.
    #[inline]
    fn idle_class(hardware: &Hardware<'_>) -> PlanClass {
        if hardware.events.contents.is_some() {
            PlanClass::Foreground
        } else {
            PlanClass::Background
        }
    }

    /// Execute the plan, which programs `written` for the host.
    #[inline]
    fn execute(&mut self, written: PlannedPages, hardware: &mut Hardware<'_>) {
        if hardware.events.contents.is_some() {
            self.decide(written, hardware);
        } else {
            hardware.flash.execute(&mut self.plan);
        }
        self.read_only = hardware.flash.is_used_up();
    }

    #[inline(never)]
    fn decide(&mut self, written: PlannedPages, hardware: &mut Hardware<'_>) {
        let Hardware { flash, events } = hardware;
        let contents = events.contents.as_mut().expect("flash contents are recorded");
        let pages: Vec<(u32, Origin)> = match written {
            PlannedPages::Nothing => Vec::new(),
            PlannedPages::Page(page, target) => vec![(page.0, MergingBackend::origin(target))],
            PlannedPages::Buffered(extent) => {
                extent.pages().map(|page| (page.0, Origin::InMemory)).collect()
            }
        };
        let of_map = |to| self.ftl.page_of_map(to).map(|page| page.0);
        let records = execute(&mut self.plan, pages.into_iter(), of_map, true, flash, contents);
        self.plan.set_records(records);
        if let PlannedPages::Page(page, _) = written
            && self.buffers
            && !flash.is_used_up()
        {
            contents.release_from_memory(page.0); // its buffered version is older
        }
        self.handle_wear_out(flash, contents);
    }

    /// Execute the plan untimed; it programs `page` for the host, if any.
    #[inline]
    fn execute_untimed(&mut self, page: Option<Lpn>, flash: &mut Flash) {
        match self.contents.take() {
            None => flash.execute(&mut self.plan),
            Some((mut contents, origin)) => {
                let page = page.map(|page| (page.0, origin)).into_iter();
                let of_map = |to| self.ftl.page_of_map(to).map(|page| page.0);
                execute(&mut self.plan, page, of_map, false, flash, &mut contents);
                self.handle_wear_out(flash, &contents);
                self.contents = Some((contents, origin));
            }
        }
        self.read_only = flash.is_used_up();
    }

    /// Record the moves of a scrub.
    fn note_scrub(&mut self, hardware: &mut Hardware<'_>) {
        let Hardware { flash, events } = hardware;
        let Some(contents) = &mut events.contents else { return };
        let notes = flash.notes();
        let records = contents.decide_notes(notes, std::iter::empty(), |_| None, true, &flash.nand);
        self.plan.set_records(records);
    }

    /// Handle a block failure without a replacement. The last plan was not completed, so the FTL's
    /// tables are wrong.
    fn handle_wear_out(&mut self, flash: &Flash, contents: &Contents) {
        if flash.is_used_up() && self.last_addresses.is_none() {
            let of_host = (0..flash.geometry.shape().logical_pages).map(Lpn);
            let held = |page: &Lpn| self.ftl.lookup(*page).is_some();
            let held: Vec<bool> = of_host.map(|page| held(&page)).collect();
            self.keep_readable(contents, |page| held[page]);
        }
    }

    /// From now on read the newest version on flash of the pages for which `held` is true.
    pub(super) fn keep_readable(&mut self, contents: &Contents, held: impl Fn(usize) -> bool) {
        let geometry = contents.geometry();
        let of_host = geometry.shape().logical_pages as usize;
        let newest = contents.newest_decided().into_iter().take(of_host).enumerate();
        let addresses =
            newest.map(|(page, at)| at.filter(|_| held(page)).map(|at| geometry.address_of(at)));
        self.last_addresses = Some(addresses.collect());
        self.read_only = true;
    }
}
