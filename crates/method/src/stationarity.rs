//! Stationarity of the running phase: Geweke's comparison, and a line through the batches.
//!
//! **Source**: J. Geweke (1992): the mean of the first tenth against that of the last half; least
//! squares for the line.
//! **Faithful**: the shares.
//! **Simplified**: the variances come from the batch means instead of a spectral estimate, and the
//! bound from Student's distribution, because there are few batches.
//! **Ambiguous**: nothing.

use crate::batch_means::{MAX_CORRECTED, inflation, lag_one, mean, variance};
use crate::quantile::student_quantile;

/// The probability of a false alarm for a steady series.
const FALSE_ALARM: f64 = 0.01;

const MIN_LINE_POINTS: usize = 3;

/// The trend of the batch means of a running phase.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stationarity {
    /// Geweke's z, relative to its bound of significance: below 1 is steady.
    pub geweke: f64,
    /// The difference of the first tenth and the last half, in the unit of the series.
    pub difference: f64,
    /// The difference of the mean and the last half, in the unit of the series.
    pub settling: f64,
    /// The change along the line, relative to the mean.
    pub change: f64,
    /// Whether the slope is significant.
    pub has_slope: bool,
    /// Whether the line explains the batches better than a single step.
    pub gradual: bool,
}

/// Test batch means in time order.
pub fn stationarity(means: &[f64]) -> Stationarity {
    let n = means.len();
    let line = TrendLine::fit(means);
    let critical = student_quantile(FALSE_ALARM, (n - 2) as f64);
    let (geweke, difference) = geweke(means);
    Stationarity {
        geweke,
        difference,
        settling: (mean(means) - mean(&means[n / 2..])).abs(),
        change: line.slope * (n - 1) as f64 / mean(means).abs().max(f64::MIN_POSITIVE),
        has_slope: line.error > 0.0 && line.slope.abs() > critical * line.error,
        gradual: line.squares < best_step(means),
    }
}

/// Return whether one line to the end explains `logs` better than a separate line for the first
/// `startup` and a level for the rest, which has more parameters: then the slope is not over.
pub fn slopes_to_the_end(logs: &[f64], startup: usize) -> bool {
    let (first, rest) = logs.split_at(startup);
    if first.len() < MIN_LINE_POINTS {
        return false;
    }
    let centre = mean(rest);
    let level = rest.iter().map(|x| (x - centre).powi(2)).sum::<f64>();
    TrendLine::fit(logs).squares < TrendLine::fit(first).squares + level
}

fn geweke(means: &[f64]) -> (f64, f64) {
    let n = means.len();
    let (first, last) = (&means[..n.div_ceil(10)], &means[n / 2..]);
    let centre = mean(last);
    let freedom = (last.len() - 1) as f64;
    let error = (variance(last) * (1.0 / first.len() as f64 + 1.0 / last.len() as f64)).sqrt();
    let difference = mean(first) - centre;
    if difference.abs() <= 1e-9 * centre.abs() {
        return (0.0, difference);
    }
    let bound = (error * student_quantile(FALSE_ALARM, freedom)).max(f64::MIN_POSITIVE);
    (difference.abs() / bound, difference)
}

struct TrendLine {
    slope: f64,
    /// The standard error of the slope, including the correlation of the residuals.
    error: f64,
    /// The residual sum of squares.
    squares: f64,
}

impl TrendLine {
    fn fit(means: &[f64]) -> TrendLine {
        let n = means.len() as f64;
        let (middle, centre) = ((n - 1.0) / 2.0, mean(means));
        let spread = n * (n * n - 1.0) / 12.0;
        let pairs = means.iter().enumerate();
        let slope = pairs.map(|(i, x)| (i as f64 - middle) * (x - centre)).sum::<f64>() / spread;
        let residual = |(i, x): (usize, &f64)| x - centre - slope * (i as f64 - middle);
        let residuals: Vec<f64> = means.iter().enumerate().map(residual).collect();
        let squares: f64 = residuals.iter().map(|x| x * x).sum();
        let inflation = inflation(lag_one(&residuals).clamp(0.0, MAX_CORRECTED));
        TrendLine { slope, error: (inflation * squares / (n - 2.0) / spread).sqrt(), squares }
    }
}

/// Return the residual sum of squares of the best single step.
fn best_step(means: &[f64]) -> f64 {
    let centre = mean(means);
    let total: f64 = means.iter().map(|x| (x - centre).powi(2)).sum();
    let n = means.len() as f64;
    let mut sum = 0.0;
    let mut best = total;
    for (index, x) in means.iter().enumerate().take(means.len() - 1) {
        sum += x - centre;
        let k = (index + 1) as f64;
        best = best.min(total - sum * sum / k - sum * sum / (n - k));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_ends_where_a_level_begins() {
        let wobble = |i: usize| 0.02 * ((i * 7 % 11) as f64 - 5.0);
        let until = |end: usize| (0..1000).map(move |i| i.min(end) as f64 / 1000.0 + wobble(i));
        let (drift, ramp): (Vec<f64>, Vec<f64>) = (until(1000).collect(), until(300).collect());
        let step: Vec<f64> = (0..1000).map(|i| f64::from(u8::from(i < 300)) + wobble(i)).collect();
        assert!(slopes_to_the_end(&drift, 500));
        assert!(!slopes_to_the_end(&ramp, 300));
        assert!(!slopes_to_the_end(&step, 300));
        assert!(!slopes_to_the_end(&drift, 2), "too short for a line");
    }
}
