//! The analysis of one series of response times: phases, period, mean with its interval, reasons
//! for doubt.
//!
//! ```text
//!  log ─▶ period ─▶ start-up ─▶ period of the rest ─▶ levels, slow episodes, batch means
//!                                                         └─▶ phase, reasons, converged
//! ```
//!
//! **Source**: uFLIP (2009) §4.2 for the two phases, their length and the levels; each part names
//! its source. J. Geweke (1992) for the comparison of the beginning with the end, which finds the end
//! of a gradual start-up in batch means: single I/Os are too noisy to show its rest.
//! **Faithful**: start-up first and a running phase that may oscillate; Geweke's shares, the first tenth
//! and the last half.
//! **Simplified**: one series has one start-up and one period. Steps of half a batch, so that the end of
//! a gradual start-up is late by no more than that.
//! **Ambiguous**: the meaning of convergence. Here: the interval is narrow enough *and* there is no
//! reason for doubt. `reasons` lists the reasons in a fixed order. The end of a gradual start-up: when
//! the rest is below the ignored share, or not significant.

use serde::Serialize;
use uflip_core::{Error, Result, SpooledVec};

use crate::batch_means::{
    BatchMeans, MAX_BATCHES, MAX_CORRELATION, MIN_BATCHES, batch_means, mean,
};
use crate::change_points::{change_points, crossings};
use crate::levels::{Level, levels, slow_bound, slow_episodes};
use crate::percentiles::{Percentile, percentiles};
use crate::period::{period, recent};
use crate::startup::{MAX_SLOPE_SHARE, Startup, startup};
use crate::stationarity::{Stationarity, slopes_to_the_end, stationarity};

/// The fewest I/Os that can be analysed.
pub const MIN_IOS_ANALYSED: usize = 32;

/// The fewest slow episodes, or periods ([`MIN_BATCHES`]), for a reliable mean.
pub const MIN_EPISODES: usize = 10;

/// Effects below this share of the requested half width are ignored.
pub(crate) const NEGLIGIBLE_SHARE: f64 = 0.25;

/// The requested precision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AnalysisOptions {
    /// The confidence of the interval, such as 0.95.
    pub confidence: f64,
    /// The largest half width of the interval, relative to the mean.
    pub half_width: f64,
}

impl Default for AnalysisOptions {
    fn default() -> AnalysisOptions {
        AnalysisOptions { confidence: 0.95, half_width: 0.05 }
    }
}

impl AnalysisOptions {
    /// # Errors
    /// A confidence outside 0.5 to 0.999, or a half width outside 0.0001 to 1.
    pub fn check(&self) -> Result<()> {
        let ranges = [
            ("confidence", self.confidence, 0.5, 0.999),
            ("half_width", self.half_width, 0.0001, 1.0),
        ];
        for (name, value, from, to) in ranges {
            if !(from..=to).contains(&value) {
                return Err(Error::usage(format!("'{name}' is out of range"))
                    .at(name)
                    .got(value.to_string())
                    .allowed(format!("{from} to {to}"))
                    .action(format!("change '{name}'")));
            }
        }
        Ok(())
    }
}

/// The phase that a series shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesPhase {
    /// One level from the first I/O on.
    Flat,
    /// A start-up, then a running phase.
    StartUp,
    /// A running phase from the first I/O on, between two or more levels.
    Oscillating,
    /// The level moves slowly in one direction, to the end.
    Drifting,
    /// The level changes, without a recurring pattern.
    NeverSteady,
    /// The series is too short to decide.
    TooShort,
}

/// A reason not to rely on a mean.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UncertaintyReason {
    /// The start-up does not end within the series.
    StartUpNotOver,
    /// Fewer than five periods, or fewer I/Os than five batches need.
    TooFewPeriods,
    /// Slow I/Os occurred in fewer than ten independent episodes.
    TooFewSlowEpisodes,
    /// The interval is wider than requested.
    IntervalTooWide,
    /// Adjacent batches are correlated.
    BatchesCorrelated,
    /// The running phase drifts.
    Drift,
    /// The beginning of the running phase differs from its end.
    NotStationary,
}

/// The result of the analysis.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Analysis {
    /// The number of I/Os.
    pub ios: usize,
    /// I/Os before the running phase; 0 if the start-up does not end.
    pub startup_ios: usize,
    /// I/Os of one oscillation; 1 without oscillation.
    pub period_ios: usize,
    /// The phase.
    pub phase: SeriesPhase,
    /// Levels of the running phase, lowest first.
    pub levels: Vec<Level>,
    /// Mean of the running phase [ns].
    pub mean_ns: f64,
    /// The half width of its interval [ns]; `None` with too few batches.
    pub half_width_ns: Option<f64>,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// Whether the interval is narrow enough without a reason for doubt.
    pub converged: bool,
    /// The reasons for doubt.
    pub reasons: Vec<UncertaintyReason>,
    /// The bound from which response times count as slow [ns].
    pub slow_bound_ns: Option<f64>,
    /// Independent episodes of slow I/Os in the running phase.
    pub slow_episodes: usize,
    /// Percentiles of the running phase that the sample supports.
    pub percentiles: Vec<Percentile>,
    /// I/Os at which the level changes; empty for a flat phase.
    pub change_points: Vec<usize>,
}

/// Analyse response times [ns] in the order of submission.
///
/// # Errors
/// Fewer than [`MIN_IOS_ANALYSED`] values; a value that is not a positive number; options out of range.
pub fn analyse(times: &[f64], options: AnalysisOptions) -> Result<Analysis> {
    options.check()?;
    check(times)?;
    let logs: SpooledVec<f64> = times.iter().map(|x| x.ln()).collect();
    let estimate = MeanEstimate::estimate(times, &logs, options);
    let running = &times[estimate.startup..];
    let whole = running.len() / estimate.period * estimate.period;
    let changes = change_points(&logs, estimate.period);
    let phase = estimate.phase(&logs, &changes);
    Ok(Analysis {
        ios: times.len(),
        startup_ios: estimate.startup,
        period_ios: estimate.period,
        phase,
        mean_ns: estimate.mean(running),
        half_width_ns: estimate.batches.as_ref().map(|batches| batches.half_width),
        confidence: options.confidence,
        converged: estimate.reasons.is_empty(),
        reasons: estimate.reasons,
        slow_bound_ns: estimate.slow_bound,
        slow_episodes: estimate.slow_episodes,
        percentiles: percentiles(&running[running.len() - whole..], options.confidence),
        change_points: if phase == SeriesPhase::Flat { Vec::new() } else { changes },
        levels: estimate.levels,
    })
}

/// Check that these response times can be analysed.
///
/// # Errors
/// Fewer than [`MIN_IOS_ANALYSED`] values; a value that is not a positive number.
pub fn check(times: &[f64]) -> Result<()> {
    if times.len() < MIN_IOS_ANALYSED {
        return Err(Error::usage("There are too few response times to analyse")
            .got(times.len().to_string())
            .allowed(format!("{MIN_IOS_ANALYSED} or more"))
            .action("measure a longer run"));
    }
    let invalid = times.iter().position(|x| !(x.is_finite() && *x > 0.0));
    if let Some(index) = invalid {
        return Err(Error::usage("A response time is not a positive number")
            .at(format!("I/O number {index}, counted from 0"))
            .got(times[index].to_string())
            .allowed("finite numbers above 0 [ns]")
            .action("omit such I/Os, or use another column"));
    }
    Ok(())
}

/// The evaluation of one series by a stop rule.
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
    pub reasons: Vec<UncertaintyReason>,
}

/// The part of the analysis that the stop rule needs.
pub(crate) struct MeanEstimate {
    pub(crate) startup: usize,
    pub(crate) period: usize,
    pub(crate) batches: Option<BatchMeans>,
    pub(crate) slow_episodes: usize,
    pub(crate) reasons: Vec<UncertaintyReason>,
    levels: Vec<Level>,
    slow_bound: Option<f64>,
    stationarity: Option<Stationarity>,
    options: AnalysisOptions,
}

impl MeanEstimate {
    /// `logs` are the logarithms of `times`.
    pub(crate) fn estimate(times: &[f64], logs: &[f64], options: AnalysisOptions) -> MeanEstimate {
        // The second half is beyond the start-up, if the start-up can be determined at all.
        let half = &logs[logs.len() / 2..];
        let first = period(half);
        let end = startup(logs, first);
        let running = &logs[end.ios()..];
        // Both are ends of the series: with equal lengths they are identical.
        let is_same = recent(running).len() == recent(half).len();
        let running_period = if is_same { first } else { period(running) };
        let period = if running_period == 1 { first } else { running_period };
        let end = if period == first { end } else { startup(logs, period) };
        let estimate = MeanEstimate::with_startup(
            times,
            settled(times, end, period, options),
            period,
            options,
        );
        let drifts = || slopes_to_the_end(logs, estimate.startup);
        if estimate.startup == 0 || (estimate.is_steady() && !drifts()) {
            return estimate;
        }
        // While the level still changes, there is no running phase to separate from a start-up.
        let mut whole_series = MeanEstimate::with_startup(times, Startup::NONE, period, options);
        whole_series.reasons.extend(estimate.reasons);
        whole_series.reasons.sort_unstable();
        whole_series.reasons.dedup();
        whole_series
    }

    /// Analyse with a known start-up and period.
    fn with_startup(
        times: &[f64],
        end: Startup,
        period: usize,
        options: AnalysisOptions,
    ) -> MeanEstimate {
        let startup = end.ios();
        let running = &times[startup..];
        let (levels, bounds) = levels(running);
        let slow_bound = slow_bound(running, &bounds);
        let mut batches = batch_means(running, period, options.confidence);
        let trend = batches.as_ref().map(|batches| stationarity(&batches.means));
        if let (Some(batches), Some(trend)) = (&mut batches, &trend) {
            let difference = trend.difference.abs();
            if trend.geweke > 1.0
                && difference <= NEGLIGIBLE_SHARE * options.half_width * batches.mean
            {
                // Too small to cause doubt, but it widens the interval.
                batches.half_width += difference;
            }
            if end.is_gradual() {
                // The rest of the approach affects the mean, but hardly the last half.
                batches.half_width += trend.settling;
            }
        }
        let mut estimate = MeanEstimate {
            startup,
            period,
            slow_episodes: slow_episodes(running, slow_bound),
            slow_bound: slow_bound.is_finite().then_some(slow_bound),
            levels,
            stationarity: trend,
            batches,
            reasons: Vec::new(),
            options,
        };
        estimate.reasons = estimate.find_doubts(end);
        estimate
    }

    /// Return whether there is a running phase.
    fn is_steady(&self) -> bool {
        !matches!(
            self.phase(&[], &[]),
            SeriesPhase::Drifting | SeriesPhase::NeverSteady | SeriesPhase::TooShort
        )
    }

    pub(crate) fn verdict(&self, running: &[f64]) -> SeriesVerdict {
        SeriesVerdict {
            mean_ns: self.mean(running),
            half_width_ns: self.batches.as_ref().map(|batches| batches.half_width),
            startup_ios: self.startup,
            period_ios: self.period,
            slow_episodes: self.slow_episodes,
            reasons: self.reasons.clone(),
        }
    }

    fn mean(&self, running: &[f64]) -> f64 {
        match &self.batches {
            Some(batches) => batches.mean,
            None => mean(running),
        }
    }

    fn find_doubts(&self, end: Startup) -> Vec<UncertaintyReason> {
        let mut reasons = Vec::new();
        if end == Startup::NotOver {
            reasons.push(UncertaintyReason::StartUpNotOver);
        }
        let (Some(batches), Some(trend)) = (&self.batches, &self.stationarity) else {
            reasons.push(UncertaintyReason::TooFewPeriods);
            return reasons;
        };
        let oscillates = self.slow_bound.is_some();
        if oscillates && self.period == 1 && self.slow_episodes < MIN_EPISODES {
            reasons.push(UncertaintyReason::TooFewSlowEpisodes);
        }
        let requested = self.options.half_width * batches.mean;
        if batches.half_width > requested {
            reasons.push(UncertaintyReason::IntervalTooWide);
        }
        let is_coarse = batches.means.len() <= MIN_BATCHES;
        // Correlated batches cause no doubt if even the interval for a higher correlation is
        // narrow.
        let widened = batches.half_width * batches.widening().min(1.0 / NEGLIGIBLE_SHARE);
        if !is_coarse && batches.correlation > MAX_CORRELATION && widened > requested {
            reasons.push(UncertaintyReason::BatchesCorrelated);
        }
        if trend.has_slope && trend.change.abs() > self.options.half_width {
            reasons.push(UncertaintyReason::Drift);
        } else if trend.geweke > 1.0 && trend.difference.abs() > NEGLIGIBLE_SHARE * requested {
            reasons.push(UncertaintyReason::NotStationary);
        }
        reasons
    }

    /// Return the phase. `changes` are the change points of the whole series, whose logarithms are
    /// `logs`.
    fn phase(&self, logs: &[f64], changes: &[usize]) -> SeriesPhase {
        let has_doubt = |reason| self.reasons.contains(&reason);
        let gradual = self.stationarity.is_some_and(|trend| trend.gradual);
        if has_doubt(UncertaintyReason::TooFewPeriods) {
            SeriesPhase::TooShort
        } else if has_doubt(UncertaintyReason::Drift) && gradual {
            SeriesPhase::Drifting
        } else if has_doubt(UncertaintyReason::StartUpNotOver)
            || has_doubt(UncertaintyReason::Drift)
        {
            SeriesPhase::NeverSteady
        } else if has_doubt(UncertaintyReason::TooFewSlowEpisodes)
            && has_doubt(UncertaintyReason::IntervalTooWide)
        {
            SeriesPhase::TooShort
        } else if self.startup > 0 {
            SeriesPhase::StartUp
        } else if let Some(phase) = self.moving_phase(logs, changes) {
            phase
        } else if self.period > 1 || self.levels.len() > 1 {
            SeriesPhase::Oscillating
        } else {
            SeriesPhase::Flat
        }
    }

    /// Return the phase of a running phase without a period whose level changes more slowly than a
    /// batch; `None` if it does not. A change must show in the batches and in the change points:
    /// each alone occurs by chance in a steady phase, both together seldom.
    fn moving_phase(&self, logs: &[f64], changes: &[usize]) -> Option<SeriesPhase> {
        let trend = self.stationarity?;
        let signs = [
            UncertaintyReason::BatchesCorrelated,
            UncertaintyReason::NotStationary,
            UncertaintyReason::Drift,
        ];
        if self.period > 1
            || changes.is_empty()
            || !signs.iter().any(|reason| self.reasons.contains(reason))
        {
            return None;
        }
        Some(if trend.has_slope && trend.gradual {
            SeriesPhase::Drifting
        } else if crossings(logs, changes) < 2 * MIN_BATCHES {
            // Fewer periods than a reliable mean needs: the levels may not recur.
            SeriesPhase::NeverSteady
        } else {
            SeriesPhase::Oscillating
        })
    }
}

/// The largest delay of the end of a start-up, in halves of a batch.
const MAX_HALVES: usize = 16;

/// Return the end of a start-up, delayed step by step as long as the beginning of the running phase
/// differs from its end in the direction of the start-up, by more than the ignored share.
pub fn settled(times: &[f64], end: Startup, period: usize, options: AnalysisOptions) -> Startup {
    let Startup::Over { ios: ios @ 1.., gradual } = end else { return end };
    let max_ios = (times.len() as f64 * MAX_SLOPE_SHARE) as usize;
    let half = ((times.len() - ios) / MAX_BATCHES / 2).next_multiple_of(period);
    let ends = (ios..=max_ios).step_by(half.max(1)).take(MAX_HALVES);
    let starts_above = mean(&times[..ios]) > mean(&times[ios..]);
    let is_steady = |ios: &usize| {
        let Some(batches) = batch_means(&times[*ios..], period, options.confidence) else {
            return true;
        };
        let trend = stationarity(&batches.means);
        let matters = trend.difference.abs() > NEGLIGIBLE_SHARE * options.half_width * batches.mean;
        trend.geweke <= 1.0 || !matters || (trend.difference > 0.0) != starts_above
    };
    let settled_ios = ends.into_iter().find(is_steady).unwrap_or(ios);
    Startup::Over { ios: settled_ios, gradual: gradual || settled_ios > ios }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS_EARLY: Startup = Startup::Over { ios: 200, gradual: false };

    /// An approach with a rest of 37 % of the level after 200 I/Os, and of less than 1 % after 691.
    fn approaching() -> Vec<f64> {
        (0..8000).map(|i| 1000.0 * (1.0 + (-f64::from(i) / 200.0).exp())).collect()
    }

    #[test]
    fn settling_extends_until_the_remainder_is_negligible() {
        let times = approaching();
        let end = settled(&times, ENDS_EARLY, 1, AnalysisOptions::default());
        assert!(end.is_gradual());
        // The first tenth of 32 batches is four of them; the incomplete batch at the beginning is
        // omitted.
        let first = (times.len() - end.ios()) / 8;
        let rest = mean(&times[end.ios()..end.ios() + first]) - 1000.0;
        assert!((0.0..0.0135 * 1000.0).contains(&rest), "{rest} after {}", end.ios());
        assert!(end.ios() <= 200 + MAX_HALVES * 122);
    }

    #[test]
    fn settling_keeps_sharp_and_opposite_start_ups() {
        let mut sharp = vec![2000.0; 200];
        sharp.extend((0..7800).map(|i| 1000.0 + f64::from(i % 7)));
        assert_eq!(settled(&sharp, ENDS_EARLY, 7, AnalysisOptions::default()), ENDS_EARLY);
        let other: Vec<f64> = approaching().iter().map(|x| 3000.0 - x).collect();
        let mut below = other.clone();
        below[..200].fill(9000.0);
        assert_eq!(settled(&below, ENDS_EARLY, 1, AnalysisOptions::default()), ENDS_EARLY);
        assert_eq!(
            settled(&other, Startup::NotOver, 1, AnalysisOptions::default()),
            Startup::NotOver
        );
    }
}
