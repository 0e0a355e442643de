//! Recent work of each die, which explains the waits for a full write cache.
//!
//! A host write that finds the write cache full waits until one of its pages is on flash. Flushes
//! have no account: thousands of them wait in the die queues, and charging each for every operation
//! before it would cost more than everything else. So dies keep a history, and the wait is split at
//! its end:
//!
//! ```text
//! host write      ├────────────────── waits for the cache ──────────────────┤ takes the slot of page P
//! die of page P   │ program │ read of a valid page │ … │ erase │ idle │ program of page P │
//! charged as        die wait   GC copy                  erase    (1)    channel wait, transfer, cell program
//! ```
//!
//! (1) While the die is idle the flush waits for a free page, which has its own cause, or for
//! something else: other units of its flash page, a bus, the processor. That remains
//! `cache_wait_ns`.
//!
//! A merging FTL uses many dies for one page. Idle time of the page's die is then charged as the
//! work of the other dies.
//!
//! **Source**: none; an account of the simulator's own times.
//! **Faithful**: the parts sum to the wait, and each is the die's work at that time.
//! **Simplified**: a wait is longer than the flush of page P if the page entered the cache during
//! the wait. The time before is charged as the same die's work then.
//! **Ambiguous**: which die a write waits for while all are busy. Here it is the die whose program freed
//! the slot.

use std::collections::VecDeque;

use super::op::{OpSummary, Purpose};
use super::{Account, AccountIdx, Timeline};
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{DieIdx, Lpn};
use crate::timeline::breakdown::Cause;

/// A time in which a die works for one purpose.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Busy {
    begin: u64,
    end: u64,
    /// Cell time of the operation that ends then [ns].
    cell_ns: u64,
    purpose: Purpose,
}

/// The work of a die, in order and without overlaps.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
struct DieHistory {
    busy: VecDeque<Busy>,
    /// Begin and end of the last time in which pages waited for a free page of this die.
    no_free_page: (u64, u64),
}

impl DieHistory {
    /// Add a busy time; drop those that ended by `keep_from`.
    #[inline]
    fn add(&mut self, new: Busy, keep_from: u64) {
        while self.busy.front().is_some_and(|first| first.end <= keep_from) {
            self.busy.pop_front();
        }
        let begin = new.begin.max(self.busy.back().map_or(0, |last| last.end));
        if begin >= new.end {
            return; // a multi-plane operation counts once
        }
        // Programs for the host stay separate: each of them ends a flush.
        if let Some(last) = self.busy.back_mut()
            && (last.end, last.purpose) == (begin, new.purpose)
            && new.purpose != Purpose::HostWrite
        {
            (last.end, last.cell_ns) = (new.end, new.cell_ns);
        } else {
            self.busy.push_back(Busy { begin, ..new });
        }
    }

    /// Suspend the operation that was to end at `end`; other work of the die starts at `next`.
    fn suspend(&mut self, end: u64, next: u64) {
        if let Some(last) = self.busy.back_mut().filter(|last| last.end == end) {
            last.end = next.max(last.begin);
            last.cell_ns = last.cell_ns.saturating_sub(end - next);
        }
    }

    /// Return whether a program for the host ended at `at`.
    fn programmed_until(&self, at: u64) -> bool {
        let ended = self.busy.iter().rev().take_while(|busy| busy.end >= at);
        ended.into_iter().any(|busy| busy.end == at && busy.purpose == Purpose::HostWrite)
    }

    /// Split the time from `from` to `until` into the die's busy and idle pieces, last piece first.
    #[inline]
    fn split(&self, from: u64, until: u64, mut piece: impl FnMut(Option<&Busy>, u64, u64)) {
        let mut piece_end = until;
        for busy in self.busy.iter().rev().skip_while(|busy| busy.begin >= until) {
            if busy.end <= from {
                break;
            }
            let (begin, end) = (busy.begin.max(from), busy.end.min(piece_end));
            if end < piece_end {
                piece(None, end, piece_end);
            }
            piece(Some(busy), begin, end);
            piece_end = begin;
        }
        if from < piece_end {
            piece(None, from, piece_end);
        }
    }
}

/// The work of all dies since the oldest wait for the write cache began.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct History {
    dies: Vec<DieHistory>,
    /// When that wait began; the end of time if no page waits.
    keep_from: u64,
    /// Idle times of the dies examined so far; kept to avoid allocations.
    #[serde(skip)]
    idle: [Vec<(u64, u64)>; 2],
}

impl History {
    pub(super) fn new(dies: u32) -> History {
        let dies = vec![DieHistory::default(); dies as usize];
        History { dies, keep_from: u64::MAX, idle: Default::default() }
    }

    /// Record that `die` is busy from `begin` to `end`; the time is `now`.
    #[inline]
    pub(super) fn add(&mut self, die: DieIdx, summary: OpSummary, begin: u64, end: u64, now: u64) {
        let busy = Busy { begin, end, cell_ns: summary.cell_ns, purpose: summary.purpose };
        self.dies[die.0 as usize].add(busy, self.keep_from.min(now));
    }

    /// Suspend the operation of `die` that was to end at `end`.
    pub(super) fn suspend(&mut self, die: DieIdx, end: u64, next: u64) {
        self.dies[die.0 as usize].suspend(end, next);
    }

    /// Split the wait from `from` to `until`, which the flush to `die` ended, by the work of dies.
    fn explain(
        &mut self,
        die: DieIdx,
        include_others: bool,
        (from, until): (u64, u64),
        mut spent: impl FnMut(Spent<'_>, u64),
    ) {
        let History { dies, idle: [gaps, unexplained], .. } = self;
        gaps.clear();
        gaps.push((from, until));
        let others = (0..if include_others { dies.len() } else { 0 })
            .filter(|other| *other != die.0 as usize);
        for other in std::iter::once(die.0 as usize).chain(others) {
            for (from, until) in gaps.drain(..) {
                dies[other].split(from, until, |busy, begin, end| match busy {
                    Some(busy) => spent(Spent::Busy(busy), end - begin),
                    None => unexplained.push((begin, end)),
                });
            }
            std::mem::swap(gaps, unexplained);
            if gaps.is_empty() {
                return;
            }
        }
        let (no_page, page) = dies[die.0 as usize].no_free_page;
        for (from, until) in gaps.drain(..) {
            let without = page.min(until).saturating_sub(no_page.max(from));
            spent(Spent::NoFreePage, without);
            spent(Spent::Idle, until - from - without);
        }
    }
}

/// The reason of a part of a wait.
enum Spent<'a> {
    Busy(&'a Busy),
    NoFreePage,
    Idle,
}

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Record that a page waits for the write cache since `since`.
    #[inline]
    pub(crate) fn awaits_flush(&mut self, since: u64) {
        if let Some(history) = &mut self.history {
            history.keep_from = history.keep_from.min(since);
        }
    }

    /// Record that the oldest current wait for the write cache began at `since`, or that no page waits.
    #[inline]
    pub(crate) fn awaited_flush(&mut self, since: Option<u64>) {
        if let Some(history) = &mut self.history {
            history.keep_from = since.unwrap_or(u64::MAX);
        }
    }

    /// Charge a write that waited from `since` to `at` for a free page of `die`. A page without an
    /// account is a flush.
    #[inline]
    pub(crate) fn waited_for_page(
        &mut self,
        account: Option<AccountIdx>,
        die: DieIdx,
        page: Lpn,
        since: u64,
        at: u64,
    ) {
        if let Some((log, account)) = self.log.as_mut().zip(account) {
            log.record_page_wait(account, die, page, since, at);
        }
        if let Some(history) = &mut self.history {
            let (from, until) = &mut history.dies[die.0 as usize].no_free_page;
            *from = if since <= *until { since.min(*from) } else { since };
            *until = at;
        }
    }

    /// Return the die whose host program ended at `at`: `likely`, if that fits.
    pub(crate) fn programmed_until(&self, likely: Option<DieIdx>, at: u64) -> Option<DieIdx> {
        let history = self.history.as_ref()?;
        let fits = |die: &DieIdx| history.dies[die.0 as usize].programmed_until(at);
        let all = (0..history.dies.len() as u32).map(DieIdx);
        likely.filter(fits).or_else(|| all.into_iter().find(fits)).or(likely)
    }

    /// Charge a host page that waited for the write cache from `since` to `at`, until `page` was on
    /// `die`.
    #[inline]
    pub(crate) fn note_cache_wait(
        &mut self,
        account: AccountIdx,
        die: Option<DieIdx>,
        page: Lpn,
        since: u64,
        at: u64,
    ) {
        if let Some((log, die)) = self.log.as_mut().zip(die) {
            log.record_cache_wait(account, die, page, since, at);
        }
    }

    /// Charge a host page that waited for the write cache from `since` to `at`, when a flush to
    /// `die` ended. With `include_others`, other dies took part in the flush.
    pub(crate) fn spent_on_flush(
        &mut self,
        account: AccountIdx,
        die: Option<DieIdx>,
        include_others: bool,
        since: u64,
        at: u64,
    ) {
        let Timeline { history, accounts, timing, .. } = self;
        let account = &mut accounts[account.index()];
        let Some((history, die)) = history.as_mut().zip(die) else {
            return account.add(Cause::CacheWait, at - since);
        };
        let transfer_ns = timing.transfer::<AllFeatures>(timing.program_transfers);
        history.explain(die, include_others, (since, at), |spent, ns| match spent {
            // The program of the page that freed the slot.
            Spent::Busy(busy) if busy.end == at && busy.purpose == Purpose::HostWrite => {
                let cells = busy.cell_ns.min(ns);
                let transfer = transfer_ns.min(ns - cells);
                account.add(Cause::CellProgram, cells);
                account.add(Cause::Transfer, transfer);
                account.add(Cause::ChannelWait, ns - cells - transfer);
            }
            Spent::Busy(busy) => account.add(busy.purpose.wait_cause(), ns),
            Spent::NoFreePage => account.add(Cause::FreePage, ns),
            Spent::Idle => account.add(Cause::CacheWait, ns),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn busy(begin: u64, end: u64, purpose: Purpose) -> Busy {
        Busy { begin, end, cell_ns: end - begin, purpose }
    }

    #[test]
    fn wait_is_split_into_busy_and_idle_pieces() {
        let mut die = DieHistory::default();
        die.add(busy(0, 10, Purpose::HostWrite), 0);
        die.add(busy(10, 30, Purpose::Relocation), 0);
        die.add(busy(30, 40, Purpose::Relocation), 0);
        die.add(busy(45, 95, Purpose::Erase), 0);
        die.add(busy(95, 99, Purpose::HostWrite), 0);
        let mut pieces = Vec::new();
        die.split(5, 97, |busy, begin, end| {
            pieces.push((busy.map(|busy| busy.purpose), begin, end))
        });
        let expected = [
            (Some(Purpose::HostWrite), 95, 97),
            (Some(Purpose::Erase), 45, 95),
            (None, 40, 45),
            (Some(Purpose::Relocation), 10, 40),
            (Some(Purpose::HostWrite), 5, 10),
        ];
        assert_eq!(pieces, expected);
        assert!(die.programmed_until(99) && die.programmed_until(10) && !die.programmed_until(95));
        die.add(busy(99, 120, Purpose::Relocation), 45);
        assert_eq!(
            die.busy.front().unwrap().begin,
            45,
            "busy times that ended by then are dropped"
        );
        die.suspend(120, 110);
        assert_eq!(die.busy.back().unwrap().end, 110);
    }

    proptest! {
        /// Compare with a table that has an entry per nanosecond. Times of planes may overlap.
        #[test]
        fn split_matches_table_of_nanoseconds(
            lengths in prop::collection::vec((0u64..12, 0u64..9, 0u64..4), 1..40), from in 0u64..200, long in 1u64..200,
        ) {
            let purposes =
                [Purpose::HostWrite, Purpose::Relocation, Purpose::Erase, Purpose::HostRead];
            let (mut die, mut naive) = (DieHistory::default(), vec![None; 1000]);
            let (mut begun, mut at) = (0u64, 0u64);
            for (number, (length, pause, overlap)) in lengths.into_iter().enumerate() {
                let purpose = purposes[number % 4];
                // Begins never decrease.
                let begin = (at + pause).saturating_sub(overlap).max(begun);
                for entry in &mut naive[begin as usize..(begin + length) as usize] {
                    *entry = entry.or(Some(purpose));
                }
                die.add(busy(begin, begin + length, purpose), 0);
                (begun, at) = (begin, at.max(begin + length));
            }
            let mut split = vec![None; 1000];
            let mut sum = 0;
            die.split(from, from + long, |busy, begin, end| {
                sum += end - begin;
                split[begin as usize..end as usize].fill(busy.map(|busy| busy.purpose));
            });
            prop_assert_eq!(sum, long);
            let range = from as usize..(from + long) as usize;
            prop_assert_eq!(&split[range.clone()], &naive[range]);
        }
    }
}
