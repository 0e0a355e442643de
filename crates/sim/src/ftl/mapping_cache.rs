//! The cached mapping table of DFTL: the map entries that the controller has in its memory.
//!
//! ```text
//! LRU             newest ─▶ … ─▶ oldest ─▶ out
//! segmented LRU   protected: newest ─▶ … ─▶ oldest ─┐
//!                        ▲ second request           ▼
//!                 probation: newest ─▶ … ─▶ oldest ─▶ out
//! ```
//!
//! It stores no addresses, only the state that decides about costs: which entries are cached, which of them
//! were changed since their mapping page was programmed, and which leaves next.
//!
//! **Source**: Gupta, Kim & Urgaonkar: DFTL (ASPLOS 2009) §3.2–3.3; segmented LRU as Karedla, Love &
//! Wherry (IEEE Computer 1994), which the paper cites.
//! **Faithful**: entries of single pages; segmented LRU; a changed entry that leaves takes all other
//! changes of its mapping page along (batch update), if that option is on.
//! **Simplified**: an entry takes 8 bytes (logical and physical page number) whatever the structure around
//! it.
//! **Ambiguous**: the paper does not say how large the protected segment is; half of the entries here.

use crate::collections::lru::{Links, LruEnds};

/// The policy that selects the entry to evict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // explained in docs/reference/profiles.md
pub enum CachePolicy {
    Lru,
    SegmentedLru,
}

/// Logical and physical page number, 4 bytes each (Gupta et al. §3.2).
const ENTRY_BYTES: u64 = 8;

/// Return the memory of `entries` entries that are cached together: the number of the first, and the
/// addresses of all.
pub(crate) const fn segment_bytes(entries: u32) -> u64 {
    ENTRY_BYTES / 2 * (1 + entries as u64)
}

/// The cached entries.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct MappingCache {
    /// Per logical page: the slot of its entry, or `NONE`.
    slot_of: Vec<u32>,
    slots: Vec<CacheSlot>,
    capacity: usize,
    /// Entries requested once, and entries requested again.
    segments: [LruEnds; 2],
    links: Links,
    protected_most: u32,
    entries_a_page: u32,
    /// Per mapping page: its changed entries.
    changed_of: Vec<LruEnds>,
    changes: Links,
    batch: bool,
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Slot")]
struct CacheSlot {
    page: u32,
    segment: u8,
    changed: bool,
}

/// Marks an empty entry of the arrays.
const NONE: u32 = u32::MAX;
const PROBATION: u8 = 0;
const PROTECTED: u8 = 1;

impl MappingCache {
    /// Create an empty cache of `capacity` entries, at least 1, for a map of `pages` entries; a mapping page
    /// has `entries_a_page` of them.
    pub(crate) fn new(
        pages: u32,
        capacity: usize,
        entries_a_page: u32,
        policy: CachePolicy,
        batch: bool,
    ) -> MappingCache {
        // A cache never needs more entries than the map has.
        let capacity = capacity.min(pages as usize);
        let protected = if policy == CachePolicy::Lru { 0 } else { capacity / 2 };
        MappingCache {
            slot_of: vec![NONE; pages as usize],
            slots: Vec::with_capacity(capacity),
            capacity,
            segments: [LruEnds::default(); 2],
            links: Links::with_capacity(capacity),
            protected_most: protected as u32,
            entries_a_page,
            changed_of: vec![LruEnds::default(); pages.div_ceil(entries_a_page) as usize],
            changes: Links::default(),
            batch,
        }
    }

    /// Return the mapping page that holds the entry of `page`.
    #[inline]
    pub(crate) fn mapping_page_of(&self, page: u32) -> u32 {
        page / self.entries_a_page
    }

    /// Return the number of mapping pages of the whole map.
    pub(crate) fn mapping_pages(&self) -> u32 {
        self.changed_of.len() as u32
    }

    /// Return whether the entry of `page` is cached; does not count as a use.
    #[inline]
    pub(crate) fn has(&self, page: u32) -> bool {
        self.slot_of[page as usize] != NONE
    }

    /// Request the entry of `page`; returns whether it is cached.
    pub(crate) fn find(&mut self, page: u32) -> bool {
        let slot = self.slot_of[page as usize];
        if slot == NONE {
            return false;
        }
        self.unlink(slot);
        if self.protected_most == 0 {
            self.link(slot, PROBATION);
            return true;
        }
        self.link(slot, PROTECTED);
        let protected = &self.segments[PROTECTED as usize];
        if let Some(oldest) = protected.oldest().filter(|_| protected.len() > self.protected_most) {
            self.unlink(oldest);
            self.link(oldest, PROBATION);
        }
        true
    }

    /// Return the mapping page that must be written before the next eviction. `None` if there is a free slot,
    /// or if the entry to evict was not changed.
    pub(crate) fn leaves_changed(&self) -> Option<u32> {
        let slot = self.slots[self.leaves_next()?];
        slot.changed.then(|| self.mapping_page_of(slot.page))
    }

    fn leaves_next(&self) -> Option<usize> {
        if self.slots.len() < self.capacity {
            return None;
        }
        let [probation, protected] = &self.segments;
        probation.oldest().or(protected.oldest()).map(|slot| slot as usize)
    }

    /// Cache the entry of `page`, which is not cached, in place of the evicted one.
    pub(crate) fn insert(&mut self, page: u32) {
        let slot = match self.leaves_next() {
            None => {
                self.slots.push(CacheSlot { page, segment: PROBATION, changed: false });
                self.slots.len() - 1
            }
            Some(slot) => {
                self.unlink(slot as u32);
                self.forget_change(slot as u32);
                self.slot_of[self.slots[slot].page as usize] = NONE;
                self.slots[slot].page = page;
                slot
            }
        };
        self.slot_of[page as usize] = slot as u32;
        self.link(slot as u32, PROBATION);
    }

    /// Mark the entry of `page` as changed; returns false if it is not cached.
    pub(crate) fn change(&mut self, page: u32) -> bool {
        let slot = self.slot_of[page as usize];
        if slot == NONE {
            return false;
        }
        if !std::mem::replace(&mut self.slots[slot as usize].changed, true) {
            let mapping_page = self.mapping_page_of(page) as usize;
            self.changes.push_newest(&mut self.changed_of[mapping_page], slot);
        }
        true
    }

    /// Note that `mapping_page` was programmed to evict an entry. That entry and, with batch updates, every
    /// changed entry of the page is now on flash.
    pub(crate) fn mark_written_back(&mut self, mapping_page: u32) {
        if self.batch {
            self.mark_all_clean(mapping_page);
        } else if let Some(slot) = self.leaves_next() {
            self.forget_change(slot as u32);
        }
    }

    /// Note that every changed entry of `mapping_page` is now on flash.
    pub(crate) fn mark_all_clean(&mut self, mapping_page: u32) {
        while let Some(slot) = self.changed_of[mapping_page as usize].newest() {
            assert!(self.slots[slot as usize].changed, "listed entries have changed");
            self.forget_change(slot);
        }
    }

    fn forget_change(&mut self, slot: u32) {
        if std::mem::replace(&mut self.slots[slot as usize].changed, false) {
            let mapping_page = self.mapping_page_of(self.slots[slot as usize].page) as usize;
            self.changes.remove(&mut self.changed_of[mapping_page], slot);
        }
    }

    fn unlink(&mut self, slot: u32) {
        let segment = self.slots[slot as usize].segment;
        self.links.remove(&mut self.segments[usize::from(segment)], slot);
    }

    /// Put `slot`, which is in no list, at the newest end of `segment`.
    fn link(&mut self, slot: u32, segment: u8) {
        self.slots[slot as usize].segment = segment;
        self.links.push_newest(&mut self.segments[usize::from(segment)], slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reference: lists that are searched from end to end, newest first.
    struct NaiveCache {
        probation: Vec<u32>,
        protected: Vec<u32>,
        capacity: usize,
        protected_most: usize,
        changed: Vec<u32>,
        batch: bool,
    }

    /// Entries of a mapping page in these tests.
    const ENTRIES: u32 = 4;

    impl NaiveCache {
        fn contains(&self, page: u32) -> bool {
            self.probation.contains(&page) || self.protected.contains(&page)
        }

        fn find(&mut self, page: u32) -> bool {
            if !self.contains(page) {
                return false;
            }
            self.probation.retain(|other| *other != page);
            self.protected.retain(|other| *other != page);
            if self.protected_most == 0 {
                self.probation.insert(0, page);
                return true;
            }
            self.protected.insert(0, page);
            if self.protected.len() > self.protected_most {
                self.probation.insert(0, self.protected.pop().unwrap());
            }
            true
        }

        /// Cache `page`; returns the mapping page that had to be written for it.
        fn insert(&mut self, page: u32) -> Option<u32> {
            let mut written = None;
            if self.probation.len() + self.protected.len() == self.capacity {
                let out = self.probation.pop().or_else(|| self.protected.pop()).unwrap();
                if self.changed.contains(&out) {
                    written = Some(out / ENTRIES);
                    let batch = self.batch;
                    self.changed.retain(|other| {
                        *other != out && !(batch && other / ENTRIES == out / ENTRIES)
                    });
                }
            }
            self.probation.insert(0, page);
            written
        }
    }

    proptest! {
        #[test]
        fn mapping_cache_matches_list_model(
            capacity in 1usize..20, segmented in any::<bool>(), batch in any::<bool>(),
            requests in prop::collection::vec((0u32..40, any::<bool>(), 0u32..20), 1..400),
        ) {
            let policy = if segmented { CachePolicy::SegmentedLru } else { CachePolicy::Lru };
            let mut cache = MappingCache::new(40, capacity, ENTRIES, policy, batch);
            let mut naive = NaiveCache {
                probation: vec![], protected: vec![], capacity,
                protected_most: if segmented { capacity / 2 } else { 0 }, changed: vec![], batch,
            };
            for (page, write, all) in requests {
                let hit = cache.find(page);
                prop_assert_eq!(hit, naive.find(page));
                if !hit {
                    let leaves = cache.leaves_changed();
                    if let Some(mapping_page) = leaves {
                        cache.mark_written_back(mapping_page);
                    }
                    cache.insert(page);
                    prop_assert_eq!(leaves, naive.insert(page));
                }
                if write {
                    prop_assert!(cache.change(page));
                    naive.changed.retain(|other| *other != page);
                    naive.changed.push(page);
                }
                if all < 10 {
                    cache.mark_all_clean(all);
                    naive.changed.retain(|other| other / ENTRIES != all);
                }
            }
            let expected: Vec<u32> = (0..40).filter(|page| naive.contains(*page)).collect();
            let cached: Vec<u32> = (0..40).filter(|page| cache.change(*page)).collect();
            prop_assert_eq!(cached, expected);
        }
    }

    /// A small hot set among scans: pages requested twice survive a scan.
    #[test]
    fn segmented_lru_resists_scan() {
        let hits = |policy| {
            let mut cache = MappingCache::new(1000, 20, ENTRIES, policy, true);
            let mut hits = 0;
            for round in 0..20 {
                let hot = (0..8).chain(0..8).map(|page| (page, true));
                let scan = (0..40).map(|page| (8 + (round * 40 + page) % 900, false));
                for (page, counts) in hot.chain(scan) {
                    let hit = cache.find(page);
                    if !hit {
                        cache.insert(page);
                    }
                    hits += u32::from(hit && counts);
                }
            }
            hits
        };
        // LRU: the second of two in a row only; segmented: all but the very first.
        assert_eq!((hits(CachePolicy::Lru), hits(CachePolicy::SegmentedLru)), (160, 312));
    }
}
