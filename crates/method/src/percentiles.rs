//! Percentiles with intervals, as far as the sample supports them.
//!
//! **Source**: order-statistic intervals, e.g. Conover, *Practical Nonparametric Statistics*, §3.2.
//! **Faithful**: ranks from the binomial distribution of the number of values below the percentile.
//! **Simplified**: its normal approximation, which needs ten I/Os, a number required anyway.
//! **Ambiguous**: the theory requires independent I/Os. For correlated ones, the share below the
//! percentile is a mean whose interval batch means give; the wider of the two intervals is taken.
//! With correlated batches the run is too short, and no percentile is reported.

use uflip_core::SpooledVec;

use crate::batch_means::{MAX_BATCHES, MAX_CORRELATION, batch_means, variance};
use crate::quantile::normal_quantile;

/// The shares of the percentiles.
pub const SHARES: [f64; 7] = [0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// The fewest independent I/Os on the thinner side of a percentile.
const MIN_SUPPORT: f64 = 10.0;

/// Up to this many I/Os per independent one, correlation of batches occurs by chance.
const CHANCE_CORRELATION: f64 = 2.0;

/// A percentile: the smallest response time that a share of the I/Os does not exceed.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Percentile {
    /// The share of I/Os, such as 0.99.
    pub share: f64,
    /// The percentile [ns].
    pub value_ns: f64,
    /// The lower end of its interval [ns].
    pub low_ns: f64,
    /// The upper end of its interval [ns].
    pub high_ns: f64,
}

/// Return the percentiles that `times` supports; `times` is in time order and covers whole periods.
pub fn percentiles(times: &[f64], confidence: f64) -> Vec<Percentile> {
    // The bits of positive floats sort like the floats, in half the time.
    let mut ordered: SpooledVec<u64> = times.iter().map(|x| x.to_bits()).collect();
    ordered.sort_unstable();
    SHARES.into_iter().filter_map(|share| percentile(times, &ordered, share, confidence)).collect()
}

fn percentile(times: &[f64], ordered: &[u64], share: f64, confidence: f64) -> Option<Percentile> {
    let n = times.len() as f64;
    if n * share.min(1.0 - share) < MIN_SUPPORT - 1e-6 {
        return None;
    }
    // Too few to estimate their dependence.
    if times.len() < MAX_BATCHES {
        return None;
    }
    let rank = |x: f64| f64::from_bits(ordered[(x.clamp(1.0, n) as usize) - 1]);
    let value = rank((n * share - 1e-6).ceil());
    let below: SpooledVec<f64> = times.iter().map(|x| f64::from(u8::from(*x <= value))).collect();
    let batches = batch_means(&below, 1, confidence)?;
    let scatter = share * (1.0 - share);
    let independent = scatter / variance(&batches.means) / batches.batch as f64 * n;
    if independent.min(n) * share.min(1.0 - share) < MIN_SUPPORT {
        return None;
    }
    if batches.correlation > MAX_CORRELATION && independent * CHANCE_CORRELATION < n {
        return None;
    }
    let chance = normal_quantile(0.5 + confidence / 2.0) * (scatter / n).sqrt();
    let half_width = batches.half_width.max(chance);
    Some(Percentile {
        share,
        value_ns: value,
        low_ns: rank((n * (share - half_width)).floor()),
        high_ns: rank((n * (share + half_width)).ceil() + 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_series_have_no_percentiles() {
        for n in 1..MAX_BATCHES {
            let times: Vec<f64> = (0..n).map(|i| 100.0 + i as f64).collect();
            assert!(percentiles(&times, 0.95).is_empty(), "{n}");
        }
    }
}
