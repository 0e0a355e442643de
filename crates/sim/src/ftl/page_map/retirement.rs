//! Retirement: blocks and pages that are worn or failed are taken out of use, and the device ends
//! read-only when too little is left.
//!
//! ```text
//! erase ─ failed, or a program of the block had failed ─▶ block retired
//!       └ look at its pages: worn ones ─▶ "blocks": block retired
//!                                        "pages":  pages retired, as long as bitmaps are left
//!                                        "halves", "parity": the group of each retired
//! ```
//!
//! **Source**: OFC (2011) §IV.C and Figure 4.
//! **Faithful**: whole blocks; single pages by a bitmap for each partly used block, with a limit on how
//! many there are; groups of pages (even and odd ones, first and second half).
//! **Simplified**: a block of which a program failed is filled up and retired when it is collected;
//! bad-block tables and bitmaps take no flash; they take time where power may be lost (`flash/contents/defects.rs`).
//! **Ambiguous**: OFC does not say when a block is given up whose pages are retired one by one: here
//! when fewer than `usable_pages_min` are left, when the limit is reached, or when its metadata page is
//! worn. Nor when a device ends: here when what is left would not make a device any more (the check
//! that every profile must pass), or when no plane can take a page.

use serde::{Deserialize, Serialize};
use uflip_core::{Error, ErrorKind};

use super::PageMap;
use crate::flash::contents::{Defect, Defects};
use crate::flash::fast_path::Full;
use crate::flash::geometry::{BlockIdx, Place, PlaneIdx, Ppn};
use crate::flash::media::CollectMedia;
use crate::pool::blocks::{Stream, Taken};
use crate::pool::free::FreeOrder;

/// What is retired of a block with worn pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // explained in docs/reference/profiles.md
pub enum Retire {
    /// Nothing: only what fails is retired.
    Nothing,
    Blocks,
    Pages,
    /// All even or all odd pages.
    Parity,
    /// The first or the second half of the pages.
    Halves,
}

/// How blocks and pages are retired.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RetirementOptions {
    pub(crate) retire: Retire,
    /// Blocks that may have pages retired one by one.
    pub(crate) partial_blocks_max: u32,
    /// A block with fewer usable pages is retired.
    pub(crate) usable_pages_min: u32,
    /// Blocks that are bad from the factory, in order.
    pub(crate) bad: Vec<BlockIdx>,
    /// Pages that must take data for the device to be written to.
    pub(crate) needed_pages: u32,
}

/// What was retired.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Retirement {
    options: RetirementOptions,
    /// Blocks of which single pages were retired.
    partial_blocks: u32,
    /// Blocks of which a program failed, to be retired when they are collected; in order.
    failed: Vec<BlockIdx>,
    /// Nothing is written any more.
    pub(super) read_only: bool,
}

impl Retirement {
    pub(super) fn new(options: RetirementOptions) -> Retirement {
        Retirement { options, partial_blocks: 0, failed: Vec::new(), read_only: false }
    }

    /// A program of `block` has failed; whether it is the first.
    fn program_failed(&mut self, block: BlockIdx) -> bool {
        let place = self.failed.binary_search(&block);
        if let Err(at) = place {
            self.failed.insert(at, block);
        }
        place.is_err()
    }

    fn forget(&mut self, block: BlockIdx) -> bool {
        self.failed.binary_search(&block).map(|at| self.failed.remove(at)).is_ok()
    }
}

/// What a device that has worn out says.
#[cold]
pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::Device, "The simulated device has worn out: it is read-only")
        .got("a write, with too few blocks left that can be used")
        .allowed("reads")
        .action("make a new device, or one with more spare space, less wear or fewer failures")
}

impl PageMap {
    /// Whether too little is left to write to the device.
    #[inline]
    pub(crate) fn is_read_only(&self) -> bool {
        self.full || self.retirement.as_ref().is_some_and(|retirement| retirement.read_only)
    }

    /// Why nothing is written any more.
    #[cold]
    pub(crate) fn why_read_only(&self) -> Error {
        if !self.full {
            return read_only();
        }
        Error::new(
            ErrorKind::Device,
            "The simulated device has no room left: no die can be collected",
        )
        .got(format!(
            "{} free blocks in all, {} in reserve a die",
            self.blocks.free_blocks(),
            self.options.reserved_blocks
        ))
        .allowed("reads")
        .action("make a new device, with more spare space or fewer reserved blocks")
    }

    /// No plane can take a page: the device is read-only from now on. Where nothing is ever retired no
    /// profile that was accepted should come to that.
    #[cold]
    pub(crate) fn end_of_life(&mut self) {
        match &mut self.retirement {
            Some(retirement) => retirement.read_only = true,
            None => self.full = true,
        }
    }

    /// Programming `to` has failed: another page of `stream`, on the same plane where it has one.
    #[cold]
    #[inline(never)]
    pub(super) fn page_instead(
        &mut self,
        to: Taken,
        stream: Stream,
        media: &mut impl CollectMedia,
    ) -> Option<Taken> {
        let Place { plane, block, .. } = to.place;
        self.program_failed(block, media);
        self.blocks.mark_invalid(to.place);
        self.close_if_full(to, stream, media);
        let plane = if self.blocks.has_page(plane, stream) {
            plane
        } else {
            self.plane_for::<Full>(None, stream)?
        };
        Some(self.blocks.take_page(plane, stream))
    }

    /// A program of `block` has failed: it will be retired.
    #[cold]
    pub(super) fn program_failed(&mut self, block: BlockIdx, media: &mut impl CollectMedia) {
        let retirement = self.retirement.as_mut().expect("programs fail where flash wears out");
        if retirement.program_failed(block) {
            media.list(Defect::Program, block);
        }
    }

    /// Blocks of which a program has failed, in order.
    pub(crate) fn failed_programs(&self) -> &[BlockIdx] {
        self.retirement.as_ref().map_or(&[], |retirement| &retirement.failed)
    }

    /// What is not to be used after power was lost is what is listed, whatever was known before.
    pub(super) fn find_defects(&mut self, listed: &Defects) {
        let geometry = self.options.geometry;
        let retirement = self.retirement.as_mut().expect("there are lists where flash wears out");
        for block in (0..geometry.blocks()).map(BlockIdx) {
            if listed.has_block(block) {
                if retirement.options.bad.binary_search(&block).is_err() {
                    self.blocks.found_bad(block);
                }
                continue;
            }
            let pages = geometry.place(block, 0);
            let pages = (0..geometry.data_pages()).map(|page| pages.behind(page));
            let mut retired = pages.filter(|page| listed.has_page(page.page)).peekable();
            retirement.partial_blocks += u32::from(retired.peek().is_some());
            retired.for_each(|page| self.blocks.retire_page(page));
            if listed.has_program(block) {
                retirement.program_failed(block);
            }
        }
        self.end_if_used_up();
    }

    /// Too little may be left.
    fn end_if_used_up(&mut self) {
        let left = self.blocks.usable_pages();
        let retirement = self.retirement.as_mut().expect("it was there");
        retirement.read_only |= left < retirement.options.needed_pages;
    }

    /// `block` of `plane` was erased, or could not be: it is free again, or retired, whole or in part.
    pub(super) fn reuse(
        &mut self,
        plane: PlaneIdx,
        block: BlockIdx,
        erased: bool,
        media: &mut impl CollectMedia,
    ) {
        let Some(retirement) = &mut self.retirement else {
            return self.blocks.set_free(block);
        };
        let failed = retirement.forget(block) || !erased;
        if failed || !self.retire_worn_pages(plane, block, media) {
            self.retire_block(block, media);
        } else {
            self.set_free(block, media);
        }
        self.end_if_used_up();
    }

    /// `block`, which was erased, takes data again.
    fn set_free(&mut self, block: BlockIdx, media: &impl CollectMedia) {
        match self.options.free_order {
            FreeOrder::FewestErrors => {
                let errors = self.errors_of(block, media);
                self.blocks.set_free_with(block, errors);
            }
            _ => self.blocks.set_free(block),
        }
    }

    fn retire_block(&mut self, block: BlockIdx, media: &mut impl CollectMedia) {
        let partial = self.blocks.usable(block) < self.options.geometry.data_pages();
        let retirement = self.retirement.as_mut().expect("it was there");
        retirement.partial_blocks -= u32::from(partial);
        self.blocks.retire_block(block);
        media.retire_block(block);
        media.list(Defect::Block, block);
    }

    /// Retire what is worn of `block`, which is erased; false where that is all of it.
    fn retire_worn_pages(
        &mut self,
        plane: PlaneIdx,
        block: BlockIdx,
        media: &mut impl CollectMedia,
    ) -> bool {
        let retirement = self.retirement.as_ref().expect("it was there");
        let RetirementOptions { retire, partial_blocks_max, usable_pages_min, .. } =
            retirement.options;
        if retire == Retire::Nothing {
            return true;
        }
        if self.metadata_page(plane, block).is_some_and(|page| media.is_worn(page)) {
            return false;
        }
        let data_pages = self.options.geometry.data_pages();
        let first = self.options.geometry.first_page(block).0;
        let mut worn = std::mem::take(&mut self.scratch);
        worn.clear();
        worn.extend((first..first + data_pages).map(Ppn).filter(|page| {
            !self.blocks.is_retired(*page) && media.is_worn(Place { page: *page, block, plane })
        }));
        let units = self.options.geometry.units();
        let group = |page: Ppn| match retire {
            Retire::Parity => (page.0 - first) / units % 2,
            Retire::Halves => 2 * ((page.0 - first) / units) / (data_pages / units),
            Retire::Nothing | Retire::Blocks | Retire::Pages => 0,
        };
        if matches!(retire, Retire::Parity | Retire::Halves) && !worn.is_empty() {
            let concerned = [0, 1].map(|number| worn.iter().any(|page| group(*page) == number));
            worn.clear();
            worn.extend(
                (first..first + data_pages).map(Ppn).filter(|page| {
                    concerned[group(*page) as usize] && !self.blocks.is_retired(*page)
                }),
            );
        }
        let flash_page = |page: &Ppn| self.options.geometry.flash_page(*page);
        let mut together = worn.chunk_by(|one, next| flash_page(one) == flash_page(next));
        assert!(together.all(|page| page.len() == units as usize), "flash pages are retired whole");
        let before = self.blocks.usable(block);
        let begins = before == data_pages && !worn.is_empty();
        let no_bitmap = begins
            && retire == Retire::Pages
            && self.retirement.as_ref().is_some_and(|it| it.partial_blocks >= partial_blocks_max);
        let left = before - worn.len() as u32;
        let whole = !worn.is_empty()
            && (retire == Retire::Blocks || no_bitmap || left < usable_pages_min.max(1));
        if !whole {
            for page in &worn {
                let page = Place { page: *page, block, plane };
                self.blocks.retire_page(page);
                media.retire_page(page);
            }
            let retirement = self.retirement.as_mut().expect("it was there");
            retirement.partial_blocks += u32::from(begins);
            if !worn.is_empty() {
                media.list(Defect::Pages, block);
            }
        }
        self.scratch = worn;
        !whole
    }
}
