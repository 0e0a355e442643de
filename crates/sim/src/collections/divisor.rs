//! Division of 32-bit numbers by one known divisor, by multiplication (Lemire, Kaser & Kurz 2019).

/// A constant divisor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Divisor {
    divisor: u32,
    /// ⌈2⁶⁴ / divisor⌉; 0 stands for 2⁶⁴, i.e. a divisor of 1.
    magic: u64,
}

impl Divisor {
    pub(crate) fn new(divisor: u32) -> Divisor {
        Divisor { divisor, magic: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    #[inline]
    pub(crate) fn quotient(self, number: u32) -> u32 {
        if self.magic == 0 {
            return number;
        }
        ((u128::from(self.magic) * u128::from(number)) >> 64) as u32
    }

    #[inline]
    pub(crate) fn remainder(self, number: u32) -> u32 {
        number - self.quotient(number) * self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divisor_matches_division(divisor in 1u32.., number in any::<u32>()) {
            let by = Divisor::new(divisor);
            prop_assert_eq!(by.quotient(number), number / divisor);
            prop_assert_eq!(by.remainder(number), number % divisor);
        }
    }
}
