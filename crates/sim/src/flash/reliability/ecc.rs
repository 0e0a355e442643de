//! Error correction: the probability that a codeword has more wrong bits than an ECC of a given strength
//! corrects.
//!
//! **Source**: binomial law of independent bit errors, as in data sheets of BCH codes and in Mielke
//! et al. (IRPS 2008).
//! **Faithful**: exact sum of the binomial tail, no approximation by another law.
//! **Simplified**: bits of a codeword fail independently; a code never miscorrects.
//! **Ambiguous**: nothing.

/// A code that corrects up to `correctable_bits` wrong bits of `bits` (data and parity together).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BchCode {
    pub(crate) bits: u32,
    pub(crate) correctable_bits: u32,
}

impl BchCode {
    /// Return a binary BCH code over `data_bytes`: it needs m parity bits for each bit that it corrects, 2ᵐ
    /// being the first power of two that is longer than the codeword.
    pub(crate) fn bch(data_bytes: u32, correctable_bits: u32) -> BchCode {
        let data = 8 * data_bytes;
        let whole = |m: u32| data + m * correctable_bits;
        let m = (1..31).find(|m| whole(*m) < 1 << m).unwrap_or(31);
        BchCode { bits: whole(m), correctable_bits }
    }

    /// Return P(more than `correctable_bits` of the bits are wrong), each being wrong with probability
    /// `rate`.
    pub(crate) fn failure(self, rate: f64) -> f64 {
        let (bits, most) = (f64::from(self.bits), self.correctable_bits);
        if most >= self.bits || rate <= 0.0 {
            return 0.0;
        }
        if rate >= 1.0 {
            return 1.0;
        }
        let odds = rate / (1.0 - rate);
        // P(exactly k wrong); the next term follows by the ratio (n − k) / (k + 1) × odds.
        let exactly = |k: u32| {
            let choose: f64 = (0..k).map(|i| ((bits - f64::from(i)) / f64::from(i + 1)).ln()).sum();
            (choose + f64::from(k) * rate.ln() + (bits - f64::from(k)) * (-rate).ln_1p()).exp()
        };
        // Sum the shorter of the two tails, away from the edge, until the terms vanish.
        if f64::from(most) >= bits * rate {
            let (mut term, mut sum, mut k) = (exactly(most + 1), 0.0, most + 1);
            while k <= self.bits && sum + term > sum {
                sum += term;
                term *= (bits - f64::from(k)) / f64::from(k + 1) * odds;
                k += 1;
            }
            return sum;
        }
        let (mut term, mut sum, mut k) = (exactly(most), 0.0, most);
        while sum + term > sum {
            sum += term;
            if k == 0 {
                break;
            }
            term *= f64::from(k) / (bits - f64::from(k) + 1.0) / odds;
            k -= 1;
        }
        1.0 - sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of `scipy.stats.binom.sf(t, n, p)`, SciPy 1.16.
    #[test]
    fn binomial_tail_matches_scipy() {
        let cases = [
            (8752, 40, 1e-3, 2.379_959_717_504_843_4e-15),
            (8752, 40, 1.15e-3, 2.061_790_532_138_865_4e-13),
            (8752, 40, 2.6e-3, 3.564_288_642_893_120_5e-4),
            (8752, 40, 4.5e-3, 0.419_280_910_577_182_75),
            (8752, 40, 1e-2, 0.999_999_990_797_731_8),
            (4291, 15, 3.35e-4, 4.025_662_430_616_461e-12),
            (4109, 1, 7e-10, 4.135_536_213_824_647_6e-12),
            (100, 0, 0.01, 0.633_967_658_726_770_5),
            (10, 10, 0.3, 0.0),
        ];
        for (bits, correctable_bits, rate, expected) in cases {
            let got = BchCode { bits, correctable_bits }.failure(rate);
            assert!((got - expected).abs() <= 1e-9 * expected, "{bits} {rate}: {got} {expected}");
        }
    }

    #[test]
    fn bch_parity_matches_textbooks() {
        // 40 bits over 1 KiB in GF(2¹⁴), 8 over 512 bytes in GF(2¹³).
        assert_eq!(BchCode::bch(1024, 40).bits, 8192 + 14 * 40);
        assert_eq!(BchCode::bch(512, 8).bits, 4096 + 13 * 8);
    }

    proptest! {
        /// With one correctable bit the tail has a closed form.
        #[test]
        fn bch_of_one_bit_matches_formula(bits in 2u32..5000, rate in 1e-4f64..0.5) {
            let n = f64::from(bits);
            let fine = (1.0 - rate).powf(n) + n * rate * (1.0 - rate).powf(n - 1.0);
            let got = BchCode { bits, correctable_bits: 1 }.failure(rate);
            prop_assert!((got - (1.0 - fine)).abs() < 1e-9, "{} {}", got, 1.0 - fine);
        }
    }
}
