//! The stop rule: evaluates growing prefixes of a run, and stops after two convincing evaluations.
//!
//! **Source**: P. Glynn, W. Whitt (1991) on sequential stopping with batch means: the batches must
//! grow, and an interval that is narrow by chance must not end the run; hence two evaluations.
//! **Faithful**: evaluations at geometrically spaced lengths, so that all of them cost a few times
//! the last one.
//! **Simplified**: nothing.
//! **Ambiguous**: the spacing: a fifth more I/Os until one is convincing, then a sixteenth more to
//! confirm it.

use crate::analysis::{
    AnalysisOptions, MIN_IOS_ANALYSED, MeanEstimate, SeriesVerdict, UncertaintyReason,
};

/// The smallest response time; smaller ones are below the resolution of the clock [ns].
const MIN_TIME_NS: f64 = 1.0;

/// The rule for one run, with one or more series that grow in parallel.
#[derive(Clone, Debug)]
pub struct StopRule {
    options: AnalysisOptions,
    next: usize,
    convinced: bool,
    series: Vec<MonitoredSeries>,
}

/// A growing series and its logarithms.
#[derive(Clone, Debug, Default)]
struct MonitoredSeries {
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

impl StopRule {
    /// Create the rule for `series` series, which are first evaluated at `min_ios` values.
    #[must_use]
    pub fn new(options: AnalysisOptions, series: usize, min_ios: usize) -> StopRule {
        let next = min_ios.max(MIN_IOS_ANALYSED);
        StopRule {
            options,
            next,
            convinced: false,
            series: vec![MonitoredSeries::default(); series],
        }
    }

    /// Return the values that each series needs for the next evaluation.
    #[must_use]
    pub fn next_evaluation(&self) -> usize {
        self.next
    }

    /// Return the verdict on a run that ended before the first evaluation.
    fn too_few_ios(&self, ios: usize) -> Verdict {
        let verdict = |series: &MonitoredSeries| SeriesVerdict {
            mean_ns: crate::batch_means::mean(&series.times),
            half_width_ns: None,
            startup_ios: 0,
            period_ios: 1,
            slow_episodes: 0,
            reasons: vec![UncertaintyReason::TooFewPeriods],
        };
        let series = self.series.iter().map(verdict).collect();
        Verdict { stop: false, convincing: false, ios, startup_ios: 0, series }
    }

    /// Append one value [ns] to series number `series`.
    pub fn push(&mut self, series: usize, time_ns: f64) {
        let time = time_ns.max(MIN_TIME_NS);
        self.series[series].times.push(time);
        self.series[series].logs.push(time.ln());
    }

    /// Evaluate all series at their present lengths; the shortest determines the next evaluation.
    pub fn evaluate(&mut self) -> Verdict {
        let ios = self.series.iter().map(|series| series.times.len()).min().unwrap_or(0);
        if ios < MIN_IOS_ANALYSED {
            return self.too_few_ios(ios);
        }
        let estimate = |series: &MonitoredSeries| {
            MeanEstimate::estimate(&series.times, &series.logs, self.options)
        };
        let estimates: Vec<MeanEstimate> = self.series.iter().map(estimate).collect();
        let convincing = estimates.iter().all(|estimate| estimate.reasons.is_empty());
        let stop = convincing && self.convinced;
        self.convinced = convincing;
        self.next = ios + if convincing { ios.div_ceil(16) } else { ios.div_ceil(5) };
        Verdict {
            stop,
            convincing,
            ios,
            startup_ios: estimates.iter().map(|estimate| estimate.startup).max().unwrap_or(0),
            series: estimates
                .iter()
                .zip(&self.series)
                .map(|(estimate, series)| estimate.verdict(&series.times[estimate.startup..]))
                .collect(),
        }
    }
}
