//! A volatile write-back cache: a write is done when its data is in memory; the flash gets it later.
//!
//! Writes to a page that is still in the cache are absorbed, so small writes to neighbouring
//! sectors cost one program. A full cache makes the host wait for the program that frees a page.
//!
//! For durability the host flushes the cache. The flush waits for every page that was in the cache
//! at that time, and for no later one. Pages are distinguished by the *epoch* in which their flush
//! began; each flush request begins a new epoch.
//!
//! ```text
//! flushing    [ 0 | 2 | 3 | 1 ]      pages by epoch; the first unfinished one is `oldest`
//!                           └─ pages that begin to be flushed now
//! ```
//!
//! **Source**: uFLIP (2009) §5.2, figure 6: small random writes coalesced four to one, "apparently due
//! to caching"; OFC (2011) leaves the cache to the host.
//! **Faithful**: absorption, early completion, waiting when full; a page can be read from the cache
//! until it is on flash.
//! **Simplified**: pages leave in FIFO order, regardless of later absorption. A read that the cache
//! holds only in part is served as if from flash.
//! **Ambiguous**: when a cache flushes; two policies are offered.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize, Serializer};
use uflip_core::Io;

use super::backend::Write;
use super::event::{CompletionTarget, EPOCHS, Epoch, PageIdx};
use super::{AnyBackend, SimDevice};
use crate::config::FlushPolicy;
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{DieIdx, Lpn};
use crate::ftl::extent::PageExtent;

/// A page to be written to flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flushed {
    pub(crate) page: Lpn,
    /// Whether all sectors of the page are cached.
    pub(crate) whole: bool,
    /// The write stream of its first write.
    pub(crate) stream: u8,
    pub(crate) epoch: Epoch,
}

impl Flushed {
    /// Return the sectors of its page to be written to flash.
    pub(crate) fn extent(&self) -> PageExtent {
        PageExtent::single(self.page, self.whole, self.stream)
    }
}

/// The write cache. It keeps no time: its caller reports events.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct WriteCache {
    #[serde(rename = "places")]
    capacity: usize,
    flush: FlushPolicy,
    /// Number of pages that are flushed together.
    #[serde(rename = "together")]
    flush_pages: usize,
    /// Mask of all sectors of a page.
    whole: Sectors,
    /// Dirty pages that wait for a flush: their valid sectors, and the stream of the first write.
    dirty: BTreeMap<Lpn, (Sectors, u8)>,
    /// FIFO order of the dirty pages. A page that was trimmed meanwhile is missing in `dirty`.
    order: VecDeque<Lpn>,
    /// Pages that are being flushed; they stay until they are on flash.
    #[serde(rename = "leaving")]
    inflight: InflightFlushes,
    /// Number of those pages, which still occupy a slot, by epoch; the current epoch last.
    epochs: VecDeque<usize>,
    /// The number of the first of these epochs.
    oldest: Epoch,
    /// Host pages that wait for a free slot, in FIFO order.
    waiting: VecDeque<(PageIdx, Lpn, Sectors, u8)>,
    /// The host is idle: all pages may be flushed.
    pub(crate) idle: bool,
    /// Host writes that hit a cached page.
    pub(crate) absorbed: u64,
}

impl WriteCache {
    /// Create a cache of `capacity` pages of `sectors` sectors (at most 64) that flushes `flush_pages`
    /// pages at once.
    pub(crate) fn new(
        capacity: usize,
        sectors: u32,
        flush: FlushPolicy,
        flush_pages: usize,
    ) -> WriteCache {
        WriteCache {
            capacity,
            flush,
            flush_pages,
            whole: u64::MAX >> (64 - sectors),
            dirty: BTreeMap::new(),
            order: VecDeque::new(),
            inflight: InflightFlushes::default(),
            epochs: VecDeque::from([0]),
            oldest: 0,
            waiting: VecDeque::new(),
            idle: false,
            absorbed: 0,
        }
    }

    /// Accept `sectors` of `page` from the host. Return false if there is no free slot: then they
    /// wait.
    pub(crate) fn offer(&mut self, host: PageIdx, page: Lpn, sectors: Sectors, stream: u8) -> bool {
        let accepted = self.absorb(page, sectors)
            || self.waiting.is_empty() && self.put(page, sectors, stream);
        if !accepted {
            self.waiting.push_back((host, page, sectors, stream));
        }
        accepted
    }

    /// Move the host page that has waited longest into the cache, if there is a free slot.
    pub(crate) fn admit(&mut self) -> Option<PageIdx> {
        let (host, page, sectors, stream) = *self.waiting.front()?;
        let accepted = self.absorb(page, sectors) || self.put(page, sectors, stream);
        accepted.then(|| self.waiting.pop_front());
        accepted.then_some(host)
    }

    /// Return the host page that has waited longest.
    pub(crate) fn first_waiting(&self) -> Option<PageIdx> {
        self.waiting.front().map(|(host, ..)| *host)
    }

    fn absorb(&mut self, page: Lpn, sectors: Sectors) -> bool {
        let hit = self.dirty.get_mut(&page).map(|(cached, _)| *cached |= sectors).is_some();
        self.absorbed += u64::from(hit);
        hit
    }

    fn put(&mut self, page: Lpn, sectors: Sectors, stream: u8) -> bool {
        let fits = self.dirty.len() + self.flushing() < self.capacity;
        if fits {
            self.dirty.insert(page, (sectors, stream));
            self.order.push_back(page);
        }
        fits
    }

    fn flushing(&self) -> usize {
        self.epochs.iter().sum()
    }

    /// Return the next page to write to flash. Its slot is free after [`WriteCache::flushed`].
    pub(crate) fn next_flush(&mut self) -> Option<Flushed> {
        let now = match self.flush {
            FlushPolicy::Eager => true,
            FlushPolicy::WhenNeeded => {
                self.idle || self.flushing() < self.waiting.len().next_multiple_of(self.flush_pages)
            }
        };
        if !now {
            return None;
        }
        while let Some(page) = self.order.pop_front() {
            if let Some(flushed) = self.evict(page) {
                return Some(flushed);
            }
        }
        None
    }

    /// Remove `page` from the dirty pages, if it is there, to write it to flash now.
    pub(crate) fn evict(&mut self, page: Lpn) -> Option<Flushed> {
        let (sectors, stream) = self.dirty.remove(&page)?;
        self.inflight.begin(page, sectors);
        let present = self.epochs.back_mut().expect("at least one epoch");
        *present += 1;
        let epoch = self.oldest.wrapping_add(self.epochs.len() as Epoch - 1);
        Some(Flushed { page, whole: sectors == self.whole, stream, epoch })
    }

    /// Record that `page` is on flash; its flush began in `epoch`.
    pub(crate) fn flushed(&mut self, page: Lpn, epoch: Epoch) {
        self.inflight.end(page);
        // An event tag stores the epoch modulo `EPOCHS`; fewer epochs are in progress.
        let index = epoch.wrapping_sub(self.oldest) % EPOCHS;
        self.epochs[index as usize] -= 1;
        while self.epochs.len() > 1 && self.epochs[0] == 0 {
            self.epochs.pop_front();
            self.oldest = self.oldest.wrapping_add(1);
        }
    }

    /// End the epoch, because all data must become durable. Return the epoch to wait for, after the
    /// caller has taken every page that [`WriteCache::next_flush`] still returns; `None` if nothing
    /// is volatile.
    pub(crate) fn end_epoch(&mut self) -> Option<Epoch> {
        if self.flushing() == 0 {
            return None;
        }
        self.epochs.push_back(0);
        Some(self.oldest.wrapping_add(self.epochs.len() as Epoch - 2))
    }

    /// Return whether all pages that were to be flushed by the end of `epoch` are on flash.
    pub(crate) fn is_flushed(&self, epoch: Epoch) -> bool {
        epoch.wrapping_sub(self.oldest) as usize >= self.epochs.len()
    }

    /// Remove all pages at once: return them in order, with their valid sectors.
    pub(crate) fn drain(&mut self) -> Vec<Flushed> {
        let was_idle = std::mem::replace(&mut self.idle, true);
        let pages = std::iter::from_fn(|| self.next_flush()).collect();
        (self.idle, self.epochs) = (was_idle, VecDeque::from([0]));
        self.inflight.clear();
        pages
    }

    /// Return the number of pages that are not on flash.
    pub(crate) fn volatile(&self) -> usize {
        self.dirty.len() + self.flushing()
    }

    /// Return whether a read of `sectors` of `page` needs no flash access.
    pub(crate) fn holds(&self, page: Lpn, sectors: Sectors) -> bool {
        let waits = self.dirty.get(&page).map_or(0, |(cached, _)| *cached);
        (waits | self.inflight.sectors(page)) & sectors == sectors
    }

    /// Remove the data of `page` (trim).
    pub(crate) fn trim(&mut self, page: Lpn) {
        self.dirty.remove(&page);
        self.inflight.trim(page);
    }
}

// Write-cache traffic: pages that are flushed, and host pages that wait for a cache slot.

impl SimDevice {
    pub(super) fn set_cache_idle(&mut self, idle: bool) {
        if let Some(cache) = &mut self.cache {
            cache.idle = idle;
        }
    }

    /// Write the pages to flash that the cache evicts next.
    pub(super) fn flush(&mut self, at: u64) {
        while let Some(flushed) = self.cache.as_mut().and_then(WriteCache::next_flush) {
            self.write_flushed(flushed, at);
        }
    }

    fn write_flushed(&mut self, flushed: Flushed, at: u64) {
        let Flushed { page, epoch, .. } = flushed;
        self.events.contents.iter_mut().for_each(|contents| contents.page_left_cache(page.0));
        let extent = flushed.extent();
        let through = false; // an I/O that waits for it waits for its epoch
        let write = Write {
            page,
            extent,
            target: CompletionTarget::flush(page, epoch),
            write_through: through,
        };
        self.write::<AllFeatures>(write, at);
    }

    /// Flush the cached pages of a write that bypasses the cache.
    pub(super) fn evict(&mut self, extent: PageExtent, at: u64) {
        if self.backend.plans_whole_writes() && self.flash.has_scrubs(at) {
            self.events.advance_to(at); // a scrub begins now
        }
        for page in extent.touched().map(Lpn) {
            if let Some(flushed) = self.cache.as_mut().and_then(|cache| cache.evict(page)) {
                self.write_flushed(flushed, at);
            }
        }
    }

    /// Handle a flushed page that is on flash: its slot is free for another.
    pub(super) fn flushed(&mut self, page: Lpn, epoch: Epoch, at: u64) {
        let cache = self.cache.as_mut().expect("a flushed page came from the cache");
        cache.flushed(page, epoch);
        while let Some(cache) = &self.cache
            && let Some(held) = self.durable.release(|until| cache.is_flushed(until))
        {
            self.record_cache_wait(held.page, held.since, page, at);
            self.fail_if_worn_out(held.page);
            self.drain(held.page, at, at);
        }
        while let Some(index) = self.cache.as_mut().and_then(WriteCache::admit) {
            self.record_cache_wait(index, self.host.page_of(index).arrived, page, at);
            self.end_page::<AllFeatures>(index, at);
        }
        let first = self.cache.as_ref().and_then(WriteCache::first_waiting);
        let arrived = first.map(|index| self.host.page_of(index).arrived);
        self.events.awaited_flush(arrived.into_iter().chain(self.durable.held_since()).min());
        self.flush(at);
    }

    /// Charge the host page `index` for its wait for a cache slot, from `since` until `flushed`
    /// was on flash at `at`.
    fn record_cache_wait(&mut self, index: PageIdx, since: u64, flushed: Lpn, at: u64) {
        let die = self.die_of_flush(flushed, at);
        let merges = matches!(self.backend, AnyBackend::Merged(_));
        self.events.spent_on_flush(index.account(), die, merges, since, at);
        self.events.note_cache_wait(index.account(), die, flushed, since, at);
    }

    /// Return the die whose program of `page` ended at `at`. The map may have a newer address by now.
    fn die_of_flush(&self, page: Lpn, at: u64) -> Option<DieIdx> {
        let last_die = self.backend.lookup(page).map(|address| self.flash.geometry.die_at(address));
        self.events.programmed_until(last_die, at)
    }
}

/// Return the sectors of `page` that `io` touches, one bit each.
pub(super) fn sectors_of(io: &Io, page: Lpn, page_bytes: u64, sector_bytes: u64) -> Sectors {
    let from = io.offset.0.saturating_sub(u64::from(page.0) * page_bytes);
    let sectors = bytes_in(io, page.0, page_bytes) / sector_bytes;
    u64::MAX >> (64 - sectors) << (from / sector_bytes)
}

/// Return the number of bytes of `page` that `io` touches.
#[inline]
pub(super) fn bytes_in(io: &Io, page: u32, page_bytes: u64) -> u64 {
    let begin = u64::from(page) * page_bytes;
    let end = io.offset.0 + io.size.0;
    end.min(begin + page_bytes) - io.offset.0.max(begin)
}

// Pages that leave the write cache. They can be read there until they are on flash.
//
// A full cache has thousands, and each comes and goes with a write. A tree costs 13 % of the
// instructions of such a write, a hash table 1 %. Iteration happens only in page order, for a
// snapshot.

/// A set of cached sectors of a page, one bit each.
pub(crate) type Sectors = u64;

/// A page that is being flushed.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
#[serde(rename = "Page")]
struct InflightPage {
    /// The sectors being flushed; empty after a trim.
    sectors: Sectors,
    /// Number of flushes in progress.
    flushes: u32,
}

/// All pages that are being flushed: up to the number of slots of the cache.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct InflightFlushes {
    #[serde(serialize_with = "in_order")]
    pages: HashMap<Lpn, InflightPage, BuildHasherDefault<PageHasher>>,
}

/// Serialize in page order: equal states give equal bytes.
fn in_order<S: Serializer>(
    pages: &HashMap<Lpn, InflightPage, BuildHasherDefault<PageHasher>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    pages.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
}

impl InflightFlushes {
    /// Begin a flush of `sectors` of `page`.
    #[inline]
    fn begin(&mut self, page: Lpn, sectors: Sectors) {
        let entry = self.pages.entry(page).or_default();
        entry.sectors |= sectors;
        entry.flushes += 1;
    }

    /// End a flush of `page`. With several in progress it is unknown which one: all sectors stay
    /// until the last ends.
    #[inline]
    fn end(&mut self, page: Lpn) {
        let Entry::Occupied(mut entry) = self.pages.entry(page) else {
            unreachable!("a flushed page was in flight")
        };
        entry.get_mut().flushes -= 1;
        if entry.get().flushes == 0 {
            entry.remove();
        }
    }

    /// Return the sectors of `page` that can be read.
    #[inline]
    fn sectors(&self, page: Lpn) -> Sectors {
        self.pages.get(&page).map_or(0, |flush| flush.sectors)
    }

    /// Remove the data of `page` (trim).
    fn trim(&mut self, page: Lpn) {
        self.pages.get_mut(&page).into_iter().for_each(|flush| flush.sectors = 0);
    }

    /// Drop all flushes.
    fn clear(&mut self) {
        self.pages.clear();
    }
}

/// A hasher of page numbers: one multiplication (Fibonacci hashing, Knuth).
#[derive(Clone, Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

    use super::*;

    const ALL: Sectors = 0xff;

    fn offer(cache: &mut WriteCache, page: u32, sectors: Sectors) -> bool {
        cache.offer(PageIdx(page), Lpn(page), sectors, 0)
    }

    fn flushes(cache: &mut WriteCache) -> Vec<(u32, bool)> {
        std::iter::from_fn(|| cache.next_flush())
            .map(|flushed| (flushed.page.0, flushed.whole))
            .collect()
    }

    #[test]
    fn cache_merges_small_writes_to_one_program() {
        let mut cache = WriteCache::new(2, 8, FlushPolicy::WhenNeeded, 1);
        assert!((0..8).all(|sector| offer(&mut cache, 7, 1 << sector)));
        assert!(cache.holds(Lpn(7), ALL));
        assert_eq!((cache.absorbed, flushes(&mut cache)), (7, vec![]));
        cache.idle = true;
        assert_eq!(flushes(&mut cache), [(7, true)]);
        assert!(cache.holds(Lpn(7), ALL), "the page is not on flash yet");
        cache.flushed(Lpn(7), 0);
        assert!(!cache.holds(Lpn(7), 1));
    }

    #[test]
    fn full_cache_waits_for_flush_of_oldest_page() {
        let mut cache = WriteCache::new(2, 8, FlushPolicy::WhenNeeded, 1);
        assert!(offer(&mut cache, 1, ALL) && offer(&mut cache, 2, 0x0f));
        assert!(!offer(&mut cache, 3, ALL) && !offer(&mut cache, 4, ALL));
        assert_eq!(flushes(&mut cache), [(1, true), (2, false)], "one flush per waiting page");
        assert_eq!(cache.admit(), None, "a page keeps its slot until it is on flash");
        cache.flushed(Lpn(1), 0);
        assert_eq!((cache.admit(), cache.admit()), (Some(PageIdx(3)), None));
        cache.flushed(Lpn(2), 0);
        assert_eq!(cache.admit(), Some(PageIdx(4)));
        assert_eq!(flushes(&mut cache), [], "no page waits");
    }

    #[test]
    fn cache_admits_waiting_pages_in_order() {
        let mut cache = WriteCache::new(1, 8, FlushPolicy::Eager, 1);
        assert!(offer(&mut cache, 1, ALL));
        assert_eq!(flushes(&mut cache), [(1, true)]);
        assert!(!offer(&mut cache, 2, ALL));
        cache.flushed(Lpn(1), 0);
        assert!(!offer(&mut cache, 3, ALL), "page 2 arrived first");
        assert_eq!((cache.admit(), cache.admit()), (Some(PageIdx(2)), None));
    }

    #[test]
    fn flush_waits_for_earlier_pages_only() {
        let mut cache = WriteCache::new(4, 8, FlushPolicy::WhenNeeded, 1);
        assert_eq!(cache.end_epoch(), None, "the cache is empty");
        let flushed = |cache: &mut WriteCache, page| {
            assert!(offer(cache, page, ALL));
            cache.evict(Lpn(page)).expect("the page was in the cache").epoch
        };
        let (one, two) = (flushed(&mut cache, 1), flushed(&mut cache, 2));
        let first = cache.end_epoch().expect("pages are in flight");
        let three = flushed(&mut cache, 3);
        let second = cache.end_epoch().expect("pages are in flight");
        cache.flushed(Lpn(3), three);
        cache.flushed(Lpn(1), one);
        assert!(
            !cache.is_flushed(first) && !cache.is_flushed(second),
            "an older page is in flight"
        );
        cache.flushed(Lpn(2), two);
        assert!(cache.is_flushed(first) && cache.is_flushed(second));
        assert_eq!(cache.end_epoch(), None, "everything is on flash");
    }

    #[test]
    fn cache_serves_reads_until_page_is_flushed() {
        let mut cache = WriteCache::new(4, 8, FlushPolicy::Eager, 1);
        assert!(offer(&mut cache, 1, 0x0f));
        assert_eq!(flushes(&mut cache), [(1, false)]);
        assert!(offer(&mut cache, 1, 0xf0));
        assert!(cache.holds(Lpn(1), ALL), "half of the page is in flight, half waits");
        assert_eq!((cache.volatile(), flushes(&mut cache)), (2, vec![(1, false)]));
        cache.flushed(Lpn(1), 0);
        assert!(cache.holds(Lpn(1), ALL), "either half may be on flash");
        cache.trim(Lpn(1));
        assert!(!cache.holds(Lpn(1), 1));
        assert_eq!(cache.volatile(), 1, "its slot is free when it is on flash");
        cache.flushed(Lpn(1), 0);
        assert_eq!(cache.volatile(), 0);
    }

    /// Return the share of `writes` to pages with these weights that a full cache absorbs.
    fn absorbed_share(weights: &[f64], capacity: usize, writes: u32) -> f64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let sums: Vec<f64> = weights
            .iter()
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let mut cache = WriteCache::new(capacity, 8, FlushPolicy::WhenNeeded, 1);
        let mut before = 0;
        for number in 0..2 * writes {
            if number == writes {
                before = cache.absorbed;
            }
            let drawn = uniform(&mut rng, 1 << 53) as f64 / (1u64 << 53) as f64;
            let page = sums.partition_point(|sum| *sum <= drawn * sums[sums.len() - 1]) as u32;
            if !offer(&mut cache, page, ALL) {
                let Flushed { page, epoch, .. } = cache.next_flush().expect("the cache is full");
                cache.flushed(page, epoch);
                cache.admit().expect("a slot is free");
            }
        }
        (cache.absorbed - before) as f64 / f64::from(writes)
    }

    /// All pages equally likely: B of N. Under Zipf's law the share is Σ p h with h = p T / (1 + p T), where T
    /// makes Σ h = B: a FIFO cache hits like one with random replacement (Gelenbe 1973), and T is the
    /// characteristic time (Martina, Garetto & Leonardi 2014).
    #[test]
    fn rewrites_are_absorbed_as_in_theory() {
        let (pages, capacity) = (1_000, 100);
        for theta in [0.0, 0.6, 1.0] {
            let weights: Vec<f64> = (1..=pages).map(|rank| f64::from(rank).powf(-theta)).collect();
            let sum: f64 = weights.iter().sum();
            let held = |time: f64| weights.iter().map(move |weight| weight / sum * time);
            let held = |time: f64| held(time).map(|expected| expected / (1.0 + expected));
            let (mut low, mut high) = (0.0f64, 1e9f64);
            for _ in 0..200 {
                let time = low.midpoint(high);
                if held(time).sum::<f64>() < capacity as f64 { low = time } else { high = time }
            }
            let each = weights.iter().zip(held(low));
            let expected: f64 = each.map(|(weight, held)| weight / sum * held).sum();
            let absorbed = absorbed_share(&weights, capacity, 200_000);
            println!("theta {theta}: {absorbed:.4} absorbed, {expected:.4} in theory");
            assert!((absorbed - expected).abs() < 0.005, "{absorbed} against {expected}");
            assert!(theta > 0.0 || (expected - 0.1).abs() < 1e-6);
        }
    }

    #[test]
    fn cache_never_flushes_trimmed_page() {
        let mut cache = WriteCache::new(1, 8, FlushPolicy::WhenNeeded, 1);
        assert!(offer(&mut cache, 1, ALL));
        cache.trim(Lpn(1));
        assert!(offer(&mut cache, 2, ALL), "its slot is free at once");
        assert_eq!(flushes(&mut cache), []);
    }
}
