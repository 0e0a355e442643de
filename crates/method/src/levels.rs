//! The levels of response times, and the episodes of slow I/Os among them.
//!
//! Levels are peaks of the distribution, separated by valleys. Slow I/Os of one burst count as one
//! episode.
//!
//! **Source**: uFLIP (2009) §4.2: "oscillating between two or more values". Peaks by persistence
//! (Edelsbrunner, Letscher, Zomorodian 2002): the depth of the adjacent valley decides whether a
//! peak counts. C. Ferro, J. Segers, *Inference for clusters of extreme values*, JRSS B 65 (2003) for
//! episodes: the extremal index from the times between exceedances, without a length parameter.
//! **Faithful**: any number of levels, each with its share; also one that only one I/O in hundreds
//! reaches. The estimator of Ferro and Segers, with its correction for short gaps.
//! **Simplified**: bins of a sixteenth of an octave (4 %): closer levels are one.
//! **Ambiguous**: the definition of a level: the valley beside a peak must be less than half as
//! high, and deeper than chance makes it. The definition of slow: with levels, above the bound that
//! separates most of the scatter; without, the I/Os that make half of it.

use uflip_core::SpooledVec;

use crate::batch_means::mean;

/// Bins per factor of two.
const BINS: f64 = 16.0;

/// A valley is lower than the smaller peak by at least this many standard errors of its count.
const STANDARD_ERRORS: f64 = 3.0;

/// A level of response times.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Level {
    /// Mean response time at this level [ns].
    pub mean_ns: f64,
    /// The share of the I/Os.
    pub share: f64,
}

/// Return the levels of response times [ns], lowest first, and the bounds between them.
pub fn levels(times: &[f64]) -> (Vec<Level>, Vec<f64>) {
    let bounds = bounds(times);
    let (mut sums, mut counts) = (vec![0.0; bounds.len() + 1], vec![0.0; bounds.len() + 1]);
    for x in times {
        let level = bounds.iter().take_while(|bound| *x >= **bound).count();
        sums[level] += x;
        counts[level] += 1.0;
    }
    let level = |(sum, count): (f64, f64)| Level {
        mean_ns: sum / count,
        share: count / times.len() as f64,
    };
    (sums.into_iter().zip(counts).map(level).collect(), bounds)
}

/// Return the response times that separate the levels.
fn bounds(times: &[f64]) -> Vec<f64> {
    let position = |x: f64| x.max(1.0).log2() * BINS;
    let lowest = times.iter().copied().fold(f64::INFINITY, f64::min);
    let first = position(lowest).floor() - 2.0;
    let mut counts: Vec<f64> = Vec::new();
    for x in times {
        let bin = (position(*x).floor() - first) as usize;
        if bin + 3 > counts.len() {
            counts.resize(bin + 3, 0.0);
        }
        counts[bin] += 1.0;
    }
    let smooth: Vec<f64> = (0..counts.len())
        .map(|i| {
            let count = |j: usize| counts.get(j).copied().unwrap_or(0.0);
            let before = if i > 0 { counts[i - 1] } else { 0.0 };
            before + count(i) + count(i + 1)
        })
        .collect();
    let valleys = deep_valleys(&smooth);
    valleys.into_iter().map(|bin| ((bin as f64 + 0.5 + first) / BINS).exp2()).collect()
}

/// Return the lowest bins between significant peaks, in order.
fn deep_valleys(heights: &[f64]) -> Vec<usize> {
    // Peaks and the valleys between them, from left to right. Then the shallowest valley is
    // removed, with the lower of its peaks, until all remaining valleys are deep.
    let mut peaks: Vec<f64> = Vec::new();
    let mut valleys: Vec<(f64, usize)> = Vec::new();
    let mut lowest = (f64::INFINITY, 0, 0);
    let mut rising = true;
    for (index, height) in heights.iter().copied().enumerate() {
        match (rising, peaks.last().copied()) {
            (true, Some(peak)) if height >= peak => {
                *peaks.last_mut().expect("at least one peak") = height
            }
            (true, None) => peaks.push(height),
            (true, Some(_)) => {
                rising = false;
                lowest = (height, index, index);
            }
            (false, _) if height < lowest.0 => lowest = (height, index, index),
            (false, _) if height == lowest.0 => lowest.2 = index,
            (false, _) => {
                valleys.push((lowest.0, usize::midpoint(lowest.1, lowest.2)));
                peaks.push(height);
                rising = true;
            }
        }
    }
    loop {
        let shallow = |i: &usize| {
            let peak = peaks[*i].min(peaks[i + 1]);
            let valley = valleys[*i].0;
            peak - valley < STANDARD_ERRORS * peak.sqrt() || valley > peak / 2.0
        };
        let depth = |i: usize| peaks[i].min(peaks[i + 1]) - valleys[i].0;
        let shallowest =
            (0..valleys.len()).filter(shallow).min_by(|a, b| depth(*a).total_cmp(&depth(*b)));
        let Some(i) = shallowest else { break };
        peaks[i] = peaks[i].max(peaks[i + 1]);
        peaks.remove(i + 1);
        valleys.remove(i);
    }
    valleys.into_iter().map(|(_, bin)| bin).collect()
}

/// Return the bound from which response times count as slow [ns].
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
    let mut above: SpooledVec<f64> = times.iter().copied().filter(|x| *x > centre).collect();
    above.sort_unstable_by(f64::total_cmp);
    let mut sum = 0.0;
    for x in above.iter().rev().copied() {
        sum += (x - centre).powi(2);
        if sum >= total / 4.0 {
            return x;
        }
    }
    f64::INFINITY
}

/// Return the number of independent clusters of values of at least `bound`.
pub fn slow_episodes(times: &[f64], bound: f64) -> usize {
    let indices = times.iter().enumerate().filter(|(_, x)| **x >= bound);
    let indices: SpooledVec<usize> = indices.map(|(index, _)| index).collect();
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
    fn levels_are_separated_with_their_shares() {
        let times: Vec<f64> = (0..3000)
            .map(|i| if i % 100 == 0 { 5e6 } else if i % 3 == 0 { 4e5 } else { 1e5 } + f64::from(i))
            .collect();
        let (levels, bounds) = levels(&times);
        assert_eq!((levels.len(), bounds.len()), (3, 2));
        assert!((levels[2].share - 0.01).abs() < 1e-9);
        assert!((levels[1].share - 0.33).abs() < 0.01);
    }

    #[test]
    fn single_hump_with_outliers_is_one_level() {
        let mut times: Vec<f64> = (0..1000).map(|i| 1e5 + f64::from(i % 100) * 100.0).collect();
        times.extend([3e5, 7e5, 2e6]);
        assert_eq!(levels(&times).0.len(), 1);
    }

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
