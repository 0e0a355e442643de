//! Pages that leave the write cache. They can be read there until they are on flash.
//!
//! A full cache has thousands, and each comes and goes with a write. A tree costs 13 % of the
//! instructions of such a write, a hash table 1 %. Iteration happens only in page order, for a
//! snapshot.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize, Serializer};

use crate::flash::geometry::Lpn;

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
pub(super) struct InflightFlushes {
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
    pub(super) fn begin(&mut self, page: Lpn, sectors: Sectors) {
        let entry = self.pages.entry(page).or_default();
        entry.sectors |= sectors;
        entry.flushes += 1;
    }

    /// End a flush of `page`. With several in progress it is unknown which one: all sectors stay
    /// until the last ends.
    #[inline]
    pub(super) fn end(&mut self, page: Lpn) {
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
    pub(super) fn sectors(&self, page: Lpn) -> Sectors {
        self.pages.get(&page).map_or(0, |flush| flush.sectors)
    }

    /// Remove the data of `page` (trim).
    pub(super) fn trim(&mut self, page: Lpn) {
        self.pages.get_mut(&page).into_iter().for_each(|flush| flush.sectors = 0);
    }

    /// Drop all flushes.
    pub(super) fn clear(&mut self) {
        self.pages.clear();
    }
}

/// A hasher of page numbers: one multiplication (Fibonacci hashing, Knuth).
#[derive(Clone, Default)]
pub(super) struct PageHasher(u64);

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
