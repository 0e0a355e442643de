//! Flash that requires ascending program order, under an FTL with a fixed offset for each page. The
//! program time shows the page that was used.

use uflip_core::{Device, Mode};
use uflip_sim::{Profile, SimDevice};

use super::{COMMAND, ERASE, LINK, PROGRAM, READ, TRANSFER, io, profile, run_alone, with_ftl};

const HIGH: u64 = 900_000;
const PAGES: u64 = 16;

/// Create a block map on one empty die, where every second page of a block is slower.
fn device(order: &str) -> SimDevice {
    let changes = format!(r#"{{"page_order": "{order}", "program_high_ns": {HIGH}}}"#);
    let text = with_ftl("block_map", &profile(1, 1, "empty"));
    SimDevice::new("test", Profile::parse(&text, "test", &changes).unwrap()).unwrap()
}

/// Return the cell time of a write of `page`.
fn programmed(device: &mut SimDevice, page: u64) -> u64 {
    run_alone(device, io(Mode::Write, page, 1)).0 - COMMAND - LINK - TRANSFER
}

#[test]
fn page_order_selects_page_offset_or_next_page() {
    let mut any = device("any");
    assert_eq!([5, 4, 7, 2].map(|page| programmed(&mut any, page)), [HIGH, PROGRAM, HIGH, PROGRAM]);
    let mut ordered = device("ascending");
    let program_times = [5, 4, 7, 2].map(|page| programmed(&mut ordered, page));
    assert_eq!(program_times, [PROGRAM, HIGH, PROGRAM, HIGH]);
    for page in [5, 4, 7, 2] {
        let read = run_alone(&mut ordered, io(Mode::Read, page, 1)).0;
        assert_eq!(
            read,
            COMMAND + READ + TRANSFER + LINK,
            "the page is located without another read"
        );
    }
}

#[test]
fn merge_restores_page_order() {
    // Logical pages 3, 1 and 2 are on pages 0, 1 and 2. A merge moves 1 and 2 to pages 0 and 1 of a
    // new block, and 3, which the host rewrites, to page 2: low, high, low.
    let mut device = device("ascending");
    for page in [3, 1, 2] {
        run_alone(&mut device, io(Mode::Write, page, 1));
    }
    let merged = run_alone(&mut device, io(Mode::Write, 3, 1)).0;
    let copied = 2 * (READ + 2 * TRANSFER) + PROGRAM + HIGH;
    assert_eq!(merged, COMMAND + LINK + copied + TRANSFER + PROGRAM + ERASE);
    assert_eq!(device.counters().unwrap().full_merges, 1);
}

#[test]
fn page_order_does_not_affect_sequential_writes() {
    let [mut any, mut ordered] = ["any", "ascending"].map(device);
    for round in 0..3 {
        let first = (round % 2) * PAGES;
        let (any, ordered) = (
            run_alone(&mut any, io(Mode::Write, first, PAGES)),
            run_alone(&mut ordered, io(Mode::Write, first, PAGES)),
        );
        assert_eq!(any, ordered);
    }
}

#[test]
fn in_order_ftl_refuses_any_page_order() {
    let error = Profile::parse(&profile(1, 1, "empty"), "test", r#"{"page_order": "any"}"#);
    let text = error.unwrap_err().to_string();
    assert!(text.contains("'page_order'") && text.contains("in order"), "{text}");
}
