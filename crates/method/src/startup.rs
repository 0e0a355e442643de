//! The end of the start-up: truncation by batches of whole periods, then to the exact I/O.
//!
//! **Source**: uFLIP (2009) §4.2, two phases; MSER (White 1997; Spratt 1998; Hoad, Robinson 2010).
//! **Faithful**: MSER on batches of whole periods of the logarithm of response time: with batches
//! shorter than the period (MSER-5) it keeps the whole start-up of FAST.
//! **Simplified**: nothing.
//! **Ambiguous**: MSER gives a cut, only to the batch, without a test of significance, and keeps a
//! start-up with less scatter than the running phase. So (1) its cut only defines where the running
//! phase is learned from, and the start-up ends where two levels explain the series best. (2) It
//! counts only if nothing like it recurs in the running phase and it contains nothing like the
//! running phase; otherwise there is no start-up. (3) The procedure is repeated on the rest, to
//! follow a start-up of several steps or a slope.

use uflip_core::SpooledVec;

use crate::batch_means::mean;

/// The largest share of a start-up, if an oscillation shows that the running phase has begun; a
/// longer one counts as not over.
const MAX_SHARE: f64 = 0.75;

/// Smaller changes of the mean do not count as a start-up.
const MIN_CHANGE: f64 = 0.03;

/// A stretch of the running phase this much shorter than the start-up must not resemble it,
const STRETCH_DIVISOR: usize = 3;

/// which it does if its likelihood gain per I/O reaches this share of the start-up's own.
const LIKENESS: f64 = 0.2;

/// The smallest scatter of single response times (1 %): the clock has a finite resolution.
const MIN_SCATTER: f64 = 0.01;

/// The start-up must be distinct in each of this many parts, each with at least this many I/Os.
const PARTS: usize = 8;
const MIN_PART_IOS: usize = 5;
const SHORT_PART: usize = 64;

/// A stretch of this many I/Os of a start-up, or of a period, must never resemble the running
/// phase.
const STRETCH: usize = 32;

/// The largest contribution of a single I/O in such a stretch: a merge in a start-up with few of
/// them is a rare outlier, not a recurring state.
const MAX_CONTRIBUTION: f64 = 4.0;

/// From this many periods on, a start-up must be distinct without regard to positions as well.
const MIN_PERIODS: usize = 2;

/// The largest share of a start-up of several steps, of a slope, or before a running phase without
/// a period: beyond it the level may still change.
pub const MAX_SLOPE_SHARE: f64 = 0.5;

/// The largest number of searches for a shorter start-up after the first.
const MAX_STEPS: usize = 12;

/// The result of the search for a start-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Startup {
    /// It took `ios` I/Os, possibly 0. A slope or an approach is followed in several steps; the
    /// last ends where the rest is lost in the noise.
    Over { ios: usize, gradual: bool },
    /// The level still changes at the end of the series.
    NotOver,
}

impl Startup {
    /// No start-up.
    pub const NONE: Startup = Startup::Over { ios: 0, gradual: false };

    /// Return the I/Os before the running phase; 0 without a running phase.
    pub fn ios(self) -> usize {
        if let Startup::Over { ios, .. } = self { ios } else { 0 }
    }

    /// Return whether it approached the running phase gradually.
    pub fn is_gradual(self) -> bool {
        matches!(self, Startup::Over { gradual: true, .. })
    }
}

/// Return the start-up of `logs` (logarithms of response times) whose running phase has `period`.
pub fn startup(logs: &[f64], period: usize) -> Startup {
    let ios_share = |ios_share: f64| (logs.len() as f64 * ios_share) as usize;
    let (mut ios, mut gradual) = (0, false);
    for number in 0..MAX_STEPS {
        match step(&logs[ios..], period) {
            None => return Startup::NotOver,
            Some(0) => break,
            Some(more) => ios += more,
        }
        gradual = number > 0;
        let max_share = if number == 0 && period > 1 { MAX_SHARE } else { MAX_SLOPE_SHARE };
        if ios > ios_share(max_share) {
            return Startup::NotOver;
        }
    }
    Startup::Over { ios, gradual }
}

/// Return the I/Os before one change of level at the beginning, possibly 0; `None` if it is not
/// over.
fn step(logs: &[f64], period: usize) -> Option<usize> {
    let max_ios = (logs.len() as f64 * MAX_SHARE) as usize;
    let cut = mser(logs, batch_length(logs.len(), period), max_ios).max(logs.len() / 2);
    let ios = by_positions(logs, cut, period, max_ios).or_else(|| {
        // If the oscillation slips, its positions are unusable, but the overall levels may be
        // usable.
        let running = RunningLevels::after(logs, cut, 1);
        let level = running.boundary(logs, max_ios).filter(|_| period > 1)?;
        (is_relevant(logs, level.ios) && running.is_distinct(logs, &level, period))
            .then_some(level.ios)
    });
    let ios = ios.unwrap_or(0);
    (ios == 0 || ios < max_ios).then_some(ios)
}

/// Return the start-up that differs from a running phase with a level for each position in its
/// period.
fn by_positions(logs: &[f64], from: usize, period: usize, max_ios: usize) -> Option<usize> {
    let running = RunningLevels::after(logs, from, period);
    let level = running.boundary(logs, max_ios)?;
    if !is_relevant(logs, level.ios) || !running.is_distinct(logs, &level, period) {
        return None;
    }
    // Position by position, data before a slip resembles nothing after it. A start-up of several
    // periods must therefore differ without regard to positions as well.
    if period > 1 && level.ios >= MIN_PERIODS * period {
        let running = RunningLevels::after(logs, from, 1);
        let level = StartupLevel::level_of(&logs[..level.ios]);
        return running.is_distinct(logs, &level, period).then_some(level.ios);
    }
    Some(level.ios)
}

/// Return the batch length: at least 5 values and two periods, but never fewer than ten batches.
fn batch_length(n: usize, period: usize) -> usize {
    let whole = 5_usize.max(2 * period).div_ceil(period) * period;
    if n / whole >= 10 {
        whole
    } else if n / period >= 10 {
        period
    } else {
        (n / 10).max(1)
    }
}

/// Return the MSER truncation point, at most `longest`.
fn mser(logs: &[f64], batch: usize, max_ios: usize) -> usize {
    let means: SpooledVec<f64> = logs.chunks_exact(batch).map(mean).collect();
    let centre = mean(&means);
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (index, value) in means.iter().enumerate().rev() {
        let x = value - centre;
        (sum, squares, count) = (sum + x, squares + x * x, count + 1.0);
        let marginal = (squares - sum * sum / count).max(0.0) / (count * count);
        if index * batch <= max_ios && marginal <= best.0 {
            best = (marginal, index);
        }
    }
    best.1 * batch
}

/// The running phase, estimated from the rest of the series: a level for each position in the
/// period.
struct RunningLevels {
    levels: Vec<f64>,
    variance: f64,
}

impl RunningLevels {
    fn after(logs: &[f64], from: usize, period: usize) -> RunningLevels {
        let rest = logs.len() - from;
        // With fewer than three periods the positions of a period cannot be separated from the
        // noise.
        let positions = if rest >= 3 * period { period } else { 1 };
        let (mut sums, mut counts) = (vec![0.0; positions], vec![0.0; positions]);
        for (index, x) in logs.iter().enumerate().skip(from) {
            sums[index % positions] += x;
            counts[index % positions] += 1.0;
        }
        let levels: Vec<f64> = sums.iter().zip(&counts).map(|(sum, n)| sum / n).collect();
        let square = |(i, x): (usize, &f64)| (x - levels[i % positions]).powi(2);
        let squares = logs.iter().enumerate().skip(from).map(square).sum::<f64>();
        // For values that the levels were not fitted to: with few periods the levels are imprecise.
        let (fitted, rest) = (positions as f64, rest as f64);
        let variance = squares / (rest - fitted) * (1.0 + fitted / rest);
        RunningLevels { levels, variance: variance.max(MIN_SCATTER.powi(2)) }
    }

    /// Return the deviation of I/O `index` from the running phase.
    fn deviation(&self, logs: &[f64], index: usize) -> f64 {
        logs[index] - self.levels[index % self.levels.len()]
    }

    /// Return the first I/Os that a level of their own explains best; `None` if the running phase
    /// explains them as well.
    fn boundary(&self, logs: &[f64], until: usize) -> Option<StartupLevel> {
        let (mut level, mut shift) = (RunningVariance::default(), RunningVariance::default());
        let mut explained = 0.0;
        let mut best =
            StartupLevel { ios: 0, gain: 0.0, centre: 0.0, variance: 1.0, shifted: false };
        for (index, log) in logs.iter().enumerate().take(until) {
            let deviation = self.deviation(logs, index);
            level.add(*log);
            shift.add(deviation);
            explained += self.cost(deviation);
            // For equal numbers of I/Os: the smaller variance costs less.
            let shifted = shift.variance() < level.variance();
            let beginning = if shifted { &shift } else { &level };
            let gain = explained - beginning.cost();
            if gain > best.gain {
                let (centre, variance) = (beginning.mean(), beginning.variance());
                best = StartupLevel { ios: index + 1, gain, centre, variance, shifted };
            }
        }
        // Two parameters and a position were fitted.
        let chance = 2.0 * (logs.len() as f64).ln() + 6.0;
        (best.gain > chance).then_some(best)
    }

    /// Return twice the negative log-likelihood of a deviation.
    fn cost(&self, deviation: f64) -> f64 {
        deviation * deviation / self.variance + self.variance.ln()
    }

    /// Return whether the start-up is distinct in all its parts, and no shorter stretch later
    /// resembles it.
    fn is_distinct(&self, logs: &[f64], level: &StartupLevel, period: usize) -> bool {
        let mut sums = SpooledVec::default();
        sums.push(0.0);
        for index in 0..logs.len() {
            let deviation = self.deviation(logs, index);
            let own_deviation = if level.shifted { deviation } else { logs[index] } - level.centre;
            let own_cost = own_deviation * own_deviation / level.variance + level.variance.ln();
            sums.push(sums[index] + self.cost(deviation) - own_cost);
        }
        let part = (level.ios / PARTS).max(period).max(MIN_PART_IOS).min(level.ios);
        // The last part of a slope is close to the running level, and chance decides there.
        let count = level.ios / part;
        let from = if count > 2 { 1 } else { 0 };
        let ends = (from..count).map(|number| level.ios - number * part);
        let mut parts = ends.map(|end| sums[end] - sums[end - part]);
        let length = (level.ios / STRETCH_DIVISOR).max(period.min(level.ios)).max(1);
        let likeness = LIKENESS * sums[level.ios] / level.ios as f64 * length as f64;
        let mut later = level.ios..(logs.len() + 1).saturating_sub(length);
        let chance = if part <= SHORT_PART { chance_gain(part) } else { 0.0 };
        // A state that recurs is not a start-up, however short it was; only the end of a slope is
        // close to the running level.
        let stretch = STRETCH.max(period);
        let bounded_sums = bounded(&sums[..=level.ios]);
        let mut within = 0..(level.ios - level.ios / 4 + 1).saturating_sub(stretch);
        parts.all(|part| part > chance)
            && within.all(|index| {
                bounded_sums[index + stretch] - bounded_sums[index] > chance_gain(stretch)
            })
            && later.all(|index| sums[index + length] - sums[index] < likeness)
    }
}

/// Return how much a few I/Os of a start-up may favour the running phase by chance.
fn chance_gain(ios: usize) -> f64 {
    -3.0 * (ios as f64).sqrt()
}

/// Return the sums of the contributions of the I/Os, each bounded by [`MAX_CONTRIBUTION`].
fn bounded(sums: &[f64]) -> SpooledVec<f64> {
    let each = sums.windows(2).map(|pair| (pair[1] - pair[0]).max(-MAX_CONTRIBUTION));
    let running = each.scan(0.0, |sum, each| {
        *sum += each;
        Some(*sum)
    });
    [0.0].into_iter().chain(running).collect()
}

/// A beginning explained by a level of its own.
struct StartupLevel {
    ios: usize,
    /// The gain over the running phase, in twice the log-likelihood.
    gain: f64,
    centre: f64,
    variance: f64,
    /// Whether the level is one of deviations from the running phase, or of response times.
    shifted: bool,
}

impl StartupLevel {
    /// Return the level of `logs` as a start-up.
    fn level_of(logs: &[f64]) -> StartupLevel {
        let mut level = RunningVariance::default();
        logs.iter().for_each(|log| level.add(*log));
        let (centre, variance) = (level.mean(), level.variance());
        StartupLevel { ios: logs.len(), gain: 0.0, centre, variance, shifted: false }
    }
}

/// Return whether the first `ios` differ enough to affect a mean.
fn is_relevant(logs: &[f64], ios: usize) -> bool {
    let mean_of = |logs: &[f64]| logs.iter().map(|x| x.exp()).sum::<f64>() / logs.len() as f64;
    let (first, rest) = (mean_of(&logs[..ios]), mean_of(&logs[ios..]));
    (first - rest).abs() >= MIN_CHANGE * rest
}

/// The sum and squares of a growing stretch.
#[derive(Default)]
struct RunningVariance {
    count: f64,
    sum: f64,
    squares: f64,
}

impl RunningVariance {
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    /// Return twice the negative log-likelihood under its own normal distribution.
    fn cost(&self) -> f64 {
        self.count * (1.0 + self.variance().ln())
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    fn variance(&self) -> f64 {
        (self.squares / self.count - self.mean().powi(2)).max(MIN_SCATTER.powi(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: f64 = 4.0;

    /// Fast I/Os with a spike at regular intervals, and two close together once.
    fn spiky(n: usize, every: usize, spike: f64) -> impl Iterator<Item = f64> {
        let is_slow = move |i: usize| i % every == every - 1 || i == 3 * every + 5;
        (0..n).map(move |i| if is_slow(i) { spike } else { 0.01 * (i % 7) as f64 })
    }

    /// FAST: small merges while the log fills, then full ones at the same rate.
    #[test]
    fn start_up_spikes_are_not_the_running_phase() {
        let logs: Vec<f64> = spiky(4000, 61, SLOW).chain(spiky(16_000, 61, 2.0 * SLOW)).collect();
        assert!(startup(&logs, 1).ios().abs_diff(4000) <= 61, "{:?}", startup(&logs, 1));
    }

    /// A fast state, then a slow one, then the fast one to the end: not a slow start-up.
    #[test]
    fn recurring_state_is_not_a_start_up() {
        let quick = |n: usize| (0..n).map(|i| 0.01 * (i % 7) as f64);
        let slow = |n: usize| quick(n).map(|x| x + SLOW);
        let once: Vec<f64> = slow(1900).chain(quick(6000)).collect();
        assert_eq!(startup(&once, 1).ios(), 1900);
        let again: Vec<f64> = quick(120).chain(slow(1900)).chain(quick(6000)).collect();
        assert_eq!(startup(&again, 1), Startup::NONE);
    }
}
