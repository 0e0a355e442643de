//! An optional log of every die and channel operation.
//!
//! ```text
//! queued ─waits──▶ begin ──────────── holds its die ───────────▶ end
//!                    read      │cells│ waits │sent│
//!                    program   │ waits │sent│  cells  │
//! ```
//!
//! Memory is bounded: operations are kept in segments of [`SEGMENT_OPS`]. Above [`SEGMENTS_MAX`]
//! stretches, the one with the shortest response times is dropped. So the surroundings of the
//! slowest I/Os of a run of any length are kept, and gaps are known to the nanosecond
//! ([`Operations::gaps`]).
//!
//! A device without a log pays one predicted branch per operation. The die queues are mirrored
//! here, so that operations need no extra fields for the log.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use super::AccountIdx;
use super::op::{OpKind, OpSummary, Purpose};
pub use super::recorded_op::{Operation, Operations, Wait};
use crate::flash::geometry::{DieIdx, Lpn, PlaneIdx};

/// Number of operations that are kept or dropped together.
const SEGMENT_OPS: usize = 4096;
/// Maximum number of segments: half a million operations, 40 MB.
const SEGMENTS_MAX: usize = 128;
/// Number of newest segments that are never dropped, because their I/Os have not ended.
const RECENT_SEGMENTS: usize = 2;

/// The purpose of an operation without an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpSource {
    /// The current collection of a die.
    Collection(u32),
    /// The plan at this index.
    Plan(u32),
    Other,
}

/// An operation that waits, or that has its die and waits for the channel.
#[derive(Clone, Copy, Default, Debug)]
struct PendingOp {
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
struct LogSegment {
    number: u64,
    from: u64,
    until: u64,
    /// The longest response time of an overlapping I/O [ns].
    slowest: u64,
    operations: Vec<Operation>,
    waits: Vec<Wait>,
}

impl LogSegment {
    fn new(number: u64) -> LogSegment {
        let operations = Vec::with_capacity(SEGMENT_OPS);
        let waits = Vec::new();
        LogSegment { number, from: u64::MAX, until: 0, slowest: 0, operations, waits }
    }
}

/// Dropped segments: a range of numbers.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: u64,
    last: u64,
    from: u64,
    until: u64,
}

/// The log of a device.
#[derive(Clone, Debug)]
pub(crate) struct OpLog {
    work_of: fn(u64) -> OpSource,
    /// The I/O of each account, the collection of each die, and each plan.
    accounts: Vec<u32>,
    collections: Vec<Requester>,
    plans: Vec<Requester>,
    jobs: u32,
    /// Collections, and the valid pages of their victims at the start.
    valid: Vec<(u32, u32)>,
    /// The mirrored die queues, and the operation that has each die or is next.
    rings: Vec<VecDeque<PendingOp>>,
    holders: Vec<PendingOp>,
    /// The operations of a multi-plane operation, by page.
    multi_plane: Vec<(NonZeroU32, PendingOp)>,
    segments: VecDeque<LogSegment>,
    gaps: Vec<Gap>,
    segments_begun: u64,
}

/// Times of an operation.
pub(super) struct OpTimes {
    pub(super) begin: u64,
    pub(super) sent: u64,
    pub(super) sent_until: u64,
    pub(super) end: u64,
}

impl OpLog {
    /// Create a log for die queues in which operations arrived at the times `waiting`.
    pub(super) fn new(work_of: fn(u64) -> OpSource, waiting: Vec<Vec<u64>>) -> OpLog {
        let pending = |at| PendingOp { at, ..PendingOp::default() };
        let dies = waiting.len();
        OpLog {
            work_of,
            accounts: Vec::new(),
            collections: vec![Requester::default(); dies],
            plans: Vec::new(),
            jobs: 0,
            valid: Vec::new(),
            rings: waiting
                .into_iter()
                .map(|ring| ring.into_iter().map(pending).collect())
                .collect(),
            holders: vec![pending(u64::MAX); dies],
            multi_plane: Vec::new(),
            segments: VecDeque::from([LogSegment::new(0)]),
            gaps: Vec::new(),
            segments_begun: 1,
        }
    }

    /// Assign `account` to a page of I/O number `io`.
    pub(super) fn assign_account(&mut self, account: AccountIdx, io: u32) {
        put(&mut self.accounts, account.index(), io + 1);
    }

    /// Record the start of a collection of `block` on `die`.
    pub(super) fn begin_collection(&mut self, die: u32, block: u32) {
        self.jobs += 1;
        self.collections[die as usize] = Requester { io: 0, job: self.jobs, block: block + 1 };
    }

    /// Record the number of valid pages of the last collection's victim.
    pub(super) fn set_collected_pages(&mut self, valid: u32) {
        self.valid.push((self.jobs - 1, valid));
    }

    /// Record a plan at `index`: its account, and the first block that it erases.
    pub(super) fn begin_plan(
        &mut self,
        index: u32,
        account: Option<AccountIdx>,
        block: Option<u32>,
    ) {
        self.jobs += 1;
        let io = account.map_or(0, |account| self.io_of(account));
        let block = block.map_or(0, |block| block + 1);
        put(&mut self.plans, index as usize, Requester { io, job: self.jobs, block });
    }

    fn io_of(&self, account: AccountIdx) -> u32 {
        self.accounts.get(account.index()).copied().unwrap_or(0)
    }

    fn pending_op(&self, at: u64, token: u64, account: Option<AccountIdx>) -> PendingOp {
        let mut requester = match (self.work_of)(token) {
            OpSource::Collection(die) => self.collections.get(die as usize).copied(),
            OpSource::Plan(place) => self.plans.get(place as usize).copied(),
            OpSource::Other => None,
        }
        .unwrap_or_default();
        if let Some(account) = account {
            requester.io = self.io_of(account);
        }
        PendingOp { at, requester, is_next: false }
    }

    /// Record that an operation waits for `die` from `at` on.
    pub(super) fn record_wait(
        &mut self,
        at: u64,
        die: u32,
        token: u64,
        account: Option<AccountIdx>,
    ) {
        let pending = self.pending_op(at, token, account);
        self.rings[die as usize].push_back(pending);
    }

    /// Record that the operation at `position` of the queue of `die` is next.
    pub(super) fn take_from_queue(&mut self, die: usize, position: usize) {
        let next = self.rings[die].remove(position).unwrap_or_default();
        self.holders[die] = PendingOp { is_next: true, ..next };
    }

    /// Record that an operation has `die`; it came at `at` if it did not wait.
    pub(super) fn record_begin(
        &mut self,
        at: u64,
        die: u32,
        token: u64,
        account: Option<AccountIdx>,
    ) {
        let waited = std::mem::take(&mut self.holders[die as usize].is_next);
        if !waited {
            self.holders[die as usize] = self.pending_op(at, token, account);
        }
    }

    /// Record that the operation on `page`, which just got `die`, may share it.
    pub(super) fn join_multi_plane(&mut self, die: u32, page: Option<NonZeroU32>) {
        self.multi_plane.extend(page.map(|page| (page, self.holders[die as usize])));
    }

    /// Record the end of the operation on `die` or its `plane`.
    pub(super) fn record_end(
        &mut self,
        die: DieIdx,
        plane: PlaneIdx,
        summary: OpSummary,
        times: &OpTimes,
    ) {
        let OpTimes { begin, sent, sent_until, end } = *times;
        let multi_plane = self.multi_plane.iter().position(|(page, _)| Some(*page) == summary.page);
        if let Some(position) = multi_plane {
            self.holders[die.0 as usize] = self.multi_plane.swap_remove(position).1;
        }
        let PendingOp { at, requester, .. } = self.holders[die.0 as usize];
        let Requester { io, job, block } = requester;
        // An operation that had its die when the log began counts as one that did not wait.
        let arrival = at.min(begin);
        let kind = if summary.is_remainder { Operations::REST } else { summary.kind as u8 };
        let purpose = summary.purpose as u8;
        let (cells, plane) = (summary.cell_ns, plane.0);
        self.store(Operation {
            arrived: arrival,
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
    pub(super) fn record_suspension(&mut self, die: u32, stop: u64, end: u64, next: u64) {
        let requester = self.holders[die as usize].requester;
        self.rings[die as usize].push_front(PendingOp { at: stop, requester, is_next: false });
        let operations =
            self.segments.iter_mut().rev().flat_map(|each| each.operations.iter_mut().rev());
        let last = operations.into_iter().find(|operation| operation.plane == die);
        if let Some(operation) = last.filter(|operation| operation.end == end) {
            (operation.end, operation.cells) = (next, operation.cells - (end - next));
        }
    }

    /// Record other work of `die` from `begin` to `end`.
    pub(super) fn record_busy(&mut self, die: u32, purpose: Purpose, begin: u64, end: u64) {
        let (kind, purpose, cells) = (OpKind::Inside as u8, purpose as u8, end - begin);
        let arrival = begin;
        self.store(Operation {
            arrived: arrival,
            begin,
            end,
            cells,
            plane: die,
            kind,
            purpose,
            ..Operation::default()
        });
    }

    fn store(&mut self, operation: Operation) {
        let mut newest = self.segments.back_mut().expect("at least one segment");
        if newest.operations.len() == SEGMENT_OPS {
            if self.segments.len() == SEGMENTS_MAX {
                self.drop_segment();
            }
            self.segments.push_back(LogSegment::new(self.segments_begun));
            self.segments_begun += 1;
            newest = self.segments.back_mut().expect("a segment was just added");
        }
        newest.from = newest.from.min(operation.arrived);
        newest.until = newest.until.max(operation.end);
        newest.operations.push(operation);
    }

    /// Record that a page of the I/O of `account` waited for a free page of `die`, to program
    /// `page`.
    pub(super) fn record_page_wait(
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
    pub(super) fn record_cache_wait(
        &mut self,
        account: AccountIdx,
        die: DieIdx,
        page: Lpn,
        from: u64,
        until: u64,
    ) {
        let (io, kind) = (self.io_of(account), 1);
        let newest = self.segments.back_mut().expect("at least one segment");
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
            self.segments.back_mut().expect("at least one segment").waits.push(wait);
        }
    }

    /// Record an I/O that was submitted at `begin` and ended at `end`.
    pub(super) fn record_completion(&mut self, begin: u64, end: u64) {
        let overlaps = |stretch: &&mut LogSegment| stretch.until >= begin;
        for segment in self.segments.iter_mut().rev().take_while(overlaps) {
            if segment.from <= end {
                segment.slowest = segment.slowest.max(end - begin);
            }
        }
    }

    /// Drop the segment with the shortest overlapping response times; of several the last.
    fn drop_segment(&mut self) {
        let old = self.segments.iter().take(SEGMENTS_MAX - RECENT_SEGMENTS).enumerate();
        let position = old.rev().min_by_key(|(_, stretch)| stretch.slowest).map_or(0, |(at, _)| at);
        let Some(LogSegment { number, from, until, .. }) = self.segments.remove(position) else {
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
        let (mut operations, mut waits) = (Vec::new(), Vec::new());
        for segment in self.segments {
            operations.extend(segment.operations);
            waits.extend(segment.waits);
        }
        let dropped: u64 = self.gaps.iter().map(|gap| gap.last - gap.first + 1).sum();
        let gaps = self.gaps.iter().map(|gap| (gap.from, gap.until)).collect();
        Operations {
            all: operations.len() as u64 + dropped * SEGMENT_OPS as u64,
            operations,
            gaps,
            waits,
            valid: self.valid,
        }
    }
}

fn put<I: Clone + Default>(items: &mut Vec<I>, index: usize, item: I) {
    if items.len() <= index {
        items.resize(index + 1, I::default());
    }
    items[index] = item;
}
