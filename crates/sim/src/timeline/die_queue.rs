//! Die queues: waiting operations, and their priorities.

use std::collections::VecDeque;
use std::hint::cold_path;

use super::op::{Op, Purpose, Stage};
use super::suspend::RunningOp;

/// Priority of the operations that wait for a die.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DieQueue {
    /// First in, first out, as in OFC (§III).
    #[default]
    Fifo,
    /// Relocations and erases before host I/Os: OFC §VI, so that garbage collection keeps up.
    CollectionFirst,
    /// Host reads first, then host writes: OFC §VI, for a device used as a cache.
    ReadsFirst,
}

impl DieQueue {
    /// Return its name in profiles.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DieQueue::Fifo => "fifo",
            DieQueue::CollectionFirst => "collection_first",
            DieQueue::ReadsFirst => "reads_first",
        }
    }

    /// Return whether `op` goes before `other`, whatever their order of arrival.
    pub(super) fn prefers<T>(self, op: &Op<T>, other: &Op<T>) -> bool {
        self.rank(op) < self.rank(other)
    }

    /// Return the rank: the lowest is next; at equal ranks the first.
    fn rank<T>(self, op: &Op<T>) -> u8 {
        match (self, op.purpose) {
            (DieQueue::Fifo, _) => 0,
            (DieQueue::CollectionFirst, Purpose::HostRead | Purpose::HostWrite) => 1,
            (DieQueue::CollectionFirst, _) => 0,
            // A suspended operation occupies the page register; only reads go before it.
            (DieQueue::ReadsFirst, _) if op.stage == Stage::Cells => 1,
            (DieQueue::ReadsFirst, Purpose::HostRead) => 0,
            (DieQueue::ReadsFirst, Purpose::HostWrite) => 2,
            (DieQueue::ReadsFirst, _) => 3,
        }
    }
}

/// The time of an end that is unknown.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// Length of `before` at which finished entries are removed.
const PRUNE_LENGTH: usize = 16;

/// A die: its current operation and its queue.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Die<T> {
    /// End of the current operation; `UNKNOWN` while that waits for a channel.
    pub(super) free_at: u64,
    /// Start of the operation that was started last (may lie in the future), and its purpose.
    pub(super) held_since: u64,
    pub(super) purpose: Purpose,
    /// With cache program: whether the last started operation is a host page in the register, when
    /// the register is free again, and when the cells have programmed the earlier pages.
    pub(super) cached: bool,
    pub(super) register_free_at: u64,
    pub(super) cells_free_at: u64,
    /// With cache read: when the page that the last started operation reads leaves the register, so that
    /// the cells may read the next; `UNKNOWN` if that operation is no host read.
    pub(super) read_register_free_at: u64,
    /// The last started suspendable operation.
    pub(super) running: RunningOp,
    pub(super) channel: u32,
    /// Ends and purposes of the operations before; some may be over.
    before: Vec<(u64, Purpose)>,
    pub(super) ring: VecDeque<Op<T>>,
    /// Number of waiting operations whose time is accounted.
    pub(super) accounted: u32,
}

impl<T> Die<T> {
    /// Create an idle die.
    pub(super) fn on(channel: usize) -> Die<T> {
        Die {
            free_at: 0,
            held_since: 0,
            purpose: Purpose::HostRead,
            cached: false,
            register_free_at: 0,
            cells_free_at: 0,
            read_register_free_at: UNKNOWN,
            running: RunningOp::default(),
            channel: channel as u32,
            before: Vec::new(),
            ring: VecDeque::new(),
            accounted: 0,
        }
    }

    /// Record the last started operation as followed by another, for arrivals at `now` or later.
    #[inline]
    pub(super) fn record_successor(&mut self, now: u64) {
        if self.before.last().is_none_or(|(until, _)| *until <= now) {
            self.before.clear();
        } else if self.before.len() >= PRUNE_LENGTH {
            cold_path();
            self.before.retain(|(until, _)| *until > now);
        }
        self.before.push((self.free_at, self.purpose));
    }

    /// Return the known occupation of the die: end and purpose, in order.
    pub(super) fn known(&self) -> impl Iterator<Item = (u64, Purpose)> {
        let last = Some((self.free_at, self.purpose)).filter(|(free_at, _)| *free_at != UNKNOWN);
        self.before.iter().copied().chain(last)
    }

    /// Return until when the die is known to be occupied, at least `at`.
    #[inline]
    pub(super) fn known_until(&self, at: u64) -> u64 {
        let before = self.before.last().map_or(at, |(until, _)| at.max(*until));
        if self.free_at == UNKNOWN { before } else { before.max(self.free_at) }
    }

    /// Return whether the register accepts a host page while the die programs the one before: the
    /// queue is empty, and the register's free time is known.
    #[inline]
    pub(super) fn takes_next(&self) -> bool {
        self.cached && self.ring.is_empty() && self.free_at != UNKNOWN
    }

    /// Return when the register accepts the first waiting page, if it and the page being programmed
    /// are host pages.
    pub(super) fn next_in_register(&self) -> Option<u64> {
        let first = self.ring.front()?;
        let both = self.cached && first.is_host_program();
        both.then_some(self.register_free_at)
    }

    /// Start the read `op` at `at`, when the data of the operation before has left the die; return
    /// when the channel can transfer it. With cache read the cells begin as soon as `op` waits and the
    /// page of the read before has left their register.
    pub(super) fn sense(&mut self, at: u64, op: &Op<T>) -> u64 {
        if !op.is_host_read() {
            self.read_register_free_at = UNKNOWN;
            return at + op.cell_ns;
        }
        let begin = self.read_register_free_at.max(op.arrived).min(at);
        self.read_register_free_at = at.max(begin + op.cell_ns);
        self.read_register_free_at
    }

    /// Program a host page that is in the register at `at`, with cell time `cell_ns`; return the
    /// end.
    #[inline]
    pub(super) fn program(&mut self, at: u64, cell_ns: u64) -> u64 {
        self.register_free_at = at.max(self.cells_free_at);
        self.register_free_at + cell_ns
    }

    /// Return the index of the next operation in the queue.
    #[inline(always)]
    pub(super) fn next_position(&self, queue: DieQueue) -> usize {
        if queue == DieQueue::Fifo || self.ring.len() == 1 {
            return 0;
        }
        let (mut lowest_rank, mut next) = (u8::MAX, 0);
        for (position, op) in self.ring.iter().enumerate() {
            let rank = queue.rank(op);
            if rank < lowest_rank {
                (lowest_rank, next) = (rank, position);
            }
        }
        next
    }
}

impl<T: Copy> Die<T> {
    /// Remove it.
    #[inline(always)]
    pub(super) fn take(&mut self, position: usize) -> Op<T> {
        // Copied first: returning an optional operation would copy it twice.
        let next = self.ring[position];
        if position == 0 {
            self.ring.pop_front();
        } else {
            cold_path();
            self.ring.remove(position);
        }
        self.accounted -= u32::from(next.account.is_some());
        next
    }
}
