//! The open blocks of a plane, and the allocation of their pages.

use super::{Blocks, PageStream, first_usable};
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{BlockIdx, PageAddress, PlaneIdx, Ppn};

/// A block being filled: its next page, and the end of its usable pages. The two are equal when it is full.
#[derive(Clone, Copy, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Open")]
pub(super) struct OpenBlock {
    pub(super) next: u32,
    pub(super) end: u32,
    pub(super) block: u32,
}

impl OpenBlock {
    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.next == self.end
    }
}

/// An allocated page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocatedPage {
    pub(crate) address: PageAddress,
    /// The page fills its block.
    pub(crate) is_last: bool,
}

impl Blocks {
    /// Allocate the next page of `plane`, which is valid from now on. If it is the last of its block,
    /// [`Blocks::close`] must be called once the page is accounted for.
    ///
    /// # Panics
    /// If the plane has no page left.
    #[inline(always)]
    pub(crate) fn take_page(&mut self, plane: PlaneIdx, stream: PageStream) -> AllocatedPage {
        self.take_page_of::<AllFeatures>(plane, stream)
    }

    /// Like [`Blocks::take_page`], for a device of one make.
    #[inline(always)]
    pub(crate) fn take_page_of<M: FastPath>(
        &mut self,
        plane: PlaneIdx,
        stream: PageStream,
    ) -> AllocatedPage {
        let index = self.open_of(plane, stream);
        if self.open[index].is_full() {
            self.open_another(plane, stream);
        }
        let mut allocated = self.take_open(index, plane, stream);
        if !M::MINIMAL && !self.retired.is_empty() {
            allocated.is_last = self.pass_retired(plane, stream);
        }
        allocated
    }

    /// Allocate the next page of the block that `plane` has open for `stream`, on a device without retired
    /// pages.
    #[inline]
    pub(crate) fn take_open_page(&mut self, plane: PlaneIdx, stream: PageStream) -> AllocatedPage {
        self.take_open(self.open_of(plane, stream), plane, stream)
    }

    #[inline(always)]
    fn take_open(&mut self, index: usize, plane: PlaneIdx, stream: PageStream) -> AllocatedPage {
        self.open_pages[self.kind(stream)] -= 1;
        let open = &mut self.open[index];
        let page = Ppn(open.next);
        open.next += 1;
        let address = PageAddress { page, block: BlockIdx(open.block), plane };
        AllocatedPage { address, is_last: open.is_full() }
    }

    /// Return whether the next page of `stream` on `plane` continues a partly filled flash page.
    #[inline]
    pub(crate) fn has_open_flash_page(&self, plane: PlaneIdx, stream: PageStream) -> bool {
        let open = &self.open[self.open_of(plane, stream)];
        open.next != open.end && self.geometry.begun_in_flash_page(Ppn(open.next)) > 0
    }

    /// Return whether the flash page of `at` is partly filled, and so not programmed yet.
    pub(crate) fn is_in_open_flash_page(&self, at: PageAddress) -> bool {
        let first = at.plane.0 as usize * self.streams;
        let page = self.geometry.flash_page(at.page);
        self.open[first..first + self.streams].iter().any(|open| {
            let begun = self.geometry.begun_in_flash_page(Ppn(open.next)) > 0;
            begun && open.next != open.end && self.geometry.flash_page(Ppn(open.next)) == page
        })
    }

    /// Skip retired pages of the open block; returns whether it is then full.
    #[cold]
    fn pass_retired(&mut self, plane: PlaneIdx, stream: PageStream) -> bool {
        let index = self.open_of(plane, stream);
        let open = &mut self.open[index];
        open.next = first_usable(&self.retired, open.next, open.end);
        open.next == open.end
    }

    /// Open another block of `plane` for `stream`.
    ///
    /// # Panics
    /// If the plane has no free block.
    #[cold]
    pub(crate) fn open_another(&mut self, plane: PlaneIdx, stream: PageStream) {
        let index = self.open_of(plane, stream);
        self.open_pages[self.kind(stream)] += self.open_block(plane, index);
    }

    fn open_block(&mut self, plane: PlaneIdx, index: usize) -> u32 {
        let free = &mut self.free;
        let cold = self.cold.is_some_and(|cold| cold & 1 << (index % self.streams) != 0);
        let block = if cold { free.take_for_cold(plane.0) } else { free.take(plane.0) };
        let block = BlockIdx(block.expect("the plane has a free block"));
        let usable = self.usable(block);
        self.free_blocks -= 1;
        self.free_in[plane.0 as usize] -= 1;
        self.free_pages -= usable;
        self.supply_changes += 1;
        let pages = self.pages_of(index);
        let end = self.geometry.first_page(block).0 + pages.unwrap_or(self.geometry.data_pages());
        self.open[index] = OpenBlock { next: self.first_usable(block).0, end, block: block.0 };
        if let Some(role) = self.role_of.get_mut(block.0 as usize) {
            *role = (index % self.streams) as u8;
        }
        self.expect_valid(block, end);
        pages.unwrap_or(usable)
    }
}
