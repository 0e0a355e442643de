//! The map over stripes against closed forms: how often storing the map stops the host, how often a map page
//! is in memory, and the cost of collecting stripes.

use uflip_core::Counters;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use super::merging::write_whole;
use super::{large, plain, steady_for, write_amplification};
use crate::flash::geometry::{Geometry, Lpn, Shape};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::ftl::stripe_map::StripesPart;
use crate::ftl::{Merging, MergingOptions, PageMap, PageMapOptions, Tables};

/// Lines over four dies, with the map in memory.
const LINES: StripesPart = StripesPart {
    stripe_dies: 4,
    map_memory_bytes: 0,
    map_changed_bytes: 0,
    separate_stripes: None,
    stripe_parity: None,
};

/// Return the counters of `writes` random writes, after `settle` of them and a sequential fill; without random
/// writes those of the fill.
fn measure_counters(geometry: Geometry, part: &StripesPart, settle: u64, writes: u64) -> Counters {
    let tables = Tables { stripes: Some(part.clone()), ..Tables::default() };
    let options = MergingOptions::with_tables("stripe_map", geometry, tables);
    Merging::check(&options).expect("the options are valid");
    let mut ftl = Merging::by_name(&options).expect("a known FTL");
    let mut flash = Flash::new(geometry, PageOrder::Any);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let pages = u64::from(geometry.shape().logical_pages);
    let mut before = Counters::default();
    for number in 0..pages + settle + writes {
        if number == pages + settle {
            before = flash.counters;
        }
        let page = if number < pages { number } else { uniform(&mut rng, pages) };
        write_whole(&mut ftl, Lpn(page as u32), &mut flash);
    }
    flash.counters.since(&before)
}

/// Random writes change map pages like a coupon collector: the k-th new one of M takes M/(M − k + 1) writes.
/// And if all pages are equally likely, memory for C of M map pages has a hit rate of C/M.
#[test]
fn map_page_changes_match_coupon_collector() {
    let (map_pages, memory, changed) = (400u64, 160u64, 100u64);
    let (page_bytes, entries) = (64, 16);
    let geometry = Geometry::from(Shape {
        channels: 4,
        planes: 4,
        blocks_per_plane: 640,
        pages_per_block: 32,
        metadata_pages: 0,
        page_bytes,
        logical_pages: map_pages as u32 * entries,
    });
    let page = u64::from(page_bytes);
    let part = StripesPart {
        stripe_dies: 4,
        map_memory_bytes: memory * page,
        map_changed_bytes: changed * page,
        ..LINES
    };
    // Few enough that only the map's own stripes are collected, whose moves are not counted as map writes.
    let writes = 40_000;
    let counters = measure_counters(geometry, &part, 1_000, writes);
    assert!(counters.pages_relocated < counters.mapping_pages_programmed / 4, "{counters:?}");
    let between: f64 = (0..changed).map(|k| map_pages as f64 / (map_pages - k) as f64).sum();
    let expected = writes as f64 / between * changed as f64;
    let deviation = counters.mapping_pages_programmed as f64 / expected - 1.0;
    println!("changed pages programmed: {:+.2} % of {expected:.0}", deviation * 100.0);
    assert!(deviation.abs() < 0.01, "{} against {expected}", counters.mapping_pages_programmed);
    let hits = counters.mapping_hits as f64 / writes as f64;
    println!("hits: {hits:.3} of {:.3}", memory as f64 / map_pages as f64);
    assert!((hits - memory as f64 / map_pages as f64).abs() < 0.01);
}

/// Large blocks under uniform random writes age nearly alike: collecting the emptiest is little better than
/// collecting the oldest, where A = 1 / (1 − x) with x = exp(−α (1 − x)), α = T / U, T being the pages that
/// take part.
#[test]
fn stripe_write_amplification_matches_closed_form() {
    for spare in [0.2, 0.3] {
        let geometry = large(spare, 64);
        let memory = 1 << 20;
        let part = StripesPart { map_memory_bytes: memory, map_changed_bytes: memory, ..LINES };
        let pages = u64::from(geometry.shape().logical_pages);
        let counters = measure_counters(geometry, &part, 4 * pages, 4 * pages);
        let relocated = counters.pages_relocated as f64 / counters.host_pages_written as f64;
        // Stripes of the map, its reserve, and the open one hold no old data.
        let map = 4 * pages.div_ceil(1024).div_ceil(256) + 1;
        let alpha = (f64::from(geometry.pages()) - (map + 3) as f64 * 256.0) / pages as f64;
        let mut x = 0.5f64;
        for _ in 0..10_000 {
            x = (-alpha * (1.0 - x)).exp();
        }
        let expected = x / (1.0 - x);
        let deviation = relocated / expected - 1.0;
        println!(
            "spare {spare}: {relocated:.3} moved a write, closed form {expected:.3}, {deviation:+.3}"
        );
        assert!((-0.04..0.01).contains(&deviation), "{relocated} against {expected}");
    }
}

/// Lines hide the dies: a page map over one die whose blocks are the lines moves as many pages.
#[test]
fn lines_amplify_like_blocks_of_one_die() {
    let geometry = large(0.2, 64);
    let shape = *geometry.shape();
    let one_die = Geometry::from(Shape {
        channels: 1,
        planes: 1,
        pages_per_block: 4 * shape.pages_per_block,
        ..shape
    });
    let pages = u64::from(shape.logical_pages);
    for separate in [false, true] {
        let part = StripesPart { separate_stripes: Some(separate), ..LINES };
        let lines = write_amplification(&measure_counters(geometry, &part, 4 * pages, 4 * pages));
        let options = PageMapOptions {
            reserved_blocks: 1 + usize::from(separate),
            separate,
            ..plain(one_die, "greedy", "round_robin")
        };
        let draw = |rng: &mut Xoshiro256PlusPlus| uniform(rng, pages);
        let blocks = write_amplification(&steady_for(9, &mut PageMap::new(options), one_die, draw));
        println!("separate {separate}: {lines:.3} by lines, {blocks:.3} by blocks");
        assert!((lines / blocks - 1.0).abs() < 0.01, "{lines} against {blocks}");
    }
}

/// Of the n dies of a stripe, n - 1 hold data: sequential writes program n / (n - 1) pages each. Random writes
/// amplify as if the parity was no flash at all, times the same factor.
#[test]
fn parity_takes_one_page_of_each_row() {
    let geometry = large(0.4, 64);
    let pages = u64::from(geometry.shape().logical_pages);
    let part = StripesPart { stripe_parity: Some(true), separate_stripes: Some(true), ..LINES };
    let sequential = write_amplification(&measure_counters(geometry, &part, 0, 0));
    assert!((sequential - 4.0 / 3.0).abs() < 0.001, "{sequential}");
    let random = measure_counters(geometry, &part, 4 * pages, 4 * pages);
    let data = random.host_pages_written + random.pages_relocated;
    let rows = random.pages_programmed as f64 / data as f64;
    assert!((rows - 4.0 / 3.0).abs() < 0.001, "{rows}");
    assert_eq!(random.metadata_pages_programmed, random.pages_programmed - data);
    // The same data on three dies without parity.
    let shape = *geometry.shape();
    let three = Geometry::from(Shape { channels: 3, planes: 3, ..shape });
    let without = StripesPart { stripe_dies: 3, stripe_parity: None, ..part };
    let expected = measure_counters(three, &without, 4 * pages, 4 * pages).pages_relocated;
    let deviation = random.pages_relocated as f64 / expected as f64 - 1.0;
    println!("moved with parity, against three dies: {deviation:+.4}");
    assert!(deviation.abs() < 0.01, "{deviation}");
}
