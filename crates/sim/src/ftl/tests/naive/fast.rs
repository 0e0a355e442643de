//! FAST, written out page by page.

use std::collections::VecDeque;

use super::{MergeCounts, NaiveBlock, NaivePage, valid};

/// FAST. A random log block is a list of pages, `None` where a newer version exists. There is a ring of
/// them for all, or one for every plane: the data block b belongs to ring b mod rings.
pub(super) struct NaiveFast {
    pub(super) pages: usize,
    pub(super) max_random_blocks: usize,
    pub(super) lossy: bool,
    pub(super) superblock: usize,
    pub(super) data: Vec<NaiveBlock>,
    pub(super) sequential: Option<(usize, usize)>,
    pub(super) completed: Option<usize>,
    pub(super) rings: Vec<VecDeque<Vec<Option<u32>>>>,
    pub(super) tally: MergeCounts,
}

impl NaiveFast {
    pub(super) fn write(&mut self, page: u32) {
        let (block, offset) = (page as usize / self.pages, page as usize % self.pages);
        if self.data[block][offset] == NaivePage::Free {
            self.data[block][offset] = NaivePage::Valid;
        } else if offset == 0 && (block % self.superblock == 0 || self.completed == Some(block - 1))
        {
            if let Some((owner, next)) = self.sequential {
                self.tally.partial += 1;
                self.merge_sequential(owner, next, None);
            }
            self.sequential = Some((block, 1));
            self.supersede_sequential(page);
            self.switch_if_full();
        } else if self.sequential == Some((block, offset)) {
            self.sequential = Some((block, offset + 1));
            self.supersede_sequential(page);
            self.switch_if_full();
        } else if let Some((owner, next)) = self.sequential.filter(|(owner, _)| *owner == block) {
            self.supersede_sequential(page);
            if offset > next {
                self.tally.partial += 1;
                self.merge_sequential(owner, next, Some(offset));
            } else {
                self.tally.full += 1;
                self.tally.erases += 1;
                self.tally.copies += next as u64 - 1;
                self.merge_sequential(owner, next, None);
            }
        } else {
            self.append(page);
        }
    }

    fn switch_if_full(&mut self) {
        if let Some((owner, next)) = self.sequential.filter(|(_, next)| *next == self.pages) {
            self.tally.switch += 1;
            self.merge_sequential(owner, next, None);
            self.completed = Some(owner);
        }
    }

    /// The sequential log block, or its content, becomes the data block; `with` is programmed along.
    fn merge_sequential(&mut self, owner: usize, next: usize, with: Option<usize>) {
        self.sequential = None;
        self.merge_data(owner);
        for offset in (0..next).chain(with) {
            self.data[owner][offset] = NaivePage::Valid;
        }
    }

    /// Copy the valid pages of a data block and of the log to a new block; erase the old one.
    fn merge_data(&mut self, block: usize) {
        let first = (block * self.pages) as u32;
        self.tally.copies += valid(&self.data[block]);
        self.tally.erases += 1;
        let mut pages: NaiveBlock = self.data[block].clone();
        pages
            .iter_mut()
            .filter(|page| **page == NaivePage::Invalid)
            .for_each(|page| *page = NaivePage::Free);
        if !self.lossy {
            let range = first..first + self.pages as u32;
            for entry in self.rings.iter_mut().flatten().flatten() {
                if let Some(page) = entry.filter(|page| range.contains(page)) {
                    self.tally.copies += 1;
                    pages[(page - first) as usize] = NaivePage::Valid;
                    *entry = None;
                }
            }
        }
        self.data[block] = pages;
    }

    fn entry(&mut self, page: u32) -> Option<&mut Option<u32>> {
        self.rings.iter_mut().flatten().flatten().find(|entry| **entry == Some(page))
    }

    /// Record that the sequential log block has the page.
    fn supersede_sequential(&mut self, page: u32) {
        if let Some(entry) = self.entry(page) {
            *entry = None;
        }
        self.data[page as usize / self.pages][page as usize % self.pages] = NaivePage::Invalid;
    }

    fn append(&mut self, page: u32) {
        let ring = page as usize / self.pages % self.rings.len();
        if self.is_filled(ring) {
            if self.rings[ring].len() < self.max_random_blocks {
                self.rings[ring].push_back(Vec::new());
            } else {
                // It, and the other rings that have run out too.
                for step in 0..self.rings.len() {
                    let ring = (ring + step) % self.rings.len();
                    if self.is_filled(ring) && self.rings[ring].len() == self.max_random_blocks {
                        self.reclaim(ring);
                        self.rings[ring].push_back(Vec::new());
                    }
                }
            }
        }
        match self.entry(page) {
            Some(entry) => *entry = None,
            None => {
                // A merge may just have freed its offset.
                let (block, offset) = (page as usize / self.pages, page as usize % self.pages);
                if self.data[block][offset] == NaivePage::Valid {
                    self.data[block][offset] = NaivePage::Invalid;
                }
            }
        }
        self.rings[ring].back_mut().expect("a log block").push(Some(page));
    }

    fn is_filled(&self, ring: usize) -> bool {
        self.rings[ring].back().is_none_or(|block| block.len() == self.pages)
    }

    fn reclaim(&mut self, ring: usize) {
        let mut merged = Vec::new();
        for slot in 0..self.pages {
            let Some(page) = self.rings[ring][0][slot] else { continue };
            let block = page as usize / self.pages;
            if self.lossy {
                self.rings[ring][0][slot] = None;
                if merged.contains(&block) {
                    continue;
                }
                merged.push(block);
            }
            match self.sequential.filter(|(owner, _)| *owner == block) {
                Some((owner, next)) => {
                    self.tally.partial += 1;
                    self.merge_sequential(owner, next, None);
                }
                None => {
                    self.tally.full += 1;
                    self.merge_data(block);
                }
            }
        }
        self.rings[ring].pop_front();
        self.tally.erases += 1;
    }
}
