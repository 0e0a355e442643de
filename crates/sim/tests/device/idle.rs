//! Work of an idle device.

use uflip_core::{Device, Mode, Nanos};
use uflip_sim::SimDevice;

use super::{COMMAND, LINK, PROGRAM, TRANSFER, device, io, random_writes};

#[test]
fn idle_gc_speeds_up_next_writes() {
    let mean = |responses: &[u64]| responses.iter().sum::<u64>() as f64 / responses.len() as f64;
    let mut device = device(2, 2, "random");
    random_writes(&mut device, 1_000, 1);
    let mut rested = device.clone();
    let until = rested.now() + Nanos(1_000_000_000);
    rested.wait_until(until);
    assert_eq!(rested.now(), until);
    assert!(rested.counters().unwrap().blocks_collected_idle > 0);
    // One block per die was collected ahead: 4 × 16 pages.
    let (tired, fresh) = (random_writes(&mut device, 50, 2), random_writes(&mut rested, 50, 2));
    assert!(mean(&fresh) < mean(&tired), "{} < {}", mean(&fresh), mean(&tired));
    let cheap = COMMAND + LINK + TRANSFER + PROGRAM;
    assert!(fresh.iter().all(|response| *response == cheap), "{fresh:?}");
}

#[test]
fn outstanding_io_prevents_idle_work() {
    let mut device = device(2, 2, "random");
    random_writes(&mut device, 1_000, 1);
    let ahead = |device: &SimDevice| device.counters().unwrap().blocks_collected_idle;
    let before = ahead(&device);
    device.submit(&io(Mode::Read, 0, 1)).unwrap();
    // As in an open loop between two arrivals: earlier events have been processed by then.
    let second = device.now() + Nanos(COMMAND + 1);
    assert_eq!(device.next_completion(second), None);
    device.wait_until(second);
    assert_eq!(ahead(&device), before, "it reads");
    device.complete().unwrap();
    device.wait_until(device.now() + Nanos(1_000_000_000));
    assert!(ahead(&device) > before, "the device is idle now");
}
