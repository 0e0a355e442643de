//! A recorded device takes the full path, an unrecorded minimal one the fast path
//! (`src/flash/fast_path.rs`): both behave the same.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown as _, Bytes, Device, Io, Mode, Nanos};
use uflip_sim::{Profile, SimDevice};

use super::profile;

const IOS: u64 = 3_000;

/// The options that a minimal device may have.
const PLAIN: [&str; 8] = [
    "{}",
    r#"{"gc": "greedy"}"#,
    r#"{"gc": "greedy", "relocation": "same_die"}"#,
    r#"{"relocation": "same_die", "copy_back": true}"#,
    r#"{"separate_streams": true, "metadata_pages": 1}"#,
    r#"{"program_high_ns": 900000, "relocate_ns": 3000, "collect_ns": 7000}"#,
    r#"{"static_wear_threshold": 2, "dynamic_wear_levelling": true}"#,
    r#"{"allocator": "most_free", "relocate_at_least": 9, "idle_free_blocks": 0}"#,
];

/// Return all times and parts of a random load at queue depth `at_once`, and the flash counters.
fn trace(device: &mut SimDevice, at_once: u64, seed: u64) -> Vec<u64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let sectors = device.info().capacity_bytes.0 / 512;
    let mut trace = Vec::new();
    let mut complete = |device: &mut SimDevice| {
        let done = device.complete().unwrap();
        trace.extend([done.ticket.0, done.submitted.0, done.completed.0]);
        trace.extend(done.breakdown.parts());
    };
    for number in 0..IOS {
        if number >= at_once {
            complete(device);
        }
        let size = [8, 8, 64, 3][uniform(&mut rng, 4) as usize];
        let begin = uniform(&mut rng, (sectors - size) / 8) * 8;
        let mode = if uniform(&mut rng, 4) == 0 { Mode::Read } else { Mode::Write };
        let io = Io { offset: Bytes(begin * 512), size: Bytes(size * 512), mode, stream: 0 };
        device.submit(&io).unwrap();
        if number % 500 == 499 {
            device.wait_until(device.now() + Nanos(uniform(&mut rng, 30_000_000)));
        }
    }
    (0..at_once).for_each(|_| complete(device));
    trace.push(device.now().0);
    trace.extend(format!("{:?}", device.counters()).bytes().map(u64::from));
    trace
}

#[test]
fn recording_changes_no_times() {
    let text = profile(2, 3, "random");
    for overrides in PLAIN {
        let unrecorded = SimDevice::new("test", Profile::parse(&text, "test", overrides).unwrap());
        let unrecorded = unrecorded.unwrap();
        for (at_once, seed) in [(1, 1), (3, 2), (32, 3)] {
            let (mut unrecorded, mut recorded) = (unrecorded.clone(), unrecorded.clone());
            recorded.record_operations();
            let traces =
                [&mut unrecorded, &mut recorded].map(|device| trace(device, at_once, seed));
            assert!(traces[0] == traces[1], "{overrides}, {at_once} at once");
            assert!(unrecorded.counters().unwrap().blocks_erased > 0, "blocks were collected");
            // Recording may start at any time: from then on both continue alike.
            recorded.recorded_operations();
            unrecorded.record_operations();
            let traces =
                [&mut unrecorded, &mut recorded].map(|device| trace(device, at_once, seed));
            assert!(traces[0] == traces[1], "{overrides}, {at_once} at once, unrecorded first");
        }
    }
}
