//! *When* to collect: the device's question, for it holds the clock.
//!
//! Every die collects at most one block at a time, page by page, beside the host's I/Os:
//!
//! ```text
//! begin ─▶ read page ─▶ program it, read the next ─▶ … ─▶ erase ─▶ block free
//!          (an event each: it happens when the read has delivered its data)
//! ```
//!
//! A page gets its new place only when its data is there, so programs are issued in the order of
//! their time, and a host write never waits for a relocation that could not have begun. Events that
//! are due before a host I/O is submitted happen before it. A host write that finds no free page
//! waits until its die has collected one.
//!
//! **Source**: OFC (2011) §IV.A (receive path of relocation requests), §IV.D, §VI.
//! **Faithful**: relocation and host requests share the die rings; one block a die at a time.
//! **Simplified**: one page of a victim is read at a time; a write that waits for a free page advances
//! the collection of its die alone.
//! **Ambiguous**: when collection begins; see `ftl/page_map.rs`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::ftl::{Collection, Item, PageMap};
use crate::geometry::DieIdx;
use crate::media::{Flash, Timed};
use crate::timeline::Timeline;

/// Collections under way, one a die at most.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Collector {
    jobs: Vec<Option<Job>>,
    /// `(time, die)` of the next step of every job; of several at a time, the first die's first.
    events: BinaryHeap<Reverse<(u64, DieIdx)>>,
    /// Free blocks that a die works towards in idle time; 0: none.
    idle_goal: usize,
    /// Blocks whose collection began in idle time.
    pub(crate) begun_idle: u64,
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
    /// The end of the erase.
    Erasing,
}

/// The device's parts that a step works on.
pub(crate) struct Parts<'a> {
    pub(crate) ftl: &'a mut PageMap,
    pub(crate) flash: &'a mut Flash,
    pub(crate) timeline: &'a mut Timeline,
}

impl Collector {
    pub(crate) fn new(dies: u32, idle_goal: usize) -> Collector {
        let events = BinaryHeap::with_capacity(dies as usize);
        Collector { jobs: vec![None; dies as usize], events, idle_goal, begun_idle: 0 }
    }

    /// Let everything happen that is due by `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64, parts: &mut Parts<'_>) {
        while let Some(first) = self.events.peek_mut() {
            let Reverse((at, die)) = *first;
            if at > now {
                return;
            }
            let job = &mut self.jobs[die.0 as usize];
            replace(first, step(job, at, parts).map(|next| Reverse((next, die))));
        }
    }

    /// Let everything happen that is due by `until` while the host is idle; dies that have fewer free
    /// blocks than the goal collect meanwhile.
    pub(crate) fn idle(&mut self, now: u64, until: u64, parts: &mut Parts<'_>) {
        let mut at = now;
        loop {
            self.begin_idle(at, parts);
            match self.events.peek() {
                Some(Reverse((next, _))) if *next <= until => at = at.max(*next),
                _ => return,
            }
            self.advance(at, parts);
        }
    }

    fn begin_idle(&mut self, at: u64, parts: &mut Parts<'_>) {
        for die in (0..self.jobs.len() as u32).map(DieIdx) {
            if parts.ftl.has_fewer_free(die, self.idle_goal) && self.begin(die, at, parts) {
                self.begun_idle += 1;
            }
        }
    }

    /// Begin to collect a block of `die`, unless it does already. False where that gains nothing.
    #[inline]
    pub(crate) fn begin(&mut self, die: DieIdx, at: u64, parts: &mut Parts<'_>) -> bool {
        let job = &mut self.jobs[die.0 as usize];
        if job.is_some() {
            return false;
        }
        let Some(began) = begin(job, die, at, parts) else {
            return false;
        };
        self.events.push(Reverse((began, die)));
        true
    }

    /// Collect until `die` has room for a host page; returns when that is, not before `at`. `None`
    /// where nothing can be gained.
    #[cold]
    pub(crate) fn make_room(&mut self, die: DieIdx, at: u64, parts: &mut Parts<'_>) -> Option<u64> {
        let mut now = at;
        // As in the untimed gear: what two passes over the die did not gain, more will not.
        let blocks = 2 * parts.flash.geometry.shape().blocks_per_die;
        let steps = blocks * (parts.flash.geometry.data_pages() + 2);
        for _ in 0..steps {
            if parts.ftl.has_room(die) {
                return Some(now);
            }
            // Its own collection first; where it can have none yet, whatever comes next anywhere.
            self.begin(die, now, parts);
            let (due, of) = self.take_event(die).map(|due| (due, die)).or_else(|| {
                let next = self.events.pop();
                next.map(|Reverse(event)| event)
            })?;
            now = now.max(due);
            let next = step(&mut self.jobs[of.0 as usize], now, parts);
            self.events.extend(next.map(|next| Reverse((next, of))));
        }
        parts.ftl.has_room(die).then_some(now)
    }

    /// End all collections under way in the untimed gear, which follows.
    pub(crate) fn end_untimed(&mut self, ftl: &mut PageMap, flash: &mut Flash) {
        self.events.clear();
        for Job { mut collection, step } in self.jobs.iter_mut().filter_map(Option::take) {
            if let Step::Reading(item) = step {
                ftl.relocate(&mut collection, item, flash);
            }
            ftl.collect_rest(collection, flash);
        }
    }

    /// Take the event of `die` out of turn.
    fn take_event(&mut self, die: DieIdx) -> Option<u64> {
        let mut taken = None;
        self.events.retain(|Reverse((at, of))| {
            if *of == die {
                taken = Some(*at);
            }
            *of != die
        });
        taken
    }
}

/// Put the next event in the place of the one that just happened.
#[inline]
fn replace(mut first: PeekMut<'_, Reverse<(u64, DieIdx)>>, next: Option<Reverse<(u64, DieIdx)>>) {
    match next {
        Some(next) => *first = next,
        None => drop(PeekMut::pop(first)),
    }
}

/// Choose a victim of `die` for `job`; returns when its first page can be read.
fn begin(job: &mut Option<Job>, die: DieIdx, at: u64, parts: &mut Parts<'_>) -> Option<u64> {
    let mut account = ();
    let mut media = Timed::new(parts.flash, parts.timeline, at, &mut account);
    let collection = parts.ftl.begin_collection(die, &mut media)?;
    *job = Some(Job { collection, step: Step::Beginning });
    Some(media.end)
}

/// What `waiting` waited for has happened at `at`; returns when its next step is due.
fn step(waiting: &mut Option<Job>, at: u64, parts: &mut Parts<'_>) -> Option<u64> {
    let job = waiting.as_mut().expect("an event has a job");
    let die = job.collection.die;
    let mut account = ();
    let mut media = Timed::new(parts.flash, parts.timeline, at, &mut account);
    match job.step {
        Step::Beginning => {}
        Step::Reading(item) => {
            parts.ftl.relocate(&mut job.collection, item, &mut media);
        }
        Step::Erasing => {
            parts.ftl.finish(&job.collection, &mut media);
            *waiting = None;
            // Relocated pages may have taken what was just gained.
            let again = parts.ftl.wants_collection(die);
            return again.then(|| begin(waiting, die, at, parts)).flatten();
        }
    }
    if let Some(item) = parts.ftl.next_item(&mut job.collection) {
        job.step = Step::Reading(item);
        return Some(parts.timeline.read_to_relocate(die, at));
    }
    job.step = Step::Erasing;
    Some(parts.timeline.erase(die, at))
}
