//! Grown defects: the list on flash, per plane, of blocks and pages that must not be used.
//!
//! ```text
//! erase fails │ block worn       ─▶ the block is listed
//! program fails                  ─▶ its block is listed: it is retired after its next erase
//! pages worn                     ─▶ the pages are listed
//!                                    each time the list of the plane is programmed, beside other operations
//! ```
//!
//! A defect that was not listed before a power loss is found again. A block whose erase has failed cannot be
//! read, so it is erased again, which fails again. Worn pages are found at the next erase. A block with a
//! failed program is used until another program fails.
//!
//! **Source**: ONFI, factory defect mapping (bad blocks are marked, and the host makes and keeps a table of
//! them); the grown defect list of SCSI disks.
//! **Faithful**: after a power loss only lists that were programmed completely are known.
//! **Simplified**: a list is a page of a reserved area, which neither wears nor takes space; there are two,
//! so that one is intact while the other is programmed.
//! **Ambiguous**: nothing.

use serde::{Deserialize, Serialize};

use super::{Contents, Label, PhysicalPage, RecordKind};
use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Geometry, Ppn};
use crate::flash::nand::Nand;

/// The kind of defect of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Defect {
    /// The block is retired.
    Block,
    /// A program of the block has failed: it will be retired after its next erase.
    Program,
    /// Some of its pages are retired.
    Pages,
}

/// The content of the lists, and the defects that only an attempt reveals.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Defects {
    blocks: Vec<bool>,
    programs: Vec<bool>,
    /// One bit a page.
    pages: Vec<u64>,
    /// Blocks that cannot be erased.
    #[serde(rename = "broken")]
    unerasable: Vec<bool>,
}

impl Defects {
    fn new(geometry: &Geometry) -> Defects {
        let none = vec![false; geometry.blocks() as usize];
        let pages = vec![0; geometry.pages().div_ceil(64) as usize];
        Defects { blocks: none.clone(), programs: none.clone(), pages, unerasable: none }
    }

    /// Return whether `block` is listed as a whole.
    pub(crate) fn has_block(&self, block: BlockIdx) -> bool {
        self.blocks[block.0 as usize]
    }

    /// Return whether a program of `block` is listed as failed.
    pub(crate) fn has_program(&self, block: BlockIdx) -> bool {
        self.programs[block.0 as usize]
    }

    /// Return whether `page` is listed.
    pub(crate) fn has_page(&self, page: Ppn) -> bool {
        bits::has(&self.pages, page.0 as usize)
    }

    /// Return the listed blocks, and the listed pages, one bit each.
    pub(crate) fn listed(&self) -> (&[bool], &[u64]) {
        (&self.blocks, &self.pages)
    }
}

impl Contents {
    /// Enable the lists of defects: flash wears out.
    pub(crate) fn list_defects(&mut self, whole: &Geometry) {
        self.defects = Some(Box::new(Defects::new(whole)));
    }

    /// Return the lists, if flash wears out.
    pub(crate) fn defects(&self) -> Option<&Defects> {
        self.defects.as_deref()
    }

    /// Queue the listing of `defect` of `block`, with the pages retired in `nand`; returns the number of the
    /// record, or `None` if flash does not wear out.
    pub(crate) fn list(&mut self, defect: Defect, block: BlockIdx, nand: &Nand) -> Option<u32> {
        self.defects.as_ref()?;
        let mut cells = Vec::new();
        if defect == Defect::Pages {
            let retired = self.pages_of(block).map(|page| nand.is_page_retired(Ppn(page as u32)));
            cells.extend(
                retired.map(
                    |retired| {
                        if retired { PhysicalPage::Torn } else { PhysicalPage::Erased }
                    },
                ),
            );
        }
        Some(self.records.add(RecordKind::List(defect, block), &cells, Label::default()))
    }

    /// List `defect` of `block`; its listed pages are those marked as torn in `cells`.
    pub(super) fn list_defect(&mut self, defect: Defect, block: BlockIdx, cells: &[PhysicalPage]) {
        let pages = self.pages_of(block);
        let defects = self.defects.as_mut().expect("the flash has a defect list");
        match defect {
            Defect::Block => defects.blocks[block.0 as usize] = true,
            Defect::Program => defects.programs[block.0 as usize] = true,
            Defect::Pages => {
                let retired = pages.zip(cells).filter(|(_, cell)| **cell == PhysicalPage::Torn);
                retired.for_each(|(page, _)| bits::insert(&mut defects.pages, page));
            }
        }
    }

    /// List all defects of `nand`, and the blocks with `failed` programs. Returns the blocks with new
    /// entries.
    pub(crate) fn list_all(&mut self, nand: &Nand, failed: &[BlockIdx]) -> Vec<BlockIdx> {
        let mut added = Vec::new();
        let blocks = self.defects.as_ref().map_or(0, |defects| defects.blocks.len() as u32);
        for block in (0..blocks).map(BlockIdx) {
            let pages = self.pages_of(block);
            let Some(defects) = &mut self.defects else { break };
            let whole = nand.is_bad(block);
            let program = failed.binary_search(&block).is_ok();
            let retired = |page: &usize| nand.is_page_retired(Ppn(*page as u32));
            let new = |page: &usize| !bits::has(&defects.pages, *page);
            let pages: Vec<usize> = pages.filter(|page| retired(page) && new(page)).collect();
            let at = block.0 as usize;
            if whole && !defects.blocks[at] || program && !defects.programs[at] || !pages.is_empty()
            {
                added.push(block);
            }
            (defects.blocks[at], defects.programs[at]) = (whole, program);
            pages.iter().for_each(|page| bits::insert(&mut defects.pages, *page));
        }
        added
    }

    /// Record that the erase of `block`, which has ended by `now`, failed: it can neither be read nor erased.
    pub(crate) fn erase_failed(&mut self, block: BlockIdx, now: u64) {
        self.apply_ended(now);
        self.half_erase(block);
        self.cannot_be_erased(block);
    }

    /// Record that `block` cannot be erased.
    pub(crate) fn cannot_be_erased(&mut self, block: BlockIdx) {
        self.defects.iter_mut().for_each(|defects| defects.unerasable[block.0 as usize] = true);
    }

    /// Return whether an erase of `block` has failed.
    pub(crate) fn is_broken(&self, block: BlockIdx) -> bool {
        self.defects.as_ref().is_some_and(|defects| defects.unerasable[block.0 as usize])
    }

    /// Return whether `block` is listed as a whole.
    pub(crate) fn is_listed(&self, block: BlockIdx) -> bool {
        self.defects.as_ref().is_some_and(|defects| defects.has_block(block))
    }
}
