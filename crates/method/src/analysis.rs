//! One series of response times in one result: phases, period, mean with its interval, doubts.
//!
//! ```text
//!  log ─▶ period ─▶ start-up ─▶ period of what is left ─▶ levels, slow episodes, batch means
//!                                                             └─▶ phase, reasons, converged
//! ```
//!
//! **Source**: uFLIP (2009) §4.2 for the two phases, their length and the levels; the parts say
//! where they come from.
//! **Faithful**: start-up first and a running phase that may oscillate.
//! **Simplified**: one series has one start-up and one period.
//! **Ambiguous**: what has converged. Here: the interval is narrow enough *and* nothing speaks
//! against believing it. What speaks against it is in `reasons`, in a fixed order.

use serde::Serialize;
use uflip_core::{Error, Result};

use crate::batches::{BatchMeans, FEWEST_BATCHES, MOST_CORRELATION, batch_means, mean};
use crate::changes::{change_points, crossings};
use crate::episodes::{slow_bound, slow_episodes};
use crate::levels::{Level, levels};
use crate::percentiles::{Percentile, percentiles};
use crate::period::{period, recent};
use crate::settling::settled;
use crate::startup::{Startup, startup};
use crate::stationarity::{Stationarity, slopes_to_the_end, stationarity};
use crate::stop::SeriesVerdict;

/// Fewer I/Os say nothing.
pub const FEWEST_IOS: usize = 32;

/// So many slow episodes, or [`FEWEST_BATCHES`] periods, must have been seen.
pub const FEWEST_EPISODES: usize = 10;

/// What is smaller than this share of the half width asked for does not matter.
pub(crate) const NARROW: f64 = 0.25;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Of the interval, as 0.95.
    pub confidence: f64,
    /// Half the width of the interval that is narrow enough, relative to the mean.
    pub half_width: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { confidence: 0.95, half_width: 0.05 }
    }
}

impl Options {
    /// # Errors
    /// A confidence outside of 0.5 to 0.999, a half width outside of 0.0001 to 1.
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

/// What a series looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// One level from the first I/O on.
    Flat,
    /// A start-up, then a running phase.
    StartUp,
    /// A running phase from the first I/O on, between two or more levels.
    Oscillating,
    /// The level moves slowly in one direction, to the end.
    Drifting,
    /// The level changes, and not in a way that comes again.
    NeverSteady,
    /// Too little was seen to tell.
    TooShort,
}

/// Why a mean is not to be relied on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The start-up is not over where the series ends.
    StartUpNotOver,
    /// Fewer than five periods, or fewer I/Os than five batches need.
    TooFewPeriods,
    /// Slow I/Os came in fewer than ten independent episodes.
    TooFewSlowEpisodes,
    /// The interval is wider than asked for.
    IntervalTooWide,
    /// Neighbouring batches resemble each other.
    BatchesCorrelated,
    /// The running phase drifts.
    Drift,
    /// The beginning of the running phase differs from its end.
    NotStationary,
}

/// What a series of response times says.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Analysis {
    /// I/Os in all.
    pub ios: usize,
    /// I/Os before the running phase; of a start-up that is not over, 0.
    pub startup_ios: usize,
    /// I/Os of one oscillation; 1 if there is none.
    pub period_ios: usize,
    /// What the series looks like.
    pub phase: Phase,
    /// Levels of the running phase, lowest first.
    pub levels: Vec<Level>,
    /// Mean of the running phase [ns].
    pub mean_ns: f64,
    /// Half the width of its interval [ns]; `None` where there are too few batches for one.
    pub half_width_ns: Option<f64>,
    /// Of the intervals.
    pub confidence: f64,
    /// Whether the interval is narrow enough and nothing speaks against it.
    pub converged: bool,
    /// Why not.
    pub reasons: Vec<Reason>,
    /// Response times from here on count as slow [ns].
    pub slow_bound_ns: Option<f64>,
    /// Independent episodes of slow I/Os in the running phase.
    pub slow_episodes: usize,
    /// Percentiles of the running phase that the sample supports.
    pub percentiles: Vec<Percentile>,
    /// I/Os at which the level changes, for naming; a flat phase has none.
    pub change_points: Vec<usize>,
}

/// Analyse response times [ns] in the order of submission.
///
/// # Errors
/// Fewer than [`FEWEST_IOS`]; one that is not a positive number; options out of range.
pub fn analyse(times: &[f64], options: Options) -> Result<Analysis> {
    options.check()?;
    check(times)?;
    let logs: Vec<f64> = times.iter().map(|x| x.ln()).collect();
    let core = Core::of(times, &logs, options);
    let running = &times[core.startup..];
    let whole = running.len() / core.period * core.period;
    let changes = change_points(&logs, core.period);
    let phase = core.phase(&logs, &changes);
    Ok(Analysis {
        ios: times.len(),
        startup_ios: core.startup,
        period_ios: core.period,
        phase,
        mean_ns: core.mean(running),
        half_width_ns: core.batches.as_ref().map(|batches| batches.half_width),
        confidence: options.confidence,
        converged: core.reasons.is_empty(),
        reasons: core.reasons,
        slow_bound_ns: core.slow_bound,
        slow_episodes: core.slow_episodes,
        percentiles: percentiles(&running[running.len() - whole..], options.confidence),
        change_points: if phase == Phase::Flat { Vec::new() } else { changes },
        levels: core.levels,
    })
}

/// Whether these response times can be analysed.
///
/// # Errors
/// Fewer than [`FEWEST_IOS`]; one that is not a positive number.
pub fn check(times: &[f64]) -> Result<()> {
    if times.len() < FEWEST_IOS {
        return Err(Error::usage("There are too few response times to analyse")
            .got(times.len().to_string())
            .allowed(format!("{FEWEST_IOS} or more"))
            .action("measure a longer run"));
    }
    let bad = times.iter().position(|x| !(x.is_finite() && *x > 0.0));
    if let Some(index) = bad {
        return Err(Error::usage("A response time is not a positive number")
            .at(format!("I/O number {index}, counted from 0"))
            .got(times[index].to_string())
            .allowed("finite numbers above 0 [ns]")
            .action("leave such I/Os out, or take another column"));
    }
    Ok(())
}

/// What the decision to stop needs, and no more.
pub(crate) struct Core {
    pub(crate) startup: usize,
    pub(crate) period: usize,
    pub(crate) batches: Option<BatchMeans>,
    pub(crate) slow_episodes: usize,
    pub(crate) reasons: Vec<Reason>,
    levels: Vec<Level>,
    slow_bound: Option<f64>,
    stationarity: Option<Stationarity>,
    options: Options,
}

impl Core {
    /// `logs` are the logarithms of `times`.
    pub(crate) fn of(times: &[f64], logs: &[f64], options: Options) -> Core {
        // The second half is beyond the start-up, if that can be told at all.
        let half = &logs[logs.len() / 2..];
        let first = period(half);
        let end = startup(logs, first);
        let running = &logs[end.ios()..];
        // Both are ends of the series: of one length they are the same.
        let is_known = recent(running).len() == recent(half).len();
        let whole = if is_known { first } else { period(running) };
        let period = if whole == 1 { first } else { whole };
        let end = if period == first { end } else { startup(logs, period) };
        let found = Core::from(times, settled(times, end, period, options), period, options);
        let drifts = || slopes_to_the_end(logs, found.startup);
        if found.startup == 0 || (found.is_steady() && !drifts()) {
            return found;
        }
        // What still moves has no running phase to set a start-up apart from.
        let mut rest = Core::from(times, Startup::NONE, period, options);
        rest.reasons.extend(found.reasons);
        rest.reasons.sort_unstable();
        rest.reasons.dedup();
        rest
    }

    /// With a start-up and a period that are known.
    fn from(times: &[f64], end: Startup, period: usize, options: Options) -> Core {
        let startup = end.ios();
        let running = &times[startup..];
        let (levels, bounds) = levels(running);
        let slow_bound = slow_bound(running, &bounds);
        let mut batches = batch_means(running, period, options.confidence);
        let moves = batches.as_ref().map(|batches| stationarity(&batches.means));
        if let (Some(batches), Some(moves)) = (&mut batches, &moves) {
            let apart = moves.apart.abs();
            if moves.geweke > 1.0 && apart <= NARROW * options.half_width * batches.mean {
                // It is no reason to doubt the mean, but moves it by no more than this.
                batches.half_width += apart;
            }
            if end.is_gradual() {
                // What is left of an approach is in the mean, and hardly any more in the last half.
                batches.half_width += moves.settling;
            }
        }
        let mut core = Core {
            startup,
            period,
            slow_episodes: slow_episodes(running, slow_bound),
            slow_bound: slow_bound.is_finite().then_some(slow_bound),
            levels,
            stationarity: moves,
            batches,
            reasons: Vec::new(),
            options,
        };
        core.reasons = core.doubts(end);
        core
    }

    /// Whether there is a running phase.
    fn is_steady(&self) -> bool {
        !matches!(self.phase(&[], &[]), Phase::Drifting | Phase::NeverSteady | Phase::TooShort)
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

    fn doubts(&self, end: Startup) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if end == Startup::NotOver {
            reasons.push(Reason::StartUpNotOver);
        }
        let (Some(batches), Some(moves)) = (&self.batches, &self.stationarity) else {
            reasons.push(Reason::TooFewPeriods);
            return reasons;
        };
        let oscillates = self.slow_bound.is_some();
        if oscillates && self.period == 1 && self.slow_episodes < FEWEST_EPISODES {
            reasons.push(Reason::TooFewSlowEpisodes);
        }
        let asked = self.options.half_width * batches.mean;
        if batches.half_width > asked {
            reasons.push(Reason::IntervalTooWide);
        }
        let few = batches.means.len() <= FEWEST_BATCHES;
        // Correlated batches are no reason where even the interval for more correlation is narrow.
        let wider = batches.half_width * batches.widening().min(1.0 / NARROW);
        if !few && batches.correlation > MOST_CORRELATION && wider > asked {
            reasons.push(Reason::BatchesCorrelated);
        }
        if moves.slopes && moves.change.abs() > self.options.half_width {
            reasons.push(Reason::Drift);
        } else if moves.geweke > 1.0 && moves.apart.abs() > NARROW * asked {
            reasons.push(Reason::NotStationary);
        }
        reasons
    }

    /// `changes` are the change points of the whole series, whose logarithms are `logs`.
    fn phase(&self, logs: &[f64], changes: &[usize]) -> Phase {
        let doubts = |reason| self.reasons.contains(&reason);
        let gradual = self.stationarity.is_some_and(|moves| moves.gradual);
        if doubts(Reason::TooFewPeriods) {
            Phase::TooShort
        } else if doubts(Reason::Drift) && gradual {
            Phase::Drifting
        } else if doubts(Reason::StartUpNotOver) || doubts(Reason::Drift) {
            Phase::NeverSteady
        } else if doubts(Reason::TooFewSlowEpisodes) && doubts(Reason::IntervalTooWide) {
            Phase::TooShort
        } else if self.startup > 0 {
            Phase::StartUp
        } else if let Some(moving) = self.moving(logs, changes) {
            moving
        } else if self.period > 1 || self.levels.len() > 1 {
            Phase::Oscillating
        } else {
            Phase::Flat
        }
    }

    /// What a running phase without a period is called whose level changes more slowly than a batch
    /// lasts; `None` where it does not. The level changes where the batches show it and change points
    /// too: of a steady phase either happens by chance, both seldom.
    fn moving(&self, logs: &[f64], changes: &[usize]) -> Option<Phase> {
        let moves = self.stationarity?;
        let slow = [Reason::BatchesCorrelated, Reason::NotStationary, Reason::Drift];
        if self.period > 1 || changes.is_empty() || !slow.iter().any(|r| self.reasons.contains(r)) {
            return None;
        }
        Some(if moves.slopes && moves.gradual {
            Phase::Drifting
        } else if crossings(logs, changes) < 2 * FEWEST_BATCHES {
            // Fewer periods than a mean is believed of: nothing shows that the levels come again.
            Phase::NeverSteady
        } else {
            Phase::Oscillating
        })
    }
}
