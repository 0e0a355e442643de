//! A zoned device: command times computed by hand, and rates of concurrent zones.

use std::collections::BTreeMap;

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Io, Mode, Nanos, ZoneState};
use uflip_sim::{Profile, SimDevice};

use super::{
    COMMAND, ERASE, LINK, PROGRAM, READ, TRANSFER, io, part, profile, run_alone, with_ftl,
};

/// Pages of a block in the profile.
pub(super) const BLOCK: u64 = 16;

/// Create a device whose zones are on `dies_per_zone` dies, with address space for as many pages
/// again after each.
fn device(channels: u32, dies: u32, dies_per_zone: u32, keys: &str) -> SimDevice {
    let zone_bytes = 2 * u64::from(dies_per_zone) * BLOCK * 4096;
    let text = with_ftl("zoned", &profile(channels, dies, "empty"));
    let text = zoned(&text, zone_bytes, dies_per_zone);
    SimDevice::new("test", Profile::parse(&text, "test", keys).unwrap()).unwrap()
}

/// Return the profile with zones.
pub(super) fn zoned(text: &str, zone_bytes: u64, dies_per_zone: u32) -> String {
    let zones = format!(
        r#"zones = {{ zone_bytes = {zone_bytes}, dies_per_zone = {dies_per_zone}, zone_blocks_per_die = 1, zone_dies = "across_channels", stripe_pages = 1, max_open_zones = 0, max_active_zones = 0, finish_pads = true }}"#
    );
    text.replace("spare_factor = 0.2", "spare_factor = 0.0")
        .replace("sector_bytes = 512", "sector_bytes = 4096")
        .replace("random_overwrites = 2.0", "random_overwrites = 0.0")
        .replace("sources = {", &format!("{zones}\n        sources = {{"))
}

/// Return a command to a whole zone.
pub(super) fn zone(device: &SimDevice, mode: Mode, number: u64) -> Io {
    let size = device.zones().unwrap().unwrap().limits.zone_bytes;
    Io { offset: Bytes(number * size), size: Bytes(size), mode, stream: 0 }
}

pub(super) fn write(device: &SimDevice, number: u64, page: u64, pages: u64) -> Io {
    let size = device.zones().unwrap().unwrap().limits.zone_bytes;
    io(Mode::Write, number * size / 4096 + page, pages)
}

#[test]
fn zone_page_time_is_sum_of_steps() {
    let mut device = device(1, 1, 1, "{}");
    let (response, parts) = run_alone(&mut device, io(Mode::Write, 0, 1));
    assert_eq!(response, COMMAND + LINK + TRANSFER + PROGRAM);
    assert_eq!(part(&parts, "cell_program_ns"), PROGRAM);
    assert_eq!(run_alone(&mut device, io(Mode::Read, 0, 1)).0, COMMAND + READ + TRANSFER + LINK);
    let unwritten = [1, BLOCK, 2 * BLOCK];
    for page in unwritten {
        assert_eq!(
            run_alone(&mut device, io(Mode::Read, page, 1)).0,
            COMMAND + LINK,
            "page {page}"
        );
    }
    let append = Io { mode: Mode::Append, ..io(Mode::Write, 0, 1) };
    assert_eq!(run_alone(&mut device, append).0, COMMAND + LINK + TRANSFER + PROGRAM);
    assert_eq!(device.zones().unwrap().unwrap().zones[0].write_pointer_bytes, Bytes(2 * 4096));
}

/// Return the I/Os per second of zones that are each written sequentially.
fn rate(device: &mut SimDevice, zones: &[u64]) -> f64 {
    let mut next: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let submit = |device: &mut SimDevice, zone: u64, page: u64| {
        let request = write(device, zone, page, 1);
        device.submit(&request).unwrap().0
    };
    for zone in zones {
        let ticket = submit(device, *zone, 0);
        next.insert(ticket, (*zone, 1));
    }
    // The first round fills the pipeline; in the last nothing is submitted.
    let mut ends = Vec::new();
    while !next.is_empty() {
        let done = device.complete().unwrap();
        ends.push(done.completed.0);
        let (zone, page) = next.remove(&done.ticket.0).unwrap();
        if page < BLOCK {
            next.insert(submit(device, zone, page), (zone, page + 1));
        }
    }
    let (first, last) = (zones.len() * 2, ends.len() - zones.len());
    (last - first) as f64 * 1e9 / (ends[last - 1] - ends[first - 1]) as f64
}

#[test]
fn zones_on_separate_dies_scale_to_channel_rate() {
    const PAGE_WRITE: u64 = COMMAND + LINK + TRANSFER + PROGRAM;
    for zones in [1, 2, 4, 8, 16] {
        let mut device = device(1, 16, 1, "{}");
        let measured = rate(&mut device, &(0..zones).collect::<Vec<_>>());
        let expected = (zones as f64 / PAGE_WRITE as f64).min(1.0 / TRANSFER as f64) * 1e9;
        assert!(
            (measured / expected - 1.0).abs() < 1e-9,
            "{zones} zones: {measured} for {expected}"
        );
    }
    // The seventeenth zone is on the die of the first.
    let mut device = device(1, 16, 1, "{}");
    let two = rate(&mut device, &[0, 16]);
    let expected = 1e9 / (TRANSFER + PROGRAM) as f64;
    assert!(
        (two / expected - 1.0).abs() < 1e-9,
        "{two} for {expected}: one die executes one operation at a time"
    );
}

#[test]
fn zone_reset_erases_written_blocks_in_parallel() {
    let mut device = device(2, 2, 4, "{}");
    let reset = zone(&device, Mode::Reset, 0);
    assert_eq!(run_alone(&mut device, reset).0, COMMAND, "an empty zone needs no erase");
    for (pages, erases) in [(1, 1), (3, 3), (4, 4), (4 * BLOCK, 4)] {
        run_alone(&mut device, io(Mode::Write, 0, pages));
        let before = device.counters().unwrap();
        let (response, parts) = run_alone(&mut device, reset);
        assert_eq!(response, COMMAND + ERASE, "{pages} pages");
        assert_eq!(part(&parts, "erase_ns"), ERASE);
        assert_eq!(device.counters().unwrap().since(&before).blocks_erased, erases);
    }
    let first = device.zones().unwrap().unwrap().zones[0];
    assert_eq!((first.state, first.resets), (ZoneState::Empty, Some(4)));
    assert_eq!(device.erases().iter().max(), Some(&4), "a zone keeps its blocks");
}

#[test]
fn zone_finish_pads_only_when_configured() {
    let mut padded = device(1, 1, 1, "{}");
    run_alone(&mut padded, io(Mode::Write, 0, 10));
    let finish = zone(&padded, Mode::Finish, 0);
    let left = BLOCK - 10;
    assert_eq!(run_alone(&mut padded, finish).0, COMMAND + left * (TRANSFER + PROGRAM));
    assert_eq!(padded.counters().unwrap().pages_padded, left);
    assert_eq!(run_alone(&mut padded, finish).0, COMMAND, "the zone is full");
    assert_eq!(run_alone(&mut padded, io(Mode::Read, 12, 1)).0, COMMAND + LINK, "never written");
    let mut without_pads = device(1, 1, 1, r#"{"finish_pads": false}"#);
    run_alone(&mut without_pads, io(Mode::Write, 0, 10));
    assert_eq!(run_alone(&mut without_pads, finish).0, COMMAND);
    assert_eq!(without_pads.counters().unwrap().pages_padded, 0);
    let read = run_alone(&mut without_pads, io(Mode::Read, 9, 1)).0;
    assert_eq!(read, COMMAND + READ + TRANSFER + LINK, "the written pages are readable");
}

/// Untimed mode counts the same as timed mode.
#[test]
fn untimed_zone_commands_match_timed() {
    for units in ["{}", r#"{"mapping_unit_bytes": 1024, "sector_bytes": 1024}"#] {
        let mut timed = device(2, 1, 2, units);
        let mut untimed = timed.clone();
        let ios = [
            write(&timed, 0, 0, 5),
            zone(&timed, Mode::Finish, 0),
            zone(&timed, Mode::Finish, 1),
            zone(&timed, Mode::Finish, 1),
            zone(&timed, Mode::Reset, 0),
            write(&timed, 0, 0, 3),
        ];
        ios.iter().for_each(|io| drop(run_alone(&mut timed, *io)));
        untimed.apply(ios.into_iter()).unwrap();
        let counters = timed.counters().unwrap();
        assert!(counters.pages_padded > 0 && counters.blocks_erased > 0);
        assert_eq!(counters, untimed.counters().unwrap(), "{units}");
        assert_eq!(timed.zones().unwrap().unwrap().zones, untimed.zones().unwrap().unwrap().zones);
    }
}

#[test]
fn zone_buffer_gathers_units() {
    let keys = r#"{"mapping_unit_bytes": 1024, "sector_bytes": 1024, "partial_transfer": true}"#;
    let mut device = device(1, 1, 1, keys);
    let unit =
        |mode, page: u64| Io { offset: Bytes(page * 1024), size: Bytes(1024), mode, stream: 0 };
    const PART: u64 = LINK / 4;
    for page in 0..3 {
        assert_eq!(
            run_alone(&mut device, unit(Mode::Write, page)).0,
            COMMAND + PART,
            "the unit is in the buffer"
        );
        assert_eq!(
            run_alone(&mut device, unit(Mode::Read, page)).0,
            COMMAND + PART,
            "the unit is read from the buffer"
        );
    }
    assert_eq!(device.counters().unwrap().pages_programmed, 3, "units are counted on arrival");
    let fourth = run_alone(&mut device, unit(Mode::Write, 3)).0;
    assert_eq!(fourth, COMMAND + PART + TRANSFER + PROGRAM);
    let read = run_alone(&mut device, unit(Mode::Read, 0)).0;
    assert_eq!(read, COMMAND + READ + TRANSFER / 4 + PART);
    let all = Io { size: Bytes(4096), ..unit(Mode::Read, 0) };
    assert_eq!(
        run_alone(&mut device, all).0,
        COMMAND + READ + TRANSFER + LINK,
        "one read of the cells"
    );
    // One unit more; finishing the zone pads the rest of its flash page.
    run_alone(&mut device, unit(Mode::Write, 4));
    let finish = zone(&device, Mode::Finish, 0);
    assert_eq!(run_alone(&mut device, finish).0, COMMAND + (BLOCK - 1) * (TRANSFER + PROGRAM));
    let read = run_alone(&mut device, unit(Mode::Read, 4)).0;
    assert_eq!(read, COMMAND + READ + TRANSFER / 4 + PART, "the unit has left the buffer");
    assert_eq!(run_alone(&mut device, unit(Mode::Read, 5)).0, COMMAND + PART);
}

#[test]
fn zone_errors_match_standard() {
    let mut device = device(1, 4, 1, r#"{"max_open_zones": 1, "max_active_zones": 2}"#);
    let (size, none) = (2 * BLOCK, 1);
    let refused = |device: &mut SimDevice, io: Io| device.submit(&io).unwrap_err().to_string();
    assert!(refused(&mut device, io(Mode::Write, 3, none)).contains("Zone Invalid Write (0xbc)"));
    assert!(refused(&mut device, io(Mode::Write, 0, size)).contains("Zoned Boundary Error (0xb8)"));
    let close = zone(&device, Mode::Close, 0);
    assert!(refused(&mut device, close).contains("Invalid Zone State Transition (0xbf)"));
    run_alone(&mut device, io(Mode::Write, 0, BLOCK));
    assert!(refused(&mut device, io(Mode::Write, BLOCK, 1)).contains("Zone Is Full (0xb9)"));
    let open = zone(&device, Mode::Open, 1);
    run_alone(&mut device, open);
    assert!(
        refused(&mut device, io(Mode::Write, 2 * size, 1)).contains("Too Many Open Zones (0xbe)")
    );
    let close = zone(&device, Mode::Close, 1);
    run_alone(&mut device, close);
    run_alone(&mut device, io(Mode::Write, 2 * size, 1));
    assert!(
        refused(&mut device, io(Mode::Write, 3 * size, 1)).contains("Too Many Active Zones (0xbd)")
    );
    assert!(refused(&mut device, io(Mode::Trim, 0, 1)).contains("deallocated in part"));
    let half = Io { size: Bytes(4096), ..zone(&device, Mode::Reset, 0) };
    assert!(refused(&mut device, half).contains("exactly one zone"));
    // A write is in flight.
    device.submit(&io(Mode::Write, 2 * size + 1, 1)).unwrap();
    let reset = zone(&device, Mode::Reset, 2);
    assert!(refused(&mut device, reset).contains("have not ended"));
    device.complete().unwrap();
    run_alone(&mut device, reset);
    let message = super::device(1, 1, "empty").submit(&reset).unwrap_err().to_string();
    assert!(message.contains("has no zones"), "{message}");
}

#[test]
fn device_may_start_with_full_zones() {
    let mut device = device(2, 2, 2, r#"{"state": "sequential"}"#);
    let zones = device.zones().unwrap().unwrap().zones;
    assert!(zones.iter().all(|zone| zone.state == ZoneState::Full) && zones.len() == 128);
    assert_eq!(run_alone(&mut device, io(Mode::Read, 0, 1)).0, COMMAND + READ + TRANSFER + LINK);
    let reset = zone(&device, Mode::Reset, 127);
    assert_eq!(run_alone(&mut device, reset).0, COMMAND + ERASE);
}

/// Draw a command to any of eight zones, and the number of its pages.
fn any_command(device: &SimDevice, rng: &mut Xoshiro256PlusPlus) -> (Io, u64) {
    let report = device.zones().unwrap().unwrap();
    let sector = device.info().sector_bytes.0;
    let zone = &report.zones[uniform(rng, 8) as usize];
    let mode = match uniform(rng, 20) {
        0..8 => Mode::Write,
        8..12 => Mode::Append,
        12..16 => Mode::Read,
        16 => Mode::Reset,
        17 => Mode::Finish,
        18 => Mode::Open,
        _ => Mode::Close,
    };
    let pages = 1 + uniform(rng, 9);
    let (offset, bytes) = match mode {
        Mode::Write => (zone.write_pointer_bytes, pages * sector),
        Mode::Read | Mode::Append => (zone.start_bytes, pages * sector),
        _ => (zone.start_bytes, report.limits.zone_bytes),
    };
    (Io { offset, size: Bytes(bytes), mode, stream: 0 }, pages)
}

/// Random commands to several zones, many at a time. Every accepted command completes once, the
/// parts of its response time add up, and exactly the written and padded pages are programmed.
#[test]
fn random_zone_commands_end_without_surplus_programs() {
    let keys = r#"{"mapping_unit_bytes": 1024, "sector_bytes": 1024, "max_open_zones": 3,
        "max_active_zones": 4, "write_cache_bytes": 8192, "flush": "eager"}"#;
    for (seed, keys) in [(1, "{\"max_open_zones\": 3, \"max_active_zones\": 4}"), (2, keys)] {
        let mut device = device(2, 2, 2, keys);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut outstanding, mut accepted, mut refused, mut written) = (0, 0, 0, 0);
        for step in 0..6000 {
            let (io, pages) = any_command(&device, &mut rng);
            match device.submit(&io) {
                Ok(_) => {
                    outstanding += 1;
                    accepted += 1;
                    written += if io.mode.is_write() { pages } else { 0 };
                }
                Err(_) => refused += 1,
            }
            while outstanding > uniform(&mut rng, 6) {
                let done = device.complete().unwrap();
                let parts: u64 = uflip_core::Breakdown::parts(&done.breakdown).iter().sum();
                assert_eq!(parts, (done.completed - done.submitted).0, "step {step}: {io:?}");
                outstanding -= 1;
            }
            if uniform(&mut rng, 50) == 0 {
                device.wait_until(device.now() + Nanos(1_000_000));
            }
        }
        for _ in 0..outstanding {
            device.complete().unwrap();
        }
        assert!(accepted > 2000 && refused > 200, "{accepted} taken, {refused} refused");
        let counters = device.counters().unwrap();
        assert_eq!(counters.host_pages_written, written);
        assert_eq!(counters.pages_programmed, written + counters.pages_padded);
        assert_eq!(counters.pages_relocated, 0);
        let active = device
            .zones()
            .unwrap()
            .unwrap()
            .zones
            .iter()
            .filter(|zone| zone.state.is_active())
            .count();
        assert!(active <= 4);
    }
}
