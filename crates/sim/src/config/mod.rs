//! A simulated device as plain data: TOML with every number named, checked before any work.

mod build;
mod cells;
mod checks;
mod controller;
pub(crate) mod faults;
mod geometry;
mod history;
mod host;
pub(crate) mod keys;
mod limits;
mod mapping;
pub(crate) mod merging;
pub(crate) mod overrides;
mod power_loss;
mod recovery;
mod slc;
pub(crate) mod sources;
mod streams;
mod suspend;
pub(crate) mod text;
pub(crate) mod tree;
mod units;
mod zones;

pub use geometry::GeometryPart;
pub(crate) use host::InterruptsPart;
pub(crate) use limits::{
    CAPACITY_MAX, CLOCK_END_NS, PAGES_MAX, PASS_MAX_NS, YEAR_NS, clock_ran_out,
};
pub use power_loss::PowerLossPart;
pub use recovery::RecoveryPart;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use uflip_core::Result;

use crate::config::overrides::{check_interface, interface_of, place_of, with_overrides};
use crate::config::text::read_toml;
use crate::flash::reliability::ReliabilityPart;
use crate::ftl::{HotColdPart, MappingPart, Tables, with_tables};
use crate::timeline::DieQueue;

macro_rules! profile {
    ($($(#[$only:meta])? $table:ident: $part:ty),+ $(,)?) => {
        /// Everything that a simulated device is made of.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
        pub struct Profile {
            pub description: String,
            pub geometry: GeometryPart,
            pub timing: TimingPart,
            /// A controller whose firmware has rings of descriptors has it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub rings: Option<controller::RingsPart>,
            /// Chips that stop programs or erases for reads have it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub suspend: Option<suspend::SuspendPart>,
            /// A host with several queues has it, and one that hears of ends later.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub host_queues: Option<host::HostQueuesPart>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub interrupts: Option<host::InterruptsPart>,
            pub ftl: FtlPart,
            /// Page-mapped FTLs have it, merging ones do not.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gc: Option<GcPart>,
            /// FTLs that merge have one of these, or none.
            $(
                $(#[$only])?
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $table: Option<$part>,
            )+
            /// A page map that is kept on flash has it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub mapping: Option<MappingPart>,
            /// A page map with two streams of writes that tells them apart itself has it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub hot_cold: Option<HotColdPart>,
            /// A page map that programs one bit a cell first has it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub slc_cache: Option<slc::SlcPart>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub zones: Option<crate::ftl::ZonesPart>,
            /// Flash that wears out has both; other flash has neither.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub reliability: Option<ReliabilityPart>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub recovery: Option<RecoveryPart>,
            /// Flash that wears out may have it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub block_history: Option<history::BlockHistoryPart>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub power_loss: Option<PowerLossPart>,
            pub wear: WearPart,
            pub cache: CachePart,
            pub state: StatePart,
            /// Where all this comes from: no part of the device, and read by [`crate::config::sources`].
            #[serde(default, skip_serializing)]
            sources: IgnoredAny,
        }

        impl Profile {
            /// Its tables for FTLs that merge.
            pub(crate) fn tables(&self) -> Tables {
                Tables { $($(#[$only])? $table: self.$table.clone()),+ }
            }
        }
    };
}
with_tables!(profile);

/// How long things take.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct TimingPart {
    /// The first of the pages that share cells (LSB).
    pub read_ns: u64,
    pub program_ns: u64,
    /// The last of them (MSB).
    pub program_high_ns: u64,
    /// Pages that share cells; 2 where not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_per_cell: Option<u32>,
    /// Those between the first and the last (CSB); as the first where not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_middle_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_middle_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_high_ns: Option<u64>,
    pub erase_ns: u64,
    pub channel_bytes_per_s: u64,
    /// Internal buses between channels and memory; 0: none in the way.
    pub buses: u32,
    pub bus_bytes_per_s: u64,
    pub link_bytes_per_s: u64,
    /// The controller's processor, one thing at a time: for a host read, a host write, a relocated
    /// page, a collected block.
    pub command_read_ns: u64,
    pub command_write_ns: u64,
    pub relocate_ns: u64,
    pub collect_ns: u64,
    /// So much longer these take while the processor goes on with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_read_latency_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_write_latency_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocate_latency_ns: Option<u64>,
    /// For every page that goes over a bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_read_setup_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_write_setup_ns: Option<u64>,
    /// The memory at the end of all buses; as fast as they want it where not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_per_s: Option<u64>,
    /// Which of those that wait for a die it takes first; first come, first served where not said.
    #[serde(default)]
    pub die_queue: DieQueue,
    /// More for a read that does not go on where the last one ended: its part of the map is loaded.
    #[serde(default)]
    pub seek_read_ns: u64,
    /// A host write has ended when its data is in the registers of the dies, which take the next page
    /// while one is programmed.
    #[serde(default)]
    pub cache_program: bool,
    /// Of a flash page that is read only what is wanted goes over the channel: mapping units where these are
    /// smaller, sectors where they are not.
    #[serde(default)]
    pub partial_transfer: bool,
    /// Commands of the host that are carried out at once; 0, or not said: as many as it sends.
    #[serde(default)]
    pub commands_at_once: u32,
}

/// The translation layer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct FtlPart {
    pub ftl: String,
    /// (S_P − S_L) / S_P (OFC §V.C): the share of the flash that the host cannot address.
    pub spare_factor: f64,
    /// What the map counts in; a flash page where not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping_unit_bytes: Option<u32>,
    /// Streams of the host's writes that share no block; 1 where not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_streams: Option<u32>,
    /// Merges that go on at once of FTLs that merge in the host's path; 1 where not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merges_side_by_side: Option<u32>,
    /// Page-mapped FTLs have one, merging ones do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<String>,
}

/// Garbage collection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct GcPart {
    pub gc: String,
    pub reserved_blocks: u32,
    /// Free blocks a die that collection in idle time works towards; 0: none in idle time.
    pub idle_free_blocks: u32,
    pub relocation: Relocation,
    pub copy_back: bool,
    /// Relocated pages fill blocks of their own.
    pub separate_streams: bool,
    /// OFC figure 5(a): move so many pages of a victim whatever is valid; 0: what is valid.
    pub relocate_at_least: u32,
    /// The same figure with exactly so many pages, for which valid data is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocate_exactly: Option<u32>,
    /// Blocks that are collected at once on the dies of a channel; one on each die where not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections_per_channel: Option<u32>,
    /// Pages of a block that are moved at once; 1 where not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocations_at_once: Option<u32>,
}

/// Wear levelling.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct WearPart {
    /// Fill the least-worn free block next, instead of the one erased longest ago.
    pub dynamic_wear_levelling: bool,
    /// Begin to move the least-worn block when another of its die was erased so many times more; 0: never.
    pub static_wear_threshold: u32,
}

/// The volatile write-back cache.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct CachePart {
    /// 0: writes go straight to flash.
    pub write_cache_bytes: u64,
    pub flush: Flush,
}

/// When a page leaves the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// At once: the cache only hides the time of the program.
    Eager,
    /// When its place is needed, or the host is idle.
    WhenNeeded,
}

/// How the device is handed over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct StatePart {
    pub state: State,
    /// Device sizes written at random, with `random` after the first sequential fill.
    pub random_overwrites: f64,
    pub seed: u64,
}

/// Where relocated pages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Relocation {
    /// They take turns over the dies like host pages (OFC §IV.C).
    Allocator,
    /// They stay on their die.
    SameDie,
}

/// In which state a device is handed to its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum State {
    /// As it comes from the factory.
    Empty,
    /// Every logical page written once, in order.
    Sequential,
    /// uFLIP §4.1: random writes of random size over the whole device.
    Random,
    /// Single pages written at random over an empty device: some were never written.
    Scattered,
}

impl Profile {
    /// Where its keys are explained.
    pub(crate) const PAGE: &str = "docs/reference/profiles.md";

    /// Read a profile from the text of `source` and change what `overrides` (a JSON object) says.
    ///
    /// # Errors
    /// Not TOML, unknown or missing keys (all, with their lines), a value that makes no device, an
    /// override of an unknown key.
    pub fn parse(text: &str, source: &str, overrides: &str) -> Result<Profile> {
        check_interface(interface_of(text, source)?, "block", source)?;
        let written: Profile = read_toml(text, source, Profile::PAGE)?;
        let profile = with_overrides(&written, &keys::BLOCK, overrides, source)?;
        // What is wrong only with the overrides is wrong with them, and not with the file.
        profile.check(source).map_err(|error| match written.check(source) {
            Ok(()) => error.at(place_of(overrides, source)),
            Err(_) => error,
        })?;
        Ok(profile)
    }
}
