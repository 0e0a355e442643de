//! The map over stripes against closed forms: how often storing the map stops the host, how often a map page
//! is in memory, and the cost of collecting stripes.

use uflip_core::Counters;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use super::large;
use super::merging::write_whole;
use crate::flash::geometry::{Geometry, Lpn, Shape};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::ftl::stripe_map::StripesPart;
use crate::ftl::{Merging, MergingOptions, Tables};

/// Return the counters of `writes` random writes, after `settle` of them and a sequential fill.
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
        let part =
            StripesPart { stripe_dies: 4, map_memory_bytes: 1 << 20, map_changed_bytes: 1 << 20 };
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
