//! The stop rule: a run ends when the confidence interval of its mean is narrow enough, or at a
//! budget.
//!
//! **Source**: uFLIP (2009) §4.2, which requires an automatic IOCount and IOIgnore.
//! **Faithful**: both follow from the device's behaviour in this run.
//! **Simplified**: nothing.
//! **Ambiguous**: (1) the unit of the counts. It is that of `io_count`: I/Os of one process, and
//! for a mix with a ratio those of the rarer pattern. (2) The end of patterns side by side
//! (`parallel`). Each is judged separately, because a pooled mean would depend on their relative
//! speed. All continue until every one has converged, because each is measured with the others
//! running. They end together, after different numbers of I/Os; the first to reach its budget ends
//! the run.

use serde::Deserialize;
use serde_json::{Value, json};
use uflip_core::{Error, Result};
use uflip_method::{AnalysisOptions, MIN_IOS_ANALYSED};

use super::out_of_range;

/// uFLIP §5.1: its shortest run without start-up. Rarer slow I/Os go unnoticed.
const MIN_IOS: u64 = 1024;
/// I/Os of all processes: 6 MB of trace, and 2 MB more for each cause.
const MAX_IOS: u64 = 1 << 18;

/// The rule as a user writes it. Every key has a default.
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

/// A rule with every value resolved.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Stop {
    pub options: AnalysisOptions,
    pub min_ios: u64,
    pub max_ios: u64,
    pub max_time_ns: Option<u64>,
    pub max_bytes_written: Option<u64>,
    /// The name of the budget behind `max_ios`.
    pub budget: &'static str,
}

impl StopSpec {
    /// Fill in the defaults for a number of processes.
    pub(super) fn resolve(&self, processes: u64) -> Result<Stop> {
        let default = AnalysisOptions::default();
        let options = AnalysisOptions {
            confidence: self.confidence.unwrap_or(default.confidence),
            half_width: self.half_width.unwrap_or(default.half_width),
        };
        options.check()?;
        let min_allowed = MIN_IOS_ANALYSED as u64;
        let max_ios = self.max_ios.unwrap_or_else(|| (MAX_IOS / processes).max(MIN_IOS));
        let min_ios = self.min_ios.unwrap_or_else(|| MIN_IOS.min(max_ios));
        if max_ios < min_allowed {
            return Err(out_of_range("stop.max_ios", max_ios, &format!("{min_allowed} or more")));
        }
        if !(min_allowed..=max_ios).contains(&min_ios) {
            return Err(out_of_range(
                "stop.min_ios",
                min_ios,
                &format!("{min_allowed} to {max_ios}"),
            ));
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
    /// Limit the rule to its byte budget, for a pattern that writes `bytes` per counted I/O of all
    /// processes.
    pub(super) fn within_bytes(mut self, bytes: u64) -> Result<Stop> {
        if let (Some(budget), true) = (self.max_bytes_written, bytes > 0) {
            let max_ios = budget / bytes;
            if max_ios < MIN_IOS_ANALYSED as u64 {
                let allowed = format!("{} or more", bytes.saturating_mul(MIN_IOS_ANALYSED as u64));
                return Err(out_of_range("stop.max_bytes_written", budget, &allowed));
            }
            if max_ios < self.max_ios {
                self.max_ios = max_ios;
                self.min_ios = self.min_ios.min(max_ios);
                self.budget = "max_bytes_written";
            }
        }
        Ok(self)
    }

    /// Return the complete rule as JSON.
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

/// Create the error of a pattern with both a fixed length and a stop rule.
pub(super) fn contradiction(key: &str) -> Error {
    Error::usage(format!("'{key}' and 'stop' contradict each other"))
        .at("stop")
        .got(format!("both '{key}' and 'stop'"))
        .action(format!("omit '{key}', which a run with 'stop' determines itself, or omit 'stop'"))
}
