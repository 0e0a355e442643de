//! Integer logarithms and powers of two, so that a seed gives the same result on every machine.

/// Return the first 32 fractional bits of log₂ x for `bits` / 2⁶³ = x, 1 ≤ x < 2: one bit per
/// squaring.
#[inline]
pub(crate) fn fraction_of_log2(bits: u64) -> u64 {
    debug_assert!(bits >> 63 == 1, "a number from 1 to 2");
    let (mut x, mut fraction) = (bits, 0u64);
    for _ in 0..32 {
        let square = (u128::from(x) * u128::from(x)) >> 63;
        let carry = (square >> 64) as u64;
        x = (square >> carry) as u64;
        fraction = (fraction << 1) | carry;
    }
    fraction
}

/// Return −log₂ u × 2³² for u = (`bits` + 1) / 2⁶⁴.
#[inline]
pub(crate) fn minus_log2(bits: u64) -> u128 {
    let Some(bits) = bits.checked_add(1) else { return 0 };
    let zeros = bits.leading_zeros();
    // u = x / 2^(zeros + 1) with x = (bits << zeros) / 2⁶³.
    ((u128::from(zeros) + 1) << 32) - u128::from(fraction_of_log2(bits << zeros))
}

/// Return 2^(−`parts` / `whole`) × 2⁶² for `parts` < `whole`: one square root per bit of the
/// quotient.
pub(crate) fn root_of_half(mut parts: u64, whole: u64) -> u64 {
    debug_assert!(parts < whole, "parts are below the whole");
    let (mut root, mut power) = (1u128 << 63, 1u128 << 64);
    for _ in 0..64 {
        // 2^(−1/2), 2^(−1/4), ... × 2⁶⁴
        root = (root << 64).isqrt();
        parts *= 2;
        if parts >= whole {
            parts -= whole;
            power = (power * root) >> 64;
        }
    }
    (power >> 2) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the floating-point logarithm.
    #[test]
    fn logarithm_is_accurate_to_the_last_bits() {
        let samples =
            (0..64).flat_map(|shift| [1u64 << shift, (1 << shift) - 1, 0x9E37 << (shift / 2)]);
        for bits in samples.chain([u64::MAX, u64::MAX - 1]) {
            let expected = -((bits as f64 + 1.0) / 2f64.powi(64)).log2();
            let got = minus_log2(bits) as f64 / 2f64.powi(32);
            assert!((got - expected).abs() < 1e-9 + 1e-12 * expected, "{bits}: {got} {expected}");
        }
    }

    #[test]
    fn power_is_accurate_to_the_last_bits() {
        for parts in 0..100 {
            let expected = 2f64.powf(-f64::from(parts) / 100.0);
            let got = root_of_half(u64::from(parts as u32), 100) as f64 / 2f64.powi(62);
            assert!((got - expected).abs() < 1e-14, "{parts}: {got} {expected}");
        }
    }
}
