//! Failures of the table `[failures]`, compared with the same seed without it.

use uflip_core::{AddressStatus, Device, FlashOp, Nanos, Ppa};
use uflip_sim::OpenChannelDevice;

use super::{at, command, device, page};

/// Create a device whose blocks are at their rated erases, with `more` overrides.
fn rated(more: &str) -> OpenChannelDevice {
    device(&format!(
        r#"{{"erases": 3000, "erase_steps_max": 1000, "retry_permille": 0, "channels": 2,
            "luns_per_channel": 2, "blocks_per_plane": 250, {more}}}"#
    ))
}

/// Return overrides for all keys of `[failures]`.
fn failures(gain: f64, bad: f64, program: f64, erase: f64) -> String {
    format!(
        r#""retry_gain": {gain}, "factory_bad_share": {bad}, "program_failures": {program},
           "erase_failures": {erase}"#
    )
}

fn blocks(device: &OpenChannelDevice) -> impl Iterator<Item = Ppa> + use<> {
    let (channels, luns) =
        (device.geometry().channels as u8, device.geometry().luns_per_channel as u8);
    let blocks = device.geometry().blocks_per_plane;
    (0..channels).flat_map(move |channel| {
        (0..luns).flat_map(move |lun| {
            (0..blocks).map(move |block| Ppa { channel, lun, block, ..Ppa::default() })
        })
    })
}

/// Return whether `count` is within four standard deviations of a binomial law.
fn is_about(count: usize, trials: usize, chance: f64) -> bool {
    let mean = trials as f64 * chance;
    (count as f64 - mean).abs() < 4.0 * (mean * (1.0 - chance)).sqrt()
}

#[test]
fn retry_corrects_failed_read() {
    const PAGES: u32 = 500;
    let written = |more: &str| {
        let mut device = rated(more);
        for number in 0..PAGES {
            let ppas = page(&device, at(0, number));
            command(&mut device, FlashOp::Write, &ppas);
        }
        device.wait_until(Nanos(device.now().0 + 1_000_000_000));
        (0..PAGES)
            .map(|number| {
                let ppas = page(&device, at(0, number));
                command(&mut device, FlashOp::Read, &ppas)
            })
            .collect::<Vec<_>>()
    };
    let errors = r#""rber_rated": 2.6e-3, "retries_max""#;
    let lost =
        |statuses: &[AddressStatus], index: usize| statuses[index] == AddressStatus::Uncorrectable;
    let once = written(&format!("{errors}: 0"));
    let again = written(&format!("{errors}: 1, {}", failures(0.8, 0.0, 0.0, 0.0)));
    let (mut failed, mut saved) = (0, 0);
    let shortest = once.iter().map(|(time, _)| *time).min().unwrap();
    let repeated = 150_000 + 32_768 * 1_000_000_000 / 50_400_000;
    for ((time, first), (later, second)) in once.iter().zip(&again) {
        assert_eq!(*time, shortest, "no read is retried");
        let any = first.contains(&AddressStatus::Uncorrectable);
        assert_eq!(*later, shortest + if any { repeated } else { 0 });
        for index in 0..first.len() {
            assert!(lost(first, index) || !lost(second, index), "the first read was correct");
            failed += usize::from(lost(first, index));
            saved += usize::from(lost(first, index) && !lost(second, index));
        }
    }
    assert!(failed > 100 && saved > failed / 2 && saved < failed, "{saved} of {failed}");
}

#[test]
fn write_failures_match_profile() {
    let mut device = rated(&failures(1.0, 0.0, 0.02, 0.0));
    let mut failed = 0;
    let all: Vec<Ppa> = blocks(&device).collect();
    for block in &all {
        for number in 0..2 {
            let ppas = page(&device, Ppa { page: number, ..*block });
            let (_, statuses) = command(&mut device, FlashOp::Write, &ppas);
            let fails = statuses[0] == AddressStatus::ProgramFailed;
            let expected = if fails { statuses[0] } else { AddressStatus::Done };
            assert_eq!(statuses, vec![expected; ppas.len()], "all planes are written together");
            let (_, read) = command(&mut device, FlashOp::Read, &ppas);
            assert_eq!(read.contains(&AddressStatus::Uncorrectable), fails, "{block}");
            failed += usize::from(fails);
        }
        assert_eq!(
            device.block_state(*block).unwrap().pages_written,
            2,
            "a page whose program failed is used up"
        );
    }
    assert!(is_about(failed, 2 * all.len(), 0.02), "{failed} of {}", 2 * all.len());
    assert_eq!(device.counters().unwrap().program_failures, failed as u64);
}

#[test]
fn erase_failures_match_profile_and_retire_block() {
    let mut device = rated(&failures(1.0, 0.05, 0.0, 0.1));
    let all: Vec<Ppa> = blocks(&device).collect();
    let bad = |block: &Ppa, device: &OpenChannelDevice| device.block_state(*block).unwrap().retired;
    let from_factory: Vec<Ppa> = all.iter().copied().filter(|block| bad(block, &device)).collect();
    assert!(is_about(from_factory.len(), all.len(), 0.05), "{}", from_factory.len());
    let mut failed = 0;
    for block in &all {
        let (_, statuses) = command(&mut device, FlashOp::Erase, &[*block]);
        if from_factory.contains(block) {
            assert_eq!(statuses, [AddressStatus::Retired]);
            continue;
        }
        let fails = statuses == [AddressStatus::EraseFailed];
        assert!(fails || statuses == [AddressStatus::Done]);
        assert_eq!(bad(block, &device), fails);
        failed += usize::from(fails);
    }
    assert!(is_about(failed, all.len() - from_factory.len(), 0.1), "{failed}");
    let counters = device.counters().unwrap();
    assert_eq!((counters.erase_failures, counters.blocks_retired), (failed as u64, failed as u64));
}

#[test]
fn read_disturb_lasts_until_erase() {
    let disturbed = format!("{}, \"read_disturb_doubling\": 200", failures(1.0, 0.0, 0.0, 0.0));
    let mut device = rated(&format!(r#""rber_rated": 9e-4, "retries_max": 0, {disturbed}"#));
    let first = page(&device, at(0, 0));
    let mut reads_until_lost = Vec::new();
    for _ in 0..2 {
        command(&mut device, FlashOp::Write, &first);
        let lost = (0..5_000).find(|_| {
            let (_, statuses) = command(&mut device, FlashOp::Read, &first);
            statuses.contains(&AddressStatus::Uncorrectable)
        });
        // About three times the errors are too many: after roughly 400 page reads, two per read
        // command.
        reads_until_lost.push(lost.expect("the page is lost eventually"));
        command(&mut device, FlashOp::Erase, &[at(0, 0)]);
    }
    for reads in reads_until_lost {
        assert!((50..1_000).contains(&reads), "{reads} reads");
    }
}

#[test]
fn invalid_failures_table_names_fault() {
    use uflip_sim::OpenChannelProfile;
    let wrong = |overrides: String| {
        let parsed = OpenChannelProfile::parse(super::DFC, "dfc.toml", &format!("{{{overrides}}}"));
        parsed.unwrap_err().to_string()
    };
    assert!(wrong(failures(0.0, 0.0, 0.0, 0.0)).contains("above 0, up to 1"));
    assert!(wrong(failures(1.0, 0.0, 1.0, 0.0)).contains("'program_failures'"));
    assert!(wrong(r#""retry_gain": 0.5"#.into()).contains("every key of a table"));
    let none = format!("{}, \"read_disturb_doubling\": 0", failures(1.0, 0.0, 0.0, 0.0));
    assert!(wrong(none).contains("1 or more"));
}
