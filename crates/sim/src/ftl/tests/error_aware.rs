//! Error-aware block allocation: against a naive model of one plane, and compared with retirement alone.

use std::collections::VecDeque;

use super::retirement::{WearRate, device, flash_of};
use super::*;
use crate::flash::geometry::{BlockIdx, PageAddress};
use crate::flash::wear_out::WearOut;
use crate::ftl::Retire;

const ORDERS: [FreeOrder; 3] = [FreeOrder::Oldest, FreeOrder::LeastWorn, FreeOrder::FewestErrors];

fn wear(retire: Retire, seed: u64) -> WearRate {
    WearRate { retire, failures: 0.0, factory_bad: 0.0, partial_blocks_max: u32::MAX, seed }
}

fn variant(geometry: Geometry, reserved_blocks: usize, free_order: FreeOrder) -> Variant {
    Variant {
        geometry,
        reserved_blocks,
        same_die: false,
        separate: false,
        free_order,
        static_threshold: 0,
        mapping: None,
        write_streams: 1,
    }
}

/// One plane whose host fills block after block, until too few are left; returns the pages written. Whole
/// blocks are retired.
fn naive(order: FreeOrder, flash: &WearOut, geometry: &Geometry, reserved: usize) -> u64 {
    let (blocks, pages) = (geometry.blocks(), geometry.data_pages());
    // The host's address space, the reserve, an open block and one more.
    let needed = geometry.shape().logical_pages + (reserved as u32 + 2) * pages;
    let places =
        |block: u32| (0..pages).map(move |page| geometry.address_at(BlockIdx(block), page));
    let worst = |block: u32, erases: u32| {
        places(block).map(|page: PageAddress| flash.errors(page, erases)).max().unwrap()
    };
    let mut erases = vec![0; blocks as usize];
    let mut erases_of = vec![0; blocks as usize];
    let (mut free, mut full): (Vec<u32>, VecDeque<u32>) = ((0..blocks).collect(), VecDeque::new());
    let (mut usable, mut written) = (blocks * pages, 0);
    loop {
        let by = |key: &Vec<u32>| {
            (0..free.len()).min_by_key(|at| (key[free[*at] as usize], free[*at])).unwrap()
        };
        let next = match order {
            FreeOrder::Oldest => 0,
            FreeOrder::LeastWorn => by(&erases),
            FreeOrder::FewestErrors => by(&erases_of),
        };
        let block = free.remove(next);
        written += 1;
        while free.len() <= reserved {
            let victim = full.pop_front().unwrap();
            let number = &mut erases[victim as usize];
            *number += 1;
            if places(victim).any(|page| flash.is_worn(page, *number)) {
                usable -= pages;
                if usable < needed {
                    return written;
                }
            } else {
                erases_of[victim as usize] = worst(victim, *number);
                free.push(victim);
            }
        }
        written += u64::from(pages) - 1;
        full.push_back(block);
    }
}

/// Write page after page until the device has worn out; returns the pages written.
fn in_order(ftl: &mut PageMap, media: &mut Shadow) -> u64 {
    let pages = media.flash.geometry.shape().logical_pages;
    let mut page = 0;
    while !ftl.is_read_only() {
        ftl.write(Lpn(page), true, 0, media);
        page = (page + 1) % pages;
    }
    ftl.check();
    media.flash.counters.host_pages_written
}

#[test]
fn wear_out_matches_naive_model() {
    let shape = Shape {
        channels: 1,
        planes: 1,
        blocks_per_plane: 96,
        pages_per_block: 16,
        metadata_pages: 0,
        page_bytes: 4096,
        logical_pages: 40 * 16,
    };
    let geometry = Geometry::from(shape);
    for seed in 0..5 {
        for reserved in [1, 8, 24] {
            let lives = ORDERS.map(|order| {
                let (flash, _) = flash_of(geometry, wear(Retire::Blocks, seed));
                let (mut ftl, mut media) = device(
                    variant(geometry, reserved, order),
                    wear(Retire::Blocks, seed),
                    "cyclic",
                )
                .expect("no factory-bad block exceeds the limit");
                let written = in_order(&mut ftl, &mut media);
                let expected = naive(order, &flash, &geometry, reserved);
                assert_eq!(written, expected, "{order:?}, {reserved} in reserve, seed {seed}");
                written as f64 / f64::from(shape.logical_pages)
            });
            println!(
                "{reserved} in reserve, seed {seed}: oldest, least worn, fewest errors {lives:.1?}"
            );
            assert!(lives[2] >= lives[1], "{lives:?}");
        }
    }
}

/// The writes that a device of four planes accepts before it is worn out, in its own size. Nine of ten writes
/// go to a tenth of it, and relocated pages fill separate blocks.
fn lifetime(retire: Retire, order: FreeOrder) -> f64 {
    let geometry = large(0.4, 64);
    let shape = Shape { blocks_per_plane: 128, logical_pages: 16_384, ..*geometry.shape() };
    let variant = Variant { separate: true, ..variant(Geometry::from(shape), 4, order) };
    let (mut ftl, mut media) =
        device(variant, wear(retire, 3), "greedy").expect("no factory-bad block exceeds the limit");
    let pages = u64::from(shape.logical_pages);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    while !ftl.is_read_only() {
        let written_pages = if uniform(&mut rng, 10) > 0 { pages / 10 } else { pages };
        ftl.write(Lpn(uniform(&mut rng, written_pages) as u32), true, 0, &mut media);
    }
    ftl.check();
    media.flash.counters.host_pages_written as f64 / pages as f64
}

/// OFC §IV.C's three ways: blocks retired, pages retired, and blocks chosen by their errors and the data.
#[test]
fn error_aware_allocation_extends_lifetime() {
    let [blocks, pages] = [Retire::Blocks, Retire::Pages].map(|retire| {
        let lives = ORDERS.map(|order| lifetime(retire, order));
        println!("{retire:?}: oldest, least worn, fewest errors: {lives:.1?} device sizes");
        lives
    });
    assert!(blocks[2] > blocks[1] && blocks[2] > blocks[0]);
    assert!(pages[2] > blocks[2], "both together");
}
