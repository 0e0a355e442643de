//! A merging FTL as a backend: a write that needs room pays for the merges that make it, and what can
//! be reclaimed beside the host is reclaimed step by step.
//!
//! ```text
//! host write   ──┤ merges ├─┤ program ├──▶ end        the parts of its response time say so
//! idle time    ──┤ step ├─┤ step ├─┤ step ├──▶        the last step may end after idle time does:
//! host read    ──┤ read ├──▶ end ─┤ step ├             whoever wants its dies then waits for them
//! ```
//!
//! The FTL plans a write when it is taken in, and its plan is carried out when the data is there
//! (`jobs/`). The firmware does one merge at a time, or as many as `merges_side_by_side` says: a write that
//! comes while so many others merge waits, and so does one that needs a block of theirs.

use uflip_core::Error;

use crate::device::backend::{Backend, Hardware, Write};
use crate::device::event::{DeviceEvent, Target};
use crate::device::jobs::{Jobs, Line, Order, serve};
use crate::device::written::Written;
use crate::flash::contents::{Contents, Origin};
use crate::flash::geometry::{Lpn, Place};
use crate::flash::media::Flash;
use crate::flash::plan::Plan;
use crate::ftl::extent::Extent;
use crate::ftl::{Merging, read_only};

/// The FTL, and what it has planned.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Merged {
    pub(super) ftl: Merging,
    /// What it wants now; kept, so that nothing is allocated.
    #[serde(skip)]
    pub(super) plan: Plan,
    pub(super) jobs: Jobs,
    /// Steps begin beside the host until then.
    idle_until: u64,
    /// A step follows every so many host reads; 0: none. And how many came since the last.
    reads_per_step: u32,
    reads: u32,
    /// Whether a write to exactly where the last one went stays in memory.
    pub(super) buffers: bool,
    /// Where the last write went, and whether memory has a newer version than the flash.
    last: Option<Extent>,
    dirty: bool,
    /// A block has failed that nothing could replace: nothing is written any more.
    pub(super) read_only: bool,
    /// What is on flash, while no time passes, and whose versions are written; otherwise the timeline has it.
    #[serde(skip)]
    pub(super) contents: Option<(Box<Contents>, Origin)>,
    /// Where pages are, where a block has failed that nothing could replace and it is kept what is on flash.
    pub(super) at_end: Option<Vec<Option<Place>>>,
}

impl Merged {
    pub(crate) fn new(ftl: Merging, jobs: Jobs, reads_per_step: u32, buffers: bool) -> Merged {
        Merged {
            ftl,
            plan: Plan::default(),
            jobs,
            idle_until: 0,
            reads_per_step,
            reads: 0,
            buffers,
            last: None,
            dirty: false,
            read_only: false,
            contents: None,
            at_end: None,
        }
    }

    /// Plan a read of `page`.
    #[inline]
    fn plan_read(&mut self, page: Lpn) {
        self.plan.clear();
        let from = match &self.at_end {
            None => self.ftl.find(page, &mut self.plan),
            Some(places) => places[page.0 as usize],
        };
        if let Some(from) = from {
            self.plan.read(from);
        }
    }

    /// What stays in memory finds no place any more.
    pub(super) fn keeps_in_vain(&self) -> bool {
        self.buffers && self.at_end.is_some()
    }

    /// Where `page` is, as the FTL knows places.
    pub(super) fn lookup(&self, page: Lpn) -> Option<Place> {
        match &self.at_end {
            None => self.ftl.lookup(page),
            Some(places) => places[page.0 as usize],
        }
    }

    /// Whether the page of a write stays in memory: the write before went to the same extent.
    #[inline]
    fn absorbs(&mut self, write: &Write) -> bool {
        let Write { page, extent, through, .. } = write;
        if extent.begin() == page.0 {
            let again = self.last == Some(*extent) && extent.is_whole();
            self.dirty = again && !through;
            self.last = Some(*extent);
        }
        self.dirty
    }

    /// Write to flash, from `ready` on, what has stayed in memory, unless a write to `extent` renews it;
    /// `target` is told of the end. False where there is nothing.
    fn flush(
        &mut self,
        ready: u64,
        extent: Option<&Extent>,
        target: Option<Target>,
        hardware: &mut Hardware<'_>,
    ) -> bool {
        let Some(last) = self.last.filter(|last| self.dirty && Some(last) != extent) else {
            return false;
        };
        self.dirty = false;
        self.plan.clear();
        if self.at_end.is_none() {
            last.pages().for_each(|page| self.ftl.write(page, &last, &mut self.plan));
            self.carry_out(Written::Kept(last), hardware);
        }
        let target = target.map(|target| target.failed_if(self.read_only));
        let order = Order { ready, target, read_bytes: None, scrubs: false };
        self.jobs.queue(&mut self.plan, order, Line::Path, hardware);
        true
    }

    /// One step beside the host from `ready` on; returns when the next may begin at the earliest, `None`
    /// where nothing is to be done.
    fn step(&mut self, ready: u64, hardware: &mut Hardware<'_>) -> Option<u64> {
        if self.read_only {
            return None;
        }
        self.plan.clear();
        let worked = self.ftl.reclaim(&mut self.plan);
        hardware.flash.counters.merges_idle += self.plan.merges();
        self.carry_out(Written::Nothing, hardware);
        if !self.plan.is_timeless() {
            let order = Order { ready, target: None, read_bytes: None, scrubs: false };
            self.jobs.queue(&mut self.plan, order, Merged::beside(hardware), hardware);
        }
        // What only puts books in order takes no time; the clock must go on all the same.
        worked.then_some(ready + 1)
    }

    /// Whether a step may begin beside the host.
    #[inline]
    fn may_step(&self, at: u64, hardware: &Hardware<'_>) -> bool {
        at < self.idle_until && self.jobs.is_free(Merged::beside(hardware))
    }

    /// Steps follow each other as long as the host leaves the device alone.
    fn go_on_beside(&mut self, mut at: u64, hardware: &mut Hardware<'_>) {
        while self.may_step(at, hardware) {
            match self.step(at, hardware) {
                Some(next) => at = next,
                None => self.idle_until = 0,
            }
        }
    }

    /// Write `page` without time.
    fn write_now(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash) {
        if self.at_end.is_some() {
            return;
        }
        self.plan.clear();
        self.ftl.write(page, extent, &mut self.plan);
        self.carry_out_now(Some(page), flash);
    }
}

impl Backend for Merged {
    const PLANS_WHOLE_WRITES: bool = true;

    #[inline]
    fn read(
        &mut self,
        page: Lpn,
        bytes: u64,
        at: u64,
        target: Target,
        hardware: &mut Hardware<'_>,
    ) {
        self.plan_read(page);
        self.carry_out(Written::Nothing, hardware);
        let failed = std::mem::take(&mut hardware.flash.read_failed);
        let target = target.failed_if(failed);
        let order =
            Order { ready: at, target: Some(target), read_bytes: Some(bytes), scrubs: false };
        match self.plan.only() {
            Some(command) => serve(command, 0, order, hardware),
            // What a page of the map makes room for is programmed and erased in turn.
            None if !self.plan.records().is_empty() => {
                self.jobs.queue(&mut self.plan, order, Line::Path, hardware);
            }
            // Where nothing was ever written the controller answers alone, once it knows that.
            None => self.jobs.begin(&mut self.plan, order, hardware),
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
                self.keep(page, target, hardware);
                return hardware.events.end(ready, hardware.events.now(), target.op());
            }
        }
        self.plan.clear();
        self.ftl.write(page, &extent, &mut self.plan);
        self.carry_out(Written::Page(page, target), hardware);
        let target = target.failed_if(self.read_only);
        let order = Order { ready, target: Some(target), read_bytes: None, scrubs: false };
        let record = self.plan.records().first().copied().unwrap_or(0);
        match self.plan.only().filter(|_| self.jobs.is_free(Line::Path)) {
            Some(command) => {
                serve(command, record, order, hardware);
            }
            None => self.jobs.queue(&mut self.plan, order, Line::Path, hardware),
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
        let alone = !self.may_step(at, hardware);
        let until = if alone { hardware.events.undisturbed_until() } else { 0 };
        self.jobs.handle_event(event, at, until, hardware);
        self.go_on_beside(hardware.events.now(), hardware);
    }

    #[cold]
    fn scrub(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        self.plan_scrubs(at, hardware);
    }

    fn stuck(&mut self, _: u64, _: &mut Hardware<'_>) {
        unreachable!("a plan under way ends")
    }

    #[inline]
    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn why_read_only(&self) -> Error {
        read_only()
    }

    fn drain(&mut self, at: u64, target: Target, hardware: &mut Hardware<'_>) -> bool {
        // What was kept before may be on its way.
        self.flush(at, None, Some(target), hardware)
            || self.buffers && hardware.events.waits_for_programs(target.token)
    }

    fn begin_idle(&mut self, now: u64, until: u64, hardware: &mut Hardware<'_>) {
        self.flush(now, None, None, hardware);
        self.scrub_if_due(now, hardware);
        self.idle_until = until;
        self.go_on_beside(now, hardware);
    }

    fn end_idle(&mut self) {
        self.idle_until = 0;
    }

    /// Nothing is under way but in time, which the untimed gear does not know.
    fn end_untimed(&mut self, flash: &mut Flash) {
        self.jobs.clear();
        if let Some(last) = self.last.take().filter(|_| self.dirty) {
            last.pages().for_each(|page| self.write_now(page, &last, flash));
        }
        self.dirty = false;
    }

    #[inline]
    fn write_untimed(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash) {
        self.write_now(page, extent, flash);
    }

    #[inline]
    fn read_untimed(&mut self, page: Lpn, flash: &mut Flash) {
        self.plan_read(page);
        self.carry_out_now(None, flash);
    }

    fn trim(&mut self, page: Lpn) {
        match &mut self.at_end {
            None => self.ftl.trim(page),
            Some(places) => places[page.0 as usize] = None,
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
