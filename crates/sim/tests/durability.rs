//! What a durable write takes on a simulated device with a volatile cache, against sums worked out by hand.

use uflip_core::{Breakdown, Bytes, Device, Io, Mode};
use uflip_sim::{Profile, SimBreakdown, SimDevice};

const PROGRAM: u64 = 300_000;
/// 4096 bytes at 100 MB/s.
const TRANSFER: u64 = 40_960;
/// 4096 bytes at 1 GB/s.
const LINK: u64 = 4_096;
const COMMAND: u64 = 10_000;
/// A write that the cache takes.
const TAKEN: u64 = COMMAND + LINK;
/// A page that goes to flash.
const FLASH: u64 = TRANSFER + PROGRAM;

/// The demo with plain times: one command at a time, no collection before it is needed.
fn device(dies: u32, cache_pages: u64) -> SimDevice {
    let overrides = format!(
        r#"{{"channels": 1, "dies_per_channel": {dies}, "planes_per_die": 1, "blocks_per_die": 64,
        "pages_per_block": 16, "metadata_pages": 0, "page_bytes": 4096, "spare_bytes": 0, "spare_factor": 0.3,
        "program_ns": {PROGRAM}, "program_high_ns": {PROGRAM}, "channel_bytes_per_s": 100000000,
        "buses": 0, "link_bytes_per_s": 1000000000, "command_write_ns": {COMMAND},
        "command_read_ns": {COMMAND}, "idle_free_blocks": 0, "state": "empty",
        "write_cache_bytes": {}, "flush": "when_needed"}}"#,
        cache_pages * 4096
    );
    let demo = include_str!("../../../python/uflip/profiles/demo.toml");
    SimDevice::new("test", Profile::parse(demo, "demo.toml", &overrides).unwrap()).unwrap()
}

fn write(page: u64, bytes: u64) -> Io {
    Io { offset: Bytes(page * 4096), size: Bytes(bytes), mode: Mode::Write }
}

/// The response times of writes to pages of their own, one after the other.
fn times(device: &mut SimDevice, durability: &str, writes: u64) -> Vec<u64> {
    device.set_durability(durability.parse().unwrap());
    (0..writes).map(|page| alone(device, write(page, 4096)).0).collect()
}

fn alone(device: &mut SimDevice, io: Io) -> (u64, u64) {
    device.submit(&io).unwrap();
    let done = device.complete().unwrap();
    let parts = done.breakdown.parts();
    let response = (done.completed - done.submitted).0;
    assert_eq!(parts.iter().sum::<u64>(), response, "the parts sum to the response time");
    let waits = SimBreakdown::CAUSES.iter().position(|cause| *cause == "cache_wait_ns").unwrap();
    (response, parts[waits])
}

#[test]
fn a_durable_write_takes_as_long_as_its_program_and_a_cached_one_as_long_as_the_cache() {
    assert_eq!(times(&mut device(1, 8), "cached", 3), [TAKEN; 3]);
    assert_eq!(times(&mut device(1, 8), "fua", 3), [TAKEN + FLASH; 3]);
    assert_eq!(
        times(&mut device(1, 8), "fua", 3),
        times(&mut device(1, 0), "cached", 3),
        "as on a device without a cache"
    );
}

#[test]
fn every_nth_write_waits_until_n_pages_are_programmed() {
    for every in [1, 2, 5] {
        let found = times(&mut device(1, 8), &format!("flush:{every}"), 10);
        let wanted: Vec<u64> =
            (1..=10).map(|n| TAKEN + if n % every == 0 { every * FLASH } else { 0 }).collect();
        assert_eq!(found, wanted);
    }
    // Of four dies on one channel, transfers follow each other and programs overlap.
    let found = times(&mut device(4, 8), "flush:4", 4);
    assert_eq!(found, [TAKEN, TAKEN, TAKEN, TAKEN + 4 * TRANSFER + PROGRAM]);
    // Where nothing is volatile there is nothing to wait for.
    assert_eq!(times(&mut device(1, 0), "flush:2", 4), [TAKEN + FLASH; 4]);
}

#[test]
fn who_waits_for_a_flush_says_so() {
    let mut device = device(1, 8);
    device.set_durability("flush:2".parse().unwrap());
    assert_eq!(alone(&mut device, write(0, 4096)), (TAKEN, 0));
    assert_eq!(alone(&mut device, write(1, 4096)), (TAKEN + 2 * FLASH, 2 * FLASH));
}

#[test]
fn writes_to_one_page_are_absorbed_until_they_are_flushed() {
    let mut device = device(1, 8);
    device.set_durability("flush:4".parse().unwrap());
    let found: Vec<u64> = (0..8).map(|_| alone(&mut device, write(7, 4096)).0).collect();
    let four = [TAKEN, TAKEN, TAKEN, TAKEN + FLASH];
    assert_eq!(found, [four, four].concat());
    let counters = device.counters().unwrap();
    assert_eq!((counters.pages_absorbed, counters.pages_programmed), (6, 2));
}

#[test]
fn a_durable_write_to_a_page_in_the_cache_loses_nothing_of_it() {
    let mut device = device(1, 8);
    let half = COMMAND + LINK / 2;
    assert_eq!(alone(&mut device, write(0, 2048)).0, half);
    device.set_durability("fua".parse().unwrap());
    // The half page is programmed first; the other half then reads it to be whole.
    let second = Io { offset: Bytes(2048), ..write(0, 2048) };
    let (response, _) = alone(&mut device, second);
    assert!(response > half + 2 * PROGRAM, "{response}: both halves were programmed");
    let counters = device.counters().unwrap();
    assert_eq!((counters.pages_programmed, counters.pages_read_to_modify), (2, 1));
}
