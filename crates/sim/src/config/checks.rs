//! Checks of a profile before any work: rules between keys, and absolute limits.

use uflip_core::{Error, ErrorKind, Result, SECTOR_BYTES_MIN, format_bytes};

use super::{BLOCK, GcPart, Profile, Relocation};
use crate::flash::nand::PageOrder;
use crate::ftl::{Merging, segment_bytes};
use crate::keys::InvalidKey;

/// The cache keeps one bit per sector of a page in 64 bits.
const CACHE_SECTORS_MAX: u64 = 64;
/// Valid pages of a block are counted in 15 bits.
const PAGES_PER_BLOCK_MAX: u32 = (1 << 15) - 1;
/// More than any page that is striped over all planes of all dies of a drive. Preconditioning
/// writes up to 128 KiB at a time: with pages of gigabytes it would need billions of writes that
/// change one page.
const PAGE_BYTES_MAX: u64 = 16 << 20;

/// Keys with an invalid value, in order.
#[derive(Default)]
pub(crate) struct InvalidKeys(Vec<InvalidKey>);

impl InvalidKeys {
    /// Add a key if its value is `wrong`, with the value and the allowed values.
    pub(super) fn reject_if(
        &mut self,
        wrong: bool,
        key: &'static str,
        got: &dyn ToString,
        allowed: impl Into<String>,
    ) {
        if wrong {
            self.0.push(InvalidKey { key, got: got.to_string(), allowed: allowed.into() });
        }
    }
}

impl Profile {
    pub(crate) fn check(&self, source: &str) -> Result<()> {
        if let Some(invalid) = self.invalid_keys().into_iter().next() {
            return Err(invalid.error(source));
        }
        let pages = self.check_size(source)?;
        if !crate::ftl::FTLS.contains(&self.ftl.ftl.as_str()) {
            return Err(Error::unknown("FTL", &self.ftl.ftl, crate::ftl::FTLS).at(source));
        }
        self.check_tables(source)?;
        self.check_zones(source)?;
        self.check_free_space(source, pages)?;
        self.check_memory(source)?;
        self.check_times(source, pages)?;
        if self.merges() {
            self.check_recovery(source)?;
            return self.check_merging(source);
        }
        if self.is_zoned() {
            return self.check_recovery(source);
        }
        let gc = self.gc().map_err(|error| error.at(source))?;
        self.check_mapping(source)?;
        self.check_recovery(source)?;
        self.check_spare(source, pages * u64::from(self.units()), gc)?;
        self.check_load(source, gc)?;
        self.check_names(source, gc)
    }

    /// Return the keys whose values are invalid by themselves or in combination.
    pub(crate) fn invalid_keys(&self) -> Vec<InvalidKey> {
        let mut invalid = BLOCK.invalid_keys(self);
        let combinations = self.find_invalid_combinations().into_iter();
        let others: Vec<InvalidKey> = combinations
            .filter(|invalid_combination| {
                invalid.iter().all(|other| other.key != invalid_combination.key)
            })
            .collect();
        invalid.extend(others);
        invalid
    }

    /// Find keys whose values are invalid in combination.
    fn find_invalid_combinations(&self) -> Vec<InvalidKey> {
        let part = &self.geometry;
        let mut invalid = InvalidKeys::default();
        let planes = part.planes_per_die;
        let uneven = !part.blocks_per_die.is_multiple_of(planes);
        let allowed = format!("a divisor of blocks_per_die = {}", part.blocks_per_die);
        invalid.reject_if(uneven, "planes_per_die", &planes, allowed);
        let metadata = part.metadata_pages;
        let too_many = metadata > 0 && metadata >= part.pages_per_block;
        invalid.reject_if(
            too_many,
            "metadata_pages",
            &metadata,
            "0, or 1 if a block has more pages",
        );
        let max_pages = PAGES_PER_BLOCK_MAX / self.units().max(1);
        let too_many = part.pages_per_block > max_pages;
        let allowed = format!("at most {max_pages}");
        invalid.reject_if(too_many, "pages_per_block", &part.pages_per_block, allowed);
        let (sector, page) = (u64::from(part.sector_bytes), u64::from(part.page_bytes));
        let invalid_sector = !sector.is_power_of_two() || sector < SECTOR_BYTES_MIN;
        invalid.reject_if(invalid_sector, "sector_bytes", &sector, "a power of two from 512");
        let unfit = page < sector || !page.is_multiple_of(sector.max(1)) || page > PAGE_BYTES_MAX;
        let allowed = format!("whole sectors of {sector} bytes, at most {PAGE_BYTES_MAX} in all");
        invalid.reject_if(!invalid_sector && unfit, "page_bytes", &page, allowed);
        let cache = self.cache.write_cache_bytes;
        let unfit = cache > 0 && (cache < page || page / sector.max(1) > CACHE_SECTORS_MAX);
        let allowed = format!("0, or a page and more; pages of up to {CACHE_SECTORS_MAX} sectors");
        invalid.reject_if(!invalid_sector && unfit, "write_cache_bytes", &cache, allowed);
        let unsupported_order = part.page_order == Some(PageOrder::Any) && !self.merges();
        let allowed = "\"ascending\": this FTL programs the pages of a block in order";
        invalid.reject_if(unsupported_order, "page_order", &"any", allowed);
        self.timing.find_invalid_cells(&mut invalid);
        self.find_invalid_units(&mut invalid);
        self.find_invalid_planes(&mut invalid);
        self.find_invalid_errors(&mut invalid);
        self.find_invalid_streams(&mut invalid);
        self.find_invalid_slc(&mut invalid);
        self.find_invalid_controller(&mut invalid);
        self.find_invalid_power_loss(&mut invalid);
        self.find_invalid_suspend(&mut invalid);
        self.find_invalid_cache_read(&mut invalid);
        self.find_invalid_history(&mut invalid);
        self.find_invalid_recovery(&mut invalid);
        self.find_invalid_host(&mut invalid);
        self.find_invalid_zones(&mut invalid);
        invalid.0
    }

    /// Reject tables and keys that the FTL would ignore.
    fn check_tables(&self, source: &str) -> Result<()> {
        let name = self.ftl.ftl.as_str();
        let zoned = self.is_zoned();
        let of_page_maps = !self.merges() && !zoned;
        let has_units = zoned || name == "page_map";
        let unused = [
            ("[gc]", self.gc.is_some() && !of_page_maps),
            ("allocator", self.ftl.allocator.is_some() && !of_page_maps),
            ("[mapping]", self.mapping.is_some() && name != "dftl"),
            ("[slc_cache]", self.slc_cache.is_some() && name != "page_map"),
            ("[hot_cold]", self.hot_cold.is_some() && name != "page_map"),
            ("write_streams", self.ftl.write_streams.is_some() && name != "page_map"),
            ("merges_side_by_side", self.ftl.merges_side_by_side.is_some() && !self.merges()),
            ("mapping_unit_bytes", self.ftl.mapping_unit_bytes.is_some() && !has_units),
            (
                "compression_unit_bytes",
                self.ftl.compression_unit_bytes.is_some() && name != "page_map",
            ),
            ("deduplicates", self.ftl.deduplicates && name != "page_map"),
            ("[zones]", self.zones.is_some() && !zoned),
            ("[power_loss]", self.power_loss.is_some() && zoned),
            ("[rings]", self.rings.is_some() && !of_page_maps),
            ("relocate_latency_ns", self.timing.relocate_latency_ns.is_some() && !of_page_maps),
            ("collect_ns", self.timing.collect_ns > 0 && !of_page_maps),
            ("dynamic_wear_levelling", self.wear.dynamic_wear_levelling && zoned),
        ];
        let unused = unused.into_iter().filter(|(_, unused)| *unused);
        let own_table = Merging::table(name);
        let tables = self.tables();
        let others = tables.names().filter(|table| Some(*table) != own_table);
        let mut unused =
            unused.map(|(name, _)| name.to_owned()).chain(others.map(|table| format!("[{table}]")));
        match unused.next() {
            None => Ok(()),
            Some(name) => Err(Error::usage(format!("This FTL does not use {name}"))
                .at(source)
                .got(format!("{name} with ftl = \"{name}\""))
                .action(format!("take {name} out, or choose another FTL"))),
        }
    }

    /// The two readings of OFC's figure 5(a) exclude each other.
    fn check_load(&self, source: &str, gc: &GcPart) -> Result<()> {
        match gc.relocate_exactly {
            Some(exactly) if gc.relocate_at_least > 0 => {
                Err(Error::usage("relocate_at_least and relocate_exactly exclude each other")
                    .at(source)
                    .got(format!(
                        "relocate_at_least = {}, relocate_exactly = {exactly}",
                        gc.relocate_at_least
                    ))
                    .allowed("one of the two")
                    .action("set relocate_at_least = 0, or take relocate_exactly out"))
            }
            Some(exactly) => self.check_gain(source, "relocate_exactly", exactly),
            None => self.check_gain(source, "relocate_at_least", gc.relocate_at_least),
        }
    }

    /// Check that a minimum of moved pages leaves a gain: a collection that programs as many pages
    /// as it erases never frees space.
    fn check_gain(&self, source: &str, key: &str, moved: u32) -> Result<()> {
        let data_pages = self.geometry().data_pages();
        if moved < data_pages {
            return Ok(());
        }
        Err(Error::usage(format!("Profile key '{key}' has an invalid value"))
            .at(source)
            .got(format!(
                "{moved} pages to move of a block that holds {data_pages}: no page would be freed"
            ))
            .allowed(format!("0 to {}", data_pages - 1))
            .action("change it, or make larger blocks"))
    }

    fn check_names(&self, source: &str, gc: &GcPart) -> Result<()> {
        if gc.copy_back && gc.relocation != Relocation::SameDie {
            return Err(Error::usage("Copy-back moves pages within a die only")
                .at(source)
                .got("relocation = \"allocator\"")
                .allowed("relocation = \"same_die\" with copy_back = true")
                .action("change one of the two"));
        }
        self.ftl_options().map_err(|error| error.at(source))?;
        Ok(())
    }

    /// Check that the host has something to address.
    fn check_free_space(&self, source: &str, pages: u64) -> Result<()> {
        let spare = self.ftl.spare_factor;
        if !(0.0..1.0).contains(&spare) {
            return Err(Error::usage("The spare factor is outside [0, 1)")
                .at(source)
                .got(format!("spare_factor = {spare}"))
                .allowed("0 up to, not including, 1")
                .action("change it; 0.07 keeps 7 % of the flash from the host"));
        }
        let logical = self.geometry().shape().logical_pages;
        if logical == 0 {
            return Err(Error::usage("The device has no capacity for the host")
                .at(source)
                .got(format_bytes(pages * u64::from(self.geometry.page_bytes)))
                .action("lower spare_factor, or make the device larger"));
        }
        Ok(())
    }

    /// Return the pages that cannot hold the host's data: on each die those of the reserve, of the
    /// open blocks, and of one more block so that collection gains something; and those for a map
    /// on flash.
    fn held_pages(&self, gc: &GcPart) -> u64 {
        let geometry = self.geometry();
        let hosts = u64::from(self.write_streams());
        let relocation = self.relocation_frontier(gc).open_blocks(hosts as u8);
        let open = hosts + u64::from(relocation) + u64::from(self.mapping.is_some());
        let reserved = u64::from(gc.reserved_blocks) + u64::from(self.reserved_for_mapping());
        let held = reserved + open + u64::from(self.slc_blocks()) + 1;
        let held = held.min(u64::from(geometry.shape().blocks_per_plane));
        let planes = u64::from(geometry.shape().planes);
        // A flash page of several units may have to be padded.
        let padded = (hosts + u64::from(self.slc_cache.is_some())) * u64::from(self.units() - 1);
        planes * (held * u64::from(geometry.data_pages()) + padded) + self.pages_for_mapping()
    }

    /// Return the number of pages that must accept data for the device to be writable.
    pub(super) fn needed_pages(&self) -> u64 {
        let logical = u64::from(self.geometry().shape().logical_pages);
        logical + self.gc.as_ref().map_or(0, |gc| self.held_pages(gc))
    }

    /// Check that the host can fill the device while every die keeps its reserve and an open block.
    fn check_spare(&self, source: &str, pages: u64, gc: &GcPart) -> Result<()> {
        let spare = self.ftl.spare_factor;
        let bad = self.bad_blocks().len() as u64;
        let blocks = u64::from(self.geometry().blocks()) - bad;
        let usable = blocks * u64::from(self.geometry().data_pages());
        let free_pages = usable.saturating_sub(self.held_pages(gc));
        let least = (pages - free_pages) as f64 / pages as f64;
        if !(spare >= least && spare < 1.0) {
            let of_factory = match bad {
                0 => String::new(),
                bad => format!(" with {bad} blocks that are bad from the factory"),
            };
            return Err(Error::usage("The spare factor does not suit the reserved blocks")
                .at(source)
                .got(format!("spare_factor = {spare}{of_factory}"))
                .allowed(format!("{least:.4} up to, not including, 1"))
                .action("raise spare_factor, lower reserved_blocks, or make smaller blocks"));
        }
        let idle = gc.idle_free_blocks;
        // Without idle time a die collects until it has one block more than its reserve.
        let reached = u64::from(gc.reserved_blocks) + u64::from(self.reserved_for_mapping()) + 1;
        if idle > 0 && u64::from(idle) <= reached {
            return Err(Error::usage("Idle collection would never begin")
                .at(source)
                .got(format!("idle_free_blocks = {idle}"))
                .allowed(format!("0, or more than {reached}"))
                .action("change one of the two"));
        }
        Ok(())
    }
}

// Absolute limits of a device: overflowing numbers, sizes and times. They are checked before
// anything is multiplied or allocated.
//
// ```text
// capacity   bytes of flash ≤ 2⁵³: the host's share of them is computed with a double, which holds
//            whole numbers exactly up to there
// memory     the tables of the device, compared with the free memory of the machine
// time       every page read and programmed, every block erased, one after the other ≤ 2⁵⁹ ns: what one
//            I/O can cause is a few times that at most, the clock ends at 2⁶² ns, and counts to 2⁶⁴
// ```

/// Pages are numbered in 32 bits, and one number means "not mapped".
pub(crate) const PAGES_MAX: u64 = u32::MAX as u64 - 1;
/// See above.
pub(crate) const CAPACITY_MAX: u64 = 1 << 53;
/// Maximum duration of one pass over the device, so that the clock holds many of them [ns]: 18
/// years.
pub(crate) const PASS_MAX_NS: u64 = 1 << 59;
/// The end of the clock: no I/O is accepted from then on [ns]: 146 years.
pub(crate) const CLOCK_END_NS: u64 = 1 << 62;
/// Nanoseconds of a year, for messages.
pub(crate) const YEAR_NS: u64 = 31_556_952_000_000_000;

impl Profile {
    /// Return the number of pages of all dies, after checking that pages can be numbered and bytes
    /// counted.
    pub(super) fn check_size(&self, source: &str) -> Result<u64> {
        let part = &self.geometry;
        let pages =
            [part.channels, part.dies_per_channel, part.blocks_per_die, part.pages_per_block]
                .into_iter()
                .try_fold(1u64, |product, count| product.checked_mul(u64::from(count)))
                .unwrap_or(u64::MAX);
        let too_large = |got: String, allowed: String| {
            Error::usage("Profile key 'geometry' has an invalid value")
                .at(source)
                .got(got)
                .allowed(allowed)
                .action("simulate fewer channels, dies, blocks or pages")
        };
        let units = u64::from(self.units());
        if pages.saturating_mul(units) > PAGES_MAX {
            return Err(too_large(format!("{pages} pages"), format!("at most {PAGES_MAX}")));
        }
        let bytes = u128::from(pages) * u128::from(part.page_bytes);
        if bytes > u128::from(CAPACITY_MAX) {
            let allowed = format!("at most {CAPACITY_MAX}, which are 8 PiB");
            return Err(too_large(format!("{bytes} bytes of flash"), allowed));
        }
        Ok(pages)
    }

    /// Check that the clock can hold the device's operations.
    pub(super) fn check_times(&self, source: &str, pages: u64) -> Result<()> {
        let part = &self.timing;
        let page = u128::from(self.geometry.page_bytes) + u128::from(self.geometry.spare_bytes);
        let at_rate = |rate: u64| page * 1_000_000_000 / u128::from(rate.max(1));
        let bus = if part.buses > 0 { at_rate(part.bus_bytes_per_s) } else { 0 };
        let wide = u128::from;
        let extra = self
            .reliability
            .as_ref()
            .map_or(0, |laws| wide(laws.erase_step_ns) * u128::from(laws.erase_steps_max));
        let (read, program) = part.slowest_cells();
        let stopping = self.stopping_ns();
        let retries = self.recovery.as_ref().map_or(0, |part| u128::from(part.read_retries));
        let reads = wide(read) + at_rate(part.channel_bytes_per_s) + bus;
        let a_page = reads * (1 + retries)
            + wide(program)
            + at_rate(part.channel_bytes_per_s)
            + bus
            + at_rate(part.link_bytes_per_s)
            + wide(part.relocate_ns)
            + wide(part.command_read_ns.max(part.command_write_ns))
            + wide(part.seek_read_ns)
            + part.controller_ns()
            + wide(self.host_memory_read_ns())
            + 2 * at_rate(part.memory_bytes_per_s.unwrap_or(u64::MAX))
            + 2 * self.rings.map_or(0, |rings| wide(rings.completion_ns))
            + stopping.0;
        let a_block = stopping.1 + wide(part.erase_ns) + extra + wide(part.collect_ns);
        let blocks = pages / u64::from(self.geometry.pages_per_block);
        let takes = wide(pages).saturating_mul(a_page) + wide(blocks).saturating_mul(a_block);
        if takes > u128::from(PASS_MAX_NS) {
            let years = |ns: u128| ns / u128::from(YEAR_NS);
            return Err(Error::usage("The times of the device do not fit its clock")
                .at(source)
                .got(format!(
                    "{} years to read, program and erase everything once: up to {a_page} ns a page, \
                     {a_block} ns a block",
                    years(takes)
                ))
                .allowed(format!("up to {} years", years(PASS_MAX_NS.into())))
                .action("lower the times, raise the rates, or simulate fewer pages"));
        }
        Ok(())
    }

    /// Reject a device that does not fit into memory, before anything is allocated.
    pub(crate) fn check_memory(&self, source: &str) -> Result<()> {
        let needed = self.memory_bytes();
        let available = uflip_core::available_bytes();
        if needed <= available {
            return Ok(());
        }
        let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
        Err(Error::usage("The simulated device does not fit into memory")
            .at(source)
            .got(format!("a device that needs {}", mebibytes(needed)))
            .allowed(format!("{}, which are free now", mebibytes(available)))
            .action("simulate fewer blocks, or larger pages"))
    }

    /// Return the size of its tables [bytes].
    pub(crate) fn memory_bytes(&self) -> u64 {
        // A cluster of a log has an entry in its order of age, and one in its unit.
        let clusters = self
            .streams
            .as_ref()
            .map_or(0, |part| u64::from(part.log_clusters) + u64::from(part.small_log_clusters));
        let page_tables =
            if self.uses_page_tables() { 2 * u64::from(self.geometry().pages()) } else { 0 };
        self.geometry().memory_bytes() + self.mapping_memory_bytes() + 48 * clusters + page_tables
    }

    /// Return the additional size of DFTL's tables: 4 bytes per segment of the map to find it in
    /// the cache, and 28 for each cached segment for its lists.
    fn mapping_memory_bytes(&self) -> u64 {
        let pages = u64::from(self.geometry().shape().logical_pages);
        self.mapping.as_ref().map_or(0, |part| {
            let segment = part.mapping_segment_entries.unwrap_or(1).max(1);
            let cached = part.mapping_cache_bytes / segment_bytes(segment);
            let segments = pages.div_ceil(u64::from(segment));
            4 * segments + 28 * cached.min(segments)
        })
    }
}

/// Return the error of an I/O after the end of the clock.
#[cold]
pub(crate) fn clock_overflow() -> Error {
    Error::new(ErrorKind::Device, "The clock of the simulated device has run out")
        .got(format!("an I/O after {} years", CLOCK_END_NS / YEAR_NS))
        .allowed("I/Os before that: times are counted in nanoseconds, in 64 bits")
        .action("make a new device, pause for shorter, or simulate faster flash")
}
