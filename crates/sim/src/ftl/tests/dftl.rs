//! DFTL against independent models: hits against a list that is searched from end to end, mapping pages
//! programmed against closed forms.

use super::*;
use crate::ftl::mapping_pages;

fn on_flash(cached_entries: usize, batch_update: bool) -> Option<MappingOptions> {
    let (cached_segments, policy) = (cached_entries, CachePolicy::Lru);
    Some(MappingOptions { cached_segments, segment_entries: 1, policy, batch_update })
}

/// 32,768 pages on four planes; 64 entries of the map on a page.
fn medium(spare: f64) -> Geometry {
    geometry_of_blocks(128, spare)
}

fn geometry_of_blocks(blocks_per_plane: u32, spare: f64) -> Geometry {
    let pages = f64::from(4 * 64 * blocks_per_plane);
    Geometry::from(Shape {
        channels: 4,
        planes: 4,
        blocks_per_plane,
        pages_per_block: 64,
        metadata_pages: 0,
        page_bytes: 256,
        logical_pages: (pages * (1.0 - spare)) as u32,
    })
}

fn dftl(geometry: Geometry, mapping: Option<MappingOptions>) -> PageMap {
    let reserved_blocks = 1 + RESERVED_FOR_MAPPING as usize;
    let base = plain(geometry, "greedy", "round_robin");
    PageMap::new(PageMapOptions { reserved_blocks, mapping, ..base })
}

#[test]
fn hit_rate_matches_list_model() {
    for segment_entries in [1, 4, 64] {
        hits_of_segments(segment_entries);
    }
}

fn hits_of_segments(segment_entries: u32) {
    let geometry = medium(0.3);
    let pages = u64::from(geometry.shape().logical_pages);
    let cached = 500 / segment_entries as usize;
    let mapping =
        on_flash(cached, true).map(|options| MappingOptions { segment_entries, ..options });
    let mut ftl = dftl(geometry, mapping);
    let mut flash = Flash::new(geometry, PageOrder::Ascending);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let (mut list, mut hits) = (Vec::new(), 0);
    let accesses = 60_000;
    for _ in 0..accesses {
        let range = if uniform(&mut rng, 4) == 0 { pages } else { 700 };
        let page = uniform(&mut rng, range) as u32;
        if uniform(&mut rng, 2) == 0 {
            ftl.write(Lpn(page), true, 0, &mut flash);
        } else {
            ftl.find(Lpn(page), &mut flash);
        }
        let segment = page / segment_entries;
        match list.iter().position(|other| *other == segment) {
            Some(at) => {
                hits += 1;
                list.remove(at);
            }
            None if list.len() == cached => drop(list.pop()),
            None => {}
        }
        list.insert(0, segment);
    }
    println!("{hits} of {accesses} were hits");
    assert_eq!(flash.counters.mapping_hits, hits);
    assert_eq!(flash.counters.mapping_misses, accesses - hits);
}

/// A device that was filled in order has changed entries only in its cache; each one that reads evict is
/// written back.
/// Hits match those of a list, also after the pages reserved for the map are used up.
#[test]
fn reads_replace_dirty_cache_entries() {
    for batch_update in [false, true] {
        let geometry = medium(0.2);
        let pages = u64::from(geometry.shape().logical_pages);
        let cached = 4_000;
        let mut ftl = dftl(geometry, on_flash(cached, batch_update));
        let mut flash = Flash::new(geometry, PageOrder::Ascending);
        (0..pages).for_each(|page| ftl.write(Lpn(page as u32), true, 0, &mut flash));
        // The newest at the end.
        let mut list: Vec<u64> = (pages - cached as u64..pages).collect();
        let before = flash.counters;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
        let (mut hits, reads) = (0, 40_000);
        for _ in 0..reads {
            let range = if uniform(&mut rng, 4) == 0 { pages } else { 3_000 };
            let page = uniform(&mut rng, range);
            ftl.find(Lpn(page as u32), &mut flash);
            match list.iter().rposition(|other| *other == page) {
                Some(at) => {
                    hits += 1;
                    list.remove(at);
                }
                None => drop(list.remove(0)),
            }
            list.push(page);
        }
        let counted = flash.counters.since(&before);
        println!("batch {batch_update}: {hits} of {reads} reads were hits, {counted:?}");
        assert_eq!(counted.mapping_hits, hits, "batch updates: {batch_update}");
        assert!(batch_update || counted.mapping_pages_programmed > 3_000, "{counted:?}");
        ftl.check();
    }
}

/// Mapping pages programmed for each host page, before collection begins, against the expected number.
fn check_writebacks(cached: u32, batch: bool, expected: impl Fn(f64, f64, f64) -> f64) {
    let geometry = geometry_of_blocks(1024, 0.7);
    let pages = geometry.shape().logical_pages;
    let mut ftl = dftl(geometry, on_flash(cached as usize, batch));
    let mut flash = Flash::new(geometry, PageOrder::Ascending);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut write = |flash: &mut Flash, number: u32| {
        let before = flash.counters;
        for _ in 0..number {
            ftl.write(Lpn(uniform(&mut rng, u64::from(pages)) as u32), true, 0, flash);
        }
        flash.counters.since(&before)
    };
    // Until the cache has its average content, and every entry was on flash once.
    write(&mut flash, pages);
    let counted = write(&mut flash, pages / 4);
    assert_eq!(counted.blocks_collected, 0);
    let hit = f64::from(cached) / f64::from(pages);
    let expected = expected(hit, f64::from(pages), f64::from(mapping_pages(&geometry)));
    let measured = counted.mapping_pages_programmed as f64 / counted.host_pages_written as f64;
    println!("{cached} entries, batch {batch}: {measured:.4}, closed form {expected:.4}");
    assert!((measured / expected - 1.0).abs() < 0.02, "{measured} against {expected}");
}

/// Every entry was changed, so every evicted one is written back: one for each miss.
#[test]
fn each_miss_writes_mapping_page() {
    for cached in [1000, 10_000, 30_000] {
        check_writebacks(cached, false, |hit, _, _| 1.0 - hit);
    }
}

/// With batch updates a mapping page is written when a changed entry leaves, which cleans all others
/// of it. An entry stays for T after its last use, T = −L ln(1 − h) host pages for a list of L h of L
/// entries, and a use is the last one with probability 1 − h. So between two writes of a page lies the
/// time until such a use of one of its entries, M / (1 − h), M being the number of mapping pages, and
/// then T: a host page programs (1 − h) / (1 + (1 − h) T / M) mapping pages.
#[test]
fn batch_update_shares_mapping_write() {
    for cached in [800, 2400, 4800] {
        check_writebacks(cached, true, |hit, pages, of_map| {
            let stay = -pages * (1.0 - hit).ln();
            (1.0 - hit) / (1.0 + (1.0 - hit) * stay / of_map)
        });
    }
}

/// A cache of one entry: every host page writes back the entry of the one before it. Of k pages that a
/// collection moves, M (1 − (1 − 1/M)^k) mapping pages are programmed, M being all of them.
#[test]
fn gc_writes_each_mapping_page_once() {
    let geometry = medium(0.3);
    let pages = geometry.shape().logical_pages;
    let mut ftl = dftl(geometry, on_flash(1, true));
    let mut media = Shadow::new(geometry, PageOrder::Ascending);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut write = |media: &mut Shadow, number| {
        for _ in 0..number {
            ftl.write(Lpn(uniform(&mut rng, u64::from(pages)) as u32), true, 0, media);
        }
    };
    write(&mut media, 4 * pages);
    let (before, moved, victims) = (media.flash.counters, media.data_moved, media.data_victims);
    write(&mut media, 2 * pages);
    let counted = media.flash.counters.since(&before);
    let (moved, victims) = (media.data_moved - moved, media.data_victims - victims);
    let of_map = f64::from(mapping_pages(&geometry));
    let each = moved as f64 / victims as f64;
    let collected = victims as f64 * of_map * (1.0 - (1.0 - 1.0 / of_map).powf(each));
    let expected = counted.host_pages_written as f64 + collected;
    let measured = counted.mapping_pages_programmed as f64;
    println!(
        "{measured} mapping pages for {} host pages and {victims} victims with {each:.1} pages: \
         closed form {expected:.0}",
        counted.host_pages_written
    );
    assert!((measured / expected - 1.0).abs() < 0.01, "{measured} against {expected}");
}

/// A map that is cached as a whole costs nothing but its first fill.
#[test]
fn large_mapping_cache_matches_page_map() {
    let geometry = medium(0.3);
    let pages = u64::from(geometry.shape().logical_pages);
    let mut ftl = dftl(geometry, on_flash(pages as usize, true));
    let counted = measure_steady_state(&mut ftl, geometry, |rng| uniform(rng, pages));
    assert_eq!(counted.mapping_pages_read + counted.mapping_pages_programmed, 0);
    assert_eq!(counted.mapping_misses, 0);
}
