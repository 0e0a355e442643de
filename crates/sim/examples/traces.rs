//! Hashes of all shipped devices under several loads, a line each. A hash covers all completions,
//! their parts and the counters, so two builds of the simulator can be compared with `diff`.
//!
//! ```text
//! cargo run --release -p uflip-sim --example traces [NAME…] > after
//! ```
//!
//! An optimization must not change any line. The swarm draws small, unusual devices
//! (`UFLIP_SWARM_LIST=1`, see `tests/swarm/mod.rs`); these are the users' devices.

use std::hash::Hasher as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use twox_hash::XxHash3_64;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown as _, Bytes, Device, Io, Mode, Nanos};
use uflip_sim::{Profile, SimDevice};

/// I/Os of a load; the host pauses after half of them.
const IOS: u64 = 6_000;
const PAUSE: Nanos = Nanos(3_000_000);

/// Return variants of a profile; invalid ones are skipped.
fn variants() -> Vec<Value> {
    // Small enough for a few thousand writes to trigger garbage collection.
    let small = json!({"blocks_per_die": 24, "random_overwrites": 1.0});
    let with = |more: Value| {
        let mut all = small.clone();
        let more = more.as_object().expect("a JSON object").clone();
        all.as_object_mut().expect("a JSON object").extend(more);
        all
    };
    vec![
        json!({}),
        small.clone(),
        with(json!({"gc": "greedy", "channels": 8, "dies_per_channel": 4})),
        with(json!({"gc": "greedy", "relocation": "same_die"})),
        with(json!({"gc": "greedy", "relocation": "same_die", "copy_back": true})),
        with(json!({"die_queue": "reads_first"})),
        with(json!({"die_queue": "collection_first", "relocate_ns": 3_000, "collect_ns": 5_000})),
        with(json!({"buses": 1, "bus_bytes_per_s": 400_000_000})),
        with(json!({"cache_program": true})),
        with(json!({"write_cache_bytes": 1 << 20})),
        with(json!({"write_cache_bytes": 0, "separate_streams": true})),
        with(json!({"planes_per_die": 2})),
    ]
}

/// Queue depth, maximum size in KiB, reads of ten I/Os, and whether they are sequential.
const LOADS: [(usize, u64, u64, bool); 8] = [
    (1, 4, 0, false),
    (1, 32, 0, false),
    (1, 64, 5, false),
    (1, 32, 0, true),
    (8, 16, 3, true),
    (16, 4, 5, false),
    (32, 4, 0, false),
    (32, 128, 2, false),
];

fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/uflip/profiles");
    let entries = std::fs::read_dir(folder).expect("list the shipped profiles");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("read the folder entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    for file in files {
        let name =
            file.file_stem().expect("the path has a file name").to_string_lossy().into_owned();
        if !(only.is_empty() || only.contains(&name)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("read the profile");
        for overrides in variants() {
            let made = Profile::parse(&text, &name, &overrides.to_string())
                .and_then(|profile| SimDevice::new(&name, profile));
            let Ok(device) = made else { continue };
            for load in LOADS {
                let trace = trace(device.clone(), load);
                println!("{name} {overrides} {load:?} {trace:016x}");
            }
        }
    }
}

/// Return a hash of all visible effects of the load on the device.
fn trace(mut device: SimDevice, (at_once, kib, reads, in_order): (usize, u64, u64, bool)) -> u64 {
    let mut hash = XxHash3_64::with_seed(0);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(kib + reads);
    let sector = device.info().sector_bytes.0;
    let sectors = device.info().capacity_bytes.0 / sector;
    let (mut outstanding, mut next) = (0, 0);
    for number in 0..IOS {
        if outstanding == at_once {
            complete(&mut device, &mut hash);
            outstanding -= 1;
        }
        if number == IOS / 2 {
            device.wait_until(device.now() + PAUSE);
        }
        // Mostly whole pages, sometimes parts.
        let most = (kib * 1024 / sector).min(sectors);
        let size = if uniform(&mut rng, 8) > 0 { most } else { 1 + uniform(&mut rng, most) };
        let anywhere = uniform(&mut rng, sectors / most) * most;
        let goes_on = in_order && next + size <= sectors;
        let begin = if goes_on { next } else { anywhere.min(sectors - size) };
        next = begin + size;
        let mode = if uniform(&mut rng, 10) < reads { Mode::Read } else { Mode::Write };
        let io = Io { offset: Bytes(begin * sector), size: Bytes(size * sector), mode, stream: 0 };
        device.prefetch(&io);
        match device.submit(&io) {
            Ok(_) => outstanding += 1,
            Err(error) => hash.write(error.to_string().as_bytes()),
        }
    }
    (0..outstanding).for_each(|_| complete(&mut device, &mut hash));
    hash.write(format!("{:?} {}", device.counters(), device.now()).as_bytes());
    hash.finish()
}

fn complete(device: &mut SimDevice, hash: &mut XxHash3_64) {
    match device.complete() {
        Ok(done) => {
            let times = [done.ticket.0, done.submitted.0, done.completed.0];
            times.iter().chain(done.breakdown.parts()).for_each(|number| hash.write_u64(*number));
        }
        Err(error) => hash.write(error.to_string().as_bytes()),
    }
}
