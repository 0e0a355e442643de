//! The arrival times of an open loop, which do not depend on the device.
//!
//! **Source**: ours; uFLIP's time functions (§3.1) are closed loops. B. Schroeder, A. Wierman, M.
//! Harchol-Balter, *Open versus closed: a cautionary tale* (NSDI 2006) for the difference; L.
//! Kleinrock, *Queueing systems* I (1975) for Poisson arrivals. Response times count from the
//! arrival, so they include the wait behind a slow I/O (no "coordinated omission", G. Tene).
//! **Faithful**: fixed: I/O number i at i × interval. Poisson: independent, exponentially
//! distributed intervals with the given mean.
//! **Simplified**: an interval is whole nanoseconds; its fraction carries over to the next one, so
//! the rate is exact in the long run.
//! **Ambiguous**: the first I/O of a fixed rate arrives at 0, the first of a Poisson process after
//! one interval.
//!
//! The logarithm uses integer arithmetic only, so that a seed gives the same arrivals on every
//! machine.

use uflip_core::Nanos;
use uflip_core::random::{Rng, Xoshiro256PlusPlus};

use crate::logarithm::minus_log2;
use crate::spec::mix_order::generator;
use crate::spec::{ArrivalRule, StreamSpec};

/// The endless sequence of arrival times, from the start of the run.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    interval: u64,
    /// The last arrival [ns × 2³²].
    now: u128,
    is_first: bool,
    /// For a Poisson process.
    random: Option<Box<Xoshiro256PlusPlus>>,
}

impl Arrivals {
    pub(crate) fn new(rule: ArrivalRule, stream: &StreamSpec) -> Arrivals {
        let random = matches!(rule, ArrivalRule::Poisson(_)).then(|| {
            // Locations use the generator itself and the one after a long jump; a drawn mix uses
            // the one after two long jumps.
            let mut rng = generator(stream);
            (0..3).for_each(|_| rng.long_jump());
            Box::new(rng)
        });
        Arrivals { interval: rule.interval().0, now: 0, is_first: true, random }
    }

    #[inline]
    pub(crate) fn next_instant(&mut self) -> Nanos {
        let interval = u128::from(self.interval);
        match &mut self.random {
            None if self.is_first => {}
            None => self.now += interval << 32,
            Some(random) => self.now += exponential(random.next_u64()) * interval,
        }
        self.is_first = false;
        Nanos((self.now >> 32) as u64)
    }
}

/// ln 2 × 2⁶⁴.
const LN_2: u128 = 0xb172_17f7_d1cf_79ab;

/// Return −ln u × 2³² for u = (`bits` + 1) / 2⁶⁴.
fn exponential(bits: u64) -> u128 {
    (minus_log2(bits) * LN_2) >> 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_core::random::SeedableRng;

    /// Compares with the floating-point logarithm.
    #[test]
    fn logarithm_is_accurate_to_the_last_bits() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let samples = (0..1000).map(|shift| random.next_u64() >> (shift % 64));
        for bits in samples.chain([0, 1, 2, u64::MAX - 1, u64::MAX, 1 << 63, (1 << 63) - 1]) {
            let expected = -((bits as f64 + 1.0) / 2f64.powi(64)).ln();
            let got = exponential(bits) as f64 / 2f64.powi(32);
            assert!((got - expected).abs() < 1e-9 + 2e-9 * expected, "{bits}: {got} {expected}");
        }
    }

    /// Kolmogorov-Smirnov distance between the intervals and their distribution. One sample in a
    /// thousand exceeds 1.95 / √n.
    #[test]
    fn arrival_intervals_are_exponential() {
        const COUNT: usize = 100_000;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let draw = |_| exponential(random.next_u64()) as f64 / 2f64.powi(32);
        let mut drawn: Vec<f64> = (0..COUNT).map(draw).collect();
        drawn.sort_by(f64::total_cmp);
        let distance = |(rank, x): (usize, &f64)| {
            let (below, expected) = (rank as f64 / COUNT as f64, 1.0 - (-x).exp());
            (expected - below).abs().max((expected - below - 1.0 / COUNT as f64).abs())
        };
        let furthest = drawn.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(furthest < 1.95 / (COUNT as f64).sqrt(), "{furthest}");
    }
}
