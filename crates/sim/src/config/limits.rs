//! Absolute limits of a device: overflowing numbers, sizes and times. They are checked before
//! anything is multiplied or allocated.
//!
//! ```text
//! capacity   bytes of flash ≤ 2⁵³: the host's share of them is computed with a double, which holds
//!            whole numbers exactly up to there
//! memory     the tables of the device, compared with the free memory of the machine
//! time       every page read and programmed, every block erased, one after the other ≤ 2⁵⁹ ns: what one
//!            I/O can cause is a few times that at most, the clock ends at 2⁶² ns, and counts to 2⁶⁴
//! ```

use uflip_core::{Error, ErrorKind, Result};

use super::Profile;
use crate::ftl::segment_bytes;

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
    pub(super) fn mapping_memory_bytes(&self) -> u64 {
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
