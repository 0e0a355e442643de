//! The number of erases of a block, on block devices and on open-channel devices.

use super::{CollectMedia as _, Flash};
use crate::flash::geometry::{BlockIdx, Geometry, Shape};
use crate::flash::nand::PageOrder;
use crate::flash::reliability::{Reliability, ReliabilityPart};
use crate::flash::wear_out::{Grain, WearOut, WearOutOptions};

const BLOCKS: u32 = 200;

/// After each 10 erases the next takes a step longer, and more than 4 steps are impossible. Of blocks with 20
/// earlier erases, a share `failures` fails by chance.
fn flash(cycles_before: u32, failures: f64) -> Flash {
    let shape = Shape {
        channels: 1,
        planes: 1,
        blocks_per_plane: BLOCKS,
        pages_per_block: 4,
        metadata_pages: 0,
        page_bytes: 4096,
        logical_pages: 1,
    };
    let geometry = Geometry::from(shape);
    let laws = ReliabilityPart {
        wear_law: "power".into(),
        rated_cycles: 20,
        rber_fresh: 1e-9,
        rber_rated: 1e-9,
        wear_exponent: 1.0,
        page_spread: 0.0,
        high_page_factor: 1.0,
        retention_doubling_s: 0.0,
        retention_exponent: 1.0,
        ecc_codeword_bytes: 512,
        ecc_correctable_bits: 8,
        erase_step_cycles: 10,
        erase_step_ns: 1000,
        erase_steps_max: 4,
    };
    let options = WearOutOptions {
        seed: 3,
        cycles_before,
        rated_cycles: 20,
        pages_of_a_cell: 1,
        grain: Grain::flash_pages(&geometry),
        data_age_ns: 0,
        read_retries: 0,
        retry_gain: 1.0,
        program_failures: 0.0,
        erase_failures: failures,
        retire_rber: 0.5,
    };
    let laws = Reliability::new(&laws, 4096).expect("valid parameters");
    let wear_out = WearOut::new(laws, geometry, options);
    Flash::new(geometry, PageOrder::Ascending).with_wear(wear_out, &[], false)
}

/// An erase of each front end; false if it fails.
const FRONT_ENDS: [fn(&mut Flash, BlockIdx) -> bool; 2] = [
    |flash, block| flash.erase(block),
    |flash, block| flash.try_erase(block).expect("the block is not retired"),
];

/// Return the number of erases of `block` before one fails.
fn count_erases_until_failure(
    flash: &mut Flash,
    block: BlockIdx,
    erase: fn(&mut Flash, BlockIdx) -> bool,
) -> u32 {
    (0..).find(|_| !erase(flash, block)).expect("an erase fails eventually")
}

/// 10 erases without a step, 10 with one, … 10 with four: 50, including earlier ones.
#[test]
fn erase_steps_limit_block_endurance() {
    for erase in FRONT_ENDS {
        for (before, expected) in [(0, 50), (20, 30), (49, 1), (50, 0)] {
            assert_eq!(
                count_erases_until_failure(&mut flash(before, 0.0), BlockIdx(7), erase),
                expected
            );
        }
    }
}

/// An erase after n of them fails with probability n / 20 here: the first never, the 21st always.
#[test]
fn erase_failure_depends_on_earlier_erases() {
    let erases_until_failure = |erase| {
        let mut flash = flash(0, 1.0 - 1e-9);
        (0..BLOCKS)
            .map(|block| count_erases_until_failure(&mut flash, BlockIdx(block), erase))
            .collect::<Vec<u32>>()
    };
    let endured = erases_until_failure(FRONT_ENDS[0]);
    assert_eq!(endured, erases_until_failure(FRONT_ENDS[1]), "both interfaces agree");
    assert!(endured.iter().all(|erases| (1..=20).contains(erases)), "{endured:?}");
    // The mean of the first failure: Σ Π (1 − i / 20), and its deviation, with 200 blocks.
    let survives = |erases: u32| (0..erases).map(|i| 1.0 - f64::from(i) / 20.0).product::<f64>();
    let mean: f64 = (1..=20).map(survives).sum();
    let square: f64 = (1..=20).map(|n| f64::from(2 * n - 1) * survives(n)).sum();
    let deviation = ((square - mean * mean) / f64::from(BLOCKS)).sqrt();
    let got = f64::from(endured.iter().sum::<u32>()) / f64::from(BLOCKS);
    assert!((got - mean).abs() < 4.0 * deviation, "{got} erases, {mean} ± {deviation} expected");
}
