//! Batch means: the mean of a correlated series with a valid interval.
//!
//! **Source**: Law & Kelton, *Simulation Modeling and Analysis*, batch means; Tafazzoli, Wilson,
//! Lada, Steiger, *Performance of Skart* (2011): corrections for skewness (after Willink 2005) and
//! for the remaining correlation between batches.
//! **Faithful**: both corrections, Student's quantile.
//! **Simplified**: the interval is symmetric, with the longer of Skart's two sides.
//! **Ambiguous**: the number of batches. Two divisions are made, and the wider interval is taken:
//! batches too short for slow changes of the device widen the interval of the coarser division.
//!
//! ```text
//!  start-up │ omitted   │ batch 1 │ batch 2 │ …            │ batch a │
//!           a batch is a whole number of periods, so that its starting point does not matter
//! ```

use crate::quantile::student_quantile;

/// The number of batches of the finer division; the coarser has half as many.
pub const MAX_BATCHES: usize = 32;

/// The largest correlation of batches that is corrected for.
pub(crate) const MAX_CORRECTED: f64 = 0.8;

/// The fewest batches for an interval.
pub const MIN_BATCHES: usize = 5;

/// Above this correlation of adjacent batches they may be too short.
pub const MAX_CORRELATION: f64 = 0.3;

/// Standard errors from a correlation to the upper end of its one-sided 95 % interval.
const UPPER_END: f64 = 1.645;

/// A mean with its interval.
#[derive(Clone, PartialEq, Debug)]
pub struct BatchMeans {
    /// The mean of all batches.
    pub mean: f64,
    /// The half width of the interval.
    pub half_width: f64,
    /// The correlation of adjacent batches, in the finer division.
    pub correlation: f64,
    /// The batch means of the finer division.
    pub means: Vec<f64>,
    /// The values per batch in the finer division.
    pub batch: usize,
}

impl BatchMeans {
    /// Return the factor by which the interval would widen at the upper end of the interval of the
    /// correlation; infinite if that reaches 1.
    ///
    /// The correlation of `n` independent values scatters by 1/√n: with 32 batches one series in
    /// twenty exceeds [`MAX_CORRELATION`] by chance.
    pub fn widening(&self) -> f64 {
        let upper = self.correlation.max(0.0) + UPPER_END / (self.means.len() as f64).sqrt();
        if upper >= 1.0 {
            return f64::INFINITY;
        }
        (inflation(upper) / inflation(self.correlation.clamp(0.0, MAX_CORRECTED))).max(1.0).sqrt()
    }
}

/// Return the batch means of `series` in whole periods of `period` values; `None` below five
/// periods.
pub fn batch_means(series: &[f64], period: usize, confidence: f64) -> Option<BatchMeans> {
    let fine = division(series, period, MAX_BATCHES)?;
    let mut half_width = half_width(&fine.means, confidence);
    if fine.means.len() >= MAX_BATCHES {
        let pairs: Vec<f64> = fine.means.chunks_exact(2).map(|p| (p[0] + p[1]) / 2.0).collect();
        half_width = half_width.max(self::half_width(&pairs, confidence));
    }
    Some(BatchMeans {
        mean: mean(&fine.means),
        half_width,
        correlation: lag_one(&fine.means),
        means: fine.means,
        batch: fine.batch,
    })
}

struct Division {
    means: Vec<f64>,
    batch: usize,
}

/// Divide into at most `max_batches` batches of whole periods; the remainder is omitted at the beginning.
fn division(series: &[f64], period: usize, max_batches: usize) -> Option<Division> {
    let periods = series.len() / period;
    let batches = periods.min(max_batches);
    if batches < MIN_BATCHES {
        return None;
    }
    let batch = periods / batches * period;
    let values = &series[series.len() - batches * batch..];
    Some(Division { means: values.chunks_exact(batch).map(mean).collect(), batch })
}

/// Return the half width of the interval of the mean of two or more nearly independent `means`.
#[must_use]
pub fn half_width(means: &[f64], confidence: f64) -> f64 {
    let n = means.len() as f64;
    let centre = mean(means);
    let moment = |power: i32| means.iter().map(|x| (x - centre).powi(power)).sum::<f64>();
    let variance = moment(2) / (n - 1.0);
    if variance <= (1e-12 * centre).powi(2) {
        return 0.0;
    }
    // Two values have no skewness.
    let unbiased = if n > 2.0 { n * n / ((n - 1.0) * (n - 2.0)) } else { 0.0 };
    let skewness = moment(3) / n / variance.powf(1.5) * unbiased;
    let beta = skewness / (6.0 * n.sqrt());
    let t = student_quantile(1.0 - confidence, n - 1.0);
    let stretched = |t: f64| {
        if beta.abs() < 1e-6 {
            return t;
        }
        ((1.0 + 6.0 * beta * (t - beta)).cbrt() - 1.0) / (2.0 * beta)
    };
    let quantile = stretched(t).abs().max(stretched(-t).abs());
    let remaining = inflation(lag_one(means).clamp(0.0, MAX_CORRECTED));
    quantile * (remaining * variance / n).sqrt()
}

/// Return the factor by which the variance of a mean grows with the correlation of adjacent values
/// (AR(1)).
pub(crate) fn inflation(correlation: f64) -> f64 {
    (1.0 + correlation) / (1.0 - correlation)
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Return the sample variance.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Return the correlation of adjacent values; 0 for a constant series.
pub(crate) fn lag_one(values: &[f64]) -> f64 {
    let centre = mean(values);
    let square: f64 = values.iter().map(|x| (x - centre).powi(2)).sum();
    if square <= (1e-12 * centre).powi(2) * values.len() as f64 {
        return 0.0;
    }
    values.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre)).sum::<f64>() / square
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_periods_give_zero_width_and_too_few_give_none() {
        let series: Vec<f64> = (0..300).map(|i| if i % 7 == 0 { 8.0 } else { 1.0 }).collect();
        let batches = batch_means(&series, 7, 0.95).expect("enough whole periods");
        assert!((batches.mean - 2.0).abs() < 1e-12 && batches.half_width < 1e-9);
        assert_eq!(batches.batch % 7, 0);
        assert_eq!(batch_means(&series, 75, 0.95), None);
    }

    /// By hand: 32 means with correlation 0.2 have 0.2 + 1.645/√32 = 0.4908 as the upper end, and
    /// the interval grows by √((1.4908/0.5092) / (1.2/0.8)); with 0.75 the upper end is beyond 1.
    #[test]
    fn interval_widens_with_batch_correlation() {
        let with_correlation = |correlation: f64| BatchMeans {
            mean: 1.0,
            half_width: 0.1,
            correlation,
            means: vec![1.0; 32],
            batch: 1,
        };
        assert!((with_correlation(0.2).widening() - 1.3971).abs() < 1e-3);
        assert_eq!(with_correlation(0.75).widening(), f64::INFINITY);
    }

    /// Symmetric, uncorrelated means of four: the textbook interval.
    #[test]
    fn symmetric_uncorrelated_batches_give_student_s_interval() {
        let means = [1.0, 3.0, 3.0, 1.0, 1.0, 3.0, 3.0, 1.0];
        let expected = 2.3646 * (8.0_f64 / 7.0 / 8.0).sqrt();
        assert!((half_width(&means, 0.95) - expected).abs() < 0.15 * expected);
        assert!(half_width(&[1.0, 1.0, 1.0, 1.0, 1.0, 9.0], 0.95) > half_width(&means, 0.95));
        assert!(
            (half_width(&[1.0, 3.0], 0.95) - 12.706).abs() < 1e-3,
            "t of one degree of freedom"
        );
    }
}
