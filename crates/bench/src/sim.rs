//! The simulator against a bare loop that keeps the same books and nothing else.

use std::time::Instant;

use serde_json::{Value, json};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Io, Mode};
use uflip_engine::AHEAD;
use uflip_sim::{Profile, SimDevice};

use crate::bare_ftl::DIES;

/// One row of the table in which peers were measured.
struct Case {
    name: &'static str,
    blocks: u32,
    pages_per_block: u32,
    spare_factor: f64,
    warm_up: u64,
    measured: u64,
    /// Peers and targets, timed and untimed [M host writes/s].
    timed: &'static str,
    untimed: &'static str,
}

const CASES: [Case; 3] = [
    Case {
        name: "1 GiB, 64 pages per block, spare 0.219",
        blocks: 4096,
        pages_per_block: 64,
        spare_factor: 0.218_75,
        warm_up: 4_000_000,
        measured: 4_000_000,
        timed: ">= 10 (MQSim 0.20)",
        untimed: ">= 50 (ftlsim 14.5)",
    },
    Case {
        name: "64 GiB, 256 pages per block, spare 0.125",
        blocks: 65_536,
        pages_per_block: 256,
        spare_factor: 0.125,
        warm_up: 40_000_000,
        measured: 4_000_000,
        timed: ">= 5",
        untimed: ">= 10 (ftlsim 1.7)",
    },
    Case {
        name: "1 TiB, 256 pages per block, spare 0.125",
        blocks: 1 << 20,
        pages_per_block: 256,
        spare_factor: 0.125,
        // Twice the spare capacity, so that every write makes room; ten times as much would be steady.
        warm_up: 67_000_000,
        measured: 4_000_000,
        timed: ">= 4 (no peer)",
        untimed: ">= 7 (no peer)",
    },
];

/// What the largest case needs, device and bare loop one after the other, and some to spare [bytes].
const MEMORY: u64 = 4 << 30;

/// What a device has beside dies, channels and a page map with pages of 4 KiB, whose collected pages take turns
/// over all dies.
const PLAIN: &str = "{}";
const SAME_DIE: &str = r#"{"relocation": "same_die"}"#;
const COPY_BACK: &str = r#"{"relocation": "same_die", "copy_back": true}"#;
/// The same capacity and blocks of the same size, of pages of 16 KiB.
const TODAY: &str = r#"{"page_bytes": 16384, "pages_per_block": 16, "mapping_unit_bytes": 4096,
    "partial_transfer": true, "die_queue": "reads_first", "program_suspend_ns": 20000, "erase_suspend_ns": 50000,
    "suspensions_max": 8, "slc_blocks": 4, "slc_blocks_max": 16, "slc_read_ns": 30000,
    "slc_program_ns": 100000}"#;

/// Loads whose instructions are counted, by name.
const LOADS: [(&str, &str, Load); 6] = [
    ("alone", PLAIN, ALONE),
    ("same-die", SAME_DIE, ALONE),
    ("copied-back", COPY_BACK, ALONE),
    ("32-at-once", PLAIN, AT_ONCE),
    ("32-KiB", PLAIN, Load { io_pages: 8, ..ALONE }),
    ("today", TODAY, AT_ONCE),
];

/// So many timed pages under the load of this name and nothing else, for whoever counts instructions.
/// False where there is none of this name.
pub(crate) fn one(name: &str, count: u64) -> bool {
    let Some((_, more, load)) = LOADS.iter().find(|(other, ..)| *other == name) else {
        return false;
    };
    let mut device = steady(&CASES[0], more);
    timed(&mut device, *load, count, 2);
    true
}

/// All figures of this file.
pub(crate) fn rows() -> Vec<Value> {
    let enough = uflip_core::available_bytes() >= MEMORY;
    if !enough {
        eprintln!("the simulated device of 1 TiB is left out: it needs 4 GiB of free memory");
    }
    let cases = CASES.iter().filter(|case| enough || case.blocks < 1 << 20);
    let mut rows: Vec<Value> = cases.flat_map(case).collect();
    rows.push(fast());
    rows.push(full_cache());
    rows.extend(busy());
    rows.extend(today());
    rows.push(worn());
    rows
}

/// The device of the first case under more than one page at a time: 32 writes at once, and writes of 32 KiB.
/// The reference is the same device with one write of 4 KiB at a time.
fn busy() -> [Value; 2] {
    let mut device = steady(&CASES[0], PLAIN);
    let mut best_of =
        |load: Load| best((0..3).map(|round| timed(&mut device, load, 500_000, round + 2)));
    let (alone, at_once, large) =
        (best_of(ALONE), best_of(AT_ONCE), best_of(Load { io_pages: 8, ..ALONE }));
    let row = |name: &str, unit: &str, value: f64, target: &str| {
        json!({"name": format!("timed, 1 GiB, {name}"), "value": value, "unit": unit,
            "reference": alone, "ratio": value / alone, "target": target})
    };
    [
        row("32 writes at once", "M host writes/s", at_once, ">= 6"),
        row("writes of 32 KiB", "M pages/s", large, ">= 25"),
    ]
}

/// The device of the first case with what drives of today have, all of it at once: pages of 16 KiB that are mapped in
/// units of 4 KiB, an SLC cache, programs and erases that are suspended for reads. Writes alone, and every eighth I/O
/// a read, so that something is suspended. The reference is the plain device under the same load.
fn today() -> [Value; 2] {
    let (mut device, mut plain) = (steady(&CASES[0], TODAY), steady(&CASES[0], PLAIN));
    [("", "M host writes/s", 0), (", every eighth a read", "M I/Os/s", 8)].map(
        |(name, unit, every)| {
            let mode =
                |number| if every > 0 && number % every == 0 { Mode::Read } else { Mode::Write };
            let best_of = |device: &mut SimDevice| {
                best((0..4).map(|round| timed_of(device, AT_ONCE, 500_000, round + 2, mode)))
            };
            let (value, reference) = (best_of(&mut device), best_of(&mut plain));
            let name =
                format!("timed, 1 GiB, SLC cache, suspend and mapping units, 32 at once{name}");
            json!({"name": name, "value": value, "unit": unit, "reference": reference,
            "ratio": value / reference, "target": ">= 3"})
        },
    )
}

/// Flash at its end, with every fault that a profile can switch on. The reference is the same when it was
/// new, where hardly anything fails.
fn worn() -> Value {
    let rate = |overrides: Value| {
        let mut device = made(profile!("worn-mlc.toml"), &overrides);
        best((0..3).map(|round| timed(&mut device, ALONE, 300_000, round + 2)))
    };
    let (value, reference) = (rate(json!({})), rate(json!({"cycles_before": 0})));
    json!({"name": "timed, worn-mlc with all faults", "value": value, "unit": "M host writes/s",
        "reference": reference, "ratio": value / reference, "target": ">= 3"})
}

/// Random writes of 4 KiB, 32 at once, on a device whose write cache is full, so that thousands of pages
/// wait for the collection of a few dies. The reference is the same device without a cache, where no
/// more pages wait than the host has under way.
fn full_cache() -> Value {
    let load = AT_ONCE;
    let rate = |overrides: Value| {
        let mut device = made(profile!("tlc-nvme.toml"), &overrides);
        // What it begins with, free blocks and places in the cache, is used up first.
        timed(&mut device, load, 40_000, 1);
        best((0..3).map(|round| timed(&mut device, load, 20_000, round + 2)))
    };
    let (value, reference) = (rate(json!({})), rate(json!({"write_cache_bytes": 0})));
    json!({"name": "timed, tlc-nvme with its write cache full", "value": value,
        "unit": "M host writes/s", "reference": reference, "ratio": value / reference,
        "target": ">= 1"})
}

/// FAST on Myers & Sinclair's device, timed, in its steady state. The reference is a loop that draws
/// the same addresses and counts; peers: FlashSim's bare core 0.3, its whole program 0.17, the C++
/// flashsim 0.026 M host writes/s.
fn fast() -> Value {
    let mut device = made(profile!("fast-1gb.toml"), &json!({}));
    let pages = device.info().capacity_bytes.0 / 4096;
    let rate = best((0..3).map(|round| timed(&mut device, ALONE, 1_000_000, round + 1)));
    let counting = best((0..3).map(|round| counting(pages, 4_000_000, round + 1)));
    json!({"name": "timed, FAST on fast-1gb", "value": rate, "unit": "M host writes/s",
        "reference": counting, "ratio": rate / counting, "target": ">= 2 (FlashSim 0.17)"})
}

/// Writes that are only counted, by the block that they go to [M/s].
fn counting(pages: u64, count: u64, seed: u64) -> f64 {
    let begin = Instant::now();
    let mut blocks = vec![0u32; (pages / 64) as usize];
    random_writes(pages, count, seed).for_each(|io| blocks[(io.offset.0 >> 18) as usize] += 1);
    std::hint::black_box(blocks);
    count as f64 / begin.elapsed().as_secs_f64() / 1e6
}

fn case(case: &Case) -> Vec<Value> {
    let before = resident_bytes();
    let mut device = steady(case, PLAIN);
    let pages = device.info().capacity_bytes.0 / 4096;
    let untimed = (0..3).map(|round| untimed(&mut device, pages, case.measured, round + 2));
    let untimed = best(untimed);
    let rate = best((0..3).map(|round| timed(&mut device, ALONE, case.measured / 4, round + 9)));
    let resident = resident_bytes() - before;
    // Its memory is the bare loop's next.
    drop(device);
    let (bare_untimed, bare_timed) =
        crate::bare_ftl::rates(case.blocks, case.pages_per_block, pages, case.warm_up);
    let row = |name: &str, value: f64, bare: f64, target: &str| {
        json!({"name": format!("{name}, {}", case.name), "value": value,
            "unit": "M host writes/s", "reference": bare, "ratio": value / bare, "target": target})
    };
    // The two maps of the bare loop, four bytes a page each.
    let maps = (4 * (pages + u64::from(case.blocks) * u64::from(case.pages_per_block))) as f64;
    let memory = json!({"name": format!("resident, {}", case.name), "value": resident / 1e9,
        "unit": "GB", "reference": maps / 1e9, "ratio": resident / maps,
        "target": if case.blocks == 1 << 20 { "<= 3" } else { "" }});
    let mut rows = vec![
        row("untimed", untimed, bare_untimed, case.untimed),
        row("timed", rate, bare_timed, case.timed),
    ];
    if case.blocks < 1 << 20 {
        for (name, more) in [("moved in their die", SAME_DIE), ("copied back", COPY_BACK)] {
            let mut device = steady(case, more);
            let rounds =
                (0..3).map(|round| timed(&mut device, ALONE, case.measured / 4, round + 9));
            rows.push(row(&format!("timed, {name}"), best(rounds), bare_timed, ""));
        }
    }
    rows.push(memory);
    rows
}

/// Memory of this process that is really there [bytes].
fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line =
        status.lines().find(|line| line.starts_with("VmRSS:")).expect("every process has it");
    let kibibytes = line.split_whitespace().nth(1).expect("a number");
    kibibytes.parse::<f64>().expect("a number") * 1024.0
}

/// The text and the name of a profile.
macro_rules! profile {
    ($name:literal) => {
        (include_str!(concat!("../../../python/uflip/profiles/", $name)), $name)
    };
}
use profile;

/// The device of a profile.
fn made((text, name): (&str, &str), overrides: &Value) -> SimDevice {
    let profile = Profile::parse(text, name, &overrides.to_string()).expect("a profile");
    SimDevice::new("bench", profile).expect("a device")
}

/// The device of a case in its steady state, with what it has beside.
fn steady(case: &Case, more: &str) -> SimDevice {
    let mut overrides = json!({"channels": 8, "dies_per_channel": 4, "blocks_per_die": case.blocks / DIES as u32,
        "pages_per_block": case.pages_per_block, "spare_factor": case.spare_factor,
        "gc": "greedy", "idle_free_blocks": 0, "state": "sequential", "relocation": "allocator",
        "copy_back": false});
    let more: serde_json::Map<String, Value> = serde_json::from_str(more).expect("an object");
    overrides.as_object_mut().expect("an object").extend(more);
    let mut device = made(profile!("demo.toml"), &overrides);
    let pages = device.info().capacity_bytes.0 / 4096;
    device.apply(random_writes(pages, case.warm_up, 1)).expect("it does not wear out");
    device
}

fn random_writes(pages: u64, count: u64, seed: u64) -> impl Iterator<Item = Io> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..count).map(move |_| Io {
        offset: Bytes(uniform(&mut rng, pages) * 4096),
        size: Bytes(4096),
        mode: Mode::Write,
        stream: 0,
    })
}

fn untimed(device: &mut SimDevice, pages: u64, count: u64, seed: u64) -> f64 {
    let begin = Instant::now();
    device.apply(random_writes(pages, count, seed)).expect("it does not wear out");
    count as f64 / begin.elapsed().as_secs_f64() / 1e6
}

/// What a host keeps under way.
#[derive(Clone, Copy)]
struct Load {
    at_once: usize,
    /// Pages of 4 KiB in an I/O.
    io_pages: u64,
}

const ALONE: Load = Load { at_once: 1, io_pages: 1 };
const AT_ONCE: Load = Load { at_once: 32, ..ALONE };

/// So many pages written at random [M pages/s].
#[inline(never)]
fn timed(device: &mut SimDevice, load: Load, count: u64, seed: u64) -> f64 {
    timed_of(device, load, count, seed, |_| Mode::Write)
}

/// So many pages at random [M pages/s]; the sum of all response times kept so that nothing is optimised away. The
/// device hears of I/Os ahead, as from the engine.
#[inline(always)]
fn timed_of(
    device: &mut SimDevice,
    load: Load,
    count: u64,
    seed: u64,
    mode: impl Fn(usize) -> Mode,
) -> f64 {
    let begin = Instant::now();
    let size = 4096 * load.io_pages;
    let places = device.info().capacity_bytes.0 / size;
    let writes = || {
        random_writes(places, count / load.io_pages, seed).enumerate().map(|(number, io)| Io {
            offset: Bytes(io.offset.0 * load.io_pages),
            size: Bytes(size),
            mode: mode(number),
            ..io
        })
    };
    let mut coming = writes().skip(AHEAD);
    let mut sum = 0;
    let mut ended = |device: &mut SimDevice| {
        let completion = device.complete().expect("one is outstanding");
        sum += (completion.completed - completion.submitted).0;
    };
    for (number, io) in writes().enumerate() {
        if number >= load.at_once {
            ended(device);
        }
        device.submit(&io).expect("a simulated device accepts every I/O");
        if let Some(coming) = coming.next() {
            device.prefetch(&coming);
        }
    }
    (0..load.at_once).for_each(|_| ended(device));
    std::hint::black_box(sum);
    count as f64 / begin.elapsed().as_secs_f64() / 1e6
}

fn best(rates: impl Iterator<Item = f64>) -> f64 {
    rates.fold(0.0, f64::max)
}
