//! The table `[geometry]`, page types, and mapping units.

use super::checks::InvalidKeys;
use super::{Profile, TimingPart};
use crate::flash::nand::PageOrder;
use crate::keys::parameters;
use crate::timeline::MultiPlane;
use crate::timeline::cells::{ByPageType, CellTimes};

parameters! {
    /// Numbers and sizes of the flash.
    #[derive(Clone, PartialEq, Debug)]
    pub struct GeometryPart {
        channels: u32 = "1 or more",
            "channels; each carries one transfer at a time";
        dies_per_channel: u32 = "1 or more",
            "dies on each channel; each executes one operation at a time";
        #[serde(default = "one")]
        planes_per_die: u32 = "1 or more, a divisor of `blocks_per_die`",
            "planes of a die, 1 by default; each has its share of the blocks, its own free \
             blocks and its own garbage collection, so copy-back stays within a plane";
        #[serde(default)]
        independent_planes: bool = "`true`, `false`",
            "each plane reads, programs and erases on its own; `false` by default: a die does \
             one operation at a time, or with `multi_plane` the same operation in several planes";
        #[serde(default, skip_serializing_if = "is_single_plane")]
        multi_plane: MultiPlane = "`none`, `any_page`, `same_page`, `same_block`",
            "the operations that one command starts in several planes of a die: none (the \
             default); the same operation on any pages; on the same page of any blocks, as in \
             ONFI; or on the same page of the same block of each plane, as chips with block \
             address restrictions require. Applies to read, program, erase and copy-back; not \
             with `independent_planes`, `cache_program` or `[suspend]`";
        blocks_per_die: u32 = "1 or more",
            "erase blocks of a die";
        // Valid pages of a block are counted in 15 bits.
        pages_per_block: u32 = "1 to 32767",
            "flash pages of a block";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page_order: Option<PageOrder> = "`ascending`, `any`",
            "the order in which the pages of a block may be programmed: ascending, as data \
             sheets of flash with pages of 2 KiB or more require, or any, each page once. The \
             default is `any` for FTLs with a fixed offset for every page of a block (`bast`, \
             `block_map`, `fast`, `linear`, `stream_hybrid`), else `ascending`. With `ascending` \
             such an FTL programs the next free page of the block, and a table in memory stores \
             its location";
        metadata_pages: u32 = "0 or 1",
            "pages at the end of a block that hold metadata and no data (OFC §IV.D)";
        page_bytes: u32 = "whole sectors, at most 16 MiB" in "bytes",
            "data of a flash page";
        spare_bytes: u32 = "0 or more" in "bytes",
            "bytes with each page that are transferred with it over channel and bus (metadata, \
             ECC)";
        sector_bytes: u32 = "powers of two from 512" in "bytes",
            "unit of addresses of the host; offsets and sizes are multiples of it";
    }
}

impl GeometryPart {
    /// Return the number of units with their own free blocks and collection: planes, or dies of one
    /// plane.
    pub(super) fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel * self.planes_per_die
    }
}

fn one() -> u32 {
    1
}

fn is_single_plane(what: &MultiPlane) -> bool {
    *what == MultiPlane::None
}

impl Profile {
    /// Find options that exclude multi-plane operations.
    pub(super) fn find_invalid_planes(&self, invalid: &mut InvalidKeys) {
        let multi_plane = self.geometry.multi_plane;
        if is_single_plane(&multi_plane) {
            return;
        }
        let (single_plane, name) = (self.geometry.planes_per_die == 1, multi_plane.name());
        let allowed =
            "\"none\" with planes_per_die = 1: a multi-plane command needs several planes";
        invalid.reject_if(single_plane, "multi_plane", &name, allowed);
        let independent = self.geometry.independent_planes;
        let allowed = "false with multi_plane: each independent plane takes its own command";
        invalid.reject_if(independent, "independent_planes", &independent, allowed);
        let cached = self.timing.cache_program;
        let allowed = "false with multi_plane: until all planes begin to program, each holds its page in the \
                       register that would take the next";
        invalid.reject_if(cached, "cache_program", &cached, allowed);
        let allowed =
            "no [suspend] with multi_plane: a chip stops one array, and here several are at work";
        invalid.reject_if(self.suspend.is_some(), "multi_plane", &name, allowed);
    }
}

// Page types and their times.

/// The default number of bits per cell; it matters only if page types differ in time.
const BITS: u32 = 2;

impl TimingPart {
    /// Return the number of pages that share cells.
    pub(crate) fn bits(&self) -> u32 {
        self.bits_per_cell.unwrap_or(BITS)
    }

    fn read_by_kind(&self) -> ByPageType {
        ByPageType {
            low: self.read_ns,
            middle: self.read_middle_ns.unwrap_or(self.read_ns),
            high: self.read_high_ns.unwrap_or(self.read_ns),
        }
    }

    fn program_by_kind(&self) -> ByPageType {
        ByPageType {
            low: self.program_ns,
            middle: self.program_middle_ns.unwrap_or(self.program_ns),
            high: self.program_high_ns,
        }
    }

    pub(super) fn cells(&self) -> CellTimes {
        CellTimes::new(self.bits(), self.read_by_kind(), self.program_by_kind())
    }

    /// Return the longest read and the longest program [ns].
    pub(super) fn slowest_cells(&self) -> (u64, u64) {
        let slowest = |ByPageType { low, middle, high }| low.max(middle).max(high);
        (slowest(self.read_by_kind()), slowest(self.program_by_kind()))
    }

    /// Find times of page types that do not exist.
    pub(super) fn find_invalid_cells(&self, invalid: &mut InvalidKeys) {
        let bits = self.bits();
        let mut reject = |key, got: Option<u64>, allowed: &str| {
            let allowed = format!("{allowed}: no page has this type");
            invalid.reject_if(got.is_some(), key, &got.unwrap_or(0), allowed);
        };
        if bits < 3 {
            let allowed = format!("no such key with bits_per_cell = {bits}");
            reject("program_middle_ns", self.program_middle_ns, &allowed);
            reject("read_middle_ns", self.read_middle_ns, &allowed);
        }
        if bits < 2 {
            let allowed = "no such key with bits_per_cell = 1";
            reject("read_high_ns", self.read_high_ns, allowed);
            let other = Some(self.program_high_ns).filter(|high| *high != self.program_ns);
            let allowed = format!("program_ns = {} with bits_per_cell = 1", self.program_ns);
            reject("program_high_ns", other, &allowed);
        }
    }
}

// Mapping units smaller than a flash page.

/// Maximum number of units per flash page; no real chip needs more.
const UNITS_MAX: u32 = 64;

impl Profile {
    /// Return the number of mapping units per flash page.
    pub(crate) fn units(&self) -> u32 {
        let unit = self.ftl.mapping_unit_bytes.unwrap_or(self.geometry.page_bytes);
        self.geometry.page_bytes / unit.max(1)
    }

    /// Return the number of mapping units per compression unit.
    pub(crate) fn compression_unit_pages(&self) -> u32 {
        let unit = self.geometry.page_bytes / self.units();
        self.ftl.compression_unit_bytes.map_or(1, |bytes| bytes / unit)
    }

    /// Return the number of sectors per flash page if sectors cross the channel separately;
    /// otherwise 0.
    pub(super) fn sectors_sent(&self) -> u32 {
        let sectors = self.geometry.page_bytes / self.geometry.sector_bytes.max(1);
        if self.timing.partial_transfer && self.units() == 1 { sectors } else { 0 }
    }

    /// Find units that do not fit their flash pages, and options that require such units.
    pub(super) fn find_invalid_units(&self, invalid: &mut InvalidKeys) {
        let (page, sector) = (self.geometry.page_bytes, self.geometry.sector_bytes);
        if let Some(unit) = self.ftl.mapping_unit_bytes {
            let fits = unit > 0 && page.is_multiple_of(unit) && unit.is_multiple_of(sector.max(1));
            let allowed = format!(
                "whole sectors of {sector} bytes, up to {UNITS_MAX} of which make a page of {page} bytes"
            );
            let wrong = !fits || page / unit > UNITS_MAX;
            invalid.reject_if(wrong, "mapping_unit_bytes", &unit, allowed);
        }
        if let Some(bytes) = self.ftl.compression_unit_bytes {
            let unit = self.ftl.mapping_unit_bytes.unwrap_or(page).max(1);
            let fits = bytes.is_multiple_of(unit) && (2..=UNITS_MAX).contains(&(bytes / unit));
            let allowed = format!("2 to {UNITS_MAX} whole mapping units of {unit} bytes");
            invalid.reject_if(!fits, "compression_unit_bytes", &bytes, allowed);
        }
        let too_many = self.sectors_sent() > u32::from(u16::MAX);
        let allowed = "false with pages of more than 65535 sectors";
        invalid.reject_if(too_many, "partial_transfer", &true, allowed);
        let gc = self.gc.as_ref();
        let copies = self.units() > 1 && gc.is_some_and(|gc| gc.copy_back);
        let allowed = "false with mapping units smaller than a flash page: a die copies whole pages, and \
                       cannot pack units of several";
        invalid.reject_if(copies, "copy_back", &true, allowed);
        let load = gc.is_some_and(|gc| gc.relocate_at_least > 0 || gc.relocate_exactly.is_some());
        let got = self.ftl.mapping_unit_bytes.unwrap_or(page);
        let allowed = format!(
            "{page} with relocate_at_least and relocate_exactly: they count flash pages, which are moved \
             whatever they hold"
        );
        invalid.reject_if(self.units() > 1 && load, "mapping_unit_bytes", &got, allowed);
    }
}
