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
//! A plane has free blocks, open ones and a collection of its own; most dies have one, and are a plane. What the
//! planes of a die share is the channel and, unless they work on their own, the time: they have one [`DieIdx`]
//! ([`Geometry::die_of`]). Planes that work on their own have one each, as dies have.
//!
//! Where the map counts in units smaller than a flash page, what is called a page here is such a unit, and
//! everything counts in them: the map, the books of blocks, counters. So many neighbours make a flash page
//! ([`Geometry::units`]), which is programmed as one.

use std::hint::cold_path;

use super::fast_path::FastPath;
use crate::collections::divisor::Divisor;

/// Logical page number: what the host addresses, in flash pages.
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

/// Whoever does one thing at a time: a die, or a plane that works on its own. It has the number of its first plane.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct DieIdx(pub u32);

/// A physical page together with where it lies, so that nobody divides to find out again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Place {
    pub(crate) page: Ppn,
    pub(crate) block: BlockIdx,
    pub(crate) plane: PlaneIdx,
}

impl Place {
    /// The page that lies so many behind it in its block.
    #[inline]
    pub(crate) fn behind(self, pages: u32) -> Place {
        Place { page: Ppn(self.page.0 + pages), ..self }
    }
}

/// How many of what.
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

/// A shape that can be calculated with: no division takes longer than a multiplication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Geometry {
    shape: Shape,
    /// Planes that do one thing at a time together; 1 where each works on its own.
    planes_in_step: u32,
    /// Pages that make a flash page: 1, unless the map counts in smaller units.
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
    /// The same where the planes of a die, `planes` each, do one thing at a time together.
    #[must_use]
    pub(crate) fn with_planes_in_step(self, planes: u32) -> Geometry {
        Geometry { planes_in_step: planes, ..self }
    }

    /// Whether planes of a die do one thing at a time together.
    pub(crate) fn has_planes_in_step(&self) -> bool {
        self.planes_in_step > 1
    }

    /// The same where so many of its pages make a flash page.
    #[must_use]
    pub(crate) fn with_units(self, units: u32) -> Geometry {
        Geometry { units, ..self }
    }

    /// The same with these numbers.
    #[must_use]
    pub(crate) fn with_shape(self, shape: Shape) -> Geometry {
        Geometry::from(shape).with_planes_in_step(self.planes_in_step).with_units(self.units)
    }

    /// How many pages make a flash page.
    #[inline]
    pub(crate) fn units(&self) -> u32 {
        self.units
    }

    /// The number of the flash page that `page` is in.
    #[inline]
    pub(crate) fn flash_page(&self, page: Ppn) -> u32 {
        self.units_to_flash_pages(page.0)
    }

    /// So many units that whole flash pages begin with, as flash pages. A division takes as long as all else about
    /// a unit, and nearly every chip has a power of two.
    #[inline]
    fn units_to_flash_pages(&self, units: u32) -> u32 {
        if self.units & (self.units - 1) == 0 {
            units >> self.units.trailing_zeros()
        } else {
            cold_path();
            units / self.units
        }
    }

    /// How many units of its flash page lie before `page`.
    #[inline]
    pub(crate) fn begun_in_flash_page(&self, page: Ppn) -> u32 {
        let mask = self.units - 1;
        if self.units & mask == 0 { page.0 & mask } else { page.0 % self.units }
    }

    /// Whether the flash page that `page` is in ends with it.
    #[inline]
    pub(crate) fn ends_flash_page(&self, page: Ppn) -> bool {
        self.begun_in_flash_page(page) + 1 == self.units
    }

    /// The number of the flash page that a page is in within its block.
    #[inline]
    pub(crate) fn flash_page_in_block(&self, place: Place) -> u32 {
        self.units_to_flash_pages(self.page_in_block(place))
    }

    /// By whose time the plane goes: that of its die, or its own. Planes are counted last, so the first ones are
    /// planes 0.
    #[inline]
    pub(crate) fn die_of(&self, plane: PlaneIdx) -> DieIdx {
        if self.planes_in_step == 1 {
            return DieIdx(plane.0);
        }
        cold_path();
        DieIdx(plane.0 % (self.shape.planes / self.planes_in_step))
    }

    /// By whose time the plane goes that has this page.
    #[inline]
    pub(crate) fn die_at(&self, place: Place) -> DieIdx {
        self.die_of(place.plane)
    }

    /// [`Geometry::die_at`] in a device of one make.
    #[inline(always)]
    pub(crate) fn die_at_of<M: FastPath>(&self, place: Place) -> DieIdx {
        if M::MINIMAL { DieIdx(place.plane.0) } else { self.die_at(place) }
    }

    /// How many of what.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Blocks of all planes.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.shape.planes * self.shape.blocks_per_plane
    }

    /// Pages of all blocks.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.blocks() * self.shape.pages_per_block
    }

    /// Pages of a block that hold data.
    #[must_use]
    #[inline]
    pub fn data_pages(&self) -> u32 {
        self.shape.pages_per_block - self.shape.metadata_pages
    }

    /// What the state of such a device takes in memory [bytes], and some to spare: 4 a logical page and 4 a
    /// physical one for the maps, a bit a page, some 40 a block for books, wear and policies; 512 a plane and
    /// 128 a channel for queues and lists.
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

    /// The number of a page within its block.
    #[inline]
    pub(crate) fn page_in_block(&self, place: Place) -> u32 {
        place.page.0 - self.first_page(place.block).0
    }

    /// The number of the block of a page within its plane.
    pub(crate) fn block_in_plane(&self, place: Place) -> u32 {
        place.block.0 - place.plane.0 * self.shape.blocks_per_plane
    }

    #[inline]
    pub(crate) fn first_page(&self, block: BlockIdx) -> Ppn {
        Ppn(block.0 * self.shape.pages_per_block)
    }

    #[inline]
    pub(crate) fn plane_of(&self, block: BlockIdx) -> PlaneIdx {
        PlaneIdx(self.per_plane.quotient(block.0))
    }

    /// Where `page` lies.
    #[inline]
    pub(crate) fn place_of(&self, page: Ppn) -> Place {
        self.place_in(self.block_of(page), page)
    }

    /// Where `page`, which is in `block`, lies.
    #[inline]
    pub(crate) fn place_in(&self, block: BlockIdx, page: Ppn) -> Place {
        Place { page, block, plane: self.plane_of(block) }
    }

    /// Page `offset` of `block`.
    #[inline]
    pub(crate) fn place(&self, block: BlockIdx, offset: u32) -> Place {
        self.place_in(block, Ppn(self.first_page(block).0 + offset))
    }

    /// Every block of `plane`.
    pub(crate) fn blocks_of(&self, plane: PlaneIdx) -> impl Iterator<Item = BlockIdx> + use<> {
        let first = plane.0 * self.shape.blocks_per_plane;
        (first..first + self.shape.blocks_per_plane).map(BlockIdx)
    }

    #[inline]
    pub(crate) fn channel_of(&self, plane: PlaneIdx) -> usize {
        self.per_channel.remainder(plane.0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_are_counted_over_the_channels_first() {
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
        let place = geometry.place_of(page);
        assert_eq!((place.page, place.plane), (page, PlaneIdx(3)));
        assert_eq!(place.block, BlockIdx(3 * 5 + 2));
        assert_eq!(geometry.page_in_block(place), 4);
        assert_eq!(geometry.data_pages(), 6);
    }
}
