//! Tests of a simulated device through its public interface: times compared with sums computed by
//! hand from the profile, and determinism.
//!
//! Files: merges and concurrent I/Os (`concurrent_merges.rs`), page types (`page_types.rs`), program order
//! (`page_order.rs`), pipelined controller and rings (`controller.rs`), worn flash under merging
//! FTLs (`worn.rs`), wear levelling below them (`levelled.rs`), scrubbing (`scrub.rs`), SLC cache
//! (`slc.rs`), map on flash (`map_on_flash.rs`) or in host memory (`host_memory.rs`), zones
//! (`zones.rs`), suspension (`suspend.rs`), host queues and interrupts (`host_queues.rs`), a
//! saturating host (`saturated.rs`), multi-plane operations (`planes.rs`), partial transfers
//! (`parts.rs`), energy (`energy.rs`), and errors of bad profiles (`refused.rs`).

mod concurrent_merges;
mod controller;
mod energy;
mod host_memory;
mod host_queues;
mod idle;
mod levelled;
mod map_on_flash;
mod page_order;
mod page_types;
mod parts;
mod planes;
mod recorded;
mod refused;
mod saturated;
mod scrub;
mod slc;
mod suspend;
mod units;
mod worn;
mod zones;
mod zones_worn;

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown, Bytes, Device, Io, Mode, Nanos};
use uflip_sim::{Profile, SimBreakdown, SimDevice};

const READ: u64 = 50_000;
const PROGRAM: u64 = 300_000;
const ERASE: u64 = 2_000_000;
/// 4096 bytes at 100 MB/s.
const TRANSFER: u64 = 40_960;
/// 4096 bytes at 1 GB/s.
const LINK: u64 = 4_096;
const COMMAND: u64 = 10_000;

fn profile(channels: u32, dies_per_channel: u32, state: &str) -> String {
    format!(
        r#"
        description = "for tests"
        geometry = {{ channels = {channels}, dies_per_channel = {dies_per_channel}, blocks_per_die = 64, pages_per_block = 16, metadata_pages = 0, page_bytes = 4096, spare_bytes = 0, sector_bytes = 512 }}
        timing = {{ read_ns = {READ}, program_ns = {PROGRAM}, program_high_ns = {PROGRAM}, erase_ns = {ERASE}, channel_bytes_per_s = 100_000_000, buses = 0, bus_bytes_per_s = 1, link_bytes_per_s = 1_000_000_000, command_read_ns = {COMMAND}, command_write_ns = {COMMAND}, relocate_ns = 0, collect_ns = 0 }}
        ftl = {{ ftl = "page_map", spare_factor = 0.2, allocator = "round_robin" }}
        gc = {{ gc = "cyclic", reserved_blocks = 1, idle_free_blocks = 3, relocation = "allocator", copy_back = false, separate_streams = false, relocate_at_least = 0 }}
        wear = {{ dynamic_wear_levelling = false, static_wear_threshold = 0 }}
        cache = {{ write_cache_bytes = 0, flush = "when_needed" }}
        state = {{ state = "{state}", random_overwrites = 2.0, seed = 5 }}
        sources = {{ default = {{ kind = "guess" }} }}
        "#
    )
}

/// Return the profile with an FTL that has no allocator and its own garbage collection.
fn with_ftl(ftl: &str, profile: &str) -> String {
    let text = profile.replace(", allocator = \"round_robin\"", "");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("gc = {"));
    lines.collect::<Vec<_>>().join("\n").replace("\"page_map\"", &format!("\"{ftl}\""))
}

fn device(channels: u32, dies_per_channel: u32, state: &str) -> SimDevice {
    let text = profile(channels, dies_per_channel, state);
    SimDevice::new("test", Profile::parse(&text, "test", "{}").unwrap()).unwrap()
}

fn io(mode: Mode, page: u64, pages: u64) -> Io {
    Io { offset: Bytes(page * 4096), size: Bytes(pages * 4096), mode, stream: 0 }
}

/// Return response time and parts of one I/O on an otherwise idle device.
fn run_alone(device: &mut SimDevice, io: Io) -> (u64, Vec<u64>) {
    device.submit(&io).unwrap();
    let done = device.complete().unwrap();
    let parts = done.breakdown.parts().to_vec();
    let response = (done.completed - done.submitted).0;
    assert_eq!(parts.iter().sum::<u64>(), response, "the parts sum to the response time");
    (response, parts)
}

fn part(parts: &[u64], name: &str) -> u64 {
    parts[SimBreakdown::CAUSES.iter().position(|cause| *cause == name).unwrap()]
}

#[test]
fn page_time_is_sum_of_steps() {
    let mut device = device(1, 1, "empty");
    let (write, _) = run_alone(&mut device, io(Mode::Write, 0, 1));
    assert_eq!(write, COMMAND + LINK + TRANSFER + PROGRAM);
    let (read, _) = run_alone(&mut device, io(Mode::Read, 0, 1));
    assert_eq!(read, COMMAND + READ + TRANSFER + LINK);
    let (unwritten, _) = run_alone(&mut device, io(Mode::Read, 5, 1));
    assert_eq!(unwritten, COMMAND + LINK, "an unwritten page needs no flash read");
}

#[test]
fn pages_on_one_die_are_serialised() {
    let mut device = device(1, 1, "empty");
    let (write, parts) = run_alone(&mut device, io(Mode::Write, 0, 3));
    assert_eq!(write, COMMAND + LINK + 3 * (TRANSFER + PROGRAM));
    assert_eq!(part(&parts, "die_wait_ns"), 2 * (TRANSFER + PROGRAM) - 2 * LINK);
}

#[test]
fn dies_share_channel_and_program_in_parallel() {
    let mut device = device(1, 4, "empty");
    let (write, parts) = run_alone(&mut device, io(Mode::Write, 0, 4));
    assert_eq!(write, COMMAND + LINK + 4 * TRANSFER + PROGRAM);
    assert_eq!(part(&parts, "channel_wait_ns"), 3 * TRANSFER - 3 * LINK);
}

/// Read pages in the two planes of one die.
fn reads_of_two_planes(independent: bool) -> u64 {
    let overrides = format!(r#"{{"planes_per_die": 2, "independent_planes": {independent}}}"#);
    let profile = Profile::parse(&profile(1, 1, "sequential"), "test", &overrides).unwrap();
    let mut device = SimDevice::new("test", profile).unwrap();
    run_alone(&mut device, io(Mode::Read, 0, 2)).0
}

#[test]
fn independent_planes_read_in_parallel() {
    assert_eq!(reads_of_two_planes(true), COMMAND + READ + 2 * TRANSFER + LINK);
    assert_eq!(reads_of_two_planes(false), COMMAND + 2 * (READ + TRANSFER) + LINK);
}

#[test]
fn reads_first_overtakes_waiting_programs() {
    let response = |queue: &str| {
        let overrides = format!(r#"{{"die_queue": "{queue}"}}"#);
        let profile = Profile::parse(&profile(1, 1, "sequential"), "test", &overrides).unwrap();
        let mut device = SimDevice::new("test", profile).unwrap();
        for page in 0..3 {
            device.submit(&io(Mode::Write, page, 1)).unwrap();
        }
        device.submit(&io(Mode::Read, 50, 1)).unwrap();
        let ends = (0..4).map(|_| device.complete().unwrap());
        ends.map(|done| (done.ticket.0, done.completed.0))
            .find(|(ticket, _)| *ticket == 3)
            .unwrap()
            .1
    };
    let first_write = COMMAND + LINK + TRANSFER + PROGRAM;
    let read = READ + TRANSFER + LINK;
    assert_eq!(response("reads_first"), first_write + read);
    assert_eq!(response("fifo"), first_write + 2 * (TRANSFER + PROGRAM) + read);
}

#[test]
fn single_command_interface_serialises_ios() {
    for (at_once, commands) in [(1, 8), (2, 8), (3, 7)] {
        let overrides = format!(r#"{{"commands_at_once": {at_once}}}"#);
        let profile = Profile::parse(&profile(4, 2, "sequential"), "test", &overrides).unwrap();
        let mut device = SimDevice::new("test", profile).unwrap();
        let (alone_ns, _) = run_alone(&mut device, io(Mode::Read, 0, 1));
        assert_eq!(alone_ns, COMMAND + READ + TRANSFER + LINK);
        let begin = device.now();
        for page in 1..=commands {
            device.submit(&io(Mode::Read, page, 1)).unwrap();
        }
        let mut intervals = Vec::new();
        let mut ends = Vec::new();
        for _ in 0..commands {
            let done = device.complete().unwrap();
            let waited = part(done.breakdown.parts(), "controller_ns") - COMMAND;
            intervals.push((done.submitted.0 + waited, done.completed.0));
            ends.push((done.completed - begin).0);
        }
        if at_once == 1 {
            let one_by_one: Vec<u64> = (1..=commands).map(|n| n * alone_ns).collect();
            assert_eq!(ends, one_by_one);
        }
        for (start, _) in &intervals {
            let running = intervals.iter().filter(|(from, to)| from <= start && start < to);
            assert!(running.count() <= at_once);
        }
    }
}

/// Two pages are on two channels, and the next two on the other die of each.
#[test]
fn pages_are_striped_channel_first() {
    for (pages, transfers) in [(2, 1), (4, 2)] {
        let mut device = device(2, 2, "empty");
        let (write, _) = run_alone(&mut device, io(Mode::Write, 0, pages));
        assert_eq!(write, COMMAND + 2 * LINK + transfers * TRANSFER + PROGRAM, "{pages} pages");
    }
}

#[test]
fn channels_run_in_parallel() {
    let mut device = device(4, 1, "empty");
    let (write, _) = run_alone(&mut device, io(Mode::Write, 0, 4));
    assert_eq!(write, COMMAND + 4 * LINK + TRANSFER + PROGRAM, "only the link is shared");
    let (read, _) = run_alone(&mut device, io(Mode::Read, 0, 4));
    assert_eq!(read, COMMAND + READ + TRANSFER + 4 * LINK);
}

#[test]
fn partial_write_reads_page_first() {
    let mut device = device(2, 1, "empty");
    let half = Io { offset: Bytes(512), size: Bytes(1024), mode: Mode::Write, stream: 0 };
    let (first, _) = run_alone(&mut device, half);
    assert_eq!(first, COMMAND + LINK / 4 + TRANSFER + PROGRAM, "no old data has to be read");
    let (second, parts) = run_alone(&mut device, half);
    assert_eq!(second, first + READ + TRANSFER);
    assert_eq!(part(&parts, "read_to_modify_ns"), READ + TRANSFER);
    assert_eq!(device.counters().unwrap().pages_read_to_modify, 1);
}

#[test]
fn sequential_reads_are_channel_bound() {
    // One channel, enough dies to hide every cell read: a page leaves every TRANSFER.
    let mut device = device(1, 8, "sequential");
    let pages = 256;
    let (response, _) = run_alone(&mut device, io(Mode::Read, 0, pages));
    let per_page = response as f64 / pages as f64;
    assert!((per_page / TRANSFER as f64 - 1.0).abs() < 0.01, "{per_page} ns a page");
}

/// Do random writes in a closed loop; return all response times.
fn random_writes(device: &mut SimDevice, count: u64, seed: u64) -> Vec<u64> {
    let pages = device.info().capacity_bytes.0 / 4096;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..count).map(|_| run_alone(device, io(Mode::Write, uniform(&mut rng, pages), 1)).0).collect()
}

#[test]
fn full_device_charges_gc_wait() {
    let mut device = device(2, 2, "random");
    assert_eq!(device.counters().unwrap().blocks_erased, 0, "preconditioning is not counted");
    let responses = random_writes(&mut device, 2_000, 1);
    let counters = device.counters().unwrap();
    assert!(counters.blocks_erased > 0 && counters.pages_relocated > 0);
    let cheap = COMMAND + LINK + TRANSFER + PROGRAM;
    assert_eq!(
        *responses.iter().min().unwrap(),
        cheap,
        "some writes do not wait for garbage collection"
    );
    assert!(*responses.iter().max().unwrap() > cheap + ERASE, "some writes wait for an erase");
}

#[test]
fn times_are_deterministic_by_seed() {
    let run = || random_writes(&mut device(2, 2, "random"), 3_000, 9);
    assert_eq!(run(), run());
}

#[test]
fn devices_are_independent() {
    let mut one = device(2, 2, "random");
    let mut copy = one.clone();
    let mut other = device(1, 2, "empty");
    let expected = random_writes(&mut one, 500, 3);
    random_writes(&mut other, 500, 4);
    assert_eq!(random_writes(&mut copy, 500, 3), expected, "a copy is independent");
}

#[test]
fn device_name_overrides_key() {
    let overrides = r#"{"spare_factor": "0.4", "gc": "cyclic", "idle_free_blocks": "0"}"#;
    let profile = Profile::parse(&profile(2, 2, "empty"), "test", overrides).unwrap();
    assert_eq!((profile.ftl.spare_factor, profile.gc.unwrap().idle_free_blocks), (0.4, 0));
}

#[test]
fn write_cache_acknowledges_early_and_merges_small_writes() {
    let overrides = r#"{"write_cache_bytes": "16384"}"#;
    let profile = Profile::parse(&profile(1, 1, "empty"), "test", overrides).unwrap();
    let mut device = SimDevice::new("test", profile).unwrap();
    let sector =
        |at: u64| Io { offset: Bytes(at * 512), size: Bytes(512), mode: Mode::Write, stream: 0 };
    for at in 0..8 {
        assert_eq!(
            run_alone(&mut device, sector(at)).0,
            COMMAND + LINK / 8,
            "no flash operation is needed"
        );
    }
    let counters = device.counters().unwrap();
    assert_eq!((counters.pages_absorbed, counters.pages_programmed), (7, 0));
    let (read, _) = run_alone(&mut device, io(Mode::Read, 0, 1));
    assert_eq!(read, COMMAND + LINK, "the cache holds the whole page");
    // Idle time empties it: one whole page, so no rest is read.
    let until = device.now() + Nanos(1_000_000_000);
    device.wait_until(until);
    let counters = device.counters().unwrap();
    assert_eq!((counters.pages_programmed, counters.pages_read_to_modify), (1, 0));
    let (read, _) = run_alone(&mut device, io(Mode::Read, 0, 1));
    assert_eq!(read, COMMAND + READ + TRANSFER + LINK);
}

#[test]
fn empty_trim_changes_nothing() {
    let mut device = device(1, 1, "sequential");
    let (before, _) = run_alone(&mut device, io(Mode::Read, 0, 1));
    device.trim(Bytes(0), Bytes(0));
    assert_eq!(run_alone(&mut device, io(Mode::Read, 0, 1)).0, before);
}

/// Announcements change nothing observable, whether the announced I/O follows or not.
#[test]
fn prefetch_changes_no_times() {
    let run = |announced: bool| {
        let mut device = device(2, 2, "random");
        let pages = device.info().capacity_bytes.0 / 4096;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut completions = Vec::new();
        for _ in 0..2_000 {
            let mode = if uniform(&mut rng, 4) == 0 { Mode::Read } else { Mode::Write };
            let request = io(mode, uniform(&mut rng, pages - 4), 1 + uniform(&mut rng, 4));
            let other = io(mode, uniform(&mut rng, 2 * pages), 1 + uniform(&mut rng, 4));
            if announced {
                device.prefetch(&other);
                device.prefetch(&io(mode, u64::MAX / 8192, 1));
                device.prefetch(&request);
            }
            device.submit(&request).unwrap();
            let done = device.complete().unwrap();
            completions.push((done.completed, done.breakdown));
        }
        (completions, device.counters())
    };
    assert_eq!(run(true), run(false));
}
