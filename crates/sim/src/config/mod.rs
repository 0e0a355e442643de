//! Profiles: simulated devices as plain data (TOML with every number named), checked before any
//! work.

mod build;
mod checks;
mod controller;
pub(crate) mod ftl;
mod geometry;
pub(crate) mod keys;
pub(crate) mod overrides;
pub(crate) mod reader;
pub(crate) mod sources;
mod wear;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uflip_core::{Error, Result};

use crate::config::overrides::{check_interface, interface_of, source_of, with_overrides};
use crate::flash::reliability::ReliabilityPart;
use crate::ftl::{HotColdPart, MappingPart, Tables, with_tables};
use crate::timeline::DieQueue;
pub(crate) use checks::{
    CAPACITY_MAX, CLOCK_END_NS, PAGES_MAX, PASS_MAX_NS, YEAR_NS, clock_overflow,
};
pub(crate) use controller::InterruptsPart;
pub use geometry::GeometryPart;
use reader::{error_of, line_of, parse_tree, read};
use sources::read_sources;
pub use wear::{PowerLossPart, RecoveryPart};

macro_rules! profile {
    ($($(#[$only:meta])? $table:ident: $part:ty),+ $(,)?) => {
        /// A profile: the complete description of a simulated device.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
        pub struct Profile {
            pub description: String,
            pub geometry: GeometryPart,
            pub timing: TimingPart,
            /// Present if the firmware has descriptor rings.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub rings: Option<controller::RingsPart>,
            /// Present if chips suspend programs or erases for reads.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub suspend: Option<controller::SuspendPart>,
            /// Present if the host has several queues, or is notified of completions later.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub host_queues: Option<controller::HostQueuesPart>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub interrupts: Option<controller::InterruptsPart>,
            pub ftl: FtlPart,
            /// Present for page-mapped FTLs only.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gc: Option<GcPart>,
            /// Tables of merging FTLs: at most one is present.
            $(
                $(#[$only])?
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $table: Option<$part>,
            )+
            /// Present if a page map is kept on flash.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub mapping: Option<MappingPart>,
            /// Present if a page map with two write streams detects hot and cold pages itself.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub hot_cold: Option<HotColdPart>,
            /// Present if a page map programs one bit per cell first.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub slc_cache: Option<ftl::SlcPart>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub zones: Option<crate::ftl::ZonesPart>,
            /// Both are present if flash wears out; otherwise neither.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub reliability: Option<ReliabilityPart>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub recovery: Option<RecoveryPart>,
            /// May be present if flash wears out.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub block_history: Option<wear::BlockHistoryPart>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub power_loss: Option<PowerLossPart>,
            pub wear: WearPart,
            pub cache: CachePart,
            pub state: StatePart,
            /// Sources of the values: not part of the device; read by [`crate::config::sources`].
            #[serde(default, skip_serializing)]
            sources: IgnoredAny,
        }

        impl Profile {
            /// Return its tables of merging FTLs.
            pub(crate) fn tables(&self) -> Tables {
                Tables { $($(#[$only])? $table: self.$table.clone()),+ }
            }
        }
    };
}
with_tables!(profile);

/// Times and rates.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct TimingPart {
    /// The first of the pages that share cells (LSB).
    pub read_ns: u64,
    pub program_ns: u64,
    /// The last of them (MSB).
    pub program_high_ns: u64,
    /// Pages that share cells; default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_per_cell: Option<u32>,
    /// Those between the first and the last (CSB); default as the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_middle_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_middle_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_high_ns: Option<u64>,
    pub erase_ns: u64,
    pub channel_bytes_per_s: u64,
    /// Internal buses between channels and memory; 0: none.
    pub buses: u32,
    pub bus_bytes_per_s: u64,
    pub link_bytes_per_s: u64,
    /// Processor time of a host read, a host write, a relocated page and a collected block; the
    /// processor does one at a time.
    pub command_read_ns: u64,
    pub command_write_ns: u64,
    pub relocate_ns: u64,
    pub collect_ns: u64,
    /// Additional latency, during which the processor continues with other work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_read_latency_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_write_latency_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocate_latency_ns: Option<u64>,
    /// Set-up time of every page that crosses a bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_read_setup_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_write_setup_ns: Option<u64>,
    /// Memory at the end of all buses; default: never the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_per_s: Option<u64>,
    /// Priority of waiting operations of a die; default FIFO.
    #[serde(default)]
    pub die_queue: DieQueue,
    /// Additional time of a read that is not sequential to the last one: its map entries are loaded.
    #[serde(default)]
    pub seek_read_ns: u64,
    /// A host write completes when its data is in the registers of the dies, which accept the next
    /// page while one is programmed.
    #[serde(default)]
    pub cache_program: bool,
    /// Of a flash page read, only the requested part crosses the channel: mapping units if these
    /// are smaller, otherwise sectors.
    #[serde(default)]
    pub partial_transfer: bool,
    /// Host commands that run at once; 0 (default): unlimited.
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
    /// Mapping unit; default: a flash page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping_unit_bytes: Option<u32>,
    /// Host write streams that share no block; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_streams: Option<u32>,
    /// Concurrent merges of an FTL that merges in the host's path; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merges_side_by_side: Option<u32>,
    /// Present for page-mapped FTLs only.
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
    /// Free blocks per die that idle-time collection works towards; 0: no idle-time collection.
    pub idle_free_blocks: u32,
    pub relocation: Relocation,
    pub copy_back: bool,
    /// Relocated pages fill separate blocks.
    pub separate_streams: bool,
    /// OFC figure 5(a): minimum number of moved pages of a victim, valid or not; 0: the valid
    /// pages.
    pub relocate_at_least: u32,
    /// The same figure with exactly this number of pages; further valid data is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocate_exactly: Option<u32>,
    /// Concurrent collections on the dies of a channel; default: one per die.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections_per_channel: Option<u32>,
    /// Concurrent page moves of a block; default 1.
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
    /// Start to move the least-worn block when another of its die has this many more erases; 0:
    /// never.
    pub static_wear_threshold: u32,
}

/// The volatile write-back cache.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct CachePart {
    /// 0: writes go straight to flash.
    pub write_cache_bytes: u64,
    pub flush: FlushPolicy,
}

/// The condition for writing a cached page to flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(rename = "Flush")]
pub enum FlushPolicy {
    /// At once: the cache only hides the time of the program.
    Eager,
    /// When its cache slot is needed, or the host is idle.
    WhenNeeded,
}

/// The initial state of the device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct StatePart {
    pub state: InitialState,
    /// Amount of random writes in device sizes; with `random` they follow a sequential fill.
    pub random_overwrites: f64,
    pub seed: u64,
}

/// The planes that take relocated pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Relocation {
    /// Round-robin over the dies, like host pages (OFC §IV.C).
    Allocator,
    /// To the same die.
    SameDie,
}

/// The initial state of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
#[serde(rename = "State")]
pub enum InitialState {
    /// As from the factory.
    Empty,
    /// Every logical page written once, in order.
    Sequential,
    /// uFLIP §4.1: random writes of random size over the whole device.
    Random,
    /// Single pages written at random to an empty device: some were never written.
    Scattered,
}

impl Profile {
    /// The page that documents its keys.
    pub(crate) const PAGE: &str = "docs/reference/profiles.md";

    /// Read a profile from the text of `source`, and apply `overrides` (a JSON object).
    ///
    /// # Errors
    /// Not TOML; unknown or missing keys (all, with their lines); an invalid value; an override of
    /// an unknown key.
    pub fn parse(text: &str, source: &str, overrides: &str) -> Result<Profile> {
        check_interface(interface_of(text, source)?, "block", source)?;
        let written: Profile = read_toml(text, source, Profile::PAGE)?;
        let profile = with_overrides(&written, &keys::BLOCK, overrides, source)?;
        // If the file alone is valid, the error is due to the overrides.
        profile.check(source).map_err(|error| match written.check(source) {
            Ok(()) => error.at(source_of(overrides, source)),
            Err(_) => error,
        })?;
        Ok(profile)
    }
}

// Reading profiles and other TOML; errors name the line.

/// Read a profile from the text of `source`; `page` documents its keys.
///
/// # Errors
/// Not TOML; or all keys that are unknown, missing or of the wrong kind, with lines and allowed
/// values, and the errors of [`sources`].
pub(crate) fn read_toml<P: DeserializeOwned>(text: &str, source: &str, page: &str) -> Result<P> {
    let root = parse_tree(text, source, page)?;
    let profile = read(&root);
    let faults = [profile.as_ref().err().cloned(), read_sources(&root).err()];
    match (profile, faults.into_iter().flatten().flatten().collect::<Vec<_>>()) {
        (Ok(profile), faults) if faults.is_empty() => Ok(profile),
        (_, mut faults) => {
            faults.sort_by_key(|fault| fault.line);
            Err(error_of(&faults, source, page))
        }
    }
}

/// Convert any TOML to JSON: strings, 64-bit integers, finite numbers, booleans, lists and tables.
///
/// # Errors
/// Not TOML; nested too deeply; a date or time, NaN or infinity.
pub fn toml_to_json(text: &str) -> Result<String> {
    let wrong = |got: String| {
        let wrong = Error::usage("The text cannot be read").at("the text").got(got);
        wrong.allowed("TOML of texts, numbers, true and false, lists, tables").action("correct it")
    };
    let table = text.parse::<toml::Table>().map_err(|error| {
        wrong(format!("not TOML: line {}: {}", line_of(text, &error), error.message().trim()))
    })?;
    let plain = json_of(toml::Value::Table(table)).map_err(wrong)?;
    Ok(plain.to_string())
}

/// Convert a value to JSON, or describe a value that JSON lacks.
fn json_of(value: toml::Value) -> std::result::Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) if number.is_finite() => Value::from(number),
        toml::Value::Float(number) => return Err(format!("{number}, which is not a number")),
        toml::Value::Boolean(truth) => Value::Bool(truth),
        toml::Value::Datetime(time) => return Err(format!("{time}, a date or a time")),
        toml::Value::Array(parts) => {
            parts.into_iter().map(json_of).collect::<std::result::Result<_, _>>()?
        }
        toml::Value::Table(table) => {
            let pairs = table.into_iter().map(|(key, value)| Ok((key, json_of(value)?)));
            Value::Object(pairs.collect::<std::result::Result<_, String>>()?)
        }
    })
}
