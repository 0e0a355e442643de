//! Slow episodes: slow I/Os of one burst count as one episode.
//!
//! **Source**: C. Ferro, J. Segers, *Inference for clusters of extreme values*, JRSS B 65 (2003):
//! the extremal index from the times between exceedances, without a length parameter.
//! **Faithful**: their estimator, with its correction for short gaps.
//! **Simplified**: nothing.
//! **Ambiguous**: the definition of slow. With levels: above the bound that separates most of the
//! scatter. Without: the I/Os that make half of it.

use crate::batches::mean;

/// Return the bound from which response times count as slow [ns].
#[must_use]
pub fn slow_bound(times: &[f64], bounds: &[f64]) -> f64 {
    let centre = mean(times);
    let best = bounds
        .iter()
        .map(|bound| (*bound, squares_between(times, *bound, centre)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let total: f64 = times.iter().map(|x| (x - centre).powi(2)).sum();
    match best {
        Some((bound, between_squares)) if between_squares >= total / 2.0 => bound,
        _ => half_of_the_scatter(times, centre, total),
    }
}

/// Return the sum of squares between the values below and above `bound`.
fn squares_between(times: &[f64], bound: f64, centre: f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for x in times.iter().filter(|x| **x >= bound) {
        sum += x - centre;
        count += 1.0;
    }
    let others = times.len() as f64 - count;
    if count == 0.0 || others == 0.0 { 0.0 } else { sum * sum / count + sum * sum / others }
}

/// Return the value above which values make half of all squares above the mean.
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

/// Return the number of independent clusters of values of at least `bound`.
#[must_use]
pub fn slow_episodes(times: &[f64], bound: f64) -> usize {
    let indices = times.iter().enumerate().filter(|(_, x)| **x >= bound);
    let indices: Vec<usize> = indices.map(|(index, _)| index).collect();
    if indices.len() < 3 {
        return indices.len();
    }
    let gaps = indices.windows(2).map(|pair| (pair[1] - pair[0]) as f64);
    let count = (indices.len() - 1) as f64;
    let longest = gaps.clone().fold(0.0, f64::max);
    let correction = if longest <= 2.0 { 0.0 } else { 1.0 };
    let sum: f64 = gaps.clone().map(|gap| gap - correction).sum();
    let products: f64 = gaps.map(|gap| (gap - correction) * (gap - 2.0 * correction)).sum();
    let index = if products > 0.0 { (2.0 * sum * sum / (count * products)).min(1.0) } else { 1.0 };
    ((index * count).round() as usize + 1).min(indices.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_slow_ios_are_one_episode() {
        let mut apart = vec![1.0; 2000];
        (0..20).for_each(|i| apart[i * 100] = 9.0);
        assert_eq!(slow_episodes(&apart, 5.0), 20);
        // Ferro & Segers for 10 bursts of 40, 200 apart: 39 gaps of 1 for each gap of 161.
        let mut bursts = vec![1.0; 2000];
        (0..10).for_each(|i| bursts[i * 200..i * 200 + 40].fill(9.0));
        let (long, gaps) = (160.0_f64, 399.0);
        let index = 2.0 * (9.0 * long).powi(2) / (gaps * 9.0 * long * (long - 1.0));
        assert_eq!(slow_episodes(&bursts, 5.0), (index * gaps).round() as usize + 1);
    }

    #[test]
    fn slow_bound_lies_between_the_main_levels() {
        let times: Vec<f64> = (0..1000).map(|i| if i % 50 == 0 { 900.0 } else { 10.0 }).collect();
        assert!((10.0..900.0).contains(&slow_bound(&times, &[100.0])));
        assert_eq!(slow_bound(&[7.0; 50], &[]), f64::INFINITY);
    }
}
