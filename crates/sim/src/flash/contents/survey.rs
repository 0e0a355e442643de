//! The survey of spare areas from which a merging FTL rebuilds its tables: the groups of blocks that hold
//! data, and the address of the newest version of every page.
//!
//! ```text
//! merge under way    data  a1 b1 c1 d1     log  b2 c2     new  a1 b2 ██      ██ torn
//! dropped            new: none of its pages is newer than the copies elsewhere
//! erase under way    data  (erased)        log  b2 c2     new  a1 b2 c2 d1
//! dropped            log: none of its pages is newer either
//! ```
//!
//! A group is the set of blocks that an FTL fills and erases as a whole: a block, a stripe, a merge unit. A
//! group is dropped if every page of it has an equally new version elsewhere; the group opened last is
//! considered first. An interrupted merge is thus undone, and one that had begun to erase is complete,
//! without a journal: no block is erased before all data that replaces it is programmed.
//!
//! **Source**: the inverse map of uFLIP (2009) §2.2; sequence numbers as in Birrell et al. (2007).
//! **Faithful**: only spare areas are used.
//! **Simplified**: all spare areas are read; the processor takes no time.
//! **Ambiguous**: if either of two groups would do, the one opened first is kept.

use super::{Contents, PhysicalPage};
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, Ppn};

/// The result of a survey.
#[derive(Debug)]
pub(crate) struct Survey<'a> {
    contents: &'a Contents,
    geometry: Geometry,
    /// The FTL's numbers of the groups that are kept, in the order in which they were opened.
    groups: Vec<u32>,
    /// Blocks with programmed pages but without needed data.
    dropped: Vec<BlockIdx>,
    /// Per logical page: its address.
    newest: Vec<Option<Ppn>>,
}

/// The content found in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holding {
    /// Pages of one logical block, every one at its own offset.
    InPlace(u32),
    /// Pages of one logical block.
    Of(u32),
    Mixed,
}

impl<'a> Survey<'a> {
    /// Survey all blocks; `group_of` returns the group of a block.
    pub(crate) fn new(
        contents: &'a Contents,
        geometry: Geometry,
        group_of: impl Fn(BlockIdx) -> u32,
    ) -> Survey<'a> {
        let blocks = (0..geometry.blocks()).map(BlockIdx);
        // Pairs of group and block.
        let mut members_by_group: Vec<(u32, BlockIdx)> =
            blocks.map(|block| (group_of(block), block)).collect();
        members_by_group.sort_unstable();
        let mut survey = Survey {
            contents,
            geometry,
            groups: Vec::new(),
            dropped: Vec::new(),
            newest: vec![None; contents.logical_pages()],
        };
        let mut members: Vec<Vec<BlockIdx>> = Vec::new();
        let mut order: Vec<(u64, u32, usize)> = Vec::new();
        for group in members_by_group.chunk_by(|a, b| a.0 == b.0) {
            let blocks: Vec<BlockIdx> = group.iter().map(|(_, block)| *block).collect();
            let programmed = blocks.iter().filter(|block| !survey.is_erased(**block));
            let opened = programmed.map(|block| contents.label(*block).opened);
            if let Some(opened) = opened.min() {
                order.push((opened, group[0].0, members.len()));
                members.push(blocks);
            }
        }
        order.sort_unstable();
        survey.drop_superseded(&order, &members);
        survey
    }

    fn drop_superseded(&mut self, order: &[(u64, u32, usize)], members: &[Vec<BlockIdx>]) {
        // Per page: its newest version, and the number of its copies.
        let mut best: Vec<(u64, u32)> = vec![(0, 0); self.newest.len()];
        for (.., index) in order {
            for (_, page, version) in self.pages_in(&members[*index]) {
                let (newest, copies) = &mut best[page as usize];
                if version > *newest {
                    (*newest, *copies) = (version, 0);
                }
                *copies += u32::from(version == *newest);
            }
        }
        let mut remaining = Vec::new();
        for (_, number, index) in order.iter().rev() {
            let held = self.pages_in(&members[*index]);
            let mut versions: Vec<u32> = held
                .iter()
                .filter(|(_, page, version)| best[*page as usize].0 == *version)
                .map(|(_, page, _)| *page)
                .collect();
            versions.sort_unstable();
            let elsewhere = |copies: &[u32]| best[copies[0] as usize].1 as usize > copies.len();
            if versions.chunk_by(|a, b| a == b).all(elsewhere) {
                versions.iter().for_each(|page| best[*page as usize].1 -= 1);
                let programmed = members[*index].iter().copied();
                let programmed = programmed.filter(|block| !self.is_erased(*block));
                let programmed: Vec<BlockIdx> = programmed.collect();
                self.dropped.extend(programmed);
            } else {
                remaining.push(*number);
                for (at, page, version) in held {
                    let newest = &mut self.newest[page as usize];
                    if best[page as usize].0 == version && newest.is_none() {
                        *newest = Some(at);
                    }
                }
            }
        }
        remaining.reverse();
        self.groups = remaining;
    }

    /// Return the readable pages of `blocks`.
    fn pages_in(&self, blocks: &[BlockIdx]) -> Vec<(Ppn, u32, u64)> {
        let mut held = Vec::new();
        for block in blocks {
            let first = self.geometry.first_page(*block).0;
            for at in (first..first + self.geometry.shape().pages_per_block).map(Ppn) {
                if let PhysicalPage::Holds { page, version } = self.contents.cell(at) {
                    held.push((at, page, version));
                }
            }
        }
        held
    }

    fn is_erased(&self, block: BlockIdx) -> bool {
        self.programmed(block) == 0
    }

    /// Return the numbers of the groups that are kept, in the order in which they were opened.
    pub(crate) fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// Like [`Survey::groups`], for FTLs whose groups are blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockIdx> + '_ {
        self.groups.iter().map(|block| BlockIdx(*block))
    }

    /// Return the blocks to erase.
    pub(crate) fn dropped(&self) -> &[BlockIdx] {
        &self.dropped
    }

    /// Return the address of the newest version of `page`.
    pub(crate) fn address_of(&self, page: Lpn) -> Option<PageAddress> {
        self.newest[page.0 as usize].map(|at| self.geometry.address_of(at))
    }

    /// Return the logical page at `at`, and whether it is the newest version; `None` if no page can be read.
    pub(crate) fn page_at(&self, at: PageAddress) -> Option<(Lpn, bool)> {
        match self.contents.cell(at.page) {
            PhysicalPage::Holds { page, .. } => {
                Some((Lpn(page), self.newest[page as usize] == Some(at.page)))
            }
            _ => None,
        }
    }

    /// Return whether `at` was not programmed since its block was erased.
    pub(crate) fn is_erased_at(&self, at: PageAddress) -> bool {
        self.contents.cell(at.page) == PhysicalPage::Erased
    }

    /// Return how many pages of `block`, from its first on, are programmed, torn or passed over.
    pub(crate) fn programmed(&self, block: BlockIdx) -> u32 {
        let pages = (0..self.geometry.shape().pages_per_block).rev();
        let mut programmed =
            pages.filter(|page| !self.is_erased_at(self.geometry.address_at(block, *page)));
        programmed.next().map_or(0, |last| last + 1)
    }

    /// Classify the content of `block`; a logical block has as many pages as a physical one.
    pub(crate) fn holding(&self, block: BlockIdx) -> Holding {
        let pages = self.geometry.shape().pages_per_block;
        let mut holding = None;
        for offset in 0..pages {
            let Some((page, _)) = self.page_at(self.geometry.address_at(block, offset)) else {
                continue;
            };
            let (logical, in_place) = (page.0 / pages, page.0 % pages == offset);
            holding = match holding {
                None if in_place => Some(Holding::InPlace(logical)),
                Some(Holding::InPlace(other)) if other == logical && in_place => holding,
                None => Some(Holding::Of(logical)),
                Some(Holding::InPlace(other) | Holding::Of(other)) if other == logical => {
                    Some(Holding::Of(logical))
                }
                _ => return Holding::Mixed,
            };
        }
        holding.expect("a surviving group has a readable page")
    }
}
