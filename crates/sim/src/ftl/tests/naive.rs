//! Merge counts of the simplest programs that follow the papers' words: every page of every block is written
//! out, no state is stored twice, every lookup is a search. The FTLs must have the same counts, on any trace
//! of whole pages.

use std::collections::VecDeque;

use proptest::prelude::*;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use super::merging::write_whole;
use crate::flash::geometry::{Geometry, Lpn, Shape};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::ftl::linear::LinearPart;
use crate::ftl::options::{Compat, LogPart};
use crate::ftl::{Merging, MergingOptions, Tables};

/// The counters that are compared.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct MergeCounts {
    switch: u64,
    partial: u64,
    full: u64,
    copies: u64,
    erases: u64,
}

/// A page of a data block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NaivePage {
    Free,
    Valid,
    Invalid,
}

type NaiveBlock = Vec<NaivePage>;

fn valid(block: &NaiveBlock) -> u64 {
    block.iter().filter(|page| **page == NaivePage::Valid).count() as u64
}

/// The block-mapped FTL: an overwrite copies all other pages.
fn block_map(trace: &[u32], blocks: usize, pages: usize) -> MergeCounts {
    let mut data: Vec<NaiveBlock> = vec![vec![NaivePage::Free; pages]; blocks];
    let mut tally = MergeCounts::default();
    for page in trace {
        let (block, offset) = (*page as usize / pages, *page as usize % pages);
        if data[block][offset] == NaivePage::Valid {
            tally.full += 1;
            tally.erases += 1;
            tally.copies += valid(&data[block]) - 1;
        }
        data[block][offset] = NaivePage::Valid;
    }
    tally
}

/// BAST: logs as lists of offsets, the one written last at the end.
fn bast(trace: &[u32], blocks: usize, pages: usize, max_log_blocks: usize) -> MergeCounts {
    let mut data: Vec<NaiveBlock> = vec![vec![NaivePage::Free; pages]; blocks];
    let mut logs: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut tally = MergeCounts::default();
    let merge =
        |data: &mut Vec<NaiveBlock>, (block, log): (usize, Vec<usize>), tally: &mut MergeCounts| {
            let written = pages_written(&data[block]);
            let in_order = log.iter().enumerate().all(|(slot, offset)| slot == *offset);
            if in_order && log.len() == pages {
                tally.switch += 1;
                tally.erases += 1;
            } else if in_order {
                tally.partial += 1;
                tally.copies += written - log.len() as u64;
                tally.erases += 1;
            } else {
                tally.full += 1;
                tally.copies += written;
                tally.erases += 2;
            }
            data[block]
                .iter_mut()
                .filter(|page| **page == NaivePage::Invalid)
                .for_each(|page| *page = NaivePage::Valid);
        };
    for page in trace {
        let (block, offset) = (*page as usize / pages, *page as usize % pages);
        if data[block][offset] == NaivePage::Free {
            data[block][offset] = NaivePage::Valid;
            continue;
        }
        let mut log = match logs.iter().position(|(owner, _)| *owner == block) {
            Some(index) => logs.remove(index),
            None => {
                if logs.len() == max_log_blocks {
                    merge(&mut data, logs.remove(0), &mut tally);
                }
                (block, Vec::new())
            }
        };
        log.1.push(offset);
        data[block][offset] = NaivePage::Invalid;
        if log.1.len() == pages {
            merge(&mut data, log, &mut tally);
        } else {
            logs.push(log);
        }
    }
    tally
}

/// Return the pages with data, in any block.
fn pages_written(block: &NaiveBlock) -> u64 {
    block.iter().filter(|page| **page != NaivePage::Free).count() as u64
}

/// Return the counters of the FTL.
fn count_merges(name: &str, trace: &[u32], geometry: Geometry, log: &LogPart) -> MergeCounts {
    let tables = Tables { log: Some(log.clone()), ..Tables::default() };
    count_merges_of(&MergingOptions::with_tables(name, geometry, tables), trace)
}

fn count_merges_of(options: &MergingOptions<'_>, trace: &[u32]) -> MergeCounts {
    Merging::check(options).expect("the options are valid");
    let mut ftl = Merging::by_name(options).expect("a known FTL");
    let mut flash = Flash::new(options.geometry, PageOrder::Any);
    trace.iter().for_each(|page| write_whole(&mut ftl, Lpn(*page), &mut flash));
    let counters = flash.counters;
    MergeCounts {
        switch: counters.switch_merges,
        partial: counters.partial_merges,
        full: counters.full_merges,
        copies: counters.pages_relocated,
        erases: counters.blocks_erased,
    }
}

/// Random pages, sequential runs, and pages of a few blocks.
fn trace(seed: u64, pages: u32, writes: usize) -> Vec<u32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut trace = Vec::with_capacity(writes);
    while trace.len() < writes {
        let page = uniform(&mut rng, u64::from(pages)) as u32;
        match uniform(&mut rng, 6) {
            0 => {
                let run = 1 + uniform(&mut rng, 40) as u32;
                let first = if uniform(&mut rng, 2) == 0 { page } else { page / 8 * 8 };
                trace.extend((first..first + run).map(|page| page % pages));
            }
            1 => trace.push(page % (pages / 4).max(1)),
            _ => trace.push(page),
        }
    }
    trace
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merges_match_naive_models(
        seed in any::<u64>(), pages in 2u32..70, blocks in 2u32..24, logs in 2u32..10,
        planes in 1u32..4, superblock in 1u32..6,
    ) {
        let geometry = Geometry::from(Shape {
            channels: 1, planes, blocks_per_plane: (blocks + logs + 1).div_ceil(planes),
            pages_per_block: pages, metadata_pages: 0, page_bytes: 4096,
            logical_pages: blocks * pages,
        });
        let trace = trace(seed, blocks * pages, 3_000);
        let log = |superblock_blocks, compat, log_per_die| {
            LogPart { log_blocks: logs, superblock_blocks, compat, log_per_die }
        };
        let (block_count, in_block) = (blocks as usize, pages as usize);
        let expected = bast(&trace, block_count, in_block, logs as usize);
        let plainly = log(1, Compat::None, false);
        prop_assert_eq!(count_merges("bast", &trace, geometry, &plainly), expected);
        let variants = [
            (1, Compat::None, false),
            (1, Compat::Flashsim2010, false),
            (superblock, Compat::None, false),
            (superblock, Compat::None, true),
            (superblock, Compat::Flashsim2010, true),
        ];
        for (superblock, compat, per_plane) in variants {
            let rings = if per_plane { planes as usize } else { 1 };
            if logs as usize > rings {
                let mut naive = NaiveFast {
                    pages: in_block, max_random_blocks: (logs as usize - 1) / rings,
                    lossy: compat == Compat::Flashsim2010, superblock: superblock as usize,
                    data: vec![vec![NaivePage::Free; in_block]; block_count], sequential: None, completed: None,
                    rings: vec![VecDeque::new(); rings], tally: MergeCounts::default(),
                };
                trace.iter().for_each(|page| naive.write(*page));
                let options = log(superblock, compat, per_plane);
                prop_assert_eq!(count_merges("fast", &trace, geometry, &options), naive.tally);
            }
        }
        let mut naive = NaiveSuperblocks::new(block_count, in_block, superblock as usize, logs as usize);
        for (number, page) in trace.iter().enumerate() {
            let group = *page as usize / in_block / superblock as usize;
            naive.write(*page, group, number as u64 + 1);
        }
        let options = log(superblock, Compat::None, false);
        prop_assert_eq!(count_merges("superblock", &trace, geometry, &options), naive.tally);
        let options = MergingOptions::bare("block_map", geometry);
        let mut ftl = Merging::by_name(&options).expect("a known FTL");
        let mut flash = Flash::new(geometry, PageOrder::Any);
        trace.iter().for_each(|page| write_whole(&mut ftl, Lpn(*page), &mut flash));
        let expected = block_map(&trace, block_count, in_block);
        let counters = flash.counters;
        prop_assert_eq!(
            (counters.full_merges, counters.pages_relocated, counters.blocks_erased),
            (expected.full, expected.copies, expected.erases)
        );
    }
}

// FAST, written out page by page.

/// FAST. A random log block is a list of pages, `None` where a newer version exists. There is a ring of
/// them for all, or one for every plane: the data block b belongs to ring b mod rings.
struct NaiveFast {
    pages: usize,
    max_random_blocks: usize,
    lossy: bool,
    superblock: usize,
    data: Vec<NaiveBlock>,
    sequential: Option<(usize, usize)>,
    completed: Option<usize>,
    rings: Vec<VecDeque<Vec<Option<u32>>>>,
    tally: MergeCounts,
}

impl NaiveFast {
    fn write(&mut self, page: u32) {
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

// Superblocks, written out page by page.

/// Superblocks. A flash block is a list of pages and the numbers of their writes; a page is valid if that
/// number is the newest.
struct NaiveSuperblocks {
    pages: usize,
    data_blocks: Vec<usize>,
    max_update_blocks: usize,
    /// Per superblock: its flash blocks, the open one last.
    groups: Vec<Vec<Vec<(u32, u64)>>>,
    /// Per logical page and per superblock: the number of the last write.
    newest: Vec<u64>,
    written: Vec<u64>,
    tally: MergeCounts,
}

impl NaiveSuperblocks {
    fn new(
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

    fn write(&mut self, page: u32, group: usize, number: u64) {
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

// Open units with a log each, written out page by page.

/// An open unit: the run of its pages, and the log with `None` where a newer version is in the run.
struct NaiveUnit {
    number: usize,
    run: std::ops::Range<usize>,
    log: Vec<Option<usize>>,
}

struct NaiveUnits {
    pages: usize,
    max_open: usize,
    max_log: usize,
    live: Vec<bool>,
    open: Vec<NaiveUnit>,
    tally: MergeCounts,
}

impl NaiveUnits {
    fn write(&mut self, page: usize) {
        let (number, offset) = (page / self.pages, page % self.pages);
        let found = self.open.iter().position(|open| open.number == number);
        let fits = found.filter(|at| {
            let open = &self.open[*at];
            offset == open.run.end || open.log.len() < self.max_log
        });
        let at = fits.unwrap_or_else(|| {
            if found.is_some() || self.open.len() == self.max_open {
                self.close(found.unwrap_or(0));
            }
            self.open.push(NaiveUnit { number, run: offset..offset, log: Vec::new() });
            self.open.len() - 1
        });
        let open = &mut self.open[at];
        if offset == open.run.end {
            open.run.end += 1;
            open.log.iter_mut().filter(|page| **page == Some(offset)).for_each(|page| *page = None);
        } else {
            open.log.push(Some(offset));
        }
        self.live[page] = true;
        if open.run == (0..self.pages) && !Self::is_superseded(open) {
            self.close(at);
        }
    }

    fn is_superseded(open: &NaiveUnit) -> bool {
        open.log.iter().flatten().any(|page| open.run.contains(page))
    }

    /// Merge an open unit: into a new one if its log has newer versions of its own pages.
    fn close(&mut self, at: usize) {
        let open = self.open.remove(at);
        let superseded = Self::is_superseded(&open);
        let first = open.number * self.pages;
        self.tally.copies += (0..self.pages)
            .filter(|page| self.live[first + page] && (superseded || !open.run.contains(page)))
            .count() as u64;
        self.tally.full += u64::from(superseded);
        self.tally.switch += u64::from(!superseded && open.run == (0..self.pages));
        self.tally.partial += u64::from(!superseded && open.run != (0..self.pages));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merges_of_unit_logs_match_naive_model(
        seed in any::<u64>(), pages in 2u32..70, units in 4u32..24, open_units in 1u32..4, log in 0u32..70,
    ) {
        let log_clusters = log.min(pages);
        let geometry = Geometry::from(Shape {
            channels: 1, planes: 1, blocks_per_plane: units + 2 * open_units + 4, pages_per_block: pages,
            metadata_pages: 0, page_bytes: 4096, logical_pages: units * pages,
        });
        let part = LinearPart {
            unit_bytes: pages * 4096, cluster_bytes: 4096, banks: 1, open_units, backward_clusters: 0, rewrites: 0,
            log_clusters, open_map_pages: 0, switch_map_pages: 0, merge_map_pages: 0,
        };
        let tables = Tables { linear: Some(part), ..Tables::default() };
        let options = MergingOptions::with_tables("linear", geometry, tables);
        let mut naive = NaiveUnits {
            pages: pages as usize, max_open: open_units as usize, max_log: log_clusters as usize,
            live: vec![false; (units * pages) as usize], open: Vec::new(), tally: MergeCounts::default(),
        };
        let trace = trace(seed, units * pages, 3_000);
        trace.iter().for_each(|page| naive.write(*page as usize));
        let counted = count_merges_of(&options, &trace);
        prop_assert_eq!(MergeCounts { erases: 0, ..counted }, naive.tally);
    }
}
