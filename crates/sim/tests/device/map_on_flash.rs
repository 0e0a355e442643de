//! A map that is on flash: what was never written is known to be so from its page of the map.

use uflip_core::{Bytes, Io, Mode};
use uflip_sim::{Profile, SimDevice};

use super::{READ, alone, part};

/// A device whose map is on flash, with room for one page of it in memory: 128 entries of 512 bytes.
fn map_on_flash() -> SimDevice {
    let text = include_str!("../../../../python/uflip/profiles/intel-x25m.toml");
    let overrides = format!(
        r#"{{"channels": 1, "dies_per_channel": 2, "blocks_per_die": 32, "pages_per_block": 16,
        "page_bytes": 512, "spare_bytes": 0, "stripe_dies": 1, "map_memory_bytes": 512,
        "map_changed_bytes": 512, "spare_factor": 0.5, "state": "empty", "read_ns": {READ},
        "channel_bytes_per_s": 100000000}}"#
    );
    let profile = Profile::parse(text, "intel-x25m", &overrides).unwrap();
    SimDevice::new("test", profile).unwrap()
}

#[test]
fn a_page_that_was_never_written_is_known_to_be_so_once_its_page_of_the_map_is_read() {
    const TRANSFER: u64 = 5_120;
    let mut device = map_on_flash();
    let page =
        |mode, page: u64| Io { offset: Bytes(page * 512), size: Bytes(512), mode, stream: 0 };
    let (written, unwritten) = (0, 1);
    alone(&mut device, page(Mode::Write, written));
    // Another page of the map is needed, and the first one is stored.
    alone(&mut device, page(Mode::Write, 128));
    // One that was never stored takes its place, and is known to be empty.
    let (answer, parts) = alone(&mut device, page(Mode::Read, 128 + 1));
    assert_eq!(part(&parts, "mapping_ns"), 0, "it is in memory");
    alone(&mut device, page(Mode::Read, 256));
    let (loaded, parts) = alone(&mut device, page(Mode::Read, unwritten));
    assert_eq!(part(&parts, "mapping_ns"), READ + TRANSFER, "its page of the map is read");
    assert_eq!(loaded, answer + READ + TRANSFER, "before the host has its answer");
    let (read, parts) = alone(&mut device, page(Mode::Read, written));
    assert_eq!(part(&parts, "mapping_ns"), 0, "it is there now");
    assert_eq!(read, answer + READ + TRANSFER, "and the page itself is read");
}
