//! Random devices of every kind, including implausible ones. Each is rejected with a reason, or
//! survives every load, or reports that it is worn out.
//!
//! ```text
//! draw ─▶ case ─▶ live: refused │ survived │ worn out │ broken ─▶ shrink ─▶ one line that reproduces it
//! ```
//!
//! A case is one line, as its failure prints it: the device URL, and its host.
//!
//! ```text
//! sim:dftl?blocks_per_die=12&gc=cyclic host seed=7 depth=32
//! ```
//!
//! Environment variables: `UFLIP_SWARM_CASES`, `UFLIP_SWARM_SEED` (`make soak` draws a new one each
//! time), `UFLIP_SWARM_CASE`, a line to be tried alone, and `UFLIP_SWARM_LIST`, to print the
//! outcome of each device.

mod case;
mod draw;
mod driver;
mod durable_writes;
mod forge;
mod live;
mod open_channel;
mod shrink;
mod watch;

use case::{HostLoad, SwarmCase};
use live::CaseOutcome;
use watch::Watchdog;

/// Number of cases in `make test`; `make soak` tries many more.
const CASES: u64 = 600;

/// Cases that once broke something, as they were printed, with the reason.
const ONCE: &str = include_str!("once.txt");

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a whole number"))
}

/// Return the number of cases and the seed.
fn case_range() -> (u64, u64) {
    let (cases, seed) = (number("UFLIP_SWARM_CASES", CASES), number("UFLIP_SWARM_SEED", 1));
    eprintln!("UFLIP_SWARM_CASES={cases} UFLIP_SWARM_SEED={seed}");
    (cases, seed)
}

#[test]
fn accepted_devices_live_or_report_worn_out() {
    if let Ok(lines) = std::env::var("UFLIP_SWARM_CASE") {
        return lines.lines().for_each(rerun);
    }
    let (cases, seed) = case_range();
    let (watch, lists) = (Watchdog::new(), std::env::var("UFLIP_SWARM_LIST").is_ok());
    let mut tally = live::OutcomeCounts::default();
    let mut broken = Vec::new();
    for index in 0..cases {
        let case = draw::case(seed, index);
        let outcome = live::run_watched(&case, true, &watch);
        tally.count(&outcome);
        if lists {
            println!("{index} {} {case}", outcome.line());
        }
        if let CaseOutcome::Broken(message) = outcome {
            let (smallest, message) = shrink::shrink(case, message, &watch);
            eprintln!("{smallest}\n    {message}");
            broken.push(format!("{smallest}\n    {message}"));
        }
    }
    eprintln!("{tally}");
    assert!(
        broken.is_empty(),
        "{} of {cases} devices failed:\n{}",
        broken.len(),
        broken.join("\n")
    );
}

#[test]
fn every_ftl_is_drawn() {
    let mut left: Vec<&str> = uflip_sim::FTLS.to_vec();
    for index in 0..150 {
        let case = draw::case(1, index);
        let named =
            case.overrides.get("ftl").and_then(serde_json::Value::as_str).map(str::to_owned);
        let ftl = named.unwrap_or_else(|| case.ftl());
        left.retain(|name| *name != ftl);
    }
    assert_eq!(
        left,
        ["zoned"],
        "the others; commands to zones are drawn in `tests/device/zones.rs`"
    );
}

#[test]
fn accepted_open_channel_devices_live() {
    let (cases, seed) = case_range();
    let accepted = (0..cases).filter(|index| open_channel::run_case(seed, *index)).count();
    eprintln!("{accepted} of {cases} open-channel devices were accepted");
    assert!(2 * accepted as u64 > cases, "most cases are valid devices");
}

#[test]
fn forged_snapshot_is_refused_or_usable() {
    let (cases, seed) = case_range();
    forge::run_cases(seed, cases, &Watchdog::new());
}

#[test]
fn regression_cases_are_refused_or_live() {
    let watch = Watchdog::new();
    let lines = ONCE.lines().filter(|line| line.starts_with("sim:")).map(SwarmCase::parse);
    let mut tally = live::OutcomeCounts::default();
    for case in lines.chain(profiles()) {
        let outcome = live::run_watched(&case, false, &watch);
        tally.count(&outcome);
        assert!(!matches!(outcome, CaseOutcome::Broken(_)), "{case}: {}", outcome.line());
    }
    eprintln!("{tally}");
}

/// Return cases of `tests/hostile/profiles`, with several hosts.
fn profiles() -> impl Iterator<Item = SwarmCase> {
    let mut names: Vec<_> = std::fs::read_dir(case::regression_profiles())
        .expect("list the regression profiles")
        .filter_map(|entry| entry.ok()?.path().file_stem()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 41, "{} profiles", names.len());
    names.into_iter().flat_map(|base| {
        [(4, 1), (5, 2), (6, 8), (7, 32)].map(|(seed, depth)| SwarmCase {
            base: base.clone(),
            overrides: serde_json::Map::new(),
            host: HostLoad { seed, depth },
        })
    })
}

/// Repeat the case of a line, and shrink it.
fn rerun(line: &str) {
    let watch = Watchdog::new();
    if forge::rerun(line, &watch) {
        return;
    }
    let case = SwarmCase::parse(line);
    let outcome = live::run_watched(&case, false, &watch);
    println!("{} {case}", outcome.line());
    if let CaseOutcome::Broken(message) = outcome {
        let (smallest, message) = shrink::shrink(case, message, &watch);
        println!("  least: {smallest}\n    {message}");
    }
}
