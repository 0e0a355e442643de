//! How many I/Os one oscillation takes: the first significant peak of the autocorrelation.
//!
//! **Source**: uFLIP (2009) §4.2 defines the period and finds it by eye; M. S. Bartlett (1946) for
//! the scatter of autocorrelations.
//! **Faithful**: of the logarithm of response time, where a level counts and not how high the
//! spikes are.
//! **Simplified**: a period of up to a quarter of what was seen, and of at most
//! [`LONGEST_PERIOD`]; whole I/Os.
//! **Ambiguous**: of a series that repeats after P I/Os every multiple of P is a period: the
//! smallest is meant. A pattern within the period (small merges between large ones) has lower
//! peaks; how much lower they must be follows from the noise.

use crate::autocorrelation::autocorrelation;

/// Longer oscillations are taken for changes of level.
pub const LONGEST_PERIOD: usize = 1 << 15;

/// Beyond this many I/Os more of them say nothing new about a period: the last ones are used.
const MOST_IOS: usize = 1 << 18;

/// A peak must also stand out by this much, whatever the noise, to be an oscillation worth a name.
const LEAST_PEAK: f64 = 0.02;

/// How far peaks of one height may differ by the finite series alone.
const ROUNDING: f64 = 0.001;

/// The period of `logs` (logarithms of response times) in I/Os; 1 if none is significant.
#[must_use]
pub fn period(logs: &[f64]) -> usize {
    let logs = &logs[logs.len().saturating_sub(MOST_IOS)..];
    let n = logs.len();
    if n < 8 {
        return 1;
    }
    let r = autocorrelation(logs, (n / 2).min(2 * LONGEST_PERIOD + 2));
    let peaks = significant_peaks(&r, n);
    let Some(highest) = peaks.iter().map(|k| r[*k]).reduce(f64::max) else { return 1 };
    // The scatter of the difference of two peaks of a periodic series in white noise, four times.
    let tolerance = 4.0 * (2.0 * (1.0 - highest * highest).max(0.0) / n as f64).sqrt() + ROUNDING;
    let first = peaks.into_iter().find(|k| r[*k] >= highest - tolerance);
    first.map_or(1, |k| refined(&r, k))
}

/// Lags at which the series resembles itself more than chance and slow changes explain, and again
/// at twice the lag.
fn significant_peaks(r: &[f64], n: usize) -> Vec<usize> {
    let longest = (r.len() - 1) / 2;
    // Bartlett: correlation between neighbours makes the coefficients scatter more.
    let near = r[1..].iter().take_while(|value| **value > 0.0);
    let scatter = ((1.0 + 2.0 * near.map(|value| value * value).sum::<f64>()) / n as f64).sqrt();
    // The largest of `longest` normal variables stays about two below this.
    let threshold = (2.0 * (longest.max(2) as f64).ln()).sqrt() + 2.0;
    let needed = (threshold * scatter).max(LEAST_PEAK);
    let mut lowest = r[1];
    let mut peaks = Vec::new();
    for k in 2..longest {
        let is_peak = r[k] >= r[k - 1] && r[k] > r[k + 1];
        if is_peak && r[k] >= needed && r[k] - lowest >= needed && repeats(r, k) {
            peaks.push(k);
        }
        lowest = lowest.min(r[k]);
    }
    peaks
}

/// Whether there is a peak at twice the lag as well: a chance resemblance does not come twice.
fn repeats(r: &[f64], k: usize) -> bool {
    let reach = k / 8;
    let again = &r[2 * k - reach..=(2 * k + reach).min(r.len() - 1)];
    let between = r[k + k / 4..=k + k * 3 / 4].iter().copied().fold(f64::INFINITY, f64::min);
    let again = again.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    again >= 0.5 * r[k] && (k < 4 || again - between >= 0.5 * (r[k] - between))
}

/// The lag near `k` whose multiples fit best: a long comb is finer than one peak.
fn refined(r: &[f64], k: usize) -> usize {
    let reach = k / 16;
    let teeth = (r.len() - 1) / (k + reach);
    let comb = |lag: usize| (1..=teeth).map(|tooth| r[tooth * lag]).sum::<f64>();
    (k - reach..=k + reach).max_by(|a, b| comb(*a).total_cmp(&comb(*b))).unwrap_or(k)
}
