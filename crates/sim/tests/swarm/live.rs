//! The life of a case: its profile is read, the device is made, written, read, saved, restored and
//! cloned.
//!
//! Checked: nothing panics; nothing loops for ever (measured by flash work, not by time); the parts
//! of every response time sum; completions come in order; every program has a reason; the same seed
//! gives the same bytes; a restored device and a clone continue as the original would, with I/Os in
//! flight, pages in the cache and blocks partly collected.

use std::cell::RefCell;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown as _, Counters, Device, Durability, Error, ErrorKind, Nanos};
use uflip_sim::{InitialState, Profile, SimDevice, Snapshot};

use super::case::{HostLoad, SwarmCase};
use super::driver::HostDriver;
use super::durable_writes;
use super::watch::Watchdog;

/// Devices with more pages are only read and checked: they would take too long.
const PAGES_MAX: u64 = 1 << 17;
/// Maximum flash operations of preconditioning: more are valid, but take too long.
const WORK_MAX: u64 = 400_000;
/// Maximum flash operations of a host, which then stops.
const HOST_WORK_MAX: u64 = 40_000;
/// Steps of the host on each device and on its clones.
const STEPS: u64 = 400;
const LATER_STEPS: u64 = 100;
/// Untimed I/Os at once.
const BURST: u64 = 40;
/// One device in this number is also saved and restored.
const SAVED: u64 = 4;

/// The outcome of a case.
#[derive(Clone, PartialEq, Debug)]
pub enum CaseOutcome {
    /// It was rejected; the first line is the reason.
    Refused(String),
    /// It is valid, but too large or too slow to be tried here.
    Large,
    /// It completed everything; a hash of all visible results.
    Survived(u64),
    /// It reported that it is worn out, or at the end of its clock, and keeps reporting it.
    WornOut(u64),
    /// It violated a rule.
    Broken(String),
}

impl CaseOutcome {
    /// Return a summary in a word or two.
    pub fn line(&self) -> String {
        match self {
            CaseOutcome::Refused(message) => format!("refused {message:?}"),
            CaseOutcome::Large => "large".into(),
            CaseOutcome::Survived(hash) => format!("survived {hash:016x}"),
            CaseOutcome::WornOut(hash) => format!("worn out {hash:016x}"),
            CaseOutcome::Broken(message) => format!("broken {message:?}"),
        }
    }
}

/// The number of cases by outcome.
#[derive(Default)]
pub struct OutcomeCounts {
    refused: u64,
    large: u64,
    survived: u64,
    worn_out: u64,
    broken: u64,
}

impl OutcomeCounts {
    pub fn count(&mut self, outcome: &CaseOutcome) {
        *match outcome {
            CaseOutcome::Refused(_) => &mut self.refused,
            CaseOutcome::Large => &mut self.large,
            CaseOutcome::Survived(_) => &mut self.survived,
            CaseOutcome::WornOut(_) => &mut self.worn_out,
            CaseOutcome::Broken(_) => &mut self.broken,
        } += 1;
    }
}

impl fmt::Display for OutcomeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutcomeCounts { refused, large, survived, worn_out, broken } = self;
        write!(
            f,
            "{survived} survived, {worn_out} worn out, {refused} refused, {large} too large, {broken} broken"
        )
    }
}

/// Try a case; if `limited`, skip a slow one.
pub fn run_watched(case: &SwarmCase, limited: bool, watch: &Watchdog) -> CaseOutcome {
    watch.begin(case.to_string());
    let outcome = catch_panic(|| run_case(case, limited));
    watch.end();
    outcome.unwrap_or_else(CaseOutcome::Broken)
}

thread_local! {
    /// The location of a panic of this thread, while one is expected; nothing is printed then.
    static PANIC_LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Return the result of `work`, or its panic message.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let expected = PANIC_LOCATION.with_borrow_mut(|location| {
                location.as_mut().map(|location| {
                    *location = panic.location().map_or(String::new(), |at| at.to_string())
                })
            });
            if expected.is_none() {
                default_hook(panic);
            }
        }));
    });
    PANIC_LOCATION.set(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(work));
    let location = PANIC_LOCATION.take().unwrap_or_default();
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("{} ({location})", text.unwrap_or_default())
    })
}

fn run_case(case: &SwarmCase, limited: bool) -> CaseOutcome {
    let overrides = serde_json::Value::Object(case.overrides.clone()).to_string();
    let profile = match Profile::parse(&case.text(), &case.base, &overrides) {
        Ok(profile) => profile,
        Err(error) => {
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
            return CaseOutcome::Refused(text.lines().next().unwrap_or_default().to_owned());
        }
    };
    if limited && (flash_pages(&profile) > PAGES_MAX || is_too_slow(&profile, case)) {
        return CaseOutcome::Large;
    }
    let mut device = match SimDevice::new("swarm", profile) {
        Ok(device) => device,
        Err(error) => return CaseOutcome::WornOut(check_worn_out(&error)),
    };
    if case.host.seed % SAVED == 1 {
        durable_writes::check_durable(&mut device.clone(), case.host.seed);
    }
    let mut again = device.clone();
    let results = drive(&mut device, &case.host, STEPS);
    assert_eq!(drive(&mut again, &case.host, STEPS), results, "the same seed, the same bytes");
    let later = HostLoad { seed: case.host.seed ^ 1, ..case.host };
    let mut restored = case.host.seed.is_multiple_of(SAVED).then(|| save_and_restore(&device));
    let mut copy = device.clone();
    let end = end(&mut device, &later);
    assert_eq!(self::end(&mut copy, &later), end, "a copy continues like the original");
    if let Some(restored) = &mut restored {
        assert_eq!(
            self::end(restored, &later),
            end,
            "a restored device continues like the saved one"
        );
    }
    let mut hash = DefaultHasher::new();
    (results.hash, end).hash(&mut hash);
    if results.worn_out {
        CaseOutcome::WornOut(hash.finish())
    } else {
        CaseOutcome::Survived(hash.finish())
    }
}

/// Return the flash pages of a device of `profile`.
pub fn flash_pages(profile: &Profile) -> u64 {
    let part = &profile.geometry;
    let counts = [part.channels, part.dies_per_channel, part.blocks_per_die, part.pages_per_block];
    counts.into_iter().map(u64::from).product()
}

/// Return whether preconditioning of `profile` exceeds the limit.
fn is_too_slow(profile: &Profile, case: &SwarmCase) -> bool {
    let overwrites = match profile.state.state {
        InitialState::Empty => return false,
        InitialState::Sequential => 0.0,
        InitialState::Random | InitialState::Scattered => profile.state.random_overwrites,
    };
    let mut empty = profile.clone();
    empty.state.state = InitialState::Empty;
    let mut device = SimDevice::new("swarm", empty).expect("create the device");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(case.host.seed);
    let mut driver = HostDriver::new(&device, &mut rng);
    let sectors = driver.sectors as f64 * (1.0 + overwrites);
    let mut left = 1 + sectors as u64;
    while left > 0 && !driver.worn_out {
        driver.burst(&mut device, BURST, false);
        left = left.saturating_sub(6 * BURST);
        if work(&device) > WORK_MAX {
            return true;
        }
    }
    false
}

/// The visible results of a device.
#[derive(PartialEq, Debug)]
pub struct DeviceResults {
    hash: u64,
    worn_out: bool,
}

/// Check that `error` is one of a device at its end, the only permitted kind, and hash it.
pub fn check_worn_out(error: &Error) -> u64 {
    let text = error.to_string();
    // An accepted device always has space; only one with retired blocks runs out of it.
    let causes = ["read-only", "cannot be read", "clock"];
    assert!(
        error.kind() == ErrorKind::Device && causes.iter().any(|cause| text.contains(cause)),
        "{text}"
    );
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

/// Draw the durability of a write.
fn durability(rng: &mut Xoshiro256PlusPlus) -> Durability {
    let every = 1 + uniform(rng, 5);
    let text = match uniform(rng, 3) {
        0 => "cached".into(),
        1 => "fua".into(),
        _ => format!("flush:{every}"),
    };
    text.parse().expect("a valid durability")
}

/// Return the device, saved and restored.
fn save_and_restore(device: &SimDevice) -> SimDevice {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let path = folder.path().join("device.snapshot");
    device.save(&path).expect("save the device");
    let restored = SimDevice::restore(&path).expect("restore the device");
    assert_eq!(restored.info(), device.info(), "a restored device equals the saved one");
    restored
}

/// Complete outstanding I/Os, and continue with another host; return a hash of all results.
pub fn end(device: &mut SimDevice, host: &HostLoad) -> u64 {
    let mut hash = DefaultHasher::new();
    let mut finish = |device: &mut SimDevice| {
        while let Some(due) = device.next_completion(Nanos(u64::MAX)) {
            let done =
                device.complete().map(|done| (done.submitted, done.breakdown.parts().to_vec()));
            format!("{due} {done:?}").hash(&mut hash);
        }
        format!("{:?} {}", device.counters(), device.now()).hash(&mut hash);
    };
    finish(device);
    let results = drive(device, host, LATER_STEPS);
    finish(device);
    results.hash.hash(&mut hash);
    hash.finish()
}

/// Run a host with up to `depth` outstanding I/Os: random and sequential phases, pauses, TRIM and
/// untimed bursts.
pub fn drive(device: &mut SimDevice, host: &HostLoad, steps: u64) -> DeviceResults {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(host.seed);
    let mut driver = HostDriver::new(device, &mut rng);
    let before = work(device);
    let trims = host.seed % 5 == 2;
    for step in 0..steps {
        let in_order = step / 80 % 2 == 1;
        if work(device).saturating_sub(before) > HOST_WORK_MAX {
            break;
        }
        match uniform(driver.rng, 200) {
            0..120 if driver.outstanding < host.depth => driver.submit(device, in_order),
            120 if driver.outstanding == 0 => driver.wait(device),
            121 if trims && driver.outstanding < host.depth => driver.submit_trim(device),
            121 => driver.trim(device),
            122 => driver.burst(device, BURST, trims),
            124 => device.set_durability(durability(driver.rng)),
            125 if host.seed.is_multiple_of(3) => driver.flush(device),
            123 => {
                while driver.outstanding > 0 {
                    driver.complete(device)
                }
            }
            _ if driver.outstanding > 0 => driver.complete(device),
            _ => {}
        }
    }
    // I/Os stay outstanding for the next host.
    let counters = device.counters().expect("a simulated device has counters");
    check(&counters);
    format!("{counters:?} {}", device.now()).hash(&mut driver.hash);
    DeviceResults { hash: driver.hash.finish(), worn_out: driver.worn_out }
}

/// Check that nothing is programmed or erased without a reason.
fn check(counters: &Counters) {
    assert_eq!(
        counters.pages_programmed,
        counters.host_pages_written
            + counters.pages_relocated
            + counters.metadata_pages_programmed
            + counters.mapping_pages_programmed
            + counters.pages_padded
            + counters.program_failures,
        "every program has a reason"
    );
}

/// Return the flash pages of a device.
pub fn pages_of(device: &SimDevice) -> u64 {
    let part = &device.info().details["profile"]["geometry"];
    let keys = ["channels", "dies_per_channel", "blocks_per_die", "pages_per_block"];
    keys.iter().map(|key| part[key].as_u64().expect("a number")).product()
}

/// Return the flash work so far.
pub fn work(device: &SimDevice) -> u64 {
    let counters = device.counters().expect("a simulated device has counters");
    counters.pages_read + counters.pages_programmed + counters.blocks_erased
}
