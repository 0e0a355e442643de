//! A volatile write-back cache: a write is done when its data is in memory; the flash gets it later.
//!
//! Writes to a page that is still in the cache are absorbed, so small writes to neighbouring sectors
//! cost one program. A cache that is full makes the host wait for the program that frees a page.
//!
//! **Source**: uFLIP (2009) §5.2, figure 6: small random writes coalesced four to one, "apparently due
//! to caching"; OFC (2011) leaves the cache to the host.
//! **Faithful**: absorption, early completion, waiting when full.
//! **Simplified**: pages leave in the order in which they came, whatever was absorbed since; a read
//! that the cache holds only in part is served as if from flash.
//! **Ambiguous**: when a cache flushes; two policies are offered.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::geometry::Lpn;

/// When a page leaves the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// At once: the cache only hides the time of the program.
    Eager,
    /// When its place is needed, or the host is idle.
    WhenNeeded,
}

/// Which sectors of a page are in the cache, one bit each.
pub(crate) type Sectors = u64;

/// The cache.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct WriteCache {
    pages: usize,
    flush: Flush,
    /// All sectors of a page.
    whole: Sectors,
    /// What waits to be flushed, and which of its sectors are there.
    dirty: BTreeMap<Lpn, Sectors>,
    /// The order in which they came; a page that was trimmed meanwhile is not in `dirty` any more.
    order: VecDeque<Lpn>,
    /// When the pages that are being flushed give up their place.
    flushing: BinaryHeap<Reverse<u64>>,
    /// Host writes that found their page in the cache.
    pub(crate) absorbed: u64,
}

impl WriteCache {
    /// A cache of so many pages of so many sectors (at most 64).
    pub(crate) fn new(pages: usize, sectors: u32, flush: Flush) -> WriteCache {
        WriteCache {
            pages,
            flush,
            whole: u64::MAX >> (64 - sectors),
            dirty: BTreeMap::new(),
            order: VecDeque::new(),
            flushing: BinaryHeap::new(),
            absorbed: 0,
        }
    }

    /// Take `sectors` of `page`, which are there at `ready`; returns when there was a place for them.
    /// `program(page, whole, at)` writes a page to flash from `at` on and returns the end.
    pub(crate) fn write(
        &mut self,
        page: Lpn,
        sectors: Sectors,
        ready: u64,
        mut program: impl FnMut(Lpn, bool, u64) -> u64,
    ) -> u64 {
        let mut at = ready;
        if let Some(there) = self.dirty.get_mut(&page) {
            *there |= sectors;
            self.absorbed += 1;
            return at;
        }
        self.release(at);
        while self.dirty.len() + self.flushing.len() >= self.pages {
            if self.flushing.is_empty() {
                self.flush_oldest(at, &mut program);
            }
            let Reverse(end) = self.flushing.pop().expect("a full cache holds something");
            at = at.max(end);
        }
        self.dirty.insert(page, sectors);
        self.order.push_back(page);
        if self.flush == Flush::Eager {
            self.flush_oldest(at, &mut program);
        }
        at
    }

    /// Whether a read of `sectors` of `page` needs no flash.
    pub(crate) fn holds(&self, page: Lpn, sectors: Sectors) -> bool {
        self.dirty.get(&page).is_some_and(|there| there & sectors == sectors)
    }

    /// `page` holds nothing any more.
    pub(crate) fn trim(&mut self, page: Lpn) {
        self.dirty.remove(&page);
    }

    /// Flush everything from `at` on.
    pub(crate) fn flush_all(&mut self, at: u64, mut program: impl FnMut(Lpn, bool, u64) -> u64) {
        while !self.dirty.is_empty() {
            self.flush_oldest(at, &mut program);
        }
        self.release(at);
    }

    fn flush_oldest(&mut self, at: u64, program: &mut impl FnMut(Lpn, bool, u64) -> u64) {
        while let Some(page) = self.order.pop_front() {
            if let Some(sectors) = self.dirty.remove(&page) {
                let end = program(page, sectors == self.whole, at);
                self.flushing.push(Reverse(end));
                return;
            }
        }
    }

    /// Places whose flush has ended by `now` are free.
    fn release(&mut self, now: u64) {
        while self.flushing.peek().is_some_and(|Reverse(end)| *end <= now) {
            self.flushing.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: u64 = 100;

    /// A flash that takes `PROGRAM` a page and remembers what it got.
    fn write(
        cache: &mut WriteCache,
        page: u32,
        sectors: Sectors,
        ready: u64,
        log: &mut Vec<(u32, bool, u64)>,
    ) -> u64 {
        cache.write(Lpn(page), sectors, ready, |page, whole, at| {
            log.push((page.0, whole, at));
            at + PROGRAM
        })
    }

    #[test]
    fn small_writes_to_one_page_cost_one_program() {
        let (mut cache, mut log) = (WriteCache::new(2, 8, Flush::WhenNeeded), Vec::new());
        for sector in 0..8 {
            assert_eq!(write(&mut cache, 7, 1 << sector, sector, &mut log), sector);
        }
        assert!(cache.holds(Lpn(7), 0xff) && log.is_empty());
        assert_eq!(cache.absorbed, 7);
        cache.flush_all(50, |page, whole, at| {
            log.push((page.0, whole, at));
            at + PROGRAM
        });
        assert_eq!(log, [(7, true, 50)]);
        assert!(!cache.holds(Lpn(7), 1));
    }

    #[test]
    fn a_full_cache_makes_the_host_wait_for_the_oldest_page() {
        let (mut cache, mut log) = (WriteCache::new(2, 8, Flush::WhenNeeded), Vec::new());
        assert_eq!(write(&mut cache, 1, 0xff, 0, &mut log), 0);
        assert_eq!(write(&mut cache, 2, 0x0f, 5, &mut log), 5);
        assert_eq!(write(&mut cache, 3, 0xff, 10, &mut log), 10 + PROGRAM);
        assert_eq!(log, [(1, true, 10)]);
        assert_eq!(write(&mut cache, 4, 0xff, 200, &mut log), 200 + PROGRAM);
        assert_eq!(log[1], (2, false, 200), "a page of which only a part is there");
    }

    #[test]
    fn an_eager_cache_hides_programs_until_it_is_full_of_them() {
        let (mut cache, mut log) = (WriteCache::new(2, 8, Flush::Eager), Vec::new());
        let accepted: Vec<u64> =
            (0..4).map(|page| write(&mut cache, page, 0xff, 10, &mut log)).collect();
        assert_eq!(accepted, [10, 10, 10 + PROGRAM, 10 + PROGRAM]);
    }

    #[test]
    fn what_was_trimmed_is_never_written() {
        let (mut cache, mut log) = (WriteCache::new(1, 8, Flush::WhenNeeded), Vec::new());
        write(&mut cache, 1, 0xff, 0, &mut log);
        cache.trim(Lpn(1));
        assert_eq!(write(&mut cache, 2, 0xff, 5, &mut log), 5, "its place is free at once");
        assert!(log.is_empty());
    }
}
