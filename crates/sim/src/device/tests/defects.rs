//! Defects found after a power loss; times are computed by hand.

use serde_json::json;
use uflip_core::{Device, Nanos};

use super::round_times::{BLOCKS, ERASE, PAGE, PAGES, PROGRAM, READ, SPARE, write};
use super::{audit, round_times};
use crate::SimDevice;
use crate::flash::geometry::BlockIdx;

/// Create one die whose erases and programs fail with these probabilities, whatever the wear.
fn device(erase_failures: f64, program_failures: f64) -> SimDevice {
    round_times::device(json!({
        "spare_factor": 0.6, "wear_law": "exponential", "rated_cycles": 1000, "rber_fresh": 1e-9, "rber_rated": 1e-9,
        "wear_exponent": 1.0, "page_spread": 0.0, "high_page_factor": 1.0, "retention_doubling_s": 0.0,
        "retention_exponent": 1.0, "ecc_codeword_bytes": 512, "ecc_correctable_bits": 8, "erase_step_cycles": 0,
        "erase_step_ns": 0, "erase_steps_max": 0, "cycles_before": 1000, "data_age_s": 0.0, "read_retries": 0,
        "retry_gain": 1.0, "fail_uncorrectable": false, "factory_bad_share": 0.0,
        "program_failures": program_failures, "erase_failures": erase_failures, "retire": "nothing",
        "retire_rber": 0.4, "partial_blocks_max": 0, "usable_pages_min": 1, "seed": 7,
    }))
}

/// Overwrite a few pages until `accepts` returns true for a copy of the device that loses power.
fn cut_when(mut device: SimDevice, accepts: impl Fn(&SimDevice) -> bool) -> SimDevice {
    for page in 0..10_000 {
        device.submit(&write(page * 7 % 40)).unwrap();
        for later in (0..20).map(|step| Nanos(step * PROGRAM / 2)) {
            let mut copy = device.clone();
            copy.cut_power(copy.now() + later).unwrap();
            if accepts(&copy) {
                return copy;
            }
        }
        device.complete().unwrap();
    }
    panic!("no defect was found before the I/Os ran out");
}

fn blocks(device: &SimDevice, are: impl Fn(&SimDevice, BlockIdx) -> bool) -> Vec<BlockIdx> {
    let all = (0..device.flash.geometry.blocks()).map(BlockIdx);
    all.filter(|block| are(device, *block)).collect()
}

fn is_listed(device: &SimDevice, block: BlockIdx) -> bool {
    device.events.contents.as_ref().unwrap().is_listed(block)
}

fn is_broken(device: &SimDevice, block: BlockIdx) -> bool {
    device.events.contents.as_ref().unwrap().is_broken(block)
}

#[test]
fn recovery_reads_defect_list_first() {
    let mut device = device(0.0, 0.0);
    device.apply((0..12).map(write)).unwrap();
    device.cut_power(device.now()).unwrap();
    let recovery = device.recover().unwrap();
    let spare = PAGES + (PAGES / 2 + 1) + (BLOCKS - 2);
    assert_eq!((recovery.metadata_pages_read, recovery.spare_areas_read), (1, spare));
    assert_eq!(recovery.reading, Nanos(READ + PAGE + spare * (READ + SPARE)));
}

#[test]
fn unlisted_bad_block_is_found_again_by_recovery() {
    let unlisted = |device: &SimDevice| {
        blocks(device, |device, block| is_broken(device, block) && !is_listed(device, block))
    };
    let mut device = cut_when(device(0.3, 0.0), |device| !unlisted(device).is_empty());
    let lost = unlisted(&device);
    assert_eq!(lost.len(), 1);
    assert!(!device.flash.nand.is_bad(lost[0]), "the defect is not listed");
    let recovery = device.recover().unwrap();
    // The block cannot be read, so it is erased; that fails, and the list is programmed.
    assert_eq!((recovery.blocks_erased, recovery.erasing), (1, Nanos(ERASE + PAGE + PROGRAM)));
    assert!(is_listed(&device, lost[0]));
    audit(&device);
    // A listed block is neither read nor erased any more.
    device.cut_power(device.now()).unwrap();
    let again = device.recover().unwrap();
    assert_eq!((again.blocks_erased, again.erasing), (0, Nanos(0)));
    assert!(again.spare_areas_read < recovery.spare_areas_read);
}

#[test]
fn block_with_failed_program_is_retired_by_recovery() {
    let failed = |device: &SimDevice| {
        let defects =
            |block| device.events.contents.as_ref().unwrap().defects().unwrap().has_program(block);
        blocks(device, |_, block| defects(block))
    };
    let mut device = cut_when(device(0.0, 0.02), |device| !failed(device).is_empty());
    let worn = failed(&device)[0];
    device.recover().unwrap();
    assert!(!is_listed(&device, worn), "a failed block that holds data is not listed");
    for page in 0..1000 {
        device.submit(&write(page * 7 % 40)).unwrap();
        device.complete().unwrap();
        if device.flash.nand.is_bad(worn) {
            break;
        }
    }
    assert!(device.flash.nand.is_bad(worn), "the block was erased and is not used again");
    assert_eq!(device.flash.nand.erases(worn), 1);
}

#[test]
fn recovery_reads_or_estimates_erase_counts() {
    let mut device = device(0.0, 0.0);
    device.apply((0..400).map(|page| write(page * 7 % 40))).unwrap();
    device.cut_power(device.now()).unwrap();
    let nand = &device.flash.nand;
    let truth: Vec<u32> = (0..BLOCKS as u32).map(|block| nand.erases(BlockIdx(block))).collect();
    let read = blocks(&device, |device, block| !device.flash.nand.is_erased(block));
    let sum: u32 = read.iter().map(|block| truth[block.0 as usize]).sum();
    let mean = sum / read.len() as u32;
    assert!(mean > 0 && read.len() < truth.len());
    device.recover().unwrap();
    let super::AnyBackend::Paged(paged) = &device.backend else {
        panic!("the device has a page map")
    };
    for (block, erases) in (0..).map(BlockIdx).zip(truth) {
        let expected = if read.contains(&block) { erases } else { mean };
        assert_eq!(paged.ftl().blocks().wear(block), expected, "{block:?}");
    }
}
