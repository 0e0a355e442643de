//! Percentiles with intervals, and only those that the sample supports.
//!
//! **Source**: order-statistic intervals, e.g. Conover, *Practical Nonparametric Statistics*, §3.2.
//! **Faithful**: ranks from the binomial distribution of how many values lie below the percentile.
//! **Simplified**: its normal approximation, which needs the ten I/Os that are asked for anyway.
//! **Ambiguous**: the theory is for independent I/Os. The number of independent ones is estimated
//! from batch means of "is it below", and takes the place of the number of I/Os.

use crate::batches::{BATCHES, mean};
use crate::quantile::normal_quantile;

/// The percentiles that are asked for.
pub const SHARES: [f64; 7] = [0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// Independent I/Os that must lie on the thinner side of a percentile.
const SUPPORT: f64 = 10.0;

/// A percentile: the smallest response time that a share of the I/Os does not exceed.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Percentile {
    /// The share of I/Os, as 0.99.
    pub share: f64,
    /// The percentile [ns].
    pub value_ns: f64,
    /// Lower end of its interval [ns].
    pub low_ns: f64,
    /// Upper end of its interval [ns].
    pub high_ns: f64,
}

/// The percentiles that `times` supports, in time order and of a whole number of periods.
#[must_use]
pub fn percentiles(times: &[f64], confidence: f64) -> Vec<Percentile> {
    // Of positive numbers the bits are in the order of the numbers, and are sorted in half the time.
    let mut ordered: Vec<u64> = times.iter().map(|x| x.to_bits()).collect();
    ordered.sort_unstable();
    SHARES.into_iter().filter_map(|share| percentile(times, &ordered, share, confidence)).collect()
}

fn percentile(times: &[f64], ordered: &[u64], share: f64, confidence: f64) -> Option<Percentile> {
    let n = times.len() as f64;
    if n * share.min(1.0 - share) < SUPPORT - 1e-6 {
        return None;
    }
    // Too few to tell how much they depend on each other.
    if times.len() < BATCHES {
        return None;
    }
    let rank = |x: f64| f64::from_bits(ordered[(x.clamp(1.0, n) as usize) - 1]);
    let value = rank((n * share - 1e-6).ceil());
    let independent = n / effect(times, value, share);
    if independent * share.min(1.0 - share) < SUPPORT {
        return None;
    }
    let reach =
        normal_quantile(0.5 + confidence / 2.0) * (share * (1.0 - share) / independent).sqrt();
    Some(Percentile {
        share,
        value_ns: value,
        low_ns: rank((n * (share - reach)).floor()),
        high_ns: rank((n * (share + reach)).ceil() + 1.0),
    })
}

/// How many correlated I/Os are worth one independent one, at least 1.
fn effect(times: &[f64], value: f64, share: f64) -> f64 {
    let batch = times.len() / BATCHES;
    let below = |x: &f64| f64::from(u8::from(*x <= value));
    let of_batch = |values: &[f64]| values.iter().map(below).sum::<f64>() / batch as f64;
    let shares: Vec<f64> = times.chunks_exact(batch).map(of_batch).collect();
    let centre = mean(&shares);
    let squares: f64 = shares.iter().map(|x| (x - centre).powi(2)).sum();
    let variance = squares / (shares.len() - 1) as f64;
    (variance * batch as f64 / (share * (1.0 - share))).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_few_nothing_is_said() {
        for n in 1..BATCHES {
            let times: Vec<f64> = (0..n).map(|i| 100.0 + i as f64).collect();
            assert!(percentiles(&times, 0.95).is_empty(), "{n}");
        }
    }
}
