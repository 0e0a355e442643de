//! What becomes of a case: it is read, made, written to and read from, saved, restored and copied.
//!
//! Checked: nothing panics, nothing goes on for ever (by what flash did for it, not by the clock), the
//! parts of every response time sum, completions come in order, every program has a reason, the same seed
//! gives the same bytes, and a restored device and a copy go on as the first one would, with I/Os under
//! way, pages in the cache and blocks half collected.

use std::cell::RefCell;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown as _, Counters, Device, Durability, Error, ErrorKind, Nanos};
use uflip_sim::{Profile, SimDevice, Snapshot, State};

use super::case::{Case, Host};
use super::driver::Driver;
use super::promise;
use super::watch::Watch;

/// Devices with more pages are read and refused, or read and left alone: they would take too long.
const PAGES_MAX: u64 = 1 << 17;
/// Flash operations that a device may cost: more are no fault, but take too long.
const WORK_MAX: u64 = 400_000;
/// And that a host may cost: then it goes.
const HOST_WORK_MAX: u64 = 40_000;
/// What the host does to each device, and to its copies.
const STEPS: u64 = 400;
const LATER_STEPS: u64 = 100;
/// I/Os in the untimed gear at once.
const BURST: u64 = 40;
/// Every so many devices is saved and restored as well.
const SAVED: u64 = 4;

/// How a case ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// It was refused when it was read; the first line says why.
    Refused(String),
    /// It is a device, and too large or too laborious to be tried here.
    Large,
    /// It did all that it was asked for; a hash of all that could be seen of it.
    Lived(u64),
    /// It said that it is worn out, or that its clock is, and goes on saying so.
    Spent(u64),
    /// It did what no device may.
    Broken(String),
}

impl Outcome {
    /// In a word or two.
    pub fn line(&self) -> String {
        match self {
            Outcome::Refused(why) => format!("refused {why:?}"),
            Outcome::Large => "large".into(),
            Outcome::Lived(hash) => format!("lived {hash:016x}"),
            Outcome::Spent(hash) => format!("spent {hash:016x}"),
            Outcome::Broken(why) => format!("broken {why:?}"),
        }
    }
}

/// How many ended how.
#[derive(Default)]
pub struct Tally {
    refused: u64,
    large: u64,
    lived: u64,
    spent: u64,
    broken: u64,
}

impl Tally {
    pub fn count(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Refused(_) => &mut self.refused,
            Outcome::Large => &mut self.large,
            Outcome::Lived(_) => &mut self.lived,
            Outcome::Spent(_) => &mut self.spent,
            Outcome::Broken(_) => &mut self.broken,
        } += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { refused, large, lived, spent, broken } = self;
        write!(
            f,
            "{lived} lived, {spent} spent, {refused} refused, {large} too large, {broken} broken"
        )
    }
}

/// Try a case; one that would take long only where it is not `limited`.
pub fn live(case: &Case, limited: bool, watch: &Watch) -> Outcome {
    watch.begin(case.to_string());
    let outcome = quiet(|| tried(case, limited));
    watch.end();
    outcome.unwrap_or_else(Outcome::Broken)
}

thread_local! {
    /// Where this thread panicked, while that is expected; nothing is printed then.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What `work` makes, or what it says as it panics.
pub fn quiet<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let expected = PLACE.with_borrow_mut(|place| {
                place.as_mut().map(|place| {
                    *place = panic.location().map_or(String::new(), |at| at.to_string())
                })
            });
            if expected.is_none() {
                usual(panic);
            }
        }));
    });
    PLACE.set(Some(String::new()));
    let made = catch_unwind(AssertUnwindSafe(work));
    let place = PLACE.take().unwrap_or_default();
    made.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("{} ({place})", text.unwrap_or_default())
    })
}

fn tried(case: &Case, limited: bool) -> Outcome {
    let overrides = serde_json::Value::Object(case.overrides.clone()).to_string();
    let profile = match Profile::parse(&case.text(), &case.base, &overrides) {
        Ok(profile) => profile,
        Err(error) => {
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
            return Outcome::Refused(text.lines().next().unwrap_or_default().to_owned());
        }
    };
    if limited && (flash_pages(&profile) > PAGES_MAX || is_laborious(&profile, case)) {
        return Outcome::Large;
    }
    let mut device = match SimDevice::new("swarm", profile) {
        Ok(device) => device,
        Err(error) => return Outcome::Spent(spent(&error)),
    };
    if case.host.seed % SAVED == 1 {
        promise::is_kept(&mut device.clone(), case.host.seed);
    }
    let mut again = device.clone();
    let seen = drive(&mut device, &case.host, STEPS);
    assert_eq!(drive(&mut again, &case.host, STEPS), seen, "the same seed, the same bytes");
    let later = Host { seed: case.host.seed ^ 1, ..case.host };
    let mut restored = case.host.seed.is_multiple_of(SAVED).then(|| restored(&device));
    let mut copy = device.clone();
    let end = end(&mut device, &later);
    assert_eq!(self::end(&mut copy, &later), end, "a copy goes on as the first one");
    if let Some(restored) = &mut restored {
        assert_eq!(self::end(restored, &later), end, "a restored device goes on as the saved one");
    }
    let mut hash = DefaultHasher::new();
    (seen.hash, end).hash(&mut hash);
    if seen.spent { Outcome::Spent(hash.finish()) } else { Outcome::Lived(hash.finish()) }
}

/// Flash pages of a device of `profile`.
pub fn flash_pages(profile: &Profile) -> u64 {
    let part = &profile.geometry;
    let counts = [part.channels, part.dies_per_channel, part.blocks_per_die, part.pages_per_block];
    counts.into_iter().map(u64::from).product()
}

/// Whether the state of `profile` costs more than is tried here: so much is written to an empty device.
fn is_laborious(profile: &Profile, case: &Case) -> bool {
    let overwrites = match profile.state.state {
        State::Empty => return false,
        State::Sequential => 0.0,
        State::Random | State::Scattered => profile.state.random_overwrites,
    };
    let mut empty = profile.clone();
    empty.state.state = State::Empty;
    let mut device = SimDevice::new("swarm", empty).expect("an accepted device");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(case.host.seed);
    let mut driver = Driver::new(&device, &mut rng);
    let sectors = driver.sectors as f64 * (1.0 + overwrites);
    let mut left = 1 + sectors as u64;
    while left > 0 && !driver.spent {
        driver.burst(&mut device, BURST, false);
        left = left.saturating_sub(6 * BURST);
        if work(&device) > WORK_MAX {
            return true;
        }
    }
    false
}

/// What was seen of a device.
#[derive(PartialEq, Debug)]
pub struct Seen {
    hash: u64,
    spent: bool,
}

/// An error of a device that is at its end; the only one that it may have.
pub fn spent(error: &Error) -> u64 {
    let text = error.to_string();
    // None that was accepted has no room left: that is for devices of which blocks are retired.
    let known = ["read-only", "cannot be read", "clock"];
    assert!(
        error.kind() == ErrorKind::Device && known.iter().any(|known| text.contains(known)),
        "{text}"
    );
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

/// What a write may wait for.
fn durability(rng: &mut Xoshiro256PlusPlus) -> Durability {
    let every = 1 + uniform(rng, 5);
    let text = match uniform(rng, 3) {
        0 => "cached".into(),
        1 => "fua".into(),
        _ => format!("flush:{every}"),
    };
    text.parse().expect("one of the forms")
}

/// The device, saved and read again.
fn restored(device: &SimDevice) -> SimDevice {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.snapshot");
    device.save(&path).expect("a new file");
    let restored = SimDevice::restore(&path).expect("a whole file");
    assert_eq!(restored.info(), device.info(), "a restored device is the saved one");
    restored
}

/// What is under way ends, and another host goes on; a hash of all that is seen.
pub fn end(device: &mut SimDevice, host: &Host) -> u64 {
    let mut hash = DefaultHasher::new();
    let mut rest = |device: &mut SimDevice| {
        while let Some(due) = device.next_completion(Nanos(u64::MAX)) {
            let done =
                device.complete().map(|done| (done.submitted, done.breakdown.parts().to_vec()));
            format!("{due} {done:?}").hash(&mut hash);
        }
        format!("{:?} {}", device.counters(), device.now()).hash(&mut hash);
    };
    rest(device);
    let seen = drive(device, host, LATER_STEPS);
    rest(device);
    seen.hash.hash(&mut hash);
    hash.finish()
}

/// A host with up to `depth` I/Os under way: at random and in order by turns, with pauses, TRIM and bursts
/// in the untimed gear.
pub fn drive(device: &mut SimDevice, host: &Host, steps: u64) -> Seen {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(host.seed);
    let mut driver = Driver::new(device, &mut rng);
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
    // What is under way stays under way: whoever comes next finds it.
    let counters = device.counters().expect("a simulated device counts");
    check(&counters);
    format!("{counters:?} {}", device.now()).hash(&mut driver.hash);
    Seen { hash: driver.hash.finish(), spent: driver.spent }
}

/// Nothing is programmed or erased without a reason.
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

/// Flash pages of a device.
pub fn pages_of(device: &SimDevice) -> u64 {
    let part = &device.info().details["profile"]["geometry"];
    let keys = ["channels", "dies_per_channel", "blocks_per_die", "pages_per_block"];
    keys.iter().map(|key| part[key].as_u64().expect("a count")).product()
}

/// What flash has done so far.
pub fn work(device: &SimDevice) -> u64 {
    let counters = device.counters().expect("a simulated device counts");
    counters.pages_read + counters.pages_programmed + counters.blocks_erased
}
