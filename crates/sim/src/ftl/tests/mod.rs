//! The FTL against a flat array: reads return the written data, whatever was moved in between, and the
//! accounting must be consistent. `merging/` has the further tests of merging FTLs.

mod allocators;
mod dftl;
mod error_aware;
mod merging;
mod naive;
mod retirement;
mod shadow;
mod streams;
mod stripes;
mod untimed;
mod variants;

use proptest::prelude::*;
use uflip_core::Counters;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use super::{
    CachePolicy, MappingOptions, PageMap, PageMapOptions, RESERVED_FOR_MAPPING, RelocationLoad,
};
use crate::flash::geometry::{Geometry, Lpn, PlaneIdx, Shape};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::pool::alloc::Allocator;
use crate::pool::blocks::RelocationFrontier;
use crate::pool::free::FreeOrder;
use crate::pool::victim::Victims;
use shadow::Shadow;
use variants::{Variant, variants};

/// Return the options of the simplest FTL over `geometry`; tests change those that they test.
fn plain(geometry: Geometry, victims: &str, allocator: &str) -> PageMapOptions {
    PageMapOptions {
        geometry,
        allocator: Allocator::by_name(allocator, &geometry).expect("a known allocator"),
        victims: Victims::by_name(victims, geometry, 7).expect("a known policy"),
        reserved_blocks: 1,
        same_die: false,
        separate: false,
        free_order: FreeOrder::Oldest,
        static_threshold: 0,
        load: RelocationLoad::AtLeast(0),
        mapping: None,
        retirement: None,
        write_streams: 1,
        hot_cold: None,
        slc: None,
        scrubs: false,
        power_loss: false,
    }
}

proptest! {
    #[test]
    fn page_maps_read_own_writes(
        variant in variants(), seed in any::<u64>(), hot in 1u64..100,
    ) {
        for victims in crate::pool::victim::VICTIM_POLICIES {
            for allocator in crate::pool::alloc::ALLOCATORS {
                read_your_writes(variant, seed, hot, victims, allocator);
            }
        }
    }
}

fn read_your_writes(variant: Variant, seed: u64, hot: u64, victims: &str, allocator: &str) {
    let geometry = variant.geometry;
    let mut ftl = PageMap::new(PageMapOptions {
        reserved_blocks: variant.reserved_blocks,
        same_die: variant.same_die,
        separate: variant.separate,
        free_order: variant.free_order,
        static_threshold: variant.static_threshold,
        mapping: variant.mapping,
        write_streams: variant.write_streams,
        ..plain(geometry, victims, allocator)
    });
    let mut media = Shadow::new(geometry, PageOrder::Ascending);
    let pages = u64::from(geometry.shape().logical_pages);
    let mut oracle: Vec<Option<u64>> = vec![None; pages as usize];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for write in 0..4 * u64::from(geometry.pages()) {
        // Partly skewed, so that some blocks have many and some few valid pages.
        let range = if uniform(&mut rng, 2) == 0 { pages } else { (pages * hot / 100).max(1) };
        let page = uniform(&mut rng, range);
        if uniform(&mut rng, 16) == 0 {
            ftl.trim(Lpn(page as u32));
            oracle[page as usize] = None;
            continue;
        }
        let whole = uniform(&mut rng, 4) > 0;
        media.writing = write;
        let stream = uniform(&mut rng, u64::from(variant.write_streams)) as u8;
        ftl.write(Lpn(page as u32), whole, stream, &mut media);
        ftl.check_streams();
        let old = oracle[page as usize].replace(write);
        let merged = if whole || old.is_none() { None } else { Some(old) };
        assert_eq!(media.merged, merged, "a partial write merges the newest version");
    }
    for (page, expected) in oracle.iter().enumerate() {
        let at = ftl.find(Lpn(page as u32), &mut media);
        assert_eq!(at.and_then(|at| media.content[at.page.0 as usize]), *expected, "page {page}");
    }
    ftl.check();
    check_conservation(geometry, &media);
}

fn check_conservation(geometry: Geometry, media: &Shadow) {
    let counters = media.flash.counters;
    let data =
        counters.host_pages_written + counters.pages_relocated + counters.mapping_pages_programmed;
    assert_eq!(
        counters.pages_programmed,
        data + counters.metadata_pages_programmed,
        "every program has a reason"
    );
    assert_eq!(counters.blocks_erased, counters.blocks_collected);
    // The blocks hold the pages that were programmed with data and not erased: every erased block was full.
    let held = media.content.iter().filter(|page| page.is_some()).count() as u64;
    assert_eq!(held, data - counters.blocks_erased * u64::from(geometry.data_pages()));
}

/// Return a device that is large enough for theory: 131,072 pages on four planes.
fn large(spare: f64, pages_per_block: u32) -> Geometry {
    Geometry::from(Shape {
        channels: 4,
        planes: 4,
        blocks_per_plane: 131_072 / pages_per_block / 4,
        pages_per_block,
        metadata_pages: 0,
        page_bytes: 4096,
        logical_pages: (131_072.0 * (1.0 - spare)) as u32,
    })
}

/// Fill `ftl`, then write the device 12 times over with pages that `draw` chooses; returns the counters of
/// the last two thirds.
fn measure_steady_state(
    ftl: &mut PageMap,
    geometry: Geometry,
    draw: impl FnMut(&mut Xoshiro256PlusPlus) -> u64,
) -> Counters {
    steady_for(12, ftl, geometry, draw)
}

fn steady_for(
    rounds: u32,
    ftl: &mut PageMap,
    geometry: Geometry,
    mut draw: impl FnMut(&mut Xoshiro256PlusPlus) -> u64,
) -> Counters {
    let mut flash = Flash::new(geometry, PageOrder::Ascending);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(42);
    let pages = geometry.shape().logical_pages;
    for page in 0..pages {
        ftl.write(Lpn(page), true, 0, &mut flash);
    }
    let mut before = Counters::default();
    for round in 0..rounds {
        if round == rounds / 3 {
            before = flash.counters;
        }
        for _ in 0..pages {
            ftl.write(Lpn(draw(&mut rng) as u32), true, 0, &mut flash);
        }
    }
    flash.counters.since(&before)
}

fn write_amplification(counters: &Counters) -> f64 {
    counters.pages_programmed as f64 / counters.host_pages_written as f64
}

/// Uniform random writes under the cyclic buffer: A = 1 / (1 − x), x = exp(−α (1 − x)), α = T / U
/// (OFC equation (2); Menon & Stockmeyer 1998), T being the blocks that take part.
#[test]
fn cyclic_write_amplification_matches_closed_form() {
    for (spare, pages_per_block) in [(0.125, 64), (0.28, 64), (0.28, 128)] {
        let geometry = large(spare, pages_per_block);
        let pages = u64::from(geometry.shape().logical_pages);
        let mut ftl = PageMap::new(plain(geometry, "cyclic", "round_robin"));
        let counted = write_amplification(&measure_steady_state(&mut ftl, geometry, |rng| {
            uniform(rng, pages)
        }));
        // When a victim is chosen, its plane has one reserved block, and one that was just opened.
        let idle = 4.0 * 2.0 * f64::from(pages_per_block);
        let alpha = (f64::from(geometry.pages()) - idle) / pages as f64;
        let mut x = 0.5f64;
        for _ in 0..10_000 {
            x = (-alpha * (1.0 - x)).exp();
        }
        let expected = 1.0 / (1.0 - x);
        let deviation = counted / expected - 1.0;
        println!(
            "spare {spare}, {pages_per_block} pages: {counted:.3}, closed form {expected:.3}, \
             {:+.2} %",
            deviation * 100.0
        );
        assert!(deviation.abs() < 0.015, "{counted} against {expected}");
    }
}

/// The order that theory predicts for uniform random writes, at a spare factor of 1/8.
#[test]
fn informed_victim_policies_move_fewer_pages() {
    let geometry = large(0.125, 64);
    let pages = u64::from(geometry.shape().logical_pages);
    let amplification_of = |policy: &str| {
        let mut ftl = PageMap::new(plain(geometry, policy, "round_robin"));
        write_amplification(&measure_steady_state(&mut ftl, geometry, |rng| uniform(rng, pages)))
    };
    let names = ["greedy", "greedy_window:64", "d_choices:10", "cyclic", "d_choices:2", "random"];
    let measured = names.map(amplification_of);
    println!("{names:?}\n{measured:.3?}");
    assert!(measured.is_sorted(), "{names:?} {measured:?}");
}

/// Nine of ten writes go to a tenth of the pages: separate blocks for relocated pages keep hot pages apart
/// from cold ones.
#[test]
fn separate_streams_reduce_write_amplification_of_hot_pages() {
    let geometry = large(0.25, 64);
    let pages = u64::from(geometry.shape().logical_pages);
    let amplification_of = |separate: bool| {
        let options = PageMapOptions { separate, ..plain(geometry, "greedy", "round_robin") };
        let mut ftl = PageMap::new(options);
        let draw = |rng: &mut Xoshiro256PlusPlus| {
            if uniform(rng, 10) > 0 { uniform(rng, pages / 10) } else { uniform(rng, pages) }
        };
        write_amplification(&measure_steady_state(&mut ftl, geometry, draw))
    };
    let (mixed, separated) = (amplification_of(false), amplification_of(true));
    println!("mixed {mixed:.3}, separated {separated:.3}");
    assert!(separated < 0.97 * mixed, "{separated} against {mixed}");
}

/// Return the difference in erases between the most and the least worn block of a plane after writes of 30
/// times the size of the device, to pages drawn by `draw`.
fn spread_of_wear(
    static_threshold: u32,
    draw: impl Fn(&mut Xoshiro256PlusPlus, u64) -> u64,
) -> u32 {
    let geometry = large(0.2, 64);
    let pages = u64::from(geometry.shape().logical_pages);
    let options = PageMapOptions {
        static_threshold,
        free_order: FreeOrder::LeastWorn,
        ..plain(geometry, "greedy", "round_robin")
    };
    let mut ftl = PageMap::new(options);
    steady_for(30, &mut ftl, geometry, |rng| draw(rng, pages));
    let wear = geometry.blocks_of(PlaneIdx(0)).map(|block| ftl.blocks().wear(block));
    let wear: Vec<u32> = wear.collect();
    wear.iter().max().unwrap() - wear.iter().min().unwrap()
}

/// A tenth of the device is never written again after the first fill: with static wear levelling
/// its blocks wear as well.
#[test]
fn static_levelling_narrows_wear_spread() {
    let tenth_is_cold =
        |rng: &mut Xoshiro256PlusPlus, pages| pages / 10 + uniform(rng, pages * 9 / 10);
    let (without, with) = (spread_of_wear(0, tenth_is_cold), spread_of_wear(8, tenth_is_cold));
    println!("spread without {without}, with a threshold of 8: {with}");
    assert!(without > 20 && with < 20, "without {without}, with {with}");
}

/// One block is moved per sixteenth of the blocks of its plane that are erased. If 95 of 100 writes go to a
/// tenth of the pages, that levels too little for the threshold to be a bound, as its name implies.
#[test]
fn static_levelling_threshold_does_not_bound_spread() {
    let hot_tenth = |rng: &mut Xoshiro256PlusPlus, pages| {
        let range = if uniform(rng, 100) < 95 { pages / 10 } else { pages };
        uniform(rng, range)
    };
    let (without, with) = (spread_of_wear(0, hot_tenth), spread_of_wear(8, hot_tenth));
    println!("spread without {without}, with a threshold of 8: {with}");
    assert!(2 * 8 < with && with < without, "without {without}, with {with}");
}

/// Overwriting in order leaves no valid page in the oldest block, as long as the invalid pages that are moved
/// leave space for every logical page; so the option causes every move.
#[test]
fn relocation_load_moves_minimum_of_pages() {
    let geometry = large(0.5, 64);
    let pages = u64::from(geometry.shape().logical_pages);
    for number in [0, 10, 25] {
        let options = PageMapOptions {
            load: RelocationLoad::AtLeast(number),
            ..plain(geometry, "cyclic", "round_robin")
        };
        let mut ftl = PageMap::new(options);
        let mut next = 0;
        let counters = measure_steady_state(&mut ftl, geometry, |_| {
            next = (next + 1) % pages;
            next
        });
        assert_eq!(counters.pages_relocated, counters.blocks_collected * u64::from(number));
    }
}

/// Exactly this number of pages of every victim is moved, whatever is valid: random writes over the whole
/// device leave more valid pages in a block than these numbers, sequential ones leave none.
#[test]
fn relocation_load_moves_exact_number_of_pages() {
    let geometry = large(0.2, 64);
    let pages = u64::from(geometry.shape().logical_pages);
    for (number, random) in [(0, true), (10, true), (30, true), (10, false)] {
        let load = RelocationLoad::Exactly(number);
        let mut ftl =
            PageMap::new(PageMapOptions { load, ..plain(geometry, "cyclic", "round_robin") });
        let mut next = 0;
        let counters = measure_steady_state(&mut ftl, geometry, |rng| {
            next = if random { uniform(rng, pages) } else { (next + 1) % pages };
            next
        });
        assert_eq!(counters.pages_relocated, counters.blocks_collected * u64::from(number));
        assert_eq!(
            counters.pages_programmed,
            counters.host_pages_written + counters.pages_relocated
        );
        assert_eq!(counters.pages_given_up > 0, random, "{number}: {counters:?}");
        ftl.check();
    }
}
