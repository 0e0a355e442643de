//! Superblocks, written out page by page.

use super::MergeCounts;

/// Superblocks. A flash block is a list of pages and the numbers of their writes; a page is valid if that
/// number is the newest.
pub(super) struct NaiveSuperblocks {
    pub(super) pages: usize,
    pub(super) data_blocks: Vec<usize>,
    pub(super) max_update_blocks: usize,
    /// Per superblock: its flash blocks, the open one last.
    pub(super) groups: Vec<Vec<Vec<(u32, u64)>>>,
    /// Per logical page and per superblock: the number of the last write.
    pub(super) newest: Vec<u64>,
    pub(super) written: Vec<u64>,
    pub(super) tally: MergeCounts,
}

impl NaiveSuperblocks {
    pub(super) fn new(
        blocks: usize,
        pages: usize,
        superblock_blocks: usize,
        max_update_blocks: usize,
    ) -> NaiveSuperblocks {
        let data_blocks: Vec<usize> = (0..blocks)
            .step_by(superblock_blocks)
            .map(|first| superblock_blocks.min(blocks - first))
            .collect();
        NaiveSuperblocks {
            pages,
            max_update_blocks,
            groups: vec![Vec::new(); data_blocks.len()],
            newest: vec![0; blocks * pages],
            written: vec![0; data_blocks.len()],
            data_blocks,
            tally: MergeCounts::default(),
        }
    }

    pub(super) fn write(&mut self, page: u32, group: usize, number: u64) {
        self.written[group] = number;
        if self.is_full(group) {
            self.make_free_space(group);
        }
        self.newest[page as usize] = number;
        self.groups[group].last_mut().expect("an open block").push((page, number));
    }

    fn is_full(&self, group: usize) -> bool {
        self.groups[group].last().is_none_or(|block| block.len() == self.pages)
    }

    fn valid_entries(&self, block: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let newest = |entry: &&(u32, u64)| self.newest[entry.0 as usize] == entry.1;
        block.iter().filter(newest).copied().collect()
    }

    fn updates(&self, group: usize) -> usize {
        self.groups[group].len().saturating_sub(self.data_blocks[group])
    }

    fn make_free_space(&mut self, group: usize) {
        let blocks = std::mem::take(&mut self.groups[group]);
        let (remaining, empty): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|block| !self.valid_entries(block).is_empty());
        self.groups[group] = remaining;
        self.tally.switch += empty.len() as u64;
        self.tally.erases += empty.len() as u64;
        let all = (0..self.groups.len()).map(|group| self.updates(group)).sum::<usize>();
        if self.groups[group].len() >= self.data_blocks[group] && all == self.max_update_blocks {
            if self.updates(group) > 0 {
                return self.collect(group);
            }
            let updated = (0..self.groups.len()).filter(|group| self.updates(*group) > 0);
            let oldest =
                updated.min_by_key(|group| self.written[*group]).expect("a superblock has updates");
            while self.updates(oldest) > 0 {
                self.collect(oldest);
            }
        }
        self.groups[group].push(Vec::new());
    }

    /// Move the valid pages of the full block with the fewest after the page written last.
    fn collect(&mut self, group: usize) {
        let blocks = &self.groups[group];
        let full = (0..blocks.len()).filter(|index| blocks[*index].len() == self.pages);
        let victim = full.min_by_key(|index| self.valid_entries(&blocks[*index]).len());
        let victim = victim.expect("a full block");
        let moved = self.valid_entries(&blocks[victim]);
        let free_pages = self.pages - blocks.last().expect("a block").len();
        match moved.len() {
            0 => self.tally.switch += 1,
            some if some <= free_pages => self.tally.partial += 1,
            _ => self.tally.full += 1,
        }
        self.tally.copies += moved.len() as u64;
        self.tally.erases += 1;
        for entry in moved {
            if self.is_full(group) {
                self.groups[group].push(Vec::new());
            }
            self.groups[group].last_mut().expect("an open block").push(entry);
        }
        self.groups[group].remove(victim);
    }
}
