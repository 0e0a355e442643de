//! Who waits for a die, and who of them is next.

use std::collections::VecDeque;
use std::hint::cold_path;

use super::op::{Op, Purpose, Stage};
use super::suspend::Running;

/// Which of the operations that wait for a die it takes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DieQueue {
    /// The one that came first, as OFC was built (§III).
    #[default]
    Fifo,
    /// Relocations and erases before host I/Os: OFC §VI, so that collection keeps up.
    CollectionFirst,
    /// Host reads before everything else, then host writes: OFC §VI, for a device used as a cache.
    ReadsFirst,
}

impl DieQueue {
    /// As profiles say it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DieQueue::Fifo => "fifo",
            DieQueue::CollectionFirst => "collection_first",
            DieQueue::ReadsFirst => "reads_first",
        }
    }

    /// Whether `op` is taken before `other`, whichever came first.
    pub(super) fn prefers<T>(self, op: &Op<T>, other: &Op<T>) -> bool {
        self.rank(op) < self.rank(other)
    }

    /// Of two that wait, the one of the lower rank is taken; of equal ranks the first.
    fn rank<T>(self, op: &Op<T>) -> u8 {
        match (self, op.purpose) {
            (DieQueue::Fifo, _) => 0,
            (DieQueue::CollectionFirst, Purpose::HostRead | Purpose::HostWrite) => 1,
            (DieQueue::CollectionFirst, _) => 0,
            // What is suspended has the page register, and goes on before anything but reads.
            (DieQueue::ReadsFirst, _) if op.stage == Stage::Cells => 1,
            (DieQueue::ReadsFirst, Purpose::HostRead) => 0,
            (DieQueue::ReadsFirst, Purpose::HostWrite) => 2,
            (DieQueue::ReadsFirst, _) => 3,
        }
    }
}

/// The time of an end that is not known yet.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// So many are kept before those that are over are looked for.
const MANY: usize = 16;

/// A die: what it does, and who waits for it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Die<T> {
    /// When it has done what it does; `UNKNOWN` while that waits for a channel.
    pub(super) free_at: u64,
    /// From when on it has done, or will do, the operation that was started last, and for whom.
    pub(super) held_since: u64,
    pub(super) purpose: Purpose,
    /// With cache program: whether what was started last is a page of the host in the register, when that
    /// can take the next, and until when the cells program those before.
    pub(super) cached: bool,
    pub(super) register_free_at: u64,
    pub(super) cells_free_at: u64,
    /// What was started last of all that can be suspended.
    pub(super) running: Running,
    pub(super) channel: u32,
    /// Until when it does, or did, those before, and for whom; some may be over.
    before: Vec<(u64, Purpose)>,
    pub(super) ring: VecDeque<Op<T>>,
    /// So many of those that wait keep account of their time.
    pub(super) accounted: u32,
}

impl<T> Die<T> {
    /// A die that has done nothing yet.
    pub(super) fn on(channel: usize) -> Die<T> {
        Die {
            free_at: 0,
            held_since: 0,
            purpose: Purpose::HostRead,
            cached: false,
            register_free_at: 0,
            cells_free_at: 0,
            running: Running::default(),
            channel: channel as u32,
            before: Vec::new(),
            ring: VecDeque::new(),
            accounted: 0,
        }
    }

    /// Whoever comes at `now` or later sees that the operation started last is followed by another.
    #[inline]
    pub(super) fn passes_on(&mut self, now: u64) {
        if self.before.last().is_none_or(|(until, _)| *until <= now) {
            self.before.clear();
        } else if self.before.len() >= MANY {
            cold_path();
            self.before.retain(|(until, _)| *until > now);
        }
        self.before.push((self.free_at, self.purpose));
    }

    /// Until when the die is held by whom, in order, as far as it is known.
    pub(super) fn known(&self) -> impl Iterator<Item = (u64, Purpose)> {
        let last = Some((self.free_at, self.purpose)).filter(|(free_at, _)| *free_at != UNKNOWN);
        self.before.iter().copied().chain(last)
    }

    /// Until when the die is held as far as it is known, and not before `at`.
    #[inline]
    pub(super) fn known_until(&self, at: u64) -> u64 {
        let before = self.before.last().map_or(at, |(until, _)| at.max(*until));
        if self.free_at == UNKNOWN { before } else { before.max(self.free_at) }
    }

    /// Whether the register takes a page of the host while the die programs the one before: nobody
    /// waits, and it is known when the register is free.
    #[inline]
    pub(super) fn takes_next(&self) -> bool {
        self.cached && self.ring.is_empty() && self.free_at != UNKNOWN
    }

    /// When the register takes the page that waits first, where that and the one being programmed are
    /// the host's.
    pub(super) fn next_in_register(&self) -> Option<u64> {
        let first = self.ring.front()?;
        let both = self.cached && first.is_host_program();
        both.then_some(self.register_free_at)
    }

    /// The register has a page of the host at `at`, which the cells then take `cell_ns` to program;
    /// returns when they have.
    #[inline]
    pub(super) fn program(&mut self, at: u64, cell_ns: u64) -> u64 {
        self.register_free_at = at.max(self.cells_free_at);
        self.register_free_at + cell_ns
    }

    /// Where in the ring the next one is.
    #[inline(always)]
    pub(super) fn next_place(&self, queue: DieQueue) -> usize {
        if queue == DieQueue::Fifo || self.ring.len() == 1 {
            return 0;
        }
        let (mut least, mut next) = (u8::MAX, 0);
        for (place, op) in self.ring.iter().enumerate() {
            let rank = queue.rank(op);
            if rank < least {
                (least, next) = (rank, place);
            }
        }
        next
    }
}

impl<T: Copy> Die<T> {
    /// Take it out.
    #[inline(always)]
    pub(super) fn take(&mut self, place: usize) -> Op<T> {
        // A copy first: an operation that is returned as one that may be none goes over memory twice.
        let next = self.ring[place];
        if place == 0 {
            self.ring.pop_front();
        } else {
            cold_path();
            self.ring.remove(place);
        }
        self.accounted -= u32::from(next.account.is_some());
        next
    }
}
