//! Streams of writes that are kept apart, and what tells hot pages from cold ones.

use super::Profile;
use super::checks::Misfits;
use crate::pool::blocks::WRITE_STREAMS_MAX;

/// All keys of `[hot_cold]`.
pub(super) const HOT_COLD: &[&str] =
    &["bloom_filters", "bloom_filter_bits", "bloom_hashes", "bloom_window", "hot_weight"];

/// The paper has 4; more tell finer classes of age.
const FILTERS_MAX: u32 = 16;
/// 2 MiB a filter.
const FILTER_BITS_MAX: u32 = 1 << 24;
/// More set so many bits that everything looks known.
const HASHES_MAX: u32 = 16;

impl Profile {
    /// Streams of the host's writes that share no block.
    pub(super) fn write_streams(&self) -> u32 {
        self.ftl.write_streams.unwrap_or(1)
    }

    pub(super) fn misfits_of_streams(&self, found: &mut Misfits) {
        let mut within = |key, got: u32, least: u32, most: u32, why: &str| {
            let allowed = match least == most {
                true => format!("{least}{why}"),
                false => format!("{least} to {most}{why}"),
            };
            found.refuse(!(least..=most).contains(&got), key, &got, allowed);
        };
        let streams = self.write_streams();
        let Some(part) = &self.hot_cold else {
            within("write_streams", streams, 1, WRITE_STREAMS_MAX, "");
            return;
        };
        within("write_streams", streams, 2, 2, " with [hot_cold]: hot and cold");
        within("bloom_filters", part.bloom_filters, 1, FILTERS_MAX, "");
        within("bloom_filter_bits", part.bloom_filter_bits, 64, FILTER_BITS_MAX, "");
        within("bloom_hashes", part.bloom_hashes, 1, HASHES_MAX, "");
        within("bloom_window", part.bloom_window, 1, u32::MAX, "");
        let filters = part.bloom_filters.min(FILTERS_MAX);
        let most = (filters * (filters + 1) / 2).max(1);
        within("hot_weight", part.hot_weight, 1, most, ", what all filters weigh together");
    }
}
