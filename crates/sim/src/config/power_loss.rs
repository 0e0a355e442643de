//! Power-loss options.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::InvalidKeys;

/// The table `[power_loss]`: the device records its flash contents and can lose power.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct PowerLossPart {
    /// Capacitors power the device until all accepted data is on flash.
    pub power_loss_protection: bool,
    /// Bytes that cross the channel when only the spare area of a page is read.
    pub spare_read_bytes: u32,
}

impl Profile {
    pub(super) fn find_invalid_power_loss(&self, invalid: &mut InvalidKeys) {
        // Another check reports that zones exclude this table.
        let Some(part) = self.power_loss.filter(|_| !self.is_zoned()) else { return };
        let max_bytes = self.geometry.page_bytes.saturating_add(self.geometry.spare_bytes);
        let bytes = part.spare_read_bytes;
        let allowed = format!("1 to {max_bytes}, a page with its spare area");
        invalid.reject_if(!(1..=max_bytes).contains(&bytes), "spare_read_bytes", &bytes, allowed);
        let exactly = self.gc.as_ref().and_then(|gc| gc.relocate_exactly);
        let got = exactly.unwrap_or(0);
        let allowed = "no such key with [power_loss]: a fixed number of moved pages discards data";
        invalid.reject_if(exactly.is_some(), "relocate_exactly", &got, allowed);
        let min_blocks = self.gc.as_ref().map_or(0, |gc| gc.relocate_at_least);
        let allowed = "0 with [power_loss]: additional moved pages take the space that an interrupted \
                       collection needs";
        invalid.reject_if(min_blocks > 0, "relocate_at_least", &min_blocks, allowed);
        let volatile = !part.power_loss_protection;
        let register = volatile && self.timing.cache_program;
        let allowed =
            "false with [power_loss], unless power_loss_protection: no command waits for the cells";
        invalid.reject_if(register, "cache_program", &self.timing.cache_program, allowed);
        let units = self.ftl.mapping_unit_bytes.unwrap_or(0);
        let allowed = "a flash page with [power_loss], unless power_loss_protection: units that are moved \
                       wait in memory for their flash page";
        invalid.reject_if(volatile && self.units() > 1, "mapping_unit_bytes", &units, allowed);
    }
}
