//! A page map and its collector as a backend: a write goes to a die that has room, and a die that has
//! none left begins to collect.

use uflip_core::Counters;

use crate::backend::{Backend, Extent, Hardware};
use crate::breakdown::{Account, Cause};
use crate::collector::{Collector, Parts};
use crate::ftl::PageMap;
use crate::geometry::{DieIdx, Lpn, Place};
use crate::media::{Flash, Media, Timed};

/// The page map, and the collections under way.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Paged {
    ftl: PageMap,
    collector: Collector,
}

impl Paged {
    /// Dies collect towards `idle_goal` free blocks in idle time; 0: not at all.
    pub(crate) fn new(ftl: PageMap, dies: u32, idle_goal: usize) -> Paged {
        Paged { ftl, collector: Collector::new(dies, idle_goal) }
    }

    #[inline]
    fn split<'a>(&'a mut self, hardware: &'a mut Hardware<'_>) -> (&'a mut Collector, Parts<'a>) {
        let Hardware { flash, timeline } = hardware;
        (&mut self.collector, Parts { ftl: &mut self.ftl, flash, timeline })
    }
}

impl Backend for Paged {
    #[inline]
    fn advance(&mut self, now: u64, hardware: &mut Hardware<'_>) {
        let (collector, mut parts) = self.split(hardware);
        collector.advance(now, &mut parts);
    }

    #[inline]
    fn find(&mut self, page: Lpn, media: &mut impl Media) -> Option<Place> {
        self.ftl.find(page, media)
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
        let (collector, mut parts) = self.split(hardware);
        let turn = parts.ftl.turn();
        let (die, at) = if parts.ftl.has_room(turn) {
            (turn, ready)
        } else {
            die_with_room(collector, &mut parts, turn, ready)
        };
        path.add(Cause::FreePage, at - ready);
        let mut media = Timed::new(parts.flash, parts.timeline, at, path);
        parts.ftl.write_to(die, page, extent.covers(page), &mut media);
        let end = media.end;
        if parts.ftl.wants_collection(die) {
            collector.begin(die, at, &mut parts);
        }
        end
    }

    fn idle(&mut self, now: u64, until: u64, hardware: &mut Hardware<'_>) {
        let (collector, mut parts) = self.split(hardware);
        collector.idle(now, until, &mut parts);
    }

    fn end_untimed(&mut self, flash: &mut Flash) {
        self.collector.end_untimed(&mut self.ftl, flash);
    }

    #[inline]
    fn write_untimed(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash) {
        self.ftl.write(page, extent.covers(page), flash);
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

    fn count(&self, counters: &mut Counters) {
        counters.blocks_collected_idle = self.collector.begun_idle;
    }
}

/// A die with room for a page, and from when on: `turn` itself after it has collected, or the first
/// other one where it has nothing to gain.
#[cold]
fn die_with_room(
    collector: &mut Collector,
    parts: &mut Parts<'_>,
    turn: DieIdx,
    ready: u64,
) -> (DieIdx, u64) {
    for die in parts.ftl.dies_from(turn) {
        if let Some(at) = collector.make_room(die, ready, parts) {
            return (die, at);
        }
    }
    parts.ftl.full()
}
