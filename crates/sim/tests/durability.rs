//! Times of durable writes on a simulated device with a volatile cache, compared with hand-computed
//! sums.

use uflip_core::{Breakdown, Bytes, Device, Io, Mode};
use uflip_sim::{Profile, SimBreakdown, SimDevice};

pub const PROGRAM: u64 = 300_000;
/// 4096 bytes at 100 MB/s.
pub const TRANSFER: u64 = 40_960;
/// 4096 bytes at 1 GB/s.
pub const LINK: u64 = 4_096;
pub const COMMAND: u64 = 10_000;
/// Time of a write that the cache accepts.
pub const ACCEPT: u64 = COMMAND + LINK;
/// Time of a page program including its transfer.
pub const PAGE_PROGRAM: u64 = TRANSFER + PROGRAM;

/// Create the demo device with round times: one command at a time, garbage collection only when
/// needed.
fn device(dies: u32, cache_pages: u64) -> SimDevice {
    with(dies, cache_pages, "")
}

/// The same with `more` keys.
pub fn with(dies: u32, cache_pages: u64, more: &str) -> SimDevice {
    let overrides = format!(
        r#"{{"channels": 1, "dies_per_channel": {dies}, "planes_per_die": 1, "blocks_per_die": 64,
        "pages_per_block": 16, "metadata_pages": 0, "page_bytes": 4096, "spare_bytes": 0, "spare_factor": 0.3,
        "program_ns": {PROGRAM}, "program_high_ns": {PROGRAM}, "channel_bytes_per_s": 100000000,
        "buses": 0, "link_bytes_per_s": 1000000000, "command_write_ns": {COMMAND},
        "command_read_ns": {COMMAND}, "idle_free_blocks": 0, "state": "empty",
        "write_cache_bytes": {}, "flush": "when_needed"{more}}}"#,
        cache_pages * 4096
    );
    let demo = include_str!("../../../python/uflip/profiles/demo.toml");
    SimDevice::new("test", Profile::parse(demo, "demo.toml", &overrides).unwrap()).unwrap()
}

pub fn write(page: u64, bytes: u64) -> Io {
    Io { offset: Bytes(page * 4096), size: Bytes(bytes), mode: Mode::Write, stream: 0 }
}

/// Return the response times of writes to separate pages, one after the other.
fn times(device: &mut SimDevice, durability: &str, writes: u64) -> Vec<u64> {
    device.set_durability(durability.parse().unwrap());
    (0..writes).map(|page| run_alone(device, write(page, 4096)).0).collect()
}

fn run_alone(device: &mut SimDevice, io: Io) -> (u64, u64) {
    device.submit(&io).unwrap();
    let done = device.complete().unwrap();
    let parts = done.breakdown.parts();
    let response = (done.completed - done.submitted).0;
    assert_eq!(parts.iter().sum::<u64>(), response, "the parts sum to the response time");
    let causes = ["controller_ns", "link_ns"];
    let waits = SimBreakdown::CAUSES.iter().zip(parts).filter(|(cause, _)| !causes.contains(cause));
    (response, waits.map(|(_, ns)| ns).sum())
}

#[test]
fn durable_write_waits_for_program() {
    assert_eq!(times(&mut device(1, 8), "cached", 3), [ACCEPT; 3]);
    assert_eq!(times(&mut device(1, 8), "fua", 3), [ACCEPT + PAGE_PROGRAM; 3]);
    assert_eq!(
        times(&mut device(1, 8), "fua", 3),
        times(&mut device(1, 0), "cached", 3),
        "equal to a device without a cache"
    );
}

#[test]
fn flush_every_nth_write_waits_for_n_programs() {
    for every in [1, 2, 5] {
        let times = times(&mut device(1, 8), &format!("flush:{every}"), 10);
        let expected: Vec<u64> = (1..=10)
            .map(|n| ACCEPT + if n % every == 0 { every * PAGE_PROGRAM } else { 0 })
            .collect();
        assert_eq!(times, expected);
    }
    // With four dies on one channel, transfers are serial and programs overlap.
    let responses = times(&mut device(4, 8), "flush:4", 4);
    assert_eq!(responses, [ACCEPT, ACCEPT, ACCEPT, ACCEPT + 4 * TRANSFER + PROGRAM]);
    // Without volatile data there is nothing to wait for.
    assert_eq!(times(&mut device(1, 0), "flush:2", 4), [ACCEPT + PAGE_PROGRAM; 4]);
}

#[test]
fn power_loss_protection_removes_flush_wait() {
    let capacitors = |protection: bool| {
        format!(r#", "power_loss_protection": {protection}, "spare_read_bytes": 16"#)
    };
    for durability in ["fua", "flush:1", "flush:2"] {
        let protected = times(&mut with(1, 8, &capacitors(true)), durability, 4);
        assert_eq!(protected, [ACCEPT; 4], "{durability}");
        let volatile = times(&mut with(1, 8, &capacitors(false)), durability, 4);
        assert!(volatile.iter().sum::<u64>() >= 4 * (ACCEPT + PAGE_PROGRAM), "{durability}");
    }
    let mut device = with(1, 8, &capacitors(true));
    assert_eq!(times(&mut device, "cached", 5), [ACCEPT; 5]);
    assert_eq!(flush(&mut device), 0, "protected data is durable in the cache");
}

#[test]
fn flush_wait_is_charged_to_its_cause() {
    let mut device = device(1, 8);
    device.set_durability("flush:2".parse().unwrap());
    assert_eq!(run_alone(&mut device, write(0, 4096)), (ACCEPT, 0));
    device.submit(&write(1, 4096)).unwrap();
    let done = device.complete().unwrap();
    assert_eq!((done.completed - done.submitted).0, ACCEPT + 2 * PAGE_PROGRAM);
    // It waits for the program of the page before, and for its own.
    let waits =
        [("die_wait_ns", PAGE_PROGRAM), ("transfer_ns", TRANSFER), ("cell_program_ns", PROGRAM)];
    for (cause, ns) in SimBreakdown::CAUSES.iter().zip(done.breakdown.parts()).skip(2) {
        let expected = waits.iter().find(|(name, _)| name == cause).map_or(0, |(_, ns)| *ns);
        assert_eq!(*ns, expected, "{cause}");
    }
}

#[test]
fn cache_absorbs_rewrites_until_flush() {
    let mut device = device(1, 8);
    device.set_durability("flush:4".parse().unwrap());
    let times: Vec<u64> = (0..8).map(|_| run_alone(&mut device, write(7, 4096)).0).collect();
    let four = [ACCEPT, ACCEPT, ACCEPT, ACCEPT + PAGE_PROGRAM];
    assert_eq!(times, [four, four].concat());
    let counters = device.counters().unwrap();
    assert_eq!((counters.pages_absorbed, counters.pages_programmed), (6, 2));
}

#[test]
fn durable_write_keeps_cached_sectors() {
    let mut device = device(1, 8);
    let half = COMMAND + LINK / 2;
    assert_eq!(run_alone(&mut device, write(0, 2048)).0, half);
    device.set_durability("fua".parse().unwrap());
    // The half page is programmed first; the write of the other half then reads it.
    let second = Io { offset: Bytes(2048), ..write(0, 2048) };
    let (response, _) = run_alone(&mut device, second);
    assert!(response > half + 2 * PROGRAM, "{response}: both halves were programmed");
    let counters = device.counters().unwrap();
    assert_eq!((counters.pages_programmed, counters.pages_read_to_modify), (2, 1));
}

fn flush(device: &mut SimDevice) -> u64 {
    device.submit_flush();
    let done = device.complete().unwrap();
    let parts: u64 = done.breakdown.parts().iter().sum();
    let response = (done.completed - done.submitted).0;
    assert_eq!(parts, response, "the parts sum to the response time");
    response
}

#[test]
fn flush_command_waits_for_cached_pages() {
    let mut device = device(1, 8);
    assert_eq!(flush(&mut device), 0, "the cache is empty");
    assert_eq!(times(&mut device, "cached", 5), [ACCEPT; 5]);
    assert_eq!(flush(&mut device), 5 * PAGE_PROGRAM);
    assert_eq!(flush(&mut device), 0, "everything is on flash");
    // A read may come before the end of a flush; the flush does not wait for later I/Os.
    times(&mut device, "cached", 2);
    let flush = device.submit_flush();
    let write = device.submit(&write(7, 4096)).unwrap();
    let first = device.complete().unwrap();
    assert_eq!((first.ticket, (first.completed - first.submitted).0), (write, ACCEPT));
    let second = device.complete().unwrap();
    assert_eq!((second.ticket, (second.completed - second.submitted).0), (flush, 2 * PAGE_PROGRAM));
}

#[test]
fn flush_command_is_serialised() {
    let demo = include_str!("../../../python/uflip/profiles/demo.toml");
    let overrides = r#"{"commands_at_once": 1, "command_write_ns": 10000, "state": "empty",
        "blocks_per_die": 64, "write_cache_bytes": 65536}"#;
    let profile = Profile::parse(demo, "demo.toml", overrides).unwrap();
    let mut device = SimDevice::new("test", profile).unwrap();
    device.submit(&write(0, 4096)).unwrap();
    device.submit_flush();
    let (write, flush) = (device.complete().unwrap(), device.complete().unwrap());
    assert!(
        flush.completed > write.completed,
        "the write waits, and the page is in the cache by then"
    );
    assert_eq!(device.counters().unwrap().pages_programmed, 1);
}

/// Single writes are durable, while other writes are in flight.
#[test]
fn durability_applies_to_single_write() {
    let rewritten = r#"{"rewrite_buffer": true, "spare_factor": 0.4}"#;
    let units = r#"{"write_cache_bytes": 0, "dies_per_channel": 1, "channels": 1}"#;
    let samsung = include_str!("../../../python/uflip/profiles/samsung.toml");
    let nvme = include_str!("../../../python/uflip/profiles/tlc-nvme.toml");
    let small = |profile: &str, overrides: &str| {
        let text = overrides.replacen('{', r#"{"blocks_per_die": 64, "state": "empty", "#, 1);
        SimDevice::new("test", Profile::parse(profile, "test", &text).unwrap()).unwrap()
    };
    let devices = [device(1, 8), small(samsung, rewritten), small(nvme, units)];
    for mut always in devices {
        let mut once = always.clone();
        always.set_durability("fua".parse().unwrap());
        for io in [write(0, 4096), write(0, 32768), write(0, 32768)] {
            let expected = run_alone(&mut always, io);
            once.set_durability("fua".parse().unwrap());
            once.submit(&io).unwrap();
            once.set_durability("cached".parse().unwrap());
            let done = once.complete().unwrap();
            assert_eq!((done.completed - done.submitted).0, expected.0, "{io:?}");
        }
        assert_eq!(once.counters(), always.counters());
    }
}
