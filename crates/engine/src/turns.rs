//! Which part of a mix an I/O belongs to.
//!
//! **Source**: uFLIP (2009) §3.1, mixed patterns ("2 SR / 1 RR"); for the drawn mix fio's `rwmixread`
//! and OFC (2011) §V.E, which mix reads and writes at random.
//! **Faithful**: a ratio n is n I/Os of the first pattern, then one of the second; a drawn mix takes
//! each I/O from the first pattern with the given chance, whatever came before.
//! **Simplified**: nothing.
//! **Ambiguous**: nothing.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use crate::spec::{Order, Source, StreamSpec};

/// The endless sequence of parts: 0 the first pattern, 1 the second.
#[derive(Clone, Debug)]
pub(crate) enum Turns {
    /// There is one pattern.
    One,
    /// `left` I/Os of the first until it is the second's turn; `ratio` of them in a round.
    Ratio { ratio: u64, left: u64 },
    /// The first with a chance of `percent` in 100; the generator is boxed to keep the enum small.
    Drawn { percent: u64, rng: Box<Xoshiro256PlusPlus> },
}

impl Turns {
    /// The sequence of `stream`, from its beginning.
    pub(crate) fn new(stream: &StreamSpec) -> Turns {
        match &stream.source {
            Source::Basic(_) | Source::List(_) => Turns::One,
            Source::Mix { order: Order::Ratio(ratio), .. } => {
                Turns::Ratio { ratio: *ratio, left: *ratio }
            }
            Source::Mix { order: Order::Drawn { first_percent }, .. } => {
                // The two patterns draw from the generator and from the one after a long jump.
                let mut rng = generator(stream);
                rng.long_jump();
                rng.long_jump();
                Turns::Drawn { percent: *first_percent, rng: Box::new(rng) }
            }
        }
    }

    /// The part of the next I/O.
    #[inline]
    pub(crate) fn next_part(&mut self) -> u8 {
        match self {
            Turns::One => 0,
            Turns::Ratio { ratio, left: left @ 0 } => {
                *left = *ratio;
                1
            }
            Turns::Ratio { left, .. } => {
                *left -= 1;
                0
            }
            Turns::Drawn { percent, rng } => u8::from(uniform(rng, 100) >= *percent),
        }
    }
}

/// The random numbers of one process.
pub(crate) fn generator(stream: &StreamSpec) -> Xoshiro256PlusPlus {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(stream.seed);
    for _ in 0..stream.jumps {
        rng.jump();
    }
    rng
}
