//! Change points: the I/Os at which the level of a series changes.
//!
//! **Source**: R. Killick, P. Fearnhead, I. Eckley, *Optimal detection of changepoints with a
//! linear computational cost*, JASA 107 (2012), PELT with a squared-error cost.
//! **Faithful**: the exact optimum of the penalised cost; the tests compare it with a segmentation
//! that tries every cut.
//! **Simplified**: on at most [`MAX_BATCHES`] batch means.
//! **Ambiguous**: the penalty: 3 ln m, for batch means in units of the scatter between adjacent
//! ones. A wandering level has many change points, and one with a correlation shorter than a batch
//! has some as well; the phase decides whether they matter.

use crate::batch_means::mean;

/// The largest number of batches: a change is located to a thousandth of the run.
pub const MAX_BATCHES: usize = 1024;

/// Return the first index of each segment after the first, for `means` with noise of standard
/// deviation 1.
#[must_use]
pub fn pelt(means: &[f64], penalty: f64) -> Vec<usize> {
    let n = means.len();
    let (mut sums, mut squares) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    for (i, x) in means.iter().enumerate() {
        sums[i + 1] = sums[i] + x;
        squares[i + 1] = squares[i] + x * x;
    }
    let cost = |from: usize, to: usize| {
        let sum: f64 = sums[to] - sums[from];
        squares[to] - squares[from] - sum * sum / (to - from) as f64
    };
    let mut best = vec![-penalty; n + 1];
    let mut previous = vec![0; n + 1];
    let mut candidates = vec![0];
    for to in 1..=n {
        let value = |from: usize| best[from] + cost(from, to) + penalty;
        let from = candidates.iter().copied().min_by(|a, b| value(*a).total_cmp(&value(*b)));
        let from = from.expect("at least one candidate");
        let lowest = value(from);
        candidates.retain(|from| value(*from) - penalty <= lowest);
        (best[to], previous[to]) = (lowest, from);
        candidates.push(to);
    }
    let mut changes = Vec::new();
    let mut at = previous[n];
    while at > 0 {
        changes.push(at);
        at = previous[at];
    }
    changes.reverse();
    changes
}

/// Return the change points of `logs` in I/Os, found on batches of whole periods.
pub fn change_points(logs: &[f64], period: usize) -> Vec<usize> {
    let periods = logs.len() / period;
    let batch = periods.div_ceil(MAX_BATCHES).max(1) * period;
    let means: Vec<f64> = logs.chunks_exact(batch).map(mean).collect();
    if means.len() < 4 {
        return Vec::new();
    }
    let scatter = scatter(&means).max(0.01 / (batch as f64).sqrt());
    let scaled: Vec<f64> = means.iter().map(|x| x / scatter).collect();
    let penalty = 3.0 * (means.len() as f64).ln();
    pelt(&scaled, penalty).into_iter().map(|index| index * batch).collect()
}

/// Return how often the level of `logs` between `changes` crosses their mean: twice per
/// oscillation.
pub fn crossings(logs: &[f64], changes: &[usize]) -> usize {
    let centre = mean(logs);
    let ends = changes.iter().copied().chain([logs.len()]);
    let mut from = 0;
    let above: Vec<bool> = ends
        .map(|to| {
            let level = mean(&logs[from..to]);
            from = to;
            level > centre
        })
        .collect();
    above.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Return the standard deviation of the noise, from differences of adjacent values, which do not
/// depend on the level.
fn scatter(means: &[f64]) -> f64 {
    let mut steps: Vec<f64> = means.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    steps.sort_unstable_by(f64::total_cmp);
    // 0.6745 is the third quartile of the normal distribution; a difference has twice the variance.
    steps[steps.len() / 2] / 0.6745 / std::f64::consts::SQRT_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_level_crosses_the_mean_twice() {
        let logs: Vec<f64> = (0..300).map(|i| f64::from(u8::from(i / 100 == 1))).collect();
        assert_eq!(crossings(&logs, &[100, 200]), 2);
        assert_eq!(crossings(&logs, &[]), 0);
    }
}
