//! Addresses inside a flash device, and the arithmetic between them.
//!
//! Everything is flat. Planes are numbered channels first (plane p sits on channel p mod C), so that
//! counting through the planes is OFC's round robin "over channels, then dies" (OFC §IV.C). A block's
//! number contains its plane, a page's number its block:
//!
//! ```text
//! BlockIdx = plane × blocks_per_plane + block in plane        Ppn = BlockIdx × pages_per_block + page
//! ```
//!
//! A plane has free blocks, open ones and a collection of its own; most dies have one plane, and are then a
//! plane. The planes of a die share the channel and, unless they are independent, execute one operation at a
//! time. They then have one [`DieIdx`] ([`Geometry::die_of`]). Independent planes have one each, as dies
//! have.
//!
//! If the mapping unit is smaller than a flash page, "page" here means such a unit, and everything counts in
//! units: the map, the block accounting, counters. [`Geometry::units`] consecutive units make a flash page,
//! which is programmed as one.

use std::hint::cold_path;

use super::fast_path::FastPath;
use crate::collections::divisor::Divisor;

/// Logical page number: the address of the host, in flash pages.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct Lpn(pub u32);

/// Physical page number, flat over the device.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct Ppn(pub u32);

/// An erase block, flat over the device.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Debug,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct BlockIdx(pub u32);

/// A plane, flat over the device.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct PlaneIdx(pub u32);

/// A resource that executes one operation at a time: a die, or an independent plane. Its number is that of
/// its first plane.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct DieIdx(pub u32);

/// A physical page together with its block and plane, so that no code divides to find them again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Place")]
pub(crate) struct PageAddress {
    pub(crate) page: Ppn,
    pub(crate) block: BlockIdx,
    pub(crate) plane: PlaneIdx,
}

impl PageAddress {
    /// Return the page that is `pages` further on in its block.
    #[inline]
    pub(crate) fn plus_pages(self, pages: u32) -> PageAddress {
        PageAddress { page: Ppn(self.page.0 + pages), ..self }
    }
}

/// The dimensions of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub struct Shape {
    pub channels: u32,
    pub planes: u32,
    pub blocks_per_plane: u32,
    pub pages_per_block: u32,
    /// Pages at the end of each block that hold metadata and no data: 0 or 1 (OFC §IV.D).
    pub metadata_pages: u32,
    pub page_bytes: u32,
    /// Pages that the host can address.
    pub logical_pages: u32,
}

/// A shape prepared for address arithmetic: no division takes longer than a multiplication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Geometry {
    shape: Shape,
    /// Planes that execute one operation at a time together; 1 if planes are independent.
    planes_in_step: u32,
    /// Units of a flash page: 1, unless the mapping unit is smaller.
    units: u32,
    per_block: Divisor,
    per_plane: Divisor,
    per_channel: Divisor,
}

impl From<Shape> for Geometry {
    fn from(shape: Shape) -> Geometry {
        Geometry {
            shape,
            planes_in_step: 1,
            units: 1,
            per_block: Divisor::new(shape.pages_per_block),
            per_plane: Divisor::new(shape.blocks_per_plane),
            per_channel: Divisor::new(shape.channels),
        }
    }
}

impl Geometry {
    /// Return this geometry with `planes` planes a die that execute one operation at a time together.
    #[must_use]
    pub(crate) fn with_planes_in_step(self, planes: u32) -> Geometry {
        Geometry { planes_in_step: planes, ..self }
    }

    /// Return whether the planes of a die execute one operation at a time together.
    pub(crate) fn has_planes_in_step(&self) -> bool {
        self.planes_in_step > 1
    }

    /// Return this geometry with `units` units a flash page.
    #[must_use]
    pub(crate) fn with_units(self, units: u32) -> Geometry {
        Geometry { units, ..self }
    }

    /// Return this geometry with another shape.
    #[must_use]
    pub(crate) fn with_shape(self, shape: Shape) -> Geometry {
        Geometry::from(shape).with_planes_in_step(self.planes_in_step).with_units(self.units)
    }

    /// Return the number of units of a flash page.
    #[inline]
    pub(crate) fn units(&self) -> u32 {
        self.units
    }

    /// Return the number of the flash page that contains `page`.
    #[inline]
    pub(crate) fn flash_page(&self, page: Ppn) -> u32 {
        self.units_to_flash_pages(page.0)
    }

    /// Convert a number of units, a multiple of those of a flash page, to flash pages. A division takes as
    /// long as all other work on a unit, and nearly every chip has a power of two.
    #[inline]
    fn units_to_flash_pages(&self, units: u32) -> u32 {
        if self.units & (self.units - 1) == 0 {
            units >> self.units.trailing_zeros()
        } else {
            cold_path();
            units / self.units
        }
    }

    /// Return the number of units before `page` in its flash page.
    #[inline]
    pub(crate) fn begun_in_flash_page(&self, page: Ppn) -> u32 {
        let mask = self.units - 1;
        if self.units & mask == 0 { page.0 & mask } else { page.0 % self.units }
    }

    /// Return whether `page` is the last unit of its flash page.
    #[inline]
    pub(crate) fn ends_flash_page(&self, page: Ppn) -> bool {
        self.begun_in_flash_page(page) + 1 == self.units
    }

    /// Return the number of a page's flash page within its block.
    #[inline]
    pub(crate) fn flash_page_in_block(&self, address: PageAddress) -> u32 {
        self.units_to_flash_pages(self.page_in_block(address))
    }

    /// Return the resource on which operations of `plane` are executed: its die, or the plane itself. Planes
    /// are counted last, so the first ones are planes 0.
    #[inline]
    pub(crate) fn die_of(&self, plane: PlaneIdx) -> DieIdx {
        if self.planes_in_step == 1 {
            return DieIdx(plane.0);
        }
        cold_path();
        DieIdx(plane.0 % (self.shape.planes / self.planes_in_step))
    }

    /// Return the resource on which operations on this page are executed.
    #[inline]
    pub(crate) fn die_at(&self, address: PageAddress) -> DieIdx {
        self.die_of(address.plane)
    }

    /// [`Geometry::die_at`], specialized for the fast path.
    #[inline(always)]
    pub(crate) fn die_at_of<M: FastPath>(&self, address: PageAddress) -> DieIdx {
        if M::MINIMAL { DieIdx(address.plane.0) } else { self.die_at(address) }
    }

    /// Return the dimensions.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Return the blocks of all planes.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.shape.planes * self.shape.blocks_per_plane
    }

    /// Return the pages of all blocks.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.blocks() * self.shape.pages_per_block
    }

    /// Return the pages of a block that hold data.
    #[must_use]
    #[inline]
    pub fn data_pages(&self) -> u32 {
        self.shape.pages_per_block - self.shape.metadata_pages
    }

    /// Return an upper estimate of the memory for the state of such a device [bytes]: 4 a logical page and 4
    /// a physical one for the maps, a bit a page, some 40 a block for accounting, wear and policies; 512 a
    /// plane and 128 a channel for queues and lists.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let pages = u64::from(self.pages());
        4 * u64::from(self.shape.logical_pages)
            + 4 * pages
            + pages / 8
            + 40 * u64::from(self.blocks())
            + 512 * u64::from(self.shape.planes)
            + 128 * u64::from(self.shape.channels)
    }

    #[inline]
    pub(crate) fn block_of(&self, page: Ppn) -> BlockIdx {
        BlockIdx(self.per_block.quotient(page.0))
    }

    /// Return the number of a page within its block.
    #[inline]
    pub(crate) fn page_in_block(&self, address: PageAddress) -> u32 {
        address.page.0 - self.first_page(address.block).0
    }

    /// Return the number of a page's block within its plane.
    pub(crate) fn block_in_plane(&self, address: PageAddress) -> u32 {
        address.block.0 - address.plane.0 * self.shape.blocks_per_plane
    }

    #[inline]
    pub(crate) fn first_page(&self, block: BlockIdx) -> Ppn {
        Ppn(block.0 * self.shape.pages_per_block)
    }

    #[inline]
    pub(crate) fn plane_of(&self, block: BlockIdx) -> PlaneIdx {
        PlaneIdx(self.per_plane.quotient(block.0))
    }

    /// Return the address of `page`.
    #[inline]
    pub(crate) fn address_of(&self, page: Ppn) -> PageAddress {
        self.address_in(self.block_of(page), page)
    }

    /// Return the address of `page`, which is in `block`.
    #[inline]
    pub(crate) fn address_in(&self, block: BlockIdx, page: Ppn) -> PageAddress {
        PageAddress { page, block, plane: self.plane_of(block) }
    }

    /// Return the address of page `offset` of `block`.
    #[inline]
    pub(crate) fn address_at(&self, block: BlockIdx, offset: u32) -> PageAddress {
        self.address_in(block, Ppn(self.first_page(block).0 + offset))
    }

    /// Return every block of `plane`.
    pub(crate) fn blocks_of(&self, plane: PlaneIdx) -> impl Iterator<Item = BlockIdx> + use<> {
        let first = plane.0 * self.shape.blocks_per_plane;
        (first..first + self.shape.blocks_per_plane).map(BlockIdx)
    }

    #[inline]
    pub(crate) fn channel_of(&self, plane: PlaneIdx) -> usize {
        self.per_channel.remainder(plane.0) as usize
    }
}

// The addresses of the consecutive pages of a merge unit, found without dividing.

/// The pages of a unit from one of them on. The iterator does not end with the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Places")]
pub(crate) struct PageAddresses {
    /// The plane of the first page of a row, and the distance between consecutive planes.
    pub(crate) first_plane: u32,
    pub(crate) planes_apart: u32,
    pub(crate) planes: u32,
    pub(crate) blocks_per_plane: u32,
    pub(crate) pages_per_block: u32,
    /// The block within its plane and the page of the next address, and the index of its plane in the row.
    pub(crate) block: u32,
    pub(crate) page: u32,
    #[serde(rename = "turn")]
    pub(crate) plane_offset: u32,
}

impl PageAddresses {
    /// Return the next address.
    #[inline]
    pub(crate) fn address(&self) -> PageAddress {
        let plane = self.first_plane + self.plane_offset * self.planes_apart;
        let block = plane * self.blocks_per_plane + self.block;
        let page = Ppn(block * self.pages_per_block + self.page);
        PageAddress { page, block: BlockIdx(block), plane: PlaneIdx(plane) }
    }
}

impl Iterator for PageAddresses {
    type Item = PageAddress;

    #[inline]
    fn next(&mut self) -> Option<PageAddress> {
        let address = self.address();
        self.plane_offset += 1;
        if self.plane_offset == self.planes {
            (self.plane_offset, self.page) = (0, self.page + 1);
            if self.page == self.pages_per_block {
                (self.page, self.block) = (0, self.block + 1);
            }
        }
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_are_numbered_channel_first() {
        let geometry = Geometry::from(Shape {
            channels: 3,
            planes: 6,
            blocks_per_plane: 5,
            pages_per_block: 7,
            metadata_pages: 1,
            page_bytes: 4096,
            logical_pages: 100,
        });
        let channels: Vec<usize> =
            (0..6).map(|plane| geometry.channel_of(PlaneIdx(plane))).collect();
        assert_eq!(channels, [0, 1, 2, 0, 1, 2]);
        let page = Ppn((3 * 5 + 2) * 7 + 4);
        let address = geometry.address_of(page);
        assert_eq!((address.page, address.plane), (page, PlaneIdx(3)));
        assert_eq!(address.block, BlockIdx(3 * 5 + 2));
        assert_eq!(geometry.page_in_block(address), 4);
        assert_eq!(geometry.data_pages(), 6);
    }
}
