//! Streams of writes that are kept apart.

use serde_json::{Map, Value};

use super::{Draw, set};

/// An SLC cache.
pub fn slc(draw: &mut Draw, overrides: &mut Map<String, Value>) {
    let blocks = draw.of(&[0, 1, 1, 2, 3, 5]);
    set(overrides, "slc_blocks", blocks);
    set(overrides, "slc_blocks_max", draw.of(&[blocks.max(1), blocks + 1, 7, 60, 0]));
    set(overrides, "slc_read_ns", draw.of(&[0, 999, 25_000]));
    set(overrides, "slc_program_ns", draw.of(&[0, 999, 100_000]));
    if !draw.yes(3) {
        overrides.remove("write_streams");
        set(overrides, "relocate_at_least", 0);
        overrides.remove("relocate_exactly");
    }
}

/// Streams that the host names, or that the device tells apart itself.
pub fn streams(draw: &mut Draw, overrides: &mut Map<String, Value>) {
    if draw.yes(50) {
        return set(overrides, "write_streams", draw.of(&[1, 2, 2, 3, 8, 16, 17]));
    }
    set(overrides, "write_streams", if draw.yes(95) { 2 } else { 3 });
    let filters = draw.of(&[1, 2, 4, 16]);
    set(overrides, "bloom_filters", filters);
    set(overrides, "bloom_filter_bits", draw.of(&[64, 65, 2048, 1 << 20]));
    set(overrides, "bloom_hashes", draw.of(&[1, 2, 7]));
    set(overrides, "bloom_window", draw.of(&[1, 8, 512, u64::from(u32::MAX)]));
    set(overrides, "hot_weight", draw.of(&[1, filters, filters * (filters + 1) / 2]));
}
