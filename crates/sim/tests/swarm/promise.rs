//! A host that is told that its data is durable finds all of it on flash.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus};
use uflip_core::{Device, Io, Nanos};
use uflip_sim::SimDevice;

use super::driver::Driver;
use super::live::spent;

/// How a host asks for that.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Of every write: to go to the flash, or to be followed by a flush.
    Always(&'static str),
    /// Of this write alone, while it is submitted.
    OfOne,
    /// With a command of its own.
    ByCommand,
}

const WAYS: [Asked; 4] =
    [Asked::Always("fua"), Asked::Always("flush:1"), Asked::OfOne, Asked::ByCommand];

/// One I/O after another, of which all that the host was promised is on flash: idle time, in which a
/// device empties its memory, brings nothing of the host's there that was not.
pub fn is_kept(device: &mut SimDevice, seed: u64) {
    // Every fourth seed comes here.
    let asked = WAYS[(seed / 4 % 4) as usize];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut driver = Driver::new(device, &mut rng);
    let brought = |device: &SimDevice| device.counters().expect("it counts").host_pages_written;
    for _ in 0..10 {
        let first = driver.io(false);
        // Twice to the same place: what a device may keep in memory.
        for io in [first, first] {
            if let Err(error) = done(device, &io, asked) {
                spent(&error);
                return;
            }
            let before = brought(device);
            let mut idle = device.clone();
            idle.wait_until(device.now() + Nanos(1_000_000_000));
            assert_eq!(brought(&idle), before, "{asked:?}: {io:?}");
        }
    }
}

fn done(device: &mut SimDevice, io: &Io, asked: Asked) -> uflip_core::Result<()> {
    let usual = if let Asked::Always(durability) = asked { durability } else { "cached" };
    let while_submitted = if matches!(asked, Asked::OfOne) { "fua" } else { usual };
    device.set_durability(while_submitted.parse().expect("one of the forms"));
    let submitted = device.submit(io);
    device.set_durability(usual.parse().expect("one of the forms"));
    submitted.and_then(|_| device.complete())?;
    if matches!(asked, Asked::ByCommand) {
        device.submit_flush();
        device.complete()?;
    }
    Ok(())
}
