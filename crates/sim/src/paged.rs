//! A page map and its collector as a backend: a write goes to a die that has room, and a die that has
//! none left begins to collect.

use std::collections::VecDeque;

use uflip_core::{Counters, Error, Mode};

use crate::backend::{Backend, Extent, Hardware, Piece, Write};
use crate::breakdown::Cause;
use crate::collector::{Collector, Parts};
use crate::ftl::PageMap;
use crate::geometry::{DieIdx, Lpn, Place};
use crate::issued::{Issued, Target};
use crate::media::{CollectMedia, Flash, Media as _};

/// The page map, and the collections under way.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Paged {
    ftl: PageMap,
    collector: Collector,
    /// Pages that wait for a free one, in the order in which they came.
    waiting: VecDeque<Waiting>,
    /// Steps of collections since a waiting page found its place.
    in_vain: u64,
}

/// A page for which there was no room.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Waiting {
    write: Write,
    since: u64,
    /// The die whose turn it was.
    die: DieIdx,
}

impl Paged {
    /// Dies collect towards `idle_goal` free blocks in idle time; 0: not at all.
    pub(crate) fn new(ftl: PageMap, dies: u32, idle_goal: usize) -> Paged {
        let collector = Collector::new(dies, idle_goal);
        Paged { ftl, collector, waiting: VecDeque::new(), in_vain: 0 }
    }

    #[inline]
    fn split<'a>(&'a mut self, hardware: &'a mut Hardware<'_>) -> (&'a mut Collector, Parts<'a>) {
        let Hardware { flash, events } = hardware;
        (&mut self.collector, Parts { ftl: &mut self.ftl, flash, events })
    }

    /// Write to `die`, which has room.
    #[inline(always)]
    fn write_to(&mut self, die: DieIdx, write: &Write, at: u64, hardware: &mut Hardware<'_>) {
        let Write { page, extent, target } = write;
        let mut media = Issued::new(hardware.flash, hardware.events, at, *target);
        if !self.ftl.write_to(die, *page, extent.covers(*page), &mut media) {
            return hardware.events.end(at, at, target.failed().op());
        }
        if self.ftl.wants_collection(die) {
            let (collector, mut parts) = self.split(hardware);
            collector.begin(die, at, &mut parts);
        }
    }

    /// A die for a page whose turn is `turn`, which has no room: `None` where it waits for a
    /// collection, of that die or, where that one has nothing to gain, of another (OFC §IV.C: the round
    /// robin is relaxed where dies differ).
    #[cold]
    fn die_or_wait(
        &mut self,
        turn: DieIdx,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) -> Option<DieIdx> {
        loop {
            for die in self.ftl.dies_from(turn) {
                if self.ftl.has_room(die) {
                    self.ftl.found_room();
                    return Some(die);
                }
                let (collector, mut parts) = self.split(hardware);
                if collector.collects(die) || collector.begin(die, at, &mut parts) {
                    return None;
                }
            }
            if self.collector.collects_any() {
                return None;
            }
            if !self.ftl.overrule_policy() {
                self.ftl.end_of_life();
                return None;
            }
        }
    }

    /// Something was collected: see who of those that wait has room now.
    #[cold]
    fn try_again(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        self.in_vain += 1;
        // What two passes over the device did not gain, more will not.
        let shape = *hardware.flash.geometry.shape();
        let steps = u64::from(shape.dies * shape.blocks_per_die)
            * u64::from(hardware.flash.geometry.data_pages() + 2);
        if self.in_vain > self.ftl.patience(steps) {
            if self.ftl.overrule_policy() {
                self.in_vain = 0;
            } else {
                self.ftl.end_of_life();
            }
        }
        for _ in 0..self.waiting.len() {
            if self.ftl.is_read_only() {
                break;
            }
            let Some(first) = self.waiting.pop_front() else { return };
            let Waiting { write, since, die } = first;
            let has_room = self.ftl.has_room(die).then_some(die);
            match has_room.or_else(|| self.die_or_wait(die, at, hardware)) {
                Some(die) => {
                    self.in_vain = 0;
                    self.ftl.found_room();
                    hardware.events.spent(write.target.account, Cause::FreePage, at - since);
                    self.write_to(die, &write, at, hardware);
                }
                None => self.waiting.push_back(first),
            }
        }
        if self.ftl.is_read_only() {
            self.refuse_waiting(at, hardware);
        }
    }

    /// The device is read-only: what waits for a page is not written.
    #[cold]
    fn refuse_waiting(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        for Waiting { write, since, .. } in self.waiting.drain(..) {
            hardware.events.spent(write.target.account, Cause::FreePage, at - since);
            hardware.events.end(at, at, write.target.failed().op());
        }
    }
}

impl Backend for Paged {
    const PLANS_WHOLE_WRITES: bool = false;

    #[inline]
    fn find(&mut self, page: Lpn, media: &mut impl CollectMedia) -> Option<Place> {
        self.ftl.find(page, media)
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
        let mut media = Issued::new(hardware.flash, hardware.events, at, target).sending(bytes);
        match self.ftl.find(page, &mut media) {
            Some(from) => media.read(from),
            None => media.answer(),
        }
    }

    #[inline(always)]
    fn write(&mut self, write: Write, at: u64, hardware: &mut Hardware<'_>) {
        let turn = self.ftl.turn();
        let has_room = self.ftl.has_room(turn).then_some(turn);
        match has_room.or_else(|| self.die_or_wait(turn, at, hardware)) {
            Some(die) => self.write_to(die, &write, at, hardware),
            None => {
                self.waiting.push_back(Waiting { write, since: at, die: turn });
                if self.ftl.is_read_only() {
                    self.refuse_waiting(at, hardware);
                }
            }
        }
    }

    #[inline]
    fn collect(&mut self, die: DieIdx, at: u64, hardware: &mut Hardware<'_>) {
        let (collector, mut parts) = self.split(hardware);
        collector.step(die, at, &mut parts);
        if !self.waiting.is_empty() {
            self.try_again(at, hardware);
        }
    }

    fn begin_idle(&mut self, now: u64, _until: u64, hardware: &mut Hardware<'_>) {
        let (collector, mut parts) = self.split(hardware);
        collector.begin_idle(now, &mut parts);
    }

    fn end_idle(&mut self) {
        self.collector.end_idle();
    }

    /// Whoever waits for a page does not get one.
    #[cold]
    fn stuck(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        assert!(!self.waiting.is_empty(), "an I/O under way ends, or waits for a page");
        self.ftl.end_of_life();
        self.refuse_waiting(at, hardware);
    }

    #[inline]
    fn is_read_only(&self) -> bool {
        self.ftl.is_read_only()
    }

    fn why_read_only(&self) -> Error {
        self.ftl.why_read_only()
    }

    fn end_untimed(&mut self, flash: &mut Flash) {
        let Paged { collector, ftl, .. } = self;
        collector.end_untimed(ftl, flash);
        for Waiting { write: Write { page, extent, .. }, .. } in self.waiting.drain(..) {
            self.ftl.write(page, extent.covers(page), flash);
        }
    }

    #[inline]
    fn write_untimed(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash) {
        self.ftl.write(page, extent.covers(page), flash);
    }

    fn apply(&mut self, pieces: &[Piece], flash: &mut Flash) {
        for run in pieces.chunk_by(|one, next| one.mode == next.mode) {
            match run[0].mode {
                Mode::Write => {
                    let pages =
                        run.iter().map(|piece| (piece.page, piece.extent.covers(piece.page)));
                    self.ftl.write_all(pages, flash);
                }
                Mode::Read => {
                    for piece in run {
                        if let Some(at) = self.ftl.find(piece.page, flash) {
                            flash.read(at);
                        }
                    }
                }
            }
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

    fn count(&self, counters: &mut Counters) {
        counters.blocks_collected_idle = self.collector.begun_idle;
    }
}
