//! Where the start-up ends: truncation by batches of whole periods, then to the I/O.
//!
//! **Source**: uFLIP (2009) §4.2, two phases; MSER (White 1997; Spratt 1998; Hoad, Robinson 2010).
//! **Faithful**: MSER on batches of whole periods of the logarithm of response time: with batches
//! shorter than the period (MSER-5) it keeps the whole start-up of FAST.
//! **Simplified**: nothing.
//! **Ambiguous**: MSER says where to cut, not whether anything was there, and only to the batch. So
//! (1) the cut is moved to the I/O where two levels explain the series best; (2) it is a start-up
//! only if nothing like it comes again in the running phase, and abstained from otherwise; (3) the
//! same is tried again on what is left, so that a start-up of several steps or a slope is followed.

use crate::batches::mean;

/// A start-up may take this share of what was seen; a longer one is not over.
pub const LONGEST_SHARE: f64 = 0.75;

/// Changes of less than this (of the logarithm, so 5 %) are no start-up.
const LEAST_CHANGE: f64 = 0.05;

/// A stretch of the running phase this much shorter than the start-up must not reach its level.
const SHORTER: usize = 3;

/// It must not come nearer than this share of the way from the running level to the start-up's.
const REACH: f64 = 0.6;

/// Scatter of single response times below this (1 %) counts as this: a clock has its grain.
const LEAST_SCATTER: f64 = 0.01;

/// How often a shorter start-up is looked for after the first.
const MOST_STEPS: usize = 12;

/// What is known about the start-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Startup {
    /// It took so many I/Os, possibly none.
    Over(usize),
    /// The level still changes where the series ends.
    NotOver,
}

/// The start-up of `logs` (logarithms of response times) whose running phase has `period`.
#[must_use]
pub fn startup(logs: &[f64], period: usize) -> Startup {
    let longest = (logs.len() as f64 * LONGEST_SHARE) as usize;
    let mut ios = 0;
    for _ in 0..MOST_STEPS {
        match step(&logs[ios..], period) {
            Startup::NotOver => return Startup::NotOver,
            Startup::Over(0) => break,
            Startup::Over(more) => ios += more,
        }
        if ios > longest {
            return Startup::NotOver;
        }
    }
    Startup::Over(ios)
}

/// One change of level at the beginning.
fn step(logs: &[f64], period: usize) -> Startup {
    let batch = batch_length(logs.len(), period);
    let Some(cut) = mser(logs, batch) else { return Startup::NotOver };
    let running = Running::after(logs, cut + batch, period);
    let Some(ios) = running.boundary(logs, cut + 3 * batch) else { return Startup::Over(0) };
    if running.is_like_nothing_in(logs, ios) { Startup::Over(ios) } else { Startup::Over(0) }
}

/// At least 5 values and two periods, but never fewer than ten batches.
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

/// MSER: how many values to leave out; `None` if the best cut is the last one that is allowed.
fn mser(logs: &[f64], batch: usize) -> Option<usize> {
    let means: Vec<f64> = logs.chunks_exact(batch).map(mean).collect();
    let last = (means.len() as f64 * LONGEST_SHARE) as usize;
    let centre = mean(&means);
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (index, value) in means.iter().enumerate().rev() {
        let x = value - centre;
        (sum, squares, count) = (sum + x, squares + x * x, count + 1.0);
        let marginal = (squares - sum * sum / count).max(0.0) / (count * count);
        if index <= last && marginal <= best.0 {
            best = (marginal, index);
        }
    }
    (best.1 < last || last == 0).then_some(best.1 * batch)
}

/// The running phase as the rest of the series shows it: a level for each place in the period.
struct Running {
    levels: Vec<f64>,
    variance: f64,
}

impl Running {
    fn after(logs: &[f64], from: usize, period: usize) -> Running {
        let from = from.min(logs.len() / 2 + logs.len() / 4);
        let rest = logs.len() - from;
        // With fewer than three periods the places of a period cannot be told from the noise.
        let places = if rest >= 3 * period { period } else { 1 };
        let (mut sums, mut counts) = (vec![0.0; places], vec![0.0; places]);
        for (index, x) in logs.iter().enumerate().skip(from) {
            sums[index % places] += x;
            counts[index % places] += 1.0;
        }
        let levels: Vec<f64> = sums.iter().zip(&counts).map(|(sum, n)| sum / n).collect();
        let square = |(i, x): (usize, &f64)| (x - levels[i % places]).powi(2);
        let variance = logs.iter().enumerate().skip(from).map(square).sum::<f64>() / rest as f64;
        Running { levels, variance: variance.max(LEAST_SCATTER.powi(2)) }
    }

    /// How far I/O `index` is from what it would be in the running phase.
    fn departure(&self, logs: &[f64], index: usize) -> f64 {
        logs[index] - self.levels[index % self.levels.len()]
    }

    /// The number of I/Os at the beginning that are best explained by a level of their own; `None`
    /// if the running phase explains them as well.
    fn boundary(&self, logs: &[f64], until: usize) -> Option<usize> {
        let until = until.min((logs.len() as f64 * LONGEST_SHARE) as usize);
        let (mut level, mut shift) = (Spread::default(), Spread::default());
        let mut explained = 0.0;
        let mut best = (0.0, 0);
        for index in 0..until {
            let departure = self.departure(logs, index);
            level.add(logs[index]);
            shift.add(departure);
            explained += departure * departure / self.variance + self.variance.ln();
            let own = level.cost().min(shift.cost());
            let gain = explained - own;
            if gain > best.0 {
                best = (gain, index + 1);
            }
        }
        // Two parameters and a place were fitted.
        let chance = 2.0 * (logs.len() as f64).ln() + 6.0;
        (best.0 > chance).then_some(best.1)
    }

    /// Whether the first `ios` differ, and no shorter stretch later on comes near their level.
    fn is_like_nothing_in(&self, logs: &[f64], ios: usize) -> bool {
        let departures: Vec<f64> = (0..logs.len()).map(|i| self.departure(logs, i)).collect();
        let change = mean(&departures[..ios]);
        if change.abs() < LEAST_CHANGE {
            return false;
        }
        let later = &departures[ios..];
        let length = (ios / SHORTER).max(1);
        if later.len() < length {
            return false;
        }
        let sum: f64 = later[..length].iter().sum();
        let mut farthest = sum * change.signum();
        let mut sum = sum;
        for index in length..later.len() {
            sum += later[index] - later[index - length];
            farthest = farthest.max(sum * change.signum());
        }
        farthest / (length as f64) < REACH * change.abs()
    }
}

/// Sum and squares of a growing stretch.
#[derive(Default)]
struct Spread {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    /// Twice the negative log-likelihood under a normal distribution of its own.
    fn cost(&self) -> f64 {
        let mean = self.sum / self.count;
        let variance = (self.squares / self.count - mean * mean).max(LEAST_SCATTER.powi(2));
        self.count * (1.0 + variance.ln())
    }
}
