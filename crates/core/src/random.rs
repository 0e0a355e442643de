//! Random numbers that are identical on every machine and version: xoshiro256++ seeded through
//! SplitMix64.

use std::hint::cold_path;

pub use rand_core::Rng;
pub use rand_core::SeedableRng;
pub use rand_xoshiro::Xoshiro256PlusPlus;

/// Return a uniform number in `0..bound`: Lemire's multiply-and-shift (2019) with rejection.
///
/// # Panics
/// In debug builds if `bound` is 0.
#[inline]
pub fn uniform(rng: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    debug_assert!(bound > 0, "the upper limit is positive");
    let mut product = u128::from(rng.next_u64()) * u128::from(bound);
    if (product as u64) < bound {
        cold_path();
        let threshold = bound.wrapping_neg() % bound;
        while (product as u64) < threshold {
            product = u128::from(rng.next_u64()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

/// The increment of SplitMix64 (Steele, Lea & Flood 2014): 2^64 over the golden ratio.
pub const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Return a pseudo-random hash of `key`: the first number of SplitMix64 seeded with `key`.
#[inline]
#[must_use]
pub fn mix(key: u64) -> u64 {
    finalise(key.wrapping_add(GOLDEN_GAMMA))
}

/// Return the finaliser of SplitMix64: every bit of the result depends on every bit of `z`.
#[inline]
#[must_use]
pub fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Return a hash of whole words of eight bytes, continued from `hash`.
#[must_use]
pub fn hash_words(hash: u64, bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks();
    words.iter().fold(hash, |hash, word| mix(hash ^ u64::from_le_bytes(*word)))
}

/// Fill `bytes` with random, and therefore incompressible, data.
pub fn fill(rng: &mut Xoshiro256PlusPlus, bytes: &mut [u8]) {
    rng.fill_bytes(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation by Blackman and Vigna, seeded with 1, 2,
    /// 3, 4.
    #[test]
    fn generator_is_xoshiro256_plus_plus() {
        let mut seed = [0; 32];
        for (word, value) in seed.chunks_mut(8).zip(1u64..) {
            word.copy_from_slice(&value.to_le_bytes());
        }
        let mut rng = Xoshiro256PlusPlus::from_seed(seed);
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    /// SplitMix64 seeded with 1234567, from the reference implementation by Vigna.
    #[test]
    fn mixer_is_split_mix_64() {
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
    }

    #[test]
    fn numbers_are_uniformly_distributed() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[uniform(&mut rng, 7) as usize] += 1;
        }
        // Chi-square with 6 degrees of freedom: 22.5 is exceeded once in a thousand.
        let chi: f64 = counts.iter().map(|c| (f64::from(*c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 22.5, "chi-square {chi}, counts {counts:?}");
    }
}
