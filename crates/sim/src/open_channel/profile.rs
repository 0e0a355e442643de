//! An open-channel device as plain data: a schema of its own, without FTL, collection or cache.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use uflip_core::{Error, FlashGeometry, Result, SECTOR_BYTES_MIN};

use super::failures::FailuresPart;
use super::threads::ThreadTimes;
use crate::config::keys::{self, Misfit};
use crate::config::overrides::{check_interface, interface_of, place_of, with_overrides};
use crate::config::text::read_toml;
use crate::config::{CAPACITY_MAX, PAGES_MAX, PASS_MAX_NS, YEAR_NS};
use crate::flash::reliability::ReliabilityPart;
use crate::timeline::Timing;

/// Everything that a simulated open-channel device is made of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/open-channel-profiles.md
pub struct OpenChannelProfile {
    /// `open_channel`: what tells it from a profile of a block device.
    pub interface: String,
    pub description: String,
    pub geometry: GeometryPart,
    pub media: MediaPart,
    pub controller: ControllerPart,
    pub reliability: ReliabilityPart,
    /// What else fails; none: nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailuresPart>,
    pub state: StatePart,
    /// Where all this comes from: no part of the device, and read by [`crate::config::sources`].
    #[serde(default, skip_serializing)]
    sources: IgnoredAny,
}

/// How many of what, and how large.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct GeometryPart {
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
    /// Odd pages: the high ones.
    pub program_high_ns: u64,
    /// One low page in so many, on average, takes `program_quick_ns` instead; 0: none.
    pub quick_low_pages: u32,
    pub program_quick_ns: u64,
    /// Programs of different pages differ by up to so much up and down.
    pub program_spread_permille: u64,
    pub erase_ns: u64,
    /// A read that had to wait for a program of its LUN is read again with this chance, and again, up
    /// to so many times.
    pub retry_permille: u64,
    pub retries_max: u64,
}

/// Channels and threads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ControllerPart {
    /// A page over a channel and through the ECC.
    pub channel_bytes_per_s: u64,
    /// Before a write, where the channel's write before went to another LUN.
    pub lun_switch_ns: u64,
    pub write_back: bool,
    /// Threads of OX, a page each: from the host's queue (one path for all channels), to the media
    /// (one a channel); and back from the media and to the host, a command each.
    pub queue_thread_ns: u64,
    pub submission_thread_ns: u64,
    pub media_completion_thread_ns: u64,
    pub host_completion_thread_ns: u64,
}

/// How the device is handed over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct StatePart {
    /// Erases that every block has behind it.
    pub erases: u32,
    pub seed: u64,
}

/// Blocks are a few dozen bytes each; so many fit anywhere.
const BLOCKS_MAX: u64 = 1 << 24;
/// What one of them takes, and some to spare [bytes].
const BLOCK_MEMORY_BYTES: u64 = 64;

impl OpenChannelProfile {
    /// Where its keys are explained.
    pub(crate) const PAGE: &str = "docs/reference/open-channel-profiles.md";

    /// Read a profile from the text of `source` and change what `overrides` (a JSON object) says.
    ///
    /// # Errors
    /// Not TOML, an unknown or missing key, a value that makes no device, an override of an unknown key.
    pub fn parse(text: &str, source: &str, overrides: &str) -> Result<OpenChannelProfile> {
        check_interface(interface_of(text, source)?, "open_channel", source)?;
        let written: OpenChannelProfile = read_toml(text, source, Self::PAGE)?;
        let profile = with_overrides(&written, &keys::OPEN_CHANNEL, overrides, source)?;
        profile.check(source).map_err(|error| match written.check(source) {
            Ok(()) => error.at(place_of(overrides, source)),
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

    /// How long threads of the controller take.
    pub(crate) fn threads(&self) -> ThreadTimes {
        let part = &self.controller;
        ThreadTimes {
            submission_ns: part.queue_thread_ns,
            dispatch_ns: part.submission_thread_ns,
            completion_ns: part.media_completion_thread_ns + part.host_completion_thread_ns,
            lun_switch_ns: part.lun_switch_ns,
        }
    }

    /// How long the channel takes for a sector; a page is rounded down as a whole.
    pub(crate) fn timing(&self) -> Timing {
        let rate = self.controller.channel_bytes_per_s;
        let sector = u64::from(self.geometry.sector_bytes) * 1_000_000_000;
        Timing {
            // So many sectors take so many seconds as one has bytes.
            transfer_ns: sector,
            transfer_parts: rate,
            // Nothing goes over it.
            link_bytes_per_s: u64::MAX,
            ..Timing::default()
        }
    }

    /// Keys whose value alone makes no device.
    pub(crate) fn misfits(&self) -> Vec<Misfit> {
        keys::OPEN_CHANNEL.misfits(self)
    }

    pub(crate) fn check(&self, source: &str) -> Result<()> {
        if let Some(misfit) = self.misfits().into_iter().next() {
            return Err(misfit.error(source));
        }
        let part = &self.geometry;
        let bad = |key: &str, got: String, allowed: String| {
            let what = format!("Profile key '{key}' makes no device");
            Err(Error::usage(what).at(source).got(got).allowed(allowed).action("change it"))
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

    /// Its bytes can be counted, and its blocks fit into memory.
    fn check_size(&self, source: &str) -> Result<()> {
        let too_large = |got: String, allowed: String| {
            Error::usage("The geometry makes no device")
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

    /// What such a device takes in memory [bytes].
    pub(crate) fn memory_bytes(&self) -> u64 {
        BLOCK_MEMORY_BYTES * self.blocks()
    }

    /// Blocks of all LUNs.
    fn blocks(&self) -> u64 {
        let part = &self.geometry;
        u64::from(part.channels)
            * u64::from(part.luns_per_channel)
            * u64::from(part.blocks_per_plane)
    }

    /// Pages of all LUNs, those of the planes of one together.
    fn pages(&self) -> u128 {
        u128::from(self.blocks()) * u128::from(self.geometry.pages_per_block)
    }

    /// A page of all planes.
    fn page_bytes(&self) -> u64 {
        let part = &self.geometry;
        u64::from(part.planes * part.sectors_per_page) * u64::from(part.sector_bytes)
    }

    /// The clock must hold what a device does; see `config/limits.rs`.
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
