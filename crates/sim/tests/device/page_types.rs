//! Page types with different times: sums computed by hand.

use uflip_core::{Bytes, Device, Io, Mode};
use uflip_sim::{Profile, SimDevice};

use super::{COMMAND, LINK, TRANSFER, io, part, profile, run_alone, with_ftl};

/// LSB, CSB and MSB of TLC.
const READS: [u64; 3] = [58_000, 78_000, 107_000];
const PROGRAMS: [u64; 3] = [500_000, 2_000_000, 5_500_000];
const PAGES: u64 = 16;

fn tlc(ftl: &str) -> SimDevice {
    let overrides = format!(
        r#"{{"bits_per_cell": 3, "read_ns": {}, "read_middle_ns": {}, "read_high_ns": {},
            "program_ns": {}, "program_middle_ns": {}, "program_high_ns": {}}}"#,
        READS[0], READS[1], READS[2], PROGRAMS[0], PROGRAMS[1], PROGRAMS[2]
    );
    let mut text = profile(1, 1, "empty");
    if ftl != "page_map" {
        text = with_ftl(ftl, &text);
    }
    SimDevice::new("test", Profile::parse(&text, "test", &overrides).unwrap()).unwrap()
}

/// The time of a page apart from its cells.
const WRITE: u64 = COMMAND + LINK + TRANSFER;

#[test]
fn page_time_depends_on_page_type() {
    for ftl in ["page_map", "block_map"] {
        let mut device = tlc(ftl);
        for page in 0..2 * PAGES {
            // Each block begins with a page of the first type: 16 pages are five cells and one
            // more.
            let kind = (page % PAGES % 3) as usize;
            let (write, parts) = run_alone(&mut device, io(Mode::Write, page, 1));
            assert_eq!(write, WRITE + PROGRAMS[kind], "{ftl}, page {page}");
            assert_eq!(part(&parts, "cell_program_ns"), PROGRAMS[kind]);
        }
        for page in 0..2 * PAGES {
            let kind = (page % PAGES % 3) as usize;
            let (read, parts) = run_alone(&mut device, io(Mode::Read, page, 1));
            assert_eq!(read, COMMAND + READS[kind] + TRANSFER + LINK, "{ftl}, page {page}");
            assert_eq!(part(&parts, "cell_read_ns"), READS[kind]);
        }
    }
}

#[test]
fn sequential_fill_takes_mean_program_time() {
    // Blocks of 16 pages: six of the first type, five of each other one.
    let mut device = tlc("page_map");
    let begin = device.now();
    let pages = 10 * PAGES;
    for page in 0..pages {
        run_alone(&mut device, io(Mode::Write, page, 1));
    }
    let cells = 10 * (6 * PROGRAMS[0] + 5 * PROGRAMS[1] + 5 * PROGRAMS[2]);
    assert_eq!((device.now() - begin).0, pages * WRITE + cells);
}

#[test]
fn partial_write_reads_with_time_of_page_type() {
    for ftl in ["page_map", "block_map"] {
        let mut device = tlc(ftl);
        for page in 0..3 {
            run_alone(&mut device, io(Mode::Write, page, 1));
        }
        let half = Io { offset: Bytes(2 * 4096), size: Bytes(512), mode: Mode::Write, stream: 0 };
        let (_, parts) = run_alone(&mut device, half);
        if ftl == "page_map" {
            assert_eq!(part(&parts, "read_to_modify_ns"), READS[2] + TRANSFER, "{ftl}");
        } else {
            // Without a log the block is copied: its three pages, each in its time.
            let copied = READS[..2].iter().sum::<u64>() + PROGRAMS[..2].iter().sum::<u64>();
            assert!(part(&parts, "merge_ns") >= copied, "{parts:?}");
        }
    }
}

#[test]
fn times_of_missing_page_types_are_refused() {
    let refused = |overrides: &str| {
        Profile::parse(&profile(1, 1, "empty"), "test", overrides).unwrap_err().to_string()
    };
    let middle = refused(r#"{"read_middle_ns": 1}"#);
    assert!(
        middle.contains("'read_middle_ns'") && middle.contains("bits_per_cell = 2"),
        "{middle}"
    );
    assert!(refused(r#"{"bits_per_cell": 5}"#).contains("1 to 4, SLC to QLC"));
    assert!(refused(r#"{"bits_per_cell": 0}"#).contains("1 to 4, SLC to QLC"));
    let slc = refused(r#"{"bits_per_cell": 1, "program_high_ns": 1}"#);
    assert!(slc.contains("program_ns = 300000"), "{slc}");
}
