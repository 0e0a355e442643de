//! A simulated device as plain data: TOML with every number named, checked before any work.

mod mapping;
mod merging;

mod recovery;

pub use mapping::MappingPart;
pub use merging::{Compat, LinearPart, LogPart, StreamsPart, StripesPart};
pub use recovery::RecoveryPart;

use serde::{Deserialize, Serialize};
use uflip_core::{Error, Result, SECTOR_BYTES_MIN, format_bytes};

use crate::alloc::Allocator;
use crate::blocks::FreeOrder;
use crate::cache::{Flush, WriteCache};
use crate::clocks::Clocks;
use crate::device::AnyBackend;
use crate::ftl::{MERGING_FTLS, Merging, PageMap, PageMapOptions, RelocationLoad};
use crate::gc::Victims;
use crate::geometry::{Geometry, Shape};
use crate::merging::Merged;
use crate::nand::PageOrder;
use crate::overrides::{LeftOut, interface_of, place_of, with_overrides};
use crate::paged::Paged;
use crate::reliability::ReliabilityPart;
use crate::timeline::{DieQueue, Timing};
use crate::toml_text::read_toml;

/// Keys that a profile may leave out, by table.
const LEFT_OUT: &LeftOut = &[
    ("gc", &["relocate_exactly"]),
    ("mapping", &["mapping_cache_bytes", "mapping_cache_policy", "mapping_batch_update"]),
    ("reliability", recovery::LAWS),
    ("recovery", recovery::RECOVERY),
];

/// Everything that a simulated device is made of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct Profile {
    pub description: String,
    pub geometry: GeometryPart,
    pub timing: TimingPart,
    pub ftl: FtlPart,
    /// Page-mapped FTLs have it, merging ones do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gc: Option<GcPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamsPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear: Option<LinearPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripes: Option<StripesPart>,
    /// A page map that is kept on flash has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<MappingPart>,
    /// Flash that wears out has both; other flash has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<ReliabilityPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryPart>,
    pub wear: WearPart,
    pub cache: CachePart,
    pub state: StatePart,
}

/// How many of what, and how large.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct GeometryPart {
    pub channels: u32,
    pub dies_per_channel: u32,
    /// Planes of a die, among which its blocks are divided; 1 where not said.
    #[serde(default = "one")]
    pub planes_per_die: u32,
    /// Each plane works on its own; otherwise a die does one thing at a time.
    #[serde(default)]
    pub independent_planes: bool,
    pub blocks_per_die: u32,
    pub pages_per_block: u32,
    /// Pages at the end of a block that hold metadata: 0 or 1.
    pub metadata_pages: u32,
    pub page_bytes: u32,
    /// Bytes beside each page that travel with it (metadata, ECC).
    pub spare_bytes: u32,
    pub sector_bytes: u32,
}

impl GeometryPart {
    /// What has free blocks and a collection of its own: planes, or dies of one plane.
    fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel * self.planes_per_die
    }
}

fn one() -> u32 {
    1
}

/// How long things take.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct TimingPart {
    pub read_ns: u64,
    pub program_ns: u64,
    /// Odd pages of a block, where two bits share a cell (MLC); the same as `program_ns` for SLC.
    pub program_high_ns: u64,
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
}

/// The translation layer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct FtlPart {
    pub ftl: String,
    /// (S_P − S_L) / S_P (OFC §V.C): the share of the flash that the host cannot address.
    pub spare_factor: f64,
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
}

/// Wear levelling.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct WearPart {
    /// Fill the least-worn free block next, instead of the one erased longest ago.
    pub dynamic_wear_levelling: bool,
    /// Move the least-worn block when another of its die was erased so many times more; 0: never.
    pub static_wear_gap: u32,
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

/// Pages are numbered in 32 bits, and one number means "nowhere".
const PAGES_MAX: u64 = u32::MAX as u64 - 1;
/// The cache keeps one bit a sector of a page in 64 bits.
const CACHE_SECTORS_MAX: u64 = 64;
/// Valid pages of a block are counted in 15 bits.
const PAGES_PER_BLOCK_MAX: u32 = (1 << 15) - 1;

impl Profile {
    /// Read a profile from the text of `source` and change what `overrides` (a JSON object) says.
    ///
    /// # Errors
    /// Not TOML, an unknown or missing key (with the line and the known keys), a value that makes no
    /// device, an override of an unknown key.
    pub fn parse(text: &str, source: &str, overrides: &str) -> Result<Profile> {
        if interface_of(text, source)? != "block" {
            return Err(Error::usage(
                "The device is an open-channel SSD: it has no sectors to address",
            )
            .at(source)
            .allowed("a block device, like sim:demo")
            .action("`uflip oc` is for open-channel devices"));
        }
        let written: Profile = read_toml(text, source, "docs/reference/profiles.md")?;
        let profile = with_overrides(&written, LEFT_OUT, overrides, source)?;
        // What is wrong only with the overrides is wrong with them, and not with the file.
        profile.check(source).map_err(|error| match written.check(source) {
            Ok(()) => error.at(place_of(overrides, source)),
            Err(_) => error,
        })?;
        Ok(profile)
    }

    /// The numbers of the geometry, checked to make a device.
    pub(crate) fn geometry(&self) -> Geometry {
        let part = &self.geometry;
        let dies = part.dies();
        let page = u64::from(part.page_bytes);
        let blocks_per_die = part.blocks_per_die / part.planes_per_die;
        let pages = u64::from(dies) * u64::from(blocks_per_die) * u64::from(part.pages_per_block);
        // Whole MiB where that leaves anything, as devices are sold.
        let unit = if pages * page >= 64 << 20 { 1 << 20 } else { page };
        let logical_bytes = (pages * page) as f64 * (1.0 - self.ftl.spare_factor);
        let logical_bytes = logical_bytes as u64 / unit * unit;
        let geometry = Geometry::from(Shape {
            channels: part.channels,
            dies,
            blocks_per_die,
            pages_per_block: part.pages_per_block,
            metadata_pages: part.metadata_pages,
            page_bytes: part.page_bytes,
            logical_pages: (logical_bytes / page) as u32,
        });
        let in_step = if part.independent_planes { 1 } else { part.planes_per_die };
        geometry.with_planes_in_step(in_step)
    }

    /// The write cache, where the profile has one.
    pub(crate) fn write_cache(&self) -> Option<WriteCache> {
        let sectors = self.geometry.page_bytes / self.geometry.sector_bytes;
        let pages = self.cache.write_cache_bytes / u64::from(self.geometry.page_bytes);
        (pages > 0).then(|| WriteCache::new(pages as usize, sectors, self.cache.flush))
    }

    /// In which order its flash may be programmed: merging FTLs fill data blocks by place.
    pub(crate) fn page_order(&self) -> PageOrder {
        if self.merges() { PageOrder::Any } else { PageOrder::Ascending }
    }

    /// Whether its FTL merges in the host's path.
    fn merges(&self) -> bool {
        MERGING_FTLS.contains(&self.ftl.ftl.as_str())
    }

    /// The FTL that the profile asks for, with the times of its work.
    ///
    /// # Errors
    /// Names and parameters of policies that do not exist.
    pub(crate) fn backend(&self) -> Result<AnyBackend> {
        if self.merges() {
            let steps = self.streams.as_ref().map_or(0, |part| part.reads_per_step);
            let buffers = self.streams.as_ref().is_some_and(|part| part.rewrite_buffer);
            let ftl = Merging::by_name(&self.merging_options())?;
            let clocks = Clocks::new(self.geometry(), self.timing());
            return Ok(AnyBackend::Merged(Merged::new(ftl, clocks, steps, buffers)));
        }
        let goal = self.gc()?.idle_free_blocks as usize;
        let dies = self.geometry().shape().dies;
        Ok(AnyBackend::Paged(Paged::new(PageMap::new(self.ftl_options()?), dies, goal)))
    }

    /// How a page-mapped FTL collects.
    fn gc(&self) -> Result<&GcPart> {
        self.gc.as_ref().ok_or_else(|| {
            Error::usage("A page-mapped FTL needs to know how to collect")
                .got(format!("ftl = \"{}\" without a table [gc]", self.ftl.ftl))
                .action("add [gc] as in demo.toml")
        })
    }

    /// The page map that the profile asks for.
    fn ftl_options(&self) -> Result<PageMapOptions> {
        let geometry = self.geometry();
        let gc = self.gc()?;
        let allocator = self.ftl.allocator.as_deref().ok_or_else(|| {
            Error::usage("A page-mapped FTL needs an allocator")
                .got("a table [ftl] without 'allocator'")
                .allowed(crate::ALLOCATORS.join(", "))
                .action("name one of them")
        })?;
        Ok(PageMapOptions {
            geometry,
            allocator: Allocator::by_name(allocator, &geometry)?,
            victims: Victims::by_name(&gc.gc, geometry, self.state.seed)?,
            reserved_blocks: (gc.reserved_blocks + self.reserved_for_mapping()) as usize,
            same_die: gc.relocation == Relocation::SameDie,
            separate: gc.separate_streams,
            free_order: if self.wear.dynamic_wear_levelling {
                FreeOrder::LeastWorn
            } else {
                FreeOrder::Oldest
            },
            static_gap: self.wear.static_wear_gap,
            load: match gc.relocate_exactly {
                Some(number) => RelocationLoad::Exactly(number),
                None => RelocationLoad::AtLeast(gc.relocate_at_least),
            },
            mapping: self.mapping_options(),
            retirement: self.retirement_options(),
        })
    }

    pub(crate) fn timing(&self) -> Timing {
        let part = &self.timing;
        let page = u64::from(self.geometry.page_bytes) + u64::from(self.geometry.spare_bytes);
        let at_rate = |rate: u64| page * 1_000_000_000 / rate.max(1);
        Timing {
            read_ns: part.read_ns,
            program_ns: part.program_ns,
            program_high_ns: part.program_high_ns,
            erase_ns: part.erase_ns,
            transfer_ns: at_rate(part.channel_bytes_per_s),
            bus_ns: at_rate(part.bus_bytes_per_s),
            buses: part.buses,
            command_read_ns: part.command_read_ns,
            command_write_ns: part.command_write_ns,
            relocate_ns: part.relocate_ns,
            collect_ns: part.collect_ns,
            seek_read_ns: part.seek_read_ns,
            cache_program: part.cache_program,
            link_bytes_per_s: part.link_bytes_per_s,
            copy_back: self.gc.as_ref().is_some_and(|gc| gc.copy_back),
            die_queue: part.die_queue,
        }
    }

    fn check(&self, source: &str) -> Result<()> {
        let bad = |key: &str, got: String, allowed: String| {
            let what = format!("Profile key '{key}' makes no device");
            Err(Error::usage(what).at(source).got(got).allowed(allowed).action("change it"))
        };
        let part = &self.geometry;
        let counts = [
            ("channels", part.channels),
            ("dies_per_channel", part.dies_per_channel),
            ("planes_per_die", part.planes_per_die),
            ("blocks_per_die", part.blocks_per_die),
            ("pages_per_block", part.pages_per_block),
        ];
        if let Some((key, got)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return bad(key, got.to_string(), "1 or more".into());
        }
        if !part.blocks_per_die.is_multiple_of(part.planes_per_die) {
            let allowed = format!("a divisor of blocks_per_die = {}", part.blocks_per_die);
            return bad("planes_per_die", part.planes_per_die.to_string(), allowed);
        }
        if part.metadata_pages > 1 || part.metadata_pages >= part.pages_per_block {
            let allowed = "0, or 1 where a block has more pages".into();
            return bad("metadata_pages", part.metadata_pages.to_string(), allowed);
        }
        if part.pages_per_block > PAGES_PER_BLOCK_MAX {
            let allowed = format!("at most {PAGES_PER_BLOCK_MAX}");
            return bad("pages_per_block", part.pages_per_block.to_string(), allowed);
        }
        let sector = u64::from(part.sector_bytes);
        if !sector.is_power_of_two() || sector < SECTOR_BYTES_MIN {
            return bad("sector_bytes", sector.to_string(), "a power of two from 512".into());
        }
        let page = u64::from(part.page_bytes);
        if page < sector || !page.is_multiple_of(sector) {
            let allowed = format!("whole sectors of {sector} bytes");
            return bad("page_bytes", page.to_string(), allowed);
        }
        let cache = self.cache.write_cache_bytes;
        if cache > 0 && (cache < page || page / sector > CACHE_SECTORS_MAX) {
            let allowed =
                format!("0, or a page and more; pages of up to {CACHE_SECTORS_MAX} sectors");
            return bad("write_cache_bytes", cache.to_string(), allowed);
        }
        let rates = [
            ("channel_bytes_per_s", self.timing.channel_bytes_per_s),
            ("link_bytes_per_s", self.timing.link_bytes_per_s),
            ("bus_bytes_per_s", self.timing.bus_bytes_per_s),
        ];
        if let Some((key, _)) = rates.into_iter().find(|(_, rate)| *rate == 0) {
            return bad(key, "0".into(), "1 or more".into());
        }
        let pages =
            [part.channels, part.dies_per_channel, part.blocks_per_die, part.pages_per_block]
                .into_iter()
                .try_fold(1u64, |product, count| product.checked_mul(u64::from(count)))
                .unwrap_or(u64::MAX);
        if pages > PAGES_MAX {
            return bad("geometry", format!("{pages} pages"), format!("at most {PAGES_MAX}"));
        }
        if !crate::FTLS.contains(&self.ftl.ftl.as_str()) {
            return Err(Error::unknown("FTL", &self.ftl.ftl, crate::FTLS).at(source));
        }
        self.check_tables(source)?;
        if !(0.0..=100.0).contains(&self.state.random_overwrites) {
            return Err(Error::usage("Profile key 'random_overwrites' is out of range")
                .at(source)
                .got(self.state.random_overwrites.to_string())
                .allowed("0 to 100 device sizes"));
        }
        self.check_room(source, pages)?;
        self.check_memory(source)?;
        if self.merges() {
            return self.check_merging(source);
        }
        let gc = self.gc().map_err(|error| error.at(source))?;
        self.check_mapping(source)?;
        self.check_recovery(source)?;
        self.check_spare(source, pages, gc)?;
        self.check_load(source, gc)?;
        self.check_names(source, gc)
    }

    /// What no FTL would look at is refused.
    fn check_tables(&self, source: &str) -> Result<()> {
        let name = self.ftl.ftl.as_str();
        let of_page_maps = !self.merges();
        let unused = [
            ("[gc]", self.gc.is_some() && !of_page_maps),
            ("allocator", self.ftl.allocator.is_some() && !of_page_maps),
            ("[log]", self.log.is_some() && !["bast", "fast", "superblock"].contains(&name)),
            ("[streams]", self.streams.is_some() && name != "stream_hybrid"),
            ("[linear]", self.linear.is_some() && name != "linear"),
            ("[stripes]", self.stripes.is_some() && name != "stripe_map"),
            ("[reliability]", self.reliability.is_some() && !of_page_maps),
            ("[recovery]", self.recovery.is_some() && !of_page_maps),
            ("[mapping]", self.mapping.is_some() && name != "dftl"),
            ("cache_program", self.timing.cache_program && of_page_maps),
        ];
        match unused.into_iter().find(|(_, unused)| *unused) {
            None => Ok(()),
            Some((what, _)) => Err(Error::usage(format!("{what} means nothing to this FTL"))
                .at(source)
                .got(format!("{what} with ftl = \"{name}\""))
                .action(format!("take {what} out, or choose another FTL"))),
        }
    }

    /// The two readings of OFC's figure 5(a) exclude each other.
    fn check_load(&self, source: &str, gc: &GcPart) -> Result<()> {
        match gc.relocate_exactly {
            Some(exactly) if gc.relocate_at_least > 0 => {
                Err(Error::usage("Relocation cannot have two artificial loads")
                    .at(source)
                    .got(format!(
                        "relocate_at_least = {}, relocate_exactly = {exactly}",
                        gc.relocate_at_least
                    ))
                    .allowed("one of the two")
                    .action("set relocate_at_least = 0, or take relocate_exactly out"))
            }
            // What must be moved whatever is valid must leave something to gain.
            Some(exactly) if exactly >= self.geometry().data_pages() => {
                Err(Error::usage("Profile key 'relocate_exactly' makes no device")
                    .at(source)
                    .got(exactly.to_string())
                    .allowed(format!("0 to {}", self.geometry().data_pages() - 1))
                    .action("change it"))
            }
            _ => Ok(()),
        }
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

    /// A device that does not fit is refused before anything is allocated.
    pub(crate) fn check_memory(&self, source: &str) -> Result<()> {
        let needed = self.geometry().memory_bytes() + self.mapping_memory_bytes();
        match crate::huge::available_bytes() {
            Some(available) if needed > available => {
                let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
                Err(Error::usage("The simulated device does not fit into memory")
                    .at(source)
                    .got(format!("a device that needs {}", mebibytes(needed)))
                    .allowed(format!("{}, which are free now", mebibytes(available)))
                    .action("simulate fewer blocks, or larger pages"))
            }
            _ => Ok(()),
        }
    }

    /// The host must have something to address.
    fn check_room(&self, source: &str, pages: u64) -> Result<()> {
        let spare = self.ftl.spare_factor;
        if !(0.0..1.0).contains(&spare) {
            return Err(Error::usage("The spare factor is no share")
                .at(source)
                .got(format!("spare_factor = {spare}"))
                .allowed("0 up to, not including, 1"));
        }
        let logical = self.geometry().shape().logical_pages;
        if logical == 0 {
            return Err(Error::usage("The device has no room for the host")
                .at(source)
                .got(format_bytes(pages * u64::from(self.geometry.page_bytes)))
                .action("lower spare_factor, or make the device larger"));
        }
        Ok(())
    }

    /// Pages that cannot hold the host's data: of the reserve, of the open blocks, of one more block so
    /// that collection gains something, on every die; and those for a map on flash.
    fn held_pages(&self, gc: &GcPart) -> u64 {
        let geometry = self.geometry();
        let open = 1 + u64::from(gc.separate_streams) + u64::from(self.mapping.is_some());
        let held = u64::from(gc.reserved_blocks + self.reserved_for_mapping()) + open + 1;
        let held = held.min(u64::from(geometry.shape().blocks_per_die));
        let dies = u64::from(geometry.shape().dies);
        dies * held * u64::from(geometry.data_pages()) + self.pages_for_mapping()
    }

    /// Pages that must take data for the device to be written to.
    fn needed_pages(&self) -> u64 {
        let logical = u64::from(self.geometry().shape().logical_pages);
        logical + self.gc.as_ref().map_or(0, |gc| self.held_pages(gc))
    }

    /// The host must be able to fill the device while every die keeps its reserve and an open block.
    fn check_spare(&self, source: &str, pages: u64, gc: &GcPart) -> Result<()> {
        let spare = self.ftl.spare_factor;
        if gc.reserved_blocks == 0 {
            return Err(Error::usage("Collection needs a block to move pages to")
                .at(source)
                .got("reserved_blocks = 0")
                .allowed("1 or more")
                .action("raise reserved_blocks"));
        }
        let bad = self.bad_blocks().len() as u64;
        let blocks = u64::from(self.geometry().blocks()) - bad;
        let usable = blocks * u64::from(self.geometry().data_pages());
        let room = usable.saturating_sub(self.held_pages(gc));
        let least = (pages - room) as f64 / pages as f64;
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
        let reached = gc.reserved_blocks + self.reserved_for_mapping() + 1;
        if idle > 0 && idle <= reached {
            return Err(Error::usage("Idle collection would never begin")
                .at(source)
                .got(format!("idle_free_blocks = {idle}"))
                .allowed(format!("0, or more than {reached}"))
                .action("change one of the two"));
        }
        Ok(())
    }
}
