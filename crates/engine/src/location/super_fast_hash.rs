//! Addresses of OFC's traffic generator.
//!
//! **Source**: OFC (2011) §V.A, Table II: the Super Fast Hash (P. Hsieh, 2004) is its generator.
//! **Faithful**: the hash of the four bytes of a counter.
//! **Simplified**: at most 2^32 different slots.
//! **Ambiguous**: what is hashed, and how a slot is made of the hash: here the bytes of a counter,
//! least significant first, and the remainder. The seed draws the first counter.

use uflip_core::random::{Xoshiro256PlusPlus, uniform};

use super::LocationFunction;

/// The hash of a counter, modulo the number of slots.
#[derive(Clone, Debug)]
pub(crate) struct SuperFastHash {
    counter: u32,
    slots: u64,
}

/// Return the Super Fast Hash of the four bytes of `counter`.
#[inline]
fn hash(counter: u32) -> u32 {
    let low = (counter & 0xFFFF).wrapping_add(4);
    let mixed = (low << 16) ^ ((counter >> 16) << 11) ^ low;
    let mut hash = mixed.wrapping_add(mixed >> 11);
    for (left, right) in [(3, 5), (4, 17), (25, 6)] {
        hash ^= hash << left;
        hash = hash.wrapping_add(hash >> right);
    }
    hash
}

impl LocationFunction for SuperFastHash {
    const IS_RANDOM: bool = true;

    fn create(slots: u64, _values: &[i128], mut rng: Xoshiro256PlusPlus) -> SuperFastHash {
        SuperFastHash { counter: uniform(&mut rng, 1 << 32) as u32, slots }
    }

    #[inline]
    fn next_slot(&mut self) -> u64 {
        let hashed = hash(self.counter);
        self.counter = self.counter.wrapping_add(1);
        u64::from(hashed) % self.slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_core::random::SeedableRng;

    /// Outputs of the published C function.
    const HASHES: [(u32, u32); 7] = [
        (0, 723_601_210),
        (1, 422_304_363),
        (2, 1_180_826_305),
        (65_535, 3_088_098_351),
        (65_536, 3_620_040_168),
        (305_419_896, 2_399_298_313),
        (4_294_967_295, 908_488_043),
    ];

    #[test]
    fn hash_matches_published_program() {
        for (counter, expected) in HASHES {
            assert_eq!(hash(counter), expected, "{counter}");
        }
    }

    #[test]
    fn slots_are_hashes_of_counter() {
        let mut location = SuperFastHash { counter: u32::MAX, slots: 1000 };
        assert_eq!([0; 3].map(|_| location.next_slot()), [43, 210, 363]);
        let first = |seed| {
            let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            SuperFastHash::create(u64::MAX, &[], rng).next_slot()
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
