//! The cost of analysing a series, and of the stop rule during a run.

use std::hint::black_box;
use std::time::Instant;

use serde_json::{Value, json};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device};
use uflip_engine::{Control, PatternSpec, run};
use uflip_host::NullDevice;
use uflip_method::{AnalysisOptions, analyse};

use crate::harness::{median, row};

const IOS: usize = 1_000_000;
const ROUNDS: usize = 5;

/// Return all figures of this file.
pub(crate) fn rows() -> Vec<Value> {
    vec![analysis_row(), judged_run_row()]
}

/// Return a start-up of 20,000, then three levels with period 128, with noise.
fn series() -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let level = |index: usize| match index {
        0..20_000 => 100.0,
        _ if index.is_multiple_of(128) => 20_000.0,
        _ if index.is_multiple_of(16) => 1_000.0,
        _ => 100.0,
    };
    let noise = |random: &mut _| 1000.0 + uniform(random, 100) as f64;
    (0..IOS).map(|index| level(index) * noise(&mut random)).collect()
}

fn analysis_row() -> Value {
    let times = series();
    let mut analysis_ms: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            black_box(analyse(&times, AnalysisOptions::default()).expect("valid response times"));
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let mut sorting_ms: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            let mut ordered = times.clone();
            ordered.sort_unstable_by(f64::total_cmp);
            black_box(ordered);
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    row(
        "analysing a million response times",
        median(&mut analysis_ms),
        "ms",
        median(&mut sorting_ms),
        "< 300",
    )
}

/// Compare an I/O on a null device with an unsatisfiable stop rule to one without a rule.
fn judged_run_row() -> Value {
    let mut device = NullDevice::new(Bytes(1 << 30));
    let base = json!({"kind": "basic", "mode": "read", "location": "random", "io_size": 4096});
    let mut per_io = |key: &str, value: Value| {
        let mut spec = base.clone();
        spec[key] = value;
        let spec = PatternSpec::parse(&spec.to_string()).expect("a valid pattern");
        let info = device.info();
        let pattern = spec
            .resolve(info.capacity_bytes, info.sector_bytes)
            .expect("the pattern fits the device");
        let trace = run(&mut device, pattern, &Control::new(1)).expect("the run succeeds");
        trace.elapsed_ns() as f64 / trace.len() as f64
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let never = json!({"half_width": 0.0001, "min_ios": IOS / 2, "max_ios": IOS});
        with.push(per_io("stop", never));
        without.push(per_io("io_count", json!(IOS)));
    }
    row(
        "null device, judged while it runs",
        median(&mut with),
        "ns an I/O",
        median(&mut without),
        "<= reference + 10",
    )
}
