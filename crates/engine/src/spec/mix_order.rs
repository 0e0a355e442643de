//! The order of a mix: which of its patterns issues the next I/O.
//!
//! **Source**: uFLIP (2009) §3.1, mixed patterns ("2 SR / 1 RR"); for the drawn mix fio's `rwmixread`
//! and OFC (2011) §V.E, which mix reads and writes at random; for weights the smooth weighted round
//! robin of network schedulers, and fio's `bssplit`.
//! **Faithful**: a ratio n is n I/Os of the first pattern, then one of the second; a drawn mix
//! takes each I/O from the first pattern with the given probability, independently. Of weights w
//! each round of Σw I/Os has exactly `w_k` of pattern k, evenly spread; drawn, each I/O is of
//! pattern k with probability `w_k` / Σw.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use crate::spec::{MixRule, StreamSource, StreamSpec};

/// The endless sequence of components: 0 the first pattern, 1 the second, and so on.
#[derive(Clone, Debug)]
pub(crate) enum MixOrder {
    /// A single pattern.
    One,
    /// `left` more I/Os of the first pattern before one of the second; `ratio` per round.
    Ratio { ratio: u64, left: u64 },
    /// The first with a probability of `percent` in 100; the generator is boxed to keep the enum
    /// small.
    Drawn { percent: u64, rng: Box<Xoshiro256PlusPlus> },
    /// The pattern with the most credit, the first of several; see [`most_credited`].
    Weighted { weights: Vec<i64>, credits: Vec<i64> },
    /// The pattern below whose cumulated weight a drawn number lies.
    DrawnByWeight { cumulated: Vec<u64>, rng: Box<Xoshiro256PlusPlus> },
}

impl MixOrder {
    /// Start the sequence of `stream`.
    pub(crate) fn new(stream: &StreamSpec) -> MixOrder {
        match &stream.source {
            StreamSource::Basic(_) | StreamSource::List(_) => MixOrder::One,
            StreamSource::Mix { order: MixRule::Ratio(ratio), .. } => {
                MixOrder::Ratio { ratio: *ratio, left: *ratio }
            }
            StreamSource::Mix { order: MixRule::Drawn { first_percent }, .. } => {
                MixOrder::Drawn { percent: *first_percent, rng: order_generator(stream, 2) }
            }
            StreamSource::Mix { order: MixRule::Weighted { weights, drawn: false }, .. } => {
                let weights: Vec<i64> = weights.iter().map(|weight| *weight as i64).collect();
                MixOrder::Weighted { credits: vec![0; weights.len()], weights }
            }
            StreamSource::Mix { order: MixRule::Weighted { weights, drawn: true }, parts } => {
                let sums = weights.iter().scan(0, |sum, weight| {
                    *sum += weight;
                    Some(*sum)
                });
                let rng = order_generator(stream, parts.len());
                MixOrder::DrawnByWeight { cumulated: sums.collect(), rng }
            }
        }
    }

    /// Return the component of the next I/O.
    #[inline]
    pub(crate) fn next_part(&mut self) -> u8 {
        match self {
            MixOrder::One => 0,
            MixOrder::Ratio { ratio, left: left @ 0 } => {
                *left = *ratio;
                1
            }
            MixOrder::Ratio { left, .. } => {
                *left -= 1;
                0
            }
            MixOrder::Drawn { percent, rng } => u8::from(uniform(rng, 100) >= *percent),
            MixOrder::Weighted { weights, credits } => most_credited(weights, credits),
            MixOrder::DrawnByWeight { cumulated, rng } => {
                let drawn = uniform(rng, cumulated[cumulated.len() - 1]);
                cumulated.partition_point(|sum| *sum <= drawn) as u8
            }
        }
    }
}

/// Every pattern earns its weight; the one with the most credit issues the I/O, and pays a round.
fn most_credited(weights: &[i64], credits: &mut [i64]) -> u8 {
    let mut most = 0;
    for part in 0..weights.len() {
        credits[part] += weights[part];
        if credits[part] > credits[most] {
            most = part;
        }
    }
    credits[most] -= weights.iter().sum::<i64>();
    most as u8
}

/// Return the generator of the order: pattern k uses the one after k long jumps.
fn order_generator(stream: &StreamSpec, parts: usize) -> Box<Xoshiro256PlusPlus> {
    let mut rng = generator(stream);
    for _ in 0..parts {
        rng.long_jump();
    }
    Box::new(rng)
}

/// Return the random generator of one process.
pub(crate) fn generator(stream: &StreamSpec) -> Xoshiro256PlusPlus {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(stream.seed);
    for _ in 0..stream.jumps {
        rng.jump();
    }
    rng
}
