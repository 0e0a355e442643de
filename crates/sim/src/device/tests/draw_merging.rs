//! Random small devices with merging FTLs that can lose power.

use serde_json::{Map, Value, json};
use uflip_core::random::{Xoshiro256PlusPlus, uniform};

use super::draw::{Endurance, failures, interrupts, suspend};
use crate::Profile;
use crate::config::ftl::drawn_keys;
use crate::ftl::MERGING_FTLS;

macro_rules! shipped {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../../python/uflip/profiles/", $name, ".toml")))
    };
}

/// Draw profiles of the FTL number `seed`, modulo their number, until one is valid.
pub(super) fn profile(
    rng: &mut Xoshiro256PlusPlus,
    seed: u64,
    flash: Endurance,
) -> (Profile, String) {
    let ftl = MERGING_FTLS[(seed % MERGING_FTLS.len() as u64) as usize];
    let (base, text) = match ftl {
        "bast" | "fast" | "superblock" => shipped!("fast-1gb"),
        "linear" => shipped!("kingston-dti"),
        "stream_hybrid" => shipped!("mtron"),
        "stripe_map" => shipped!("intel-x25m"),
        // FTLs without a table of their own, or whose table is drawn by its keys.
        _ => ("block-map", include_str!("../../../tests/swarm/block-map.toml")),
    };
    loop {
        let mut keys = Map::new();
        draw(rng, ftl, &mut keys);
        interrupts(rng, &mut keys);
        suspend(rng, &mut keys);
        replacement_keys(rng, &mut keys, flash);
        let overrides = Value::Object(keys).to_string();
        if let Ok(profile) = Profile::parse(text, base, &overrides) {
            return (profile, format!("sim:{base} {overrides}"));
        }
    }
}

/// Draw the layer below the FTL: wear levelling, and blocks that replace failed ones.
fn replacement_keys(rng: &mut Xoshiro256PlusPlus, keys: &mut Map<String, Value>, flash: Endurance) {
    if flash == Endurance::WearsOut {
        failures(rng, keys);
        let blocks = keys["blocks_per_die"].as_u64().expect("the key was drawn");
        let planes = keys["planes_per_die"].as_u64().expect("the key was drawn");
        let spares = planes * [1, 3, 10, 40][uniform(rng, 4) as usize];
        for (key, value) in [
            ("blocks_per_die", json!(blocks + spares)),
            ("replacement_blocks", json!(spares)),
            ("retire", json!(["nothing", "blocks"][uniform(rng, 2) as usize])),
            ("partial_blocks_max", json!(0)),
            ("usable_pages_min", json!(1)),
        ] {
            keys.insert(key.to_owned(), value);
        }
    }
    keys.insert("dynamic_wear_levelling".into(), json!(uniform(rng, 3) == 0));
    keys.insert("static_wear_threshold".into(), json!([0, 0, 1, 3][uniform(rng, 4) as usize]));
}

/// Dies, blocks a die and pages a block of a drawn device, and its multi-plane rule, 0 for none.
#[derive(Clone, Copy)]
struct DrawnShape {
    dies: u64,
    blocks: u64,
    pages: u64,
    together: usize,
}

fn draw(rng: &mut Xoshiro256PlusPlus, ftl: &str, keys: &mut Map<String, Value>) {
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    let protected = below(4) == 0;
    set("ftl", json!(ftl));
    set("power_loss_protection", json!(protected));
    set("spare_read_bytes", json!([1, 16, 64][below(3) as usize]));
    let shape = geometry(rng, ftl, keys);
    times_and_queues(rng, keys, protected, shape.together);
    match ftl {
        "bast" | "fast" | "superblock" => log_blocks(rng, ftl, shape, keys),
        "stripe_map" => stripes(rng, shape, keys),
        "linear" | "stream_hybrid" => units(rng, ftl, shape, protected, keys),
        _ => keys.extend(drawn_keys(ftl, |end| uniform(rng, end))),
    }
}

/// Draw dies, planes, blocks and pages.
fn geometry(rng: &mut Xoshiro256PlusPlus, ftl: &str, keys: &mut Map<String, Value>) -> DrawnShape {
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    let (channels, of_one, planes) = (1 + below(2), 1 + below(2), 1 + below(5) / 4);
    let (dies, blocks) = (channels * of_one * planes, 8 + below(9));
    set("channels", json!(channels));
    set("dies_per_channel", json!(of_one));
    set("planes_per_die", json!(planes));
    let rules = ["none", "any_page", "same_page", "same_block"];
    let together = if planes > 1 { blocks as usize % rules.len() } else { 0 };
    set("multi_plane", json!(rules[together]));
    let apart = below(2) == 0;
    set("independent_planes", json!(together == 0 && apart));
    set("blocks_per_die", json!(blocks * planes));
    let pages = [1, 4, 6, 8, 12][below(5) as usize];
    set("pages_per_block", json!(pages));
    if !matches!(ftl, "superblock" | "stripe_map") {
        set("page_order", json!(["any", "any", "ascending"][below(3) as usize]));
    }
    set("sector_bytes", json!(512));
    set("page_bytes", json!(2048));
    set("spare_bytes", json!(64));
    DrawnShape { dies, blocks, pages, together }
}

/// Draw times of commands and cells, rates, queues, the write cache and the initial state.
fn times_and_queues(
    rng: &mut Xoshiro256PlusPlus,
    keys: &mut Map<String, Value>,
    protected: bool,
    together: usize,
) {
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    for (key, default) in [
        ("read_ns", 25_000),
        ("program_ns", 200_000),
        ("program_high_ns", 900_000),
        ("erase_ns", 1_500_000),
        ("relocate_ns", 1_000),
        ("command_write_ns", 1_000),
        ("command_read_ns", 1_000),
    ] {
        set(key, json!([0, default, default, default / 10][below(4) as usize]));
    }
    let rates = [40_000_000, 400_000_000, 1_000_000_000_000_000u64];
    set("channel_bytes_per_s", json!(rates[below(3) as usize]));
    set("buses", json!(below(2)));
    set("partial_transfer", json!(below(3) == 0));
    set("bus_bytes_per_s", json!(400_000_000));
    set("die_queue", json!(["fifo", "fifo", "reads_first"][below(3) as usize]));
    set("cache_program", json!(protected && below(3) == 0 && together == 0));
    set("merges_side_by_side", json!([1, 1, 2, 3, 8][below(5) as usize]));
    set("commands_at_once", json!([0, 0, 1, 3][below(4) as usize]));
    let cached = [0, 0, 1, 5, 12][below(5) as usize];
    set("write_cache_bytes", json!(2048 * cached));
    set("flush", json!(["eager", "when_needed"][below(2) as usize]));
    set("state", json!(["empty", "sequential", "random", "scattered"][below(4) as usize]));
    set("random_overwrites", json!(1.0));
    set("seed", json!(below(1000)));
    set("spare_factor", json!([0.35, 0.45, 0.6][below(3) as usize]));
}

/// Draw log blocks of FTLs that merge these with data blocks.
fn log_blocks(
    rng: &mut Xoshiro256PlusPlus,
    ftl: &str,
    shape: DrawnShape,
    keys: &mut Map<String, Value>,
) {
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    set("superblock_blocks", json!([1, 1, 2, 3][below(4) as usize]));
    let per_die = ftl == "fast" && below(3) == 0;
    set("log_per_die", json!(per_die));
    let least = if per_die { 1 + shape.dies } else { 2 };
    set("log_blocks", json!(least + below(6)));
}

/// Draw stripes and the memory of their map.
fn stripes(rng: &mut Xoshiro256PlusPlus, shape: DrawnShape, keys: &mut Map<String, Value>) {
    let dies = shape.dies;
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    let widths: Vec<u64> = (1..=dies).filter(|width| dies.is_multiple_of(*width)).collect();
    set("stripe_dies", json!(widths[below(widths.len() as u64) as usize]));
    let memory = [0, 1, 2, 3][below(4) as usize];
    set("map_memory_bytes", json!(2048 * memory));
    set("map_changed_bytes", json!(2048 * memory.min(1 + below(memory.max(1)))));
    set("separate_stripes", json!(below(2) == 0));
    set("stripe_parity", json!(below(2) == 0));
}

/// Draw banks, units and clusters.
fn units(
    rng: &mut Xoshiro256PlusPlus,
    ftl: &str,
    shape: DrawnShape,
    protected: bool,
    keys: &mut Map<String, Value>,
) {
    let DrawnShape { dies, blocks, pages, .. } = shape;
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    let all: Vec<u64> = (1..=dies).filter(|banks| dies.is_multiple_of(*banks)).collect();
    let banks = all[below(all.len() as u64) as usize];
    let unit = dies / banks * pages;
    let sizes: Vec<u64> = (1..=unit).filter(|size| unit.is_multiple_of(*size)).collect();
    let cluster = sizes[below(sizes.len() as u64) as usize];
    // Units for the host; half a page more, so that rounding does not lose the last.
    let logical = 1 + below((banks * blocks / 2).max(1));
    let share = ((logical * unit) as f64 + 0.5) / (dies * blocks * pages) as f64;
    set("spare_factor", json!(1.0 - share));
    set("banks", json!(banks));
    set("unit_bytes", json!(unit * 2048));
    set("cluster_bytes", json!(cluster * 2048));
    set("switch_map_pages", json!([0, 1][below(2) as usize]));
    set("merge_map_pages", json!([0, 1, 3][below(3) as usize]));
    if ftl == "linear" {
        set("open_units", json!(1 + below(2)));
        set("backward_clusters", json!([0, 1, 1000][below(3) as usize]));
        set("rewrites", json!(below(3)));
        set("log_clusters", json!([0, 1, unit / cluster][below(3) as usize]));
        set("open_map_pages", json!(below(2)));
        return;
    }
    streams(rng, keys, banks, unit / cluster, cluster, protected);
}

/// Draw streams, logs and merges of an FTL with `clusters` of `cluster` pages each in a unit.
fn streams(
    rng: &mut Xoshiro256PlusPlus,
    keys: &mut Map<String, Value>,
    banks: u64,
    clusters: u64,
    cluster: u64,
    protected: bool,
) {
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    let units = 1 + below(3);
    let compacts = below(2) == 0 && units * clusters > 1;
    let in_log = 1 + below(units * clusters - u64::from(compacts));
    set("own_channels", json!(below(3) == 0));
    set("streams", json!(1 + below(2)));
    set("resumed_streams", json!([0, 2][below(2) as usize]));
    set("reverse_streams", json!(below(2) == 0));
    set("fold_clusters", json!(below(clusters + 1)));
    set("log_units", json!(units));
    set("log_clusters", json!(in_log));
    set("compact_log", json!(compacts));
    set("log_members", json!([0, 0, 1, 2][below(4) as usize]));
    let small: Vec<u64> = (1..cluster).filter(|size| cluster.is_multiple_of(*size)).collect();
    let small = if small.is_empty() || below(2) == 0 { 0 } else { small[0] };
    set("small_cluster_bytes", json!(small * 2048));
    let held = clusters * (cluster / small.max(1));
    set("small_log_units", json!(u64::from(small > 0)));
    let in_small = if small == 0 { 0 } else { 1 + below((held - 1).max(1)) };
    set("small_log_clusters", json!(in_small));
    set("free_clusters", json!(below(in_log + 1)));
    set("merges_at_once", json!(1 + below(banks)));
    set("reads_per_step", json!([0, 1, 4][below(3) as usize]));
    set("bypass_partial_clusters", json!(below(3) == 0));
    let buffers = below(2) == 0;
    set("rewrite_buffer", json!(buffers));
    // Capacitors save the data of the buffer, or it is lost.
    set("power_loss_protection", json!(protected || buffers && below(2) == 0));
    set("evict_single", json!(below(2) == 0));
    set("log_map_pages", json!(below(2)));
}
