//! The stop rule: evaluates growing prefixes of a run, and stops after two convincing evaluations.
//!
//! **Source**: P. Glynn, W. Whitt (1991) on sequential stopping with batch means: the batches must
//! grow, and an interval that is narrow by chance must not end the run; hence two evaluations.
//! **Faithful**: evaluations at geometrically spaced lengths, so that all of them cost a few times
//! the last one.
//! **Simplified**: nothing.
//! **Ambiguous**: the spacing: a fifth more I/Os until one is convincing, then a sixteenth more to
//! confirm it.

use crate::analysis::{Core, FEWEST_IOS, Options, Reason};

/// The smallest response time; smaller ones are below the resolution of the clock [ns].
const LEAST_NS: f64 = 1.0;

/// The rule for one run, with one or more series that grow in parallel.
#[derive(Clone, Debug)]
pub struct StopRule {
    options: Options,
    next: usize,
    convinced: bool,
    series: Vec<Series>,
}

/// A growing series and its logarithms.
#[derive(Clone, Debug, Default)]
struct Series {
    times: Vec<f64>,
    logs: Vec<f64>,
}

/// The result of an evaluation.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Verdict {
    /// Whether the run may stop here.
    pub stop: bool,
    /// Whether this evaluation was convincing.
    pub convincing: bool,
    /// The length of the shortest series.
    pub ios: usize,
    /// The longest start-up of any series.
    pub startup_ios: usize,
    /// For each series: mean [ns], half width [ns], reasons for doubt.
    pub series: Vec<SeriesVerdict>,
}

/// The result of an evaluation for one series.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct SeriesVerdict {
    /// Mean of the running phase [ns].
    pub mean_ns: f64,
    /// The half width of its interval [ns]; `None` with too few batches.
    pub half_width_ns: Option<f64>,
    /// I/Os before the running phase.
    pub startup_ios: usize,
    /// I/Os of an oscillation.
    pub period_ios: usize,
    /// Independent slow episodes in the running phase.
    pub slow_episodes: usize,
    /// The reasons for doubt.
    pub reasons: Vec<Reason>,
}

impl StopRule {
    /// Create the rule for `series` series, which are first evaluated at `fewest` values.
    #[must_use]
    pub fn new(options: Options, series: usize, fewest: usize) -> StopRule {
        let next = fewest.max(FEWEST_IOS);
        StopRule { options, next, convinced: false, series: vec![Series::default(); series] }
    }

    /// Return the values that each series needs for the next evaluation.
    #[must_use]
    pub fn next_look(&self) -> usize {
        self.next
    }

    /// Return the verdict on a run that ended before the first evaluation.
    fn too_few(&self, ios: usize) -> Verdict {
        let seen = |series: &Series| SeriesVerdict {
            mean_ns: crate::batches::mean(&series.times),
            half_width_ns: None,
            startup_ios: 0,
            period_ios: 1,
            slow_episodes: 0,
            reasons: vec![Reason::TooFewPeriods],
        };
        let series = self.series.iter().map(seen).collect();
        Verdict { stop: false, convincing: false, ios, startup_ios: 0, series }
    }

    /// Append one value [ns] to series number `series`.
    pub fn push(&mut self, series: usize, time_ns: f64) {
        let time = time_ns.max(LEAST_NS);
        self.series[series].times.push(time);
        self.series[series].logs.push(time.ln());
    }

    /// Evaluate all series at their present lengths; the shortest determines the next evaluation.
    pub fn look(&mut self) -> Verdict {
        let ios = self.series.iter().map(|series| series.times.len()).min().unwrap_or(0);
        if ios < FEWEST_IOS {
            return self.too_few(ios);
        }
        let look = |series: &Series| Core::of(&series.times, &series.logs, self.options);
        let cores: Vec<Core> = self.series.iter().map(look).collect();
        let convincing = cores.iter().all(|core| core.reasons.is_empty());
        let stop = convincing && self.convinced;
        self.convinced = convincing;
        self.next = ios + if convincing { ios.div_ceil(16) } else { ios.div_ceil(5) };
        Verdict {
            stop,
            convincing,
            ios,
            startup_ios: cores.iter().map(|core| core.startup).max().unwrap_or(0),
            series: cores
                .iter()
                .zip(&self.series)
                .map(|(core, series)| core.verdict(&series.times[core.startup..]))
                .collect(),
        }
    }
}
