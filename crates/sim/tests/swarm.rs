//! Random devices under random hosts, in both gears: nothing may break, the accounts must add up, and
//! a device that was saved and restored goes on as if nothing had happened.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown, Bytes, Counters, Device, Durability, Error, Io, Mode, Nanos};
use uflip_sim::{ALLOCATORS, Profile, SimDevice, VICTIM_POLICIES};

/// Of each kind: together more than ten million I/Os of hosts.
const CASES: u64 = 400;
/// What a host does to each.
const STEPS: u32 = 1_500;
/// I/Os of a burst in the untimed gear.
const BURST: u64 = 200;

const DIE_QUEUES: &[&str] = &["fifo", "collection_first", "reads_first"];
const BASE: &str = include_str!("../../../python/uflip/profiles/demo.toml");

prop_compose! {
    /// A device of any shape and any policies that leaves the host something.
    fn devices()(
        shape in (1u32..5, 1u32..4, 6u32..20, 1u32..24, 0u32..2, 0u32..3),
        policies in (0..VICTIM_POLICIES.len(), 0..ALLOCATORS.len(), any::<bool>(), any::<bool>()),
        wear in (any::<bool>(), 0u32..5), reserved in 1u32..3, idle in 0u32..3,
        state in prop::sample::select(vec!["empty", "sequential", "random", "scattered"]), spare in 0.0f64..0.9, least in 0u32..4, seed in any::<u32>(),
        cache in (0u32..12, any::<bool>()), mapping in mappings(), wear_out in wears(),
        planes in (1u32..4, any::<bool>()), queue in prop::sample::select(DIE_QUEUES),
    ) -> Value {
        let (channels, dies, blocks, data_pages, metadata, buses) = shape;
        let (gc, allocator, same_die, separate) = policies;
        let open = if separate { 2 } else { 1 };
        let pages = data_pages + metadata;
        // A map on flash has two more blocks in reserve, an open one, and some that it fills: the
        // small pages hold 128 entries.
        let on_flash = mapping.is_some();
        let (kept, page_bytes) = if on_flash { (2, 512) } else { (0, 4096) };
        let of_map = if on_flash { 2 + 2 * blocks / 128 } else { 0 };
        let blocks = blocks + kept + of_map;
        let room = (blocks - reserved - kept - of_map - open - 1) * data_pages;
        let least_spare = 1.0 - f64::from(room) / f64::from(blocks * pages);
        let device = json!({
            "channels": channels, "dies_per_channel": dies,
            "planes_per_die": planes.0, "independent_planes": planes.1, "die_queue": queue,
            "blocks_per_die": blocks * planes.0,
            "pages_per_block": pages, "metadata_pages": metadata, "page_bytes": page_bytes,
            "buses": buses, "bus_bytes_per_s": 100_000_000, "relocate_ns": 1_000,
            "spare_factor": least_spare + (1.0 - least_spare) * (spare + 0.001),
            "gc": VICTIM_POLICIES[gc].to_owned()
                + if VICTIM_POLICIES[gc] == "greedy_window" { ":3" } else { "" },
            "allocator": ALLOCATORS[allocator], "reserved_blocks": reserved,
            "idle_free_blocks": if idle == 0 { 0 } else { reserved + kept + 1 + idle },
            "relocation": if same_die { "same_die" } else { "allocator" }, "copy_back": same_die,
            "separate_streams": separate, "dynamic_wear_levelling": wear.0,
            "static_wear_gap": wear.1, "relocate_at_least": least.min(data_pages / 2),
            "state": state, "seed": seed,
            "write_cache_bytes": cache.0 * page_bytes,
            "flush": if cache.1 { "eager" } else { "when_needed" }, "commands_at_once": seed % 4,
        });
        with(with(device, mapping), wear_out)
    }
}

/// The profile; `None` where the shape leaves no page at all, which it says. Nothing else is refused.
fn made(overrides: &Value) -> Option<Profile> {
    let profile = Profile::parse(BASE, "demo.toml", &overrides.to_string());
    if let Err(error) = &profile {
        let text = error.to_string();
        assert!(text.contains("no room") || text.contains("spare factor"), "{text}");
    }
    profile.ok()
}

/// `device` with more keys.
fn with(mut device: Value, more: Option<Value>) -> Value {
    if let (Some(keys), Some(Value::Object(more))) = (device.as_object_mut(), more) {
        keys.extend(more);
    }
    device
}

prop_compose! {
    /// A map in memory, or on flash.
    fn mappings()(
        on_flash in any::<bool>(), entries in 1u64..500, segmented in any::<bool>(),
        batch in any::<bool>(),
    ) -> Option<Value> {
        on_flash.then(|| json!({
            "ftl": "dftl", "mapping_cache_bytes": 8 * entries, "mapping_batch_update": batch,
            "mapping_cache_policy": if segmented { "segmented_lru" } else { "lru" },
        }))
    }
}

prop_compose! {
    /// Flash that stays as it is, or that wears out within a few dozen erases.
    fn wears()(
        wears_out in prop::bool::weighted(0.4), failures in (0.0f64..0.05, 0.0f64..0.05),
        bad in 0.0f64..0.05, retries in 0u32..5, partial_blocks in 0u32..20,
        retire in prop::sample::select(vec!["nothing", "blocks", "pages", "parity", "halves"]),
    ) -> Option<Value> {
        wears_out.then(|| json!({
            "wear_law": "power", "rated_cycles": 20, "rber_fresh": 1e-5, "rber_rated": 1e-3,
            "wear_exponent": 1.0, "page_spread": 0.5, "high_page_factor": 2.0,
            "retention_doubling_s": 1e6, "retention_exponent": 0.5, "ecc_codeword_bytes": 512,
            "ecc_correctable_bits": 8, "erase_step_cycles": 5, "erase_step_ns": 100_000,
            "erase_steps_max": 8, "cycles_before": 5, "data_age_s": 1e5, "read_retries": retries,
            "retry_gain": 0.8, "fail_uncorrectable": false, "factory_bad_share": bad,
            "program_failures": failures.0, "erase_failures": failures.1, "retire": retire,
            "retire_rber": 1e-3, "partial_blocks_max": partial_blocks, "usable_pages_min": 1,
        }))
    }
}

/// Whether `error` is that of a device that has worn out, the only one that a device may have.
fn is_worn_out(error: &Error) -> bool {
    assert!(error.to_string().contains("read-only"), "{error}");
    true
}

/// How many devices of each kind live, and from which seed they and their hosts are drawn.
///
/// `UFLIP_SWARM_CASES` and `UFLIP_SWARM_SEED` change both: `make soak` runs for long, from a new seed
/// each time, and a failure prints the seed that brings it back.
fn swarm() -> ProptestConfig {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a whole number"))
    };
    let (cases, seed) = (number("UFLIP_SWARM_CASES", CASES), number("UFLIP_SWARM_SEED", 1));
    eprintln!("UFLIP_SWARM_CASES={cases} UFLIP_SWARM_SEED={seed}");
    ProptestConfig {
        cases: cases.try_into().expect("a number of cases"),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Static wear levelling moves a block that is valid as a whole, which costs a page of the map, which
/// fills a block that is collected next, which is wear: garbage has to be collected first where there is
/// no room.
#[test]
fn wear_levelling_does_not_keep_a_map_on_flash_from_collecting() {
    let overrides = json!({"allocator": "most_free", "blocks_per_die": 28,
        "bus_bytes_per_s": 100_000_000, "buses": 1, "channels": 1, "copy_back": true,
        "dies_per_channel": 2, "ftl": "dftl", "gc": "greedy_window:3", "idle_free_blocks": 0,
        "independent_planes": false, "mapping_batch_update": false, "mapping_cache_bytes": 8,
        "mapping_cache_policy": "lru", "metadata_pages": 1, "page_bytes": 512, "pages_per_block": 2,
        "planes_per_die": 2, "relocate_ns": 1000, "relocation": "same_die", "spare_factor": 0.75025,
        "state": "empty", "static_wear_gap": 1});
    let profile = made(&overrides).expect("a device");
    let mut device = SimDevice::new("swarm", profile).expect("known names");
    drive(&mut device, 0);
}

proptest! {
    #![proptest_config(swarm())]

    #[test]
    fn nothing_breaks(overrides in devices(), seed in any::<u64>()) {
        if let Some(profile) = made(&overrides) {
            // It may wear out before it is handed over.
            match SimDevice::new("swarm", profile) {
                Ok(mut device) => {
                    let counters = drive(&mut device, seed);
                    assert!(counters.blocks_erased <= counters.blocks_collected);
                }
                Err(error) => assert!(is_worn_out(&error)),
            }
        }
    }

    #[test]
    fn a_restored_device_goes_on_as_the_saved_one_would(
        overrides in devices(), merging in merging_devices(), seed in any::<u64>(),
    ) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (base, others) = merging;
        for (base, overrides) in [(BASE, overrides), (base.as_str(), others)] {
            if let Ok(profile) = Profile::parse(base, "swarm", &overrides.to_string()) {
                match SimDevice::new("swarm", profile) {
                    Ok(device) => save_and_restore(device, folder.path(), seed),
                    Err(error) => assert!(is_worn_out(&error)),
                }
            }
        }
    }

    #[test]
    fn what_a_durable_write_waited_for_is_on_flash(
        overrides in devices(), merging in merging_devices(), seed in any::<u64>(),
        fua in any::<bool>(),
    ) {
        let (base, others) = merging;
        for (base, overrides) in [(BASE, overrides), (base.as_str(), others)] {
            if let Ok(profile) = Profile::parse(base, "swarm", &overrides.to_string())
                && let Ok(mut device) = SimDevice::new("swarm", profile)
            {
                keeps_its_promise(&mut device, if fua { "fua" } else { "flush:1" }, seed);
            }
        }
    }

    #[test]
    fn nothing_breaks_where_blocks_are_merged(
        (base, overrides) in merging_devices(), seed in any::<u64>(),
    ) {
        let profile = Profile::parse(&base, "swarm", &overrides.to_string());
        let device = SimDevice::new("swarm", profile.expect("a device")).expect("known names");
        let (mut one, mut other) = (device.clone(), device);
        assert_eq!(drive(&mut one, seed), drive(&mut other, seed), "the same seed, the same bytes");
        assert_eq!(one.now(), other.now());
    }
}

/// The base without what page maps need.
fn without_collection() -> String {
    let (before, gc) = BASE.split_once("[gc]").expect("the demo collects");
    let (_, after) = gc.split_once("[wear]").expect("a table follows");
    let (after, _) = after.split_once("[sources]").expect("where they come from is last");
    let lines = before.lines().filter(|line| !line.starts_with("allocator"));
    let sources = "[sources]\ndefault = { kind = \"guess\" }\n";
    lines.collect::<Vec<_>>().join("\n") + "\n[wear]" + after + sources
}

prop_compose! {
    /// A device of any shape with a merging FTL.
    fn merging_devices()(
        shape in (1u32..5, 1u32..4, 12u32..30, 1u32..44), ftl in 0..MERGING.len(), data in 1u32..20,
        state in prop::sample::select(vec!["empty", "sequential", "random", "scattered"]),
        seed in any::<u32>(), cache in (0u32..12, any::<bool>()), reverse in any::<bool>(),
    ) -> (String, Value) {
        let (channels, dies_per_channel, blocks, pages_per_block) = shape;
        let (name, tables) = MERGING[ftl];
        let base = without_collection().replace("\"page_map\"", &format!("\"{name}\"")) + tables;
        // A row of blocks, one a die, is a merge unit; some are not the host's.
        let row = channels * dies_per_channel * pages_per_block;
        let data = data.min(blocks - 11);
        let spare = 1.0 - (f64::from(data * row) + 0.5) / f64::from(blocks * row);
        let mut overrides = json!({
            "channels": channels, "dies_per_channel": dies_per_channel, "blocks_per_die": blocks,
            "pages_per_block": pages_per_block, "page_bytes": 4096, "spare_factor": spare,
            "state": state, "seed": seed, "relocate_ns": 1_000,
            "write_cache_bytes": cache.0 * 4096, "flush": if cache.1 { "eager" } else { "when_needed" },
            "commands_at_once": seed % 4,
        });
        if tables.contains("unit_bytes") {
            overrides["unit_bytes"] = json!(row * 4096);
        }
        if tables.contains("stripe_dies") {
            overrides["stripe_dies"] = json!(if reverse { channels } else { 1 });
        }
        if tables.contains("log_per_die") {
            overrides["log_blocks"] = json!(1 + 2 * channels * dies_per_channel);
        }
        if tables.contains("reverse_streams") {
            overrides["reverse_streams"] = json!(reverse);
            overrides["bypass_partial_clusters"] = json!(!reverse);
        }
        (base, overrides)
    }
}

/// The merging FTLs, and the tables that their profiles need.
const MERGING: &[(&str, &str)] = &[
    ("block_map", ""),
    ("bast", "\n[log]\nlog_blocks = 5\nsuperblock_blocks = 1\ncompat = \"none\"\n"),
    ("fast", "\n[log]\nlog_blocks = 6\nsuperblock_blocks = 1\ncompat = \"none\"\n"),
    ("fast", "\n[log]\nlog_blocks = 3\nsuperblock_blocks = 1\ncompat = \"flashsim2010\"\n"),
    (
        "fast",
        "\n[log]\nlog_blocks = 20\nsuperblock_blocks = 2\ncompat = \"none\"\nlog_per_die = true\n",
    ),
    ("superblock", "\n[log]\nlog_blocks = 3\nsuperblock_blocks = 3\ncompat = \"none\"\n"),
    (
        "stream_hybrid",
        "\n[streams]\nunit_bytes = 0\ncluster_bytes = 4096\nbanks = 1\nown_channels = false\nstreams = 1\n\
         reverse_streams = true\nfold_clusters = 1\nlog_clusters = 3\nlog_units = 4\n\
         free_clusters = 2\nmerges_at_once = 1\nreads_per_step = 1\nresumed_streams = 2\ncompact_log = true\nlog_members = 0\nlog_map_pages = 0\nrewrite_buffer = true\nevict_single = false\n\
         small_cluster_bytes = 0\nsmall_log_clusters = 0\nsmall_log_units = 0\n\
         bypass_partial_clusters = false\nswitch_map_pages = 1\nmerge_map_pages = 1\n",
    ),
    (
        "stripe_map",
        "\n[stripes]\nstripe_dies = 1\nmap_memory_bytes = 8192\nmap_changed_bytes = 4096\n",
    ),
    (
        "linear",
        "\n[linear]\nunit_bytes = 0\ncluster_bytes = 4096\nbanks = 1\nopen_units = 1\n\
         backward_clusters = 3\nrewrites = 1\nopen_map_pages = 1\nswitch_map_pages = 1\n\
         merge_map_pages = 1\n",
    ),
];

/// Let `device` live for a while, save and restore it in the middle of its life, and compare.
fn save_and_restore(mut device: SimDevice, folder: &Path, seed: u64) {
    drive(&mut device, seed);
    // With I/Os under way, pages in the cache and blocks half collected.
    let path = folder.join("device.snapshot");
    device.save(&path).expect("a new file");
    let mut restored = SimDevice::restore(&path).expect("a whole file");
    std::fs::remove_file(&path).expect("just made");
    assert_eq!(restored.info(), device.info());
    assert_eq!(life(&mut restored), life(&mut device), "what was under way");
    assert_eq!(drive(&mut restored, seed ^ 1), drive(&mut device, seed ^ 1));
    assert_eq!(life(&mut restored), life(&mut device));
}

/// Everything that can be seen of a device: what is under way, its clock, what it counted.
fn life(device: &mut SimDevice) -> String {
    let mut done = Vec::new();
    while device.next_completion(Nanos(u64::MAX)).is_some() {
        done.push(device.complete().expect("a completion"));
    }
    format!("{done:?} {} {:?}", device.now(), device.counters())
}

/// A host with up to eight I/Os outstanding that writes, reads, trims, waits and changes gear.
fn drive(device: &mut SimDevice, seed: u64) -> Counters {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let sectors = device.info().capacity_bytes.0 / 512;
    let mut outstanding = 0;
    let mut last_end = Nanos(0);
    for _ in 0..STEPS {
        match uniform(&mut rng, 100) {
            0..60 if outstanding < 8 => match device.submit(&random_io(&mut rng, sectors)) {
                Ok(_) => outstanding += 1,
                Err(error) => assert!(is_worn_out(&error)),
            },
            60 => {
                let until = device.now() + Nanos(uniform(&mut rng, 20_000_000));
                if outstanding == 0 {
                    device.wait_until(until);
                    assert_eq!(device.now(), until);
                }
            }
            61 => {
                let io = random_io(&mut rng, sectors);
                device.trim(io.offset, io.size);
            }
            62 => {
                let ios: Vec<Io> = (0..BURST).map(|_| random_io(&mut rng, sectors)).collect();
                if let Err(error) = device.apply(ios.into_iter()) {
                    assert!(is_worn_out(&error));
                }
            }
            63 => device.set_durability(random_durability(&mut rng)),
            _ if outstanding > 0 => {
                let due =
                    device.next_completion(Nanos(u64::MAX)).expect("something is outstanding");
                outstanding -= 1;
                let done = match device.complete() {
                    Ok(done) => done,
                    Err(error) => {
                        assert!(is_worn_out(&error));
                        continue;
                    }
                };
                assert_eq!(done.completed, due);
                assert!(done.completed >= last_end, "completions come in the order of their time");
                last_end = done.completed;
                let response = (done.completed - done.submitted).0;
                let parts: u64 = done.breakdown.parts().iter().sum();
                assert_eq!(parts, response, "the parts sum to the response time");
            }
            _ => {}
        }
    }
    let counters = device.counters().expect("a simulated device counts");
    check(&counters);
    counters
}

fn random_durability(rng: &mut Xoshiro256PlusPlus) -> Durability {
    let every = 1 + uniform(rng, 5);
    let text = match uniform(rng, 3) {
        0 => "cached".into(),
        1 => "fua".into(),
        _ => format!("flush:{every}"),
    };
    text.parse().expect("one of the forms")
}

/// One I/O after another, of which all that the host was promised is on flash: idle time, in which a
/// device empties its memory, brings nothing of the host's there that was not.
fn keeps_its_promise(device: &mut SimDevice, durability: &str, seed: u64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let sectors = device.info().capacity_bytes.0 / 512;
    device.set_durability(durability.parse().expect("one of the forms"));
    let brought = |device: &SimDevice| device.counters().expect("it counts").host_pages_written;
    for _ in 0..20 {
        let first = random_io(&mut rng, sectors);
        // Twice to the same place: what a device may keep in memory.
        for io in [first, first] {
            let done = device.submit(&io).and_then(|_| device.complete());
            if let Err(error) = done {
                assert!(is_worn_out(&error));
                return;
            }
            let before = brought(device);
            let mut idle = device.clone();
            idle.wait_until(device.now() + Nanos(1_000_000_000));
            assert_eq!(brought(&idle), before, "{durability}: {io:?}");
        }
    }
}

fn random_io(rng: &mut Xoshiro256PlusPlus, sectors: u64) -> Io {
    let size = 1 + uniform(rng, sectors.min(64));
    let offset = uniform(rng, sectors - size + 1);
    let mode = if uniform(rng, 3) == 0 { Mode::Read } else { Mode::Write };
    Io { offset: Bytes(offset * 512), size: Bytes(size * 512), mode }
}

fn check(counters: &Counters) {
    assert_eq!(
        counters.pages_programmed,
        counters.host_pages_written
            + counters.pages_relocated
            + counters.metadata_pages_programmed
            + counters.mapping_pages_programmed
            + counters.program_failures,
        "every program has a reason"
    );
}
