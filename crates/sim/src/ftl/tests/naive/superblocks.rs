//! Superblocks, written out page by page.

use super::MergeCounts;

/// Superblocks. A flash block is a list of pages and the numbers of their writes; a page is valid if that
/// number is the newest.
pub(super) struct NaiveSuperblocks {
    pub(super) pages: usize,
    pub(super) own: Vec<usize>,
    pub(super) most_updates: usize,
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
        of: usize,
        most_updates: usize,
    ) -> NaiveSuperblocks {
        let own: Vec<usize> = (0..blocks).step_by(of).map(|first| of.min(blocks - first)).collect();
        NaiveSuperblocks {
            pages,
            most_updates,
            groups: vec![Vec::new(); own.len()],
            newest: vec![0; blocks * pages],
            written: vec![0; own.len()],
            own,
            tally: MergeCounts::default(),
        }
    }

    pub(super) fn write(&mut self, page: u32, group: usize, number: u64) {
        self.written[group] = number;
        if self.has_no_page(group) {
            self.make_room(group);
        }
        self.newest[page as usize] = number;
        self.groups[group].last_mut().expect("an open block").push((page, number));
    }

    fn has_no_page(&self, group: usize) -> bool {
        self.groups[group].last().is_none_or(|block| block.len() == self.pages)
    }

    fn counting(&self, block: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let newest = |entry: &&(u32, u64)| self.newest[entry.0 as usize] == entry.1;
        block.iter().filter(newest).copied().collect()
    }

    fn updates(&self, group: usize) -> usize {
        self.groups[group].len().saturating_sub(self.own[group])
    }

    fn make_room(&mut self, group: usize) {
        let blocks = std::mem::take(&mut self.groups[group]);
        let (remaining, empty): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|block| !self.counting(block).is_empty());
        self.groups[group] = remaining;
        self.tally.switch += empty.len() as u64;
        self.tally.erases += empty.len() as u64;
        let all = (0..self.groups.len()).map(|group| self.updates(group)).sum::<usize>();
        if self.groups[group].len() >= self.own[group] && all == self.most_updates {
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
        let victim = full.min_by_key(|index| self.counting(&blocks[*index]).len());
        let victim = victim.expect("a full block");
        let moved = self.counting(&blocks[victim]);
        let free_pages = self.pages - blocks.last().expect("a block").len();
        match moved.len() {
            0 => self.tally.switch += 1,
            some if some <= free_pages => self.tally.partial += 1,
            _ => self.tally.full += 1,
        }
        self.tally.copies += moved.len() as u64;
        self.tally.erases += 1;
        for entry in moved {
            if self.has_no_page(group) {
                self.groups[group].push(Vec::new());
            }
            self.groups[group].last_mut().expect("an open block").push(entry);
        }
        self.groups[group].remove(victim);
    }
}
