//! Construction of a device's parts from a checked profile.

use uflip_core::{Error, Result};

use super::{GcPart, Profile, Relocation};
use crate::flash::geometry::{Geometry, Shape};
use crate::flash::nand::PageOrder;
use crate::ftl::zoned::ZoneLayout;
use crate::ftl::{MERGING_FTLS, Merging, PageMapOptions, RelocationLoad};
use crate::pool::alloc::Allocator;
use crate::pool::victim::Victims;
use crate::timeline::Timing;
use crate::timeline::energy::EnergyMeter;

impl Profile {
    /// Return the geometry, checked to make a device.
    pub(crate) fn geometry(&self) -> Geometry {
        let part = &self.geometry;
        let planes = part.dies();
        // From here on a page is the mapping unit.
        let units = self.units();
        let page_bytes = part.page_bytes / units;
        let pages_per_block = part.pages_per_block * units;
        let page = u64::from(page_bytes);
        let blocks_per_plane = part.blocks_per_die / part.planes_per_die;
        let pages = u64::from(planes) * u64::from(blocks_per_plane) * u64::from(pages_per_block);
        // Round to whole MiB if that leaves anything, as in real devices.
        let unit = if pages * page >= 64 << 20 { 1 << 20 } else { page };
        let logical_bytes = (pages * page) as f64 * (1.0 - self.ftl.spare_factor);
        let logical_bytes = logical_bytes as u64 / unit * unit;
        let shape = Shape {
            channels: part.channels,
            planes,
            blocks_per_plane,
            pages_per_block,
            metadata_pages: part.metadata_pages * units,
            page_bytes,
            logical_pages: (logical_bytes / page) as u32,
        };
        let in_step = if part.independent_planes { 1 } else { part.planes_per_die };
        let geometry = Geometry::from(shape).with_planes_in_step(in_step).with_units(units);
        match self.zones {
            None => geometry,
            Some(part) => {
                let logical_pages = ZoneLayout::new(geometry, part).logical_pages() as u32;
                geometry.with_shape(Shape { logical_pages, ..shape })
            }
        }
    }

    /// Return the geometry that the FTL uses: without replacement blocks.
    pub(crate) fn ftl_geometry(&self) -> Geometry {
        let whole = self.geometry();
        let spares = self.recovery.as_ref().and_then(|part| part.replacement_blocks).unwrap_or(0);
        let spares_per_plane = spares / self.geometry.planes_per_die;
        let shape = *whole.shape();
        let blocks_per_plane = shape.blocks_per_plane.saturating_sub(spares_per_plane);
        whole.with_shape(Shape { blocks_per_plane, ..shape })
    }

    /// Return the program order of its flash. By default it is arbitrary if the FTL has a fixed
    /// offset for every page of a block.
    pub(crate) fn page_order(&self) -> PageOrder {
        match self.geometry.page_order {
            Some(order) => order,
            None if self.has_fixed_page_offsets() => PageOrder::Any,
            None => PageOrder::Ascending,
        }
    }

    /// Return whether the FTL has a fixed offset for every page of a block, so that it programs them
    /// in any order.
    pub(crate) fn has_fixed_page_offsets(&self) -> bool {
        self.merges() && !Merging::appends(&self.ftl.ftl)
    }

    /// Return whether a table locates the pages of a block: they have offsets, but are programmed in
    /// order.
    pub(crate) fn uses_page_tables(&self) -> bool {
        self.has_fixed_page_offsets() && self.page_order() == PageOrder::Ascending
    }

    /// Return whether its FTL merges in the host's path.
    pub(crate) fn merges(&self) -> bool {
        MERGING_FTLS.contains(&self.ftl.ftl.as_str())
    }

    /// Return the garbage collection options of a page-mapped FTL.
    pub(crate) fn gc(&self) -> Result<&GcPart> {
        self.gc.as_ref().ok_or_else(|| {
            Error::usage("A page-mapped FTL needs a table [gc]")
                .got(format!("ftl = \"{}\" without a table [gc]", self.ftl.ftl))
                .action("add [gc] as in demo.toml")
        })
    }

    /// Return the options of the profile's page map.
    pub(crate) fn ftl_options(&self) -> Result<PageMapOptions> {
        let geometry = self.geometry();
        let gc = self.gc()?;
        let allocator = self.ftl.allocator.as_deref().ok_or_else(|| {
            Error::usage("A page-mapped FTL needs an allocator")
                .got("a table [ftl] without 'allocator'")
                .allowed(crate::pool::alloc::ALLOCATORS.join(", "))
                .action("name one of them")
        })?;
        Ok(PageMapOptions {
            geometry,
            allocator: Allocator::by_name(allocator, &geometry)?,
            victims: Victims::by_name(&gc.gc, geometry, self.state.seed)?,
            reserved_blocks: (gc.reserved_blocks + self.reserved_for_mapping()) as usize,
            same_die: gc.relocation == Relocation::SameDie,
            separate: gc.separate_streams,
            free_order: self.free_order(),
            static_threshold: self.wear.static_wear_threshold,
            load: match gc.relocate_exactly {
                Some(number) => RelocationLoad::Exactly(number),
                None => RelocationLoad::AtLeast(gc.relocate_at_least),
            },
            mapping: self.mapping_options(),
            retirement: self.retirement_options(),
            write_streams: self.write_streams() as u8,
            hot_cold: self.hot_cold,
            slc: self.slc_options(),
            scrubs: self.scrubs(),
            power_loss: self.power_loss.is_some(),
        })
    }

    /// Return the energy meter, if the profile has energies.
    pub(crate) fn energy_meter(&self) -> Option<EnergyMeter> {
        let part = self.energy?;
        let page = u64::from(self.geometry.page_bytes) + u64::from(self.geometry.spare_bytes);
        let timing = self.timing();
        Some(EnergyMeter::new(part, page, timing.program_transfers.into(), &timing.cells))
    }

    pub(crate) fn timing(&self) -> Timing {
        let part = &self.timing;
        let page = u64::from(self.geometry.page_bytes) + u64::from(self.geometry.spare_bytes);
        let units = self.units();
        let whole = units.max(self.sectors_sent()) as u16;
        let at_rate = |rate: u64| page * 1_000_000_000 / u64::from(units) / rate.max(1);
        Timing {
            cells: part.cells(),
            erase_ns: part.erase_ns,
            transfer_ns: at_rate(part.channel_bytes_per_s),
            transfer_parts: u64::from(self.sectors_sent()),
            program_transfers: whole,
            read_transfers: if part.partial_transfer && units > 1 { 1 } else { whole },
            bus_ns: at_rate(part.bus_bytes_per_s),
            buses: part.buses,
            bus_read_setup_ns: part.bus_read_setup_ns.unwrap_or(0),
            bus_write_setup_ns: part.bus_write_setup_ns.unwrap_or(0),
            memory_ns: part.memory_bytes_per_s.map_or(0, at_rate),
            command_read_latency_ns: part.command_read_latency_ns.unwrap_or(0),
            command_write_latency_ns: part.command_write_latency_ns.unwrap_or(0),
            relocate_latency_ns: part.relocate_latency_ns.unwrap_or(0),
            writes_in_order: part.writes_in_order(),
            rings: self.rings(),
            command_read_ns: part.command_read_ns,
            command_write_ns: part.command_write_ns,
            relocate_ns: part.relocate_ns,
            collect_ns: part.collect_ns,
            seek_read_ns: part.seek_read_ns,
            cache_program: part.cache_program,
            cache_read: part.cache_read,
            suspend: self.suspend(),
            link_bytes_per_s: part.link_bytes_per_s,
            copy_back: self.gc.as_ref().is_some_and(|gc| gc.copy_back),
            die_queue: part.die_queue,
            host_memory_read_ns: self.host_memory_read_ns(),
            multi_plane: self.geometry.multi_plane,
            keeps_history: self.cache.write_cache_bytes > 0,
            has_plan_order: self.merges() && at_rate(part.channel_bytes_per_s) > 0,
        }
    }
}
