//! Zones on flash that wears out: data age, resets that lose a zone, and rejected options.

use uflip_core::{Device, Io, Mode, Nanos, ZoneState};
use uflip_sim::{Profile, SimDevice};

use super::worn::{marginal_flash, retries};
use super::zones::{BLOCK, write, zone, zoned};
use super::{io, profile, run_alone, with_ftl};

/// Create a device with one block per zone. Errors are just corrected, and eightfold after seven
/// times the doubling.
fn marginal(changes: &str) -> uflip_core::Result<SimDevice> {
    let text = zoned(&marginal_flash(&with_ftl("zoned", &profile(1, 1, "empty"))), BLOCK * 4096, 1);
    SimDevice::new("test", Profile::parse(&text, "test", changes)?)
}

/// Commands after a reset that loses their zone fail.
#[test]
fn writes_behind_failed_reset_fail() {
    for mode in [Mode::Write, Mode::Append, Mode::Finish, Mode::Reset] {
        // The erase would need its second step, and no block may have more than one.
        let steps = r#"{"erase_step_cycles": 500, "erase_step_ns": 1, "erase_steps_max": 1}"#;
        let mut device = marginal(steps).unwrap();
        let first = write(&device, 0, 0, 2);
        run_alone(&mut device, first);
        let reset = zone(&device, Mode::Reset, 0);
        device.submit(&reset).unwrap();
        let behind = if mode.moves_data() { first } else { reset };
        device.submit(&Io { mode, ..behind }).unwrap();
        let before = device.counters().unwrap();
        let results = [device.complete().map(drop), device.complete().map(drop)];
        let failed: Vec<String> =
            results.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
        assert_eq!(failed.len(), 1, "{mode:?}: the reset itself ends");
        assert!(failed[0].contains("Zone Is Offline (0xbb)"), "{mode:?}: {}", failed[0]);
        assert_eq!(device.zones().unwrap().unwrap().zones[0].state, ZoneState::Offline);
        let done = device.counters().unwrap().since(&before);
        assert_eq!((done.pages_programmed, done.pages_padded), (0, 0), "{mode:?}");
    }
}

/// The data of a zone ages from its first page on, and reads disturb it, until a reset.
#[test]
fn zone_age_is_that_of_oldest_page() {
    let seven = Nanos(7_000_000_000_000);
    let mut device = marginal(
        r#"{"retention_doubling_s": 1000, "retention_by_block": true, "read_disturb_doubling": 1000000}"#,
    )
    .unwrap();
    let fill = |device: &mut SimDevice, number| {
        let request = write(device, number, 0, BLOCK);
        run_alone(device, request);
    };
    fill(&mut device, 0);
    device.wait_until(device.now() + seven);
    fill(&mut device, 1);
    assert_eq!(retries(&mut device, 5), 1, "eight times the errors of a fresh one");
    assert_eq!(retries(&mut device, BLOCK + 5), 0, "the other block is fresh");
    let reset = zone(&device, Mode::Reset, 0);
    run_alone(&mut device, reset);
    fill(&mut device, 0);
    assert_eq!(retries(&mut device, 5), 0, "the block is fresh again");
    device.wait_until(device.now() + seven);
    assert_eq!(retries(&mut device, 5), 1);
    let mut disturbed =
        marginal(r#"{"read_disturb_doubling": 10, "retention_by_block": false}"#).unwrap();
    fill(&mut disturbed, 0);
    assert_eq!(retries(&mut disturbed, 5), 0);
    (0..70).for_each(|_| drop(run_alone(&mut disturbed, io(Mode::Read, 7, 1))));
    assert_eq!(retries(&mut disturbed, 5), 1);
    let reset = zone(&disturbed, Mode::Reset, 0);
    run_alone(&mut disturbed, reset);
    fill(&mut disturbed, 0);
    assert_eq!(retries(&mut disturbed, 5), 0);
}

#[test]
fn zoned_device_refuses_power_loss() {
    let text = zoned(&with_ftl("zoned", &profile(1, 1, "empty")), BLOCK * 4096, 1);
    let keys = r#"{"power_loss_protection": false, "spare_read_bytes": 16, "cache_program": true}"#;
    let refused = Profile::parse(&text, "test", keys).unwrap_err().to_string();
    assert!(refused.contains("This FTL does not use [power_loss]"), "{refused}");
}

#[test]
fn zoned_device_refuses_scrub() {
    for key in [r#""scrub_reads": 5, "read_disturb_doubling": 10"#, r#""scrub_age_s": 5"#] {
        let refused =
            marginal(&format!(r#"{{"retention_by_block": true, {key}}}"#)).unwrap_err().to_string();
        assert!(
            refused.contains("which keep their blocks until the host resets them"),
            "{refused}"
        );
    }
}
