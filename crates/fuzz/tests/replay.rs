//! Replays the corpus of every target, and seeded mutations of it. A failure prints the command
//! that reproduces it; its input should be added to the corpus.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_fuzz::{FuzzTarget, TARGETS};

/// The mutations of each target in `make test`; `UFLIP_FUZZ_CASES` and `UFLIP_FUZZ_SEED` override
/// them.
const CASES: u64 = 5_000;
/// Boundary values; the first [`NUMBERS`] are numbers.
#[rustfmt::skip]
const ODD_VALUES: &[&str] = &[
    "0", "1", "2", "3", "7", "64", "512", "4096", "65536", "1000000", "4294967295", "4294967296",
    "-1", "9223372036854775807", "18446744073709551615", "18446744073709551616", "1e300", "-0.0",
    "nan", "inf",
    "null", "true", "\"\"", "[]", "{}", "\u{0}", "\u{ff}\u{ff}", "\n", "=",
];
const NUMBERS: usize = 20;
/// Boundary values of protocol fields, inserted with two, four or eight bytes.
const FIELDS: &[u64] =
    &[0, 1, 2, 255, 256, 257, 4095, 4096, 4097, 1 << 15, 1 << 31, u32::MAX as u64, u64::MAX];
/// The duration of the protocol targets in `make soak` (`UFLIP_SOAK`) and otherwise [s]: a server
/// is open to any peer.
const PROTOCOL_SECONDS: [u64; 2] = [30, 5];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
}

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut corpus: Vec<(PathBuf, Vec<u8>)> = std::fs::read_dir(folder)
        .expect("read the corpus of the target")
        .map(|entry| entry.expect("read the folder").path())
        .map(|path| (path.clone(), std::fs::read(path).expect("read the file")))
        .collect();
    corpus.sort();
    corpus
}

/// Return one input of `all`, changed in one to four places.
fn mutated(all: &[(PathBuf, Vec<u8>)], random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut random_below = |below: usize| uniform(random, below.max(1) as u64) as usize;
    let mut data = all[random_below(all.len())].1.clone();
    for _ in 0..=random_below(3) * random_below(2) {
        let at = random_below(data.len() + 1);
        let end = (at + 1 + random_below(16)).min(data.len());
        match random_below(10) {
            0 if at < data.len() => data[at] ^= 1 << random_below(8),
            1 => drop(data.drain(at..end)),
            2 => {
                let again = data[at..end].to_vec();
                let to = random_below(data.len() + 1);
                data.splice(to..to, again);
            }
            3 => data.truncate(at),
            4 => {
                let other = &all[random_below(all.len())].1;
                let from = random_below(other.len() + 1);
                data.splice(at..end, other[from..].iter().copied().take(32));
            }
            5 => drop(data.splice(at..end, ODD_VALUES[random_below(ODD_VALUES.len())].bytes())),
            6 => {
                let bytes = FIELDS[random_below(FIELDS.len())].to_be_bytes();
                let width = [2, 4, 8][random_below(3)];
                let end = (at + width).min(data.len());
                data.splice(at..end, bytes[8 - width..].iter().copied());
            }
            // Mostly a number replaces a number: an input that still parses reaches deeper code.
            _ => {
                let digit = |byte: &u8| byte.is_ascii_digit();
                let begin = data.iter().skip(at).position(digit).map_or(at, |after| at + after);
                let length = data[begin..].iter().take_while(|byte| digit(byte)).count();
                data.splice(begin..begin + length, ODD_VALUES[random_below(NUMBERS)].bytes());
            }
        }
    }
    data
}

fn try_one(name: &str, target: FuzzTarget, data: &[u8], command: &str) -> bool {
    catch_unwind(AssertUnwindSafe(|| target(data))).unwrap_or_else(|_| {
        let input_path = std::env::temp_dir().join(format!("uflip-fuzz-{name}"));
        std::fs::write(&input_path, data).expect("write the file");
        panic!("target {name} fails on {command}; the input is in {}", input_path.display());
    })
}

fn replay(name: &str) {
    replay_for(name, 0);
}

fn replay_protocol(name: &str) {
    let [soak, short] = PROTOCOL_SECONDS;
    replay_for(name, if std::env::var("UFLIP_SOAK").is_ok() { soak } else { short });
}

/// Run the corpus and its mutations: at least a number of cases, and for a duration.
fn replay_for(name: &str, seconds: u64) {
    let (_, target) =
        TARGETS.iter().find(|(target_name, _)| *target_name == name).expect("a known target");
    let all = corpus(name);
    let accepted = |(path, data): &&(PathBuf, Vec<u8>)| {
        try_one(name, *target, data, &path.display().to_string())
    };
    let accepted = all.iter().filter(accepted).count();
    // A corpus that is rejected at once tests nothing. A saved device belongs to one version.
    assert!(accepted > 0 || name == "snapshot", "no input in the corpus of {name} is valid");
    let (seed, cases) = (number("UFLIP_FUZZ_SEED", 1), number("UFLIP_FUZZ_CASES", CASES));
    // An explicit number of cases is exact.
    let named = std::env::var("UFLIP_FUZZ_CASES").is_ok();
    let until = Instant::now() + Duration::from_secs(if named { 0 } else { seconds });
    println!("{name}: {cases} mutations from seed {seed}, and on for {seconds} s");
    let (mut accepted, mut attempts) = (0, 0);
    while attempts < cases || Instant::now() < until {
        let case = attempts;
        attempts += 1;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(case));
        let data = mutated(&all, &mut random);
        let again = format!("UFLIP_FUZZ_SEED={} UFLIP_FUZZ_CASES=1", seed.wrapping_add(case));
        let command = format!("{again} cargo test -p uflip-fuzz --test replay");
        accepted += u64::from(try_one(name, *target, &data, &command));
    }
    println!("{name}: {accepted} of {attempts} accepted");
}

#[test]
fn patterns_are_read_or_refused() {
    replay("pattern");
}

#[test]
fn states_are_read_or_refused() {
    replay("state");
}

#[test]
fn jobs_are_read_or_refused() {
    replay("job");
}

#[test]
fn profiles_are_read_or_refused() {
    replay("profile");
}

#[test]
fn snapshots_are_read_or_refused() {
    replay("snapshot");
}

#[test]
fn traces_are_read_or_refused() {
    replay("trace");
}

#[test]
fn recordings_are_read_or_refused() {
    replay("recording");
}

#[test]
fn served_clients_are_answered_or_disconnected() {
    replay_protocol("nbd");
}

#[test]
fn servers_are_used_or_disconnected() {
    replay_protocol("nbd-server");
}

#[test]
fn fio_logs_are_read_or_refused() {
    replay("fio-log");
}

#[test]
fn tables_with_named_columns_are_read_or_refused() {
    replay("columns");
}

#[test]
fn columns_of_tables_are_read_or_refused() {
    replay("series");
}

#[test]
fn rate_logs_of_fio_are_read_or_refused() {
    replay("fio-rates");
}
