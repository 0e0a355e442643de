//! A map on flash whose cache is in host memory: the time of a look-up there and on flash.

use uflip_core::{ErrorKind, Mode};
use uflip_sim::{Profile, SimDevice};

use super::{COMMAND, LINK, PROGRAM, READ, TRANSFER, io, part, profile, run_alone};

/// Latency of the host memory, and 64 bytes at 1 GB/s.
const ANSWER: u64 = 1_000;
const LINE: u64 = 64;
const SEGMENT: u64 = 64;

/// Return overrides: the cache holds one segment, its first page, and an entry for each page.
fn overrides(more: &str) -> String {
    format!(
        r#"{{"ftl": "dftl", "mapping_cache_bytes": {}, "mapping_cache_policy": "lru",
            "mapping_batch_update": true, "idle_free_blocks": 0{more}}}"#,
        4 * (SEGMENT + 1)
    )
}

fn build_device(more: &str) -> SimDevice {
    let more = format!(r#", "mapping_segment_entries": {SEGMENT}{more}"#);
    let profile = Profile::parse(&profile(1, 2, "sequential"), "test", &overrides(&more)).unwrap();
    let mut device = SimDevice::new("test", profile).unwrap();
    // A dirty segment of the fill is written back first.
    run_alone(&mut device, io(Mode::Read, 0, 1));
    device
}

#[test]
fn map_segment_is_read_from_flash_once() {
    for (more, look_up) in [("", 0), (r#", "host_memory_read_ns": 1000"#, ANSWER + LINE)] {
        let mut device = build_device(more);
        let reading = COMMAND + READ + TRANSFER + LINK;
        let (missed, parts) = run_alone(&mut device, io(Mode::Read, SEGMENT, 1));
        assert_eq!(part(&parts, "mapping_ns"), READ + TRANSFER, "a mapping page is read");
        assert_eq!(missed, reading + READ + TRANSFER);
        for neighbour in [SEGMENT + 1, 2 * SEGMENT - 1, SEGMENT] {
            let (response, parts) = run_alone(&mut device, io(Mode::Read, neighbour, 1));
            assert_eq!(
                part(&parts, "mapping_ns"),
                look_up,
                "the entry was loaded with the mapping page"
            );
            assert_eq!(response, reading + look_up);
        }
        let (written, parts) = run_alone(&mut device, io(Mode::Write, SEGMENT + 2, 1));
        assert_eq!(part(&parts, "mapping_ns"), look_up);
        assert_eq!(written, COMMAND + LINK + look_up + TRANSFER + PROGRAM);
    }
}

#[test]
fn mapping_cache_without_segment_is_refused() {
    let refused = |more: &str| {
        let text = profile(1, 2, "sequential");
        let error = Profile::parse(&text, "test", &overrides(more)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    };
    assert!(refused(r#", "mapping_segment_entries": 128"#).contains("516 or more"));
    let message = refused(r#", "mapping_segment_entries": 48"#);
    assert!(message.contains("a divisor of 1024"), "{message}");
    assert!(refused(r#", "mapping_segment_entries": 0"#).contains("a divisor of 1024"));
}
