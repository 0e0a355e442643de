//! A saturating host, whose write cache is always full. Every die collects, and the write
//! amplification equals that of a host that waits for each write.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Device, Mode};
use uflip_sim::{Profile, SimDevice};

use super::{ERASE, PROGRAM, READ, TRANSFER, io, profile};

const DIES: u32 = 32;

/// Create four dies on each of eight channels, with so little spare space that concurrent
/// collections compete for free pages.
fn build_device(cache_bytes: u64, more: &str) -> SimDevice {
    let overrides = format!(
        r#"{{"gc": "greedy", "spare_factor": 0.06, "idle_free_blocks": 0, "write_cache_bytes": {cache_bytes},
            "flush": "eager", "random_overwrites": 1.0{more}}}"#
    );
    let text = profile(8, DIES / 8, "random");
    SimDevice::new("test", Profile::parse(&text, "test", &overrides).unwrap()).unwrap()
}

/// Return write amplification and time per write [ns] in the steady state, with `outstanding` I/Os
/// at a time.
fn measure_steady_state(mut device: SimDevice, outstanding: usize) -> (f64, f64) {
    let pages = device.info().capacity_bytes.0 / 4096;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut write = |device: &mut SimDevice, count: u64| {
        for begun in 0..count {
            device.submit(&io(Mode::Write, uniform(&mut rng, pages), 1)).unwrap();
            if begun + 1 >= outstanding as u64 {
                device.complete().unwrap();
            }
        }
        for _ in 1..(outstanding as u64).min(count) {
            device.complete().unwrap();
        }
    };
    write(&mut device, pages);
    let (before, begin) = (device.counters().unwrap(), device.now());
    write(&mut device, 3 * pages);
    let (after, end) = (device.counters().unwrap(), device.now());
    let written = 3.0 * pages as f64;
    let moved = (after.pages_relocated - before.pages_relocated) as f64;
    (1.0 + moved / written, (end - begin).0 as f64 / written)
}

/// Return the flash time of a write at this write amplification [ns]; a page move is transferred
/// both ways.
fn work_ns(amplification: f64) -> f64 {
    let (read, program, transfer) = (READ as f64, PROGRAM as f64, TRANSFER as f64);
    let erase = ERASE as f64 / 16.0;
    amplification * (program + transfer + erase) + (amplification - 1.0) * (read + transfer)
}

#[test]
fn due_collections_find_free_pages_under_full_load() {
    for more in ["", r#", "relocation": "same_die""#] {
        let (single_rate, _) = measure_steady_state(build_device(0, more), 1);
        for (cache_bytes, outstanding) in [(4 << 20, 1), (0, 256)] {
            let (amplification, ns) =
                measure_steady_state(build_device(cache_bytes, more), outstanding);
            let busy = work_ns(amplification) / ns / f64::from(DIES);
            println!(
                "{more} {cache_bytes} {outstanding}: {amplification:.2} of {single_rate:.2}, busy {busy:.2}"
            );
            // A die that waits for the die that is next does nothing in the meantime.
            assert!(busy > 0.6, "{more} {cache_bytes}: {busy:.2} of the dies are busy");
            assert!(
                amplification < 1.1 * single_rate,
                "{more} {cache_bytes}: {amplification:.2}, {single_rate:.2} alone"
            );
        }
    }
}
