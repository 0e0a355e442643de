//! Scrubbing: its frequency and its writes, compared with sums computed by hand.

use uflip_core::{Breakdown as _, Counters, Device, Io, Mode, Nanos, Result};
use uflip_sim::{Profile, SimDevice};

use super::{
    COMMAND, ERASE, LINK, PROGRAM, READ, TRANSFER, io, part, profile, run_alone, with_ftl,
};

const PAGES: u64 = 16;
const LIMIT: u64 = 100;
const SECOND: u64 = 1_000_000_000;
/// Time to move a block without other operations.
const MOVE: u64 = PAGES * (READ + 2 * TRANSFER + PROGRAM) + ERASE;

/// Create a page map or a block map on one full die without errors; `changes` set its scrubbing.
fn device(ftl: &str, changes: &str) -> SimDevice {
    SimDevice::new("test", parse_profile(ftl, changes).unwrap()).unwrap()
}

fn parse_profile(ftl: &str, changes: &str) -> Result<Profile> {
    let page_map = ftl == "page_map";
    let text = profile(1, 1, "sequential");
    let text = if page_map { text } else { with_ftl(ftl, &text) };
    let text = text.replace("separate_streams = false", "separate_streams = true");
    let spares = if page_map { "" } else { ", replacement_blocks = 8" };
    let tables = format!(
        r#"
        reliability = {{ wear_law = "power", rated_cycles = 1000, rber_fresh = 1e-9, rber_rated = 1e-9, wear_exponent = 1.0, page_spread = 0.0, high_page_factor = 1.0, retention_doubling_s = 0.0, retention_exponent = 1.0, ecc_codeword_bytes = 512, ecc_correctable_bits = 8, erase_step_cycles = 0, erase_step_ns = 0, erase_steps_max = 0 }}
        recovery = {{ cycles_before = 0, data_age_s = 0.0, read_retries = 3, retry_gain = 0.5, fail_uncorrectable = true, factory_bad_share = 0.0, program_failures = 0.0, erase_failures = 0.0, retire = "nothing", retire_rber = 0.1, partial_blocks_max = 0, usable_pages_min = 1{spares} }}
        block_history = {{ retention_by_block = true, read_disturb_doubling = 1000000 }}"#
    );
    let text = text.replace("sources = {", &format!("{tables}\n        sources = {{"));
    Profile::parse(&text, "test", changes)
}

fn counters_of(device: &SimDevice) -> Counters {
    device.counters().unwrap()
}

fn read(page: u64) -> Io {
    io(Mode::Read, page, 1)
}

/// Response time of a read that waits for nothing.
const SINGLE_READ: u64 = COMMAND + READ + TRANSFER + LINK;

#[test]
fn read_limit_scrubs_block_in_background() {
    for ftl in ["page_map", "block_map"] {
        let mut device = device(ftl, &format!(r#"{{"scrub_reads": {LIMIT}}}"#));
        let before = counters_of(&device);
        for number in 0..LIMIT {
            assert_eq!(
                run_alone(&mut device, read(number % PAGES)).0,
                SINGLE_READ,
                "{ftl}: read {number}"
            );
            let moved = counters_of(&device).since(&before).blocks_scrubbed;
            assert_eq!(moved, u64::from(number == LIMIT - 1), "{ftl}: read {number}");
        }
        // The next one comes while the first page is read to be moved, and waits for the rest of that.
        let waits = READ + TRANSFER - COMMAND;
        let (response, parts) = run_alone(&mut device, read(20 * PAGES));
        assert_eq!(response, SINGLE_READ + waits, "{ftl}: {parts:?}");
        assert_eq!(part(&parts, "scrub_ns"), waits, "{ftl}: {parts:?}");
        device.wait_until(device.now() + Nanos(MOVE));
        assert_eq!(
            run_alone(&mut device, read(5)).0,
            SINGLE_READ,
            "{ftl}: the scrub has ended, and the page is readable"
        );
        let counters = counters_of(&device).since(&before);
        assert_eq!((counters.pages_relocated, counters.blocks_erased), (PAGES, 1), "{ftl}");
        assert_eq!(counters.pages_programmed, PAGES, "{ftl}");
    }
}

/// Pages that are read R times a second have their block scrubbed every `LIMIT`/R seconds.
#[test]
fn scrub_rate_matches_read_rate() {
    for ftl in ["page_map", "block_map"] {
        let mut device = device(ftl, &format!(r#"{{"scrub_reads": {LIMIT}}}"#));
        let (rate, seconds) = (50, 40);
        let begin = device.now().0;
        for number in 0..rate * seconds {
            device.wait_until(Nanos(begin + number * SECOND / rate));
            run_alone(&mut device, read(3 * PAGES + number % PAGES));
        }
        device.wait_until(Nanos(begin + (seconds + 1) * SECOND));
        let counters = counters_of(&device);
        assert_eq!(counters.blocks_scrubbed, seconds * rate / LIMIT, "{ftl}");
    }
}

/// Uniform reads scrub each block once per `LIMIT` reads: PAGES/LIMIT pages are programmed per page
/// read. Each block's remainder is less than one more scrub.
#[test]
fn scrub_programs_match_read_rate() {
    for ftl in ["page_map", "block_map"] {
        let mut device = device(ftl, &format!(r#"{{"scrub_reads": {LIMIT}}}"#));
        let before = counters_of(&device);
        let (blocks, rounds) = (50, 100);
        for round in 0..rounds {
            for page in 0..blocks * PAGES {
                run_alone(&mut device, read(page));
            }
            device.wait_until(device.now() + Nanos((1 + round % 2) * blocks * MOVE));
        }
        let counters = counters_of(&device).since(&before);
        let reads = counters.pages_read - counters.pages_relocated;
        assert_eq!(reads, rounds * blocks * PAGES, "{ftl}");
        let (moved, upper) = (counters.blocks_scrubbed, reads / LIMIT);
        let lower = reads / LIMIT - (blocks + 2) - moved * PAGES / LIMIT;
        assert!((lower..=upper).contains(&moved), "{ftl}: {moved} of {lower} to {upper}");
        assert_eq!(counters.pages_programmed, PAGES * moved, "{ftl}");
        let amplification = counters.pages_programmed as f64 / reads as f64;
        let expected = PAGES as f64 / LIMIT as f64;
        assert!((amplification / expected - 1.0).abs() < 0.2, "{ftl}: {amplification}, {expected}");
    }
}

#[test]
fn age_limit_scrubs_all_data_once_per_age() {
    for (ftl, blocks) in [("page_map", 51), ("block_map", 52)] {
        let mut device = device(ftl, r#"{"scrub_age_s": 100.0}"#);
        let begin = device.now().0;
        // A block is found old up to a second late, and moving all of them makes it younger.
        for second in 1..=1000 {
            device.wait_until(Nanos(begin + second * SECOND));
            run_alone(&mut device, read(7));
            let moved = counters_of(&device).blocks_scrubbed;
            assert!(moved <= blocks * (second / 100), "{ftl}: {moved} after {second} s");
            assert!(
                second < 103 || moved >= blocks * ((second - 2) / 101),
                "{ftl}: {moved}, {second} s"
            );
        }
        assert_eq!(
            counters_of(&device).blocks_scrubbed % blocks,
            0,
            "{ftl}: all blocks equally often"
        );
    }
}

/// With a slow link the end of a read is known early: an I/O that comes meanwhile is served before
/// the block is moved, whose metadata page is read first.
#[test]
fn scrub_does_not_delay_earlier_commands() {
    let slow = 4_096_000;
    let changes =
        format!(r#"{{"scrub_reads": {LIMIT}, "metadata_pages": 1, "link_bytes_per_s": 1000000}}"#);
    let mut device = device("page_map", &changes);
    for number in 1..LIMIT {
        assert_eq!(run_alone(&mut device, read(number % 2)).0, COMMAND + READ + TRANSFER + slow);
    }
    let begin = device.now();
    for page in [0, 40, 80] {
        device.submit(&read(page)).unwrap();
    }
    // The link sends one after the other; the flash is done with all of them before the first has
    // been sent.
    for number in 1..=3 {
        let done = device.complete().unwrap();
        assert_eq!((done.completed - begin).0, COMMAND + READ + TRANSFER + number * slow);
        assert_eq!(part(done.breakdown.parts(), "scrub_ns"), 0);
    }
    assert_eq!(counters_of(&device).blocks_scrubbed, 1);
}

#[test]
fn erased_block_is_not_scrubbed() {
    let mut device = device("page_map", &format!(r#"{{"scrub_reads": {LIMIT}}}"#));
    let before = counters_of(&device);
    // Each block is read less often than the limit, and rewritten.
    for _ in 0..3 {
        for block in 0..51 {
            for number in 0..LIMIT - 2 * PAGES {
                run_alone(&mut device, read(block * PAGES + number % PAGES));
            }
        }
        for number in 0..2 * 51 {
            run_alone(&mut device, io(Mode::Write, number % 51 * PAGES, PAGES));
        }
    }
    let counters = counters_of(&device).since(&before);
    assert!(counters.blocks_erased > 100);
    assert_eq!(counters.blocks_scrubbed, 0);
}

#[test]
fn scrub_without_limit_is_refused() {
    for (ftl, changes, key) in [
        ("page_map", r#"{"scrub_reads": 0}"#, "scrub_reads"),
        ("page_map", r#"{"scrub_age_s": 0.0}"#, "scrub_age_s"),
        ("page_map", r#"{"scrub_age_s": 10.0, "retention_by_block": false}"#, "retention_by_block"),
        ("block_map", r#"{"scrub_reads": 9, "replacement_blocks": 0}"#, "replacement_blocks"),
    ] {
        let text = parse_profile(ftl, changes).unwrap_err().to_string();
        assert!(text.contains(key), "{changes}: {text}");
    }
}
