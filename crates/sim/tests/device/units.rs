//! Mapping units of 4 KiB in flash pages of 16 KiB: sums computed by hand, and a map with 4 KiB
//! pages as an oracle.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown as _, Bytes, Device, Io, Mode};
use uflip_sim::{Profile, SimDevice};

use super::worn::marginal_flash;
use super::{COMMAND, LINK, PROGRAM, READ, TRANSFER, io, part, profile, run_alone};

/// Units of a flash page.
const UNITS: u64 = 4;
/// Time to accept a unit, and time of a flash page program.
const ACCEPT: u64 = COMMAND + LINK;
const PAGE_PROGRAM: u64 = UNITS * TRANSFER + PROGRAM;

fn build_device(dies: u32, state: &str, more: &str) -> SimDevice {
    let overrides = format!(r#"{{"page_bytes": 16384, "mapping_unit_bytes": 4096{more}}}"#);
    let profile = Profile::parse(&profile(1, dies, state), "test", &overrides).unwrap();
    SimDevice::new("test", profile).unwrap()
}

fn device(more: &str) -> SimDevice {
    build_device(1, "empty", more)
}

/// Return the response times of writes of one unit each, one after the other.
fn writes(device: &mut SimDevice, count: u64) -> Vec<u64> {
    (0..count).map(|unit| run_alone(device, io(Mode::Write, unit, 1)).0).collect()
}

#[test]
fn filling_write_programs_flash_page() {
    let mut device = device("");
    let page = [ACCEPT, ACCEPT, ACCEPT, ACCEPT + PAGE_PROGRAM];
    assert_eq!(writes(&mut device, 8), [page, page].concat());
    let counters = device.counters().unwrap();
    assert_eq!((counters.pages_programmed, counters.pages_padded), (8, 0));
    assert_eq!(counters.pages_read_to_modify, 0, "no unit is read to be modified");
    let (whole, _) = run_alone(&mut device, io(Mode::Write, 8, UNITS));
    assert_eq!(
        whole,
        COMMAND + UNITS * LINK + PAGE_PROGRAM,
        "a whole page takes as long as before"
    );
}

#[test]
fn unit_read_transfers_one_unit() {
    for (parts, sent) in [("true", 1), ("false", UNITS)] {
        let mut device = device(&format!(r#", "partial_transfer": {parts}"#));
        writes(&mut device, 6);
        let (unit, _) = run_alone(&mut device, io(Mode::Read, 2, 1));
        assert_eq!(unit, COMMAND + READ + sent * TRANSFER + LINK);
        let (buffered, _) = run_alone(&mut device, io(Mode::Read, 5, 1));
        assert_eq!(buffered, COMMAND + LINK, "its page is not programmed yet");
        let (page, parts) = run_alone(&mut device, io(Mode::Read, 0, UNITS));
        assert_eq!(page, COMMAND + READ + UNITS * (TRANSFER + LINK), "cells are read once");
        assert_eq!(part(&parts, "cell_read_ns"), READ);
        let (two, _) = run_alone(&mut device, io(Mode::Read, 1, 2));
        assert_eq!(two, COMMAND + READ + sent.max(2) * TRANSFER + 2 * LINK);
    }
}

#[test]
fn dies_alternate_per_flash_page() {
    let mut device = build_device(2, "empty", "");
    writes(&mut device, 16);
    // Units 0 to 3 and 8 to 11 are on one die, the others on the other.
    let (same, _) = run_alone(&mut device, io(Mode::Read, 0, UNITS));
    assert_eq!(same, COMMAND + READ + UNITS * (TRANSFER + LINK));
    let (both, _) = run_alone(&mut device, io(Mode::Read, 0, 2 * UNITS));
    assert_eq!(both, COMMAND + READ + 2 * UNITS * TRANSFER + UNITS * LINK);
}

#[test]
fn durable_unit_write_pads_page() {
    let mut fua = device("");
    fua.set_durability("fua".parse().unwrap());
    assert_eq!(writes(&mut fua, 3), [ACCEPT + PAGE_PROGRAM; 3]);
    let (two, _) = run_alone(&mut fua, io(Mode::Write, 8, 2));
    assert_eq!(two, COMMAND + 2 * LINK + PAGE_PROGRAM, "one page program for both units");
    let counters = fua.counters().unwrap();
    assert_eq!((counters.pages_padded, counters.pages_programmed), (3 * 3 + 2, 4 * UNITS));

    let mut flushed = device("");
    flushed.set_durability("flush:3".parse().unwrap());
    assert_eq!(writes(&mut flushed, 6), [[ACCEPT, ACCEPT, ACCEPT + PAGE_PROGRAM]; 2].concat());
    assert_eq!(flushed.counters().unwrap().pages_padded, 2);
    // Of nine units the fourth and the eighth go to flash with those before them, the ninth alone.
    let mut ninth = device("");
    ninth.set_durability("flush:9".parse().unwrap());
    let page = [ACCEPT, ACCEPT, ACCEPT, ACCEPT + PAGE_PROGRAM];
    assert_eq!(writes(&mut ninth, 9), [&page[..], &page, &[ACCEPT + PAGE_PROGRAM]].concat());
}

#[test]
fn write_cache_gathers_units_to_flash_pages() {
    for flush in ["eager", "when_needed"] {
        let mut device = device(&format!(r#", "write_cache_bytes": 32768, "flush": "{flush}""#));
        device.set_durability("flush:6".parse().unwrap());
        let responses = writes(&mut device, 6);
        // Eager: the first page went when it was full, 2 writes before the flush.
        let first = if flush == "eager" { 2 * ACCEPT } else { 0 };
        let wait = 2 * PAGE_PROGRAM - first;
        assert_eq!(responses, [[ACCEPT; 5].as_slice(), &[ACCEPT + wait]].concat(), "{flush}");
        let counters = device.counters().unwrap();
        assert_eq!((counters.pages_programmed, counters.pages_padded), (8, 2), "{flush}");
    }
    // A full cache makes the host wait for a page program, which frees the addresses of its units.
    let mut full = device(r#", "write_cache_bytes": 16384"#);
    let times = writes(&mut full, 12);
    assert_eq!(times[..4], [ACCEPT; 4]);
    assert_eq!(times[4], ACCEPT + PAGE_PROGRAM);
    assert_eq!(times[5..8], [ACCEPT; 3]);
    assert_eq!(times[8], ACCEPT + PAGE_PROGRAM);
    assert_eq!(full.counters().unwrap().pages_padded, 0);
}

#[test]
fn partial_unit_write_reads_unit_first() {
    let mut device = device(r#", "partial_transfer": true"#);
    writes(&mut device, 4);
    let half = |at: u64| Io { offset: Bytes(at), size: Bytes(2048), mode: Mode::Write, stream: 0 };
    let (modified, parts) = run_alone(&mut device, half(0));
    assert_eq!(modified, COMMAND + LINK / 2 + READ + TRANSFER);
    assert_eq!(part(&parts, "read_to_modify_ns"), READ + TRANSFER);
    let (again, _) = run_alone(&mut device, half(2048));
    assert_eq!(again, COMMAND + LINK / 2, "the unit is in memory");
    assert_eq!(device.counters().unwrap().pages_read_to_modify, 1);
}

#[test]
fn partial_unit_writes_are_serialised() {
    let mut device = device(r#", "partial_transfer": true"#);
    writes(&mut device, 4);
    let half = |at: u64| Io { offset: Bytes(at), size: Bytes(2048), mode: Mode::Write, stream: 0 };
    let begun = device.now();
    for at in [0, 2048] {
        device.submit(&half(at)).unwrap();
    }
    // The second arrives when its command was processed after the first, and is written with it.
    let read = COMMAND + LINK / 2 + READ + TRANSFER;
    for waits in [READ + TRANSFER, READ + TRANSFER - COMMAND] {
        let done = device.complete().unwrap();
        assert_eq!((done.completed - begun).0, read);
        let parts = done.breakdown.parts();
        assert_eq!(part(parts, "read_to_modify_ns"), waits);
        assert_eq!(parts.iter().sum::<u64>(), read, "the parts sum to the response time");
    }
    assert_eq!(device.counters().unwrap().pages_read_to_modify, 1, "both units are in memory");
}

/// Seven flash pages of a block hold data: its halves have four and three, and no page is in both.
#[test]
fn half_block_holds_whole_flash_pages() {
    let text = marginal_flash(&profile(1, 3, "empty"));
    for retire in ["halves", "parity", "pages"] {
        let mut retired = 0;
        for seed in 0..8 {
            let keys = format!(
                r#"{{"page_bytes": 16384, "mapping_unit_bytes": 4096, "blocks_per_die": 16, "pages_per_block": 8,
                "metadata_pages": 1, "spare_factor": 0.6, "retire": "{retire}", "retire_rber": 0.004,
                "page_spread": 0.5, "partial_blocks_max": 100, "seed": {seed}}}"#
            );
            let made = SimDevice::new("test", Profile::parse(&text, "test", &keys).unwrap());
            let Ok(mut device) = made else { continue };
            device.set_durability("fua".parse().unwrap());
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            for _ in 0..400 {
                let one = io(Mode::Write, uniform(&mut rng, 100), 1);
                // Until it has worn out.
                if device.submit(&one).is_err() || device.complete().is_err() {
                    break;
                }
                let pages = device.counters().unwrap().pages_retired;
                assert_eq!(pages % UNITS, 0, "{retire}, seed {seed}");
                retired += pages;
            }
        }
        assert!(retired > 0, "{retire}");
    }
}

/// Return random writes of 1 to 8 units at random units, and some partial units.
fn random_ios(pages: u64, count: u64, seed: u64) -> Vec<Io> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut one = || {
        let units = 1 + uniform(&mut rng, 8);
        let whole = io(Mode::Write, uniform(&mut rng, pages - units), units);
        let part = uniform(&mut rng, 4) == 0;
        if part { Io { size: Bytes(512), ..whole } } else { whole }
    };
    (0..count).map(|_| one()).collect()
}

/// On one die, the boundaries of flash pages do not affect relocation: a map with unit-sized pages
/// moves the same data.
#[test]
fn unit_relocation_matches_small_pages() {
    for gc in ["greedy", "cyclic", "cost_benefit"] {
        let more = format!(r#", "gc": "{gc}", "pages_per_block": 8"#);
        let mut units = build_device(1, "sequential", &more);
        let small = format!(r#"{{"gc": "{gc}", "pages_per_block": 32}}"#);
        let small = Profile::parse(&profile(1, 1, "sequential"), "test", &small).unwrap();
        let mut small = SimDevice::new("test", small).unwrap();
        assert_eq!(units.info().capacity_bytes, small.info().capacity_bytes);
        let ios = random_ios(units.info().capacity_bytes.0 / 4096, 20_000, 7);
        units.apply(ios.iter().copied()).unwrap();
        small.apply(ios.iter().copied()).unwrap();
        let (units, small) = (units.counters().unwrap(), small.counters().unwrap());
        assert!(units.pages_relocated > 10_000, "units were relocated");
        assert_eq!(units, small, "{gc}");
    }
}

/// Return programmed bytes per written byte for random writes, one after the other.
fn amplification(mut device: SimDevice) -> f64 {
    let pages = device.info().capacity_bytes.0 / 4096;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for _ in 0..4 * pages {
        run_alone(&mut device, io(Mode::Write, uniform(&mut rng, pages), 1));
    }
    let counters = device.counters().unwrap();
    counters.pages_programmed as f64 / counters.host_pages_written as f64
}

#[test]
fn timed_unit_write_amplification_matches_small_pages() {
    for (dies, relocation) in [(1, "same_die"), (2, "allocator"), (4, "same_die")] {
        let more = format!(
            r#""gc": "greedy", "relocation": "{relocation}", "separate_streams": false,
               "blocks_per_die": 128"#
        );
        let units = build_device(dies, "random", &format!(", {more}"));
        let small = format!(r#"{{{more}, "pages_per_block": 64}}"#);
        let small = Profile::parse(&profile(1, dies, "random"), "test", &small).unwrap();
        let small = SimDevice::new("test", small).unwrap();
        let (units, small) = (amplification(units), amplification(small));
        assert!((units / small - 1.0).abs() < 0.03, "{units} of units, {small} of pages");
    }
}

#[test]
fn unit_size_must_divide_flash_page() {
    let refused = |more: &str| {
        let overrides = format!(r#"{{"page_bytes": 16384{more}}}"#);
        let made = Profile::parse(&profile(1, 1, "empty"), "test", &overrides);
        made.unwrap_err().to_string()
    };
    let message = refused(r#", "mapping_unit_bytes": 5120"#);
    assert!(message.contains("a page of 16384 bytes"), "{message}");
    let units = r#", "mapping_unit_bytes": 4096, "copy_back": true, "relocation": "same_die""#;
    assert!(refused(units).contains("cannot pack units"), "{}", refused(units));
    let load = refused(r#", "mapping_unit_bytes": 4096, "relocate_at_least": 2"#);
    assert!(load.contains("they count flash pages"), "{load}");
}
