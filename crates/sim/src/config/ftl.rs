//! Options and checks of FTLs: a map on flash, merging FTLs, the SLC cache, write streams, and zones.

use serde_json::{Map, Value};
use uflip_core::{Error, Result, format_bytes};

use super::checks::{InvalidKeys, PAGES_MAX};
use super::{BLOCK, FlushPolicy, GcPart, InitialState, Profile};
use crate::ftl::{
    MappingOptions, MappingPart, Merging, MergingOptions, RESERVED_FOR_MAPPING, SlcOptions, ZONED,
    ZonesPart, mapping_pages, segment_bytes,
};
use crate::keys::parameters;
use crate::pool::blocks::RelocationFrontier;

impl Profile {
    /// Return the options of a map on flash; `None` if the map is in memory.
    pub(super) fn mapping_options(&self) -> Option<MappingOptions> {
        self.mapping.as_ref().map(|part| {
            let segment_entries = part.mapping_segment_entries.unwrap_or(1);
            MappingOptions {
                cached_segments: (part.mapping_cache_bytes / segment_bytes(segment_entries))
                    as usize,
                segment_entries,
                policy: part.mapping_cache_policy,
                batch_update: part.mapping_batch_update,
            }
        })
    }

    /// Return the latency of a cached entry in host memory; 0 if the cache is in the controller.
    pub(super) fn host_memory_read_ns(&self) -> u64 {
        self.mapping.as_ref().and_then(|part| part.host_memory_read_ns).unwrap_or(0)
    }

    /// Return the blocks per die that are kept free for mapping pages.
    pub(super) fn reserved_for_mapping(&self) -> u32 {
        if self.mapping.is_some() { RESERVED_FOR_MAPPING } else { 0 }
    }

    /// Return the pages that full mapping blocks may take: they are collected once half of them is
    /// invalid.
    pub(super) fn pages_for_mapping(&self) -> u64 {
        if self.mapping.is_none() {
            return 0;
        }
        let block = u64::from(self.geometry().data_pages());
        (2 * u64::from(mapping_pages(&self.geometry()))).next_multiple_of(block)
    }

    pub(super) fn check_mapping(&self, source: &str) -> Result<()> {
        match &self.mapping {
            None if self.ftl.ftl == "dftl" => Err(Error::usage("DFTL needs a table [mapping]")
                .at(source)
                .got("ftl = \"dftl\" without a table [mapping]")
                .allowed("mapping_cache_bytes, mapping_cache_policy, mapping_batch_update")
                .action("add [mapping], or name the three keys behind the device's name")),
            None => Ok(()),
            Some(part) => self.check_cache(source, part),
        }
    }
    /// Check that segments divide a mapping page, and that one fits into the cache.
    fn check_cache(&self, source: &str, part: &MappingPart) -> Result<()> {
        let entries = part.mapping_segment_entries.unwrap_or(1);
        let max_entries = self.geometry().shape().page_bytes / 4;
        if !max_entries.is_multiple_of(entries) {
            return Err(Error::usage("The map segments do not divide a mapping page")
                .at(source)
                .got(format!("mapping_segment_entries = {entries}"))
                .allowed(format!("a divisor of {max_entries}, the entries of a mapping page"))
                .action("change mapping_segment_entries"));
        }
        let min_bytes = segment_bytes(entries);
        if part.mapping_cache_bytes < min_bytes {
            return Err(Error::usage("The mapping cache holds no entry")
                .at(source)
                .got(format!("mapping_cache_bytes = {}", part.mapping_cache_bytes))
                .allowed(format!("{min_bytes} or more"))
                .action("raise mapping_cache_bytes"));
        }
        Ok(())
    }

    // Options and checks of all merging FTLs.

    /// Return the options of a merging FTL.
    pub(crate) fn merging_options(&self) -> MergingOptions<'_> {
        MergingOptions {
            name: &self.ftl.ftl,
            geometry: self.ftl_geometry(),
            tables: self.tables(),
            durable: self.power_loss.is_some(),
        }
    }

    /// Check the requirements of a merging FTL.
    pub(super) fn check_merging(&self, source: &str) -> Result<()> {
        let part = &self.geometry;
        if part.metadata_pages > 0 {
            return Err(Error::usage("Merging FTLs keep no metadata pages in their blocks")
                .at(source)
                .got(format!(
                    "ftl = \"{}\", metadata_pages = {}",
                    self.ftl.ftl, part.metadata_pages
                ))
                .allowed("metadata_pages = 0")
                .action("change one of the two"));
        }
        Merging::check(&self.merging_options()).map_err(|error| error.at(source))
    }
}

/// Return values for the keys of a merging FTL's own table, each in its range but otherwise
/// arbitrary; nothing if it has no table. For tests that draw devices: `below` draws a number.
pub fn drawn_keys(ftl: &str, below: impl FnMut(u64) -> u64) -> Map<String, Value> {
    Merging::table(ftl).map(|table| BLOCK.drawn(table, below)).unwrap_or_default()
}

// SLC cache options.

parameters! {
    /// The table `[slc_cache]`.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct SlcPart {
        slc_blocks: u32 = "0 to `slc_blocks_max`" in "blocks",
            "blocks of each plane that are reserved for the cache: its static part, which is \
             spare space";
        slc_blocks_max: u32 = "1 or more, up to `blocks_per_die`" in "blocks",
            "largest number of cache blocks of each plane: beyond `slc_blocks` free blocks, as \
             long as the plane has enough free blocks";
        slc_read_ns: u64 = "0 or more" in "ns",
            "reading a page with one bit per cell";
        slc_program_ns: u64 = "0 or more" in "ns",
            "programming a page with one bit per cell";
    }
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

    // Write streams, and hot/cold detection.

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

    // Options and checks of a zoned device.

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
