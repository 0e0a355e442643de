//! What is known on flash of blocks and pages that are not to be used: the list of grown defects of each plane.
//!
//! ```text
//! erase fails │ block worn       ─▶ the block is listed
//! program fails                  ─▶ its block is: to be taken out of use when it has been erased
//! pages worn                     ─▶ they are
//!                                    each time the list of the plane is programmed, beside what else there is
//! ```
//!
//! What was not listed when power went is found out again: a block whose erase has failed cannot be read, so that it
//! is erased again, which fails again; what is worn is seen at the next erase, and a block of which a program has
//! failed is used until another one fails.
//!
//! **Source**: ONFI, factory defect mapping (blocks that are bad are marked, and the host makes a table of them, which it
//! keeps); the grown defect list of SCSI disks.
//! **Faithful**: nothing is known after power was lost but what a list says that has been programmed whole.
//! **Simplified**: a list is a page of a reserved area, which neither wears nor takes room; there are two, so that
//! one is whole while the other is programmed.
//! **Ambiguous**: nothing.

use serde::{Deserialize, Serialize};

use super::Cell;
use super::records::What;
use super::{Contents, Label};
use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Geometry, Ppn};
use crate::flash::nand::Nand;

/// What is listed of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Defect {
    /// It is not used any more.
    Block,
    /// A program of it has failed: it will not be when it has been erased.
    Program,
    /// Some of its pages are not.
    Pages,
}

/// What the lists say, and what nobody knows who has not tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Defects {
    blocks: Vec<bool>,
    programs: Vec<bool>,
    /// One bit a page.
    pages: Vec<u64>,
    /// Blocks that cannot be erased.
    broken: Vec<bool>,
}

impl Defects {
    fn new(geometry: &Geometry) -> Defects {
        let none = vec![false; geometry.blocks() as usize];
        let pages = vec![0; geometry.pages().div_ceil(64) as usize];
        Defects { blocks: none.clone(), programs: none.clone(), pages, broken: none }
    }

    /// Whether `block` is listed as a whole.
    pub(crate) fn has_block(&self, block: BlockIdx) -> bool {
        self.blocks[block.0 as usize]
    }

    /// Whether a program of `block` is listed as failed.
    pub(crate) fn has_program(&self, block: BlockIdx) -> bool {
        self.programs[block.0 as usize]
    }

    /// Whether `page` is listed.
    pub(crate) fn has_page(&self, page: Ppn) -> bool {
        bits::has(&self.pages, page.0 as usize)
    }

    /// The blocks that are listed, and the pages, one bit each.
    pub(crate) fn listed(&self) -> (&[bool], &[u64]) {
        (&self.blocks, &self.pages)
    }
}

impl Contents {
    /// Flash wears out: there are lists of defects.
    pub(crate) fn list_defects(&mut self, whole: &Geometry) {
        self.defects = Some(Box::new(Defects::new(whole)));
    }

    /// The lists, where flash wears out.
    pub(crate) fn defects(&self) -> Option<&Defects> {
        self.defects.as_deref()
    }

    /// `defect` of `block`, with the pages that `nand` does not use, is to be listed; returns the number of the
    /// record, or nothing where flash does not wear out.
    pub(crate) fn list(&mut self, defect: Defect, block: BlockIdx, nand: &Nand) -> Option<u32> {
        self.defects.as_ref()?;
        let mut cells = Vec::new();
        if defect == Defect::Pages {
            let retired = self.pages_of(block).map(|page| nand.is_page_retired(Ppn(page as u32)));
            cells.extend(retired.map(|retired| if retired { Cell::Torn } else { Cell::Erased }));
        }
        Some(self.records.add(What::List(defect, block), &cells, Label::default()))
    }

    /// `defect` of `block` is listed; of its pages those that `cells` say are torn.
    pub(super) fn listed(&mut self, defect: Defect, block: BlockIdx, cells: &[Cell]) {
        let pages = self.pages_of(block);
        let defects = self.defects.as_mut().expect("it is there where anything is listed");
        match defect {
            Defect::Block => defects.blocks[block.0 as usize] = true,
            Defect::Program => defects.programs[block.0 as usize] = true,
            Defect::Pages => {
                let retired = pages.zip(cells).filter(|(_, cell)| **cell == Cell::Torn);
                retired.for_each(|(page, _)| bits::insert(&mut defects.pages, page));
            }
        }
    }

    /// All is listed that `nand` knows, and the blocks of which programs have `failed`. Returns the blocks of which
    /// that was not.
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

    /// The erase of `block`, which has ended by `now`, has failed: it can neither be read nor erased.
    pub(crate) fn erase_failed(&mut self, block: BlockIdx, now: u64) {
        self.let_end(now);
        self.half_erase(block);
        self.cannot_be_erased(block);
    }

    /// `block` cannot be erased.
    pub(crate) fn cannot_be_erased(&mut self, block: BlockIdx) {
        self.defects.iter_mut().for_each(|defects| defects.broken[block.0 as usize] = true);
    }

    /// Whether an erase of `block` has failed.
    pub(crate) fn is_broken(&self, block: BlockIdx) -> bool {
        self.defects.as_ref().is_some_and(|defects| defects.broken[block.0 as usize])
    }

    /// Whether `block` is listed, as a whole.
    pub(crate) fn is_listed(&self, block: BlockIdx) -> bool {
        self.defects.as_ref().is_some_and(|defects| defects.has_block(block))
    }
}
