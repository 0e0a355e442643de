//! Random small devices that can lose power.

use serde_json::{Map, Value, json};
use uflip_core::random::{Xoshiro256PlusPlus, uniform};

use crate::{ALLOCATORS, Profile, VICTIM_POLICIES};

/// Whether blocks and pages may fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Endurance {
    Lasts,
    WearsOut,
}

/// Draw profiles until one is valid.
pub(super) fn profile(rng: &mut Xoshiro256PlusPlus, flash: Endurance) -> (Profile, String) {
    loop {
        let (base, mut overrides) = base_profile(rng);
        interrupts(rng, &mut overrides);
        suspend(rng, &mut overrides);
        if flash == Endurance::WearsOut {
            wear(rng, &mut overrides);
        }
        let text = match base {
            "dftl" => include_str!("../../../../../python/uflip/profiles/dftl.toml"),
            _ => include_str!("../../../../../python/uflip/profiles/demo.toml"),
        };
        let overrides = Value::Object(overrides).to_string();
        if let Ok(profile) = Profile::parse(text, base, &overrides) {
            return (profile, format!("sim:{base} {overrides}"));
        }
    }
}

/// Draw flash whose blocks and pages fail within the few dozen erases of a test.
fn wear(rng: &mut Xoshiro256PlusPlus, keys: &mut Map<String, Value>) {
    failures(rng, keys);
    let data = keys["pages_per_block"].as_u64().expect("the key was drawn")
        - keys["metadata_pages"].as_u64().expect("the key was drawn");
    let planes = keys["planes_per_die"].as_u64().expect("the key was drawn");
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    // Spare blocks that may fail.
    set("blocks_per_die", json!(planes * (16 + below(9))));
    let retire_rules = ["nothing", "blocks", "pages", "parity", "halves"];
    set("retire", json!(retire_rules[below(5) as usize]));
    set("partial_blocks_max", json!([0, 1, 1280][below(3) as usize]));
    set("usable_pages_min", json!([1, data.div_ceil(2), data][below(3) as usize]));
    let by_errors = below(5) == 0;
    set("error_aware_allocation", json!(by_errors));
    if by_errors {
        set("dynamic_wear_levelling", json!(false));
    }
    set("spare_factor", json!(0.6));
}

/// Draw the laws of wear, retention, read disturb and failures.
pub(super) fn failures(rng: &mut Xoshiro256PlusPlus, keys: &mut Map<String, Value>) {
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    set("wear_law", json!("exponential"));
    set("rated_cycles", json!(20));
    set("cycles_before", json!([0, 10, 20][below(3) as usize]));
    set("rber_fresh", json!(1e-5));
    set("rber_rated", json!(1e-3));
    set("wear_exponent", json!(1.0));
    set("page_spread", json!([0.0, 0.5, 2.0][below(3) as usize]));
    set("high_page_factor", json!(1.0));
    set("retention_doubling_s", json!(0.0));
    set("retention_exponent", json!(1.0));
    set("ecc_codeword_bytes", json!(512));
    set("ecc_correctable_bits", json!(8));
    set("erase_step_cycles", json!(10));
    set("erase_step_ns", json!(1000));
    set("erase_steps_max", json!(20));
    set("data_age_s", json!(0.0));
    set("read_retries", json!([0, 3][below(2) as usize]));
    set("retry_gain", json!(0.7));
    set("fail_uncorrectable", json!(below(8) == 0));
    set("factory_bad_share", json!([0.0, 0.0, 0.02, 0.05][below(4) as usize]));
    for key in ["program_failures", "erase_failures"] {
        set(key, json!([0.0, 0.002, 0.01, 0.03, 0.2][below(5) as usize]));
    }
    set("retire_rber", json!([1e-4, 1e-3, 1e-2][below(3) as usize]));
    if below(3) == 0 {
        set("retention_by_block", json!(true));
        set("read_disturb_doubling", json!(1000));
        set("scrub_reads", json!([3, 20, 1000][below(3) as usize]));
        set("scrub_age_s", json!([0.001, 0.1, 1e6][below(3) as usize]));
    }
}

/// Draw interrupt coalescing, polling and the delay of host completions.
pub(super) fn interrupts(rng: &mut Xoshiro256PlusPlus, keys: &mut Map<String, Value>) {
    let mut below = |end: u64| uniform(rng, end);
    if below(4) > 0 {
        return;
    }
    let polls = below(3) == 0;
    let together = if polls { 1 } else { 1 + below(5) };
    let ns = [0, 1, 20_000, 3_000_000][below(4) as usize];
    let waits = if together == 1 { 0 } else { ns };
    let completion_ns = [0, 1_000, 400_000][below(3) as usize];
    let (completion, completion_ns) =
        if polls { ("polling", completion_ns + 1) } else { ("interrupt", completion_ns) };
    for (key, value) in [
        ("host_completion", json!(completion)),
        ("host_completion_ns", json!(completion_ns)),
        ("coalesced_completions", json!(together)),
        ("coalescing_ns", json!(waits)),
    ] {
        keys.insert(key.to_owned(), value);
    }
}

/// Draw program and erase suspension for devices whose reads go first.
pub(super) fn suspend(rng: &mut Xoshiro256PlusPlus, keys: &mut Map<String, Value>) {
    let mut below = |end: u64| uniform(rng, end);
    if keys["die_queue"] != "reads_first" || keys["cache_program"] == true || below(2) == 0 {
        return;
    }
    let which = below(3);
    if which != 1 {
        keys.insert("program_suspend_ns".into(), json!([0, 1, 20_000][below(3) as usize]));
    }
    if which != 0 {
        keys.insert("erase_suspend_ns".into(), json!([0, 1, 40_000][below(3) as usize]));
    }
    keys.insert("suspensions_max".into(), json!(1 + below(4)));
}

fn base_profile(rng: &mut Xoshiro256PlusPlus) -> (&'static str, Map<String, Value>) {
    let mut below = |end: u64| uniform(rng, end);
    let mut keys = Map::new();
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    let of_map = below(5) == 0;
    let base = if of_map { "dftl" } else { "demo" };
    let protected = below(4) == 0;
    set("power_loss_protection", json!(protected));
    set("spare_read_bytes", json!([1, 16, 64][below(3) as usize]));
    let together = geometry(rng, &mut keys);
    times_and_queues(rng, &mut keys, protected, together);
    blocks_and_state(rng, &mut keys);
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    if of_map {
        set("mapping_cache_bytes", json!([16, 64, 800][below(3) as usize]));
        set("mapping_batch_update", json!(below(2) == 0));
        return (base, keys);
    }
    match below(4) {
        0 => set("write_streams", json!(2 + below(2))),
        1 => {
            set("slc_blocks", json!(1 + below(2)));
            set("slc_blocks_max", json!(2 + below(3)));
            set("slc_read_ns", json!(20_000));
            set("slc_program_ns", json!(100_000));
        }
        _ => {}
    }
    if protected && below(2) == 0 {
        set("mapping_unit_bytes", json!([512, 1024][below(2) as usize]));
        set("copy_back", json!(false));
    }
    (base, keys)
}

/// Draw dies, planes, blocks and pages; return the number of the multi-plane rule, 0 for none.
fn geometry(rng: &mut Xoshiro256PlusPlus, keys: &mut Map<String, Value>) -> usize {
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    for key in ["channels", "dies_per_channel"] {
        set(key, json!(1 + below(2)));
    }
    let planes = 1 + below(5) / 4;
    set("planes_per_die", json!(planes));
    let (apart, blocks) = (below(2) == 0, 8 + below(9));
    let rules = ["none", "any_page", "same_page", "same_block"];
    let together = if planes > 1 { blocks as usize % rules.len() } else { 0 };
    set("multi_plane", json!(rules[together]));
    set("independent_planes", json!(together == 0 && apart));
    set("blocks_per_die", json!(blocks * planes));
    set("pages_per_block", json!([4, 6, 8, 12][below(4) as usize]));
    set("metadata_pages", json!(below(2)));
    set("sector_bytes", json!(512));
    set("page_bytes", json!(2048));
    set("spare_bytes", json!(64));
    set("spare_factor", json!([0.35, 0.45, 0.6][below(3) as usize]));
    together
}

/// Draw times of commands and cells, rates, queues and the write cache.
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
        ("collect_ns", 1_000),
        ("command_write_ns", 1_000),
        ("command_read_ns", 1_000),
    ] {
        set(key, json!([0, default, default, default / 10][below(4) as usize]));
    }
    set("channel_bytes_per_s", json!([40_000_000, 400_000_000][below(2) as usize]));
    set("buses", json!(below(2)));
    set("partial_transfer", json!(below(3) == 0));
    set("die_queue", json!(["fifo", "collection_first", "reads_first"][below(3) as usize]));
    set("cache_program", json!(protected && below(3) == 0 && together == 0));
    if keys["die_queue"] == "fifo" && together == 0 {
        keys.insert("cache_read".into(), json!(below(2) == 0));
    }
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    set("commands_at_once", json!([0, 0, 1, 3][below(4) as usize]));
    set("write_cache_bytes", json!(2048 * [0, 1, 5, 12][below(4) as usize]));
    set("flush", json!(["eager", "when_needed"][below(2) as usize]));
}

/// Draw wear levelling, allocation, garbage collection and the initial state.
fn blocks_and_state(rng: &mut Xoshiro256PlusPlus, keys: &mut Map<String, Value>) {
    let mut below = |end: u64| uniform(rng, end);
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    set("dynamic_wear_levelling", json!(below(2) == 0));
    set("static_wear_threshold", json!([0, 0, 1, 3][below(4) as usize]));
    set("gc", json!(VICTIM_POLICIES[below(VICTIM_POLICIES.len() as u64) as usize]));
    set("allocator", json!(ALLOCATORS[below(ALLOCATORS.len() as u64) as usize]));
    let reserved = 1 + below(2);
    set("reserved_blocks", json!(reserved));
    set("idle_free_blocks", json!([0, reserved + 4][below(2) as usize]));
    let same_die = below(2) == 0;
    set("relocation", json!(if same_die { "same_die" } else { "allocator" }));
    set("copy_back", json!(same_die && below(2) == 0));
    set("separate_streams", json!(below(2) == 0));
    set("state", json!(["empty", "sequential", "random", "scattered"][below(4) as usize]));
    set("random_overwrites", json!(1.0));
    set("seed", json!(below(1000)));
}
