//! A device of a few blocks with round times, so that sums can be computed by hand.

use serde_json::{Map, Value, json};
use uflip_core::{Bytes, Io, Mode};

use crate::{Profile, SimDevice};

pub(super) const READ: u64 = 25_000;
pub(super) const PROGRAM: u64 = 300_000;
pub(super) const ERASE: u64 = 1_500_000;
/// Channel time of 16 bytes at 40 MB/s; a page of 4096 bytes takes a multiple of it.
pub(super) const SPARE: u64 = 400;
pub(super) const PAGE: u64 = 4096 / 16 * SPARE;
pub(super) const BLOCKS: u64 = 16;
pub(super) const PAGES: u64 = 8;

/// Create the demo device with one die, round times and no volatile data, with `others` as
/// overrides.
pub(super) fn device(others: Value) -> SimDevice {
    let mut keys = json!({
        "channels": 1, "dies_per_channel": 1, "planes_per_die": 1, "blocks_per_die": BLOCKS, "pages_per_block": PAGES,
        "metadata_pages": 0, "page_bytes": 4096, "spare_bytes": 0, "spare_factor": 0.5, "read_ns": READ,
        "program_ns": PROGRAM, "program_high_ns": PROGRAM, "erase_ns": ERASE, "channel_bytes_per_s": 40_000_000,
        "buses": 0, "idle_free_blocks": 0, "state": "empty", "write_cache_bytes": 0, "copy_back": false,
        "power_loss_protection": false, "spare_read_bytes": 16,
    });
    let others: Map<String, Value> = serde_json::from_value(others).expect("a JSON object");
    keys.as_object_mut().expect("a JSON object").extend(others);
    let demo = include_str!("../../../../../python/uflip/profiles/demo.toml");
    let profile = Profile::parse(demo, "demo.toml", &keys.to_string()).unwrap();
    SimDevice::new("test", profile).unwrap()
}

/// Return a write of a whole page.
pub(super) fn write(page: u64) -> Io {
    Io { offset: Bytes(page * 4096), size: Bytes(4096), mode: Mode::Write, stream: 0 }
}
