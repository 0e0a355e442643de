//! A test case (a device and its host), as one line of text.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value};
use uflip_sim::Profile;

/// A test case.
#[derive(Clone, PartialEq, Debug)]
pub struct SwarmCase {
    /// Its base profile: a shipped one, or one that once broke something.
    pub base: String,
    pub overrides: Map<String, Value>,
    pub host: HostLoad,
}

/// The load of the host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HostLoad {
    pub seed: u64,
    /// Maximum number of outstanding I/Os.
    pub depth: u32,
}

/// Return the folder of the shipped profiles.
pub fn shipped_profiles() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/uflip/profiles")
}

/// Return the folder of profiles for cases that no shipped profile covers.
fn swarm_profiles() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/swarm")
}

/// Return the folder of profiles that once broke something.
pub fn regression_profiles() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/profiles")
}

impl SwarmCase {
    /// Return the text of the profile.
    pub fn text(&self) -> String {
        let file = format!("{}.toml", self.base);
        let folders = [shipped_profiles(), regression_profiles(), swarm_profiles()];
        let text =
            folders.iter().find_map(|folder| std::fs::read_to_string(folder.join(&file)).ok());
        text.unwrap_or_else(|| panic!("the profile {file} does not exist"))
    }

    /// Return the FTL of the unchanged profile.
    pub fn ftl(&self) -> String {
        let profile = Profile::parse(&self.text(), &self.base, "{}");
        profile.expect("a profile of a block device").ftl.ftl
    }

    /// Parse a line.
    pub fn parse(line: &str) -> SwarmCase {
        let (device, host) = line.split_once(" host ").expect("DEVICE host seed=N depth=N");
        let device = device.trim().strip_prefix("sim:").expect("sim:NAME");
        let (base, pairs) = device.split_once('?').unwrap_or((device, ""));
        let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| text.into());
        let pairs = pairs.split('&').filter_map(|pair| pair.split_once('='));
        let overrides = pairs.map(|(key, text)| (key.to_owned(), value(text))).collect();
        let number = |name: &str| -> u64 {
            let word = host.split_whitespace().find_map(|word| word.strip_prefix(name));
            word.and_then(|text| text.parse().ok()).expect("seed=N depth=N")
        };
        let host = HostLoad { seed: number("seed="), depth: number("depth=") as u32 };
        SwarmCase { base: base.to_owned(), overrides, host }
    }
}

impl fmt::Display for SwarmCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pair = |(key, value): (&String, &Value)| format!("{key}={}", text(value));
        let pairs: Vec<String> = self.overrides.iter().map(pair).collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        let HostLoad { seed, depth } = self.host;
        write!(f, "sim:{}{mark}{} host seed={seed} depth={depth}", self.base, pairs.join("&"))
    }
}
