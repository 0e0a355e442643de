//! The layout of zones: their planes and blocks, and the address of each page.
//!
//! ```text
//! dies_per_zone = 2, stripe_pages = 2      flash pages of the zone:  0 1 | 4 5 | …   on its first plane
//!                                                                    2 3 | 6 7 | …   on its second
//!
//! 4 channels of 2 planes, 2 planes a zone      across_channels: zone 0 on channels 0 1, zone 1 on 2 3, …
//!                                          within_channel:  zone 0 on both planes of channel 0, zone 1 of 1, …
//! ```
//!
//! Consecutive zones are on different planes until all planes have one; then the next blocks of the planes
//! follow. The map is therefore arithmetic, and a zone always keeps its blocks: it wears as often as it is
//! reset.
//!
//! **Source**: zones as stripes of blocks over planes: Bjørling et al., ZNS: Avoiding the Block Interface Tax
//! (USENIX ATC 2021) §2; differences between drives, large zones over all planes and small ones on few: Bae
//! et al., What You Can't Forget: Exploiting Parallelism for Zoned Namespaces (HotStorage 2022).
//! **Faithful**: pages of blocks in order, blocks of a zone erased together.
//! **Simplified**: no block is exchanged, neither for wear nor for a failure.
//! **Ambiguous**: how drives lay out zones over planes is not published: the parameters decide.

use serde::{Deserialize, Serialize};

use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PlaneIdx};

/// The table `[zones]`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct ZonesPart {
    /// Distance from the beginning of a zone to that of the next.
    pub zone_bytes: u64,
    pub dies_per_zone: u32,
    /// Erase blocks of each of these planes.
    pub zone_blocks_per_die: u32,
    pub zone_dies: ZoneDies,
    /// Consecutive flash pages on a plane before the next plane follows.
    pub stripe_pages: u32,
    /// 0: no limit.
    pub max_open_zones: u32,
    pub max_active_zones: u32,
    /// Finishing a zone pads the rest of its flash.
    pub finish_pads: bool,
}

/// The planes of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ZoneDies {
    /// On as many channels as possible.
    AcrossChannels,
    /// On as few channels as possible.
    WithinChannel,
}

/// The layout of zones, in pages as the map counts them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "Layout")]
pub(crate) struct ZoneLayout {
    geometry: Geometry,
    part: ZonesPart,
    /// Pages from zone to zone, and data pages of each.
    size: u32,
    capacity: u32,
    zones: u32,
    /// Number of zones side by side, which share no plane.
    groups: u32,
    /// Flash pages of a block.
    flash_pages: u32,
}

impl ZoneLayout {
    /// Create the layout for a checked geometry and table. Ignores the logical pages of the geometry.
    pub(crate) fn new(geometry: Geometry, part: ZonesPart) -> ZoneLayout {
        let shape = geometry.shape();
        let groups = shape.planes / part.dies_per_zone;
        let blocks = part.dies_per_zone * part.zone_blocks_per_die;
        ZoneLayout {
            geometry,
            part,
            size: (part.zone_bytes / u64::from(shape.page_bytes)) as u32,
            capacity: blocks * shape.pages_per_block,
            zones: groups * (shape.blocks_per_plane / part.zone_blocks_per_die),
            groups,
            flash_pages: shape.pages_per_block / geometry.units(),
        }
    }

    pub(crate) fn part(&self) -> &ZonesPart {
        &self.part
    }

    pub(crate) fn zones(&self) -> u32 {
        self.zones
    }

    /// Return the pages that the host can address, including the unused ones between zones.
    pub(crate) fn logical_pages(&self) -> u64 {
        u64::from(self.zones) * u64::from(self.size)
    }

    /// Return the pages from the beginning of a zone to that of the next.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Return the pages that a zone can hold.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Return the pages that make a flash page.
    pub(crate) fn units(&self) -> u32 {
        self.geometry.units()
    }

    /// Return the zone of a page, and its number there.
    #[inline]
    pub(crate) fn zone_of(&self, page: Lpn) -> (u32, u32) {
        (page.0 / self.size, page.0 % self.size)
    }

    /// Return the plane with index `number` of the zone.
    fn plane(&self, zone: u32, number: u32) -> PlaneIdx {
        let first_plane = zone % self.groups * self.part.dies_per_zone + number;
        let shape = self.geometry.shape();
        match self.part.zone_dies {
            // Planes are counted channels first.
            ZoneDies::AcrossChannels => PlaneIdx(first_plane),
            ZoneDies::WithinChannel => {
                let of_channel = shape.planes / shape.channels;
                PlaneIdx(first_plane % of_channel * shape.channels + first_plane / of_channel)
            }
        }
    }

    /// Return the block with index `number` of the zone on one of its planes.
    fn block(&self, zone: u32, plane: u32, number: u32) -> BlockIdx {
        let row = zone / self.groups * self.part.zone_blocks_per_die + number;
        BlockIdx(self.plane(zone, plane).0 * self.geometry.shape().blocks_per_plane + row)
    }

    /// Return every block of the zone.
    pub(crate) fn blocks(&self, zone: u32) -> impl Iterator<Item = BlockIdx> + use<'_> {
        (0..self.part.dies_per_zone).flat_map(move |plane| {
            (0..self.part.zone_blocks_per_die).map(move |number| self.block(zone, plane, number))
        })
    }

    /// Return the page up to which finishing pads a zone with `written` pages.
    pub(crate) fn finished(&self, written: u32) -> u32 {
        if self.part.finish_pads { self.capacity() } else { written.next_multiple_of(self.units()) }
    }

    /// Return the address of page `page` of a zone.
    #[inline]
    pub(crate) fn address_of(&self, zone: u32, page: u32) -> PageAddress {
        let units = self.geometry.units();
        let (flash_page, unit) = (page / units, page % units);
        let (stripe, within) =
            (flash_page / self.part.stripe_pages, flash_page % self.part.stripe_pages);
        let (turn, plane) = (stripe / self.part.dies_per_zone, stripe % self.part.dies_per_zone);
        let on_plane = turn * self.part.stripe_pages + within;
        let block = self.block(zone, plane, on_plane / self.flash_pages);
        self.geometry.address_at(block, on_plane % self.flash_pages * units + unit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::flash::geometry::Shape;

    fn layout(part: ZonesPart, units: u32) -> ZoneLayout {
        let geometry = Geometry::from(Shape {
            channels: 4,
            planes: 8,
            blocks_per_plane: 6,
            pages_per_block: 4 * units,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 0,
        });
        ZoneLayout::new(geometry.with_units(units), part)
    }

    const PART: ZonesPart = ZonesPart {
        zone_bytes: 1 << 20,
        dies_per_zone: 2,
        zone_blocks_per_die: 2,
        zone_dies: ZoneDies::AcrossChannels,
        stripe_pages: 1,
        max_open_zones: 0,
        max_active_zones: 0,
        finish_pads: true,
    };

    #[test]
    fn zone_layout_is_injective_and_in_order() {
        for (dies_per_zone, blocks) in [(1, 1), (2, 2), (4, 3), (8, 6), (8, 1)] {
            for stripe_pages in [1, 2, 4] {
                for units in [1, 4] {
                    for zone_dies in [ZoneDies::AcrossChannels, ZoneDies::WithinChannel] {
                        let zone_blocks_per_die = blocks;
                        let part = ZonesPart {
                            dies_per_zone,
                            zone_blocks_per_die,
                            zone_dies,
                            stripe_pages,
                            ..PART
                        };
                        all_of(&layout(part, units));
                    }
                }
            }
        }
    }

    fn all_of(layout: &ZoneLayout) {
        let mut addresses = BTreeSet::new();
        for zone in 0..layout.zones() {
            let zone_blocks: BTreeSet<u32> = layout.blocks(zone).map(|block| block.0).collect();
            let mut next = std::collections::BTreeMap::new();
            for page in 0..layout.capacity() {
                let address = layout.address_of(zone, page);
                assert!(addresses.insert(address.page), "{address:?} twice");
                assert!(zone_blocks.contains(&address.block.0));
                let expected = next.entry(address.block).or_insert(0);
                assert_eq!(layout.geometry.page_in_block(address), *expected, "in order");
                *expected += 1;
            }
        }
        assert_eq!(
            addresses.len() as u32,
            layout.geometry.pages(),
            "every block belongs to a zone"
        );
    }

    #[test]
    fn zone_dies_select_planes() {
        let channels = |zone_dies, zone| {
            let layout = layout(ZonesPart { zone_dies, ..PART }, 1);
            let channel = |page| layout.geometry.channel_of(layout.address_of(zone, page).plane);
            (channel(0), channel(1))
        };
        assert_eq!(channels(ZoneDies::AcrossChannels, 0), (0, 1));
        assert_eq!(channels(ZoneDies::AcrossChannels, 1), (2, 3));
        assert_eq!(
            channels(ZoneDies::AcrossChannels, 2),
            (0, 1),
            "the other dies of these channels"
        );
        assert_eq!(channels(ZoneDies::WithinChannel, 0), (0, 0));
        assert_eq!(channels(ZoneDies::WithinChannel, 3), (3, 3));
        assert_eq!(
            channels(ZoneDies::WithinChannel, 4),
            (0, 0),
            "the next blocks of the same dies"
        );
    }

    #[test]
    fn stripe_pages_are_consecutive_on_plane() {
        let layout = layout(ZonesPart { stripe_pages: 2, ..PART }, 4);
        let planes: Vec<u32> = (0..8).map(|page| layout.address_of(0, 4 * page).plane.0).collect();
        assert_eq!(planes, [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(
            layout.address_of(0, 0).plane,
            layout.address_of(0, 3).plane,
            "units of a flash page"
        );
    }
}
