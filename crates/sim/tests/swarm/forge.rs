//! Modified snapshot files. Checksums detect a modification. With matching checksums the file is
//! still rejected, or it makes a device. Such a device may later panic on a broken invariant, which
//! its holder turns into an error. It may not loop for ever, nor take more memory than the saved
//! one.

use std::path::Path;

use twox_hash::XxHash3_64;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_sim::{Profile, SimDevice, Snapshot};

use super::case::{HostLoad, SwarmCase};
use super::draw;
use super::live::{catch_panic, drive, end, flash_pages};
use super::watch::Watchdog;

/// Larger devices take long and test no more.
const PAGES_MAX: u64 = 1 << 11;
/// Modifications of each saved device.
const CHANGES: u64 = 16;
/// Size of the fixed part before header and state: a mark, then length and checksum of both.
const FIXED_BYTES: usize = 40;

/// Try `cases` modified files of devices of `seed`.
///
/// # Panics
/// If one does anything forbidden; the message reproduces it.
pub fn run_cases(seed: u64, cases: u64, watch: &Watchdog) {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let (mut refused, mut survived, mut broke_rule) = (0, 0, 0);
    for index in 0.. {
        let case = draw::case(seed, index);
        watch.begin(case.to_string());
        let snapshot = catch_panic(|| save_case(&case, folder.path()));
        let Some(snapshot) = snapshot.unwrap_or_else(|message| panic!("{case}: {message}")) else {
            continue;
        };
        for number in 0..CHANGES {
            let line = format!("change {number} of {case}, which is {index} of seed {seed}");
            watch.begin(line.clone());
            match changed(&snapshot, number, index, folder.path()) {
                Ok(ForgedSnapshot::Refused) => refused += 1,
                Ok(ForgedSnapshot::Survived) => survived += 1,
                Ok(ForgedSnapshot::BrokeRule) => broke_rule += 1,
                Err(message) => panic!("{line}: {message}"),
            }
        }
        if refused + survived + broke_rule >= cases {
            break;
        }
    }
    watch.end();
    eprintln!(
        "{refused} changed snapshots were refused, {survived} survived, {broke_rule} broke a rule"
    );
    assert!(refused > 0 && survived > 0);
}

/// Repeat the modification of a line printed by `run_cases`; return false if the line is not of that
/// form.
pub fn rerun(line: &str, watch: &Watchdog) -> bool {
    let numbers = || {
        let number = line.strip_prefix("change ")?.split(' ').next()?.parse().ok()?;
        let (index, seed) = line.rsplit_once(", which is ")?.1.split_once(" of seed ")?;
        Some((number, index.parse().ok()?, seed.trim().parse().ok()?))
    };
    let Some((number, index, seed)) = numbers() else { return false };
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let snapshot = save_case(&draw::case(seed, index), folder.path()).expect("save the device");
    watch.begin(line.to_owned());
    let outcome = match changed(&snapshot, number, index, folder.path()) {
        Ok(ForgedSnapshot::Refused) => "refused".to_owned(),
        Ok(ForgedSnapshot::Survived) => "survived".to_owned(),
        Ok(ForgedSnapshot::BrokeRule) => "broke a rule".to_owned(),
        Err(message) => format!("broken {message:?}"),
    };
    watch.end();
    println!("{outcome} {line}");
    true
}

/// Return the snapshot of a device with outstanding I/Os.
fn save_case(case: &SwarmCase, folder: &Path) -> Option<Vec<u8>> {
    let overrides = serde_json::Value::Object(case.overrides.clone()).to_string();
    let profile = Profile::parse(&case.text(), &case.base, &overrides).ok()?;
    if flash_pages(&profile) > PAGES_MAX {
        return None;
    }
    let mut device = SimDevice::new("swarm", profile).ok()?;
    drive(&mut device, &case.host, 100);
    let path = folder.join("saved.snapshot");
    device.save(&path).expect("save the device");
    let snapshot = std::fs::read(&path).expect("read the file");
    std::fs::remove_file(&path).expect("remove the file");
    Some(snapshot)
}

enum ForgedSnapshot {
    Refused,
    Survived,
    BrokeRule,
}

/// Try modification number `number` of a file; return the outcome, or an error for forbidden
/// behaviour.
fn changed(
    snapshot: &[u8],
    number: u64,
    index: u64,
    folder: &Path,
) -> Result<ForgedSnapshot, String> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(index << 8 | number);
    let mut file = snapshot.to_vec();
    let summed = !number.is_multiple_of(4);
    change(&mut file, &mut rng, summed);
    let path = folder.join("changed.snapshot");
    std::fs::write(&path, &file).expect("write the file");
    let mut device = match catch_panic(|| SimDevice::restore(&path))? {
        Err(_) => return Ok(ForgedSnapshot::Refused),
        Ok(_) if !summed => return Err("a change was not seen".into()),
        Ok(device) => device,
    };
    let host = HostLoad { seed: 1 + number, depth: 8 };
    Ok(catch_panic(|| end(&mut device, &host))
        .map_or(ForgedSnapshot::BrokeRule, |_| ForgedSnapshot::Survived))
}

/// Modify some bytes, with or without new checksums.
fn change(file: &mut Vec<u8>, rng: &mut Xoshiro256PlusPlus, summed: bool) {
    let mut below = |end: usize| uniform(rng, end as u64) as usize;
    let header = u64::from_le_bytes(file[8..16].try_into().expect("8 bytes")) as usize;
    let state = FIXED_BYTES + header;
    let before = file.clone();
    while *file == before {
        // The header is text; in the state, small numbers matter more than the middle of large
        // arrays.
        let from = if below(4) == 0 { FIXED_BYTES } else { state };
        let span = [64, 1024, file.len()][below(3)].min(file.len() - from);
        let at = if below(2) == 0 { from + below(span) } else { file.len() - 1 - below(span) };
        match below(5) {
            0 => file[at] ^= 1 << below(8),
            1 => file[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
            2 => file[at..].iter_mut().take(10).for_each(|byte| *byte = 0xff),
            3 => file.truncate(at.max(state)),
            _ => file[at] = below(256) as u8,
        }
    }
    if summed {
        let header = header.min(file.len() - FIXED_BYTES);
        let parts = [&file[FIXED_BYTES..][..header], &file[FIXED_BYTES + header..]];
        let fixed = parts.map(|part| [part.len() as u64, XxHash3_64::oneshot(part)]);
        for (index, number) in fixed.as_flattened().iter().enumerate() {
            file[8 + 8 * index..][..8].copy_from_slice(&number.to_le_bytes());
        }
    }
}
