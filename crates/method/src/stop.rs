//! When to stop a run: looks at growing prefixes, and stops when two in a row are convincing.
//!
//! **Source**: P. Glynn, W. Whitt (1991) on sequential stopping with batch means: the batches must
//! grow, and a narrow interval by chance must not end the run; hence two looks.
//! **Faithful**: looks at geometrically spaced lengths, so that all of them cost a few times the
//! last one.
//! **Simplified**: nothing.
//! **Ambiguous**: how far apart the looks are: a fifth more I/Os until one is convincing, then a
//! sixteenth more to confirm it.

use crate::analysis::{Core, FEWEST_IOS, Options, Reason};

/// A response time of less than the clock can tell counts as this [ns].
const LEAST_NS: f64 = 1.0;

/// The rule for one run; it judges one or several series that grow side by side.
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

/// What a look at the series says.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Verdict {
    /// Whether the run may stop here.
    pub stop: bool,
    /// Whether this look was convincing.
    pub convincing: bool,
    /// I/Os of the shortest series that were looked at.
    pub ios: usize,
    /// The longest start-up of the series.
    pub startup_ios: usize,
    /// For each series: mean [ns], half width [ns], doubts.
    pub series: Vec<SeriesVerdict>,
}

/// What a look says of one series.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct SeriesVerdict {
    /// Mean of the running phase [ns].
    pub mean_ns: f64,
    /// Half the width of its interval [ns]; `None` where there are too few batches.
    pub half_width_ns: Option<f64>,
    /// I/Os before the running phase.
    pub startup_ios: usize,
    /// I/Os of an oscillation.
    pub period_ios: usize,
    /// Independent slow episodes in the running phase.
    pub slow_episodes: usize,
    /// Why it has not converged.
    pub reasons: Vec<Reason>,
}

impl StopRule {
    /// For `series` series that are not judged before they have `fewest` values.
    #[must_use]
    pub fn new(options: Options, series: usize, fewest: usize) -> StopRule {
        let next = fewest.max(FEWEST_IOS);
        StopRule { options, next, convinced: false, series: vec![Series::default(); series] }
    }

    /// Values that each series must have for the next look.
    #[must_use]
    pub fn next_look(&self) -> usize {
        self.next
    }

    /// The verdict on a run that ended before there was anything to look at.
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

    /// Look at what there is, each series at its own length; the shortest says when to look again.
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
