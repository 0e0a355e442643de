//! Compression and deduplication in a page map: mapping units that a write does not have to store.
//!
//! ```text
//! compression unit     a b c d e f g h      8 mapping units, 40 % of which compression removes
//! stored               a b c d e · · ·      the map forgets the others, as after a trim
//! flash pages         [a b c d][e a b c] …  stored units of several writes are packed
//! ```
//!
//! The host's data crosses the link as it is; the flash holds less of it, which acts as spare space:
//! with a share c stored, a spare factor A becomes 1 - c (1 - A).
//!
//! **Source**: OFC (2011) §VI: "methods that reduce writes by means of compression or
//! de-duplication"; equation (2) for its effect.
//! **Faithful**: fewer pages are programmed and relocated; stored units share flash pages.
//! **Simplified**: compression takes no time. A write of a part of a compression unit stores those
//! of its mapping units that the whole would store, without reading the rest. The contents that
//! duplicates repeat are in the controller's memory.
//! **Ambiguous**: the size of a duplicate, in the report as in most data sheets; here a compression
//! unit, or a mapping unit without compression.

use uflip_core::{ContentShares, random};

use crate::collections::bits;
use crate::config::Profile;
use crate::flash::geometry::Lpn;

/// The data reduction of a device, and the content of the present writes.
#[derive(Clone, Debug)]
pub(crate) struct DataReduction {
    /// Mapping units of a compression unit.
    unit_pages: u32,
    compresses: bool,
    deduplicates: bool,
    /// The mapping units that a compression unit stores.
    stored: u32,
    duplicate_percent: u8,
    /// Units that were written: the seed of the next draw.
    units_written: u64,
    /// The mapping units without data of their own.
    absent: Vec<u64>,
}

impl Profile {
    /// Return the data reduction of the profile, if it has one.
    pub(super) fn data_reduction(&self) -> Option<Box<DataReduction>> {
        let compression_unit = self.ftl.compression_unit_bytes;
        if compression_unit.is_none() && !self.ftl.deduplicates {
            return None;
        }
        let unit_pages = self.compression_unit_pages();
        let pages = self.geometry().shape().logical_pages;
        Some(Box::new(DataReduction {
            unit_pages,
            compresses: compression_unit.is_some(),
            deduplicates: self.ftl.deduplicates,
            stored: unit_pages,
            duplicate_percent: 0,
            units_written: 0,
            absent: vec![0; (pages as usize).div_ceil(64)],
        }))
    }
}

impl DataReduction {
    /// Set the content of the following writes.
    pub(super) fn set_content(&mut self, shares: ContentShares) {
        let ContentShares { compress_percent, duplicate_percent } = shares;
        let kept_percent = if self.compresses { 100 - u32::from(compress_percent) } else { 100 };
        self.stored = (self.unit_pages * kept_percent).div_ceil(100).max(1);
        self.duplicate_percent = if self.deduplicates { duplicate_percent } else { 0 };
    }

    /// Return whether a write to `page` stores it, and remember that. The pages of a unit come in
    /// order.
    pub(super) fn stores(&mut self, page: Lpn) -> bool {
        let (page, index) = (page.0 as usize, page.0 % self.unit_pages);
        let duplicate = if index == 0 {
            self.units_written += 1;
            let draw = random::mix(self.units_written) % 100;
            draw < u64::from(self.duplicate_percent)
        } else {
            // A unit stores its first page unless it is a duplicate.
            bits::has(&self.absent, page - index as usize)
        };
        let absent = duplicate || index >= self.stored;
        if absent {
            bits::insert(&mut self.absent, page);
        } else {
            bits::remove(&mut self.absent, page);
        }
        !absent
    }

    /// Return whether the last write to `page` did not have to store it.
    pub(super) fn is_absent(&self, page: Lpn) -> bool {
        bits::has(&self.absent, page.0 as usize)
    }
}
