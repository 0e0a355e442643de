//! Draws cases: half of them are plausible devices, small and near the limits; the other half have
//! implausible keys.

mod features;
mod merging;

use serde_json::{Map, Value, json};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_sim::{ALLOCATORS, Profile, VICTIM_POLICIES};

use crate::swarm::case::{HostLoad, SwarmCase};
use merging::{linear, log, other_ftl, remove_page_map_keys, streams, stripes, worn_blocks};

/// The random generator.
struct CaseRng(Xoshiro256PlusPlus);

impl CaseRng {
    fn below(&mut self, end: u64) -> u64 {
        uniform(&mut self.0, end)
    }

    fn choose<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize].clone()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn share(&mut self) -> f64 {
        // Few digits, so that a line is easy to read.
        self.below(1000) as f64 / 1000.0
    }
}

/// Return case number `index` of `seed`.
pub fn case(seed: u64, index: u64) -> SwarmCase {
    let mut draw = CaseRng(Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(1 << 32) ^ index));
    let base = draw.choose(BASES).to_owned();
    let host =
        HostLoad { seed: 1 + draw.below(1 << 20), depth: draw.choose(&[1, 2, 4, 8, 32, 64]) };
    let mut case = SwarmCase { base, overrides: Map::new(), host };
    let ftl = case.ftl();
    shape(&mut draw, &ftl, &mut case.overrides);
    times(&mut draw, &mut case.overrides);
    common(&mut draw, &mut case.overrides);
    match ftl.as_str() {
        "page_map" | "dftl" => page_map(&mut draw, &ftl, &mut case),
        "fast" => log(&mut draw, &mut case.overrides),
        "stream_hybrid" => streams(&mut draw, &mut case.overrides),
        "linear" => linear(&mut draw, &mut case.overrides),
        "stripe_map" => stripes(&mut draw, &mut case.overrides),
        _ => other_ftl(&mut draw, &mut case.overrides),
    }
    if !matches!(ftl.as_str(), "page_map" | "dftl") && !draw.chance(3) {
        remove_page_map_keys(&mut draw, &mut case.overrides);
    }
    if !matches!(ftl.as_str(), "page_map" | "dftl") && draw.chance(50) {
        set(&mut case.overrides, "page_order", draw.choose(&["any", "ascending", "ascending"]));
    }
    if !matches!(ftl.as_str(), "page_map" | "dftl") && draw.chance(30) {
        worn_blocks(&mut draw, &mut case.overrides);
    }
    if draw.chance(45) {
        draw_edge_values(&mut draw, &mut case);
    }
    if draw.chance(15) {
        draw_invalid_values(&mut draw, &mut case);
    }
    case
}

/// All profiles of block devices; page maps occur more often.
const BASES: &[&str] = &[
    "demo",
    "demo",
    "demo",
    "ofc",
    "tlc-nvme",
    "dftl",
    "dftl",
    "dftl",
    "worn-mlc",
    "worn-mlc",
    "worn-mlc",
    "fast-1gb",
    "fast-1gb",
    "fast-1gb",
    "memoright",
    "transcend-module",
    "mtron",
    "kingston-dti",
    "intel-x25m",
    "samsung",
    "kingston-snv125",
    "kingston-dthx",
    "transcend-mlc",
    "block-map",
];

fn set(overrides: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    overrides.insert(key.to_owned(), value.into());
}

/// Draw the geometry.
fn shape(draw: &mut CaseRng, ftl: &str, overrides: &mut Map<String, Value>) {
    // Most are small, so that there can be many.
    let (dies, rows) = if draw.chance(85) { (2, 7) } else { (4, 11) };
    set(overrides, "channels", 1 + draw.below(dies));
    set(overrides, "dies_per_channel", 1 + draw.below(dies));
    let planes = draw.choose(&[1, 1, 1, 2, 3]);
    let blocks = draw.choose(&[4, 7, 8, 10, 12, 16, 22, 30, 44, 60, 2][..rows]) * planes;
    set(overrides, "planes_per_die", planes);
    set(overrides, "independent_planes", draw.chance(50));
    set(overrides, "blocks_per_die", blocks);
    set(
        overrides,
        "pages_per_block",
        draw.choose(&[1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 63, 64, 65][..rows + 3]),
    );
    let metadata = u64::from(matches!(ftl, "page_map" | "dftl") && draw.chance(25));
    set(overrides, "metadata_pages", metadata);
    let sector = draw.choose(&[512, 512, 4096]);
    set(overrides, "sector_bytes", sector);
    set(overrides, "page_bytes", sector * draw.choose(&[1, 1, 2, 3, 4, 8, 16, 65]));
    set(overrides, "spare_bytes", draw.choose(&[0, 128, 224]));
    set(overrides, "spare_factor", draw.share());
}

/// Draw the times.
fn times(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    for key in ["read_ns", "program_ns", "program_high_ns", "erase_ns"] {
        if draw.chance(40) {
            set(
                overrides,
                key,
                draw.choose(&[0, 1, 999, 25_000, 200_000, 1_000_000, 1_000_000_000u64]),
            );
        }
    }
    let bits = draw.choose(&[2, 2, 2, 3, 4]);
    if bits > 2 {
        set(overrides, "bits_per_cell", bits);
        for key in ["read_middle_ns", "read_high_ns", "program_middle_ns"] {
            set(overrides, key, draw.choose(&[0, 999, 25_000, 1_000_000u64]));
        }
    }
    for key in ["command_read_ns", "command_write_ns", "relocate_ns", "collect_ns", "seek_read_ns"]
    {
        if draw.chance(30) {
            set(overrides, key, draw.choose(&[0, 1, 10, 1_000, 20_000, 1_000_000u64]));
        }
    }
    for key in ["channel_bytes_per_s", "bus_bytes_per_s", "link_bytes_per_s"] {
        if draw.chance(30) {
            set(overrides, key, draw.choose(&[1, 1000, 40_000_000, 1_000_000_000, 1u64 << 50]));
        }
    }
    set(overrides, "buses", draw.choose(&[0, 0, 1, 2, 4]));
    features::controller(draw, overrides);
    set(overrides, "die_queue", draw.choose(&["fifo", "collection_first", "reads_first"]));
    set(overrides, "cache_program", draw.chance(30));
    if overrides["die_queue"] == "fifo" {
        set(overrides, "cache_read", draw.chance(50));
    }
    features::chips(draw, overrides);
}

/// Draw options of every FTL.
fn common(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    set(overrides, "state", draw.choose(&["empty", "sequential", "random", "scattered"]));
    set(overrides, "random_overwrites", draw.choose(&[0.0, 0.5, 1.0, 3.0]));
    set(overrides, "seed", draw.below(1 << 32));
    let page = overrides["page_bytes"].as_u64().expect("the key was drawn");
    let sectors = page / overrides["sector_bytes"].as_u64().expect("the key was drawn");
    let cached_pages = if sectors > 64 { 0 } else { draw.choose(&[0, 0, 1, 2, 9, 40]) };
    set(overrides, "write_cache_bytes", cached_pages * page);
    set(overrides, "flush", draw.choose(&["eager", "when_needed"]));
    set(overrides, "commands_at_once", draw.choose(&[0, 0, 1, 2, 3, 32]));
    set(overrides, "dynamic_wear_levelling", draw.chance(50));
    set(overrides, "static_wear_threshold", draw.choose(&[0, 0, 1, 2, 5]));
    features::host(draw, overrides);
}

/// Draw garbage collection, the map on flash, and wear.
fn page_map(draw: &mut CaseRng, ftl: &str, case: &mut SwarmCase) {
    let wears = case.base == "worn-mlc";
    let overrides = &mut case.overrides;
    let gc = draw.choose(VICTIM_POLICIES);
    let parameter = draw.choose(&["", ":1", ":2", ":3"]);
    let parameter = if ["greedy_window", "d_choices"].contains(&gc) { parameter } else { "" };
    set(overrides, "gc", format!("{gc}{parameter}"));
    set(overrides, "allocator", draw.choose(ALLOCATORS));
    let reserved = draw.choose(&[1, 1, 1, 2, 3]);
    set(overrides, "reserved_blocks", reserved);
    // Two more with the map on flash.
    let idle = if draw.chance(50) { 0 } else { reserved + 3 + draw.choose(&[1, 2, 5]) };
    set(overrides, "idle_free_blocks", idle);
    let same_die = draw.chance(50);
    set(overrides, "relocation", if same_die { "same_die" } else { "allocator" });
    set(overrides, "copy_back", same_die && draw.chance(50));
    set(overrides, "separate_streams", draw.chance(50));
    features::rings(draw, overrides);
    let data = overrides["pages_per_block"].as_u64().expect("the key was drawn")
        - overrides["metadata_pages"].as_u64().expect("the key was drawn");
    let load = draw.choose(&[0, 0, 0, 1, data / 2, data.saturating_sub(1), data]);
    if draw.chance(85) {
        set(overrides, "relocate_at_least", load);
    } else {
        set(overrides, "relocate_at_least", 0);
        set(overrides, "relocate_exactly", load);
    }
    if ftl == "dftl" || (case.base == "demo" && draw.chance(30)) || (wears && draw.chance(40)) {
        set(overrides, "ftl", "dftl");
        set(overrides, "mapping_cache_bytes", draw.choose(&[8, 16, 64, 800, 4096, 65_536]));
        set(overrides, "mapping_cache_policy", draw.choose(&["lru", "segmented_lru"]));
        set(overrides, "mapping_batch_update", draw.chance(50));
        if draw.chance(30) {
            set(overrides, "host_memory_read_ns", draw.choose(&[1, 900, 20_000]));
        }
    }
    if overrides.get("ftl").is_none() && draw.chance(50) {
        units(draw, overrides);
    }
    if overrides.get("ftl").is_none() && draw.chance(35) {
        features::streams(draw, overrides);
    } else if overrides.get("ftl").is_none() && !wears && draw.chance(35) {
        features::slc(draw, overrides);
    }
    if wears {
        wear(draw, overrides);
        features::history(draw, overrides);
    }
    features::parts(draw, overrides);
}

/// Draw mapping units smaller than a flash page.
fn units(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    let number = |key: &str| overrides[key].as_u64().expect("the key was drawn");
    let sectors = number("page_bytes") / number("sector_bytes");
    let units = draw.choose(&[2, 3, 4, 8, 16]);
    if !sectors.is_multiple_of(units) {
        return;
    }
    set(overrides, "mapping_unit_bytes", number("page_bytes") / units);
    set(overrides, "partial_transfer", draw.chance(50));
    if !draw.chance(5) {
        set(overrides, "copy_back", false);
        set(overrides, "relocate_at_least", 0);
        overrides.remove("relocate_exactly");
    }
}

fn wear(draw: &mut CaseRng, overrides: &mut Map<String, Value>) {
    set(overrides, "wear_law", draw.choose(&uflip_sim::WEAR_LAWS));
    set(overrides, "rated_cycles", draw.choose(&[1, 20, 3000]));
    set(overrides, "cycles_before", draw.choose(&[0, 5, 100, 3000]));
    set(overrides, "rber_fresh", draw.choose(&[1e-9, 1e-5, 1e-3]));
    set(overrides, "rber_rated", draw.choose(&[1e-3, 1e-2]));
    set(overrides, "page_spread", draw.choose(&[0.0, 0.5, 2.0]));
    set(overrides, "data_age_s", draw.choose(&[0.0, 1e5, 1e9]));
    set(overrides, "read_retries", draw.choose(&[0, 1, 5, 100]));
    set(overrides, "fail_uncorrectable", draw.chance(50));
    set(overrides, "factory_bad_share", draw.choose(&[0.0, 0.0, 0.01, 0.2, 0.9]));
    set(overrides, "program_failures", draw.choose(&[0.0, 1e-4, 0.01, 0.3]));
    set(overrides, "erase_failures", draw.choose(&[0.0, 1e-4, 0.01, 0.3]));
    set(overrides, "retire", draw.choose(&["nothing", "blocks", "pages", "parity", "halves"]));
    set(overrides, "retire_rber", draw.choose(&[1e-4, 2.8e-3, 0.1]));
    set(overrides, "partial_blocks_max", draw.choose(&[0, 1, 1280]));
    let data = overrides["pages_per_block"].as_u64().expect("the key was drawn")
        - overrides["metadata_pages"].as_u64().expect("the key was drawn");
    set(overrides, "usable_pages_min", draw.choose(&[1, 1, data.div_ceil(2).max(1), data.max(1)]));
    set(overrides, "erase_step_cycles", draw.choose(&[0, 5, 1000]));
    set(overrides, "erase_steps_max", draw.choose(&[1, 8, 20]));
}

/// Draw the least valid spare factor, or a little more or less.
fn draw_edge_values(draw: &mut CaseRng, case: &mut SwarmCase) {
    let accepted = |case: &SwarmCase| {
        let overrides = Value::Object(case.overrides.clone()).to_string();
        Profile::parse(&case.text(), &case.base, &overrides).is_ok()
    };
    let mut tried = case.clone();
    let mut tries = |spare: f64| {
        set(&mut tried.overrides, "spare_factor", spare);
        accepted(&tried)
    };
    // Whole pages, or whole units if units must divide the capacity.
    let number = |key: &str| case.overrides.get(key).and_then(Value::as_u64);
    let count = |key| number(key).expect("the key was drawn");
    let pages = count("channels")
        * count("dies_per_channel")
        * (count("blocks_per_die") / count("planes_per_die") * count("planes_per_die"))
        * count("pages_per_block");
    let step = number("unit_bytes").map_or(1, |unit| unit / count("page_bytes"));
    let spare = |pages_of_host: u64| 1.0 - (pages_of_host as f64 + 0.5) / pages as f64;
    let (mut lower, mut upper) = (0, pages / step + 1);
    while upper - lower > 1 {
        let middle = lower.midpoint(upper);
        *(if tries(spare(middle * step)) { &mut lower } else { &mut upper }) = middle;
    }
    if lower > 0 {
        let host = lower.saturating_sub(draw.choose(&[0, 0, 0, 1, 2, 5])).max(1);
        set(&mut case.overrides, "spare_factor", spare(host * step));
    }
}

/// Draw implausible values.
fn draw_invalid_values(draw: &mut CaseRng, case: &mut SwarmCase) {
    let keys: Vec<String> = case.overrides.keys().cloned().collect();
    for _ in 0..1 + draw.below(3) {
        let key = draw.choose(&keys);
        let numbers = [
            json!(0),
            json!(1),
            json!(2),
            json!(3),
            json!(7),
            json!(1000),
            json!(65_535),
            json!(65_536),
            json!(32_767),
            json!(32_768),
            json!(u32::MAX),
            json!(u32::MAX - 1),
            json!(1u64 << 31),
            json!(1u64 << 32),
            json!(1u64 << 62),
            json!(u64::MAX),
            json!(-1),
            json!(1e-300),
            json!(1e300),
            json!(-0.5),
            json!("nan"),
            json!("inf"),
            json!("-inf"),
            json!(0.999_999_999),
            json!(0.5),
            json!(true),
            json!(""),
        ];
        let value = draw.choose(&numbers);
        // A name or boolean is always rejected as a number: that tests little.
        if !(case.overrides[&key].is_number() ^ value.is_number()) || draw.chance(10) {
            set(&mut case.overrides, &key, value);
        }
    }
}
