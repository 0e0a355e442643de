//! Wear levelling under every merging FTL: blocks with data that is never overwritten wear as well.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use super::shapes::one_for_all;
use super::write_whole;
use crate::flash::geometry::{BlockIdx, Lpn};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::flash::replacement::ReplacementTable;
use crate::ftl::{MERGING_FTLS, Merging, MergingOptions};

/// Erases between the most and the least worn block of any plane, after random writes to a quarter of a device that was
/// filled in order; how many blocks were moved, and how many erased.
fn spread(name: &str, dynamic: bool, threshold: u32) -> (u32, u64, u64) {
    let (geometry, tables) = one_for_all();
    let options = MergingOptions::with_tables(name, geometry, tables);
    let mut ftl = Merging::by_name(&options).expect("a known FTL");
    let replaced = ReplacementTable::identity(geometry).levelled(dynamic, threshold);
    let mut flash = Flash::new(geometry, PageOrder::Any).replacing(replaced);
    let pages = geometry.shape().logical_pages;
    (0..pages).for_each(|page| write_whole(&mut ftl, Lpn(page), &mut flash));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    while flash.counters.blocks_erased < 30 * u64::from(geometry.blocks()) {
        let page = uniform(&mut rng, u64::from(pages / 4)) as u32;
        write_whole(&mut ftl, Lpn(page), &mut flash);
    }
    ftl.audit();
    let of_plane = |plane| {
        let wear = geometry.blocks_of(plane).map(|block: BlockIdx| flash.nand.erases(block));
        let wear: Vec<u32> = wear.collect();
        wear.iter().max().expect("a plane has blocks")
            - wear.iter().min().expect("a plane has blocks")
    };
    let planes = (0..geometry.shape().planes).map(crate::flash::geometry::PlaneIdx);
    let max_spread = planes.map(of_plane).max().expect("at least one plane");
    (max_spread, flash.counters.blocks_levelled, flash.counters.blocks_erased)
}

/// Three quarters of the data are cold: their blocks are never erased unless levelling moves them. With a
/// threshold the spread is the threshold plus the erases while up to 48 of them wait, every fourth erase of
/// their plane: 192 erases, of a dozen blocks and more.
#[test]
fn static_levelling_narrows_wear_spread_of_merging_ftls() {
    for name in MERGING_FTLS {
        let (without, moved, _) = spread(name, false, 0);
        assert!(without > 30 && moved == 0, "{name}: {without}");
        for threshold in [4, 10] {
            let (with, moved, erased) = spread(name, false, threshold);
            println!(
                "{name}: {without} without, {with} with a threshold of {threshold}, {moved} of {erased} erases"
            );
            assert!(with <= threshold + 16, "{name}: {with} with a threshold of {threshold}");
            assert!(moved > 0, "{name}");
        }
    }
}

#[test]
fn dynamic_levelling_moves_no_blocks() {
    for name in MERGING_FTLS {
        let (_, moved, _) = spread(name, true, 0);
        assert_eq!(moved, 0, "{name}");
    }
}
