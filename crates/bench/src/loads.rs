//! Simulated devices, and the loads under which they are timed and their instructions counted.

use std::time::Instant;

use serde_json::{Value, json};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Io, Mode};
use uflip_engine::AHEAD;
use uflip_sim::{Profile, SimDevice};

use crate::bare_ftl::DIES;

/// The text and the name of a profile.
macro_rules! profile {
    ($name:literal) => {
        (include_str!(concat!("../../../python/uflip/profiles/", $name)), $name)
    };
}
pub(crate) use profile;

/// One row of the table that compares with other simulators.
pub(crate) struct ComparisonCase {
    pub(crate) name: &'static str,
    pub(crate) blocks: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) spare_factor: f64,
    pub(crate) warm_up: u64,
    pub(crate) measured: u64,
    /// Targets and other simulators, timed and untimed [M host writes/s].
    pub(crate) timed: &'static str,
    pub(crate) untimed: &'static str,
}

pub(crate) const CASES: [ComparisonCase; 3] = [
    ComparisonCase {
        name: "1 GiB, 64 pages per block, spare 0.219",
        blocks: 4096,
        pages_per_block: 64,
        spare_factor: 0.218_75,
        warm_up: 4_000_000,
        measured: 4_000_000,
        timed: ">= 10 (MQSim 0.20)",
        untimed: ">= 50 (ftlsim 14.5)",
    },
    ComparisonCase {
        name: "64 GiB, 256 pages per block, spare 0.125",
        blocks: 65_536,
        pages_per_block: 256,
        spare_factor: 0.125,
        warm_up: 40_000_000,
        measured: 4_000_000,
        timed: ">= 5",
        untimed: ">= 10 (ftlsim 1.7)",
    },
    ComparisonCase {
        name: "1 TiB, 256 pages per block, spare 0.125",
        blocks: 1 << 20,
        pages_per_block: 256,
        spare_factor: 0.125,
        // Twice the spare capacity, so that every write needs garbage collection; steady state
        // would take ten times as much.
        warm_up: 67_000_000,
        measured: 4_000_000,
        timed: ">= 4 (no peer)",
        untimed: ">= 7 (no peer)",
    },
];

/// The options of the plain device: dies, channels and a page map with pages of 4 KiB, whose
/// relocated pages rotate over all dies.
pub(crate) const NO_OVERRIDES: &str = "{}";
pub(crate) const SAME_DIE: &str = r#"{"relocation": "same_die"}"#;
pub(crate) const COPY_BACK: &str = r#"{"relocation": "same_die", "copy_back": true}"#;
/// The same capacity and block size with pages of 16 KiB.
pub(crate) const CURRENT_DRIVE: &str = r#"{"page_bytes": 16384, "pages_per_block": 16, "mapping_unit_bytes": 4096,
    "partial_transfer": true, "die_queue": "reads_first", "program_suspend_ns": 20000, "erase_suspend_ns": 50000,
    "suspensions_max": 8, "slc_blocks": 4, "slc_blocks_max": 16, "slc_read_ns": 30000,
    "slc_program_ns": 100000}"#;

/// The loads for counting instructions, by name; first those of the first case's device, then
/// others.
const LOADS: [(&str, &str, IoLoad); 6] = [
    ("alone", NO_OVERRIDES, SINGLE_IO),
    ("same-die", SAME_DIE, SINGLE_IO),
    ("copied-back", COPY_BACK, SINGLE_IO),
    ("32-at-once", NO_OVERRIDES, QUEUED_32),
    ("32-KiB", NO_OVERRIDES, IoLoad { io_pages: 8, ..SINGLE_IO }),
    ("today", CURRENT_DRIVE, QUEUED_32),
];

/// Run `count` pages under the load of this name, for counting instructions; print the pages
/// programmed per page. Return false for an unknown name.
pub(crate) fn run_load(name: &str, count: u64) -> bool {
    let entry = LOADS.iter().find(|(other, ..)| *other == name);
    let (mut device, load) = match (entry, name) {
        (Some((_, more, load)), _) => (steady(&CASES[0], more), *load),
        (None, "untimed") => (steady(&CASES[0], NO_OVERRIDES), SINGLE_IO),
        (None, "64-GiB") => (steady(&CASES[1], NO_OVERRIDES), SINGLE_IO),
        (None, "1-TiB") => (steady(&CASES[2], NO_OVERRIDES), SINGLE_IO),
        (None, "fast") => (make_device(profile!("fast-1gb.toml"), &json!({})), SINGLE_IO),
        (None, "full-cache") => (full_cache_of(&json!({})), QUEUED_32),
        (None, "worn") => (make_device(profile!("worn-mlc.toml"), &json!({})), SINGLE_IO),
        (None, _) => return false,
    };
    let programmed = |device: &SimDevice| device.counters().map_or(0, |all| all.pages_programmed);
    let before = programmed(&device);
    if name == "untimed" {
        let pages = device.info().capacity_bytes.0 / 4096;
        untimed(&mut device, pages, count, 2);
    } else {
        timed(&mut device, load, count, 2);
    }
    println!("{}", (programmed(&device) - before) as f64 / count as f64);
    true
}

/// Return a `tlc-nvme` whose initial free blocks and free cache are used up.
pub(crate) fn full_cache_of(overrides: &Value) -> SimDevice {
    let mut device = make_device(profile!("tlc-nvme.toml"), overrides);
    timed_of(&mut device, QUEUED_32, 40_000, 1, |_| Mode::Write);
    device
}

/// Return the device of a profile.
pub(crate) fn make_device((text, name): (&str, &str), overrides: &Value) -> SimDevice {
    let profile = Profile::parse(text, name, &overrides.to_string()).expect("a valid profile");
    SimDevice::new("bench", profile).expect("create the device")
}

/// Return the device of a case in its steady state, with further options.
pub(crate) fn steady(case: &ComparisonCase, more: &str) -> SimDevice {
    let mut overrides = json!({"channels": 8, "dies_per_channel": 4, "blocks_per_die": case.blocks / DIES as u32,
        "pages_per_block": case.pages_per_block, "spare_factor": case.spare_factor,
        "gc": "greedy", "idle_free_blocks": 0, "state": "sequential", "relocation": "allocator",
        "copy_back": false});
    let more: serde_json::Map<String, Value> = serde_json::from_str(more).expect("a JSON object");
    overrides.as_object_mut().expect("a JSON object").extend(more);
    let mut device = make_device(profile!("demo.toml"), &overrides);
    let pages = device.info().capacity_bytes.0 / 4096;
    device.apply(random_writes(pages, case.warm_up, 1)).expect("no block wears out");
    device
}

pub(crate) fn random_writes(pages: u64, count: u64, seed: u64) -> impl Iterator<Item = Io> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..count).map(move |_| Io {
        offset: Bytes(uniform(&mut rng, pages) * 4096),
        size: Bytes(4096),
        mode: Mode::Write,
        stream: 0,
    })
}

#[inline(never)]
pub(crate) fn untimed(device: &mut SimDevice, pages: u64, count: u64, seed: u64) -> f64 {
    let begin = Instant::now();
    device.apply(random_writes(pages, count, seed)).expect("no block wears out");
    count as f64 / begin.elapsed().as_secs_f64() / 1e6
}

/// The queue depth and I/O size of a host.
#[derive(Clone, Copy)]
pub(crate) struct IoLoad {
    pub(crate) queue_depth: usize,
    /// Pages of 4 KiB per I/O.
    pub(crate) io_pages: u64,
}

pub(crate) const SINGLE_IO: IoLoad = IoLoad { queue_depth: 1, io_pages: 1 };
pub(crate) const QUEUED_32: IoLoad = IoLoad { queue_depth: 32, ..SINGLE_IO };

/// Measure random writes of `count` pages [M pages/s].
#[inline(never)]
pub(crate) fn timed(device: &mut SimDevice, load: IoLoad, count: u64, seed: u64) -> f64 {
    timed_of(device, load, count, seed, |_| Mode::Write)
}

/// Measure random I/Os of `count` pages [M pages/s]. The sum of all response times prevents the
/// optimiser from removing them. I/Os are announced to the device in advance, as by the engine.
#[inline(always)]
pub(crate) fn timed_of(
    device: &mut SimDevice,
    load: IoLoad,
    count: u64,
    seed: u64,
    mode: impl Fn(usize) -> Mode,
) -> f64 {
    let begin = Instant::now();
    let size = 4096 * load.io_pages;
    let slots = device.info().capacity_bytes.0 / size;
    let writes = || {
        random_writes(slots, count / load.io_pages, seed).enumerate().map(|(number, io)| Io {
            offset: Bytes(io.offset.0 * load.io_pages),
            size: Bytes(size),
            mode: mode(number),
            ..io
        })
    };
    let mut upcoming = writes().skip(AHEAD);
    let mut sum = 0;
    let mut complete = |device: &mut SimDevice| {
        let completion = device.complete().expect("an I/O is outstanding");
        sum += (completion.completed - completion.submitted).0;
    };
    for (number, io) in writes().enumerate() {
        if number >= load.queue_depth {
            complete(device);
        }
        device.submit(&io).expect("a simulated device accepts every I/O");
        if let Some(upcoming) = upcoming.next() {
            device.prefetch(&upcoming);
        }
    }
    (0..load.queue_depth).for_each(|_| complete(device));
    std::hint::black_box(sum);
    count as f64 / begin.elapsed().as_secs_f64() / 1e6
}

pub(crate) fn best(rates: impl Iterator<Item = f64>) -> f64 {
    rates.fold(0.0, f64::max)
}
