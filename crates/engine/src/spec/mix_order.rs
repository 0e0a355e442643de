//! The order of a mix: which of its two patterns issues the next I/O.
//!
//! **Source**: uFLIP (2009) §3.1, mixed patterns ("2 SR / 1 RR"); for the drawn mix fio's `rwmixread`
//! and OFC (2011) §V.E, which mix reads and writes at random.
//! **Faithful**: a ratio n is n I/Os of the first pattern, then one of the second; a drawn mix
//! takes each I/O from the first pattern with the given probability, independently.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use crate::spec::{MixRule, StreamSource, StreamSpec};

/// The endless sequence of components: 0 the first pattern, 1 the second.
#[derive(Clone, Debug)]
pub(crate) enum MixOrder {
    /// A single pattern.
    One,
    /// `left` more I/Os of the first pattern before one of the second; `ratio` per round.
    Ratio { ratio: u64, left: u64 },
    /// The first with a probability of `percent` in 100; the generator is boxed to keep the enum
    /// small.
    Drawn { percent: u64, rng: Box<Xoshiro256PlusPlus> },
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
                // The two patterns use the generator itself and the one after a long jump.
                let mut rng = generator(stream);
                rng.long_jump();
                rng.long_jump();
                MixOrder::Drawn { percent: *first_percent, rng: Box::new(rng) }
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
        }
    }
}

/// Return the random generator of one process.
pub(crate) fn generator(stream: &StreamSpec) -> Xoshiro256PlusPlus {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(stream.seed);
    for _ in 0..stream.jumps {
        rng.jump();
    }
    rng
}
