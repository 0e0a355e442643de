//! Concurrent partial writes of units: the last write wins, whatever was read meanwhile.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Io, Mode, Nanos};

use crate::{Profile, SimDevice};

const UNIT: u64 = 2048;
const SECTOR: u64 = 512;

fn device(more: &str) -> SimDevice {
    let overrides = format!(
        r#"{{"channels": 1, "blocks_per_die": 24, "pages_per_block": 8, "metadata_pages": 0, "page_bytes": 4096,
        "spare_bytes": 64, "sector_bytes": {SECTOR}, "mapping_unit_bytes": {UNIT}, "spare_factor": 0.4,
        "gc": "greedy", "state": "sequential", "power_loss_protection": true, "spare_read_bytes": 16{more}}}"#
    );
    let demo = include_str!("../../../../../python/uflip/profiles/demo.toml");
    SimDevice::new("test", Profile::parse(demo, "demo", &overrides).unwrap()).unwrap()
}

/// The host counts its writes of each unit: after all have completed, exactly that version is
/// found.
#[test]
fn recovery_finds_newest_part_of_unit() {
    for (number, more) in (0..).zip([
        r#", "dies_per_channel": 1"#,
        r#", "dies_per_channel": 2"#,
        r#", "dies_per_channel": 2, "die_queue": "reads_first""#,
        r#", "dies_per_channel": 4, "write_streams": 2"#,
        r#", "dies_per_channel": 2, "write_cache_bytes": 8192"#,
        r#", "dies_per_channel": 4, "page_bytes": 2048"#,
    ]) {
        for durability in ["fua", "cached", "flush:3"] {
            let mut device = device(more);
            device.set_durability(durability.parse().unwrap());
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(number);
            let units = device.flash.geometry.shape().logical_pages;
            let mut written: Vec<u64> =
                (0..units).map(|unit| device.version_of(unit).unwrap()).collect();
            let mut sector = 0;
            for _ in 0..6 {
                let depth = 2 + uniform(&mut rng, 7);
                let mut outstanding = 0;
                for _ in 0..600 {
                    // Consecutive parts of units, or random parts of a few units.
                    sector = (sector + 1) % (u64::from(units) * UNIT / SECTOR - 8);
                    let (ahead, size) = match depth % 2 {
                        0 => (0, SECTOR),
                        _ => (uniform(&mut rng, 5), SECTOR * (1 + uniform(&mut rng, 4))),
                    };
                    let stream = uniform(&mut rng, device.info.write_streams()) as u8;
                    let offset = (sector + ahead) * SECTOR;
                    (offset / UNIT..=(offset + size - 1) / UNIT)
                        .for_each(|unit| written[unit as usize] += 1);
                    let (offset, size) = (Bytes(offset), Bytes(size));
                    device.submit(&Io { offset, size, mode: Mode::Write, stream }).unwrap();
                    outstanding += 1;
                    if outstanding == depth {
                        device.complete().unwrap();
                        outstanding -= 1;
                    }
                }
                for _ in 0..outstanding {
                    device.complete().unwrap();
                }
                let cut = device.cut_power(device.now() + Nanos(1_000)).unwrap();
                assert_eq!(cut.pages_lost, 0, "{durability}{more}");
                device.recover().unwrap();
                let versions = (0..units).map(|unit| device.version_of(unit).unwrap());
                assert!(versions.eq(written.iter().copied()), "{durability}{more}");
            }
        }
    }
}
