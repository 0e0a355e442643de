//! Draws optional features: write streams, SLC cache, descriptor rings, host queues, chip features.

use serde_json::{Map, Value};

use super::{CaseRng, set};

/// Draw an SLC cache.
pub fn slc(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    let blocks = draw.choose(&[0, 1, 1, 2, 3, 5]);
    set(overrides, "slc_blocks", blocks);
    set(overrides, "slc_blocks_max", draw.choose(&[blocks.max(1), blocks + 1, 7, 60, 0]));
    set(overrides, "slc_read_ns", draw.choose(&[0, 999, 25_000]));
    set(overrides, "slc_program_ns", draw.choose(&[0, 999, 100_000]));
    if !draw.chance(3) {
        overrides.remove("write_streams");
        set(overrides, "relocate_at_least", 0);
        overrides.remove("relocate_exactly");
    }
}

/// Draw write streams, chosen by the host or detected by the device.
pub fn streams(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    if draw.chance(50) {
        return set(overrides, "write_streams", draw.choose(&[1, 2, 2, 3, 8, 16, 17]));
    }
    set(overrides, "write_streams", if draw.chance(95) { 2 } else { 3 });
    let filters = draw.choose(&[1, 2, 4, 16]);
    set(overrides, "bloom_filters", filters);
    set(overrides, "bloom_filter_bits", draw.choose(&[64, 65, 2048, 1 << 20]));
    set(overrides, "bloom_hashes", draw.choose(&[1, 2, 7]));
    set(overrides, "bloom_window", draw.choose(&[1, 8, 512, u64::from(u32::MAX)]));
    set(overrides, "hot_weight", draw.choose(&[1, filters, filters * (filters + 1) / 2]));
}

/// Draw a pipelined processor, transfer set-up times, memory, and descriptor rings.
pub fn controller(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    if !draw.chance(25) {
        return;
    }
    for key in ["command_read_latency_ns", "command_write_latency_ns"] {
        set(overrides, key, draw.choose(&[0, 1, 7_000, 300_000]));
    }
    if overrides["buses"] != 0 {
        set(overrides, "bus_read_setup_ns", draw.choose(&[0, 999, 25_000]));
        set(overrides, "bus_write_setup_ns", draw.choose(&[0, 999, 25_000]));
        set(overrides, "memory_bytes_per_s", draw.choose(&[1000, 40_000_000, 3_200_000_000u64]));
    }
}

/// Draw host queues and completion notification.
pub fn host(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    if overrides["commands_at_once"] != 0 && draw.chance(50) {
        set(overrides, "read_weight", draw.choose(&[1, 1, 3, 100]));
        set(overrides, "write_weight", draw.choose(&[1, 1, 3, 100]));
    }
    if draw.chance(25) {
        let polls = draw.chance(30);
        let number = if polls { 1 } else { draw.choose(&[1, 2, 8, 256]) };
        set(overrides, "host_completion", if polls { "polling" } else { "interrupt" });
        set(overrides, "host_completion_ns", draw.choose(&[1, 999, 50_000]));
        set(overrides, "coalesced_completions", number);
        let wait: u64 = if number > 1 { draw.choose(&[0, 1, 100_000, 25_500_000]) } else { 0 };
        set(overrides, "coalescing_ns", wait);
    }
}

/// Draw chip features: suspension for reads if these have priority, or multi-plane operations.
pub fn chips(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    if draw.chance(30) {
        set(overrides, "program_suspend_ns", draw.choose(&[0, 1, 20_000, 10_000_000]));
        set(overrides, "erase_suspend_ns", draw.choose(&[0, 1, 50_000, 10_000_000]));
        set(overrides, "suspensions_max", draw.choose(&[1, 2, 1000]));
        set(overrides, "die_queue", "reads_first");
        set(overrides, "cache_program", false);
        set(overrides, "cache_read", false);
    }
    planes(draw, overrides);
}

/// Draw block history, scrubbing, and the order of free blocks.
pub fn history(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    if draw.chance(30) {
        set(overrides, "error_aware_allocation", true);
        set(overrides, "dynamic_wear_levelling", draw.chance(3));
    }
    if !draw.chance(50) {
        return;
    }
    let (by_block, disturbs) = (draw.chance(60), draw.chance(60));
    set(overrides, "retention_by_block", by_block);
    if disturbs {
        set(overrides, "read_disturb_doubling", draw.choose(&[1, 100, 10_000]));
    }
    if draw.chance(if disturbs { 70 } else { 3 }) {
        set(overrides, "scrub_reads", draw.choose(&[1, 7, 100, 1000]));
    }
    if draw.chance(if by_block { 70 } else { 3 }) {
        set(overrides, "scrub_age_s", draw.choose(&[1e-9, 1e-3, 0.1, 10.0, 1e5]));
    }
}

/// Draw optional controller features of a page map.
pub fn rings(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    if draw.chance(30) {
        set(overrides, "relocate_latency_ns", draw.choose(&[0, 1, 7_000, 300_000]));
        set(overrides, "collections_per_channel", draw.choose(&[1, 1, 2, 5]));
        set(overrides, "relocations_at_once", draw.choose(&[1, 2, 3, 100]));
    }
    if draw.chance(30) {
        set(overrides, "tx_entries", draw.choose(&[1, 1, 2, 7, 256]));
        set(overrides, "rx_entries", draw.choose(&[1, 1, 2, 7, 256]));
        set(overrides, "completion", draw.choose(&["interrupt", "polling"]));
        set(overrides, "completion_ns", draw.choose(&[0, 1, 999, 50_000, 1_000_000]));
    }
}

/// Draw multi-plane operations, mostly without options that exclude them.
fn planes(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    let several = overrides["planes_per_die"] != 1;
    if !draw.chance(if several { 75 } else { 2 }) {
        return;
    }
    set(overrides, "multi_plane", draw.choose(&["any_page", "same_page", "same_block"]));
    if draw.chance(97) {
        set(overrides, "independent_planes", false);
        set(overrides, "cache_program", false);
        set(overrides, "cache_read", false);
        for key in ["program_suspend_ns", "erase_suspend_ns", "suspensions_max"] {
            overrides.remove(key);
        }
    }
}

/// Draw partial transfers, unless mapping units were drawn.
pub(super) fn parts(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    if !overrides.contains_key("mapping_unit_bytes") {
        set(overrides, "partial_transfer", draw.chance(30));
    }
}
