//! Wear levelling below a merging FTL takes the time of its copies and its erase.

use uflip_core::{Device, Mode};
use uflip_sim::{Profile, SimDevice};

use super::{ERASE, PROGRAM, READ, TRANSFER, io, profile, run_alone, with_ftl};

const PAGES: u64 = 16;

/// Rewrite the first of 50 blocks repeatedly; return response times, and the number of moved blocks
/// after each.
fn rewrites(overrides: &str, times: usize) -> Vec<(u64, u64)> {
    let text = with_ftl("block_map", &profile(1, 1, "sequential"));
    let profile = Profile::parse(&text, "test", overrides).unwrap();
    let mut device = SimDevice::new("test", profile).unwrap();
    let mut rewrite = |_| {
        let response = run_alone(&mut device, io(Mode::Write, 0, PAGES)).0;
        (response, device.counters().unwrap().blocks_levelled)
    };
    (0..times).map(&mut rewrite).collect()
}

/// Of 64 blocks 13 take turns as the first; a die is checked every fourth erase. When one of them was erased four
/// times, and the 50 others never, one of these moves: its 16 pages are read and programmed in the erased block, then it
/// is erased itself. The write that had its turn waits for that; a transfer goes in beside the cells of the page before.
#[test]
fn levelling_move_time_is_copies_and_erase() {
    let without = rewrites("{}", 200);
    let with = rewrites(r#"{"static_wear_threshold": 3}"#, 200);
    let normal_ns = without[0].0;
    assert!(without.iter().all(|(response, moved)| (*response, *moved) == (normal_ns, 0)));
    let mut before = 0;
    for (number, (response, moved)) in with.iter().enumerate() {
        if *moved == before {
            assert_eq!(*response, normal_ns, "write {number}");
            continue;
        }
        before = *moved;
        let extra_ns = response - normal_ns;
        let upper_bound = PAGES * (READ + PROGRAM + 2 * TRANSFER) + ERASE;
        let lower_bound = PAGES * (READ + PROGRAM) + ERASE;
        assert!(
            (lower_bound..=upper_bound).contains(&extra_ns),
            "write {number}: {extra_ns} of {lower_bound} to {upper_bound}"
        );
    }
    let first = with.iter().position(|(_, moved)| *moved > 0).expect("a block is moved");
    assert!((3 * 13..=5 * 13).contains(&first), "the first block moves after {first} writes");
    assert!(before > 10, "{before} blocks in 200 writes");
}
