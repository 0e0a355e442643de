//! What spare areas say to an FTL that merges, which makes its tables of it again: groups of blocks that hold
//! something, and where the newest version of every page is.
//!
//! ```text
//! merge under way    data  a1 b1 c1 d1     log  b2 c2     new  a1 b2 ██      ██ torn
//! dropped            new: nothing of it is newer than what others hold
//! ends in time       data  (erased)        log  b2 c2     new  a1 b2 c2 d1
//! dropped            log: nothing of it is newer either
//! ```
//!
//! A group is what an FTL fills and erases as a whole: a block, a stripe, a merge unit. One is dropped where
//! every page has as new a version elsewhere, that which was opened last first. So a merge that was cut short
//! never began, and one that had begun to erase has ended, without a journal: no block is erased before all
//! that replaces it is programmed.
//!
//! **Source**: the inverse map of uFLIP (2009) §2.2; sequence numbers as in Birrell et al. (2007).
//! **Faithful**: nothing counts but what spare areas say.
//! **Simplified**: all of them are looked at; the processor takes no time.
//! **Ambiguous**: of two groups of which either would do, the one that was opened first is kept.

use super::{Cell, Contents};
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, Place, Ppn};

/// What was found.
#[derive(Debug)]
pub(crate) struct Survey<'a> {
    contents: &'a Contents,
    geometry: Geometry,
    /// The numbers of those that are kept, as the FTL counts, in the order in which they were opened.
    groups: Vec<u32>,
    /// Blocks in which something is programmed, and which hold nothing that is needed.
    dropped: Vec<BlockIdx>,
    /// Per logical page: where it is.
    newest: Vec<Option<Ppn>>,
}

/// What was found in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holding {
    /// Pages of one logical block, every one at its place.
    InPlace(u32),
    /// Pages of one logical block.
    Of(u32),
    Mixed,
}

impl<'a> Survey<'a> {
    /// Look at all blocks; `group_of` says to which group one belongs.
    pub(crate) fn of(
        contents: &'a Contents,
        geometry: Geometry,
        group_of: impl Fn(BlockIdx) -> u32,
    ) -> Survey<'a> {
        let blocks = (0..geometry.blocks()).map(BlockIdx);
        // By group: when it was opened, and its blocks.
        let mut found: Vec<(u32, BlockIdx)> =
            blocks.map(|block| (group_of(block), block)).collect();
        found.sort_unstable();
        let mut survey = Survey {
            contents,
            geometry,
            groups: Vec::new(),
            dropped: Vec::new(),
            newest: vec![None; contents.logical_pages()],
        };
        let mut members: Vec<Vec<BlockIdx>> = Vec::new();
        let mut order: Vec<(u64, u32, usize)> = Vec::new();
        for group in found.chunk_by(|a, b| a.0 == b.0) {
            let blocks: Vec<BlockIdx> = group.iter().map(|(_, block)| *block).collect();
            let programmed = blocks.iter().filter(|block| !survey.is_erased(**block));
            let opened = programmed.map(|block| contents.label(*block).opened);
            if let Some(opened) = opened.min() {
                order.push((opened, group[0].0, members.len()));
                members.push(blocks);
            }
        }
        order.sort_unstable();
        survey.drop_what_is_elsewhere(&order, &members);
        survey
    }

    fn drop_what_is_elsewhere(&mut self, order: &[(u64, u32, usize)], members: &[Vec<BlockIdx>]) {
        // Per page: its newest version, and how often that is there.
        let mut best: Vec<(u64, u32)> = vec![(0, 0); self.newest.len()];
        for (.., index) in order {
            for (_, page, version) in self.held_by(&members[*index]) {
                let (newest, copies) = &mut best[page as usize];
                if version > *newest {
                    (*newest, *copies) = (version, 0);
                }
                *copies += u32::from(version == *newest);
            }
        }
        let mut kept = Vec::new();
        for (_, number, index) in order.iter().rev() {
            let held = self.held_by(&members[*index]);
            let mut here: Vec<u32> = held
                .iter()
                .filter(|(_, page, version)| best[*page as usize].0 == *version)
                .map(|(_, page, _)| *page)
                .collect();
            here.sort_unstable();
            let elsewhere = |of: &[u32]| best[of[0] as usize].1 as usize > of.len();
            if here.chunk_by(|a, b| a == b).all(elsewhere) {
                here.iter().for_each(|page| best[*page as usize].1 -= 1);
                let programmed = members[*index].iter().copied();
                let programmed = programmed.filter(|block| !self.is_erased(*block));
                let programmed: Vec<BlockIdx> = programmed.collect();
                self.dropped.extend(programmed);
            } else {
                kept.push(*number);
                for (at, page, version) in held {
                    let newest = &mut self.newest[page as usize];
                    if best[page as usize].0 == version && newest.is_none() {
                        *newest = Some(at);
                    }
                }
            }
        }
        kept.reverse();
        self.groups = kept;
    }

    /// What can be read in `blocks`.
    fn held_by(&self, blocks: &[BlockIdx]) -> Vec<(Ppn, u32, u64)> {
        let mut held = Vec::new();
        for block in blocks {
            let first = self.geometry.first_page(*block).0;
            for at in (first..first + self.geometry.shape().pages_per_block).map(Ppn) {
                if let Cell::Holds { page, version } = self.contents.cell(at) {
                    held.push((at, page, version));
                }
            }
        }
        held
    }

    fn is_erased(&self, block: BlockIdx) -> bool {
        self.programmed(block) == 0
    }

    /// The numbers of the groups that are kept, in the order in which they were opened.
    pub(crate) fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// The same where a group is a block.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockIdx> + '_ {
        self.groups.iter().map(|block| BlockIdx(*block))
    }

    /// Blocks to be erased.
    pub(crate) fn dropped(&self) -> &[BlockIdx] {
        &self.dropped
    }

    /// Where the newest version of `page` is.
    pub(crate) fn place(&self, page: Lpn) -> Option<Place> {
        self.newest[page.0 as usize].map(|at| self.geometry.place_of(at))
    }

    /// The logical page at `at`, and whether that is its newest version; `None` where none can be read.
    pub(crate) fn page_at(&self, at: Place) -> Option<(Lpn, bool)> {
        match self.contents.cell(at.page) {
            Cell::Holds { page, .. } => {
                Some((Lpn(page), self.newest[page as usize] == Some(at.page)))
            }
            _ => None,
        }
    }

    /// Whether `at` was not programmed since its block was erased.
    pub(crate) fn is_erased_at(&self, at: Place) -> bool {
        self.contents.cell(at.page) == Cell::Erased
    }

    /// So many pages of `block`, from its first on, are programmed, torn or passed over.
    pub(crate) fn programmed(&self, block: BlockIdx) -> u32 {
        let pages = (0..self.geometry.shape().pages_per_block).rev();
        let mut programmed =
            pages.filter(|page| !self.is_erased_at(self.geometry.place(block, *page)));
        programmed.next().map_or(0, |last| last + 1)
    }

    /// What `block` holds of logical blocks of as many pages as it has.
    pub(crate) fn holding(&self, block: BlockIdx) -> Holding {
        let pages = self.geometry.shape().pages_per_block;
        let mut found = None;
        for offset in 0..pages {
            let Some((page, _)) = self.page_at(self.geometry.place(block, offset)) else {
                continue;
            };
            let (logical, in_place) = (page.0 / pages, page.0 % pages == offset);
            found = match found {
                None if in_place => Some(Holding::InPlace(logical)),
                Some(Holding::InPlace(other)) if other == logical && in_place => found,
                None => Some(Holding::Of(logical)),
                Some(Holding::InPlace(other) | Holding::Of(other)) if other == logical => {
                    Some(Holding::Of(logical))
                }
                _ => return Holding::Mixed,
            };
        }
        found.expect("what can tell nothing is not kept")
    }
}
