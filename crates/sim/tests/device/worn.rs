//! Merging FTLs on flash that wears out: times compared with sums computed by hand, and the end of
//! life.

use uflip_core::{Device, Io, Mode, Nanos};
use uflip_sim::{Profile, SimDevice};

use super::{
    COMMAND, ERASE, LINK, PROGRAM, READ, TRANSFER, io, part, profile, run_alone, with_ftl,
};

const PAGES: u64 = 16;

/// Return a block map on one die with 8 reserve blocks and error-free flash.
fn text() -> String {
    let text = with_ftl("block_map", &profile(1, 1, "sequential"));
    on_worn_flash(&text)
        .replace("usable_pages_min = 1", "usable_pages_min = 1, replacement_blocks = 8")
}

/// Return the profile with flash that wears out but has no errors yet.
fn on_worn_flash(text: &str) -> String {
    let tables = r#"
        reliability = { wear_law = "power", rated_cycles = 1000, rber_fresh = 1e-9, rber_rated = 1e-9, wear_exponent = 1.0, page_spread = 0.0, high_page_factor = 1.0, retention_doubling_s = 0.0, retention_exponent = 1.0, ecc_codeword_bytes = 512, ecc_correctable_bits = 8, erase_step_cycles = 0, erase_step_ns = 0, erase_steps_max = 0 }
        recovery = { cycles_before = 1000, data_age_s = 0.0, read_retries = 3, retry_gain = 1e-6, fail_uncorrectable = true, factory_bad_share = 0.0, program_failures = 0.0, erase_failures = 0.0, retire = "nothing", retire_rber = 0.1, partial_blocks_max = 0, usable_pages_min = 1 }"#;
    text.replace("sources = {", &format!("{tables}\n        sources = {{"))
}

/// Create a device on flash with `changes`.
fn device(changes: &str) -> SimDevice {
    SimDevice::new("test", Profile::parse(&text(), "test", changes).unwrap()).unwrap()
}

#[test]
fn recovery_restores_block_replacements() {
    let mut device = device(
        r#"{"power_loss_protection": false, "spare_read_bytes": 16, "program_failures": 0.0005,
        "erase_failures": 0.005, "static_wear_threshold": 1}"#,
    );
    let versions = |device: &SimDevice| -> Vec<Option<u64>> {
        (0..20 * PAGES as u32).map(|page| device.version_of(page)).collect()
    };
    for number in 0..300 {
        run_alone(&mut device, write(number % 7));
        if number % 10 < 9 {
            continue;
        }
        let before = versions(&device);
        device.cut_power(device.now()).unwrap();
        device.recover().unwrap();
        assert_eq!(versions(&device), before, "after write {number}");
    }
    let counters = device.counters().unwrap();
    assert!(counters.program_failures > 0 && counters.erase_failures > 0);
    assert!(counters.blocks_levelled > 0);
}

fn write(block: u64) -> Io {
    io(Mode::Write, block * PAGES, 1)
}

#[test]
fn faultless_wearing_flash_adds_no_time() {
    let mut device = device("{}");
    let merge = (PAGES - 1) * (READ + 2 * TRANSFER + PROGRAM);
    let (response, parts) = run_alone(&mut device, write(0));
    assert_eq!(response, COMMAND + LINK + merge + TRANSFER + PROGRAM + ERASE);
    assert_eq!(part(&parts, "retry_ns"), 0);
    assert_eq!(run_alone(&mut device, io(Mode::Read, 5, 1)).0, COMMAND + READ + TRANSFER + LINK);
}

#[test]
fn read_retries_take_time() {
    // At first far more errors than can be corrected, and almost none in a read retry.
    let mut device = device(r#"{"rber_fresh": 0.1, "rber_rated": 0.1}"#);
    let again = READ + TRANSFER;
    let (read, parts) = run_alone(&mut device, io(Mode::Read, 5, 1));
    assert_eq!(read, COMMAND + 2 * again + LINK);
    assert_eq!(part(&parts, "retry_ns"), again);
    let merge = (PAGES - 1) * (again + READ + 2 * TRANSFER + PROGRAM);
    let (response, _) = run_alone(&mut device, write(0));
    assert_eq!(response, COMMAND + LINK + merge + TRANSFER + PROGRAM + ERASE);
}

#[test]
fn uncorrectable_page_fails_read_but_not_merge() {
    let mut device = device(r#"{"rber_fresh": 0.1, "rber_rated": 0.1, "read_retries": 0}"#);
    device.submit(&io(Mode::Read, 5, 1)).unwrap();
    let error = device.complete().unwrap_err();
    assert!(error.to_string().contains("too many bit errors"), "{error}");
    run_alone(&mut device, write(0));
    assert!(device.counters().unwrap().uncorrectable_reads > PAGES - 1);
}

#[test]
fn write_waits_for_slowed_erase() {
    let changes = r#"{"erase_step_cycles": 500, "erase_step_ns": 70000, "erase_steps_max": 9}"#;
    let normal_ns = run_alone(&mut device("{}"), write(0)).0;
    // Two erase steps: it was erased a thousand times before.
    assert_eq!(run_alone(&mut device(changes), write(0)).0, normal_ns + 2 * 70_000);
}

/// On one die nothing runs in parallel: a write takes as long as all the work for it.
#[test]
fn failure_time_is_that_of_its_handling() {
    let (mut failures, mut ended) = (0, 0);
    for seed in 0..40 {
        let mut device = device(&format!(
            r#"{{"seed": {seed}, "program_failures": 0.004, "erase_failures": 0.03}}"#
        ));
        for number in 0..40 {
            let before = device.counters().unwrap();
            device.submit(&write(number % 20)).unwrap();
            let Ok(done) = device.complete() else {
                ended += 1;
                break;
            };
            let counters = device.counters().unwrap().since(&before);
            let programs = counters.pages_programmed * (TRANSFER + PROGRAM);
            let expected = COMMAND
                + LINK
                + counters.pages_read * (READ + TRANSFER)
                + programs
                + counters.blocks_erased * ERASE;
            assert_eq!((done.completed - done.submitted).0, expected, "seed {seed}, {number}");
            failures += counters.program_failures + counters.erase_failures;
        }
    }
    assert!(failures > 50 && ended > 0, "{failures} failures, {ended} ends");
}

#[test]
fn device_without_spare_block_turns_read_only() {
    let mut device = device(r#"{"erase_failures": 0.999999, "replacement_blocks": 3}"#);
    // The fourth block that cannot be erased is one too many.
    for number in 0..3 {
        run_alone(&mut device, write(number));
    }
    assert_eq!(device.counters().unwrap().blocks_retired, 3);
    device.submit(&write(3)).unwrap();
    let error = device.complete().unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    assert!(device.submit(&write(4)).is_err());
    run_alone(&mut device, io(Mode::Read, 0, 1));
}

/// Return the profile with just few enough errors to be corrected at first.
pub(super) fn marginal_flash(text: &str) -> String {
    with_errors(&on_worn_flash(text))
}

fn with_errors(text: &str) -> String {
    text.replace("rber_fresh = 1e-9, rber_rated = 1e-9", "rber_fresh = 0.002, rber_rated = 0.002")
        .replace("ecc_correctable_bits = 8", "ecc_correctable_bits = 40")
        .replace("retry_gain = 1e-6", "retry_gain = 0.1")
}

/// Create a device with just few enough errors to be corrected at first, and eight times as many
/// after seven times `doubling`.
fn marginal(changes: &str) -> SimDevice {
    SimDevice::new(
        "test",
        Profile::parse(&with_errors(&text()), "test", &format!("{{{changes}}}")).unwrap(),
    )
    .unwrap()
}

/// Data written untimed has the device's current age, like data written in time.
#[test]
fn untimed_writes_are_fresh() {
    let mut device = marginal(r#""retention_doubling_s": 1000, "retention_by_block": true"#);
    let seven = Nanos(7_000_000_000_000);
    device.wait_until(seven);
    assert_eq!(retries(&mut device, 5), 1, "the page was written before");
    device.wait_until(device.now() + seven);
    let first = io(Mode::Write, 0, PAGES);
    device.apply([first].into_iter()).unwrap();
    assert_eq!(retries(&mut device, 5), 0);
    device.wait_until(device.now() + seven);
    assert_eq!(retries(&mut device, 5), 1);
}

/// Data saved by capacitors, or merged by recovery, counts as written at power-up, not at the
/// device's last activity.
#[test]
fn data_written_by_recovery_is_fresh() {
    let seven = Nanos(7_000_000_000_000);
    let keys =
        r#""retention_doubling_s": 1000, "retention_by_block": true, "spare_read_bytes": 16"#;
    let saves =
        r#""power_loss_protection": true, "write_cache_bytes": 163840, "flush": "when_needed""#;
    let text = marginal_flash(&profile(1, 1, "sequential"));
    let saves = Profile::parse(&text, "test", &format!("{{{keys}, {saves}}}")).unwrap();
    let mut saves = SimDevice::new("test", saves).unwrap();
    run_alone(&mut saves, io(Mode::Write, 0, 40));
    saves.cut_power(seven).unwrap();
    assert_eq!(saves.recover().unwrap().pages_put_back, 40);
    assert_eq!(retries(&mut saves, 39), 0, "its block was newly opened");
    assert_eq!(retries(&mut saves, 40), 1, "the page was written before");

    // A started stream is merged, and the data taken from elsewhere is programmed again.
    let errors = r#""wear_law": "power", "rated_cycles": 3000, "rber_fresh": 1e-6, "rber_rated": 6.7e-4,
        "wear_exponent": 0.7, "page_spread": 0.0, "high_page_factor": 1.0, "retention_exponent": 0.5,
        "ecc_codeword_bytes": 1024, "ecc_correctable_bits": 40, "erase_step_cycles": 0, "erase_step_ns": 0,
        "erase_steps_max": 0, "cycles_before": 7500, "data_age_s": 0.0, "read_retries": 0, "retry_gain": 1.0,
        "fail_uncorrectable": false, "factory_bad_share": 0.0, "program_failures": 0.0, "erase_failures": 0.0,
        "retire": "nothing", "retire_rber": 0.1, "partial_blocks_max": 0, "usable_pages_min": 1,
        "replacement_blocks": 4, "blocks_per_die": 64, "spare_factor": 0.625, "cache_program": false,
        "state": "sequential", "free_clusters": 0, "power_loss_protection": false"#;
    let mtron = include_str!("../../../../python/uflip/profiles/mtron.toml");
    let merges = Profile::parse(mtron, "mtron", &format!("{{{keys}, {errors}}}")).unwrap();
    let mut merges = SimDevice::new("test", merges).unwrap();
    for cluster in 0..4 {
        run_alone(&mut merges, io(Mode::Write, 8 * cluster, 8));
    }
    merges.cut_power(Nanos(5_000_000_000_000)).unwrap();
    assert!(merges.recover().unwrap().pages_merged > 100);
    let mut wrong = |pages: std::ops::Range<u64>| {
        let before = merges.counters().unwrap();
        pages.for_each(|page| drop(run_alone(&mut merges, io(Mode::Read, page, 1))));
        merges.counters().unwrap().since(&before).uncorrectable_reads
    };
    assert_eq!(wrong(0..256), 0);
    assert!(wrong(2560..2816) > 0, "the page was written before");
}

/// Return the number of read retries of the page.
pub(super) fn retries(device: &mut SimDevice, page: u64) -> u64 {
    let (_, parts) = run_alone(device, io(Mode::Read, page, 1));
    assert_eq!(part(&parts, "retry_ns") % (READ + TRANSFER), 0);
    part(&parts, "retry_ns") / (READ + TRANSFER)
}

#[test]
fn relocation_resets_block_age() {
    let mut device = marginal(r#""retention_doubling_s": 1000, "retention_by_block": true"#);
    assert_eq!(retries(&mut device, 5), 0, "the device is new");
    device.wait_until(Nanos(7_000_000_000_000));
    assert_eq!(retries(&mut device, 5), 1, "eight times the errors of a fresh one");
    // A merge moves all pages of the block: they are fresh, those of its neighbour are not.
    run_alone(&mut device, write(0));
    assert_eq!(retries(&mut device, 5), 0);
    assert_eq!(retries(&mut device, PAGES + 5), 1);
    device.wait_until(device.now() + Nanos(7_000_000_000_000));
    assert_eq!(retries(&mut device, 5), 1);
}

#[test]
fn initial_data_has_configured_age() {
    let aged = r#""retention_doubling_s": 1000, "retention_by_block": true, "data_age_s": 7000"#;
    let mut device = marginal(aged);
    assert_eq!(retries(&mut device, 5), 1);
    run_alone(&mut device, write(0));
    assert_eq!(retries(&mut device, 5), 0);
}

#[test]
fn read_disturb_lasts_until_erase() {
    let mut device = marginal(r#""read_disturb_doubling": 10, "retention_by_block": false"#);
    for _ in 0..10 {
        assert_eq!(retries(&mut device, 5), 0, "at most twice the errors");
    }
    while device.counters().unwrap().pages_read < 70 {
        run_alone(&mut device, io(Mode::Read, 7, 1));
    }
    assert_eq!(retries(&mut device, 5), 1);
    assert_eq!(retries(&mut device, PAGES + 5), 0, "the neighbour was not read");
    run_alone(&mut device, write(0));
    assert_eq!(retries(&mut device, 5), 0);
}
