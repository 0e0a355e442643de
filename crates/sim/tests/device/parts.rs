//! Partial transfers: only the requested sectors of a read cross the channel, on devices that map
//! whole flash pages. Sums are computed by hand.

use uflip_core::{Bytes, Io, Mode};
use uflip_sim::{Profile, SimDevice};

use super::{COMMAND, LINK, PROGRAM, READ, TRANSFER, part, profile, run_alone, with_ftl};

/// Number of sectors of a 16 KiB flash page.
const SECTORS: u64 = 32;
const PAGE: u64 = 4 * TRANSFER;

fn build_device(more: &str) -> SimDevice {
    let overrides = format!(r#"{{"page_bytes": 16384, "partial_transfer": true{more}}}"#);
    let profile = Profile::parse(&profile(1, 1, "sequential"), "test", &overrides).unwrap();
    SimDevice::new("test", profile).unwrap()
}

fn io(mode: Mode, sector: u64, sectors: u64) -> Io {
    Io { offset: Bytes(sector * 512), size: Bytes(sectors * 512), mode, stream: 0 }
}

/// Return the link time of `sectors` sectors; several pages follow each other.
fn link(sectors: u64) -> u64 {
    sectors * LINK / 8
}

#[test]
fn read_transfers_requested_sectors_only() {
    for more in [
        "",
        r#", "die_queue": "reads_first""#,
        r#", "planes_per_die": 2, "multi_plane": "any_page""#,
    ] {
        let mut device = build_device(more);
        for sectors in [1, 2, 8, 31, SECTORS] {
            let sent = PAGE * sectors / SECTORS;
            let (read, parts) = run_alone(&mut device, io(Mode::Read, SECTORS - sectors, sectors));
            assert_eq!(read, COMMAND + READ + sent + link(sectors), "{sectors} {more}");
            assert_eq!(part(&parts, "transfer_ns"), sent);
            assert_eq!(part(&parts, "cell_read_ns"), READ, "cells are read as a page");
        }
    }
    let mut whole = build_device(r#", "partial_transfer": false"#);
    let (read, _) = run_alone(&mut whole, io(Mode::Read, 3, 1));
    assert_eq!(read, COMMAND + READ + PAGE + link(1), "the whole page by default");
}

#[test]
fn partial_transfer_includes_spare_bytes() {
    let mut device = build_device(r#", "spare_bytes": 1000"#);
    let page = (16_384 + 1000) * 10;
    for sectors in [1, 3, SECTORS] {
        let (read, _) = run_alone(&mut device, io(Mode::Read, 0, sectors));
        assert_eq!(read, COMMAND + READ + page * sectors / SECTORS + link(sectors));
    }
}

#[test]
fn two_page_read_transfers_each_part() {
    let mut device = build_device("");
    let (read, _) = run_alone(&mut device, io(Mode::Read, SECTORS - 3, 8));
    let (first, second) = (PAGE * 3 / SECTORS, PAGE * 5 / SECTORS);
    assert_eq!(
        read,
        COMMAND + 2 * READ + first + second + link(5),
        "on one die, one after the other"
    );
}

/// Bus and memory take half and a quarter of the channel's time for 4096 bytes.
#[test]
fn bus_and_memory_carry_partial_transfers() {
    let mut device = build_device(
        r#", "buses": 1, "bus_bytes_per_s": 200000000, "memory_bytes_per_s": 400000000"#,
    );
    for sectors in [1, 8, SECTORS] {
        let sent = [PAGE, PAGE / 2, PAGE / 4].map(|page| page * sectors / SECTORS);
        let (read, _) = run_alone(&mut device, io(Mode::Read, 0, sectors));
        assert_eq!(read, COMMAND + READ + sent.iter().sum::<u64>() + link(sectors));
    }
}

#[test]
fn programs_and_modify_reads_transfer_whole_pages() {
    let mut device = build_device("");
    let (write, _) = run_alone(&mut device, io(Mode::Write, 0, SECTORS));
    assert_eq!(write, COMMAND + link(SECTORS) + PAGE + PROGRAM);
    let (modified, parts) = run_alone(&mut device, io(Mode::Write, 0, 8));
    assert_eq!(modified, COMMAND + link(8) + READ + PAGE + PAGE + PROGRAM);
    assert_eq!(part(&parts, "read_to_modify_ns"), READ + PAGE);
}

/// A dirty entry is evicted from the controller's memory: its map page is read and programmed, and
/// then the requested one is read.
#[test]
fn mapping_page_is_transferred_whole() {
    let map = r#", "ftl": "dftl", "mapping_cache_bytes": 8, "mapping_cache_policy": "lru", "mapping_batch_update": false, "idle_free_blocks": 0"#;
    let mut device = build_device(map);
    let (read, parts) = run_alone(&mut device, io(Mode::Read, 100 * SECTORS, 8));
    let mapping = 2 * (READ + PAGE) + PAGE + PROGRAM;
    assert_eq!(part(&parts, "mapping_ns"), mapping);
    assert_eq!(read, COMMAND + mapping + READ + PAGE * 8 / SECTORS + link(8));
}

#[test]
fn merging_ftl_transfers_requested_sectors_only() {
    for ftl in ["bast", "fast", "superblock"] {
        let log = "log = { log_blocks = 8, superblock_blocks = 1, compat = \"none\" }";
        let text = with_ftl(ftl, &profile(1, 1, "sequential"));
        let merging = text.replace("sources = {", &format!("{log}\n        sources = {{"));
        let keys = r#"{"page_bytes": 16384, "partial_transfer": true}"#;
        let made = Profile::parse(&merging, "test", keys).unwrap();
        let mut device = SimDevice::new("test", made).unwrap();
        for sectors in [1, 8, SECTORS] {
            let sent = PAGE * sectors / SECTORS;
            let (read, parts) = run_alone(&mut device, io(Mode::Read, SECTORS - sectors, sectors));
            assert_eq!(read, COMMAND + READ + sent + link(sectors), "{sectors} {ftl}");
            assert_eq!(part(&parts, "transfer_ns"), sent);
        }
        // The rest is read before the write, as a whole.
        let (modified, parts) = run_alone(&mut device, io(Mode::Write, 0, 8));
        assert_eq!(modified, COMMAND + link(8) + READ + PAGE + PAGE + PROGRAM, "{ftl}");
        assert_eq!(part(&parts, "read_to_modify_ns"), READ + PAGE);
    }
}
