//! Profiles: simulated devices as plain data (TOML with every number named), checked before any
//! work.

mod build;
mod checks;
mod controller;
pub(crate) mod ftl;
mod geometry;
pub(crate) mod overrides;
pub(crate) mod reader;
pub(crate) mod sources;
mod wear;

use std::sync::LazyLock;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uflip_core::{Error, Result};

use crate::config::overrides::{check_interface, interface_of, source_of, with_overrides};
use crate::flash::reliability::ReliabilityPart;
use crate::ftl::{HotColdPart, MappingPart, Tables, with_tables};
use crate::keys::{KeyTables, Keys, parameters};
use crate::timeline::DieQueue;
use crate::timeline::energy::EnergyPart;
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
            /// Present if the device accounts for energy.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub energy: Option<EnergyPart>,
            pub wear: WearPart,
            pub cache: CachePart,
            pub state: StatePart,
            /// Sources of the values: not part of the device; read by [`crate::config::sources`].
            #[serde(default, skip_serializing)]
            sources: IgnoredAny,
        }

        impl Profile {
            /// Its tables and their keys.
            pub(crate) const TABLES: KeyTables = &[
                ("geometry", GeometryPart::KEYS),
                ("timing", TimingPart::KEYS),
                ("rings", controller::RingsPart::KEYS),
                ("host_queues", controller::HostQueuesPart::KEYS),
                ("interrupts", InterruptsPart::KEYS),
                ("suspend", controller::SuspendPart::KEYS),
                ("ftl", FtlPart::KEYS),
                ("gc", GcPart::KEYS),
                $($(#[$only])? (stringify!($table), <$part>::KEYS),)+
                ("hot_cold", HotColdPart::KEYS),
                ("slc_cache", ftl::SlcPart::KEYS),
                ("zones", crate::ftl::ZonesPart::KEYS),
                ("power_loss", PowerLossPart::KEYS),
                ("mapping", MappingPart::KEYS),
                ("reliability", ReliabilityPart::KEYS),
                ("recovery", RecoveryPart::KEYS),
                ("block_history", wear::BlockHistoryPart::KEYS),
                ("energy", EnergyPart::KEYS),
                ("wear", WearPart::KEYS),
                ("cache", CachePart::KEYS),
                ("state", StatePart::KEYS),
            ];

            /// Return its tables of merging FTLs.
            pub(crate) fn tables(&self) -> Tables {
                Tables { $($(#[$only])? $table: self.$table.clone()),+ }
            }
        }
    };
}
with_tables!(profile);

/// The keys of block devices.
pub(crate) static BLOCK: LazyLock<Keys> = LazyLock::new(|| Keys::new(Profile::TABLES));

parameters! {
    /// Times and rates.
    #[derive(Clone, PartialEq, Debug)]
    pub struct TimingPart {
        read_ns: u64 = "0 or more" in "ns",
            "reading a page from the cells; the first of the pages that share cells (LSB)";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read_middle_ns: Option<u64> =
            "0 or more; as `read_ns` without the key; only with `bits_per_cell` from 3" in "ns",
            "the same for those between the first and the last of the pages that share cells \
             (CSB)";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read_high_ns: Option<u64> =
            "0 or more; as `read_ns` without the key; not with `bits_per_cell` 1" in "ns",
            "the same for the last of them (MSB)";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bits_per_cell: Option<u32> = "1 to 4, SLC to QLC; 2 without the key",
            "number of neighbouring pages of a block that share cells, each with its own read \
             and program time. Without effect if all take the same time";
        program_ns: u64 = "0 or more" in "ns",
            "programming a page; the first of the pages that share cells (LSB)";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program_middle_ns: Option<u64> =
            "0 or more; as `program_ns` without the key; only with `bits_per_cell` from 3" in "ns",
            "the same for those between the first and the last of the pages that share cells \
             (CSB)";
        program_high_ns: u64 = "0 or more" in "ns",
            "programming the last of the pages that share cells (MSB); for SLC the same as \
             `program_ns`";
        erase_ns: u64 = "0 or more" in "ns",
            "erasing a block";
        channel_bytes_per_s: u64 = "1 or more" in "bytes/s",
            "rate of a channel";
        // Bounded so that unused buses need little memory.
        buses: u32 = "0 to 65536; those beyond the channels carry nothing",
            "internal buses between channels and the controller's memory; 0: no limit by buses. \
             Channel c uses bus c mod `buses`";
        bus_bytes_per_s: u64 = "1 or more" in "bytes/s",
            "rate of an internal bus; without effect where `buses` is 0";
        link_bytes_per_s: u64 = "1 or more" in "bytes/s",
            "rate of the host link";
        command_read_ns: u64 = "0 or more" in "ns",
            "time for which a read occupies the controller's processor";
        command_write_ns: u64 = "0 or more" in "ns",
            "the same for a write";
        relocate_ns: u64 = "0 or more" in "ns",
            "processor time to plan the relocation of a page";
        collect_ns: u64 = "0 or more" in "ns",
            "processor time to plan the collection of a block; other than 0 for `page_map` and \
             `dftl` only";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_read_latency_ns: Option<u64> = "0 or more; 0 without the key" in "ns",
            "additional latency of a read in the processor, which handles the next command \
             meanwhile: it is [pipelined](../explanation/controller.md)";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_write_latency_ns: Option<u64> = "0 or more; 0 without the key" in "ns",
            "the same for a write";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        relocate_latency_ns: Option<u64> =
            "0 or more; 0 without the key; for `page_map` and `dftl` only" in "ns",
            "the same for the relocation of a page, beyond `relocate_ns`";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bus_read_setup_ns: Option<u64> = "0 or more; 0 without the key; only with `buses`" in "ns",
            "set-up time of the internal bus for each page that was read";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bus_write_setup_ns: Option<u64> = "0 or more; 0 without the key; only with `buses`" in "ns",
            "the same for each page that is programmed";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory_bytes_per_s: Option<u64> =
            "1 or more; without the key memory is no bottleneck; only with `buses`" in "bytes/s",
            "rate of the controller's memory at the end of all internal buses";
        #[serde(default)]
        seek_read_ns: u64 = "0 or more; 0 without the key" in "ns",
            "additional time of a read that does not continue the previous one: its part of the \
             map is loaded";
        #[serde(default)]
        cache_program: bool = "`true`, `false`; `false` without the key",
            "a host write completes when its data is in the registers of the dies; each die \
             takes the next page while it programs one";
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cache_read: bool = "`true`, `false`; `false` without the key; only with `die_queue` `fifo`",
            "each die reads the next page for the host from its cells while it transfers the last \
             one (ONFI: read cache). Of n pages of a die, all but the first take the longer of \
             both times. Time of the cells during the transfer before counts as a wait for it";
        #[serde(default)]
        partial_transfer: bool = "`true`, `false`; `false` without the key",
            "channel, bus and memory transfer only the part of a flash page that the host reads, \
             with its share of the spare area: whole sectors; with `mapping_unit_bytes` whole \
             units. Pages that are read to be modified or relocated, and pages of the map, are \
             transferred whole; with mapping units, only their valid units. `false`: whole pages";
        #[serde(default)]
        commands_at_once: u32 = "0 or more; 0 without the key",
            "host commands that are executed at once; others wait in the interface \
             (`controller_ns`). 0: no limit. 1: PATA, SATA and USB without queued commands";
        #[serde(default)]
        die_queue: DieQueue = "`fifo`, `collection_first`, `reads_first`",
            "the order of operations that wait for a die: first come, first served (the default; \
             OFC as built, §III), relocations and erases before host I/Os, or host reads before \
             everything else and then host writes (both proposed in OFC §VI); merges count as \
             relocations";
    }
}

parameters! {
    /// The translation layer.
    #[derive(Clone, PartialEq, Debug)]
    pub struct FtlPart {
        ftl: String = "see below",
            "flash translation layer";
        spare_factor: f64 = "below 1; the least value is in the error message",
            "(S_P − S_L) / S_P: share of the flash that the host cannot address (OFC §V.C). The \
             capacity is rounded down to whole MiB, or to whole pages below 64 MiB of flash";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mapping_unit_bytes: Option<u32> =
            "whole sectors, at most 64 units per page; `page_bytes` without the key; for \
             `page_map` and `zoned` only; the latter has sectors of that size" in "bytes",
            "granularity of the map: units of several writes are gathered into one program of a \
             flash page, and relocated units are packed with others. Counters then count units";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compression_unit_bytes: Option<u32> =
            "whole mapping units, 2 to 64 of them; no compression without the key; for `page_map` only" in "bytes",
            "data that is compressed as a whole (OFC §VI). It takes as many mapping units as its \
             compressed size needs, by `compress_percent` of the pattern; units of several \
             writes share a flash page. Needs `mapping_unit_bytes`";
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deduplicates: bool = "`true`, `false`; `false` without the key; for `page_map` only",
            "duplicates (`duplicate_percent` of the pattern) are not stored; a duplicate is a \
             compression unit, or without compression a mapping unit";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write_streams: Option<u32> = "1 to 16; 1 without the key; for `page_map` only",
            "streams of host writes that share no block: those of NVMe's streams directive, and \
             the reclaim unit handles of its flexible data placement (FDP), with a block of a \
             die as reclaim unit. A write names one (`write_stream` of a pattern); relocated \
             pages of a stream fill another block of that stream (*persistently isolated*), or \
             with `separate_streams` one block for the relocated pages of all streams \
             (*initially isolated*)";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        merges_side_by_side: Option<u32> = "1 or more, for FTLs that merge; 1 without the key",
            "writes that merge at the same time, if they have no block in common; the others wait";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allocator: Option<String> = "see below",
            "the die of the next host page; for `page_map` and `dftl` only";
    }
}

parameters! {
    /// Garbage collection.
    #[derive(Clone, PartialEq, Debug)]
    pub struct GcPart {
        gc: String = "see below",
            "victim policy: the block to collect next";
        reserved_blocks: u32 = "1 or more" in "blocks",
            "free blocks that every die reserves for relocated pages; collection begins when no \
             more are left";
        idle_free_blocks: u32 = "0, or more than `reserved_blocks`" in "blocks",
            "target of free blocks per die for collection in idle time; 0: none in idle time";
        relocation: Relocation = "`allocator`, `same_die`",
            "relocated pages are distributed over the dies like host pages, or stay on their die";
        copy_back: bool = "`true`, `false`",
            "relocated pages never leave their die and use no channel; only with `same_die`";
        separate_streams: bool = "`true`, `false`",
            "relocated pages fill blocks of their own, separate from host writes; [what that is \
             worth](#relocated-pages-and-host-pages). With several `write_streams` they always \
             do: one block for the relocated pages of all streams (`true`), or one for each \
             stream (`false`)";
        relocate_at_least: u32 = "0 up to, not including, the data pages of a block" in "pages",
            "minimum number of pages to relocate from a victim, even if fewer are valid (OFC \
             Figure 5a); 0: the valid pages, and always with `[power_loss]`";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        relocate_exactly: Option<u32> = "0 up to a block's data pages less one" in "pages",
            "optional, and not in the built-in profiles. Number of pages to relocate from a \
             victim, however many are valid; the data of the other valid pages is lost: an \
             artificial load for OFC Figure 5a only";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        collections_per_channel: Option<u32> =
            "1 or more; without the key each die collects a block at a time",
            "blocks that are collected at the same time on the dies of a channel; OFC measured \
             \"single-block, per-channel garbage collection\" (§VI). A die never collects two at \
             once";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        relocations_at_once: Option<u32> =
            "1 or more; 1 without the key; 1 with `mapping_unit_bytes`",
            "pages of a collected block that are relocated at the same time";
    }
}

parameters! {
    /// Wear levelling.
    #[derive(Clone, PartialEq, Debug)]
    pub struct WearPart {
        dynamic_wear_levelling: bool = "`true`, `false`",
            "fill the least-worn free block of a die next, instead of the one erased longest \
             ago; an FTL that merges uses it instead of the block that it requested; `false` \
             with `zoned`";
        static_wear_threshold: u32 = "0 or more" in "erases",
            "difference of erases between two blocks of a die from which static wear levelling \
             moves the least-worn block. It is a threshold and [no \
             bound](../explanation/reliability.md#wear-that-is-levelled) of that difference: a \
             die is checked once in every (blocks / 16) erases, and one block moves each time; \
             needs `dynamic_wear_levelling` to move little; 0: never";
    }
}

parameters! {
    /// The volatile write-back cache.
    #[derive(Clone, PartialEq, Debug)]
    pub struct CachePart {
        write_cache_bytes: u64 =
            "0, or a page or more; then a page has 64 sectors at most" in "bytes",
            "a volatile write-back cache: a write completes when its data is in the cache; 0: \
             writes wait for the flash";
        flush: FlushPolicy = "`eager`, `when_needed`",
            "pages leave the cache at once, or when their space is needed or the host is idle; \
             without effect if there is no cache";
    }
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

parameters! {
    /// The initial state of the device.
    #[derive(Clone, PartialEq, Debug)]
    pub struct StatePart {
        state: InitialState = "see below",
            "the initial state of the device";
        random_overwrites: f64 = "0 to 100" in "device sizes",
            "amount of random writes; with `random`, after the first fill, and with `scattered`";
        seed: u64 = "0 or more",
            "seed of the random writes, and of randomized policies";
    }
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
        let profile = with_overrides(&written, &BLOCK, overrides, source)?;
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
