//! Percentiles with intervals, and only those that the sample supports.
//!
//! **Source**: order-statistic intervals, e.g. Conover, *Practical Nonparametric Statistics*, §3.2.
//! **Faithful**: ranks from the binomial distribution of how many values lie below the percentile.
//! **Simplified**: its normal approximation, which needs the ten I/Os that are asked for anyway.
//! **Ambiguous**: the theory is for independent I/Os. Of correlated ones the share that lies below is a
//! mean like any other, with the interval that batch means give it; the wider of the two is taken.
//! Where neighbouring batches resemble each other the run is too short to tell, and nothing is said.

use crate::batches::{BATCHES, MOST_CORRELATION, batch_means, mean};
use crate::quantile::normal_quantile;

/// The percentiles that are asked for.
pub const SHARES: [f64; 7] = [0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// Independent I/Os that must lie on the thinner side of a percentile.
const SUPPORT: f64 = 10.0;

/// Where no more I/Os than this are worth an independent one, batches resemble each other by chance.
const FEW_WORTH_ONE: f64 = 2.0;

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
    let below: Vec<f64> = times.iter().map(|x| f64::from(u8::from(*x <= value))).collect();
    let found = batch_means(&below, 1, confidence)?;
    let scatter = share * (1.0 - share);
    let independent = scatter / variance(&found.means) / found.batch as f64 * n;
    if independent.min(n) * share.min(1.0 - share) < SUPPORT {
        return None;
    }
    if found.correlation > MOST_CORRELATION && independent * FEW_WORTH_ONE < n {
        return None;
    }
    let chance = normal_quantile(0.5 + confidence / 2.0) * (scatter / n).sqrt();
    let reach = found.half_width.max(chance);
    Some(Percentile {
        share,
        value_ns: value,
        low_ns: rank((n * (share - reach)).floor()),
        high_ns: rank((n * (share + reach)).ceil() + 1.0),
    })
}

/// The sample variance of `means`.
fn variance(means: &[f64]) -> f64 {
    let centre = mean(means);
    means.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (means.len() - 1) as f64
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
