//! Scheduling of garbage collection. The device decides *when* to collect, because it holds the
//! clock.
//!
//! A plane collects at most one block at a time, one or several pages at once, concurrently with
//! host I/Os. The number of collecting planes per channel may be limited:
//!
//! ```text
//! begin ─▶ read page ─▶ program it, read the next ─▶ … ─▶ erase ─▶ block free
//!          (an event each: it happens when the read has delivered its data)
//! ```
//!
//! A page gets its new address only when its data is in memory, so programs are issued in the order of
//! their time, and a host write never waits for a relocation that could not have begun.
//!
//! **Source**: OFC (2011) §IV.A (receive path of relocation requests), §IV.D, §VI.
//! **Faithful**: relocation and host requests share the die queues; the number of blocks and pages
//! handled at once.
//! **Simplified**: a plane never collects two blocks at once. Of the planes that wait for their
//! channel, the one that has waited longest is next.
//! **Ambiguous**: when collection begins; see `ftl/page_map/mod.rs`.

use std::collections::VecDeque;

use crate::device::event::{CompletionTarget, DeviceEvent, EventTag};
use crate::device::page_buffer::PageBuffer;
use crate::device::timed_flash::TimedFlash;
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{PageAddress, PlaneIdx};
use crate::flash::media::Flash;
use crate::ftl::{CollectedPage, Collection, PageMap};
use crate::timeline::{Op, OpKind, Purpose, Timeline, Timing};

/// The collections in progress, at most one per plane.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Collector {
    jobs: Vec<Option<CollectionJob>>,
    #[serde(rename = "under_way")]
    active: u32,
    /// Number of collections that ended.
    #[serde(skip)]
    completed_collections: u64,
    pace: Pace,
    /// Per plane: pages being read ahead, after the page that its job waits for.
    ahead: Vec<VecDeque<CollectedPage>>,
    /// Planes that wait for another plane of their channel to finish, in FIFO order, and the number
    /// of collecting planes per channel. Both are empty if channels have no limit.
    waiting: VecDeque<PlaneIdx>,
    busy: Vec<u32>,
    /// The host is idle.
    idle: bool,
}

/// Limits of concurrent collection.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pace {
    /// Free blocks that a plane collects towards in idle time; 0: none.
    pub(crate) idle_goal: usize,
    /// Maximum number of blocks being collected per channel, if limited.
    pub(crate) blocks: Option<u32>,
    /// Maximum number of pages of a block in progress.
    pub(crate) pages: u32,
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Job")]
struct CollectionJob {
    collection: Collection,
    step: CollectionStep,
}

/// The event that a job waits for.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Step")]
enum CollectionStep {
    /// The processor's planning, and the read of the metadata page.
    Beginning,
    /// The read of this page.
    Reading(CollectedPage),
    /// The programs of the victim's data: a power loss must not find the victim erased before them.
    Settling,
    /// The erase.
    Erasing,
}

/// The parts of the device that a step uses.
pub(crate) struct CollectorContext<'a> {
    pub(crate) ftl: &'a mut PageMap,
    pub(crate) flash: &'a mut Flash,
    pub(crate) events: &'a mut Timeline<EventTag>,
    pub(crate) gather: Option<&'a mut PageBuffer>,
}

impl CollectorContext<'_> {
    fn channel_of(&self, plane: PlaneIdx) -> usize {
        self.flash.geometry.channel_of(plane)
    }

    /// Return the FTL and the timed flash for an operation of the collection of `plane`.
    #[inline]
    fn media<M: FastPath>(
        &mut self,
        plane: PlaneIdx,
        at: u64,
    ) -> (&mut PageMap, TimedFlash<'_, M>) {
        let media =
            TimedFlash::for_path(self.flash, self.events, at, CompletionTarget::collection(plane));
        if M::MINIMAL {
            return (self.ftl, media);
        }
        (self.ftl, media.with_page_buffer(self.gather.as_deref_mut()))
    }
}

impl Collector {
    pub(crate) fn new(planes: u32, channels: u32, pace: Pace) -> Collector {
        Collector {
            jobs: vec![None; planes as usize],
            active: 0,
            completed_collections: 0,
            pace,
            ahead: vec![VecDeque::new(); if pace.pages > 1 { planes as usize } else { 0 }],
            waiting: VecDeque::new(),
            busy: vec![0; pace.blocks.map_or(0, |_| channels as usize)],
            idle: false,
        }
    }

    /// Return whether `plane` collects, or waits for its channel to do so.
    #[inline]
    pub(crate) fn is_collecting(&self, plane: PlaneIdx) -> bool {
        self.jobs[plane.0 as usize].is_some() || self.waiting.contains(&plane)
    }

    /// Return whether planes collect without a limit per channel, one page after the other.
    pub(crate) fn is_minimal(&self) -> bool {
        self.pace.blocks.is_none() && self.pace.pages == 1
    }

    /// Return whether the number of planes of a channel that collect is limited.
    pub(crate) fn has_limit(&self) -> bool {
        self.pace.blocks.is_some()
    }

    /// Return whether any plane collects.
    pub(crate) fn is_collecting_any(&self) -> bool {
        self.active > 0
    }

    /// Return how many collections ended. A plane that collects does so until the next one ends.
    pub(crate) fn completed_collections(&self) -> u64 {
        self.completed_collections
    }

    /// Return whether every plane collects.
    pub(crate) fn is_collecting_all(&self) -> bool {
        self.active as usize == self.jobs.len()
    }

    /// Start idle time at `at`: planes collect ahead towards their goal.
    pub(crate) fn begin_idle(&mut self, at: u64, parts: &mut CollectorContext<'_>) {
        self.idle = true;
        parts.ftl.set_idle(true);
        self.begin_ahead(at, parts);
    }

    /// End idle time; collections in progress continue.
    pub(crate) fn end_idle(&mut self, ftl: &mut PageMap) {
        self.idle = false;
        ftl.set_idle(false);
    }

    /// Start planes that are below their goal. This includes planes that had reached it:
    /// relocations of other planes may have used their free blocks.
    fn begin_ahead(&mut self, at: u64, parts: &mut CollectorContext<'_>) {
        for plane in (0..self.jobs.len() as u32).map(PlaneIdx) {
            let ftl = &parts.ftl;
            let due = ftl.has_fewer_free(plane, self.pace.idle_goal)
                || ftl.has_block_to_fold(plane)
                || ftl.has_scrub_waiting(plane);
            if due {
                self.begin(plane, at, parts);
            }
        }
    }

    /// Start to collect a block of `plane`, unless it already collects. Return false if that gains
    /// nothing.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        plane: PlaneIdx,
        at: u64,
        parts: &mut CollectorContext<'_>,
    ) -> bool {
        if self.is_collecting(plane) {
            return false;
        }
        if self.pace.blocks.is_some_and(|max| self.busy[parts.channel_of(plane)] >= max) {
            self.waiting.push_back(plane);
            return true;
        }
        self.begin_now(plane, at, parts)
    }

    fn begin_now(&mut self, plane: PlaneIdx, at: u64, parts: &mut CollectorContext<'_>) -> bool {
        let (ftl, mut media) = parts.media::<AllFeatures>(plane, at);
        let Some(collection) = ftl.begin_collection(plane, &mut media) else {
            return false;
        };
        parts.events.log_collected_pages(parts.ftl.valid_in_victim(&collection));
        self.jobs[plane.0 as usize] =
            Some(CollectionJob { collection, step: CollectionStep::Beginning });
        self.active += 1;
        parts.flash.counters.blocks_collected_idle += u64::from(self.idle);
        self.busy.get_mut(parts.channel_of(plane)).into_iter().for_each(|busy| *busy += 1);
        true
    }

    /// Start waiting planes of `channel` after one of its planes has finished.
    #[cold]
    fn start_waiting_planes(&mut self, channel: usize, at: u64, parts: &mut CollectorContext<'_>) {
        self.busy[channel] -= 1;
        let max_busy = self.pace.blocks.expect("the number of collecting planes is limited");
        while self.busy[channel] < max_busy
            && let Some(position) =
                self.waiting.iter().position(|plane| parts.channel_of(*plane) == channel)
            && let Some(plane) = self.waiting.remove(position)
        {
            self.begin_now(plane, at, parts);
        }
    }

    /// Take the next step of the collection of `plane`: the event it waited for occurred at `at`.
    #[inline(always)]
    pub(crate) fn step<M: FastPath>(
        &mut self,
        plane: PlaneIdx,
        at: u64,
        parts: &mut CollectorContext<'_>,
    ) {
        let job = self.jobs[plane.0 as usize].as_mut().expect("the plane has a collection");
        match job.step {
            CollectionStep::Beginning | CollectionStep::Settling => {}
            CollectionStep::Reading(item) => {
                if !M::MINIMAL
                    && let Some(gather) = &mut parts.gather
                {
                    gather.set_moved_kind(parts.ftl.relocation_role(&job.collection));
                }
                let (ftl, mut media) = parts.media::<M>(plane, at);
                if !M::MINIMAL {
                    media.moves = job.collection.purpose();
                }
                let mut next = Some(item);
                while let Some(item) = next {
                    ftl.relocate(&mut job.collection, item, &mut media);
                    media.is_shared_read = true;
                    if M::MINIMAL {
                        break;
                    }
                    next = ftl.next_in_flash_page(&mut job.collection, item);
                }
            }
            CollectionStep::Erasing => return self.finish(plane, at, parts),
        }
        if !M::MINIMAL && self.pace.pages > 1 {
            return self.read_ahead(plane, at, parts);
        }
        match parts.ftl.next_item(&mut job.collection) {
            Some(item) => {
                job.step = CollectionStep::Reading(item);
                read::<M>(parts, &job.collection, item.from, at);
            }
            None => job.erase(at, parts),
        }
    }

    /// Keep several pages of a block in progress: read as many as `Pace` allows.
    #[inline(never)]
    fn read_ahead(&mut self, plane: PlaneIdx, at: u64, parts: &mut CollectorContext<'_>) {
        let job = self.jobs[plane.0 as usize].as_mut().expect("the plane has a collection");
        let ahead = &mut self.ahead[plane.0 as usize];
        // The page that the job waits for is not among them.
        while ahead.len() < self.pace.pages as usize
            && let Some(item) = parts.ftl.next_item(&mut job.collection)
        {
            ahead.push_back(item);
            read::<AllFeatures>(parts, &job.collection, item.from, at);
        }
        match ahead.pop_front() {
            Some(item) => job.step = CollectionStep::Reading(item),
            None => job.erase(at, parts),
        }
    }

    fn finish(&mut self, plane: PlaneIdx, at: u64, parts: &mut CollectorContext<'_>) {
        let job = self.jobs[plane.0 as usize].take().expect("the plane has a collection");
        self.active -= 1;
        self.completed_collections += 1;
        let (ftl, mut media) = parts.media::<AllFeatures>(plane, at);
        ftl.finish(&job.collection, &mut media);
        if self.pace.blocks.is_some() {
            self.start_waiting_planes(parts.channel_of(plane), at, parts);
        }
        // Relocated pages may have used up the pages just freed.
        let due =
            parts.ftl.wants_collection::<AllFeatures>(plane) || parts.ftl.has_scrub_waiting(plane);
        if due {
            self.begin(plane, at, parts);
        }
        if self.idle {
            self.begin_ahead(at, parts);
        }
    }

    /// Complete all collections in progress untimed. Their events no longer exist.
    pub(crate) fn end_untimed(&mut self, ftl: &mut PageMap, flash: &mut Flash) {
        let Collector { jobs, ahead, .. } = self;
        for (plane, job) in jobs.iter_mut().enumerate() {
            let Some(CollectionJob { mut collection, step }) = job.take() else { continue };
            if let CollectionStep::Reading(item) = step {
                ftl.relocate(&mut collection, item, flash);
            }
            for item in ahead.get_mut(plane).into_iter().flat_map(|ahead| ahead.drain(..)) {
                ftl.relocate(&mut collection, item, flash);
            }
            ftl.collect_rest(collection, flash);
        }
        self.active = 0;
        self.completed_collections += 1;
        self.waiting.clear();
        self.busy.fill(0);
    }
}

impl Collection {
    /// Return the purpose of its page moves.
    pub(super) fn purpose(&self) -> Purpose {
        if self.scrubs { Purpose::Scrub } else { Purpose::Relocation }
    }
}

impl CollectionJob {
    /// Erase the victim after its last move, once its data is safe elsewhere.
    #[inline(never)]
    fn erase(&mut self, at: u64, parts: &mut CollectorContext<'_>) {
        let Collection { plane, victim, .. } = self.collection;
        let token = DeviceEvent::Collect(plane).into();
        let settled = matches!(self.step, CollectionStep::Settling);
        if !settled && parts.events.wait_for_programs(token) {
            self.step = CollectionStep::Settling;
            return;
        }
        self.step = CollectionStep::Erasing;
        // A victim with data that found no space is not erased: the device is at its end of life.
        if parts.events.contents.is_some() && parts.ftl.holds_valid(victim) {
            return parts.events.remind(at, token);
        }
        let erase_ns = parts.events.timing.erase_ns + parts.flash.erase_extra_ns(victim);
        let writes = parts.events.contents.as_mut().map_or(0, |flash| flash.erase(victim));
        let first = parts.flash.geometry.address_at(victim, 0);
        let die = parts.flash.geometry.die_at(first);
        let op = Op::inside(die, erase_ns, Purpose::Erase, token).on(first);
        parts.events.issue(at, Op { writes, ..op });
    }
}

/// Read a page to be moved, once the processor has planned it. With copy-back the data stays in its
/// die.
#[inline(always)]
fn read<M: FastPath>(
    parts: &mut CollectorContext<'_>,
    collection: &Collection,
    from: PageAddress,
    at: u64,
) {
    let CollectorContext { ftl, flash, events, .. } = parts;
    let (die, token) =
        (flash.geometry.die_at_of::<M>(from), DeviceEvent::Collect(from.plane).into());
    let purpose = if M::MINIMAL { Purpose::Relocation } else { collection.purpose() };
    let slc_ns = if M::MINIMAL { None } else { flash.slc_ns(from.block) };
    let read_ns = match slc_ns {
        Some((read_ns, _)) => read_ns,
        None => events.timing.cells.read_page(|| flash.geometry.flash_page_in_block(from)),
    };
    let (kind, transfers) = match events.timing.read_transfers {
        _ if events.timing.copy_back => (OpKind::Inside, 1),
        1 if !M::MINIMAL && flash.geometry.units() > 1 => {
            (OpKind::Read, ftl.valid_in_flash_page(from.page) as u16)
        }
        whole => (OpKind::Read, whole),
    };
    let op = Op { kind, transfers, ..Op::read(die, read_ns, purpose, token) };
    let op = if M::MINIMAL { op } else { op.on(from) };
    let Timing { relocate_ns, relocate_latency_ns, .. } = events.timing;
    let planned = events.process(at, relocate_ns, relocate_latency_ns);
    events.issue_when_of::<M>(planned, at, op);
}
