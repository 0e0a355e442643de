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

use uflip_core::Counters;

use crate::backend::{Backend, Extent, Hardware};
use crate::breakdown::{Account, Cause};
use crate::ftl::Merging;
use crate::geometry::{Lpn, Place};
use crate::media::{Flash, Media, Timed};

/// The FTL, and until when its merges go on.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Merged {
    ftl: Merging,
    /// When the last merge in a write's path ended.
    merging_until: u64,
    /// When the last step beside the host ended.
    reclaiming_until: u64,
    /// Steps that follow a host read.
    steps_after_read: u32,
    /// Merges done beside the host.
    beside: u64,
}

impl Merged {
    pub(crate) fn new(ftl: Merging, steps_after_read: u32) -> Merged {
        Merged { ftl, merging_until: 0, reclaiming_until: 0, steps_after_read, beside: 0 }
    }

    /// One step from `at` on; `None` where nothing is to be done.
    fn step(&mut self, at: u64, hardware: &mut Hardware<'_>) -> Option<u64> {
        let before = merges(&hardware.flash.counters);
        let mut account = ();
        let mut media = Timed::new(hardware.flash, hardware.timeline, at, &mut account);
        let worked = self.ftl.reclaim(&mut media);
        // A step that only puts books in order takes no time; the clock must go on all the same.
        let end = media.end.max(at + 1);
        self.beside += merges(&hardware.flash.counters) - before;
        worked.then_some(end)
    }
}

fn merges(counters: &Counters) -> u64 {
    counters.switch_merges + counters.partial_merges + counters.full_merges
}

impl Backend for Merged {
    #[inline]
    fn advance(&mut self, _: u64, _: &mut Hardware<'_>) {}

    #[inline]
    fn find(&mut self, page: Lpn, _: &mut impl Media) -> Option<Place> {
        self.ftl.lookup(page)
    }

    #[inline]
    fn write<A: Account>(
        &mut self,
        page: Lpn,
        extent: &Extent,
        ready: u64,
        hardware: &mut Hardware<'_>,
        path: &mut A,
    ) -> u64 {
        let at = ready.max(self.merging_until);
        path.add(Cause::Merge, at - ready);
        let mut media = Timed::new(hardware.flash, hardware.timeline, at, path);
        self.ftl.write(page, extent, &mut media);
        self.merging_until = self.merging_until.max(media.merged_until());
        media.end
    }

    #[inline]
    fn after_read(&mut self, end: u64, hardware: &mut Hardware<'_>) {
        for _ in 0..self.steps_after_read {
            let at = end.max(self.reclaiming_until);
            match self.step(at, hardware) {
                Some(end) => self.reclaiming_until = end,
                None => return,
            }
        }
    }

    fn idle(&mut self, now: u64, until: u64, hardware: &mut Hardware<'_>) {
        self.reclaiming_until = self.reclaiming_until.max(now);
        while self.reclaiming_until < until {
            match self.step(self.reclaiming_until, hardware) {
                Some(end) => self.reclaiming_until = end,
                None => return,
            }
        }
    }

    /// Nothing is under way but in time, which the untimed gear does not know.
    fn end_untimed(&mut self, _: &mut Flash) {}

    #[inline]
    fn write_untimed(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash) {
        self.ftl.write(page, extent, flash);
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
    }
}
