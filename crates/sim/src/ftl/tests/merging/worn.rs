//! Merging FTLs on flash that fails and wears out: no written data is lost as long as blocks are
//! left that replace others, and nothing that is retired is used (the NAND checks that).

use crate::flash::geometry::{BlockIdx, Geometry, PageAddress, Shape};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::flash::plan::FlashPlan;
use crate::flash::replacement::ReplacementTable;
use crate::ftl::tests::Shadow;
use crate::ftl::tests::retirement::{WearRate, flash_of};
use crate::ftl::{MERGING_FTLS, MergingOptions, Retire};

/// Flash for an FTL with the geometry `ftl_geometry` and this number of reserve blocks a plane, programmed in order
/// or not; `None` if too many are bad.
fn flash(ftl_geometry: Geometry, spares: u32, wear: WearRate, order: PageOrder) -> Option<Flash> {
    // The seed also decides whether blocks are swapped.
    let levels = [(false, 0), (true, 0), (false, 1), (true, 2)][wear.seed as usize / 7 % 4];
    let shape = *ftl_geometry.shape();
    let blocks_per_plane = shape.blocks_per_plane + spares;
    let whole = ftl_geometry.with_shape(Shape { blocks_per_plane, ..shape });
    let (wears_out, bad) = flash_of(whole, wear);
    let replaced =
        ReplacementTable::new(ftl_geometry, &whole, &bad, wear.retire == Retire::Blocks)?;
    let replaced = match levels {
        (false, 0) => replaced,
        (dynamic, gap) => replaced.levelled(dynamic, gap),
    };
    let flash = Flash::new(whole, order).with_wear(wears_out, &bad, false);
    Some(flash.replacing(match order {
        PageOrder::Ascending => replaced.in_order(),
        PageOrder::Any => replaced,
    }))
}

/// Flash without wear, whose pages are programmed in order.
pub(super) fn in_order(ftl_geometry: Geometry) -> Flash {
    let replaced = ReplacementTable::identity(ftl_geometry).in_order();
    Flash::new(ftl_geometry, PageOrder::Ascending).replacing(replaced)
}

/// Execute `plan`: the shadow does the executed operations of flash that wears out.
pub(super) fn execute(plan: &mut FlashPlan, media: &mut Shadow, worn: Option<&mut Flash>) {
    if let Some(worn) = worn {
        worn.execute(plan);
    }
    media.execute(plan);
}

/// Replace `block`, if flash wears out and a block is in reserve.
pub(super) fn scrub(block: BlockIdx, media: &mut Shadow, worn: Option<&mut Flash>) {
    let mut plan = FlashPlan::default();
    worn.into_iter().for_each(|worn| worn.scrub(block, &mut plan));
    media.execute(&plan);
}

/// Return the physical address of the FTL's page at `at`.
pub(super) fn physical_address(worn: Option<&Flash>, at: PageAddress) -> PageAddress {
    worn.map_or(at, |worn| worn.physical_address(at))
}

/// The FTL of `options` on such flash, until it is used up at most.
pub(super) fn read_your_writes(options: &MergingOptions<'_>, seed: u64, hot: u64, operations: u64) {
    let wear = WearRate {
        retire: if seed.is_multiple_of(2) { Retire::Blocks } else { Retire::Nothing },
        failures: (seed % 100) as f64 / 1000.0,
        factory_bad: (seed % 7) as f64 / 50.0,
        partial_blocks_max: 0,
        seed,
    };
    let spares = 1 + (seed % 40) as u32;
    let order = if seed.is_multiple_of(3) { PageOrder::Ascending } else { PageOrder::Any };
    if let Some(mut flash) = flash(options.geometry, spares, wear, order) {
        super::work(options, seed, hot, operations / 2, Some(&mut flash));
    }
}

#[test]
fn failed_blocks_are_replaced_until_spares_run_out() {
    let geometry = Geometry::from(Shape {
        channels: 2,
        planes: 2,
        blocks_per_plane: 20,
        pages_per_block: 16,
        metadata_pages: 0,
        page_bytes: super::PAGE as u32,
        logical_pages: 8 * 16,
    });
    assert!(MERGING_FTLS.contains(&"block_map"));
    let wear = WearRate {
        retire: Retire::Nothing,
        failures: 0.01,
        factory_bad: 0.0,
        partial_blocks_max: 0,
        seed: 5,
    };
    let options = MergingOptions::bare("block_map", geometry);
    let mut flash =
        flash(geometry, 10, wear, PageOrder::Any).expect("no factory-bad block exceeds the limit");
    super::work(&options, 5, 50, 1_000_000, Some(&mut flash));
    assert!(flash.is_used_up(), "the device wears out within a million writes");
    let counters = flash.counters;
    assert!(
        counters.program_failures > 0 && counters.erase_failures > 0 && counters.read_retries > 0
    );
    // One plane has used up its reserve, and the failure after that could not be mended.
    assert!((10..=20).contains(&counters.blocks_retired));
    let failures = counters.program_failures + counters.erase_failures;
    assert_eq!(failures, counters.blocks_retired + 1, "exactly the failed blocks are replaced");
}
