//! The simulated open-channel SSD: vector commands through the engine, all recorded.

use std::time::Instant;

use serde_json::{Value, json};
use uflip_engine::Control;
use uflip_engine::flash::{FlashOutcome, FlashSpec, run_flash};
use uflip_sim::{OpenChannelDevice, OpenChannelProfile};

const ROUNDS: usize = 3;
/// uFLIP-OC stopped µOC1 here; every cycle writes and reads 512 pages.
const CYCLES: u64 = 17_000;

/// The jobs by name, with the pages that one repetition writes and reads.
const JOBS: [(&str, &str, u64); 3] = [
    (
        "vectors-of-1",
        r#"{"channels": 8, "luns": 4, "blocks": 8, "pages": 512, "mix": "W", "threads": 32}"#,
        131_072,
    ),
    (
        "vectors-of-8",
        r#"{"channels": 8, "blocks": 64, "pages": 512, "mix": "W", "vector": 8,
            "iteration": "round_robin"}"#,
        262_144,
    ),
    ("worn", r#"{"kind": "wear"}"#, 1024),
];

/// Return all figures of this file.
pub(crate) fn rows() -> Vec<Value> {
    let [single_page, eight_pages, worn] = JOBS.map(|(_, job, _)| job);
    vec![
        rate(
            "open channel: vectors of 1 page (8 addresses), 32 threads",
            &repeated(single_page, 1),
            ">= 1",
        ),
        rate("open channel: vectors of 8 pages (64 addresses)", &repeated(eight_pages, 1), ">= 1"),
        wear(&repeated(worn, CYCLES)),
    ]
}

/// Run `count` pages under the job of this name, for counting instructions. Return false for an
/// unknown name.
pub(crate) fn run_load(name: &str, count: u64) -> bool {
    let Some((_, job, pages)) = JOBS.iter().find(|(other, ..)| *other == name) else {
        return false;
    };
    seconds(&repeated(job, count.div_ceil(*pages)));
    true
}

fn repeated(job: &str, times: u64) -> Value {
    let mut job: Value = serde_json::from_str(job).expect("valid JSON");
    job["repeat"] = times.into();
    job
}

fn device() -> OpenChannelDevice {
    let text = include_str!("../../../python/uflip/profiles/dfc.toml");
    let profile = OpenChannelProfile::parse(text, "dfc.toml", "{}").expect("a valid profile");
    OpenChannelDevice::new("bench", &profile).expect("create the device")
}

/// Return the seconds that `job` takes on a new device, and its number of commands.
fn seconds(job: &Value) -> (f64, usize) {
    let mut device = device();
    let spec = FlashSpec::parse(&job.to_string()).expect("a valid job");
    let job = spec.resolve(*device.geometry()).expect("the job fits the device");
    let control = Control::new(job.threads() as usize);
    let begin = Instant::now();
    let outcome = run_flash(&mut device, job, &control).expect("the run succeeds");
    let elapsed = begin.elapsed().as_secs_f64();
    match outcome {
        FlashOutcome::Trace(trace) => (elapsed, trace.len()),
        FlashOutcome::Wear(log) => (elapsed, log.len()),
    }
}

fn rate(name: &str, job: &Value, target: &str) -> Value {
    let best = (0..ROUNDS)
        .map(|_| seconds(job))
        .map(|(elapsed, commands)| commands as f64 / elapsed / 1e6)
        .fold(0.0, f64::max);
    json!({"name": name, "value": best, "unit": "M commands/s", "reference": null, "ratio": null,
        "target": target})
}

fn wear(job: &Value) -> Value {
    let (elapsed, _) = seconds(job);
    json!({"name": "uOC1: 17,000 cycles of 512 pages", "value": elapsed, "unit": "s",
        "reference": null, "ratio": null, "target": "< 20"})
}
