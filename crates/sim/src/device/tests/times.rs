//! Duration of recovery, compared with sums computed by hand.

use serde_json::json;
use uflip_core::{Bytes, Device, Io, Nanos};

use super::round_times::{self, BLOCKS, ERASE, PAGE, PAGES, PROGRAM, READ, SPARE, write};
use crate::{Profile, Recovery, SimDevice};

/// Create the demo device with round times.
fn device(channels: u64, dies: u64, metadata: u64, state: &str) -> SimDevice {
    round_times::device(json!({
        "channels": channels, "dies_per_channel": dies, "metadata_pages": metadata, "state": state,
    }))
}

fn cut_now(device: &mut SimDevice) -> Recovery {
    device.cut_power(device.now()).unwrap();
    device.recover().unwrap()
}

#[test]
fn scan_of_empty_device_reads_first_pages() {
    let mut device = device(2, 3, 0, "empty");
    let recovery = cut_now(&mut device);
    assert_eq!(recovery.spare_areas_read, 6 * BLOCKS);
    // The cells of a channel's three dies work in parallel; their transfers are serial.
    assert_eq!(recovery.reading, Nanos(BLOCKS * (READ + SPARE) + 2 * SPARE));
    assert_eq!((recovery.pages_found, recovery.erasing), (0, Nanos(0)));
}

#[test]
fn scan_reads_block_up_to_first_erased_page() {
    let mut device = device(1, 1, 0, "empty");
    // A block and a half.
    device.apply((0..12).map(write)).unwrap();
    let recovery = cut_now(&mut device);
    let read = PAGES + (PAGES / 2 + 1) + (BLOCKS - 2);
    assert_eq!(recovery.spare_areas_read, read);
    assert_eq!(recovery.reading, Nanos(read * (READ + SPARE)));
    assert_eq!(recovery.pages_found, 12);
}

#[test]
fn scan_reads_only_metadata_page_of_closed_block() {
    let mut device = device(1, 1, 1, "empty");
    // A block of seven pages and its metadata, and three pages of the next.
    device.apply((0..10).map(write)).unwrap();
    let recovery = cut_now(&mut device);
    // A missing metadata page is detected by reading its address.
    let read = (BLOCKS - 1) + (3 + 1) + (BLOCKS - 2);
    assert_eq!((recovery.metadata_pages_read, recovery.spare_areas_read), (1, read));
    assert_eq!(recovery.reading, Nanos(READ + PAGE + read * (READ + SPARE)));
}

#[test]
fn channel_time_is_rounded_down_once() {
    for (page_bytes, rate) in [(4096, 166_000_000), (4096, 2_400_000_000), (131_072, 900_000_000)] {
        for spare in [16, 1000, 4096].into_iter().chain((page_bytes == 4096).then_some(1)) {
            let mut device = round_times::device(json!({
                "metadata_pages": 1, "page_bytes": page_bytes, "channel_bytes_per_s": rate,
                "spare_read_bytes": spare,
            }));
            let pages = (0..10).map(|page| Io {
                offset: Bytes(page * page_bytes),
                size: Bytes(page_bytes),
                ..write(0)
            });
            device.apply(pages).unwrap();
            let sent = |bytes: u64| READ + bytes * 1_000_000_000 / rate;
            let read = (BLOCKS - 1) + (3 + 1) + (BLOCKS - 2);
            let expected = Nanos(sent(page_bytes) + read * sent(spare));
            assert_eq!(cut_now(&mut device).reading, expected, "{spare} of {page_bytes}, {rate}");
        }
    }
}

#[test]
fn scan_is_bound_by_channel_with_fast_cells() {
    for dies in [1, 60, 100] {
        let mut device = device(1, dies, 0, "empty");
        let reads = BLOCKS * dies;
        // A die is read again after its last transfer; with many dies, transfers limit the rate.
        let busy = (READ + SPARE).max(dies * SPARE);
        let reading = cut_now(&mut device).reading.0;
        let last = READ + dies * SPARE;
        assert_eq!(reading, (BLOCKS - 1) * busy + last, "{reads} reads of {dies} dies");
    }
}

#[test]
fn half_erased_blocks_are_erased_after_scan() {
    let mut device = device(1, 1, 0, "sequential");
    let (mut page, mut cut) = (0, None);
    // Overwrite until some block is being erased.
    while cut.is_none() {
        device.submit(&write(page % 60)).unwrap();
        device.complete().unwrap();
        page += 7;
        let mut copy = device.clone();
        let power_cut = copy.cut_power(copy.now() + Nanos(1_000)).unwrap();
        cut = (power_cut.blocks_half_erased == 1).then_some(copy);
        assert!(page < 10_000, "a full device erases");
    }
    let recovery = cut.unwrap().recover().unwrap();
    assert_eq!((recovery.blocks_erased, recovery.erasing), (1, Nanos(ERASE)));
    assert_eq!(recovery.ready.0 - recovery.begin.0, recovery.reading.0 + ERASE);
}

/// Create one die with a merging FTL; 8 of its 16 blocks are for the host.
fn merging(ftl: &str, order: &str, state: &str) -> SimDevice {
    let overrides = format!(
        r#"{{"ftl": "{ftl}", "page_order": "{order}", "blocks_per_die": {BLOCKS},
        "pages_per_block": {PAGES}, "spare_factor": 0.5, "log_blocks": 2, "read_ns": {READ},
        "program_ns": {PROGRAM}, "program_high_ns": {PROGRAM}, "erase_ns": {ERASE},
        "channel_bytes_per_s": 40000000, "state": "{state}", "power_loss_protection": false,
        "spare_read_bytes": 16}}"#
    );
    let fast = include_str!("../../../../../python/uflip/profiles/fast-1gb.toml");
    SimDevice::new("test", Profile::parse(fast, "fast-1gb.toml", &overrides).unwrap()).unwrap()
}

#[test]
fn scan_reads_all_pages_without_program_order() {
    for (order, read) in [("any", BLOCKS * PAGES), ("ascending", PAGES + 5 + (BLOCKS - 2))] {
        let mut device = merging("bast", order, "empty");
        // A block and a half.
        device.apply((0..12).map(write)).unwrap();
        let recovery = cut_now(&mut device);
        assert_eq!(recovery.spare_areas_read, read, "{order}");
        assert_eq!(recovery.reading, Nanos(read * (READ + SPARE)));
        assert_eq!((recovery.pages_found, recovery.merging), (12, Nanos(0)));
    }
}

#[test]
fn recovery_merges_fast_sequential_log_only() {
    let recovered = |ftl: &str| {
        let mut device = merging(ftl, "any", "sequential");
        device.submit(&write(0)).unwrap();
        device.complete().unwrap();
        let recovery = cut_now(&mut device);
        assert_eq!(recovery.pages_found, BLOCKS * PAGES / 2);
        (recovery.pages_merged, recovery.blocks_dropped, recovery.merging)
    };
    // Each page is read and crosses the channel twice; then both blocks are erased.
    let copied = PAGES * (READ + 2 * PAGE + PROGRAM);
    assert_eq!(recovered("fast"), (PAGES, 2, Nanos(copied + 2 * ERASE)));
    assert_eq!(recovered("bast"), (0, 0, Nanos(0)));
    assert_eq!(recovered("superblock"), (0, 0, Nanos(0)));
}

#[test]
fn invalid_power_cut_and_recovery_are_refused() {
    let demo = include_str!("../../../../../python/uflip/profiles/demo.toml");
    let mut device =
        SimDevice::new("test", Profile::parse(demo, "demo.toml", "{}").unwrap()).unwrap();
    let error = device.cut_power(device.now()).unwrap_err().to_string();
    assert!(error.contains("[power_loss]"), "{error}");
    assert_eq!(device.version_of(0), None);
    let mut device = self::device(1, 1, 0, "empty");
    assert!(device.recover().unwrap_err().to_string().contains("has power"));
    device.wait_until(Nanos(1_000_000));
    let error = device.cut_power(Nanos(999)).unwrap_err().to_string();
    assert!(error.contains("past"), "{error}");
}
