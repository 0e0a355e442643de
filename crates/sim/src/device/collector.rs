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
//! their time, and a host write never waits for a relocation that could not have begun.
//!
//! **Source**: OFC (2011) §IV.A (receive path of relocation requests), §IV.D, §VI.
//! **Faithful**: relocation and host requests share the die rings; one block a die at a time.
//! **Simplified**: one page of a victim is read at a time.
//! **Ambiguous**: when collection begins; see `ftl/page_map/mod.rs`.

use crate::device::gather::Gather;
use crate::device::issued::Issued;
use crate::device::token::{Target, Token, Told};
use crate::flash::geometry::DieIdx;
use crate::flash::media::Flash;
use crate::ftl::{Collection, Item, PageMap};
use crate::timeline::{Op, Purpose, Timeline};

/// Collections under way, one a die at most.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Collector {
    jobs: Vec<Option<Job>>,
    under_way: u32,
    /// Free blocks that a die works towards in idle time; 0: none.
    idle_goal: usize,
    /// The host is idle.
    idle: bool,
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
    pub(crate) events: &'a mut Timeline<Token>,
    pub(crate) gather: Option<&'a mut Gather>,
}

impl Parts<'_> {
    /// Where an operation of the collection of `die` goes to.
    #[inline]
    fn media(&mut self, die: DieIdx, at: u64) -> (&mut PageMap, Issued<'_>) {
        let media = Issued::new(self.flash, self.events, at, Target::collection(die));
        (self.ftl, media.gathering(self.gather.as_deref_mut()))
    }
}

impl Collector {
    pub(crate) fn new(dies: u32, idle_goal: usize) -> Collector {
        let jobs = vec![None; dies as usize];
        Collector { jobs, under_way: 0, idle_goal, idle: false, begun_idle: 0 }
    }

    /// Whether `die` collects.
    #[inline]
    pub(crate) fn collects(&self, die: DieIdx) -> bool {
        self.jobs[die.0 as usize].is_some()
    }

    /// Whether any die collects.
    pub(crate) fn collects_any(&self) -> bool {
        self.under_way > 0
    }

    /// The host leaves the device alone from `at` on: dies collect ahead towards their goal.
    pub(crate) fn begin_idle(&mut self, at: u64, parts: &mut Parts<'_>) {
        self.idle = true;
        parts.ftl.set_idle(true);
        for die in (0..self.jobs.len() as u32).map(DieIdx) {
            self.begin_ahead(die, at, parts);
        }
    }

    /// The host is back; what has begun goes on.
    pub(crate) fn end_idle(&mut self, ftl: &mut PageMap) {
        self.idle = false;
        ftl.set_idle(false);
    }

    fn begin_ahead(&mut self, die: DieIdx, at: u64, parts: &mut Parts<'_>) {
        let due = parts.ftl.has_fewer_free(die, self.idle_goal) || parts.ftl.has_to_fold(die);
        if due && self.begin(die, at, parts) {
            self.begun_idle += 1;
        }
    }

    /// Begin to collect a block of `die`, unless it does already. False where that gains nothing.
    #[inline]
    pub(crate) fn begin(&mut self, die: DieIdx, at: u64, parts: &mut Parts<'_>) -> bool {
        if self.collects(die) {
            return false;
        }
        let (ftl, mut media) = parts.media(die, at);
        let Some(collection) = ftl.begin_collection(die, &mut media) else {
            return false;
        };
        self.jobs[die.0 as usize] = Some(Job { collection, step: Step::Beginning });
        self.under_way += 1;
        true
    }

    /// What the collection of `die` waited for has happened at `at`.
    #[inline(always)]
    pub(crate) fn step(&mut self, die: DieIdx, at: u64, parts: &mut Parts<'_>) {
        let job = self.jobs[die.0 as usize].as_mut().expect("a step belongs to a collection");
        match job.step {
            Step::Beginning => {}
            Step::Reading(item) => {
                if let Some(gather) = &mut parts.gather {
                    gather.serve_moved(parts.ftl.goes_with(&job.collection));
                }
                let (ftl, mut media) = parts.media(die, at);
                ftl.relocate(&mut job.collection, item, &mut media);
                media.beside = true;
                while let Some(beside) = ftl.next_beside(&mut job.collection, &item) {
                    ftl.relocate(&mut job.collection, beside, &mut media);
                }
            }
            Step::Erasing => return self.finish(die, at, parts),
        }
        if let Some(item) = parts.ftl.next_item(&mut job.collection) {
            job.step = Step::Reading(item);
            read(parts, &item, at);
        } else {
            job.step = Step::Erasing;
            let extra_ns = parts.flash.erase_extra_ns(job.collection.victim);
            let erase_ns = parts.events.timing.erase_ns + extra_ns;
            let token = Told::Collect(die).into();
            parts.events.issue(at, Op::inside(die, erase_ns, Purpose::Erase, token));
        }
    }

    fn finish(&mut self, die: DieIdx, at: u64, parts: &mut Parts<'_>) {
        let job = self.jobs[die.0 as usize].take().expect("it was being collected");
        self.under_way -= 1;
        let (ftl, mut media) = parts.media(die, at);
        ftl.finish(&job.collection, &mut media);
        // Relocated pages may have taken what was just gained.
        if !(parts.ftl.wants_collection(die) && self.begin(die, at, parts)) && self.idle {
            self.begin_ahead(die, at, parts);
        }
    }

    /// End all collections under way in the untimed gear, which follows. Their events are over.
    pub(crate) fn end_untimed(&mut self, ftl: &mut PageMap, flash: &mut Flash) {
        for Job { mut collection, step } in self.jobs.iter_mut().filter_map(Option::take) {
            if let Step::Reading(item) = step {
                ftl.relocate(&mut collection, item, flash);
            }
            ftl.collect_rest(collection, flash);
        }
        self.under_way = 0;
    }
}

/// Read a page that is to be moved, once the processor has planned it. With copy-back it stays in its die.
#[inline(always)]
fn read(parts: &mut Parts<'_>, item: &Item, at: u64) {
    let Parts { ftl, flash, events, .. } = parts;
    let from = item.from;
    let (die, token) = (from.die, Told::Collect(from.die).into());
    let read_ns = match flash.slc_ns(from.block) {
        Some((read_ns, _)) => read_ns,
        None => events.timing.cells.read_page(|| flash.geometry.flash_page_in_block(from)),
    };
    let op = if events.timing.copy_back {
        Op::inside(die, read_ns, Purpose::Relocation, token)
    } else {
        let transfers = match events.timing.read_transfers {
            1 if flash.geometry.units() > 1 => ftl.valid_beside(item) as u16,
            whole => whole,
        };
        Op { transfers, ..Op::read(die, read_ns, Purpose::Relocation, token) }
    };
    let planned = events.process(at, events.timing.relocate_ns);
    events.issue_when(planned, at, op);
}
