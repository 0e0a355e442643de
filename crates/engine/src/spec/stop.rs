//! `stop`: a run that ends when its mean is known, and the budget that ends it otherwise.
//!
//! **Source**: uFLIP (2009) §4.2, which asks for an automatic IOCount and IOIgnore.
//! **Faithful**: both follow from what the device does in this run.
//! **Simplified**: nothing.
//! **Ambiguous**: (1) what the counts of a rule count: what `io_count` would count, I/Os of one process,
//! and of a mix with a ratio those of the rarer pattern. (2) When patterns side by side (`parallel`)
//! end. Each is judged by itself, because the mean of a pool of them would depend on who is faster;
//! but what one costs it costs beside the others, so all go on until all are known, and end together,
//! after different numbers of I/Os. The one that is first at its budget ends the run.

use serde::Deserialize;
use serde_json::{Value, json};
use uflip_core::{Error, Result};
use uflip_method::{FEWEST_IOS, Options};

use super::resolve::out_of_range;

/// uFLIP §5.1: its shortest run without start-up. A slow I/O that is rarer goes unseen.
const MIN_IOS: u64 = 1024;
/// I/Os of all processes: 6 MB of trace, and 2 more for each cause.
const MAX_IOS: u64 = 1 << 18;

/// What a user writes. Everything has a default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained in docs/reference/patterns.md
pub struct StopSpec {
    pub confidence: Option<f64>,
    pub half_width: Option<f64>,
    pub min_ios: Option<u64>,
    pub max_ios: Option<u64>,
    pub max_time_ns: Option<u64>,
    pub max_bytes_written: Option<u64>,
}

/// A rule with everything known.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Stop {
    pub options: Options,
    pub min_ios: u64,
    pub max_ios: u64,
    pub max_time_ns: Option<u64>,
    pub max_bytes_written: Option<u64>,
    /// The budget that `max_ios` stands for.
    pub budget: &'static str,
}

impl StopSpec {
    /// Fill in the defaults for `processes` of them.
    pub(super) fn resolve(&self, processes: u64) -> Result<Stop> {
        let default = Options::default();
        let options = Options {
            confidence: self.confidence.unwrap_or(default.confidence),
            half_width: self.half_width.unwrap_or(default.half_width),
        };
        options.check()?;
        let fewest = FEWEST_IOS as u64;
        let max_ios = self.max_ios.unwrap_or_else(|| (MAX_IOS / processes).max(MIN_IOS));
        let min_ios = self.min_ios.unwrap_or_else(|| MIN_IOS.min(max_ios));
        if max_ios < fewest {
            return Err(out_of_range("stop.max_ios", max_ios, &format!("{fewest} or more")));
        }
        if !(fewest..=max_ios).contains(&min_ios) {
            return Err(out_of_range("stop.min_ios", min_ios, &format!("{fewest} to {max_ios}")));
        }
        Ok(Stop {
            options,
            min_ios,
            max_ios,
            max_time_ns: self.max_time_ns,
            max_bytes_written: self.max_bytes_written,
            budget: "max_ios",
        })
    }
}

impl Stop {
    /// The same rule for a pattern that writes `bytes` with every counted I/O of all processes:
    /// no more I/Os than the budget of bytes allows.
    pub(super) fn within_bytes(mut self, bytes: u64) -> Result<Stop> {
        if let (Some(budget), true) = (self.max_bytes_written, bytes > 0) {
            let most = budget / bytes;
            if most < FEWEST_IOS as u64 {
                let allowed = format!("{} or more", bytes.saturating_mul(FEWEST_IOS as u64));
                return Err(out_of_range("stop.max_bytes_written", budget, &allowed));
            }
            if most < self.max_ios {
                self.max_ios = most;
                self.min_ios = self.min_ios.min(most);
                self.budget = "max_bytes_written";
            }
        }
        Ok(self)
    }

    /// The rule as JSON, complete.
    pub(crate) fn canonical(&self) -> Value {
        let mut value = json!({
            "confidence": self.options.confidence, "half_width": self.options.half_width,
            "min_ios": self.min_ios, "max_ios": self.max_ios,
        });
        for (key, budget) in
            [("max_time_ns", self.max_time_ns), ("max_bytes_written", self.max_bytes_written)]
        {
            if let Some(budget) = budget {
                value[key] = budget.into();
            }
        }
        value
    }
}

/// The error of a pattern that has a length of its own and a rule to find one.
pub(super) fn contradiction(key: &str) -> Error {
    Error::usage(format!("'{key}' and 'stop' contradict each other"))
        .at("stop")
        .got(format!("both '{key}' and 'stop'"))
        .action(format!(
            "leave '{key}' out: a run with 'stop' finds it itself, or leave 'stop' out"
        ))
}
