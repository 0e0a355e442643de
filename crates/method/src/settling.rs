//! The end of a gradual start-up, found with batch means: single I/Os are too noisy to show its
//! rest.
//!
//! **Source**: J. Geweke (1992) for the comparison of the beginning with the end.
//! **Faithful**: its shares, the first tenth and the last half.
//! **Simplified**: steps of half a batch, so that an end is late by no more than that.
//! **Ambiguous**: the end itself: when the rest is below the ignored share, or not significant.

use crate::analysis::{AnalysisOptions, NEGLIGIBLE_SHARE};
use crate::batches::{MAX_BATCHES, batch_means, mean};
use crate::startup::{MAX_SLOPE_SHARE, Startup};
use crate::stationarity::stationarity;

/// The largest delay of the end of a start-up, in halves of a batch.
const MAX_HALVES: usize = 16;

/// Return the end of a start-up, delayed step by step as long as the beginning of the running phase
/// differs from its end in the direction of the start-up, by more than the ignored share.
#[must_use]
pub fn settled(times: &[f64], end: Startup, period: usize, options: AnalysisOptions) -> Startup {
    let Startup::Over { ios: ios @ 1.., gradual } = end else { return end };
    let max_ios = (times.len() as f64 * MAX_SLOPE_SHARE) as usize;
    let half = ((times.len() - ios) / MAX_BATCHES / 2).next_multiple_of(period);
    let ends = (ios..=max_ios).step_by(half.max(1)).take(MAX_HALVES);
    let starts_above = mean(&times[..ios]) > mean(&times[ios..]);
    let is_steady = |ios: &usize| {
        let Some(batches) = batch_means(&times[*ios..], period, options.confidence) else {
            return true;
        };
        let trend = stationarity(&batches.means);
        let matters = trend.difference.abs() > NEGLIGIBLE_SHARE * options.half_width * batches.mean;
        trend.geweke <= 1.0 || !matters || (trend.difference > 0.0) != starts_above
    };
    let settled_ios = ends.into_iter().find(is_steady).unwrap_or(ios);
    Startup::Over { ios: settled_ios, gradual: gradual || settled_ios > ios }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS_EARLY: Startup = Startup::Over { ios: 200, gradual: false };

    /// An approach with a rest of 37 % of the level after 200 I/Os, and of less than 1 % after 691.
    fn approaching() -> Vec<f64> {
        (0..8000).map(|i| 1000.0 * (1.0 + (-f64::from(i) / 200.0).exp())).collect()
    }

    #[test]
    fn settling_extends_until_the_remainder_is_negligible() {
        let times = approaching();
        let end = settled(&times, ENDS_EARLY, 1, AnalysisOptions::default());
        assert!(end.is_gradual());
        // The first tenth of 32 batches is four of them; the incomplete batch at the beginning is
        // omitted.
        let first = (times.len() - end.ios()) / 8;
        let rest = mean(&times[end.ios()..end.ios() + first]) - 1000.0;
        assert!((0.0..0.0135 * 1000.0).contains(&rest), "{rest} after {}", end.ios());
        assert!(end.ios() <= 200 + MAX_HALVES * 122);
    }

    #[test]
    fn settling_keeps_sharp_and_opposite_start_ups() {
        let mut sharp = vec![2000.0; 200];
        sharp.extend((0..7800).map(|i| 1000.0 + f64::from(i % 7)));
        assert_eq!(settled(&sharp, ENDS_EARLY, 7, AnalysisOptions::default()), ENDS_EARLY);
        let other: Vec<f64> = approaching().iter().map(|x| 3000.0 - x).collect();
        let mut below = other.clone();
        below[..200].fill(9000.0);
        assert_eq!(settled(&below, ENDS_EARLY, 1, AnalysisOptions::default()), ENDS_EARLY);
        assert_eq!(
            settled(&other, Startup::NotOver, 1, AnalysisOptions::default()),
            Startup::NotOver
        );
    }
}
