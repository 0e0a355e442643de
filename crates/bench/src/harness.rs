//! The engine against the bare loops.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use serde_json::{Value, json};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Io};
use uflip_engine::{Control, PatternSpec, Resolved, Trace, enforce, run};
use uflip_host::{Data, DirectDevice, FileOptions, NullDevice, now, open_file};

const ROUNDS: usize = 9;
const NULL_IOS: usize = 1_000_000;
const FILE_BYTES: u64 = 256 << 20;
const FILE_IOS: usize = 100_000;
const MEMORY_IOS: usize = 8_000_000;

/// Return all figures of this file.
pub(crate) fn rows() -> Vec<Value> {
    let mut rows = vec![memory(), null()];
    rows.extend(cached_file());
    rows
}

fn pattern(info: &uflip_core::DeviceInfo, io_size: u64, ios: usize) -> Resolved {
    let spec = json!({"kind": "basic", "mode": "read", "location": "random", "io_size": io_size,
        "io_count": ios});
    let spec = PatternSpec::parse(&spec.to_string()).expect("a valid pattern");
    spec.resolve(info.capacity_bytes, info.sector_bytes).expect("the pattern fits the device")
}

fn trace<D: Device<Request = Io> + Send>(device: &mut D, ios: usize) -> Trace {
    let pattern = pattern(device.info(), 4096, ios);
    run(device, pattern, &Control::new(1)).expect("the run succeeds")
}

/// Return the total time per I/O, from the first submission to the last completion [ns].
fn per_io(submit: &[u64], response: &[u64]) -> f64 {
    let (first, last) = (submit[0], submit.len() - 1);
    (submit[last] + response[last] - first) as f64 / submit.len() as f64
}

fn null() -> Value {
    let mut device = NullDevice::new(Bytes(1 << 30));
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let trace = trace(&mut device, NULL_IOS);
        ours.push(per_io(&trace.columns.submit_ns, &trace.columns.response_time_ns));
        let times = bare_clock_pairs(NULL_IOS);
        bare.push(per_io(&times.submit, &times.response));
    }
    row(
        "null device through the engine",
        median(&mut ours),
        "ns an I/O",
        median(&mut bare),
        "<= 60",
    )
}

fn cached_file() -> Vec<Value> {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let path = folder.path().join("cached.bin");
    let mut device = open_cached(&path);
    let file = File::open(&path).expect("open the file");
    let (mut our_median, mut bare_median) = (Vec::new(), Vec::new());
    let (mut our_gap, mut bare_gap) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let trace = trace(&mut device, FILE_IOS);
        our_gap.push(gap(&trace.columns.submit_ns, &trace.columns.response_time_ns));
        our_median.push(median_of(&trace.columns.response_time_ns));
        let times = bare_reads(&file, FILE_BYTES / 4096, FILE_IOS);
        bare_gap.push(gap(&times.submit, &times.response));
        bare_median.push(median_of(&times.response));
    }
    let (ours, bare) = (median(&mut our_median), median(&mut bare_median));
    vec![
        row("cached 4 KiB reads, median response time", ours, "ns", bare, "<= reference + 50"),
        row(
            "cached 4 KiB reads, time between I/Os",
            median(&mut our_gap),
            "ns",
            median(&mut bare_gap),
            "<= 150",
        ),
    ]
}

fn open_cached(path: &Path) -> DirectDevice {
    let options = FileOptions {
        writable: true,
        buffered: true,
        data: Data::Random,
        size: Some(Bytes(FILE_BYTES)),
        destroy: None,
    };
    let opened = open_file(path.to_str().expect("the path is UTF-8"), options, &|| false);
    let (mut device, growth) = opened.expect("create the file");
    let writes = growth.expect("a new file must grow").writes();
    enforce(&mut device, writes, &Control::new(1)).expect("write the file");
    device
}

/// Return the mean time from a completion to the next submission [ns].
fn gap(submit: &[u64], response: &[u64]) -> f64 {
    let ends = submit.iter().zip(response).map(|(s, r)| s + r);
    let gaps = submit.iter().skip(1).zip(ends).map(|(next, end)| next - end);
    let mut gaps: Vec<f64> = gaps.map(|ns| ns as f64).collect();
    median(&mut gaps)
}

/// Measure the resident memory of a trace per I/O.
fn memory() -> Value {
    let mut device = NullDevice::new(Bytes(1 << 30));
    drop(trace(&mut device, 1000));
    let before = resident_bytes();
    let trace = trace(&mut device, MEMORY_IOS);
    let grown = resident_bytes() - before;
    let value = grown / trace.len() as f64;
    row("trace in memory", value, "bytes an I/O", 16.0, "<= 16 (+ 0.1 for pages)")
}

/// Return the resident memory of this process [bytes].
pub(crate) fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").expect("read /proc/self/statm");
    let pages: f64 =
        status.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of pages");
    pages * 4096.0
}

/// Return a figure with its reference.
pub(crate) fn row(name: &str, value: f64, unit: &str, reference: f64, target: &str) -> Value {
    json!({"name": name, "value": value, "unit": unit, "reference": reference,
        "ratio": value / reference, "target": target})
}

fn median_of(values: &[u64]) -> f64 {
    median(&mut values.iter().map(|value| *value as f64).collect::<Vec<_>>())
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

// Bare loops as references: minimal code for the single purpose.

/// The submission and response times [ns] of a bare loop.
struct IoTimes {
    submit: Vec<u64>,
    response: Vec<u64>,
}

impl IoTimes {
    fn new(ios: usize) -> IoTimes {
        IoTimes { submit: vec![u64::MAX; ios], response: vec![u64::MAX; ios] }
    }
}

/// Run two clock readings, a random offset and two stores per I/O, and nothing else.
fn bare_clock_pairs(ios: usize) -> IoTimes {
    let mut times = IoTimes::new(ios);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for i in 0..ios {
        std::hint::black_box(uniform(&mut rng, 1 << 20));
        let start = now();
        let end = now();
        times.submit[i] = start.0;
        times.response[i] = (end - start).0;
    }
    times
}

/// Read 4 KiB blocks of `file` at random.
fn bare_reads(file: &File, slots: u64, ios: usize) -> IoTimes {
    let mut times = IoTimes::new(ios);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut buffer = vec![1u8; 4096];
    for i in 0..ios {
        let offset = uniform(&mut rng, slots) * 4096;
        let start = now();
        // SAFETY: the buffer is 4096 bytes long and not shared.
        let size = unsafe {
            libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), 4096, offset as libc::off_t)
        };
        let end = now();
        assert_eq!(size, 4096, "a whole read");
        times.submit[i] = start.0;
        times.response[i] = (end - start).0;
    }
    times
}
