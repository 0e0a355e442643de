//! Flash that fails and wears out under a page map: nothing that was written is lost, nothing that is
//! retired is used (the NAND checks that), and every device ends read-only.

use super::*;
use crate::flash::geometry::BlockIdx;
use crate::flash::reliability::{Reliability, ReliabilityPart};
use crate::flash::wear_out::{Grain, WearOut, WearOutOptions, chance};
use crate::ftl::{Retire, RetirementOptions};

/// The rates at which the flash wears out.
#[derive(Clone, Copy, Debug)]
pub(super) struct WearRate {
    pub(super) retire: Retire,
    pub(super) failures: f64,
    pub(super) factory_bad: f64,
    pub(super) partial_blocks_max: u32,
    pub(super) seed: u64,
}

prop_compose! {
    fn wears()(
        retire in prop::sample::select(vec![
            Retire::Nothing, Retire::Blocks, Retire::Pages, Retire::Parity, Retire::Halves,
        ]),
        failures in 0.0f64..0.1, factory_bad in 0.0f64..0.1, partial_blocks_max in 0u32..20,
        seed in any::<u64>(),
    ) -> WearRate {
        WearRate { retire, failures, factory_bad, partial_blocks_max, seed }
    }
}

/// Laws by which flash wears out within a few dozen erases, and the blocks that are bad from the factory.
pub(super) fn flash_of(geometry: Geometry, wear: WearRate) -> (WearOut, Vec<BlockIdx>) {
    let laws = ReliabilityPart {
        wear_law: "exponential".into(),
        rated_cycles: 20,
        rber_fresh: 1e-5,
        rber_rated: 1e-3,
        wear_exponent: 1.0,
        page_spread: 0.5,
        high_page_factor: 2.0,
        retention_doubling_s: 0.0,
        retention_exponent: 1.0,
        ecc_codeword_bytes: 512,
        ecc_correctable_bits: 8,
        erase_step_cycles: 10,
        erase_step_ns: 1000,
        erase_steps_max: 4,
    };
    let options = WearOutOptions {
        seed: wear.seed,
        cycles_before: 0,
        rated_cycles: 20,
        pages_of_a_cell: 2,
        grain: Grain::flash_pages(&geometry),
        data_age_ns: 0,
        read_retries: 3,
        retry_gain: 0.7,
        program_failures: wear.failures,
        erase_failures: wear.failures,
        retire_rber: 1e-3,
    };
    let share = chance(wear.factory_bad);
    let blocks = (0..geometry.blocks()).map(BlockIdx);
    let bad: Vec<BlockIdx> =
        blocks.filter(|block| WearOut::is_factory_bad(wear.seed, share, *block)).collect();
    let laws = Reliability::new(&laws, 4096).expect("valid parameters");
    (WearOut::new(laws, geometry, options), bad)
}

/// A device of `variant` that wears out within a few dozen erases; `None` if too much is bad from the
/// factory.
pub(super) fn device(variant: Variant, wear: WearRate, victims: &str) -> Option<(PageMap, Shadow)> {
    let geometry = variant.geometry;
    let (wears_out, bad) = flash_of(geometry, wear);
    let streams = 1 + u32::from(variant.separate) + u32::from(variant.mapping.is_some());
    let held = (variant.reserved_blocks as u32 + streams + 1) * geometry.shape().planes;
    let of_map = variant.mapping.map_or(0, |_| 2 * crate::ftl::mapping_pages(&geometry));
    let needed_pages = geometry.shape().logical_pages + held * geometry.data_pages() + of_map;
    if (geometry.blocks() - bad.len() as u32) * geometry.data_pages() < needed_pages {
        return None;
    }
    let mut media = Shadow::new(geometry, PageOrder::Ascending);
    media.flash = media.flash.with_wear(wears_out, &bad, false);
    let retirement = RetirementOptions {
        retire: wear.retire,
        partial_blocks_max: wear.partial_blocks_max,
        usable_pages_min: geometry.data_pages().div_ceil(2),
        bad,
        needed_pages,
    };
    let ftl = PageMap::new(PageMapOptions {
        reserved_blocks: variant.reserved_blocks,
        same_die: variant.same_die,
        separate: variant.separate,
        free_order: variant.free_order,
        static_threshold: variant.static_threshold,
        mapping: variant.mapping,
        retirement: Some(retirement),
        ..plain(geometry, victims, "round_robin")
    });
    Some((ftl, media))
}

proptest! {
    #[test]
    fn data_survives_until_device_wears_out(
        mut variant in variants(), wear in wears(), seed in any::<u64>(), fullness in 1u32..=100,
    ) {
        // Devices need free space, or most would end with their first failure.
        let logical = variant.geometry.shape().logical_pages;
        let logical_pages = (logical * fullness / 100).max(1);
        variant.geometry =
            Geometry::from(Shape { logical_pages, ..*variant.geometry.shape() });
        for victims in crate::pool::victim::VICTIM_POLICIES {
            if let Some((ftl, media)) = device(variant, wear, victims) {
                wear_out(ftl, media, seed);
            }
        }
    }
}

/// Write at random until the device is read-only, at most for 200 times its size.
fn wear_out(mut ftl: PageMap, mut media: Shadow, seed: u64) {
    let pages = u64::from(media.flash.geometry.shape().logical_pages);
    let mut oracle: Vec<Option<u64>> = vec![None; pages as usize];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let writes = 200 * pages.min(200);
    for write in 0..writes {
        let page = uniform(&mut rng, pages);
        media.writing = write;
        ftl.write(Lpn(page as u32), uniform(&mut rng, 4) > 0, 0, &mut media);
        let at = ftl.lookup(Lpn(page as u32));
        let now = at.and_then(|at| media.content[at.page.0 as usize]);
        // The write that found the device worn out may have been refused.
        let written = now == Some(write);
        assert!(written || ftl.is_read_only());
        if written {
            oracle[page as usize] = now;
        }
        if ftl.is_read_only() {
            break;
        }
    }
    for (page, expected) in oracle.iter().enumerate() {
        let at = ftl.lookup(Lpn(page as u32));
        assert_eq!(at.and_then(|at| media.content[at.page.0 as usize]), *expected, "page {page}");
    }
    ftl.check();
    let counters = media.flash.counters;
    assert_eq!(
        counters.pages_programmed,
        counters.host_pages_written
            + counters.pages_relocated
            + counters.mapping_pages_programmed
            + counters.metadata_pages_programmed
            + counters.program_failures,
        "every program has a reason"
    );
}

/// Four planes of 128 blocks without failures: pages become worn one after the other.
fn worn_out_device(retire: Retire, partial_blocks_max: u32) -> (PageMap, Shadow) {
    let geometry = large(0.4, 64);
    let shape = Shape { blocks_per_plane: 128, logical_pages: 16_384, ..*geometry.shape() };
    let variant = Variant {
        geometry: Geometry::from(shape),
        reserved_blocks: 1,
        same_die: false,
        separate: false,
        free_order: FreeOrder::LeastWorn,
        static_threshold: 0,
        mapping: None,
        write_streams: 1,
    };
    let wear = WearRate { retire, failures: 0.0, factory_bad: 0.0, partial_blocks_max, seed: 3 };
    device(variant, wear, "greedy").expect("no factory-bad block exceeds the limit")
}

/// Return the writes that a device accepts before it is worn out, in multiples of its size.
fn lifetime(retire: Retire, partial_blocks_max: u32) -> (f64, Counters) {
    let (mut ftl, mut media) = worn_out_device(retire, partial_blocks_max);
    let pages = u64::from(media.flash.geometry.shape().logical_pages);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    while !ftl.is_read_only() {
        ftl.write(Lpn(uniform(&mut rng, pages) as u32), true, 0, &mut media);
    }
    ftl.check();
    let counters = media.flash.counters;
    (counters.host_pages_written as f64 / pages as f64, counters)
}

/// OFC §IV.C: when the first pages of a block are worn, many others are still good. So the finer the retired
/// part, the longer the device lives, as far as there are bitmaps for it.
#[test]
fn finer_retirement_extends_lifetime() {
    let blocks = lifetime(Retire::Blocks, 0);
    let parity = lifetime(Retire::Parity, 0);
    let few = lifetime(Retire::Pages, 100);
    let pages = lifetime(Retire::Pages, u32::MAX);
    for (name, (life, counters)) in
        [("blocks", blocks), ("100 bitmaps", few), ("parity", parity), ("pages", pages)]
    {
        println!(
            "{name}: {life:.1} device sizes, {} blocks and {} pages retired",
            counters.blocks_retired, counters.pages_retired
        );
    }
    assert!(blocks.0 < few.0 && few.0 < pages.0);
    assert!(blocks.0 < parity.0 && parity.0 < pages.0);
    assert_eq!((blocks.1.pages_retired, pages.1.pages_retired > 0), (0, true));
    assert_eq!(
        lifetime(Retire::Pages, 0).0,
        blocks.0,
        "without partial blocks, pages retire as blocks do"
    );
}
