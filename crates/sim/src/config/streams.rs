//! Write streams, and hot/cold detection.

use super::checks::InvalidKeys;
use super::{GcPart, Profile};
use crate::pool::blocks::RelocationFrontier;

impl Profile {
    /// Return the number of host write streams that share no block.
    pub(super) fn write_streams(&self) -> u32 {
        self.ftl.write_streams.unwrap_or(1)
    }

    /// Return which open blocks of a plane take relocated pages.
    pub(crate) fn relocation_frontier(&self, gc: &GcPart) -> RelocationFrontier {
        RelocationFrontier::for_streams(gc.separate_streams, self.write_streams() as u8)
    }

    pub(super) fn find_invalid_streams(&self, invalid: &mut InvalidKeys) {
        let Some(part) = &self.hot_cold else { return };
        let streams = self.write_streams();
        let allowed = "2 with [hot_cold]: hot and cold";
        invalid.reject_if(streams != 2, "write_streams", &streams, allowed);
        let filters = u64::from(part.bloom_filters);
        let max_weight = filters * (filters + 1) / 2;
        let allowed = format!("1 to {max_weight}, the sum of the weights of all filters");
        invalid.reject_if(
            u64::from(part.hot_weight) > max_weight,
            "hot_weight",
            &part.hot_weight,
            allowed,
        );
    }
}
