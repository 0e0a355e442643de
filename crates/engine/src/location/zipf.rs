//! Slots drawn by Zipf's law.
//!
//! **Source**: ours; uFLIP's locations (§3.1) are uniform. G. Zipf (1949); J. Gray et al., *Quickly
//! generating billion-record synthetic databases* (SIGMOD 1994) for skewed accesses.
//! **Faithful**: the slot of rank r has a probability in proportion to r^−θ, exactly.
//! **Simplified**: θ is in whole hundredths.
//! **Ambiguous**: the placement of the popular slots. Adjacent ones would form one small area. Here
//! ranks are spread over the target space, a golden section apart (each slot has one rank), and the
//! first rank's slot is drawn from the seed. If it were always the first slot, it would be the first
//! page of a block, and all seeds would measure one placement.
//!
//! The law is drawn by rejection sampling, without tables over slots and without floats:
//!
//! ```text
//! ranks    1 | 2 3 | 4 5 6 7 | 8 …        groups [2^k, 2^(k+1)), drawn by their number × 2^(−kθ)
//!                      ↑ all equally likely, and kept with a chance of (2^k / r)^θ, else drawn anew
//! ```

use uflip_core::random::{Rng, Xoshiro256PlusPlus, uniform};

use super::{LocationFunction, LocationParameter};
use crate::logarithm::{fraction_of_log2, minus_log2, root_of_half};

/// The unit of θ.
const HUNDREDTHS: u64 = 100;
/// (√5 − 1) / 2 × 2⁶⁴.
const GOLDEN_SECTION: u128 = 0x9E37_79B9_7F4A_7C15;

/// Slots drawn by Zipf's law.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    rng: Xoshiro256PlusPlus,
    slots: u64,
    /// θ in hundredths.
    skew_percent: u64,
    /// Cumulative weights of the groups.
    cumulated_weights: Vec<u64>,
    /// The slot of the first rank, and the distance between the slots of consecutive ranks.
    first: u64,
    step: u64,
}

impl Zipf {
    /// Create the distribution over a target space of 1 to 2⁵⁴ slots.
    fn new(slots: u64, skew_percent: u64, mut rng: Xoshiro256PlusPlus) -> Zipf {
        let first = uniform(&mut rng, slots);
        let groups = u64::from(slots.ilog2()) + 1;
        let weights: Vec<u128> = (0..groups)
            .map(|k| u128::from(members(k, slots)) * u128::from(power(k * skew_percent)))
            .collect();
        // As exact as 63 bits are.
        let total: u128 = weights.iter().sum();
        let excess = (128 - total.leading_zeros()).saturating_sub(63);
        let mut sum = 0;
        let cumulated = weights.iter().map(|weight| {
            sum += (weight >> excess) as u64;
            sum
        });
        let (cumulated_weights, step) = (cumulated.collect(), golden_step(slots));
        Zipf { slots, skew_percent, cumulated_weights, first, step, rng }
    }

    /// Return whether a draw is accepted, with probability (2^k / rank)^θ.
    fn accepts(&mut self, rank: u64, k: u64) -> bool {
        let bits = self.rng.next_u64();
        // −log₂ u is at least the number of leading zeros, and θ × log₂ (rank / 2^k) is below θ:
        // mostly that decides.
        if u64::from(bits.leading_zeros()) * HUNDREDTHS >= self.skew_percent {
            return true;
        }
        let fraction = fraction_of_log2(rank << (63 - k));
        minus_log2(bits) * u128::from(HUNDREDTHS)
            >= u128::from(self.skew_percent) * u128::from(fraction)
    }
}

impl LocationFunction for Zipf {
    const PARAMETERS: &'static [LocationParameter] = &[LocationParameter {
        name: "skew_percent",
        // The skew of most storage benchmarks since J. Gray et al. (1994).
        default: 99,
        least: 1,
        // At this skew the first slot has 96 % of all I/Os; a higher one adds nothing.
        most: 500,
        help: "Zipf's θ in hundredths",
    }];
    const IS_RANDOM: bool = true;

    fn create(slots: u64, values: &[i128], rng: Xoshiro256PlusPlus) -> Zipf {
        Zipf::new(slots, values[0] as u64, rng)
    }

    #[inline]
    fn next_slot(&mut self) -> u64 {
        let rank = loop {
            let total = *self.cumulated_weights.last().expect("at least one group");
            let drawn = uniform(&mut self.rng, total);
            let k = self.cumulated_weights.partition_point(|until| *until <= drawn) as u64;
            let first = 1 << k;
            let rank = first + uniform(&mut self.rng, members(k, self.slots));
            if self.accepts(rank, k) {
                break rank;
            }
        };
        let distance = u128::from(rank - 1) * u128::from(self.step) + u128::from(self.first);
        (distance % u128::from(self.slots)) as u64
    }
}

/// Return the number of ranks in group `k`.
fn members(k: u64, slots: u64) -> u64 {
    let first = 1 << k;
    (slots + 1 - first).min(first)
}

/// Return 2^(−`hundredths` / 100) × 2⁶².
fn power(hundredths: u64) -> u64 {
    let fraction = root_of_half(hundredths % HUNDREDTHS, HUNDREDTHS);
    fraction.checked_shr((hundredths / HUNDREDTHS) as u32).unwrap_or(0)
}

/// Return the smallest number from the golden section of `slots` on that is coprime to it.
fn golden_step(slots: u64) -> u64 {
    let section = ((u128::from(slots) * GOLDEN_SECTION) >> 64) as u64;
    (section.max(1)..)
        .find(|step| greatest_common_divisor(*step, slots) == 1)
        .expect("slots + 1 is coprime to slots")
}

/// Return the greatest common divisor.
fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::tests::{count_slots, critical, deviation};
    use uflip_core::random::SeedableRng;

    /// Compares with r^−θ / Σ r^−θ, for numbers of slots that are powers of two, next to one, and
    /// primes.
    #[test]
    fn ranks_follow_zipf_s_law() {
        const IOS: u64 = 400_000;
        for (seed, slots) in (1..).zip([1u64, 2, 3, 64, 65, 1000, 4093]) {
            for skew in [1, 50, 99, 100, 120, 250] {
                let rng = Xoshiro256PlusPlus::seed_from_u64(seed * 1000 + skew);
                let mut zipf = Zipf::new(slots, skew, rng);
                let (first, step) = (zipf.first, zipf.step);
                let counts = count_slots(slots, IOS, || zipf.next_slot());
                let by_rank: Vec<u64> = (0..slots)
                    .map(|rank| counts[((first + rank * step) % slots) as usize])
                    .collect();
                assert_eq!(by_rank.iter().sum::<u64>(), IOS, "each slot has one rank");
                let weight = |rank: u64| (rank as f64).powf(-(skew as f64) / 100.0);
                let sum: f64 = (1..=slots).map(weight).sum();
                let expected: Vec<f64> =
                    (1..=slots).map(|rank| IOS as f64 * weight(rank) / sum).collect();
                let (statistic, degrees) = deviation(&by_rank, &expected);
                assert!(
                    statistic <= critical(degrees),
                    "{slots} slots, θ {skew}: {statistic} {degrees}"
                );
            }
        }
    }

    /// With 2⁴⁰ slots and θ = 1 the hottest slot has 1 / (ln n + γ) of all I/Os.
    #[test]
    fn huge_spaces_are_supported() {
        const IOS: u64 = 200_000;
        let (slots, rng) = (1u64 << 40, Xoshiro256PlusPlus::seed_from_u64(3));
        let mut zipf = Zipf::new(slots, 100, rng);
        let first = zipf.first;
        let hottest = (0..IOS).filter(|_| zipf.next_slot() == first).count() as f64;
        let harmonic = 40.0 * 2f64.ln() + 0.577_215_664_9;
        let expected = IOS as f64 / harmonic;
        assert!((hottest - expected).abs() < 3.3 * expected.sqrt(), "{hottest} {expected}");
    }

    /// Pearson's statistic over the most popular slots of the seeds, found by counting; all slots
    /// of a small space occur.
    #[test]
    fn each_seed_has_its_own_most_popular_slot() {
        const SEEDS: u64 = 640;
        let mut chosen = [0u64; 16];
        for seed in 0..SEEDS {
            let mut zipf = Zipf::new(16, 250, Xoshiro256PlusPlus::seed_from_u64(seed));
            let counts = count_slots(16, 200, || zipf.next_slot());
            let max_count = counts.iter().max().expect("at least one slot");
            chosen[counts
                .iter()
                .position(|count| count == max_count)
                .expect("the maximum is in the list")] += 1;
        }
        let (statistic, degrees) = deviation(&chosen, &[SEEDS as f64 / 16.0; 16]);
        assert!(statistic <= critical(degrees), "{chosen:?}");
    }
}
