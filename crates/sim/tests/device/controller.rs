//! A pipelined processor, descriptor rings, and concurrent collections and moves. Times are
//! computed by hand.

use uflip_core::{Device, Io, Mode, Nanos};
use uflip_sim::{Profile, SimDevice};

use super::{COMMAND, ERASE, LINK, PROGRAM, READ, TRANSFER, io, part, profile, run_alone};

/// 4096 bytes at 100 MB/s, as on a channel.
const BUS: u64 = TRANSFER;
const BUSES: &str = r#""buses": 1, "bus_bytes_per_s": 100000000"#;

fn device(channels: u32, dies: u32, state: &str, overrides: &str) -> SimDevice {
    let text = profile(channels, dies, state);
    SimDevice::new("test", Profile::parse(&text, "test", overrides).unwrap()).unwrap()
}

fn rings(tx: u32, rx: u32, completion: &str, ns: u64) -> String {
    format!(
        r#""tx_entries": {tx}, "rx_entries": {rx}, "completion": "{completion}", "completion_ns": {ns}"#
    )
}

/// Submit `ios` at once, in that order; return the end of each.
fn run_concurrently(device: &mut SimDevice, ios: &[Io]) -> Vec<u64> {
    let tickets: Vec<_> = ios.iter().map(|io| device.submit(io).unwrap()).collect();
    let mut ends = vec![0; ios.len()];
    for _ in ios {
        let done = device.complete().unwrap();
        let index = tickets.iter().position(|ticket| *ticket == done.ticket).unwrap();
        ends[index] = (done.completed - done.submitted).0;
    }
    ends
}

#[test]
fn pipelined_processor_overlaps_commands() {
    const LATENCY: u64 = 100_000;
    let latency = format!(r#"{{"command_read_latency_ns": {LATENCY}}}"#);
    let mut device = device(8, 1, "sequential", &latency);
    let reads: Vec<Io> = (0..8).map(|page| io(Mode::Read, page, 1)).collect();
    let (first, parts) = run_alone(&mut device, reads[0]);
    assert_eq!(first, COMMAND + LATENCY + READ + TRANSFER + LINK);
    assert_eq!(part(&parts, "controller_ns"), COMMAND + LATENCY);
    let expected: Vec<u64> = (0..8).map(|before| first + before * COMMAND).collect();
    assert_eq!(run_concurrently(&mut device, &reads), expected);
}

#[test]
fn bus_setup_and_memory_add_to_transfers() {
    const MEMORY: u64 = 8_192; // 4096 bytes at 500 MB/s
    let overrides = format!(
        r#"{{{BUSES}, "bus_read_setup_ns": 700, "bus_write_setup_ns": 900,
            "memory_bytes_per_s": 500000000}}"#
    );
    let mut device = device(1, 1, "empty", &overrides);
    let (write, parts) = run_alone(&mut device, io(Mode::Write, 0, 1));
    assert_eq!(write, COMMAND + LINK + MEMORY + 900 + BUS + TRANSFER + PROGRAM);
    assert_eq!(part(&parts, "bus_ns"), MEMORY + 900 + BUS);
    let (read, _) = run_alone(&mut device, io(Mode::Read, 0, 1));
    assert_eq!(read, COMMAND + READ + TRANSFER + 700 + BUS + MEMORY + LINK);
}

#[test]
fn rx_ring_of_one_entry_serialises_die() {
    const NOTICED: u64 = 5_000;
    let ends = |rx| {
        let overrides = format!("{{{BUSES}, {}}}", rings(8, rx, "interrupt", NOTICED));
        let mut device = device(1, 1, "empty", &overrides);
        run_concurrently(&mut device, &[0, 1, 2].map(|page| io(Mode::Write, page, 1)))
    };
    let one = BUS + TRANSFER + PROGRAM + NOTICED;
    assert_eq!(ends(1), [1, 2, 3].map(|writes| COMMAND + LINK + writes * one));
    // With two, the data of the next page crosses the bus while the die programs.
    let once = COMMAND + LINK + BUS + NOTICED;
    assert_eq!(ends(2), [1, 2, 3].map(|writes| once + writes * (TRANSFER + PROGRAM)));
}

#[test]
fn full_tx_ring_delays_idle_dies() {
    const PAGE: u64 = READ + TRANSFER;
    // Pages 0, 2 and 4 are on one die, page 1 is on the other.
    let reads = [0, 2, 4, 1].map(|page| io(Mode::Read, page, 1));
    let last = |tx| {
        let overrides = format!("{{{}}}", rings(tx, 1, "interrupt", 0));
        run_concurrently(&mut device(2, 1, "sequential", &overrides), &reads)[3]
    };
    assert_eq!(last(2), 4 * COMMAND + PAGE + LINK);
    // It starts when the first has ended, and reaches the link with the second, whose die comes
    // first.
    assert_eq!(last(1), COMMAND + 2 * PAGE + 2 * LINK);
}

#[test]
fn poll_notices_earlier_completions() {
    const PERIOD: u64 = 90_000;
    let overrides = format!("{{{}}}", rings(8, 8, "polling", PERIOD));
    let mut polled = device(1, 1, "empty", &overrides);
    let write = COMMAND + LINK + TRANSFER + PROGRAM;
    for _ in 0..10 {
        let begin = polled.now().0;
        let (response, parts) = run_alone(&mut polled, io(Mode::Write, 0, 1));
        let end = (begin + write).next_multiple_of(PERIOD);
        assert_eq!(response, end - begin);
        assert_eq!(part(&parts, "controller_ns"), COMMAND + end - begin - write);
        polled.wait_until(Nanos(end + 1_234));
    }
    // The completion of a read is noticed before its data goes to the host.
    let begin = polled.now().0;
    let noticed = (begin + COMMAND + READ + TRANSFER).next_multiple_of(PERIOD);
    assert_eq!(run_alone(&mut polled, io(Mode::Read, 0, 1)).0, noticed + LINK - begin);
}

#[test]
fn polling_adds_half_a_period_on_average() {
    const PERIOD: u64 = 1_000;
    let overrides = format!("{{{}}}", rings(8, 8, "polling", PERIOD));
    let mut polled = device(1, 1, "sequential", &overrides);
    let read = COMMAND + READ + TRANSFER + LINK;
    // One read at each nanosecond of the period: 0 + 1 + ... + 999 in all.
    let mut added = 0;
    for phase in 0..PERIOD {
        let begin = polled.now().0.next_multiple_of(PERIOD) + phase;
        polled.wait_until(Nanos(begin));
        added += run_alone(&mut polled, io(Mode::Read, 3, 1)).0 - read;
    }
    assert_eq!(added, PERIOD * (PERIOD - 1) / 2);
}

/// Return the number of blocks erased after an idle time. Each of the four dies has a block without
/// valid pages and needs one more free block.
fn erased_after(limit: Option<u32>, ns: u64) -> u64 {
    let limit =
        limit.map_or(String::new(), |most| format!(r#", "collections_per_channel": {most}"#));
    let mut device = device(1, 4, "sequential", &format!(r#"{{"idle_free_blocks": 12{limit}}}"#));
    for page in 0..64 {
        run_alone(&mut device, io(Mode::Write, page, 1));
    }
    let before = device.counters().unwrap().blocks_erased;
    let now = device.now().0;
    device.wait_until(Nanos(now + ns));
    device.counters().unwrap().blocks_erased - before
}

#[test]
fn concurrent_block_collections_take_time_of_one() {
    for (limit, at_once) in [(None, 4), (Some(4), 4), (Some(9), 4), (Some(2), 2), (Some(1), 1)] {
        for rounds in 1..=4 / at_once {
            assert_eq!(erased_after(limit, rounds * ERASE - 1), (rounds - 1) * at_once);
            assert_eq!(erased_after(limit, rounds * ERASE), rounds * at_once);
        }
        assert_eq!(erased_after(limit, 10 * ERASE), 4, "each die collects one block");
    }
}

#[test]
fn concurrent_relocations_share_processor_latency() {
    const LATENCY: u64 = 1_000_000;
    const PAGE: u64 = READ + TRANSFER;
    let moved_after = |at_once: u32, ns: u64| {
        let overrides = format!(
            r#"{{"idle_free_blocks": 13, "relocate_latency_ns": {LATENCY}, "relocations_at_once": {at_once}}}"#
        );
        let mut device = device(1, 1, "sequential", &overrides);
        // The first block has an invalid page.
        run_alone(&mut device, io(Mode::Write, 0, 1));
        let now = device.now().0;
        device.wait_until(Nanos(now + ns));
        device.counters().unwrap().pages_relocated
    };
    for (at_once, pages) in [(1, 1), (2, 2), (4, 4)] {
        assert_eq!(moved_after(at_once, LATENCY + PAGE - 1), 0);
        assert_eq!(moved_after(at_once, LATENCY + PAGE), 1);
        assert_eq!(moved_after(at_once, LATENCY + 4 * PAGE), pages, "{at_once} at once");
    }
    // The next is planned when the first has its new place.
    assert_eq!(moved_after(1, 2 * (LATENCY + PAGE)), 2);
    assert_eq!(moved_after(4, 2 * (LATENCY + PAGE) - 1), 4);
}

#[test]
fn invalid_controller_is_refused() {
    let refused = |overrides: &str| {
        let text = profile(1, 1, "empty");
        Profile::parse(&text, "test", overrides).unwrap_err().to_string()
    };
    for (overrides, words) in [
        (format!("{{{}}}", rings(0, 1, "interrupt", 0)), "tx_entries"),
        (format!("{{{}}}", rings(1, 0, "interrupt", 0)), "rx_entries"),
        (format!("{{{}}}", rings(1, 1, "polling", 0)), "completion_ns"),
        (format!("{{{}}}", rings(1, 1, "prayer", 0)), "polling"),
        (r#"{"tx_entries": 1}"#.into(), "every key of a table"),
        (r#"{"bus_read_setup_ns": 1}"#.into(), "buses = 0"),
        (r#"{"memory_bytes_per_s": 1}"#.into(), "buses = 0"),
        (format!(r#"{{{BUSES}, "memory_bytes_per_s": 0}}"#), "1 or more"),
        (r#"{"collections_per_channel": 0}"#.into(), "1 or more"),
        (r#"{"relocations_at_once": 0}"#.into(), "1 or more"),
        (r#"{"relocations_at_once": 2, "mapping_unit_bytes": 2048}"#.into(), "read together"),
    ] {
        let text = refused(&overrides);
        assert!(text.contains(words), "{overrides}: {text}");
    }
}
