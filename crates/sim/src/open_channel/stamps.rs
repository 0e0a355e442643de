//! Stamps instead of data: what the host wrote to each sector, and what the flash holds.
//!
//! **Source**: uFLIP-OC (2017) §4.3: FOX compares the data that it reads back with what it wrote.
//! **Faithful**: a comparison of every sector that is read without an error of the device.
//! **Simplified**: a stamp of 64 bits, derived from address and write number, stands for the data.
//! **Ours**: silent errors, as a fault that only the comparison finds.
//! **Ambiguous**: nothing.

use std::collections::BTreeMap;
use std::ops::Range;

use uflip_core::random::mix;

/// The stamps of the sectors that were written since their last erase.
#[derive(Clone, Debug)]
pub(super) struct SectorStamps {
    sectors: BTreeMap<u32, SectorStamp>,
    writes: u64,
    silent_errors_per_million: u64,
}

#[derive(Clone, Copy, Debug)]
struct SectorStamp {
    /// The host's copy.
    expected: u64,
    on_flash: u64,
}

impl SectorStamps {
    /// Create an empty set.
    pub(super) fn new(silent_errors_per_million: u32) -> SectorStamps {
        SectorStamps {
            sectors: BTreeMap::new(),
            writes: 0,
            silent_errors_per_million: silent_errors_per_million.into(),
        }
    }

    /// Write `sector`.
    pub(super) fn write(&mut self, sector: u32) {
        self.writes += 1;
        let expected = mix(mix(sector.into()) ^ self.writes);
        let is_wrong = mix(expected) % 1_000_000 < self.silent_errors_per_million;
        let on_flash = if is_wrong { expected ^ 1 << (expected % 64) } else { expected };
        self.sectors.insert(sector, SectorStamp { expected, on_flash });
    }

    /// Erase `sectors`; the host knows that.
    pub(super) fn erase(&mut self, sectors: Range<u32>) {
        while let Some((&sector, _)) = self.sectors.range(sectors.clone()).next() {
            self.sectors.remove(&sector);
        }
    }

    /// Return whether a read of `sector` returns what the host wrote, if it was recorded.
    pub(super) fn agrees(&self, sector: u32) -> bool {
        self.sectors.get(&sector).is_none_or(|stamp| stamp.expected == stamp.on_flash)
    }
}
