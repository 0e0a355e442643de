//! All data that was acknowledged as durable is on flash.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus};
use uflip_core::{Device, Io, Nanos};
use uflip_sim::SimDevice;

use super::driver::HostDriver;
use super::live::check_worn_out;

/// The way in which a host requests durability.
#[derive(Clone, Copy, Debug)]
enum DurabilityRequest {
    /// For every write: FUA, or a flush after it.
    Always(&'static str),
    /// For this write alone, while it is submitted.
    SingleWrite,
    /// By a flush command.
    FlushCommand,
}

const REQUESTS: [DurabilityRequest; 4] = [
    DurabilityRequest::Always("fua"),
    DurabilityRequest::Always("flush:1"),
    DurabilityRequest::SingleWrite,
    DurabilityRequest::FlushCommand,
];

/// Do one I/O after another; check that all durable data is on flash. Idle time, in which a device
/// empties its memory, must not add any host data there.
pub fn check_durable(device: &mut SimDevice, seed: u64) {
    // Only every fourth seed calls this function.
    let request = REQUESTS[(seed / 4 % 4) as usize];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut driver = HostDriver::new(device, &mut rng);
    let pages_written = |device: &SimDevice| {
        device.counters().expect("a simulated device has counters").host_pages_written
    };
    for _ in 0..10 {
        let first = driver.io(false);
        // Twice to the same place, which a device may keep in memory.
        for io in [first, first] {
            if let Err(error) = submit_durable(device, &io, request) {
                check_worn_out(&error);
                return;
            }
            let before = pages_written(device);
            let mut idle = device.clone();
            idle.wait_until(device.now() + Nanos(1_000_000_000));
            assert_eq!(pages_written(&idle), before, "{request:?}: {io:?}");
        }
    }
}

fn submit_durable(
    device: &mut SimDevice,
    io: &Io,
    request: DurabilityRequest,
) -> uflip_core::Result<()> {
    let default =
        if let DurabilityRequest::Always(durability) = request { durability } else { "cached" };
    let while_submitted =
        if matches!(request, DurabilityRequest::SingleWrite) { "fua" } else { default };
    device.set_durability(while_submitted.parse().expect("a valid durability"));
    let submitted = device.submit(io);
    device.set_durability(default.parse().expect("a valid durability"));
    submitted.and_then(|_| device.complete())?;
    if matches!(request, DurabilityRequest::FlushCommand) {
        device.submit_flush();
        device.complete()?;
    }
    Ok(())
}
