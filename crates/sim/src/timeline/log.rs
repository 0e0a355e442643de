//! What every die and channel did, operation by operation, where somebody asked for it.
//!
//! ```text
//! asked ──waits──▶ begin ──────────── holds its die ───────────▶ end
//!                    read      │cells│ waits │sent│
//!                    program   │ waits │sent│  cells  │
//! ```
//!
//! Memory is bounded: operations are kept in stretches of [`STRETCH`], and of more than [`STRETCHES`] the
//! one goes beside which the response times were shortest. So what surrounds the slowest I/Os of a run of
//! any length is there, and where something is missing is known to the nanosecond ([`Operations::gaps`]).
//!
//! A device without a log pays a foreseen branch an operation. The rings of the dies are mirrored here,
//! so that an operation need not carry what only a log wants to know.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use super::AccountIdx;
use super::op::{Kind, Noted, Purpose};
pub use super::recorded_op::{Operation, Operations, Wait};
use crate::flash::geometry::{DieIdx, Lpn, PlaneIdx};

/// Operations that come and go together.
const STRETCH: usize = 4096;
/// Stretches at most: half a million operations, 40 MB.
const STRETCHES: usize = 128;
/// The newest, whose I/Os have not ended.
const SPARED: usize = 2;

/// For whom an operation without an account works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// The collection of a die that goes on now.
    Collection(u32),
    /// The plan that has this place now.
    Plan(u32),
    Other,
}

/// An operation that waits, or has its die and waits for the channel.
#[derive(Clone, Copy, Default, Debug)]
struct Asked {
    at: u64,
    whom: Whom,
    /// It waited, and its die is just handed to it.
    is_next: bool,
}

/// For whom; each with one more, 0 for nobody.
#[derive(Clone, Copy, Default, Debug)]
struct Whom {
    io: u32,
    job: u32,
    block: u32,
}

#[derive(Clone, Debug)]
struct Stretch {
    number: u64,
    from: u64,
    until: u64,
    /// The longest response time beside it [ns].
    slowest: u64,
    operations: Vec<Operation>,
    waits: Vec<Wait>,
}

impl Stretch {
    fn new(number: u64) -> Stretch {
        let operations = Vec::with_capacity(STRETCH);
        let waits = Vec::new();
        Stretch { number, from: u64::MAX, until: 0, slowest: 0, operations, waits }
    }
}

/// Stretches that are gone, from one number to another.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: u64,
    last: u64,
    from: u64,
    until: u64,
}

/// The log of a device.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    work_of: fn(u64) -> Work,
    /// The I/O of each account, and what each die collects and each place of a plan is about.
    accounts: Vec<u32>,
    collections: Vec<Whom>,
    plans: Vec<Whom>,
    jobs: u32,
    /// Collections, and how many valid pages their blocks had when they began.
    valid: Vec<(u32, u32)>,
    /// Who waits in the rings, and who has each die; or is the next to have it, of those that waited.
    rings: Vec<VecDeque<Asked>>,
    holders: Vec<Asked>,
    /// What planes do at the same time, by its page.
    beside: Vec<(NonZeroU32, Asked)>,
    stretches: VecDeque<Stretch>,
    gaps: Vec<Gap>,
    begun: u64,
}

/// Where an operation was when.
pub(super) struct Times {
    pub(super) begin: u64,
    pub(super) sent: u64,
    pub(super) sent_until: u64,
    pub(super) end: u64,
}

impl Log {
    /// Of a device with the rings `waiting`, in each of which operations came at these times.
    pub(super) fn new(work_of: fn(u64) -> Work, waiting: Vec<Vec<u64>>) -> Log {
        let asked = |at| Asked { at, ..Asked::default() };
        let dies = waiting.len();
        Log {
            work_of,
            accounts: Vec::new(),
            collections: vec![Whom::default(); dies],
            plans: Vec::new(),
            jobs: 0,
            valid: Vec::new(),
            rings: waiting.into_iter().map(|ring| ring.into_iter().map(asked).collect()).collect(),
            holders: vec![asked(u64::MAX); dies],
            beside: Vec::new(),
            stretches: VecDeque::from([Stretch::new(0)]),
            gaps: Vec::new(),
            begun: 1,
        }
    }

    /// From now on `account` is that of a page of the I/O number `io`.
    pub(super) fn works_for(&mut self, account: AccountIdx, io: u32) {
        put(&mut self.accounts, account.index(), io + 1);
    }

    /// A collection of `block` begins on `die`.
    pub(super) fn collects(&mut self, die: u32, block: u32) {
        self.jobs += 1;
        self.collections[die as usize] = Whom { io: 0, job: self.jobs, block: block + 1 };
    }

    /// The block of the collection that began last has this many valid pages.
    pub(super) fn collects_pages(&mut self, valid: u32) {
        self.valid.push((self.jobs - 1, valid));
    }

    /// A plan gets the place `place`: for whom, and which block it erases first.
    pub(super) fn plans(&mut self, place: u32, account: Option<AccountIdx>, block: Option<u32>) {
        self.jobs += 1;
        let io = account.map_or(0, |account| self.io_of(account));
        let block = block.map_or(0, |block| block + 1);
        put(&mut self.plans, place as usize, Whom { io, job: self.jobs, block });
    }

    fn io_of(&self, account: AccountIdx) -> u32 {
        self.accounts.get(account.index()).copied().unwrap_or(0)
    }

    fn asked(&self, at: u64, token: u64, account: Option<AccountIdx>) -> Asked {
        let mut whom = match (self.work_of)(token) {
            Work::Collection(die) => self.collections.get(die as usize).copied(),
            Work::Plan(place) => self.plans.get(place as usize).copied(),
            Work::Other => None,
        }
        .unwrap_or_default();
        if let Some(account) = account {
            whom.io = self.io_of(account);
        }
        Asked { at, whom, is_next: false }
    }

    /// An operation waits for `die` from `at` on.
    pub(super) fn waits(&mut self, at: u64, die: u32, token: u64, account: Option<AccountIdx>) {
        let asked = self.asked(at, token, account);
        self.rings[die as usize].push_back(asked);
    }

    /// The one at `place` of the ring of `die` is next.
    pub(super) fn is_next(&mut self, die: usize, place: usize) {
        let next = self.rings[die].remove(place).unwrap_or_default();
        self.holders[die] = Asked { is_next: true, ..next };
    }

    /// An operation, which came at `at` where it did not wait, has `die`.
    pub(super) fn begins(&mut self, at: u64, die: u32, token: u64, account: Option<AccountIdx>) {
        let waited = std::mem::take(&mut self.holders[die as usize].is_next);
        if !waited {
            self.holders[die as usize] = self.asked(at, token, account);
        }
    }

    /// The operation on `page` that has just got `die` may have it beside others.
    pub(super) fn is_beside(&mut self, die: u32, page: Option<NonZeroU32>) {
        self.beside.extend(page.map(|page| (page, self.holders[die as usize])));
    }

    /// It is known when the operation ends that has `die`, or its `plane`.
    pub(super) fn ends(&mut self, die: DieIdx, plane: PlaneIdx, what: Noted, times: &Times) {
        let Times { begin, sent, sent_until, end } = *times;
        let beside = self.beside.iter().position(|(page, _)| Some(*page) == what.page);
        if let Some(place) = beside {
            self.holders[die.0 as usize] = self.beside.swap_remove(place).1;
        }
        let Asked { at, whom, .. } = self.holders[die.0 as usize];
        let Whom { io, job, block } = whom;
        // What had its die when the log began did not wait, as far as that knows.
        let asked = at.min(begin);
        let kind = if what.rest { Operations::REST } else { what.kind as u8 };
        let purpose = what.purpose as u8;
        let (cells, plane) = (what.cell_ns, plane.0);
        self.keep(Operation {
            asked,
            begin,
            end,
            sent,
            sent_until,
            cells,
            plane,
            io,
            job,
            block,
            kind,
            purpose,
        });
    }

    /// What `die` does, which was said to end at `end`, is suspended: it stops at `stop`, and others may have
    /// the die from `next` on.
    pub(super) fn is_suspended(&mut self, die: u32, stop: u64, end: u64, next: u64) {
        let whom = self.holders[die as usize].whom;
        self.rings[die as usize].push_front(Asked { at: stop, whom, is_next: false });
        let kept =
            self.stretches.iter_mut().rev().flat_map(|each| each.operations.iter_mut().rev());
        let last = kept.into_iter().find(|operation| operation.plane == die);
        if let Some(operation) = last.filter(|operation| operation.end == end) {
            (operation.end, operation.cells) = (next, operation.cells - (end - next));
        }
    }

    /// `die` did something from `begin` to `end`, of which no more is known.
    pub(super) fn was_busy(&mut self, die: u32, purpose: Purpose, begin: u64, end: u64) {
        let (kind, purpose, cells) = (Kind::Inside as u8, purpose as u8, end - begin);
        let asked = begin;
        self.keep(Operation {
            asked,
            begin,
            end,
            cells,
            plane: die,
            kind,
            purpose,
            ..Operation::default()
        });
    }

    fn keep(&mut self, operation: Operation) {
        let mut newest = self.stretches.back_mut().expect("there always is one");
        if newest.operations.len() == STRETCH {
            if self.stretches.len() == STRETCHES {
                self.drop_one();
            }
            self.stretches.push_back(Stretch::new(self.begun));
            self.begun += 1;
            newest = self.stretches.back_mut().expect("it was put there");
        }
        newest.from = newest.from.min(operation.asked);
        newest.until = newest.until.max(operation.end);
        newest.operations.push(operation);
    }

    /// A page of the I/O of `account` has waited for a free page of `die`, which is for `page`.
    pub(super) fn had_no_page(
        &mut self,
        account: AccountIdx,
        die: DieIdx,
        page: Lpn,
        from: u64,
        until: u64,
    ) {
        let (io, kind) = (self.io_of(account), 0);
        self.wait(Wait { from, until, io, plane: die.0, page: page.0, kind });
    }

    /// A page of the I/O of `account` has waited for the write cache, until `page` was on `die`. Of the pages of one
    /// I/O that do so one after the other the last is kept, which ends it.
    pub(super) fn had_no_cache(
        &mut self,
        account: AccountIdx,
        die: DieIdx,
        page: Lpn,
        from: u64,
        until: u64,
    ) {
        let (io, kind) = (self.io_of(account), 1);
        let newest = self.stretches.back_mut().expect("there always is one");
        if let Some(last) = newest.waits.last()
            && (last.io, last.kind, last.until) == (io, kind, until)
        {
            return; // the first of those that end at one time is the last page of the I/O
        }
        newest.waits.pop_if(|last| (last.io, last.kind) == (io, kind));
        self.wait(Wait { from, until, io, plane: die.0, page: page.0, kind });
    }

    fn wait(&mut self, wait: Wait) {
        if wait.from < wait.until {
            self.stretches.back_mut().expect("there always is one").waits.push(wait);
        }
    }

    /// An I/O ended at `end` which was submitted at `begin`.
    pub(super) fn completed(&mut self, begin: u64, end: u64) {
        let beside = |stretch: &&mut Stretch| stretch.until >= begin;
        for stretch in self.stretches.iter_mut().rev().take_while(beside) {
            if stretch.from <= end {
                stretch.slowest = stretch.slowest.max(end - begin);
            }
        }
    }

    /// The stretch goes beside which nothing was slow; of several the last.
    fn drop_one(&mut self) {
        let old = self.stretches.iter().take(STRETCHES - SPARED).enumerate();
        let place = old.rev().min_by_key(|(_, stretch)| stretch.slowest).map_or(0, |(at, _)| at);
        let Some(Stretch { number, from, until, .. }) = self.stretches.remove(place) else {
            return;
        };
        let after = self.gaps.partition_point(|gap| gap.first < number);
        self.gaps.insert(after, Gap { first: number, last: number, from, until });
        self.gaps.dedup_by(|later, before| {
            let neighbours = later.first == before.last + 1;
            if neighbours {
                before.last = later.last;
                (before.from, before.until) =
                    (before.from.min(later.from), before.until.max(later.until));
            }
            neighbours
        });
    }

    pub(super) fn finish(self) -> Operations {
        let (mut kept, mut waits) = (Vec::new(), Vec::new());
        for stretch in self.stretches {
            kept.extend(stretch.operations);
            waits.extend(stretch.waits);
        }
        let gone: u64 = self.gaps.iter().map(|gap| gap.last - gap.first + 1).sum();
        let gaps = self.gaps.iter().map(|gap| (gap.from, gap.until)).collect();
        Operations {
            all: kept.len() as u64 + gone * STRETCH as u64,
            kept,
            gaps,
            waits,
            valid: self.valid,
        }
    }
}

fn put<I: Clone + Default>(items: &mut Vec<I>, place: usize, item: I) {
    if items.len() <= place {
        items.resize(place + 1, I::default());
    }
    items[place] = item;
}
