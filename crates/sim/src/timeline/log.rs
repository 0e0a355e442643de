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

use super::die_queue::UNKNOWN;
use super::energy::EnergyMeter;
use super::op::{Op, OpKind, OpSummary, Purpose};
use super::{Account, AccountIdx, Timeline};
use crate::flash::contents::Contents;
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{DieIdx, Lpn, PlaneIdx, Ppn};

/// A recorded operation; times are those of the device's clock [ns].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Operation {
    /// When it joined the queue of its die.
    pub arrived: u64,
    /// When it got its die, and when it ended.
    pub begin: u64,
    /// See `begin`.
    pub end: u64,
    /// Channel transfer; both 0 without one. A program that holds its channel before its die: from
    /// then on.
    pub sent: u64,
    /// See `sent`.
    pub sent_until: u64,
    /// Cell time: of a read from `begin` on, of all others up to `end`.
    pub cells: u64,
    /// The plane; for a die whose planes share a clock without multi-plane operations, its first
    /// plane.
    pub plane: u32,
    /// Number of its I/O plus 1, from the beginning of the log; 0: none.
    pub io: u32,
    /// Number of its collection or plan plus 1; 0: none.
    pub job: u32,
    /// The victim block of that plus 1; 0: unknown.
    pub block: u32,
    /// Index into [`Operations::KINDS`].
    pub kind: u8,
    /// Index into [`Operations::PURPOSES`].
    pub purpose: u8,
}

/// A wait of a host page outside the dies: for a free page, or for a slot of the write cache.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Wait {
    /// When it began and ended.
    pub from: u64,
    /// See `from`.
    pub until: u64,
    /// Number of the I/O plus 1; 0: unknown.
    pub io: u32,
    /// First plane of the die that supplied the free page, or whose program freed the cache slot.
    pub plane: u32,
    /// The page that was programmed then: its own, or the one that was flushed.
    pub page: u32,
    /// Index into [`Operations::WAITS`].
    pub kind: u8,
}

/// A recording.
#[derive(Clone, Default, Debug)]
pub struct Operations {
    /// The kept operations, in the order in which their ends became known.
    pub operations: Vec<Operation>,
    /// Time ranges with dropped operations, in order: every dropped operation overlaps one.
    pub gaps: Vec<(u64, u64)>,
    /// Number of operations, kept or dropped.
    pub all: u64,
    /// Waits near the kept operations, in the order of their ends.
    pub waits: Vec<Wait>,
    /// Collections by number, and the valid pages of their victims at the start.
    pub valid: Vec<(u32, u32)>,
}

impl Operations {
    /// Kinds of operations.
    pub const KINDS: [&'static str; 4] = ["read", "program", "inside", "rest"];
    /// Kind: the rest of a program or an erase that was suspended.
    const REST: u8 = 3;
    /// The cause of a host page's wait outside the dies.
    pub const WAITS: [&'static str; 2] = ["free page", "write cache"];
    /// Purposes of operations, and the column of the breakdown for an operation's own work.
    pub const PURPOSES: [(&'static str, &'static str); 9] = [
        ("host read", "cell_read_ns"),
        ("host write", "cell_program_ns"),
        ("relocation", "relocation_ns"),
        ("merge", "merge_ns"),
        ("erase", "erase_ns"),
        ("metadata", "metadata_ns"),
        ("mapping", "mapping_ns"),
        ("retry", "retry_ns"),
        ("scrub", "scrub_ns"),
    ];
}

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
    sent_until: u64,
    pub(super) end: u64,
}

impl OpLog {
    /// Create a log for die queues in which operations arrived at the times `waiting`.
    fn new(work_of: fn(u64) -> OpSource, waiting: Vec<Vec<u64>>) -> OpLog {
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

    /// Record that the operation at `position` of the queue of `die` is next.
    pub(super) fn take_from_queue(&mut self, die: usize, position: usize) {
        let next = self.rings[die].remove(position).unwrap_or_default();
        self.holders[die] = PendingOp { is_next: true, ..next };
    }

    /// Record that an operation has `die`; it came at `at` if it did not wait.
    fn record_begin(&mut self, at: u64, die: u32, token: u64, account: Option<AccountIdx>) {
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
    fn record_busy(&mut self, die: u32, purpose: Purpose, begin: u64, end: u64) {
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
    fn record_completion(&mut self, begin: u64, end: u64) {
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

    fn finish(self) -> Operations {
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

// Recording of operations: in the log of a timeline, and in the flash contents.

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Record every operation from `now` on, which is not before the last event. `work_of` returns
    /// the purpose of a token.
    pub(crate) fn begin_log(&mut self, now: u64, work_of: fn(u64) -> OpSource) {
        let waiting =
            self.dies.iter().map(|die| die.ring.iter().map(|op| op.arrived).collect()).collect();
        let mut log = OpLog::new(work_of, waiting);
        for (die, state) in (0..).zip(&self.dies) {
            if state.free_at > now && state.free_at != UNKNOWN {
                log.record_busy(
                    die,
                    state.purpose,
                    state.held_since.min(state.free_at),
                    state.free_at,
                );
            }
        }
        self.log = Some(Box::new(log));
        (self.watched, self.writes_down) = (true, true);
    }

    /// Stop recording; return the log.
    pub(crate) fn end_log(&mut self) -> Operations {
        let Some(mut log) = self.log.take() else { return Operations::default() };
        self.watched = self.contents.is_some();
        self.writes_down = self.watched || self.history.is_some() || self.energy.is_some();
        let now = self.calendar.now;
        for (die, state) in (0..).zip(&self.dies) {
            // It has its die, and its end is unknown.
            if state.free_at == UNKNOWN && state.held_since < now {
                log.record_busy(die, state.purpose, state.held_since, now);
            }
        }
        log.finish()
    }

    /// Account for the energy of every operation from now on.
    pub(crate) fn set_energy_meter(&mut self, meter: EnergyMeter) {
        self.energy = Some(Box::new(meter));
        self.writes_down = true;
    }

    /// Record the flash contents from now on.
    pub(crate) fn set_contents(&mut self, contents: Box<Contents>) {
        self.contents = Some(contents);
        (self.watched, self.writes_down) = (true, true);
    }

    /// Record the cell time of an operation, from `begin` to `end`.
    fn note_cells(&mut self, record: u32, begin: u64, end: u64) {
        let Timeline { contents, calendar, .. } = self;
        let contents = contents.as_mut().expect("flash contents are recorded");
        for (at, token) in contents.set_times(record, begin, end, calendar.now) {
            calendar.add_report(at.max(calendar.now), token);
        }
    }

    /// Record that the cells of a suspendable operation have ended at `at`.
    #[inline]
    pub(super) fn record_cells_end(&mut self, record: u32, at: u64) {
        if record != 0 {
            self.note_cells(record, at, at);
        }
    }

    /// Return whether `token` will be reported when all programs issued so far have ended. False if
    /// programs are not recorded, or all have ended.
    #[inline]
    pub(crate) fn wait_for_programs(&mut self, token: T) -> bool {
        self.contents.is_some() && self.wait_for_records(token)
    }

    #[inline(never)]
    fn wait_for_records(&mut self, token: T) -> bool {
        let Timeline { contents, calendar, .. } = self;
        let Some(contents) = contents else { return false };
        let until = contents.after_programs(token.into());
        if let Some(until) = until.filter(|until| *until > calendar.now) {
            calendar.add_report(until, token.into());
        }
        until.is_none_or(|until| until > calendar.now)
    }

    /// Return whether `token` will be reported when all programs issued before `record` have ended;
    /// false if all have.
    pub(crate) fn wait_for_earlier_programs(&mut self, record: u32, token: T) -> bool {
        let Timeline { contents, calendar, .. } = self;
        let contents = contents.as_mut().expect("flash contents are recorded");
        let until = contents.after_programs_before(record, token.into());
        if let Some(until) = until.filter(|until| *until > calendar.now) {
            calendar.add_report(until, token.into());
        }
        until.is_none_or(|until| until > calendar.now)
    }

    /// Record that the cells are busy until `end`; a suspendable operation has no known end.
    fn note_record(&mut self, summary: OpSummary, end: u64) {
        let begin = end - summary.cell_ns;
        let suspend = self.timing.suspend.as_ref();
        if suspend.is_none_or(|suspend| suspend.stop_ns(summary.kind, summary.purpose).is_none()) {
            return self.note_cells(summary.writes, begin, end);
        }
        let contents = self.contents.as_mut().expect("flash contents are recorded");
        contents.set_begin(summary.writes, begin);
    }

    /// Assign `account` to a page of I/O number `io`.
    #[inline]
    pub(crate) fn assign_account(&mut self, account: AccountIdx, io: impl FnOnce() -> u32) {
        if let Some(log) = &mut self.log {
            put(&mut log.accounts, account.index(), io() + 1);
        }
    }

    /// Record an I/O that was submitted at `begin` and ended at `end`.
    pub(crate) fn log_completion(&mut self, begin: u64, end: u64) {
        if let Some(log) = &mut self.log {
            log.record_completion(begin, end);
        }
    }

    /// Record the start of a collection of `block` on `die`.
    #[inline]
    pub(crate) fn log_collection(&mut self, die: u32, block: u32) {
        if let Some(log) = &mut self.log {
            log.jobs += 1;
            log.collections[die as usize] = Requester { io: 0, job: log.jobs, block: block + 1 };
        }
    }

    /// Record the number of valid pages of the last collection's victim.
    pub(crate) fn log_collected_pages(&mut self, valid: u16) {
        if let Some(log) = &mut self.log {
            log.valid.push((log.jobs - 1, valid.into()));
        }
    }

    /// Record a plan at `index`: its account, and the first block that it erases.
    #[inline]
    pub(crate) fn log_plan(
        &mut self,
        index: u32,
        account: Option<AccountIdx>,
        block: impl FnOnce() -> Option<u32>,
    ) {
        if let Some(log) = &mut self.log {
            log.jobs += 1;
            let io = account.map_or(0, |account| log.io_of(account));
            let block = block().map_or(0, |block| block + 1);
            put(&mut log.plans, index as usize, Requester { io, job: log.jobs, block });
        }
    }

    /// Record that an operation waits for `die` from `at` on.
    #[cold]
    pub(super) fn note_wait(&mut self, at: u64, die: u32, token: u64, account: Option<AccountIdx>) {
        if let Some(log) = &mut self.log {
            let pending = log.pending_op(at, token, account);
            log.rings[die as usize].push_back(pending);
        }
    }

    /// Record that an operation gets `die`; it came at `at` if it did not wait.
    #[cold]
    pub(super) fn note_begin(
        &mut self,
        at: u64,
        die: u32,
        token: u64,
        account: Option<AccountIdx>,
    ) {
        if let Some(log) = &mut self.log {
            log.record_begin(at, die, token, account);
        }
    }

    /// Record the program `op`: when it came to its channel, had it, had its die as well, and was
    /// transferred.
    #[cold]
    pub(super) fn note_holding(&mut self, op: &Op<T>, [at, held, begin, sent]: [u64; 4]) {
        let Some(log) = &mut self.log else { return };
        log.record_begin(at, op.die.0, op.token.into(), op.account);
        let times = OpTimes { begin, sent: held, sent_until: sent, end: sent + op.cell_ns };
        log.record_end(op.die, PlaneIdx(op.die.0), op.summary(), &times);
    }

    /// Record that the operation has `die` from `begin` to `end`; its channel transfer was the last
    /// one.
    #[inline(never)]
    pub(super) fn record_op(&mut self, die: DieIdx, summary: OpSummary, begin: u64, end: u64) {
        let lane = self.channels[self.dies[die.0 as usize].channel as usize].lane;
        let sent_until =
            if summary.kind == OpKind::Inside || summary.is_remainder { 0 } else { lane.free_at };
        self.record_sent_op(die, summary, begin, sent_until, end);
    }

    /// Like `record_op`, with its channel until `sent_until`; 0: no transfer.
    pub(super) fn record_sent_op(
        &mut self,
        die: DieIdx,
        summary: OpSummary,
        begin: u64,
        sent_until: u64,
        end: u64,
    ) {
        if summary.writes != 0 {
            self.note_record(summary, end);
        }
        if let Some(history) = &mut self.history {
            history.add(die, summary, begin, end, self.calendar.now);
        }
        if let Some(energy) = &mut self.energy {
            energy.count(&summary);
        }
        let Some(log) = &mut self.log else { return };
        let length = self.timing.transfer::<AllFeatures>(summary.transfers);
        let sent = sent_until.saturating_sub(length);
        // The log keeps multi-plane operations by page.
        let page = summary.page.filter(|_| self.planes.is_some());
        let plane = page.map(|page| self.geometry.address_of(Ppn(page.get() - 1)).plane);
        log.record_end(
            die,
            plane.unwrap_or(PlaneIdx(die.0)),
            summary,
            &OpTimes { begin, sent, sent_until, end },
        );
    }
}
