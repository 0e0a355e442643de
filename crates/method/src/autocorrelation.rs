//! The autocorrelation of a series.
//!
//! **Source**: the cross-correlation theorem; the coefficient is Pearson's, of the pairs
//! (x_i, x_{i+k}) with the mean and variance of either side.
//! **Faithful**: a strictly periodic series has 1 at its period, however short the series is,
//! unlike the usual estimate (one mean, divisor n).
//! **Simplified**: nothing.
//! **Ambiguous**: with one constant side the coefficient is undefined; it is 0 here.

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

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
    use super::*;
    use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

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
