//! The simulator against a bare loop with the same bookkeeping.

use std::time::Instant;

use serde_json::{Value, json};
use uflip_core::{Device, Mode};
use uflip_sim::SimDevice;

use crate::harness::{resident_bytes, row};
use crate::loads::{
    CASES, COPY_BACK, CURRENT_DRIVE, ComparisonCase, IoLoad, NO_OVERRIDES, QUEUED_32, SAME_DIE,
    SINGLE_IO, best, full_cache_of, make_device, profile, random_writes, steady, timed, timed_of,
    untimed,
};

/// The memory for the largest case, device and bare loop one after the other, with a margin
/// [bytes].
const MEMORY: u64 = 4 << 30;

/// The unit of rates.
const RATE: &str = "M host writes/s";

/// Return all figures of this file.
pub(crate) fn rows() -> Vec<Value> {
    let has_memory = uflip_core::available_bytes() >= MEMORY;
    if !has_memory {
        eprintln!("the simulated device of 1 TiB is left out: it needs 4 GiB of free memory");
    }
    let cases = CASES.iter().filter(|case| has_memory || case.blocks < 1 << 20);
    let mut rows: Vec<Value> = cases.flat_map(case).collect();
    rows.push(fast());
    rows.push(full_cache());
    rows.extend(busy());
    rows.extend(current_drive());
    rows.push(worn_flash());
    rows
}

/// Measure the device of the first case with 32 writes at once, and with writes of 32 KiB. The
/// reference is the same device with one write of 4 KiB at a time.
fn busy() -> [Value; 2] {
    let mut device = steady(&CASES[0], NO_OVERRIDES);
    let mut best_of =
        |load: IoLoad| best((0..3).map(|round| timed(&mut device, load, 500_000, round + 2)));
    let (single, at_once, large) =
        (best_of(SINGLE_IO), best_of(QUEUED_32), best_of(IoLoad { io_pages: 8, ..SINGLE_IO }));
    [
        row("timed, 1 GiB, 32 writes at once", at_once, RATE, single, ">= 6"),
        row("timed, 1 GiB, writes of 32 KiB", large, "M pages/s", single, ">= 25"),
    ]
}

/// Measure the device of the first case with features of present drives: pages of 16 KiB mapped in
/// units of 4 KiB, an SLC cache, and program and erase suspend. Writes only, and with every eighth
/// I/O a read, so that suspends occur. The reference is the plain device under the same load.
fn current_drive() -> [Value; 2] {
    let (mut device, mut plain) =
        (steady(&CASES[0], CURRENT_DRIVE), steady(&CASES[0], NO_OVERRIDES));
    [("", RATE, 0), (", every eighth a read", "M I/Os/s", 8)].map(|(name, unit, every)| {
        let mode = |number| if every > 0 && number % every == 0 { Mode::Read } else { Mode::Write };
        let best_of = |device: &mut SimDevice| {
            best((0..4).map(|round| timed_of(device, QUEUED_32, 500_000, round + 2, mode)))
        };
        let (value, reference) = (best_of(&mut device), best_of(&mut plain));
        let name = format!("timed, 1 GiB, SLC cache, suspend and mapping units, 32 at once{name}");
        row(&name, value, unit, reference, ">= 3")
    })
}

/// Measure worn flash, with every fault of a profile. The reference is the same device when new,
/// where failures are rare.
fn worn_flash() -> Value {
    let rate = |overrides: Value| {
        let mut device = make_device(profile!("worn-mlc.toml"), &overrides);
        best((0..3).map(|round| timed(&mut device, SINGLE_IO, 300_000, round + 2)))
    };
    let (value, reference) = (rate(json!({})), rate(json!({"cycles_before": 0})));
    row("timed, worn-mlc with all faults", value, RATE, reference, ">= 3")
}

/// Measure random writes of 4 KiB, 32 at once, on a device with a full write cache, so that
/// thousands of pages wait for garbage collection on a few dies. The reference is the same device
/// without a cache, where at most the host's outstanding pages wait.
fn full_cache() -> Value {
    let rate = |overrides: Value| {
        let mut device = full_cache_of(&overrides);
        best((0..3).map(|round| timed(&mut device, QUEUED_32, 20_000, round + 2)))
    };
    let (value, reference) = (rate(json!({})), rate(json!({"write_cache_bytes": 0})));
    row("timed, tlc-nvme with its write cache full", value, RATE, reference, ">= 1")
}

/// Measure FAST on Myers & Sinclair's device, timed, in its steady state. The reference is a loop
/// that draws the same addresses and counts; other simulators: FlashSim's bare core 0.3, its whole
/// program 0.17, the C++ flashsim 0.026 M host writes/s.
fn fast() -> Value {
    let mut device = make_device(profile!("fast-1gb.toml"), &json!({}));
    let pages = device.info().capacity_bytes.0 / 4096;
    let rate = best((0..3).map(|round| timed(&mut device, SINGLE_IO, 1_000_000, round + 1)));
    let counting = best((0..3).map(|round| counting(pages, 4_000_000, round + 1)));
    row("timed, FAST on fast-1gb", rate, RATE, counting, ">= 2 (FlashSim 0.17)")
}

/// Measure writes that are only counted by their block [M/s].
fn counting(pages: u64, count: u64, seed: u64) -> f64 {
    let begin = Instant::now();
    let mut blocks = vec![0u32; (pages / 64) as usize];
    random_writes(pages, count, seed).for_each(|io| blocks[(io.offset.0 >> 18) as usize] += 1);
    std::hint::black_box(blocks);
    count as f64 / begin.elapsed().as_secs_f64() / 1e6
}

fn case(case: &ComparisonCase) -> Vec<Value> {
    let before = resident_bytes();
    let mut device = steady(case, NO_OVERRIDES);
    let pages = device.info().capacity_bytes.0 / 4096;
    let untimed = (0..3).map(|round| untimed(&mut device, pages, case.measured, round + 2));
    let untimed = best(untimed);
    let rate =
        best((0..3).map(|round| timed(&mut device, SINGLE_IO, case.measured / 4, round + 9)));
    let resident = resident_bytes() - before;
    // The bare loop needs its memory next.
    drop(device);
    let (bare_untimed, bare_timed) =
        crate::bare_ftl::rates(case.blocks, case.pages_per_block, pages, case.warm_up);
    let name = |name: &str| format!("{name}, {}", case.name);
    // The two maps of the bare loop, four bytes a page each.
    let maps = (4 * (pages + u64::from(case.blocks) * u64::from(case.pages_per_block))) as f64;
    let target = if case.blocks == 1 << 20 { "<= 3" } else { "" };
    let memory = row(&name("resident"), resident / 1e9, "GB", maps / 1e9, target);
    let mut rows = vec![
        row(&name("untimed"), untimed, RATE, bare_untimed, case.untimed),
        row(&name("timed"), rate, RATE, bare_timed, case.timed),
    ];
    if case.blocks < 1 << 20 {
        for (option, more) in [("moved in their die", SAME_DIE), ("copied back", COPY_BACK)] {
            let mut device = steady(case, more);
            let rounds =
                (0..3).map(|round| timed(&mut device, SINGLE_IO, case.measured / 4, round + 9));
            rows.push(row(&name(&format!("timed, {option}")), best(rounds), RATE, bare_timed, ""));
        }
    }
    rows.push(memory);
    rows
}
