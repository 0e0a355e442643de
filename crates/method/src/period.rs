//! The period: the I/Os of one oscillation, from the first significant peak of the autocorrelation.
//!
//! **Source**: uFLIP (2009) §4.2 defines the period and finds it by eye; S. Bernstein's inequality
//! and M. S. Bartlett (1946) for the scatter of autocorrelations; the cross-correlation theorem for the
//! autocorrelation. The coefficient is Pearson's, of the pairs (x_i, x_{i+k}) with the mean and variance
//! of either side.
//! **Faithful**: from the logarithm of response time, so that levels count more than the height of
//! spikes. A strictly periodic series has 1 at its period, however short the series is, unlike the usual
//! estimate (one mean, divisor n).
//! **Simplified**: a period of up to a sixth of the series, and of at most [`MAX_PERIOD`];
//! whole I/Os.
//! **Ambiguous**: if a series repeats after P I/Os, every multiple of P is a period: the smallest
//! is meant. A pattern within the period (small merges between large ones) has lower peaks; the
//! noise determines how much lower, and each result is then tested as a part of a longer period. A
//! slow trend raises the correlation at all lags, so a peak counts relative to the lags between its
//! multiples. With one constant side the coefficient is undefined; it is 0 here.

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use crate::batch_means::mean;
use crate::quantile::student_quantile;

/// Longer oscillations count as changes of level.
pub const MAX_PERIOD: usize = 1 << 15;

/// The largest number of I/Os examined, from the end: more add nothing about a period.
const MAX_IOS: usize = 1 << 18;

/// The smallest height of a peak above its surroundings, whatever the noise.
const MIN_PEAK: f64 = 0.02;

/// A peak must recur at twice and at three times the lag.
const REPEATS: usize = 3;

/// The probability of a false period in independent values.
const FALSE_ALARM: f64 = 0.001;

/// The largest multiple of a nearly fitting lag that is tried as the period.
const MAX_MULTIPLE: usize = 5;

/// The minimum number of repetitions of that period in the series.
const MIN_REPEATS: usize = 5;

/// Differences below a scatter of 1 % are attributed to the clock.
const MIN_SCATTER: f64 = 0.01;

/// The difference of equal peaks caused by the finite series.
const ROUNDING: f64 = 0.001;

/// Return the part of `logs` that is examined.
pub fn recent(logs: &[f64]) -> &[f64] {
    &logs[logs.len().saturating_sub(MAX_IOS)..]
}

/// Return the period of `logs` (logarithms of response times) in I/Os; 1 without a significant one.
pub fn period(logs: &[f64]) -> usize {
    let logs = recent(logs);
    let n = logs.len();
    if n < 8 {
        return 1;
    }
    let r = autocorrelation(logs, (n / 2).min(REPEATS * MAX_PERIOD + 2));
    let peaks = significant_peaks(&r, logs);
    let Some(highest) = peaks.iter().map(|k| r[*k]).reduce(f64::max) else { return 1 };
    // Four times the scatter of the difference of two peaks of a periodic series in white noise.
    let tolerance = 4.0 * (2.0 * (1.0 - highest * highest).max(0.0) / n as f64).sqrt() + ROUNDING;
    let first = peaks.into_iter().find(|k| r[*k] >= highest - tolerance);
    first.map_or(1, |k| full_period(logs, refine(&r, k)))
}

/// Return the lags at which, and at two and three times which, the autocorrelation exceeds chance
/// and slow changes. All three must exceed, by the chance level, zero, the lowest coefficient at a
/// shorter lag, and the mean coefficient between the three.
fn significant_peaks(r: &[f64], logs: &[f64]) -> Vec<usize> {
    let n = logs.len() as f64;
    let max_lag = (r.len() - 2) / REPEATS;
    let min_height = chance_level(logs, max_lag).max(MIN_PEAK);
    // Bartlett: correlation between adjacent values increases the scatter of the coefficients.
    let near = r[1..].iter().take_while(|value| **value > 0.0);
    let min_height = min_height * (1.0 + 2.0 * near.map(|value| value * value).sum::<f64>()).sqrt();
    if min_height >= 1.0 || n < 8.0 {
        return Vec::new();
    }
    let sums = cumulative_sums(r);
    let mut lowest = r[1];
    let mut peaks = Vec::new();
    for k in 2..=max_lag {
        let is_peak = r[k] >= r[k - 1] && r[k] >= r[k + 1];
        let near_multiple = |times: usize| {
            let near = &r[times * k - 1..=(times * k + 1).min(r.len() - 1)];
            near.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        };
        let lowest_peak = (1..=REPEATS).map(near_multiple).fold(f64::INFINITY, f64::min);
        let reference = lowest.max(mean_between(&sums, k)).max(0.0);
        if is_peak && lowest_peak - reference >= min_height {
            peaks.push(k);
        }
        lowest = lowest.min(r[k]);
    }
    peaks
}

/// Return the cumulative sums of the coefficients: number `i` is that of `r[..i]`.
fn cumulative_sums(r: &[f64]) -> Vec<f64> {
    let running = r.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    });
    [0.0].into_iter().chain(running).collect()
}

/// Return the mean coefficient at the lags between `k` and [`REPEATS`]` · k` that are not multiples
/// of `k`.
///
/// For a series that repeats after `k` I/Os it is about zero. A trend, a shifting level and a
/// growing scatter raise it as much as the coefficients at the multiples.
fn mean_between(sums: &[f64], k: usize) -> f64 {
    let gap = |first: usize| sums[(first + 1) * k] - sums[first * k + 1];
    (1..REPEATS).map(gap).sum::<f64>() / ((REPEATS - 1) * (k - 1)) as f64
}

/// Return the coefficient that one of `lags` lags of independent values reaches, [`REPEATS`] times
/// over, with a probability of one in a thousand.
///
/// Bernstein's inequality for the sum of products: for values with many small deviations it is the
/// normal approximation. For rare spikes (of kurtosis κ, n/κ of them) it is that of the Poisson
/// distribution of coinciding spikes, n/κ² on average.
fn chance_level(logs: &[f64], lags: usize) -> f64 {
    let n = logs.len() as f64;
    let centre = mean(logs);
    let moment = |power: i32| logs.iter().map(|x| (x - centre).powi(power)).sum::<f64>() / n;
    let kurtosis = moment(4) / moment(2).powi(2).max(f64::MIN_POSITIVE);
    let rate = n / (kurtosis * kurtosis);
    let exponent = ((lags.max(2) as f64).ln() - FALSE_ALARM.ln()) / REPEATS as f64;
    let meetings = exponent / 3.0 + (exponent * exponent / 9.0 + 2.0 * exponent * rate).sqrt();
    meetings * kurtosis / n
}

/// Return the lag near `k` whose multiples fit best: a long comb is more precise than one peak.
fn refine(r: &[f64], k: usize) -> usize {
    let reach = k / 16;
    let teeth = (r.len() - 1) / (k + reach);
    let comb = |lag: usize| (1..=teeth).map(|tooth| r[tooth * lag]).sum::<f64>();
    (k - reach..=k + reach).max_by(|a, b| comb(*a).total_cmp(&comb(*b))).unwrap_or(k)
}

/// Return the full period, of which `k` may be a part: the positions of a multiple of `k` then
/// differ although those of `k` are equal.
fn full_period(logs: &[f64], k: usize) -> usize {
    let multiples = (2..=MAX_MULTIPLE).map(|times| (times, times * k));
    let mut possible = multiples.filter(|(_, multiple)| multiple * MIN_REPEATS <= logs.len());
    possible
        .find(|(times, multiple)| positions_differ(logs, k, *times, *multiple))
        .map_or(k, |(_, longer)| full_period(logs, longer))
}

/// Return whether, of the `times` positions of `full_period` that are one position of `k`, one differs
/// from the others.
fn positions_differ(logs: &[f64], k: usize, times: usize, full_period: usize) -> bool {
    let (mut sums, mut squares) = (vec![0.0; full_period], vec![0.0; full_period]);
    let repeats = logs.len() / full_period;
    for repeat in logs.chunks_exact(full_period) {
        for (position, x) in repeat.iter().enumerate() {
            sums[position] += x;
            squares[position] += x * x;
        }
    }
    let count = repeats as f64;
    let freedom = (times * (repeats - 1)) as f64;
    let critical = student_quantile(FALSE_ALARM / full_period as f64, freedom);
    (0..k).any(|position| {
        let positions = (0..times).map(|time| position + time * k);
        let within: f64 = positions
            .clone()
            .map(|position| squares[position] - sums[position] * sums[position] / count)
            .sum();
        let error = (within.max(0.0) / freedom).sqrt().max(MIN_SCATTER) / count.sqrt();
        let level =
            positions.clone().map(|position| sums[position] / count).sum::<f64>() / times as f64;
        positions
            .map(|position| (sums[position] / count - level).abs())
            .any(|difference| difference > critical * error)
    })
}

/// Return the coefficients at lags 0, 1, …, `max_lag` (meaningful below half the length).
#[must_use]
pub fn autocorrelation(series: &[f64], max_lag: usize) -> Vec<f64> {
    let n = series.len();
    let max_lag = max_lag.min(n.saturating_sub(2));
    let mean = series.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = series.iter().map(|x| x - mean).collect();
    let products = lagged_products(&centred, max_lag);

    // Sums of the first n − k and of the last n − k values, by removing one value at a time.
    let total: f64 = centred.iter().sum();
    let squares: f64 = centred.iter().map(|x| x * x).sum();
    let (mut first, mut last) = ((total, squares), (total, squares));
    let mut coefficients = Vec::with_capacity(max_lag + 1);
    for (k, product) in products.into_iter().enumerate() {
        if k > 0 {
            let (head, tail) = (centred[k - 1], centred[n - k]);
            first = (first.0 - tail, first.1 - tail * tail);
            last = (last.0 - head, last.1 - head * head);
        }
        let pairs = (n - k) as f64;
        let spread = |(sum, squares): (f64, f64)| squares - sum * sum / pairs;
        let (a, b) = (spread(first), spread(last));
        // Rounding leaves about 1e-16 of the squares for a constant side.
        let defined = a.min(b) > 1e-12 * squares;
        let covariance = product - first.0 * last.0 / pairs;
        coefficients.push(if defined { covariance / (a * b).sqrt() } else { 0.0 });
    }
    coefficients
}

/// Return Σ x_i · x_{i+k} for k = 0 … `max_lag`, from the power spectrum.
fn lagged_products(series: &[f64], max_lag: usize) -> Vec<f64> {
    let size = (series.len() + max_lag + 1).next_power_of_two();
    let transform = FftPlanner::new().plan_fft_forward(size);
    let mut buffer: Vec<Complex<f64>> = series.iter().map(|x| Complex::new(*x, 0.0)).collect();
    buffer.resize(size, Complex::new(0.0, 0.0));
    transform.process(&mut buffer);
    for value in &mut buffer {
        *value = Complex::new(value.norm_sqr(), 0.0);
    }
    // For a real and even input, the transform is its own inverse.
    transform.process(&mut buffer);
    buffer[..=max_lag].iter().map(|value| value.re / size as f64).collect()
}

#[cfg(test)]
mod tests {
    use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

    use super::*;

    fn repeated(one: &[f64], times: usize) -> Vec<f64> {
        one.iter().copied().cycle().take(one.len() * times).collect()
    }

    #[test]
    fn period_is_not_a_divisor_of_the_true_period() {
        assert_eq!(period(&repeated(&[0.0, 0.0, 4.0], 100)), 3);
        // Small merges every four, and every third of them large.
        let mut one = [0.0; 12];
        (one[3], one[7], one[11]) = (2.0, 2.0, 6.0);
        assert_eq!(period(&repeated(&one, 40)), 12);
    }

    /// A trend correlates all lags, and chance adds peaks.
    #[test]
    fn trend_neither_fakes_nor_hides_a_period() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut noise = |i: usize| {
            let sum: f64 = (0..12).map(|_| uniform(&mut random, 1 << 20) as f64).sum();
            0.1 * (sum / f64::from(1 << 20) - 6.0) + 0.08 * i as f64 / 20_000.0
        };
        let drifting: Vec<f64> = (0..20_000).map(&mut noise).collect();
        assert_eq!(period(&drifting), 1);
        let merging = (0..20_000).map(|i| noise(i) + if i % 40 == 0 { 1.0 } else { 0.0 });
        assert_eq!(period(&merging.collect::<Vec<_>>()), 40);
    }

    #[test]
    fn constant_growing_and_short_series_have_no_period() {
        assert_eq!(period(&[5.0; 500]), 1);
        assert_eq!(period(&(0..500).map(f64::from).collect::<Vec<_>>()), 1);
        assert_eq!(period(&[1.0, 2.0, 1.0]), 1);
    }

    fn naive(series: &[f64], k: usize) -> f64 {
        let (a, b) = (&series[..series.len() - k], &series[k..]);
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let (p, q) = (mean(a), mean(b));
        let sum =
            |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(x, y)| f(*x, *y)).sum::<f64>();
        sum(&|x, y| (x - p) * (y - q))
            / (sum(&|x, _| (x - p).powi(2)) * sum(&|_, y| (y - q).powi(2))).sqrt()
    }

    #[test]
    fn autocorrelation_matches_the_definition() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let series: Vec<f64> = (0..317).map(|_| uniform(&mut random, 1000) as f64).collect();
        for (k, r) in autocorrelation(&series, 158).into_iter().enumerate() {
            assert!((r - naive(&series, k)).abs() < 1e-9, "lag {k}");
        }
    }

    #[test]
    fn periodic_series_peaks_at_its_period_and_constant_is_zero() {
        let series: Vec<f64> = (0..100).map(|i| f64::from(u8::from(i % 7 == 0))).collect();
        assert!((autocorrelation(&series, 50)[7] - 1.0).abs() < 1e-12);
        assert_eq!(autocorrelation(&[3.0; 64], 8), [0.0; 9]);
    }
}
