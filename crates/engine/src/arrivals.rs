//! When the I/Os of an open loop arrive: at instants of their own, whatever the device does.
//!
//! **Source**: ours; uFLIP's time functions (§3.1) are closed loops. B. Schroeder, A. Wierman, M.
//! Harchol-Balter, *Open versus closed: a cautionary tale* (NSDI 2006) for the difference; L. Kleinrock,
//! *Queueing systems* I (1975) for Poisson arrivals. Response times count from the instant of arrival, so
//! that what waits behind a slow I/O is not left out (G. Tene's "coordinated omission").
//! **Faithful**: fixed: I/O number i at i × interval. Poisson: independent intervals, exponentially
//! distributed with the given mean.
//! **Simplified**: an interval is whole nanoseconds, and its fraction goes to the next one, so that the
//! rate is exact in the long run.
//! **Ambiguous**: the first I/O of a fixed rate arrives at 0, the first of a Poisson process after an
//! interval.
//!
//! No float decides: the logarithm is worked out with whole numbers, so that a seed gives the same
//! instants on every machine.

use uflip_core::Nanos;
use uflip_core::random::{Rng, Xoshiro256PlusPlus};

use crate::logarithm::minus_log2;
use crate::spec::StreamSpec;
use crate::turns::generator;

/// How the I/Os of a process arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// One every so often.
    Fixed(Nanos),
    /// At random, one every so often on average.
    Poisson(Nanos),
}

impl Rule {
    /// How long it is from one I/O to the next, on average.
    #[must_use]
    pub fn interval(self) -> Nanos {
        match self {
            Rule::Fixed(interval) | Rule::Poisson(interval) => interval,
        }
    }
}

/// The endless sequence of instants, from the start of the run.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    interval: u64,
    /// The instant of the last one [ns × 2³²].
    now: u128,
    is_first: bool,
    /// Of a Poisson process.
    random: Option<Box<Xoshiro256PlusPlus>>,
}

impl Arrivals {
    pub(crate) fn new(rule: Rule, stream: &StreamSpec) -> Arrivals {
        let random = matches!(rule, Rule::Poisson(_)).then(|| {
            // Locations draw from the generator and from the one after a long jump, a drawn mix from
            // the one after two.
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

/// −ln u × 2³² of u = (`bits` + 1) / 2⁶⁴.
fn exponential(bits: u64) -> u128 {
    (minus_log2(bits) * LN_2) >> 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_core::random::SeedableRng;

    /// Against the logarithm of the machine.
    #[test]
    fn a_logarithm_is_right_to_the_last_bits() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let some = (0..1000).map(|shift| random.next_u64() >> (shift % 64));
        for bits in some.chain([0, 1, 2, u64::MAX - 1, u64::MAX, 1 << 63, (1 << 63) - 1]) {
            let expected = -((bits as f64 + 1.0) / 2f64.powi(64)).ln();
            let got = exponential(bits) as f64 / 2f64.powi(32);
            assert!((got - expected).abs() < 1e-9 + 2e-9 * expected, "{bits}: {got} {expected}");
        }
    }

    /// Kolmogorov's distance between intervals and their distribution; 1.95 / √n is passed by one sample
    /// in a thousand.
    #[test]
    fn intervals_are_exponential() {
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
