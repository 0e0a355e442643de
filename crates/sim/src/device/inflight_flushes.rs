//! Pages that leave the write cache, and can be read there until they are on flash.
//!
//! A full cache has thousands, and each comes and goes with a write: a tree of them costs 13 % of the
//! instructions of such a write, and numbers in a table 1 %. Nobody goes through the table but in the order of pages.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize, Serializer};

use crate::flash::geometry::Lpn;

/// Which sectors of a page are in the cache, one bit each.
pub(crate) type Sectors = u64;

/// One of them.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
struct Page {
    /// What of it is being flushed; nothing once it is trimmed.
    sectors: Sectors,
    /// So many times it is.
    flushes: u32,
}

/// All of them: as many as the cache has places, where that is full.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct InflightFlushes {
    #[serde(serialize_with = "in_order")]
    pages: HashMap<Lpn, Page, BuildHasherDefault<Mixed>>,
}

/// Two devices in one state are saved as the same bytes.
fn in_order<S: Serializer>(
    pages: &HashMap<Lpn, Page, BuildHasherDefault<Mixed>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    pages.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
}

impl InflightFlushes {
    /// `sectors` of `page` begin to be flushed.
    #[inline]
    pub(super) fn begin(&mut self, page: Lpn, sectors: Sectors) {
        let there = self.pages.entry(page).or_default();
        there.sectors |= sectors;
        there.flushes += 1;
    }

    /// A flush of `page` has ended. Which of several is not known: all stays until the last has.
    #[inline]
    pub(super) fn end(&mut self, page: Lpn) {
        let Entry::Occupied(mut there) = self.pages.entry(page) else {
            unreachable!("a page that was flushed had left the cache")
        };
        there.get_mut().flushes -= 1;
        if there.get().flushes == 0 {
            there.remove();
        }
    }

    /// What can be read of `page`.
    #[inline]
    pub(super) fn sectors(&self, page: Lpn) -> Sectors {
        self.pages.get(&page).map_or(0, |there| there.sectors)
    }

    /// `page` holds nothing any more.
    pub(super) fn trim(&mut self, page: Lpn) {
        self.pages.get_mut(&page).into_iter().for_each(|there| there.sectors = 0);
    }

    /// Nothing is flushed any more.
    pub(super) fn clear(&mut self) {
        self.pages.clear();
    }
}

/// Numbers of pages, spread over a word by a multiplication (Fibonacci hashing, Knuth).
#[derive(Clone, Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
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
