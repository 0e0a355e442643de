//! What each die did lately: it explains what a full write cache waited for.
//!
//! A host write that finds the write cache full waits until one of its pages is on flash. Flushes carry no account:
//! thousands of them wait in the rings of the dies, and to charge each of them for every operation before it would
//! cost more than all the rest. So dies keep a history instead, and the wait is split when it is over:
//!
//! ```text
//! host write      ├────────────────── waits for the cache ──────────────────┤ takes the place of page P
//! die of page P   │ program │ read of a valid page │ … │ erase │ idle │ program of page P │
//! charged as        die wait   GC copy                  erase    (1)    channel wait, transfer, cell program
//! ```
//!
//! (1) While the die is idle the flush waits for a free page, which is charged as that, or for something else: for
//! other units of its flash page, a bus, the processor. That remains `cache_wait_ns`.
//!
//! An FTL that merges uses many dies for one page. There the time in which the die of the page is idle is what the
//! other dies did.
//!
//! **Source**: none; an account of the simulator's own times.
//! **Faithful**: the parts sum to the wait, and each is what the die did at that time.
//! **Simplified**: a wait is longer than the flush of page P where the page came to the cache while the write waited
//! already. The time before is charged as what the same die did then.
//! **Ambiguous**: what a write waits for where all dies are busy. Here for the die whose program made the place.

use std::collections::VecDeque;

use super::op::{Noted, Purpose};
use super::{Account, AccountIdx, Timeline};
use crate::flash::fast_path::Full;
use crate::flash::geometry::{DieIdx, Lpn};
use crate::timeline::breakdown::Cause;

/// A time in which a die works for one purpose.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Busy {
    begin: u64,
    end: u64,
    /// How long the cells take of what ends then [ns].
    cell_ns: u64,
    purpose: Purpose,
}

/// What a die did, in order and without overlaps.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
struct DieHistory {
    busy: VecDeque<Busy>,
    /// From when until when pages waited for a free one of this die, the last time that some did.
    no_free_page: (u64, u64),
}

impl DieHistory {
    /// The die is busy; what ended by `keep_from` is not needed any more.
    #[inline]
    fn add(&mut self, new: Busy, keep_from: u64) {
        while self.busy.front().is_some_and(|first| first.end <= keep_from) {
            self.busy.pop_front();
        }
        let begin = new.begin.max(self.busy.back().map_or(0, |last| last.end));
        if begin >= new.end {
            return; // planes that work together are one
        }
        // Programs for the host stay apart: each of them ends a flush.
        if let Some(last) = self.busy.back_mut()
            && (last.end, last.purpose) == (begin, new.purpose)
            && new.purpose != Purpose::HostWrite
        {
            (last.end, last.cell_ns) = (new.end, new.cell_ns);
        } else {
            self.busy.push_back(Busy { begin, ..new });
        }
    }

    /// Suspend the operation that was to end at `end`, and others have the die from `next` on.
    fn suspend(&mut self, end: u64, next: u64) {
        if let Some(last) = self.busy.back_mut().filter(|last| last.end == end) {
            last.end = next.max(last.begin);
            last.cell_ns = last.cell_ns.saturating_sub(end - next);
        }
    }

    /// Whether a program for the host ended at `at`.
    fn programmed_until(&self, at: u64) -> bool {
        let ended = self.busy.iter().rev().take_while(|busy| busy.end >= at);
        ended.into_iter().any(|busy| busy.end == at && busy.purpose == Purpose::HostWrite)
    }

    /// Split the time from `from` to `until` into pieces, the last first: what the die did, or nothing.
    #[inline]
    fn split(&self, from: u64, until: u64, mut piece: impl FnMut(Option<&Busy>, u64, u64)) {
        let mut known = until;
        for busy in self.busy.iter().rev().skip_while(|busy| busy.begin >= until) {
            if busy.end <= from {
                break;
            }
            let (begin, end) = (busy.begin.max(from), busy.end.min(known));
            if end < known {
                piece(None, end, known);
            }
            piece(Some(busy), begin, end);
            known = begin;
        }
        if from < known {
            piece(None, from, known);
        }
    }
}

/// What all dies did since the oldest wait for the write cache began.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct History {
    dies: Vec<DieHistory>,
    /// When that began; the end of time where nobody waits.
    keep_from: u64,
    /// Times in which the dies looked at so far were idle; kept, so that nothing is allocated.
    #[serde(skip)]
    idle: [Vec<(u64, u64)>; 2],
}

impl History {
    pub(super) fn new(dies: u32) -> History {
        let dies = vec![DieHistory::default(); dies as usize];
        History { dies, keep_from: u64::MAX, idle: Default::default() }
    }

    /// `die` is busy from `begin` to `end`; it is `now`.
    #[inline]
    pub(super) fn add(&mut self, die: DieIdx, what: Noted, begin: u64, end: u64, now: u64) {
        let busy = Busy { begin, end, cell_ns: what.cell_ns, purpose: what.purpose };
        self.dies[die.0 as usize].add(busy, self.keep_from.min(now));
    }

    /// What `die` did, which was to end at `end`, is suspended.
    pub(super) fn suspend(&mut self, die: DieIdx, end: u64, next: u64) {
        self.dies[die.0 as usize].suspend(end, next);
    }

    /// Split the wait from `from` to `until`, which the flush to `die` ended, by what dies did.
    fn explain(
        &mut self,
        die: DieIdx,
        beside: bool,
        (from, until): (u64, u64),
        mut spent: impl FnMut(Spent<'_>, u64),
    ) {
        let History { dies, idle: [gaps, left], .. } = self;
        gaps.clear();
        gaps.push((from, until));
        let others =
            (0..if beside { dies.len() } else { 0 }).filter(|other| *other != die.0 as usize);
        for other in std::iter::once(die.0 as usize).chain(others) {
            for (from, until) in gaps.drain(..) {
                dies[other].split(from, until, |busy, begin, end| match busy {
                    Some(busy) => spent(Spent::Busy(busy), end - begin),
                    None => left.push((begin, end)),
                });
            }
            std::mem::swap(gaps, left);
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

/// What a part of a wait was spent on.
enum Spent<'a> {
    Busy(&'a Busy),
    NoFreePage,
    Idle,
}

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Somebody waits for the write cache since `since`.
    #[inline]
    pub(crate) fn awaits_flush(&mut self, since: u64) {
        if let Some(history) = &mut self.history {
            history.keep_from = history.keep_from.min(since);
        }
    }

    /// Of those that wait for the write cache now the first does since `since`; `None`: nobody does.
    #[inline]
    pub(crate) fn awaited_flush(&mut self, since: Option<u64>) {
        if let Some(history) = &mut self.history {
            history.keep_from = since.unwrap_or(u64::MAX);
        }
    }

    /// The page of a write has waited from `since` to `at` for a free one of `die`; one with no account is flushed.
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
            log.had_no_page(account, die, page, since, at);
        }
        if let Some(history) = &mut self.history {
            let (from, until) = &mut history.dies[die.0 as usize].no_free_page;
            *from = if since <= *until { since.min(*from) } else { since };
            *until = at;
        }
    }

    /// The die whose program of the host ended at `at`: `likely`, where that fits.
    pub(crate) fn programmed_until(&self, likely: Option<DieIdx>, at: u64) -> Option<DieIdx> {
        let history = self.history.as_ref()?;
        let fits = |die: &DieIdx| history.dies[die.0 as usize].programmed_until(at);
        let all = (0..history.dies.len() as u32).map(DieIdx);
        likely.filter(fits).or_else(|| all.into_iter().find(fits)).or(likely)
    }

    /// A host page has waited for the write cache from `since` to `at`, until `page` was on `die`.
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
            log.had_no_cache(account, die, page, since, at);
        }
    }

    /// A host page has waited for the write cache from `since` to `at`, when a flush to `die` ended; with `beside`
    /// other dies worked for that as well.
    pub(crate) fn spent_on_flush(
        &mut self,
        account: AccountIdx,
        die: Option<DieIdx>,
        beside: bool,
        since: u64,
        at: u64,
    ) {
        let Timeline { history, accounts, timing, .. } = self;
        let account = &mut accounts[account.index()];
        let Some((history, die)) = history.as_mut().zip(die) else {
            return account.add(Cause::CacheWait, at - since);
        };
        let once = timing.transfer::<Full>(timing.program_transfers);
        history.explain(die, beside, (since, at), |spent, ns| match spent {
            // The program of the page that made the place.
            Spent::Busy(busy) if busy.end == at && busy.purpose == Purpose::HostWrite => {
                let cells = busy.cell_ns.min(ns);
                let sent = once.min(ns - cells);
                account.add(Cause::CellProgram, cells);
                account.add(Cause::Transfer, sent);
                account.add(Cause::ChannelWait, ns - cells - sent);
            }
            Spent::Busy(busy) => account.add(busy.purpose.wait(), ns),
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
    fn a_wait_is_split_into_what_the_die_did_and_when_it_was_idle() {
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
        assert_eq!(die.busy.front().unwrap().begin, 45, "what ended by then is forgotten");
        die.suspend(120, 110);
        assert_eq!(die.busy.back().unwrap().end, 110);
    }

    proptest! {
        /// Against a table with an entry for every nanosecond. Planes work at the same time: then times overlap.
        #[test]
        fn every_nanosecond_is_charged_once(
            lengths in prop::collection::vec((0u64..12, 0u64..9, 0u64..4), 1..40), from in 0u64..200, long in 1u64..200,
        ) {
            let purposes =
                [Purpose::HostWrite, Purpose::Relocation, Purpose::Erase, Purpose::HostRead];
            let (mut die, mut naive) = (DieHistory::default(), vec![None; 1000]);
            let (mut begun, mut at) = (0u64, 0u64);
            for (number, (length, pause, overlap)) in lengths.into_iter().enumerate() {
                let purpose = purposes[number % 4];
                // Nothing begins before what began before it.
                let begin = (at + pause).saturating_sub(overlap).max(begun);
                for place in &mut naive[begin as usize..(begin + length) as usize] {
                    *place = place.or(Some(purpose));
                }
                die.add(busy(begin, begin + length, purpose), 0);
                (begun, at) = (begin, at.max(begin + length));
            }
            let mut found = vec![None; 1000];
            let mut sum = 0;
            die.split(from, from + long, |busy, begin, end| {
                sum += end - begin;
                found[begin as usize..end as usize].fill(busy.map(|busy| busy.purpose));
            });
            prop_assert_eq!(sum, long);
            let seen = from as usize..(from + long) as usize;
            prop_assert_eq!(&found[seen.clone()], &naive[seen]);
        }
    }
}
