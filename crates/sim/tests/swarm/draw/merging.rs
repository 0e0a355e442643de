//! Draws tables of merging FTLs that leave most of them enough space.

use serde_json::{Map, Value};

use uflip_sim::FTLS;

use super::features::history;
use super::{CaseRng, set, wear};

/// FTLs whose keys a function here or in [`super`] draws. Keys of all other FTLs are drawn one by
/// one.
const DRAWN: &[&str] = &[
    "page_map",
    "dftl",
    "bast",
    "fast",
    "superblock",
    "stripe_map",
    "stream_hybrid",
    "linear",
    "zoned",
];

/// Draw the keys of any other FTL.
pub(super) fn other_ftl(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    let undrawn: Vec<&str> = FTLS.iter().copied().filter(|name| !DRAWN.contains(name)).collect();
    let ftl = draw.choose(&undrawn);
    set(overrides, "ftl", ftl);
    overrides.extend(uflip_sim::drawn_keys(ftl, |end| draw.below(end)));
}

/// Remove keys that merging FTLs reject.
pub(super) fn remove_page_map_keys(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    set(overrides, "collect_ns", 0);
    set(overrides, "merges_side_by_side", draw.choose(&[1, 1, 2, 3, 32]));
}

/// Draw block-mapped FTLs: FAST and its family.
pub(super) fn log(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    set(overrides, "ftl", draw.choose(&["fast", "fast", "bast", "superblock"]));
    set(overrides, "superblock_blocks", draw.choose(&[1, 1, 2, 3, 8]));
    let per_die = overrides["ftl"] == "fast" && draw.chance(40);
    set(overrides, "log_per_die", per_die);
    let number = |key: &str| overrides[key].as_u64().expect("the key was drawn");
    let dies = number("channels") * number("dies_per_channel") * number("planes_per_die");
    let least = if per_die { 1 + dies } else { 2 };
    set(overrides, "log_blocks", least + draw.choose(&[0, 0, 1, 2, 3, 7, 15]));
    let fault = overrides["ftl"] == "fast" && draw.chance(30);
    set(overrides, "compat", if fault { "flashsim2010" } else { "none" });
}

/// Draw a merge unit of a few rows of blocks, on several banks.
fn unit(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    let number = |key: &str| overrides[key].as_u64().expect("the key was drawn");
    let dies = number("channels") * number("dies_per_channel") * number("planes_per_die");
    let divisors: Vec<u64> = (1..=dies).filter(|banks| dies.is_multiple_of(*banks)).collect();
    let banks = draw.choose(&divisors);
    let rows = draw.choose(&[1, 1, 1, 1, 2]);
    let unit_pages = rows * dies / banks * number("pages_per_block");
    let clusters: Vec<u64> = (1..=64).filter(|pages| unit_pages.is_multiple_of(*pages)).collect();
    let cluster_pages = draw.choose(&clusters);
    let page = number("page_bytes");
    let blocks = number("blocks_per_die") / number("planes_per_die");
    let per_bank = blocks / rows;
    let logical = 1 + draw.below((banks * per_bank).max(2) - 1);
    // Half a page more, so that rounding does not lose the last one.
    let pages = dies * blocks * number("pages_per_block");
    let spare = 1.0 - ((logical * unit_pages) as f64 + 0.5) / pages as f64;
    set(overrides, "banks", banks);
    set(overrides, "unit_bytes", unit_pages * page);
    set(overrides, "cluster_bytes", cluster_pages * page);
    set(overrides, "spare_factor", spare);
}

pub(super) fn streams(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    unit(draw, overrides);
    let number = |key: &str| overrides[key].as_u64().expect("the key was drawn");
    let (cluster, banks) = (number("cluster_bytes"), number("banks"));
    let clusters = number("unit_bytes") / cluster;
    let (page, cluster_pages) = (number("page_bytes"), cluster / number("page_bytes"));
    set(overrides, "own_channels", draw.chance(30));
    set(overrides, "streams", draw.choose(&[1, 1, 2, 4]));
    set(overrides, "resumed_streams", draw.choose(&[0, 1, 4]));
    set(overrides, "reverse_streams", draw.chance(50));
    set(overrides, "fold_clusters", draw.below(clusters + 1));
    let units = draw.choose(&[1, 1, 2, 3, 4]);
    let compact = draw.chance(50) && units * clusters > 1;
    let log_clusters = 1 + draw.below(units * clusters - u64::from(compact));
    set(overrides, "log_units", units);
    set(overrides, "log_clusters", log_clusters);
    set(overrides, "compact_log", compact);
    set(overrides, "log_members", draw.choose(&[0, 0, 1, 2]));
    let small: Vec<u64> =
        (1..cluster_pages).filter(|pages| cluster_pages.is_multiple_of(*pages)).collect();
    let small = if small.is_empty() || draw.chance(50) { 0 } else { draw.choose(&small) };
    set(overrides, "small_cluster_bytes", small * page);
    let small_units = if small == 0 { 0 } else { draw.choose(&[1, 2]) };
    let in_small = small_units * clusters * (cluster_pages / small.max(1));
    set(overrides, "small_log_units", small_units);
    let small_clusters = if small == 0 { 0 } else { 1 + draw.below((in_small - 1).max(1)) };
    set(overrides, "small_log_clusters", small_clusters);
    set(overrides, "free_clusters", draw.below(log_clusters + 1));
    set(overrides, "merges_at_once", 1 + draw.below(banks));
    set(overrides, "reads_per_step", draw.choose(&[0, 1, 4]));
    set(overrides, "bypass_partial_clusters", draw.chance(30));
    set(overrides, "rewrite_buffer", draw.chance(30));
    set(overrides, "evict_single", draw.chance(50));
    for key in ["switch_map_pages", "merge_map_pages", "log_map_pages"] {
        set(overrides, key, draw.choose(&[0, 0, 1, 3]));
    }
}

pub(super) fn linear(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    unit(draw, overrides);
    set(overrides, "open_units", draw.choose(&[1, 1, 1, 2]));
    set(overrides, "backward_clusters", draw.choose(&[0, 1, 3, 1000]));
    set(overrides, "rewrites", draw.choose(&[0, 1, 2]));
    set(overrides, "log_clusters", draw.choose(&[0, 0, 1]));
    for key in ["open_map_pages", "switch_map_pages", "merge_map_pages"] {
        set(overrides, key, draw.choose(&[0, 0, 1, 3]));
    }
}

pub(super) fn stripes(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    let number = |key: &str| overrides[key].as_u64().expect("the key was drawn");
    let dies = number("channels") * number("dies_per_channel") * number("planes_per_die");
    let page = number("page_bytes");
    let divisors: Vec<u64> = (1..=dies).filter(|width| dies.is_multiple_of(*width)).collect();
    set(overrides, "stripe_dies", draw.choose(&divisors));
    let memory = draw.choose(&[0, 1, 1, 2, 3, 100]);
    set(overrides, "map_memory_bytes", memory * page);
    set(overrides, "map_changed_bytes", (1 + draw.below(memory.max(1))).min(memory) * page);
    set(overrides, "separate_stripes", draw.chance(50));
    set(overrides, "stripe_parity", draw.chance(50));
}

/// Draw flash that wears out, with additional reserve blocks.
pub(super) fn worn_blocks(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    let number = |key: &str| overrides[key].as_u64().expect("the key was drawn");
    let (planes, blocks) = (number("planes_per_die"), number("blocks_per_die"));
    let spare = overrides["spare_factor"].as_f64().expect("the key was drawn");
    let spares = planes * draw.choose(&[0, 1, 2, 5, 12]);
    let whole = blocks + spares;
    set(overrides, "blocks_per_die", whole);
    // The host has as many pages as before.
    set(overrides, "spare_factor", 1.0 - (1.0 - spare) * blocks as f64 / whole as f64);
    for (key, value) in [
        ("wear_exponent", 0.7),
        ("high_page_factor", 1.1),
        ("retention_doubling_s", 2.6e6),
        ("retention_exponent", 0.5),
        ("retry_gain", 0.8),
    ] {
        set(overrides, key, value);
    }
    set(overrides, "ecc_codeword_bytes", 512);
    set(overrides, "ecc_correctable_bits", 8);
    set(overrides, "erase_step_ns", 250_000);
    wear(draw, overrides);
    if !draw.chance(3) {
        set(overrides, "retire", draw.choose(&["nothing", "blocks"]));
    }
    set(overrides, "replacement_blocks", spares);
    if spares > 0 || draw.chance(3) {
        history(draw, overrides);
    }
}
