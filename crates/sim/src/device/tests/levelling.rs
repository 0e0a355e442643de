//! Power cuts during wear levelling below a merging FTL: the remains of a move are erased.

use serde_json::json;
use uflip_core::{Device as _, Io, Mode, Nanos};

use super::round_times::{BLOCKS, ERASE, PAGES, PROGRAM, READ, SPARE, write};
use super::{audit, contents};
use crate::flash::contents::BlockCondition;
use crate::{Profile, SimDevice};

/// Create a block map on one die, where a block moves when another has one more erase.
fn device() -> SimDevice {
    let keys = json!({
        "ftl": "block_map", "blocks_per_die": BLOCKS, "pages_per_block": PAGES, "spare_factor": 0.5, "read_ns": READ,
        "channels": 1, "dies_per_channel": 1, "page_bytes": 4096, "spare_bytes": 0, "program_ns": PROGRAM,
        "program_high_ns": PROGRAM, "erase_ns": ERASE, "channel_bytes_per_s": 40_000_000, "buses": 0,
        "state": "sequential", "static_wear_threshold": 1, "power_loss_protection": false, "spare_read_bytes": 16,
        "write_cache_bytes": 0, "page_order": "any",
    });
    let text = include_str!("../../../tests/swarm/block-map.toml");
    let profile = Profile::parse(text, "block-map.toml", &keys.to_string()).unwrap();
    SimDevice::new("test", profile).unwrap()
}

/// Return the blocks with programmed pages that replace no block.
fn used_up_blocks(device: &SimDevice) -> usize {
    let blocks = contents(device).block_states().into_iter();
    blocks
        .filter(|(condition, _, used)| matches!(condition, BlockCondition::Programmed(_)) && !used)
        .count()
}

/// Deallocated data does not count as lost, timed or untimed.
#[test]
fn untimed_trim_survives_power_loss() {
    let mut device = device();
    let trim = Io { mode: Mode::Trim, ..write(3) };
    device.apply([write(3), trim].into_iter()).unwrap();
    for number in (0..64).filter(|number| *number != 3) {
        device.submit(&write(number)).unwrap();
        device.complete().unwrap();
    }
    device.wait_until(device.now() + Nanos(1_000_000_000));
    assert_eq!(device.cut_power(device.now()).unwrap().pages_lost, 0);
}

/// Moves and their erases continue after the host's write; in untimed mode they are complete.
#[test]
fn untimed_mode_completes_levelling_in_progress() {
    let read = Io { mode: Mode::Read, ..write(3) };
    let trim = Io { mode: Mode::Trim, ..write(3) };
    for io in [read, trim, write(3)] {
        let mut device = device();
        for number in 0..200 {
            device.submit(&write(number % 8)).unwrap();
            device.complete().unwrap();
            device.apply([io].into_iter()).unwrap();
            audit(&device);
        }
    }
}

#[test]
fn recovery_erases_block_of_interrupted_move() {
    let mut device = device();
    let versions = |device: &SimDevice| -> Vec<u64> {
        (0..64).map(|page| device.version_of(page).expect("flash contents are recorded")).collect()
    };
    let (mut interrupted, mut unmoved) = (0, 0);
    for number in 0..40 {
        let before = versions(&device);
        device.submit(&write(number % 8)).unwrap();
        for later in (0..40).map(|step| Nanos(step * PROGRAM)) {
            let mut copy = device.clone();
            copy.cut_power(copy.now() + later).unwrap();
            let (left, states) = (used_up_blocks(&copy), contents(&copy).block_states());
            let erased = states
                .iter()
                .filter(|(condition, ..)| *condition == BlockCondition::Erased)
                .count();
            let recovery = copy.recover().unwrap();
            audit(&copy);
            unmoved += usize::from(left == 0);
            if left != 1 || recovery.blocks_erased != 1 {
                continue;
            }
            interrupted += 1;
            assert_eq!(
                (recovery.erasing, recovery.spare_areas_read),
                (Nanos(ERASE), BLOCKS * PAGES)
            );
            assert_eq!(recovery.reading, Nanos(BLOCKS * PAGES * (READ + SPARE)));
            assert!(erased < BLOCKS as usize / 2);
            // Each page has its old version or the one being written.
            let pairs = before.iter().copied().zip(versions(&copy));
            assert!(pairs.enumerate().all(|(page, (before, now))| {
                now == before || page as u64 == number % 8 && now == before + 1
            }));
        }
        device.complete().unwrap();
    }
    assert!(
        interrupted > 10 && unmoved > 10,
        "{interrupted} cuts interrupted a move, {unmoved} did not"
    );
}
