//! SLC cache options.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::InvalidKeys;
use crate::ftl::SlcOptions;

/// The table `[slc_cache]`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct SlcPart {
    /// Blocks of a die reserved for the cache.
    pub slc_blocks: u32,
    /// Maximum number of cache blocks while others are free.
    pub slc_blocks_max: u32,
    pub slc_read_ns: u64,
    pub slc_program_ns: u64,
}

impl Profile {
    /// Return the blocks of each die that may hold cached data only; one open block if all are
    /// borrowed.
    pub(super) fn slc_blocks(&self) -> u32 {
        self.slc_cache.map_or(0, |part| part.slc_blocks.max(1))
    }

    pub(super) fn slc_options(&self) -> Option<SlcOptions> {
        self.slc_cache.map(|part| SlcOptions {
            blocks: part.slc_blocks,
            blocks_max: part.slc_blocks_max,
            pages: self.slc_pages(),
        })
    }

    /// Return the mapping units of an SLC block.
    fn slc_pages(&self) -> u32 {
        let geometry = self.geometry();
        let flash_pages = geometry.data_pages() / geometry.units();
        flash_pages / self.timing.bits().max(1) * geometry.units()
    }

    pub(super) fn find_invalid_slc(&self, invalid: &mut InvalidKeys) {
        let Some(part) = self.slc_cache else { return };
        let bits = self.timing.bits();
        let pages = self.geometry.pages_per_block - self.geometry.metadata_pages.min(1);
        let allowed = "2 or more with [slc_cache], and as many pages in a block";
        invalid.reject_if(bits < 2 || pages < bits, "bits_per_cell", &bits, allowed);
        let max_blocks = self.geometry.blocks_per_die;
        let range = part.slc_blocks.max(1)..=max_blocks;
        let allowed = format!("{} to {max_blocks}: at least slc_blocks, and 1", range.start());
        invalid.reject_if(
            !range.contains(&part.slc_blocks_max),
            "slc_blocks_max",
            &part.slc_blocks_max,
            allowed,
        );
        let streams = self.ftl.write_streams.unwrap_or(1);
        let allowed = "1 with [slc_cache], which does not separate write streams";
        invalid.reject_if(streams > 1, "write_streams", &streams, allowed);
        let load = self.gc.as_ref().map_or(0, |gc| gc.relocate_at_least);
        let allowed = "0 with [slc_cache], whose blocks hold fewer pages";
        invalid.reject_if(load > 0, "relocate_at_least", &load, allowed);
        let exactly = self.gc.as_ref().and_then(|gc| gc.relocate_exactly);
        let got = exactly.unwrap_or(0);
        invalid.reject_if(
            exactly.is_some(),
            "relocate_exactly",
            &got,
            "no such key with [slc_cache]",
        );
        let wears = self.reliability.is_some();
        let allowed = "no [slc_cache] with [reliability]: its wear is not modelled";
        invalid.reject_if(wears, "slc_blocks", &part.slc_blocks, allowed);
    }
}
