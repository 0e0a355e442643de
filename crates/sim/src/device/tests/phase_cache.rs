//! Phases from the phase cache take as long as simulated ones.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown as _, Bytes, Device, Io, Mode, Nanos};

use super::draw::Endurance;
use super::draw_merging;
use crate::SimDevice;
use crate::device::AnyBackend;

const DEVICES: u64 = 240;
const IOS: u64 = 300;

/// Return all times and parts of a random load at queue depth `at_once`, and the flash counters.
fn trace(device: &mut SimDevice, at_once: u64, rng: &mut Xoshiro256PlusPlus) -> Vec<u64> {
    let sectors = device.info().capacity_bytes.0 / 512;
    let mut trace = Vec::new();
    let mut complete = |device: &mut SimDevice| {
        let done = device.complete().expect("no block wears out");
        trace.extend([done.ticket.0, done.submitted.0, done.completed.0]);
        trace.extend(done.breakdown.parts());
    };
    for number in 0..IOS {
        if number >= at_once {
            complete(device);
        }
        let size = [4, 4, 8, 32, 3][uniform(rng, 5) as usize].min(sectors);
        let begin = uniform(rng, sectors - size + 1);
        let mode = if uniform(rng, 5) == 0 { Mode::Read } else { Mode::Write };
        let io = Io { offset: Bytes(begin * 512), size: Bytes(size * 512), mode, stream: 0 };
        device.submit(&io).expect("no block wears out");
        if uniform(rng, 20) == 0 {
            device.wait_until(device.now() + Nanos(uniform(rng, 20_000_000)));
        }
    }
    (0..at_once).for_each(|_| complete(device));
    trace.push(device.now().0);
    trace.extend(format!("{:?}", device.counters()).bytes().map(u64::from));
    trace
}

/// A recorded device simulates every phase.
#[test]
fn phase_cache_matches_simulated_merge() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut cached = 0;
    for seed in 0..DEVICES {
        let (mut profile, text) = draw_merging::profile(&mut rng, seed, Endurance::Lasts);
        // A device that can lose power is always recorded, and one with a write cache keeps a
        // history.
        profile.power_loss = None;
        profile.cache.write_cache_bytes = 0;
        let mut device = SimDevice::new("test", profile).expect("the drawn profile is valid");
        let mut watched = device.clone();
        watched.record_operations();
        let at_once = [1, 1, 2, 8][uniform(&mut rng, 4) as usize];
        let traces = [&mut device, &mut watched]
            .map(|device| trace(device, at_once, &mut Xoshiro256PlusPlus::seed_from_u64(seed)));
        assert!(traces[0] == traces[1], "{text}, {at_once} at once");
        let AnyBackend::Merged(merged) = &device.backend else {
            panic!("the device has a merging FTL")
        };
        cached += usize::from(merged.jobs.has_cached_phase());
    }
    assert!(cached as u64 > DEVICES / 4, "only {cached} devices used the cache");
}
