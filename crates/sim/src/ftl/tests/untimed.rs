//! The untimed fast path places pages where the page-by-page path does.

use super::*;

proptest! {
    #[test]
    fn fast_path_matches_page_by_page_writes(
        variant in variants(), seed in any::<u64>(), hot in 1u64..100, least in 0u32..3,
    ) {
        for victims in crate::pool::victim::VICTIM_POLICIES {
            for allocator in crate::pool::alloc::ALLOCATORS {
                compare_paths(variant, least, seed, hot, victims, allocator);
            }
        }
    }
}

fn compare_paths(
    variant: Variant,
    least: u32,
    seed: u64,
    hot: u64,
    victims: &str,
    allocator: &str,
) {
    let geometry = variant.geometry;
    // Pages moved as an artificial load are whole flash pages.
    let least = if geometry.units() == 1 { least.min(geometry.data_pages() / 2) } else { 0 };
    let options = PageMapOptions {
        reserved_blocks: variant.reserved_blocks,
        same_die: variant.same_die,
        separate: variant.separate,
        free_order: variant.free_order,
        static_threshold: variant.static_threshold,
        load: RelocationLoad::AtLeast(least),
        ..plain(geometry, victims, allocator)
    };
    let mut one_by_one = PageMap::new(options);
    let mut straight = one_by_one.clone();
    // Flash with contents does not allow the fast path.
    let mut shadow = Shadow::new(geometry, PageOrder::Ascending);
    let mut flash = Flash::new(geometry, PageOrder::Ascending);
    let pages = u64::from(geometry.shape().logical_pages);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..u64::from(geometry.pages()).div_ceil(8) {
        let range = if uniform(&mut rng, 2) == 0 { pages } else { (pages * hot / 100).max(1) };
        let writes: Vec<(Lpn, bool, u8)> = (0..uniform(&mut rng, 32))
            .map(|_| (Lpn(uniform(&mut rng, range) as u32), uniform(&mut rng, 4) > 0, 0))
            .collect();
        for (page, whole, stream) in &writes {
            one_by_one.write(*page, *whole, *stream, &mut shadow);
        }
        straight.write_all(writes.iter().copied(), &mut flash);
        let trimmed = Lpn(uniform(&mut rng, pages) as u32);
        one_by_one.trim(trimmed);
        straight.trim(trimmed);
    }
    assert_eq!(flash.counters, shadow.flash.counters);
    for page in (0..geometry.shape().logical_pages).map(Lpn) {
        assert_eq!(straight.lookup(page), one_by_one.lookup(page), "{page:?}");
    }
    straight.check();
}
