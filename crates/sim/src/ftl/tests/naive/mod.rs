//! Merge counts of the simplest programs that follow the papers' words: every page of every block is written
//! out, no state is stored twice, every lookup is a search. The FTLs must have the same counts, on any trace
//! of whole pages.

mod fast;
mod superblocks;

use std::collections::VecDeque;

use proptest::prelude::*;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use super::merging::write_whole;
use crate::flash::geometry::{Geometry, Lpn, Shape};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::ftl::log_part::{Compat, LogPart};
use crate::ftl::{Merging, MergingOptions, Tables};
use fast::NaiveFast;
use superblocks::NaiveSuperblocks;

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
    let options = MergingOptions::with_tables(name, geometry, tables);
    Merging::check(&options).expect("the options are valid");
    let mut ftl = Merging::by_name(&options).expect("a known FTL");
    let mut flash = Flash::new(geometry, PageOrder::Any);
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
