//! A merging FTL as a backend: a write that needs room pays for the merges that make it, and what can
//! be reclaimed beside the host is reclaimed step by step.
//!
//! ```text
//! host write   ──┤ merges ├─┤ program ├──▶ end        the parts of its response time say so
//! idle time    ──┤ step ├─┤ step ├─┤ step ├──▶        the last step may end after idle time does:
//! host read    ──┤ read ├──▶ end ─┤ step ├             whoever wants its dies then waits for them
//! ```
//!
//! The firmware does one merge at a time: a write that comes while another write merges waits for it.
//! So all operations of a write are placed when the write is planned, on clocks of their own: nothing
//! can come between them.

use uflip_core::{Counters, Error};

use crate::device::backend::{Backend, Hardware, Write};
use crate::device::timed::Timed;
use crate::device::token::Target;
use crate::flash::geometry::{DieIdx, Lpn, Place};
use crate::flash::media::{CollectMedia, Flash};
use crate::flash::plan::Plan;
use crate::ftl::Merging;
use crate::ftl::extent::Extent;
use crate::timeline::breakdown::{Account, Cause, SimBreakdown};
use crate::timeline::clocks::Clocks;

/// The FTL, and until when its merges go on.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Merged {
    ftl: Merging,
    /// What it wants now; kept, so that nothing is allocated.
    #[serde(skip)]
    plan: Plan,
    /// Dies and channels.
    clocks: Clocks,
    /// When the last merge in a write's path ended.
    merging_until: u64,
    /// When the last step beside the host ended.
    reclaiming_until: u64,
    /// A step follows every so many host reads; 0: none. And how many came since the last.
    reads_per_step: u32,
    reads: u32,
    /// Merges done beside the host.
    beside: u64,
    /// Whether a write to exactly where the last one went stays in memory.
    buffers: bool,
    /// Nothing does, for a host that wants its writes durable.
    write_through: bool,
    /// Where the last write went, and whether memory has a newer version than the flash.
    last: Option<Extent>,
    dirty: bool,
    /// Pages that stayed in memory.
    absorbed: u64,
}

impl Merged {
    pub(crate) fn new(ftl: Merging, clocks: Clocks, reads_per_step: u32, buffers: bool) -> Merged {
        Merged {
            ftl,
            plan: Plan::default(),
            clocks,
            merging_until: 0,
            reclaiming_until: 0,
            reads_per_step,
            reads: 0,
            beside: 0,
            buffers,
            write_through: false,
            last: None,
            dirty: false,
            absorbed: 0,
        }
    }

    /// Whether `page` of a write to `extent` stays in memory: the write before went there as well.
    #[inline]
    fn absorbs(&mut self, page: Lpn, extent: &Extent) -> bool {
        if extent.begin() == page.0 {
            let again = self.last == Some(*extent) && extent.is_whole();
            self.dirty = again && !self.write_through;
            self.last = Some(*extent);
        }
        self.absorbed += u64::from(self.dirty);
        self.dirty
    }

    /// Write to flash what has stayed in memory, unless a write to `extent` renews it; returns when it
    /// is there.
    fn flush(&mut self, at: u64, extent: Option<&Extent>, flash: &mut Flash) -> u64 {
        let Some(last) = self.last.filter(|last| self.dirty && Some(last) != extent) else {
            return at;
        };
        self.dirty = false;
        self.plan.clear();
        last.pages().for_each(|page| self.ftl.write(page, &last, &mut self.plan));
        let timed = self.carry_out(at, &mut (), flash);
        self.merging_until = self.merging_until.max(timed.1);
        timed.0
    }

    /// Do what is planned, from `at` on; returns when it ends, and until when merges go on.
    #[inline]
    fn carry_out(&mut self, at: u64, path: &mut impl Account, flash: &mut Flash) -> (u64, u64) {
        flash.carry_out(&self.plan);
        let mut timed = Timed::new(flash.geometry, &mut self.clocks, at, path);
        timed.charge(&self.plan);
        (timed.end, timed.merged_until())
    }

    /// One step from `at` on; `None` where nothing is to be done.
    fn step(&mut self, at: u64, hardware: &mut Hardware<'_>) -> Option<u64> {
        self.plan.clear();
        let worked = self.ftl.reclaim(&mut self.plan);
        self.beside += self.plan.merges();
        let (end, _) = self.carry_out(at, &mut (), hardware.flash);
        // A step that only puts books in order takes no time; the clock must go on all the same.
        worked.then_some(end.max(at + 1))
    }

    /// Write `page` without time.
    fn write_now(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash) {
        self.plan.clear();
        self.ftl.write(page, extent, &mut self.plan);
        flash.carry_out(&self.plan);
    }
}

impl Backend for Merged {
    const PLANS_WHOLE_WRITES: bool = true;

    #[inline]
    fn find(&mut self, page: Lpn, _: &mut impl CollectMedia) -> Option<Place> {
        self.ftl.lookup(page)
    }

    #[inline]
    fn read(
        &mut self,
        page: Lpn,
        bytes: u64,
        at: u64,
        target: Target,
        hardware: &mut Hardware<'_>,
    ) {
        self.clocks.advance(hardware.events.now());
        let mut path = SimBreakdown::default();
        self.plan.clear();
        // Where nothing was ever written the controller answers alone, once it knows that.
        if let Some(from) = self.ftl.find(page, &mut self.plan) {
            self.plan.read(from);
        }
        let (end, _) = self.carry_out(at, &mut path, hardware.flash);
        hardware.events.all_spent(target.account, &path);
        hardware.events.deliver(end, at, bytes, target.op());
    }

    #[inline]
    fn write(&mut self, write: Write, ready: u64, hardware: &mut Hardware<'_>) {
        let Write { page, extent, target } = write;
        self.clocks.advance(hardware.events.now());
        if self.buffers {
            self.flush(ready, Some(&extent), hardware.flash);
            if self.absorbs(page, &extent) {
                return hardware.events.end(ready, ready, target.op());
            }
        }
        let at = ready.max(self.merging_until);
        let mut path = SimBreakdown::default();
        path.add(Cause::Merge, at - ready);
        self.plan.clear();
        self.ftl.write(page, &extent, &mut self.plan);
        let (end, merged_until) = self.carry_out(at, &mut path, hardware.flash);
        self.merging_until = self.merging_until.max(merged_until);
        hardware.events.all_spent(target.account, &path);
        hardware.events.end(end, ready, target.op());
    }

    #[inline]
    fn after_read(&mut self, end: u64, hardware: &mut Hardware<'_>) {
        if self.reads_per_step == 0 {
            return;
        }
        self.reads += 1;
        if self.reads >= self.reads_per_step {
            self.reads = 0;
            let at = end.max(self.reclaiming_until);
            if let Some(end) = self.step(at, hardware) {
                self.reclaiming_until = end;
            }
        }
    }

    fn collect(&mut self, _: DieIdx, _: u64, _: &mut Hardware<'_>) {
        unreachable!("nothing is collected beside the host")
    }

    fn stuck(&mut self, _: u64, _: &mut Hardware<'_>) {
        unreachable!("the end of everything is known when it begins")
    }

    fn why_read_only(&self) -> Error {
        unreachable!("nothing is retired")
    }

    #[inline]
    fn planned_until(&self) -> u64 {
        self.merging_until.max(self.reclaiming_until)
    }

    fn set_write_through(&mut self, write_through: bool) {
        self.write_through = write_through;
    }

    fn drain(&mut self, at: u64, hardware: &mut Hardware<'_>) -> u64 {
        let begin = at.max(self.merging_until);
        let end = self.flush(begin, None, hardware.flash);
        if end > begin { end } else { at }
    }

    fn begin_idle(&mut self, now: u64, until: u64, hardware: &mut Hardware<'_>) {
        self.flush(now, None, hardware.flash);
        self.reclaiming_until = self.reclaiming_until.max(now);
        while self.reclaiming_until < until {
            match self.step(self.reclaiming_until, hardware) {
                Some(end) => self.reclaiming_until = end,
                None => return,
            }
        }
    }

    /// Nothing is under way but in time, which the untimed gear does not know.
    fn end_untimed(&mut self, flash: &mut Flash) {
        if let Some(last) = self.last.take().filter(|_| self.dirty) {
            last.pages().for_each(|page| self.write_now(page, &last, flash));
        }
        self.dirty = false;
    }

    #[inline]
    fn write_untimed(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash) {
        self.write_now(page, extent, flash);
    }

    fn trim(&mut self, page: Lpn) {
        self.ftl.trim(page);
    }

    #[inline]
    fn prefetch(&self, page: Lpn) {
        self.ftl.prefetch(page);
    }

    fn count(&self, counters: &mut Counters) {
        counters.merges_idle = self.beside;
        counters.pages_absorbed += self.absorbed;
    }
}
