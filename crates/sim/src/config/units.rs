//! Mapping units smaller than a flash page.

use super::Profile;
use super::checks::InvalidKeys;

/// Maximum number of units per flash page; no real chip needs more.
const UNITS_MAX: u32 = 64;

impl Profile {
    /// Return the number of mapping units per flash page.
    pub(crate) fn units(&self) -> u32 {
        let unit = self.ftl.mapping_unit_bytes.unwrap_or(self.geometry.page_bytes);
        self.geometry.page_bytes / unit.max(1)
    }

    /// Return the number of sectors per flash page if sectors cross the channel separately;
    /// otherwise 0.
    pub(super) fn sectors_sent(&self) -> u32 {
        let sectors = self.geometry.page_bytes / self.geometry.sector_bytes.max(1);
        if self.timing.partial_transfer && self.units() == 1 { sectors } else { 0 }
    }

    /// Find units that do not fit their flash pages, and options that require such units.
    pub(super) fn find_invalid_units(&self, invalid: &mut InvalidKeys) {
        let (page, sector) = (self.geometry.page_bytes, self.geometry.sector_bytes);
        if let Some(unit) = self.ftl.mapping_unit_bytes {
            let fits = unit > 0 && page.is_multiple_of(unit) && unit.is_multiple_of(sector.max(1));
            let allowed = format!(
                "whole sectors of {sector} bytes, up to {UNITS_MAX} of which make a page of {page} bytes"
            );
            let wrong = !fits || page / unit > UNITS_MAX;
            invalid.reject_if(wrong, "mapping_unit_bytes", &unit, allowed);
        }
        let too_many = self.sectors_sent() > u32::from(u16::MAX);
        let allowed = "false with pages of more than 65535 sectors";
        invalid.reject_if(too_many, "partial_transfer", &true, allowed);
        let gc = self.gc.as_ref();
        let copies = self.units() > 1 && gc.is_some_and(|gc| gc.copy_back);
        let allowed = "false with mapping units smaller than a flash page: a die copies whole pages, and \
                       cannot pack units of several";
        invalid.reject_if(copies, "copy_back", &true, allowed);
        let load = gc.is_some_and(|gc| gc.relocate_at_least > 0 || gc.relocate_exactly.is_some());
        let got = self.ftl.mapping_unit_bytes.unwrap_or(page);
        let allowed = format!(
            "{page} with relocate_at_least and relocate_exactly: they count flash pages, which are moved \
             whatever they hold"
        );
        invalid.reject_if(self.units() > 1 && load, "mapping_unit_bytes", &got, allowed);
    }
}
