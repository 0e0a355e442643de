//! How many slow episodes were seen: slow I/Os that come in one burst are one episode.
//!
//! **Source**: C. Ferro, J. Segers, *Inference for clusters of extreme values*, JRSS B 65 (2003):
//! the extremal index from the times between exceedances, without a length to choose.
//! **Faithful**: their estimator, with its correction where all gaps are short.
//! **Simplified**: nothing.
//! **Ambiguous**: what is slow. Where there are levels, what is above the bound that separates most
//! of the scatter; where there are none, the I/Os that make half of it.

use crate::batches::mean;

/// What counts as slow [ns].
#[must_use]
pub fn slow_bound(times: &[f64], bounds: &[f64]) -> f64 {
    let centre = mean(times);
    let best = bounds
        .iter()
        .map(|bound| (*bound, between(times, *bound, centre)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let total: f64 = times.iter().map(|x| (x - centre).powi(2)).sum();
    match best {
        Some((bound, apart)) if apart >= total / 2.0 => bound,
        _ => half_of_the_scatter(times, centre, total),
    }
}

/// Sum of squares between the values below and above `bound`.
fn between(times: &[f64], bound: f64, centre: f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for x in times.iter().filter(|x| **x >= bound) {
        sum += x - centre;
        count += 1.0;
    }
    let others = times.len() as f64 - count;
    if count == 0.0 || others == 0.0 { 0.0 } else { sum * sum / count + sum * sum / others }
}

/// The value above which values make half of all squares above the mean.
fn half_of_the_scatter(times: &[f64], centre: f64, total: f64) -> f64 {
    let mut above: Vec<f64> = times.iter().copied().filter(|x| *x > centre).collect();
    above.sort_unstable_by(f64::total_cmp);
    let mut sum = 0.0;
    while let Some(x) = above.pop() {
        sum += (x - centre).powi(2);
        if sum >= total / 4.0 {
            return x;
        }
    }
    f64::INFINITY
}

/// Independent clusters of values that are at least `bound`.
#[must_use]
pub fn slow_episodes(times: &[f64], bound: f64) -> usize {
    let places = times.iter().enumerate().filter(|(_, x)| **x >= bound);
    let places: Vec<usize> = places.map(|(index, _)| index).collect();
    if places.len() < 3 {
        return places.len();
    }
    let gaps = places.windows(2).map(|pair| (pair[1] - pair[0]) as f64);
    let count = (places.len() - 1) as f64;
    let longest = gaps.clone().fold(0.0, f64::max);
    let less = if longest <= 2.0 { 0.0 } else { 1.0 };
    let sum: f64 = gaps.clone().map(|gap| gap - less).sum();
    let products: f64 = gaps.map(|gap| (gap - less) * (gap - 2.0 * less)).sum();
    let index = if products > 0.0 { (2.0 * sum * sum / (count * products)).min(1.0) } else { 1.0 };
    ((index * count).round() as usize + 1).min(places.len())
}
