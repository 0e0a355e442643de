//! Superblock: neighbouring logical blocks share their flash blocks, page by page.
//!
//! ```text
//! superblock s    │ block │ block │ … │ open block ─▶        any page of s on any page of these
//! ```
//!
//! A superblock of n logical blocks may have n flash blocks. It may have more as long as the update blocks of
//! all superblocks together do not exceed the log blocks of the profile. If one more is needed, a block of
//! the same superblock is collected; if it has no update block, one of the superblock that was written
//! longest ago.
//!
//! **Source**: Kang et al. (EMSOFT 2006); Jung et al., "Superblock FTL" (ACM TECS 9(4), 2010).
//! **Faithful**: page-level mapping inside a superblock only; collection inside a superblock, of a block
//! without valid pages first, then of the one with the fewest; a global limit on update blocks.
//! **Simplified**: the map is in memory; the papers keep it in the spare areas of the pages. Superblocks
//! have the number of logical blocks of the profile, and never split.
//! **Ambiguous**: the kind of a merge: a block that is erased without copying is a switch merge, one whose
//! valid pages fit into the open block is a partial merge, any other a full merge.

use uflip_core::Result;

use super::options::{LogPart, check_log};
use super::{FtlOptions, MergingFtl};
use crate::collections::huge;
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, Ppn};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::extent::PageExtent;
use crate::pool::free::FreePool;

/// Superblocks, and the map of their pages.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Superblock {
    geometry: Geometry,
    free: FreePool,
    logical_blocks: u32,
    #[serde(rename = "most_updates")]
    max_update_blocks: u32,
    updates: u32,
    groups: Vec<SuperblockGroup>,
    /// Per logical page: its address; per flash page: its logical page.
    map: Vec<u32>,
    reverse: Vec<u32>,
    /// Number of writes so far: a clock for the age of groups.
    writes: u64,
    opened: u32,
}

/// A superblock.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Group")]
struct SuperblockGroup {
    /// Its blocks and the valid pages of each; the last one is open.
    blocks: Vec<(BlockIdx, u32)>,
    /// The next page of the open block; the pages of a block if there is no open one.
    next: u32,
    /// Number of its blocks that do not count as update blocks.
    #[serde(rename = "own")]
    own_blocks: u32,
    written: u64,
}

const UNMAPPED: u32 = u32::MAX;

impl MergingFtl for Superblock {
    const APPENDS: bool = true;
    type Table = LogPart;

    fn check(options: &FtlOptions<'_, LogPart>) -> Result<()> {
        check_log(options, 1)
    }

    fn new(options: &FtlOptions<'_, LogPart>) -> Superblock {
        let part = options.table;
        let geometry = options.geometry;
        let shape = geometry.shape();
        let blocks = shape.logical_pages.div_ceil(shape.pages_per_block);
        let per_group = part.superblock_blocks.min(blocks);
        let group = |first: u32| SuperblockGroup {
            blocks: Vec::with_capacity(per_group as usize + 2),
            next: shape.pages_per_block,
            own_blocks: per_group.min(blocks - first),
            written: 0,
        };
        Superblock {
            geometry,
            free: FreePool::full(shape.planes, shape.blocks_per_plane),
            logical_blocks: per_group,
            max_update_blocks: part.log_blocks,
            updates: 0,
            groups: (0..blocks).step_by(per_group as usize).map(group).collect(),
            map: huge::filled(shape.logical_pages as usize, UNMAPPED),
            reverse: huge::filled(geometry.pages() as usize, UNMAPPED),
            writes: 0,
            opened: 0,
        }
    }

    #[inline]
    fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let at = self.map[page.0 as usize];
        (at != UNMAPPED).then(|| self.geometry.address_of(Ppn(at)))
    }

    fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let group = self.group_of(page);
        self.writes += 1;
        self.groups[group].written = self.writes;
        if self.groups[group].next == self.geometry.shape().pages_per_block {
            self.make_free_page(group, plan);
        }
        let merge_from = extent.merge_source(page, || self.lookup(page));
        let to = self.take_page(group);
        plan.program(to, merge_from);
        self.map_page(group, page, to);
    }

    fn trim(&mut self, page: Lpn) {
        let group = self.group_of(page);
        self.invalidate(group, page);
        self.map[page.0 as usize] = UNMAPPED;
    }

    fn rebuild(&mut self, survey: &Survey<'_>, plan: &mut FlashPlan) {
        let pages = self.geometry.shape().pages_per_block;
        for block in survey.blocks() {
            self.free.retain(|free| free != block.0);
            let places = (0..pages).map(|page| self.geometry.address_at(block, page));
            let held: Vec<(PageAddress, Lpn, bool)> = places
                .filter_map(|at| survey.page_at(at).map(|(page, newest)| (at, page, newest)))
                .collect();
            let group = self.group_of(held[0].1);
            for (at, page, newest) in &held {
                self.reverse[at.page.0 as usize] = page.0;
                if *newest {
                    self.map[page.0 as usize] = at.page.0;
                }
            }
            let valid = held.iter().filter(|(.., newest)| *newest).count() as u32;
            self.writes += 1;
            let group = &mut self.groups[group];
            group.blocks.push((block, valid));
            (group.next, group.written) = (survey.programmed(block), self.writes);
            self.updates += u32::from(group.blocks.len() as u32 > group.own_blocks);
        }
        while self.updates > self.max_update_blocks {
            self.shrink_oldest(plan);
        }
    }

    #[cfg(test)]
    fn audit(&self) {
        let used = self.groups.iter().flat_map(|group| &group.blocks).map(|block| block.0.0);
        let mut blocks: Vec<u32> = self.free.iter().chain(used).collect();
        blocks.sort_unstable();
        assert!(blocks.into_iter().eq(0..self.geometry.blocks()), "every block has one owner");
        let valid: u32 =
            self.groups.iter().flat_map(|group| &group.blocks).map(|block| block.1).sum();
        let mapped = self.map.iter().filter(|at| **at != UNMAPPED).count();
        assert_eq!(valid as usize, mapped, "valid pages equal mapped pages");
        let over =
            |group: &SuperblockGroup| (group.blocks.len() as u32).saturating_sub(group.own_blocks);
        assert_eq!(self.groups.iter().map(over).sum::<u32>(), self.updates);
        assert!(self.updates <= self.max_update_blocks);
    }
}

impl Superblock {
    /// Return the superblock of `page`.
    #[inline]
    fn group_of(&self, page: Lpn) -> usize {
        (self.geometry.block_of(Ppn(page.0)).0 / self.logical_blocks) as usize
    }

    /// Return the next page of the open block of `group`, which has one.
    fn take_page(&mut self, group: usize) -> PageAddress {
        let group = &mut self.groups[group];
        let (block, _) = *group.blocks.last().expect("the superblock has an open block");
        group.next += 1;
        self.geometry.address_at(block, group.next - 1)
    }

    /// Place `page` in the open block of `group`.
    fn map_page(&mut self, group: usize, page: Lpn, to: PageAddress) {
        self.invalidate(group, page);
        self.map[page.0 as usize] = to.page.0;
        self.reverse[to.page.0 as usize] = page.0;
        self.groups[group].blocks.last_mut().expect("the superblock has an open block").1 += 1;
    }

    fn invalidate(&mut self, group: usize, page: Lpn) {
        if let Some(old) = self.lookup(page) {
            let blocks = &mut self.groups[group].blocks;
            let entry = blocks.iter_mut().find(|block| block.0 == old.block);
            entry.expect("the page is in a block of its superblock").1 -= 1;
        }
    }

    /// Open a block for `group`, whose open block is full.
    fn make_free_page(&mut self, group: usize, plan: &mut FlashPlan) {
        self.erase_empty(group, plan);
        if (self.groups[group].blocks.len() as u32) < self.groups[group].own_blocks {
            self.open(group);
            return;
        }
        if self.updates == self.max_update_blocks {
            plan.begin_reclaim();
            if self.groups[group].blocks.len() as u32 > self.groups[group].own_blocks {
                self.collect(group, plan);
                return;
            }
            self.shrink_oldest(plan);
        }
        self.open(group);
    }

    fn open(&mut self, group: usize) {
        self.opened += 1;
        let plane = self.opened % self.geometry.shape().planes;
        let block =
            BlockIdx(self.free.take_near(plane).expect("a valid profile leaves an erased block"));
        let group = &mut self.groups[group];
        group.blocks.push((block, 0));
        group.next = 0;
        self.updates += u32::from(group.blocks.len() as u32 > group.own_blocks);
    }

    /// Erase the blocks of `group` without valid pages; its open block is full.
    fn erase_empty(&mut self, group: usize, plan: &mut FlashPlan) {
        while let Some(index) = self.groups[group].blocks.iter().position(|block| block.1 == 0) {
            plan.count_merge(Merge::Switch);
            self.erase(group, index, plan);
        }
    }

    fn erase(&mut self, group: usize, index: usize, plan: &mut FlashPlan) {
        let group = &mut self.groups[group];
        self.updates -= u32::from(group.blocks.len() as u32 > group.own_blocks);
        let (block, _) = group.blocks.remove(index);
        plan.barrier();
        plan.erase(block);
        plan.barrier();
        self.free.put(self.geometry.plane_of(block).0, block.0);
    }

    /// Collect update blocks of the superblock that was written longest ago, until it has none.
    fn shrink_oldest(&mut self, plan: &mut FlashPlan) {
        let updated = |group: &usize| {
            self.groups[*group].blocks.len() as u32 > self.groups[*group].own_blocks
        };
        let oldest =
            (0..self.groups.len()).filter(updated).min_by_key(|group| self.groups[*group].written);
        let oldest = oldest.expect("a superblock has update blocks");
        while self.groups[oldest].blocks.len() as u32 > self.groups[oldest].own_blocks {
            self.collect(oldest, plan);
        }
    }

    /// Move the valid pages of the emptiest block of `group` to its open block, and to a new one once that is
    /// full; then erase it.
    fn collect(&mut self, group: usize, plan: &mut FlashPlan) {
        let pages = self.geometry.shape().pages_per_block;
        let full = self.groups[group].next == pages;
        // An open block that is not full yet cannot be a victim.
        let candidates = self.groups[group].blocks.len() - usize::from(!full);
        let blocks = &self.groups[group].blocks;
        let index = (0..candidates)
            .min_by_key(|index| blocks[*index].1)
            .expect("a superblock has several blocks");
        let (victim, valid) = blocks[index];
        // A victim without an invalid page would be collected forever; no sequence of writes leads to that.
        assert!(valid < pages, "a superblock with an update block has a page that is not valid");
        let fits = valid <= pages - self.groups[group].next;
        plan.count_merge(match (valid, fits) {
            (0, _) => Merge::Switch,
            (_, true) => Merge::Partial,
            (_, false) => Merge::Full,
        });
        let first = self.geometry.first_page(victim).0;
        let mut moved = 0;
        for at in first..first + pages {
            let page = self.reverse[at as usize];
            if page == UNMAPPED || self.map[page as usize] != at {
                continue;
            }
            moved += 1;
            if self.groups[group].next == pages {
                self.open(group);
            }
            let to = self.take_page(group);
            plan.copy(self.geometry.address_of(Ppn(at)), to);
            self.map_page(group, Lpn(page), to);
        }
        assert_eq!(moved, valid, "the count of valid pages is correct");
        self.reverse[first as usize..(first + pages) as usize].fill(UNMAPPED);
        self.erase(group, index, plan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::geometry::Shape;
    use crate::ftl::MergingOptions;
    use crate::ftl::options::{Compat, LogPart};

    /// Superblocks of two blocks of a page each; a snapshot file claims that one is an update block.
    #[test]
    #[should_panic(expected = "a superblock with an update block has a page that is not valid")]
    fn fully_valid_superblock_is_not_collected_endlessly() {
        let geometry = Geometry::from(Shape {
            channels: 1,
            planes: 1,
            blocks_per_plane: 12,
            pages_per_block: 1,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 4,
        });
        let part = LogPart {
            log_blocks: 2,
            superblock_blocks: 2,
            compat: Compat::None,
            log_per_die: false,
        };
        let options = MergingOptions::bare("superblock", geometry);
        let mut ftl = Superblock::new(&options.with(&part));
        let write = |ftl: &mut Superblock, page| {
            ftl.write(
                Lpn(page),
                &PageExtent::single(Lpn(page), true, 0),
                &mut FlashPlan::default(),
            );
        };
        (0..4).for_each(|page| write(&mut ftl, page));
        ftl.groups[0].own_blocks = 1;
        ftl.updates = ftl.max_update_blocks;
        write(&mut ftl, 2);
    }
}
