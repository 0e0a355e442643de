//! The addresses of the consecutive pages of a merge unit, found without dividing.

use crate::flash::geometry::{BlockIdx, PageAddress, PlaneIdx, Ppn};

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
