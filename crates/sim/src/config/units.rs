//! Mapping units smaller than a flash page.

use super::Profile;
use super::checks::Misfit;

/// More units would not be told apart by a map, and no chip has larger pages for smaller ones.
const UNITS_MAX: u32 = 64;

impl Profile {
    /// How many mapping units make a flash page.
    pub(crate) fn units(&self) -> u32 {
        let unit = self.ftl.mapping_unit_bytes.unwrap_or(self.geometry.page_bytes);
        self.geometry.page_bytes / unit.max(1)
    }

    /// Units that do not fit their flash pages, or what needs such units.
    pub(super) fn misfits_of_units(&self) -> Vec<Misfit> {
        let mut found = Vec::new();
        let (page, sector) = (self.geometry.page_bytes, self.geometry.sector_bytes);
        if let Some(unit) = self.ftl.mapping_unit_bytes {
            let fits = unit > 0 && page.is_multiple_of(unit) && unit.is_multiple_of(sector.max(1));
            if !fits || page / unit > UNITS_MAX {
                found.push(Misfit {
                    key: "mapping_unit_bytes",
                    got: unit.to_string(),
                    allowed: format!(
                        "whole sectors of {sector} bytes, up to {UNITS_MAX} of which make a page of \
                         {page} bytes"
                    ),
                });
            }
        }
        if self.timing.partial_transfer && self.units() == 1 {
            found.push(Misfit {
                key: "partial_transfer",
                got: "true".into(),
                allowed:
                    "false, where the map counts in whole flash pages: nothing smaller is read"
                        .into(),
            });
        }
        let gc = self.gc.as_ref();
        if self.units() > 1 && gc.is_some_and(|gc| gc.copy_back) {
            found.push(Misfit {
                key: "copy_back",
                got: "true".into(),
                allowed: "false with mapping units smaller than a flash page: a die copies whole \
                          pages, and cannot pack units of several"
                    .into(),
            });
        }
        let load = gc.is_some_and(|gc| gc.relocate_at_least > 0 || gc.relocate_exactly.is_some());
        if self.units() > 1 && load {
            found.push(Misfit {
                key: "mapping_unit_bytes",
                got: self.ftl.mapping_unit_bytes.unwrap_or(page).to_string(),
                allowed: format!(
                    "{page} with relocate_at_least and relocate_exactly: they count flash pages, \
                     which are moved whatever they hold"
                ),
            });
        }
        found
    }
}
