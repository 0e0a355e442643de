//! Options and checks of a zoned device.

use uflip_core::{Error, Result, format_bytes};

use super::checks::InvalidKeys;
use super::limits::PAGES_MAX;
use super::{FlushPolicy, InitialState, Profile};
use crate::ftl::{ZONED, ZonesPart};

impl Profile {
    /// Return whether the host sees zones.
    pub(crate) fn is_zoned(&self) -> bool {
        self.ftl.ftl == ZONED
    }

    /// Return the capacity of a zone [bytes].
    pub(crate) fn zone_capacity_bytes(&self) -> Option<u64> {
        let part = self.zones?;
        let blocks = u64::from(part.dies_per_zone).checked_mul(part.zone_blocks_per_die.into())?;
        let block = u64::from(self.geometry.pages_per_block) * u64::from(self.geometry.page_bytes);
        blocks.checked_mul(block)
    }

    pub(super) fn find_invalid_zones(&self, invalid: &mut InvalidKeys) {
        let Some(part) = self.zones else { return };
        self.find_invalid_zone_layout(&part, invalid);
        let geometry = &self.geometry;
        let unit = geometry.page_bytes / self.units().max(1);
        let allowed = format!(
            "{unit} with [zones], the mapping unit: zones are written without read-modify-write"
        );
        invalid.reject_if(
            geometry.sector_bytes != unit,
            "sector_bytes",
            &geometry.sector_bytes,
            allowed,
        );
        let spare = self.ftl.spare_factor;
        let allowed = "0 with [zones]: the spare flash is zone_bytes beyond the capacity of a zone";
        invalid.reject_if(spare != 0.0, "spare_factor", &spare, allowed);
        let metadata = geometry.metadata_pages;
        invalid.reject_if(metadata > 0, "metadata_pages", &metadata, "0 with [zones]");
        let random = !matches!(self.state.state, InitialState::Empty | InitialState::Sequential);
        let allowed = "\"empty\" or \"sequential\" with [zones], which are written in order";
        invalid.reject_if(random, "state", &"one of random writes", allowed);
        let lazy = self.cache.write_cache_bytes > 0 && self.cache.flush != FlushPolicy::Eager;
        let allowed = "\"eager\" with [zones]: a reset requires that the cache is flushed";
        invalid.reject_if(lazy, "flush", &"when_needed", allowed);
        if let Some(recovery) = &self.recovery {
            let allowed =
                "0 with [zones]: blocks are not replaced; erase_steps_max ends the life of a zone";
            for (key, share) in [
                ("factory_bad_share", recovery.factory_bad_share),
                ("program_failures", recovery.program_failures),
                ("erase_failures", recovery.erase_failures),
            ] {
                invalid.reject_if(share != 0.0, key, &share, allowed);
            }
        }
        let gap = self.wear.static_wear_threshold;
        let allowed = "0 with [zones], which keep their blocks";
        invalid.reject_if(gap > 0, "static_wear_threshold", &gap, allowed);
    }

    /// Find dies, blocks, stripes and sizes of zones that do not fit the flash.
    fn find_invalid_zone_layout(&self, part: &ZonesPart, invalid: &mut InvalidKeys) {
        let divides = |part: u32, whole: u32| part > 0 && whole.is_multiple_of(part);
        let geometry = &self.geometry;
        let planes = geometry.planes_per_die.max(1);
        let dies =
            geometry.channels.saturating_mul(geometry.dies_per_channel).saturating_mul(planes);
        let allowed = format!("a divisor of the {dies} dies, of which each plane counts as one");
        invalid.reject_if(
            !divides(part.dies_per_zone, dies),
            "dies_per_zone",
            &part.dies_per_zone,
            allowed,
        );
        let blocks = geometry.blocks_per_die / planes;
        let got = part.zone_blocks_per_die;
        let allowed = format!("a divisor of the {blocks} blocks of a die or plane");
        invalid.reject_if(!divides(got, blocks), "zone_blocks_per_die", &got, allowed);
        let pages = got.saturating_mul(geometry.pages_per_block);
        let allowed = format!("a divisor of the {pages} pages that a zone has on a die");
        invalid.reject_if(
            !divides(part.stripe_pages, pages),
            "stripe_pages",
            &part.stripe_pages,
            allowed,
        );
        let page = u64::from(geometry.page_bytes).max(1);
        let min_bytes = self.zone_capacity_bytes().unwrap_or(u64::MAX);
        let fits = part.zone_bytes >= min_bytes && part.zone_bytes.is_multiple_of(page);
        let allowed =
            format!("at least {min_bytes}, the capacity of a zone; whole pages of {page} bytes");
        invalid.reject_if(!fits, "zone_bytes", &part.zone_bytes, allowed);
        let (open, active) = (part.max_open_zones, part.max_active_zones);
        let wrong_limit = active > 0 && (open == 0 || open > active);
        let allowed = format!("1 to {active}, the value of max_active_zones");
        invalid.reject_if(wrong_limit, "max_open_zones", &open, allowed);
    }

    /// Check the tables of a zoned device as a whole.
    pub(super) fn check_zones(&self, source: &str) -> Result<()> {
        if !self.is_zoned() {
            return Ok(());
        }
        let Some(part) = self.zones else {
            return Err(Error::usage("A device with zones needs a table [zones]")
                .at(source)
                .got(format!("ftl = \"{ZONED}\" without a table [zones]"))
                .action("add [zones] as in zns.toml"));
        };
        let capacity = self.zone_capacity_bytes().unwrap_or(u64::MAX);
        let flash = u64::from(self.geometry.channels)
            * u64::from(self.geometry.dies_per_channel)
            * u64::from(self.geometry.blocks_per_die)
            * u64::from(self.geometry.pages_per_block)
            * u64::from(self.geometry.page_bytes);
        let unit = u64::from(self.geometry.page_bytes / self.units());
        let pages = (flash / capacity.max(1)).saturating_mul(part.zone_bytes / unit);
        if pages <= PAGES_MAX {
            return Ok(());
        }
        Err(Error::usage("Profile key 'zone_bytes' has an invalid value")
            .at(source)
            .got(format!("{pages} logical pages of {}", format_bytes(unit)))
            .allowed(format!("at most {PAGES_MAX}"))
            .action("decrease zone_bytes or increase mapping_unit_bytes"))
    }
}
