//! *When* to collect: the device's question, for it holds the clock.
//!
//! Every plane collects at most one block at a time, page by page or so many pages at once, beside the host's I/Os,
//! and of the planes of a channel not more than so many:
//!
//! ```text
//! begin ─▶ read page ─▶ program it, read the next ─▶ … ─▶ erase ─▶ block free
//!          (an event each: it happens when the read has delivered its data)
//! ```
//!
//! A page gets its new place only when its data is there, so programs are issued in the order of
//! their time, and a host write never waits for a relocation that could not have begun.
//!
//! **Source**: OFC (2011) §IV.A (receive path of relocation requests), §IV.D, §VI.
//! **Faithful**: relocation and host requests share the die rings; how many blocks and pages are handled at once.
//! **Simplified**: a plane never collects two blocks at once. Which of the planes that wait for their channel's turn is
//! next: the one that has waited longest.
//! **Ambiguous**: when collection begins; see `ftl/page_map/mod.rs`.

use std::collections::VecDeque;

use crate::device::event::{DeviceEvent, EventTag, Target};
use crate::device::page_buffer::PageBuffer;
use crate::device::timed_flash::TimedFlash;
use crate::flash::fast_path::{FastPath, Full};
use crate::flash::geometry::{Place, PlaneIdx};
use crate::flash::media::Flash;
use crate::ftl::{Collection, Item, PageMap};
use crate::timeline::{Kind, Op, Purpose, Timeline, Timing};

/// Collections under way, one a plane at most.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Collector {
    jobs: Vec<Option<Job>>,
    under_way: u32,
    pace: Pace,
    /// Per plane: pages that are being read, after the one that its job waits for.
    ahead: Vec<VecDeque<Item>>,
    /// Planes that may begin when another one of their channel has ended, in the order in which they came; and so
    /// many of each channel collect. Both empty where a channel has no limit.
    waiting: VecDeque<PlaneIdx>,
    busy: Vec<u32>,
    /// The host is idle.
    idle: bool,
}

/// How much is done at once.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pace {
    /// Free blocks that a plane works towards in idle time; 0: none.
    pub(crate) idle_goal: usize,
    /// Blocks that are collected on each channel, where that is limited.
    pub(crate) blocks: Option<u32>,
    /// Pages of a block that are under way.
    pub(crate) pages: u32,
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Job {
    collection: Collection,
    step: Step,
}

/// What the job waits for.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
enum Step {
    /// The processor, and the metadata page.
    Beginning,
    /// The data of this page.
    Reading(Item),
    /// The programs of what the victim held, where a loss of power must not find it erased before them.
    Settling,
    /// The end of the erase.
    Erasing,
}

/// The device's parts that a step works on.
pub(crate) struct Parts<'a> {
    pub(crate) ftl: &'a mut PageMap,
    pub(crate) flash: &'a mut Flash,
    pub(crate) events: &'a mut Timeline<EventTag>,
    pub(crate) gather: Option<&'a mut PageBuffer>,
}

impl Parts<'_> {
    fn channel_of(&self, plane: PlaneIdx) -> usize {
        self.flash.geometry.channel_of(plane)
    }

    /// Where an operation of the collection of `plane` goes to.
    #[inline]
    fn media<M: FastPath>(
        &mut self,
        plane: PlaneIdx,
        at: u64,
    ) -> (&mut PageMap, TimedFlash<'_, M>) {
        let media = TimedFlash::made(self.flash, self.events, at, Target::collection(plane));
        if M::MINIMAL {
            return (self.ftl, media);
        }
        (self.ftl, media.gathering(self.gather.as_deref_mut()))
    }
}

impl Collector {
    pub(crate) fn new(planes: u32, channels: u32, pace: Pace) -> Collector {
        Collector {
            jobs: vec![None; planes as usize],
            under_way: 0,
            pace,
            ahead: vec![VecDeque::new(); if pace.pages > 1 { planes as usize } else { 0 }],
            waiting: VecDeque::new(),
            busy: vec![0; pace.blocks.map_or(0, |_| channels as usize)],
            idle: false,
        }
    }

    /// Whether `plane` collects, or will when it is its turn.
    #[inline]
    pub(crate) fn collects(&self, plane: PlaneIdx) -> bool {
        self.jobs[plane.0 as usize].is_some() || self.waiting.contains(&plane)
    }

    /// Whether every plane may collect as it likes, a page after the other.
    pub(crate) fn is_minimal(&self) -> bool {
        self.pace.blocks.is_none() && self.pace.pages == 1
    }

    /// Whether any plane collects.
    pub(crate) fn collects_any(&self) -> bool {
        self.under_way > 0
    }

    /// Whether every plane collects.
    pub(crate) fn collects_all(&self) -> bool {
        self.under_way as usize == self.jobs.len()
    }

    /// The host leaves the device alone from `at` on: planes collect ahead towards their goal.
    pub(crate) fn begin_idle(&mut self, at: u64, parts: &mut Parts<'_>) {
        self.idle = true;
        parts.ftl.set_idle(true);
        self.begin_ahead(at, parts);
    }

    /// The host is back; what has begun goes on.
    pub(crate) fn end_idle(&mut self, ftl: &mut PageMap) {
        self.idle = false;
        ftl.set_idle(false);
    }

    /// Also planes that had reached their goal: what others moved may have taken their free blocks.
    fn begin_ahead(&mut self, at: u64, parts: &mut Parts<'_>) {
        for plane in (0..self.jobs.len() as u32).map(PlaneIdx) {
            let ftl = &parts.ftl;
            let due = ftl.has_fewer_free(plane, self.pace.idle_goal)
                || ftl.has_to_fold(plane)
                || ftl.has_to_scrub(plane);
            if due {
                self.begin(plane, at, parts);
            }
        }
    }

    /// Begin to collect a block of `plane`, unless it does already. False where that gains nothing.
    #[inline]
    pub(crate) fn begin(&mut self, plane: PlaneIdx, at: u64, parts: &mut Parts<'_>) -> bool {
        if self.collects(plane) {
            return false;
        }
        if self.pace.blocks.is_some_and(|most| self.busy[parts.channel_of(plane)] >= most) {
            self.waiting.push_back(plane);
            return true;
        }
        self.begin_now(plane, at, parts)
    }

    fn begin_now(&mut self, plane: PlaneIdx, at: u64, parts: &mut Parts<'_>) -> bool {
        let (ftl, mut media) = parts.media::<Full>(plane, at);
        let Some(collection) = ftl.begin_collection(plane, &mut media) else {
            return false;
        };
        parts.events.collects_pages(parts.ftl.valid_in_victim(&collection));
        self.jobs[plane.0 as usize] = Some(Job { collection, step: Step::Beginning });
        self.under_way += 1;
        parts.flash.counters.blocks_collected_idle += u64::from(self.idle);
        self.busy.get_mut(parts.channel_of(plane)).into_iter().for_each(|busy| *busy += 1);
        true
    }

    /// A plane of `channel` has ended its collection: those that wait for that begin.
    #[cold]
    fn let_others_begin(&mut self, channel: usize, at: u64, parts: &mut Parts<'_>) {
        self.busy[channel] -= 1;
        let most = self.pace.blocks.expect("channels have a limit");
        while self.busy[channel] < most
            && let Some(place) =
                self.waiting.iter().position(|plane| parts.channel_of(*plane) == channel)
            && let Some(plane) = self.waiting.remove(place)
        {
            self.begin_now(plane, at, parts);
        }
    }

    /// What the collection of `plane` waited for has happened at `at`.
    #[inline(always)]
    pub(crate) fn step<M: FastPath>(&mut self, plane: PlaneIdx, at: u64, parts: &mut Parts<'_>) {
        let job = self.jobs[plane.0 as usize].as_mut().expect("a step belongs to a collection");
        match job.step {
            Step::Beginning | Step::Settling => {}
            Step::Reading(item) => {
                if !M::MINIMAL
                    && let Some(gather) = &mut parts.gather
                {
                    gather.serve_moved(parts.ftl.goes_with(&job.collection));
                }
                let (ftl, mut media) = parts.media::<M>(plane, at);
                if !M::MINIMAL {
                    media.moves = job.collection.purpose();
                }
                let mut next = Some(item);
                while let Some(item) = next {
                    ftl.relocate(&mut job.collection, item, &mut media);
                    media.beside = true;
                    if M::MINIMAL {
                        break;
                    }
                    next = ftl.next_beside(&mut job.collection, item);
                }
            }
            Step::Erasing => return self.finish(plane, at, parts),
        }
        if !M::MINIMAL && self.pace.pages > 1 {
            return self.read_ahead(plane, at, parts);
        }
        match parts.ftl.next_item(&mut job.collection) {
            Some(item) => {
                job.step = Step::Reading(item);
                read::<M>(parts, &job.collection, item.from, at);
            }
            None => job.erase(at, parts),
        }
    }

    /// Several pages of a block are under way: as many as that are read.
    #[inline(never)]
    fn read_ahead(&mut self, plane: PlaneIdx, at: u64, parts: &mut Parts<'_>) {
        let job = self.jobs[plane.0 as usize].as_mut().expect("a step belongs to a collection");
        let ahead = &mut self.ahead[plane.0 as usize];
        // The one that is waited for is not among them.
        while ahead.len() < self.pace.pages as usize
            && let Some(item) = parts.ftl.next_item(&mut job.collection)
        {
            ahead.push_back(item);
            read::<Full>(parts, &job.collection, item.from, at);
        }
        match ahead.pop_front() {
            Some(item) => job.step = Step::Reading(item),
            None => job.erase(at, parts),
        }
    }

    fn finish(&mut self, plane: PlaneIdx, at: u64, parts: &mut Parts<'_>) {
        let job = self.jobs[plane.0 as usize].take().expect("it was being collected");
        self.under_way -= 1;
        let (ftl, mut media) = parts.media::<Full>(plane, at);
        ftl.finish(&job.collection, &mut media);
        if self.pace.blocks.is_some() {
            self.let_others_begin(parts.channel_of(plane), at, parts);
        }
        // Relocated pages may have taken what was just gained.
        let due = parts.ftl.wants_collection::<Full>(plane) || parts.ftl.has_to_scrub(plane);
        if due {
            self.begin(plane, at, parts);
        }
        if self.idle {
            self.begin_ahead(at, parts);
        }
    }

    /// End all collections under way in the untimed gear, which follows. Their events are over.
    pub(crate) fn end_untimed(&mut self, ftl: &mut PageMap, flash: &mut Flash) {
        let Collector { jobs, ahead, .. } = self;
        for (plane, job) in jobs.iter_mut().enumerate() {
            let Some(Job { mut collection, step }) = job.take() else { continue };
            if let Step::Reading(item) = step {
                ftl.relocate(&mut collection, item, flash);
            }
            for item in ahead.get_mut(plane).into_iter().flat_map(|ahead| ahead.drain(..)) {
                ftl.relocate(&mut collection, item, flash);
            }
            ftl.collect_rest(collection, flash);
        }
        self.under_way = 0;
        self.waiting.clear();
        self.busy.fill(0);
    }
}

impl Collection {
    /// For whom it moves pages.
    pub(super) fn purpose(&self) -> Purpose {
        if self.scrubs { Purpose::Scrub } else { Purpose::Relocation }
    }
}

impl Job {
    /// Nothing is left to be moved: the block is erased, when what it held is safe elsewhere.
    #[inline(never)]
    fn erase(&mut self, at: u64, parts: &mut Parts<'_>) {
        let Collection { plane, victim, .. } = self.collection;
        let token = DeviceEvent::Collect(plane).into();
        let settled = matches!(self.step, Step::Settling);
        if !settled && parts.events.waits_for_programs(token) {
            self.step = Step::Settling;
            return;
        }
        self.step = Step::Erasing;
        // What found no place stays, and is not erased: the device is at its end.
        if parts.events.contents.is_some() && parts.ftl.holds_valid(victim) {
            return parts.events.remind(at, token);
        }
        let erase_ns = parts.events.timing.erase_ns + parts.flash.erase_extra_ns(victim);
        let writes = parts.events.contents.as_mut().map_or(0, |flash| flash.erase(victim));
        let first = parts.flash.geometry.place(victim, 0);
        let die = parts.flash.geometry.die_at(first);
        let op = Op::inside(die, erase_ns, Purpose::Erase, token).on(first);
        parts.events.issue(at, Op { writes, ..op });
    }
}

/// Read a page that is to be moved, once the processor has planned it. With copy-back it stays in its die.
#[inline(always)]
fn read<M: FastPath>(parts: &mut Parts<'_>, of: &Collection, from: Place, at: u64) {
    let Parts { ftl, flash, events, .. } = parts;
    let (die, token) =
        (flash.geometry.die_at_of::<M>(from), DeviceEvent::Collect(from.plane).into());
    let purpose = if M::MINIMAL { Purpose::Relocation } else { of.purpose() };
    let slc_ns = if M::MINIMAL { None } else { flash.slc_ns(from.block) };
    let read_ns = match slc_ns {
        Some((read_ns, _)) => read_ns,
        None => events.timing.cells.read_page(|| flash.geometry.flash_page_in_block(from)),
    };
    let (kind, transfers) = match events.timing.read_transfers {
        _ if events.timing.copy_back => (Kind::Inside, 1),
        1 if !M::MINIMAL && flash.geometry.units() > 1 => {
            (Kind::Read, ftl.valid_beside(from.page) as u16)
        }
        whole => (Kind::Read, whole),
    };
    let op = Op { kind, transfers, ..Op::read(die, read_ns, purpose, token) };
    let op = if M::MINIMAL { op } else { op.on(from) };
    let Timing { relocate_ns, relocate_latency_ns, .. } = events.timing;
    let planned = events.process(at, relocate_ns, relocate_latency_ns);
    events.issue_when_of::<M>(planned, at, op);
}
