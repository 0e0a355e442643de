//! The end of a gradual start-up, found with batch means: single I/Os are too noisy to show its
//! rest.
//!
//! **Source**: J. Geweke (1992) for the comparison of the beginning with the end.
//! **Faithful**: its shares, the first tenth and the last half.
//! **Simplified**: steps of half a batch, so that an end is late by no more than that.
//! **Ambiguous**: the end itself: when the rest is below the ignored share, or not significant.

use crate::analysis::{NARROW, Options};
use crate::batches::{BATCHES, batch_means, mean};
use crate::startup::{LONGEST_SLOPE, Startup};
use crate::stationarity::stationarity;

/// The largest delay of the end of a start-up, in halves of a batch.
const MOST_HALVES: usize = 16;

/// Return the end of a start-up, delayed step by step as long as the beginning of the running phase
/// differs from its end in the direction of the start-up, by more than the ignored share.
#[must_use]
pub fn settled(times: &[f64], end: Startup, period: usize, options: Options) -> Startup {
    let Startup::Over { ios: ios @ 1.., gradual } = end else { return end };
    let longest = (times.len() as f64 * LONGEST_SLOPE) as usize;
    let half = ((times.len() - ios) / BATCHES / 2).next_multiple_of(period);
    let ends = (ios..=longest).step_by(half.max(1)).take(MOST_HALVES);
    let above = mean(&times[..ios]) > mean(&times[ios..]);
    let steady = |ios: &usize| {
        let Some(batches) = batch_means(&times[*ios..], period, options.confidence) else {
            return true;
        };
        let moves = stationarity(&batches.means);
        let matters = moves.apart.abs() > NARROW * options.half_width * batches.mean;
        moves.geweke <= 1.0 || !matters || (moves.apart > 0.0) != above
    };
    let found = ends.into_iter().find(steady).unwrap_or(ios);
    Startup::Over { ios: found, gradual: gradual || found > ios }
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
    fn the_end_of_an_approach_is_put_off_until_its_rest_does_not_matter() {
        let times = approaching();
        let end = settled(&times, ENDS_EARLY, 1, Options::default());
        assert!(end.is_gradual());
        // The first tenth of 32 batches is four of them; the incomplete batch at the beginning is
        // omitted.
        let first = (times.len() - end.ios()) / 8;
        let rest = mean(&times[end.ios()..end.ios() + first]) - 1000.0;
        assert!((0.0..0.0135 * 1000.0).contains(&rest), "{rest} after {}", end.ios());
        assert!(end.ios() <= 200 + MOST_HALVES * 122);
    }

    #[test]
    fn what_is_over_and_what_goes_the_other_way_stay() {
        let mut sharp = vec![2000.0; 200];
        sharp.extend((0..7800).map(|i| 1000.0 + f64::from(i % 7)));
        assert_eq!(settled(&sharp, ENDS_EARLY, 7, Options::default()), ENDS_EARLY);
        let other: Vec<f64> = approaching().iter().map(|x| 3000.0 - x).collect();
        let mut below = other.clone();
        below[..200].fill(9000.0);
        assert_eq!(settled(&below, ENDS_EARLY, 1, Options::default()), ENDS_EARLY);
        assert_eq!(settled(&other, Startup::NotOver, 1, Options::default()), Startup::NotOver);
    }
}
