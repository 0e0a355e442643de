//! Profiles of open-channel devices: a schema of their own, without FTL, garbage collection or
//! cache.

use std::sync::LazyLock;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use uflip_core::{Error, FlashGeometry, Result, SECTOR_BYTES_MIN};

use super::ThreadTimes;
use crate::config::overrides::{check_interface, interface_of, source_of, with_overrides};
use crate::config::{CAPACITY_MAX, PAGES_MAX, PASS_MAX_NS, YEAR_NS, read_toml};
use crate::flash::geometry::{BlockIdx, Geometry, Shape};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::flash::reliability::{Reliability, ReliabilityPart};
use crate::flash::wear_out::{BlockHistory, Grain, WearOut, WearOutOptions, chance};
use crate::keys::{InvalidKey, KeyTables, Keys, parameters};
use crate::timeline::Timing;

/// A profile: the complete description of a simulated open-channel device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/open-channel-profiles.md
pub struct OpenChannelProfile {
    /// `open_channel`, which distinguishes it from the profile of a block device.
    pub interface: String,
    pub description: String,
    pub geometry: OpenChannelGeometryPart,
    pub media: MediaPart,
    pub controller: ControllerPart,
    pub reliability: ReliabilityPart,
    /// Failures other than wear; none: no such failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailuresPart>,
    pub state: OpenChannelStatePart,
    /// Sources of the values: not part of the device; read by [`crate::config::sources`].
    #[serde(default, skip_serializing)]
    sources: IgnoredAny,
}

parameters! {
    /// Numbers and sizes of the flash.
    #[derive(Clone, PartialEq, Debug)]
    pub struct OpenChannelGeometryPart {
        channels: u32 = "1 to 256",
            "channels; each carries one transfer at a time";
        luns_per_channel: u32 = "1 to 256",
            "LUNs of each channel; each executes one operation at a time";
        planes: u32 = "1 to 64",
            "planes of a LUN; they are written and erased together";
        blocks_per_plane: u32 = "1 or more",
            "erase blocks of a plane; an address selects one block in all planes";
        // Valid pages of a block are counted in 15 bits.
        pages_per_block: u32 = "1 to 1048576",
            "pages of a block, written in order";
        sectors_per_page: u32 = "1 to 64",
            "sectors of a page of one plane";
        sector_bytes: u32 = "powers of two from 512" in "bytes",
            "unit of reads";
        vector_max: u32 = "a page of all planes, to 64" in "sectors",
            "largest number of addresses in one command";
    }
}

parameters! {
    /// The flash chips.
    #[derive(Clone, PartialEq, Debug)]
    pub struct MediaPart {
        read_ns: u64 = "0 or more" in "ns",
            "reading a page from the cells";
        program_low_ns: u64 = "0 or more" in "ns",
            "programming an even page: the low page of its cells (MLC)";
        program_high_ns: u64 = "0 or more" in "ns",
            "programming an odd page: the high page of its cells";
        quick_low_pages: u32 = "0 or more",
            "one low page in this number takes `program_quick_ns` instead; the same pages in \
             every block; 0: none";
        program_quick_ns: u64 = "0 or more" in "ns",
            "program time of the low pages that `quick_low_pages` selects";
        program_spread_permille: u64 = "0 to 1000" in "‰",
            "largest difference of a page's program time from the mean, up and down";
        #[serde(default)]
        lun_spread_permille: u64 = "0 to 1000; 0 without the key" in "‰",
            "largest difference of a LUN's read, program and erase times from those of the others, \
             up and down; drawn once for each LUN";
        erase_ns: u64 = "0 or more" in "ns",
            "the first erase of a block";
        retry_permille: u64 = "0 to 1000" in "‰",
            "probability of a retry of a read that waited for a program of its LUN";
        // Limited so that a read with `retry_permille` 1000 completes.
        retries_max: u64 = "0 to 100",
            "largest number of such retries; and of retries of an uncorrectable read before it \
             fails: reads slow down as cells wear. With `retry_gain` below 1 a retry may succeed";
    }
}

parameters! {
    /// Channels and threads.
    #[derive(Clone, PartialEq, Debug)]
    pub struct ControllerPart {
        channel_bytes_per_s: u64 = "1 or more" in "bytes/s",
            "rate of a channel, ECC included";
        lun_switch_ns: u64 = "0 or more" in "ns",
            "before a write, if the last write of its channel went to another LUN";
        write_back: bool = "`true`, `false`",
            "writes complete when their data has arrived (`true`), or when it is programmed \
             (`false`)";
        queue_thread_ns: u64 = "0 or more" in "ns",
            "time of a page on the submission path that all channels share (OX: the thread that \
             empties the host's queue)";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue_threads: Option<u32> = "1 to 1024; 1 without the key",
            "number of such paths (OX: one for each core of the host). A command takes the path \
             that is free first; all its pages stay on it";
        submission_thread_ns: u64 = "0 or more" in "ns",
            "time of a page in the thread of its channel";
        media_completion_thread_ns: u64 = "0 or more" in "ns",
            "time of a command on its way back from the media";
        host_completion_thread_ns: u64 = "0 or more" in "ns",
            "time of a command on its way back to the host";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        silent_errors_per_million: Option<u32> = "0 to 1000000; 0 without the key",
            "sectors whose data is stored wrong without any error, of a million that are written: \
             a fault for tests of `uflip oc pattern --verify`";
    }
}

parameters! {
    /// The initial state of the device.
    #[derive(Clone, PartialEq, Debug)]
    pub struct OpenChannelStatePart {
        erases: u32 = "0 or more" in "erases",
            "erases of every block in the initial state";
        seed: u64 = "0 or more",
            "seed of page qualities, read errors and retries";
    }
}

/// Maximum number of blocks; each takes a few dozen bytes, so this number fits into any memory.
const BLOCKS_MAX: u64 = 1 << 24;
/// Memory per block, with a margin [bytes].
const BLOCK_MEMORY_BYTES: u64 = 64;

/// The keys of open-channel devices.
pub(crate) static OPEN_CHANNEL: LazyLock<Keys> =
    LazyLock::new(|| Keys::new(OpenChannelProfile::TABLES));

impl OpenChannelProfile {
    /// Its tables and their keys.
    pub(crate) const TABLES: KeyTables = &[
        ("geometry", OpenChannelGeometryPart::KEYS),
        ("media", MediaPart::KEYS),
        ("controller", ControllerPart::KEYS),
        ("reliability", ReliabilityPart::KEYS),
        ("failures", FailuresPart::KEYS),
        ("state", OpenChannelStatePart::KEYS),
    ];

    /// The page that documents its keys.
    pub(crate) const PAGE: &str = "docs/reference/open-channel-profiles.md";

    /// Read a profile from the text of `source`, and apply `overrides` (a JSON object).
    ///
    /// # Errors
    /// Not TOML, an unknown or missing key, an invalid value, an override of an unknown key.
    pub fn parse(text: &str, source: &str, overrides: &str) -> Result<OpenChannelProfile> {
        check_interface(interface_of(text, source)?, "open_channel", source)?;
        let written: OpenChannelProfile = read_toml(text, source, Self::PAGE)?;
        let profile = with_overrides(&written, &OPEN_CHANNEL, overrides, source)?;
        profile.check(source).map_err(|error| match written.check(source) {
            Ok(()) => error.at(source_of(overrides, source)),
            Err(_) => error,
        })?;
        Ok(profile)
    }

    pub(crate) fn geometry(&self) -> FlashGeometry {
        let part = &self.geometry;
        FlashGeometry {
            channels: part.channels,
            luns_per_channel: part.luns_per_channel,
            planes: part.planes,
            blocks_per_plane: part.blocks_per_plane,
            pages_per_block: part.pages_per_block,
            sectors_per_page: part.sectors_per_page,
            sector_bytes: part.sector_bytes,
            vector_max: part.vector_max,
        }
    }

    /// Return the times of the controller's threads.
    pub(crate) fn threads(&self) -> ThreadTimes {
        let part = &self.controller;
        ThreadTimes {
            submission_ns: part.queue_thread_ns,
            dispatch_ns: part.submission_thread_ns,
            completion_ns: part.media_completion_thread_ns + part.host_completion_thread_ns,
            lun_switch_ns: part.lun_switch_ns,
        }
    }

    /// Return the number of submission paths.
    pub(crate) fn queue_threads(&self) -> usize {
        self.controller.queue_threads.unwrap_or(1) as usize
    }

    /// Return the timing; the channel time is given per sector, and a page's total is rounded down.
    pub(crate) fn timing(&self) -> Timing {
        let rate = self.controller.channel_bytes_per_s;
        let sector = u64::from(self.geometry.sector_bytes) * 1_000_000_000;
        Timing {
            // Exact fraction: `rate` sectors take `sector bytes` seconds.
            transfer_ns: sector,
            transfer_parts: rate,
            // The link is not used.
            link_bytes_per_s: u64::MAX,
            ..Timing::default()
        }
    }

    /// Return the keys with invalid values.
    pub(crate) fn invalid_keys(&self) -> Vec<InvalidKey> {
        OPEN_CHANNEL.invalid_keys(self)
    }

    pub(crate) fn check(&self, source: &str) -> Result<()> {
        if let Some(invalid) = self.invalid_keys().into_iter().next() {
            return Err(invalid.error(source));
        }
        let part = &self.geometry;
        let bad = |key: &str, got: String, allowed: String| {
            let problem = format!("Profile key '{key}' has an invalid value");
            Err(Error::usage(problem).at(source).got(got).allowed(allowed).action("change it"))
        };
        let sector = u64::from(part.sector_bytes);
        if !sector.is_power_of_two() || sector < SECTOR_BYTES_MIN {
            return bad("sector_bytes", sector.to_string(), "a power of two from 512".into());
        }
        let written = part.planes * part.sectors_per_page;
        if written > part.vector_max {
            let allowed = format!("{written} or more: the sectors of a page of all planes");
            return bad("vector_max", part.vector_max.to_string(), allowed);
        }
        let blocks = u64::from(part.channels)
            * u64::from(part.luns_per_channel)
            * u64::from(part.blocks_per_plane);
        if blocks > BLOCKS_MAX {
            let allowed = format!("at most {BLOCKS_MAX} blocks in all");
            return bad("blocks_per_plane", format!("{blocks} blocks in all"), allowed);
        }
        self.check_size(source)?;
        self.check_times(source)?;
        self.laws().map(|_| ()).map_err(|error| error.at(source))
    }

    /// Check that its bytes can be counted, and that its blocks fit into memory.
    fn check_size(&self, source: &str) -> Result<()> {
        let too_large = |got: String, allowed: String| {
            Error::usage("The geometry is invalid")
                .at(source)
                .got(got)
                .allowed(allowed)
                .action("simulate fewer or smaller blocks")
        };
        let written = u128::from(self.geometry.planes * self.geometry.sectors_per_page);
        let sectors = self.pages() * written;
        if sectors > u128::from(PAGES_MAX) {
            return Err(too_large(format!("{sectors} sectors"), format!("at most {PAGES_MAX}")));
        }
        let bytes = self.pages() * u128::from(self.page_bytes());
        if bytes > u128::from(CAPACITY_MAX) {
            let allowed = format!("at most {CAPACITY_MAX}, which are 8 PiB");
            return Err(too_large(format!("{bytes} bytes of flash"), allowed));
        }
        let needed = self.memory_bytes();
        let available = uflip_core::available_bytes();
        if needed <= available {
            return Ok(());
        }
        let got = format!("a device that needs {} MiB", needed >> 20);
        Err(too_large(got, format!("{} MiB, which are free now", available >> 20)))
    }

    /// Return the memory of such a device [bytes].
    pub(crate) fn memory_bytes(&self) -> u64 {
        BLOCK_MEMORY_BYTES * self.blocks()
    }

    /// Return the blocks of all LUNs.
    fn blocks(&self) -> u64 {
        let part = &self.geometry;
        u64::from(part.channels)
            * u64::from(part.luns_per_channel)
            * u64::from(part.blocks_per_plane)
    }

    /// Return the pages of all LUNs; pages of the planes of a LUN count once.
    fn pages(&self) -> u128 {
        u128::from(self.blocks()) * u128::from(self.geometry.pages_per_block)
    }

    /// Return the bytes of a page of all planes.
    fn page_bytes(&self) -> u64 {
        let part = &self.geometry;
        u64::from(part.planes * part.sectors_per_page) * u64::from(part.sector_bytes)
    }

    /// Check that the clock can hold the device's operations; see `config/checks.rs`.
    fn check_times(&self, source: &str) -> Result<()> {
        let (media, controller) = (&self.media, &self.controller);
        let wide = u128::from;
        let transfer =
            wide(self.page_bytes()) * 1_000_000_000 / wide(controller.channel_bytes_per_s);
        let program = media.program_low_ns.max(media.program_high_ns).max(media.program_quick_ns);
        let spread = wide(media.lun_spread_permille);
        let slowest = |ns: u64| wide(ns) * (1000 + spread) / 1000;
        let threads = [
            controller.queue_thread_ns,
            controller.submission_thread_ns,
            controller.media_completion_thread_ns,
            controller.host_completion_thread_ns,
            controller.lun_switch_ns,
        ];
        let a_page = (slowest(media.read_ns) + transfer) * (1 + wide(media.retries_max))
            + 2 * slowest(program)
            + transfer
            + threads.into_iter().map(wide).sum::<u128>();
        let steps =
            wide(self.reliability.erase_step_ns) * u128::from(self.reliability.erase_steps_max);
        let a_block = slowest(media.erase_ns) + steps * (1000 + spread) / 1000;
        let takes =
            self.pages().saturating_mul(a_page) + u128::from(self.blocks()).saturating_mul(a_block);
        if takes <= u128::from(PASS_MAX_NS) {
            return Ok(());
        }
        let years = |ns: u128| ns / u128::from(YEAR_NS);
        Err(Error::usage("The times of the device do not fit its clock")
            .at(source)
            .got(format!(
                "{} years to read, program and erase everything once: up to {a_page} ns a page, \
                 {a_block} ns a block",
                years(takes)
            ))
            .allowed(format!("up to {} years", years(PASS_MAX_NS.into())))
            .action("lower the times, raise the rates, or simulate fewer pages"))
    }
}

// The table `[failures]`: failures other than wear, and read retries.

parameters! {
    /// The table `[failures]`.
    #[derive(Clone, PartialEq, Debug)]
    pub struct FailuresPart {
        retry_gain: f64 = "above 0, up to 1",
            "RBER of a read retry, relative to that of the previous read; 1, and without the \
             table: an uncorrectable read is lost";
        factory_bad_share: f64 = "0 up to, not including, 1",
            "share of blocks that are bad from the factory, and retired";
        program_failures: f64 = "0 up to, not including, 1",
            "probability that a write of a page fails on a block at its rated erases; \
             proportional to erases";
        erase_failures: f64 = "0 up to, not including, 1",
            "probability that an erase fails on a block at its rated erases, which is then \
             retired; proportional to erases";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read_disturb_doubling: Option<u32> =
            "1 or more; without the key reads disturb nothing" in "pages",
            "page reads of a block after its erase, retries included, that double its errors";
    }
}

// The flash of a profile, and its wear.

/// Pages per MLC cell; the second is worse.
const PAGES_OF_A_CELL: u32 = 2;

impl OpenChannelProfile {
    /// Return the wear laws of this device's sectors.
    pub(super) fn laws(&self) -> Result<Reliability> {
        Reliability::new(&self.reliability, self.geometry.sector_bytes)
    }

    /// Return the geometry as the flash tables use it. Planes of a LUN work together, so a block
    /// spans all planes; a page is a sector, the smallest readable unit.
    pub(super) fn flash_geometry(&self) -> Geometry {
        let part = self.geometry();
        let blocks = part.luns() * part.blocks_per_plane;
        let shape = Shape {
            channels: part.channels,
            planes: part.luns(),
            blocks_per_plane: part.blocks_per_plane,
            pages_per_block: part.pages_per_block * part.write_sectors(),
            metadata_pages: 0,
            page_bytes: part.sector_bytes,
            logical_pages: blocks * part.pages_per_block * part.write_sectors(),
        };
        Geometry::from(shape).with_units(part.write_sectors())
    }

    /// Create the flash with every block erased.
    ///
    /// # Errors
    /// Numbers that make no wear law.
    pub(super) fn flash(&self) -> Result<Flash> {
        let geometry = self.flash_geometry();
        let blocks = geometry.blocks();
        let failures = self.failures.as_ref();
        let seed = self.state.seed;
        let options = WearOutOptions {
            seed,
            cycles_before: self.state.erases,
            rated_cycles: self.reliability.rated_cycles,
            pages_of_a_cell: PAGES_OF_A_CELL,
            grain: Grain { quality: self.geometry.sectors_per_page, read: 1 },
            data_age_ns: 0,
            read_retries: self.media.retries_max as u32,
            retry_gain: failures.map_or(1.0, |part| part.retry_gain),
            program_failures: failures.map_or(0.0, |part| part.program_failures),
            erase_failures: failures.map_or(0.0, |part| part.erase_failures),
            // Only failed blocks are retired.
            retire_rber: 0.5,
        };
        let ages = self.reliability.retention_doubling_s > 0.0;
        let doubling = failures.and_then(|part| part.read_disturb_doubling);
        let mut wear_out = WearOut::new(self.laws()?, geometry, options);
        if ages || doubling.is_some() {
            wear_out = wear_out.with_history(BlockHistory::new(blocks, ages, doubling));
        }
        let share = chance(failures.map_or(0.0, |part| part.factory_bad_share));
        let is_bad = |block: &BlockIdx| WearOut::is_factory_bad(seed, share, *block);
        let bad: Vec<BlockIdx> = (0..blocks).map(BlockIdx).filter(is_bad).collect();
        Ok(Flash::new(geometry, PageOrder::Ascending).with_wear(wear_out, &bad, false))
    }
}
