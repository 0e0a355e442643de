//! An SLC cache with three-bit cells: burst size, times before and after the cliff, and folding
//! time, computed by hand.

use uflip_core::{Device, Mode, Nanos};
use uflip_sim::{Profile, SimDevice};

use super::{COMMAND, ERASE, LINK, PROGRAM, READ, TRANSFER, io, profile, run_alone};

const SLC_READ: u64 = 20_000;
const SLC_PROGRAM: u64 = 100_000;
/// Of 16 pages of a block a third, rounded down.
const SLC_PAGES: u64 = 5;
/// Time to fold: a page is read, goes to the controller and back to the only die, and is
/// programmed.
const FOLD: u64 = SLC_PAGES * (SLC_READ + 2 * TRANSFER + PROGRAM) + ERASE;
const ACCEPT: u64 = COMMAND + LINK + TRANSFER;

fn build_device(dies: u32, blocks: u64, most: u64, more: &str) -> SimDevice {
    let overrides = format!(
        r#"{{"bits_per_cell": 3, "slc_blocks": {blocks}, "slc_blocks_max": {most},
            "slc_read_ns": {SLC_READ}, "slc_program_ns": {SLC_PROGRAM}{more}}}"#
    );
    let profile = Profile::parse(&profile(1, dies, "empty"), "test", &overrides).unwrap();
    SimDevice::new("test", profile).unwrap()
}

/// Return the response times of `count` writes of a page, one after the other.
fn writes(device: &mut SimDevice, count: u64) -> Vec<u64> {
    (0..count).map(|page| run_alone(device, io(Mode::Write, page, 1)).0).collect()
}

/// Return how many writes went to SLC blocks before the first that did not.
fn count_fast_writes(device: &mut SimDevice, count: u64) -> u64 {
    let times = writes(device, count);
    times.iter().take_while(|time| **time == ACCEPT + SLC_PROGRAM).count() as u64
}

fn stay_idle(device: &mut SimDevice, ns: u64) {
    device.wait_until(Nanos(device.now().0 + ns));
}

#[test]
fn slc_burst_is_fast_for_cache_capacity() {
    for (dies, blocks) in [(1, 1), (1, 4), (2, 4), (4, 3)] {
        let mut device = build_device(dies, blocks, blocks, "");
        let holds = u64::from(dies) * blocks * SLC_PAGES;
        let times = writes(&mut device, holds + 40);
        let (before, after) = times.split_at(holds as usize);
        assert!(before.iter().all(|time| *time == ACCEPT + SLC_PROGRAM), "{dies} of {blocks}");
        assert!(after.iter().all(|time| *time == ACCEPT + PROGRAM), "{dies} of {blocks}");
    }
}

#[test]
fn dynamic_slc_cache_uses_free_blocks() {
    // Of 64 blocks one is the reserve, and one is left for writes that bypass the cache.
    assert_eq!(count_fast_writes(&mut build_device(1, 0, 64, ""), 330), 62 * SLC_PAGES);
    assert_eq!(count_fast_writes(&mut build_device(1, 0, 10, ""), 100), 10 * SLC_PAGES);
}

#[test]
fn slc_pages_read_at_slc_speed() {
    let mut device = build_device(1, 2, 2, "");
    count_fast_writes(&mut device, 1);
    assert_eq!(
        run_alone(&mut device, io(Mode::Read, 0, 1)).0,
        COMMAND + SLC_READ + TRANSFER + LINK
    );
    count_fast_writes(&mut device, SLC_PAGES);
    stay_idle(&mut device, 2 * FOLD);
    assert_eq!(run_alone(&mut device, io(Mode::Read, 1, 1)).0, COMMAND + READ + TRANSFER + LINK);
}

#[test]
fn idle_time_folds_one_block_per_die() {
    for (idle, folded) in
        [(FOLD - 1, 0), (FOLD, 1), (3 * FOLD - 1, 2), (3 * FOLD, 3), (9 * FOLD, 4)]
    {
        let mut device = build_device(1, 4, 4, "");
        count_fast_writes(&mut device, 4 * SLC_PAGES);
        stay_idle(&mut device, idle);
        let counters = device.counters().unwrap();
        assert_eq!(counters.blocks_erased, folded, "after {idle} ns");
    }
    let mut device = build_device(1, 4, 4, "");
    count_fast_writes(&mut device, 4 * SLC_PAGES);
    stay_idle(&mut device, 4 * FOLD);
    assert_eq!(count_fast_writes(&mut device, 40), 4 * SLC_PAGES, "the whole cache is free again");
    let counters = device.counters().unwrap();
    assert_eq!(counters.pages_programmed, 40 + 8 * SLC_PAGES, "both folds are counted");
}

#[test]
fn overwritten_slc_pages_are_not_folded() {
    let mut device = build_device(1, 4, 4, "");
    for _ in 0..4 * SLC_PAGES {
        run_alone(&mut device, io(Mode::Write, 7, 1));
    }
    stay_idle(&mut device, 4 * FOLD);
    let counters = device.counters().unwrap();
    assert_eq!((counters.pages_relocated, counters.blocks_erased), (1, 4));
}

#[test]
fn idle_folds_are_counted_as_idle() {
    let mut device = build_device(1, 4, 4, "");
    count_fast_writes(&mut device, 4 * SLC_PAGES);
    stay_idle(&mut device, 9 * FOLD);
    let counters = device.counters().unwrap();
    assert_eq!((counters.blocks_collected, counters.blocks_collected_idle), (4, 4));
}

#[test]
fn slc_cache_gathers_units() {
    let more = r#", "page_bytes": 16384, "mapping_unit_bytes": 4096"#;
    let mut device = build_device(1, 2, 2, more);
    let units = 4 * 2 * SLC_PAGES;
    let times: Vec<u64> =
        (0..units + 8).map(|unit| run_alone(&mut device, io(Mode::Write, unit, 1)).0).collect();
    for (unit, time) in (0..).zip(times) {
        let program = if unit < units { SLC_PROGRAM } else { PROGRAM };
        let last = if unit % 4 == 3 { 4 * TRANSFER + program } else { 0 };
        assert_eq!(time, COMMAND + LINK + last, "unit {unit}");
    }
}

#[test]
fn partial_page_past_slc_cache_is_filled_first() {
    let more = r#", "page_bytes": 16384, "mapping_unit_bytes": 4096, "separate_streams": true"#;
    let holds = 4 * 2 * SLC_PAGES * 4;
    for begun in 0..4 {
        let mut device = build_device(4, 2, 2, more);
        let write = |device: &mut SimDevice, count: u64| -> Vec<u64> {
            (0..count).map(|unit| run_alone(device, io(Mode::Write, unit, 1)).0).collect()
        };
        write(&mut device, holds + begun);
        stay_idle(&mut device, 1_000_000_000_000);
        // The unit that fills its flash page waits for the program; then all dies have equally
        // many.
        let (left, waits) = ((4 - begun) % 4, |ns| COMMAND + LINK + 4 * TRANSFER + ns);
        for (unit, time) in (0..).zip(write(&mut device, left + holds + 4)) {
            let fills = unit % 4 == (left + 3) % 4;
            let past = unit < left || unit >= left + holds;
            let expected = match (fills, past) {
                (false, _) => COMMAND + LINK,
                (true, true) => waits(PROGRAM),
                (true, false) => waits(SLC_PROGRAM),
            };
            assert_eq!(time, expected, "unit {unit}, {begun} before");
        }
    }
}

#[test]
fn invalid_slc_cache_is_refused() {
    let refused = |keys: &str| {
        let overrides = format!(r#"{{"slc_read_ns": 1, "slc_program_ns": 1, {keys}}}"#);
        let text = profile(1, 1, "empty");
        Profile::parse(&text, "test", &overrides).unwrap_err().to_string()
    };
    let none = refused(r#""bits_per_cell": 1, "slc_blocks": 1, "slc_blocks_max": 1"#);
    assert!(none.contains("2 or more with [slc_cache]"), "{none}");
    let less = refused(r#""slc_blocks": 4, "slc_blocks_max": 3"#);
    assert!(less.contains("4 to 64"), "{less}");
    let streams = refused(r#""write_streams": 2, "slc_blocks": 4, "slc_blocks_max": 4"#);
    assert!(streams.contains("1 with [slc_cache]"), "{streams}");
    let load = refused(r#""relocate_at_least": 2, "slc_blocks": 4, "slc_blocks_max": 4"#);
    assert!(load.contains("0 with [slc_cache]"), "{load}");
    let spare = refused(r#""slc_blocks": 40, "slc_blocks_max": 40"#);
    assert!(spare.contains("spare_factor"), "{spare}");
}
