//! Retirement: blocks and pages that are worn or failed are taken out of use. The device becomes read-only
//! when too few are left.
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
//! **Simplified**: after a failed program a block is filled up, and retired when it is collected; bad-block
//! tables and bitmaps take no flash; they take time if power may be lost (`flash/contents/defects.rs`).
//! **Ambiguous**: OFC does not say when a block is given up whose pages are retired one by one: here when
//! fewer than `usable_pages_min` are left, when the limit is reached, or when its metadata page is worn. It
//! also does not say when a device ends: here when the rest would not make a valid device (the check that
//! every profile must pass), or when no plane can take a page.

use serde::{Deserialize, Serialize};
use uflip_core::{Error, ErrorKind};

use super::PageMap;
use crate::flash::contents::{Defect, Defects};
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{BlockIdx, PageAddress, PlaneIdx, Ppn};
use crate::flash::media::CollectMedia;
use crate::pool::blocks::{AllocatedPage, PageStream};
use crate::pool::free::FreeOrder;

/// The part of a block with worn pages that is retired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // explained in docs/reference/profiles.md
pub enum Retire {
    /// Nothing: only failures are retired.
    Nothing,
    Blocks,
    Pages,
    /// All even or all odd pages.
    Parity,
    /// The first or the second half of the pages.
    Halves,
}

/// Options of the retirement of blocks and pages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RetirementOptions {
    pub(crate) retire: Retire,
    /// Blocks that may have pages retired one by one.
    pub(crate) partial_blocks_max: u32,
    /// A block with fewer usable pages is retired.
    pub(crate) usable_pages_min: u32,
    /// Blocks that are bad from the factory, sorted.
    pub(crate) bad: Vec<BlockIdx>,
    /// Usable pages that the device needs to accept writes.
    pub(crate) needed_pages: u32,
}

/// The retired blocks and pages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Retirement {
    options: RetirementOptions,
    /// Blocks that had single pages retired.
    partial_blocks: u32,
    /// Blocks with a failed program, which are retired when they are collected; sorted.
    failed: Vec<BlockIdx>,
    /// The device is read-only.
    pub(super) read_only: bool,
}

impl Retirement {
    pub(super) fn new(options: RetirementOptions) -> Retirement {
        Retirement { options, partial_blocks: 0, failed: Vec::new(), read_only: false }
    }

    /// Record a failed program of `block`; returns whether it is the first.
    fn program_failed(&mut self, block: BlockIdx) -> bool {
        let position = self.failed.binary_search(&block);
        if let Err(at) = position {
            self.failed.insert(at, block);
        }
        position.is_err()
    }

    fn forget(&mut self, block: BlockIdx) -> bool {
        self.failed.binary_search(&block).map(|at| self.failed.remove(at)).is_ok()
    }
}

/// Return the error of a write to a worn-out device.
#[cold]
pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::Device, "The simulated device has worn out: it is read-only")
        .got("a write, with too few blocks left that can be used")
        .allowed("reads")
        .action("make a new device, or one with more spare space, less wear or fewer failures")
}

impl PageMap {
    /// Return whether the device is read-only because too little is left.
    #[inline]
    pub(crate) fn is_read_only(&self) -> bool {
        self.full || self.retirement.as_ref().is_some_and(|retirement| retirement.read_only)
    }

    /// Return the error that explains why the device is read-only.
    #[cold]
    pub(crate) fn read_only_error(&self) -> Error {
        if !self.full {
            return read_only();
        }
        Error::new(ErrorKind::Device, "The simulated device is full: no die can be collected")
            .got(format!(
                "{} free blocks in all, {} in reserve a die",
                self.blocks.free_blocks(),
                self.options.reserved_blocks
            ))
            .allowed("reads")
            .action("make a new device, with more spare space or fewer reserved blocks")
    }

    /// Make the device read-only: no plane can take a page. On flash that does not wear out, no accepted
    /// profile should lead to this.
    #[cold]
    pub(crate) fn end_of_life(&mut self) {
        match &mut self.retirement {
            Some(retirement) => retirement.read_only = true,
            None => self.full = true,
        }
    }

    /// Return another page of `stream` after programming `to` failed, on the same plane if it has one.
    #[cold]
    #[inline(never)]
    pub(super) fn replacement_page(
        &mut self,
        to: AllocatedPage,
        stream: PageStream,
        media: &mut impl CollectMedia,
    ) -> Option<AllocatedPage> {
        let PageAddress { plane, block, .. } = to.address;
        self.program_failed(block, media);
        self.blocks.mark_invalid(to.address);
        self.close_if_full(to, stream, media);
        let plane = if self.blocks.has_page(plane, stream) {
            plane
        } else {
            self.plane_for::<AllFeatures>(None, stream)?
        };
        Some(self.blocks.take_page(plane, stream))
    }

    /// Record a failed program of `block`, which will be retired.
    #[cold]
    pub(super) fn program_failed(&mut self, block: BlockIdx, media: &mut impl CollectMedia) {
        let retirement =
            self.retirement.as_mut().expect("programs fail only on flash that wears out");
        if retirement.program_failed(block) {
            media.list_defect(Defect::Program, block);
        }
    }

    /// Return the blocks with a failed program, sorted.
    pub(crate) fn failed_programs(&self) -> &[BlockIdx] {
        self.retirement.as_ref().map_or(&[], |retirement| &retirement.failed)
    }

    /// Restore the retired blocks and pages from the lists on flash after a power loss.
    pub(super) fn find_defects(&mut self, listed: &Defects) {
        let geometry = self.options.geometry;
        let retirement = self.retirement.as_mut().expect("only flash that wears out has defects");
        for block in (0..geometry.blocks()).map(BlockIdx) {
            if listed.has_block(block) {
                if retirement.options.bad.binary_search(&block).is_err() {
                    self.blocks.retire_unused(block);
                }
                continue;
            }
            let pages = geometry.address_at(block, 0);
            let pages = (0..geometry.data_pages()).map(|page| pages.plus_pages(page));
            let mut retired = pages.filter(|page| listed.has_page(page.page)).peekable();
            retirement.partial_blocks += u32::from(retired.peek().is_some());
            retired.for_each(|page| self.blocks.retire_page(page));
            if listed.has_program(block) {
                retirement.program_failed(block);
            }
        }
        self.end_if_used_up();
    }

    /// Make the device read-only if too few usable pages are left.
    fn end_if_used_up(&mut self) {
        let left = self.blocks.usable_pages();
        let retirement = self.retirement.as_mut().expect("the flash wears out");
        retirement.read_only |= left < retirement.options.needed_pages;
    }

    /// Free `block` of `plane` after its erase, or retire it or some of its pages.
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

    /// Return the erased `block` to the free pool.
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
        let retirement = self.retirement.as_mut().expect("the flash wears out");
        retirement.partial_blocks -= u32::from(partial);
        self.blocks.retire_block(block);
        media.retire_block(block);
        media.list_defect(Defect::Block, block);
    }

    /// Retire the worn pages of the erased `block`; returns false if the whole block is to be retired.
    fn retire_worn_pages(
        &mut self,
        plane: PlaneIdx,
        block: BlockIdx,
        media: &mut impl CollectMedia,
    ) -> bool {
        let retirement = self.retirement.as_ref().expect("the flash wears out");
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
            !self.blocks.is_retired(*page)
                && media.is_worn(PageAddress { page: *page, block, plane })
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
        let mut same_flash_page = worn.chunk_by(|one, next| flash_page(one) == flash_page(next));
        assert!(
            same_flash_page.all(|page| page.len() == units as usize),
            "flash pages are retired whole"
        );
        let before = self.blocks.usable(block);
        let begins = before == data_pages && !worn.is_empty();
        let no_bitmap = begins
            && retire == Retire::Pages
            && self
                .retirement
                .as_ref()
                .is_some_and(|retirement| retirement.partial_blocks >= partial_blocks_max);
        let usable = before - worn.len() as u32;
        let whole = !worn.is_empty()
            && (retire == Retire::Blocks || no_bitmap || usable < usable_pages_min.max(1));
        if !whole {
            for page in &worn {
                let page = PageAddress { page: *page, block, plane };
                self.blocks.retire_page(page);
                media.retire_page(page);
            }
            let retirement = self.retirement.as_mut().expect("the flash wears out");
            retirement.partial_blocks += u32::from(begins);
            if !worn.is_empty() {
                media.list_defect(Defect::Pages, block);
            }
        }
        self.scratch = worn;
        !whole
    }
}

// Error-aware block allocation: the bit errors of a block and the expected lifetime of the data decide which
// block is filled. It is a third way to treat flash that wears out, besides the retirement of blocks and of
// pages.
//
// ```text
// free blocks by the errors of their worst page    few ├──────────────┤ many
// the host's data, which is overwritten soon          ▲
// what collection moves, or the detector calls cold                   ▲
// ```
//
// A block with many errors is therefore erased seldom, since its data stays valid for long, and one with few
// errors takes the wear. Blocks become worn at the same time rather than after the same number of erases.
//
// **Source**: OFC (2011) §IV.C: "allocate pages based on the current raw bit error rate as well as the actual write
// pattern to be written"; blocks levelled by their errors: Pan, Dong & Zhang (IEEE TVLSI 21(7), 2013), Peleato et al.
// (IEEE ICC 2015).
// **Faithful**: the bit error rate at the time, and the data, choose the block.
// **Simplified**: a block's rate is that of its worst usable page; it is known from its first erase on. The
// bits of a page do not matter, since data is not simulated.
// **Ambiguous**: the report gives zeros as an example of a pattern that wears more; here the pattern is the
// time until data is overwritten, which follows from its stream.

impl PageMap {
    /// Return a number that grows with the bit errors of the worst usable page of the erased `block`.
    pub(super) fn errors_of(&self, block: BlockIdx, media: &impl CollectMedia) -> u32 {
        let geometry = &self.options.geometry;
        let first = geometry.first_page(block).0;
        let pages = (first..first + geometry.data_pages()).map(Ppn);
        let used = pages.filter(|page| !self.blocks.is_retired(*page));
        used.map(|page| media.errors(geometry.address_in(block, page))).max().unwrap_or(u32::MAX)
    }
}
