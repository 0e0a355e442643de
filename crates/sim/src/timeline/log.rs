//! An optional log of every die and channel operation.
//!
//! ```text
//! asked ──waits──▶ begin ──────────── holds its die ───────────▶ end
//!                    read      │cells│ waits │sent│
//!                    program   │ waits │sent│  cells  │
//! ```
//!
//! Memory is bounded: operations are kept in stretches of [`STRETCH`]. Above [`STRETCHES`]
//! stretches, the one with the shortest response times is dropped. So the surroundings of the
//! slowest I/Os of a run of any length are kept, and gaps are known to the nanosecond
//! ([`Operations::gaps`]).
//!
//! A device without a log pays one predicted branch per operation. The die queues are mirrored
//! here, so that operations need no extra fields for the log.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use super::AccountIdx;
use super::op::{Kind, Noted, Purpose};
pub use super::recorded_op::{Operation, Operations, Wait};
use crate::flash::geometry::{DieIdx, Lpn, PlaneIdx};

/// Number of operations that are kept or dropped together.
const STRETCH: usize = 4096;
/// Maximum number of stretches: half a million operations, 40 MB.
const STRETCHES: usize = 128;
/// Number of newest stretches that are never dropped, because their I/Os have not ended.
const SPARED: usize = 2;

/// The purpose of an operation without an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// The current collection of a die.
    Collection(u32),
    /// The plan at this index.
    Plan(u32),
    Other,
}

/// An operation that waits, or that has its die and waits for the channel.
#[derive(Clone, Copy, Default, Debug)]
struct Pending {
    at: u64,
    requester: Requester,
    /// It waited, and its die has just been handed over to it.
    is_next: bool,
}

/// The requester; numbers plus 1, 0 for none.
#[derive(Clone, Copy, Default, Debug)]
struct Requester {
    io: u32,
    job: u32,
    block: u32,
}

#[derive(Clone, Debug)]
struct Stretch {
    number: u64,
    from: u64,
    until: u64,
    /// The longest response time of an overlapping I/O [ns].
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

/// Dropped stretches: a range of numbers.
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
    /// The I/O of each account, the collection of each die, and each plan.
    accounts: Vec<u32>,
    collections: Vec<Requester>,
    plans: Vec<Requester>,
    jobs: u32,
    /// Collections, and the valid pages of their victims at the start.
    valid: Vec<(u32, u32)>,
    /// The mirrored die queues, and the operation that has each die or is next.
    rings: Vec<VecDeque<Pending>>,
    holders: Vec<Pending>,
    /// The operations of a multi-plane operation, by page.
    beside: Vec<(NonZeroU32, Pending)>,
    stretches: VecDeque<Stretch>,
    gaps: Vec<Gap>,
    begun: u64,
}

/// Times of an operation.
pub(super) struct Times {
    pub(super) begin: u64,
    pub(super) sent: u64,
    pub(super) sent_until: u64,
    pub(super) end: u64,
}

impl Log {
    /// Create a log for die queues in which operations arrived at the times `waiting`.
    pub(super) fn new(work_of: fn(u64) -> Work, waiting: Vec<Vec<u64>>) -> Log {
        let asked = |at| Pending { at, ..Pending::default() };
        let dies = waiting.len();
        Log {
            work_of,
            accounts: Vec::new(),
            collections: vec![Requester::default(); dies],
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

    /// Assign `account` to a page of I/O number `io`.
    pub(super) fn assign_account(&mut self, account: AccountIdx, io: u32) {
        put(&mut self.accounts, account.index(), io + 1);
    }

    /// Record the start of a collection of `block` on `die`.
    pub(super) fn collects(&mut self, die: u32, block: u32) {
        self.jobs += 1;
        self.collections[die as usize] = Requester { io: 0, job: self.jobs, block: block + 1 };
    }

    /// Record the number of valid pages of the last collection's victim.
    pub(super) fn collects_pages(&mut self, valid: u32) {
        self.valid.push((self.jobs - 1, valid));
    }

    /// Record a plan at index `place`: its account, and the first block that it erases.
    pub(super) fn plans(&mut self, place: u32, account: Option<AccountIdx>, block: Option<u32>) {
        self.jobs += 1;
        let io = account.map_or(0, |account| self.io_of(account));
        let block = block.map_or(0, |block| block + 1);
        put(&mut self.plans, place as usize, Requester { io, job: self.jobs, block });
    }

    fn io_of(&self, account: AccountIdx) -> u32 {
        self.accounts.get(account.index()).copied().unwrap_or(0)
    }

    fn asked(&self, at: u64, token: u64, account: Option<AccountIdx>) -> Pending {
        let mut requester = match (self.work_of)(token) {
            Work::Collection(die) => self.collections.get(die as usize).copied(),
            Work::Plan(place) => self.plans.get(place as usize).copied(),
            Work::Other => None,
        }
        .unwrap_or_default();
        if let Some(account) = account {
            requester.io = self.io_of(account);
        }
        Pending { at, requester, is_next: false }
    }

    /// Record that an operation waits for `die` from `at` on.
    pub(super) fn waits(&mut self, at: u64, die: u32, token: u64, account: Option<AccountIdx>) {
        let asked = self.asked(at, token, account);
        self.rings[die as usize].push_back(asked);
    }

    /// Record that the operation at index `place` of the queue of `die` is next.
    pub(super) fn is_next(&mut self, die: usize, place: usize) {
        let next = self.rings[die].remove(place).unwrap_or_default();
        self.holders[die] = Pending { is_next: true, ..next };
    }

    /// Record that an operation has `die`; it came at `at` if it did not wait.
    pub(super) fn begins(&mut self, at: u64, die: u32, token: u64, account: Option<AccountIdx>) {
        let waited = std::mem::take(&mut self.holders[die as usize].is_next);
        if !waited {
            self.holders[die as usize] = self.asked(at, token, account);
        }
    }

    /// Record that the operation on `page`, which just got `die`, may share it.
    pub(super) fn may_share_die(&mut self, die: u32, page: Option<NonZeroU32>) {
        self.beside.extend(page.map(|page| (page, self.holders[die as usize])));
    }

    /// Record the end of the operation on `die` or its `plane`.
    pub(super) fn ends(&mut self, die: DieIdx, plane: PlaneIdx, what: Noted, times: &Times) {
        let Times { begin, sent, sent_until, end } = *times;
        let beside = self.beside.iter().position(|(page, _)| Some(*page) == what.page);
        if let Some(place) = beside {
            self.holders[die.0 as usize] = self.beside.swap_remove(place).1;
        }
        let Pending { at, requester, .. } = self.holders[die.0 as usize];
        let Requester { io, job, block } = requester;
        // An operation that had its die when the log began counts as one that did not wait.
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

    /// Record that the operation of `die`, which was to end at `end`, is suspended at `stop`; other
    /// work may start at `next`.
    pub(super) fn is_suspended(&mut self, die: u32, stop: u64, end: u64, next: u64) {
        let requester = self.holders[die as usize].requester;
        self.rings[die as usize].push_front(Pending { at: stop, requester, is_next: false });
        let kept =
            self.stretches.iter_mut().rev().flat_map(|each| each.operations.iter_mut().rev());
        let last = kept.into_iter().find(|operation| operation.plane == die);
        if let Some(operation) = last.filter(|operation| operation.end == end) {
            (operation.end, operation.cells) = (next, operation.cells - (end - next));
        }
    }

    /// Record other work of `die` from `begin` to `end`.
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

    /// Record that a page of the I/O of `account` waited for a free page of `die`, to program
    /// `page`.
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

    /// Record that a page of the I/O of `account` waited for the write cache until `page` was on
    /// `die`. Of successive waits of one I/O the last is kept.
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
            return; // the first of those with equal ends is the last page of the I/O
        }
        newest.waits.pop_if(|last| (last.io, last.kind) == (io, kind));
        self.wait(Wait { from, until, io, plane: die.0, page: page.0, kind });
    }

    fn wait(&mut self, wait: Wait) {
        if wait.from < wait.until {
            self.stretches.back_mut().expect("there always is one").waits.push(wait);
        }
    }

    /// Record an I/O that was submitted at `begin` and ended at `end`.
    pub(super) fn completed(&mut self, begin: u64, end: u64) {
        let beside = |stretch: &&mut Stretch| stretch.until >= begin;
        for stretch in self.stretches.iter_mut().rev().take_while(beside) {
            if stretch.from <= end {
                stretch.slowest = stretch.slowest.max(end - begin);
            }
        }
    }

    /// Drop the stretch with the shortest overlapping response times; of several the last.
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
