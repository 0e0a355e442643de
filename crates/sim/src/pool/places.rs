//! Where the pages of a unit lie, one after the other: found without dividing.

use super::units::{Layout, UnitIdx};
use crate::flash::geometry::{BlockIdx, Place, PlaneIdx, Ppn};

/// The pages of a unit from one of them on. It does not end with the unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// The plane of the first page of a row, and how many lie between those of two.
    first_plane: u32,
    planes_apart: u32,
    planes: u32,
    blocks_per_plane: u32,
    pages_per_block: u32,
    /// The block of its plane that the next page is in, its page there, and the plane's number in its row.
    block: u32,
    page: u32,
    turn: u32,
}

impl Places {
    pub(super) fn new(layout: &Layout, unit: UnitIdx, offset: u32) -> Places {
        let shape = layout.geometry.shape();
        let (bank, index) = (unit.0 / layout.per_bank, unit.0 % layout.per_bank);
        let (first_plane, planes_apart) = if layout.own_channels {
            (bank, layout.banks)
        } else {
            (bank * layout.planes_per_bank, 1)
        };
        let row = offset / layout.planes_per_bank;
        Places {
            first_plane,
            planes_apart,
            planes: layout.planes_per_bank,
            blocks_per_plane: shape.blocks_per_plane,
            pages_per_block: shape.pages_per_block,
            block: index * layout.blocks_per_plane + row / shape.pages_per_block,
            page: row % shape.pages_per_block,
            turn: offset % layout.planes_per_bank,
        }
    }

    /// The next.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        let plane = self.first_plane + self.turn * self.planes_apart;
        let block = plane * self.blocks_per_plane + self.block;
        let page = Ppn(block * self.pages_per_block + self.page);
        Place { page, block: BlockIdx(block), plane: PlaneIdx(plane) }
    }
}

impl Iterator for Places {
    type Item = Place;

    #[inline]
    fn next(&mut self) -> Option<Place> {
        let place = self.place();
        self.turn += 1;
        if self.turn == self.planes {
            (self.turn, self.page) = (0, self.page + 1);
            if self.page == self.pages_per_block {
                (self.page, self.block) = (0, self.block + 1);
            }
        }
        Some(place)
    }
}
