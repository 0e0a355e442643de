//! Profiles of open-channel devices: a schema of their own, without FTL, garbage collection or
//! cache.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use uflip_core::{Error, FlashGeometry, Result, SECTOR_BYTES_MIN};

use super::ThreadTimes;
use crate::config::keys::InvalidKey;
use crate::config::overrides::{check_interface, interface_of, source_of, with_overrides};
use crate::config::{CAPACITY_MAX, PAGES_MAX, PASS_MAX_NS, YEAR_NS, keys, read_toml};
use crate::flash::geometry::{BlockIdx, Geometry, Shape};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::flash::reliability::{Reliability, ReliabilityPart};
use crate::flash::wear_out::{BlockHistory, Grain, WearOut, WearOutOptions, chance};
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

/// Numbers and sizes of the flash.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct OpenChannelGeometryPart {
    pub channels: u32,
    pub luns_per_channel: u32,
    pub planes: u32,
    pub blocks_per_plane: u32,
    pub pages_per_block: u32,
    pub sectors_per_page: u32,
    pub sector_bytes: u32,
    pub vector_max: u32,
}

/// The flash chips.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct MediaPart {
    pub read_ns: u64,
    /// Even pages of a block: the low pages of their cells.
    pub program_low_ns: u64,
    /// Odd pages: the high pages.
    pub program_high_ns: u64,
    /// One low page in this number, on average, takes `program_quick_ns` instead; 0: none.
    pub quick_low_pages: u32,
    pub program_quick_ns: u64,
    /// Spread of the program times of different pages, up and down.
    pub program_spread_permille: u64,
    pub erase_ns: u64,
    /// Probability of a read retry after a wait for a program of its LUN, and the maximum number of
    /// retries.
    pub retry_permille: u64,
    pub retries_max: u64,
}

/// Channels and threads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ControllerPart {
    /// Rate of a page over a channel and through the ECC.
    pub channel_bytes_per_s: u64,
    /// Delay before a write if the channel's previous write went to another LUN.
    pub lun_switch_ns: u64,
    pub write_back: bool,
    /// Threads of OX. For each page: from the host's queue (one path for all channels), and to the
    /// media (one per channel). For each command: back from the media, and to the host.
    pub queue_thread_ns: u64,
    pub submission_thread_ns: u64,
    pub media_completion_thread_ns: u64,
    pub host_completion_thread_ns: u64,
}

/// The initial state of the device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct OpenChannelStatePart {
    /// Earlier erases of every block.
    pub erases: u32,
    pub seed: u64,
}

/// Maximum number of blocks; each takes a few dozen bytes, so this number fits into any memory.
const BLOCKS_MAX: u64 = 1 << 24;
/// Memory per block, with a margin [bytes].
const BLOCK_MEMORY_BYTES: u64 = 64;

impl OpenChannelProfile {
    /// The page that documents its keys.
    pub(crate) const PAGE: &str = "docs/reference/open-channel-profiles.md";

    /// Read a profile from the text of `source`, and apply `overrides` (a JSON object).
    ///
    /// # Errors
    /// Not TOML, an unknown or missing key, an invalid value, an override of an unknown key.
    pub fn parse(text: &str, source: &str, overrides: &str) -> Result<OpenChannelProfile> {
        check_interface(interface_of(text, source)?, "open_channel", source)?;
        let written: OpenChannelProfile = read_toml(text, source, Self::PAGE)?;
        let profile = with_overrides(&written, &keys::OPEN_CHANNEL, overrides, source)?;
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
        keys::OPEN_CHANNEL.invalid_keys(self)
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
        let threads = [
            controller.queue_thread_ns,
            controller.submission_thread_ns,
            controller.media_completion_thread_ns,
            controller.host_completion_thread_ns,
            controller.lun_switch_ns,
        ];
        let a_page = (wide(media.read_ns) + transfer) * (1 + wide(media.retries_max))
            + 2 * wide(program)
            + transfer
            + threads.into_iter().map(wide).sum::<u128>();
        let steps =
            wide(self.reliability.erase_step_ns) * u128::from(self.reliability.erase_steps_max);
        let a_block = wide(media.erase_ns) + steps;
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

/// The table `[failures]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/open-channel-profiles.md
pub struct FailuresPart {
    /// RBER of a read retry, relative to the read before.
    pub retry_gain: f64,
    /// Share of factory bad blocks.
    pub factory_bad_share: f64,
    /// Failure probabilities of a block at its rated erases; they grow in proportion to erases.
    pub program_failures: f64,
    pub erase_failures: f64,
    /// Reads of pages of a block since its erase that double its errors; none: no read disturb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_disturb_doubling: Option<u32>,
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
