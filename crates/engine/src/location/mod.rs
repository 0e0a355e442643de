//! The location functions: the address of the i-th I/O of a pattern.
//!
//! A location is one file, or a part of [`table1`], and a line in the list of [`locations`]: its name,
//! parameters and checks follow from it, here and in Python.
//!
//! ```text
//!  TargetOffset                                        TargetOffset + TargetSize
//!  │◀IOShift▶│ slot 0 │ slot 1 │ …        │ slot n−1 │ (rest shorter than an I/O)
//! ```
//!
//! Random numbers are xoshiro256++ seeded through SplitMix64 (`seed_from_u64`). A bounded draw is
//! Lemire's multiply-and-shift with rejection, so every slot is exactly equally likely. Process p
//! of a parallel pattern draws from the generator jumped p times (2¹²⁸ draws apart). The second
//! component of a mix draws from the generator after a long jump; if both are `zones`, it draws the
//! same zones, and is a set ahead.

mod hotcold;
mod super_fast_hash;
mod table1;
mod zipf;
mod zones;

use serde::{Deserialize, Serialize};
use uflip_core::random::Xoshiro256PlusPlus;

/// A parameter of a location function: a whole number.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LocationParameter {
    /// Its name in a specification.
    pub name: &'static str,
    /// The value if it is not given.
    pub default: i128,
    /// The least value: below 0 for a signed 64-bit number.
    pub least: i128,
    /// The largest value.
    pub most: i128,
    /// One line for the help of the command line.
    pub help: &'static str,
}

/// A location function with its position. It yields slot numbers: the address is `TargetOffset +
/// IOShift + slot × IOSize`.
trait LocationFunction {
    /// Its parameters, in the order of the values of [`LocationFunction::create`].
    const PARAMETERS: &'static [LocationParameter] = &[];
    /// Whether it draws slots at random.
    const IS_RANDOM: bool = false;
    /// Whether its first slots are a hot area, whose writes may have a stream of their own.
    const HAS_HOT_AREA: bool = false;

    /// Start the sequence in a target space, or a part of it, of `slots` slots.
    fn create(slots: u64, values: &[i128], rng: Xoshiro256PlusPlus) -> Self;

    /// Return the slot of the next I/O.
    fn next_slot(&mut self) -> u64;

    /// Return the number of equal parts into which it divides the target space.
    fn parts(_values: &[i128]) -> u64 {
        1
    }

    /// Return the number of hot slots, which come first.
    fn hot_slots(&self) -> u64 {
        0
    }
}

/// The name and properties of a location, as reported to Python.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LocationEntry {
    /// Its name in a specification.
    pub name: &'static str,
    /// Whether it draws slots at random.
    pub is_random: bool,
    /// Whether its first slots are a hot area.
    pub has_hot_area: bool,
    /// Its parameters.
    pub parameters: &'static [LocationParameter],
}

macro_rules! locations {
    ($($text:literal => $Name:ident($function:ty),)*) => {
        /// The name of a location function.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
        #[allow(missing_docs)]
        pub enum LocationName { $(#[serde(rename = $text)] $Name),* }

        /// All locations, in the order of the documentation.
        pub const LOCATIONS: &[LocationEntry] = &[$(LocationEntry {
            name: $text,
            is_random: <$function>::IS_RANDOM,
            has_hot_area: <$function>::HAS_HOT_AREA,
            parameters: <$function>::PARAMETERS,
        }),*];

        impl LocationName {
            /// Return the number of parts into which the location divides the target space.
            pub(crate) fn parts(self, values: &[i128]) -> u64 {
                match self { $(LocationName::$Name => <$function>::parts(values)),* }
            }
        }

        /// A location function with its position.
        #[derive(Clone, Debug)]
        pub(crate) enum Location { $($Name($function)),* }

        impl Location {
            /// Start the sequence of a location in `slots` slots.
            pub(crate) fn new(
                name: LocationName, slots: u64, values: &[i128], rng: Xoshiro256PlusPlus,
            ) -> Location {
                match name {
                    $(LocationName::$Name => {
                        Location::$Name(<$function>::create(slots, values, rng))
                    })*
                }
            }

            /// Return the slot of the next I/O.
            #[inline]
            pub(crate) fn next_slot(&mut self) -> u64 {
                match self { $(Location::$Name(function) => function.next_slot()),* }
            }

            /// Return the number of hot slots, which come first.
            pub(crate) fn hot_slots(&self) -> u64 {
                match self { $(Location::$Name(function) => function.hot_slots()),* }
            }
        }
    };
}

// Large functions are boxed, to keep the enum small.
locations! {
    "sequential" => Sequential(table1::Sequential),
    "random" => Random(table1::Random),
    "ordered" => Ordered(table1::Ordered),
    "partitioned" => Partitioned(table1::Partitioned),
    "zipf" => Zipf(Box<zipf::Zipf>),
    "hotcold" => HotCold(Box<hotcold::HotCold>),
    "zones" => Zones(Box<zones::Zones>),
    "super_fast_hash" => SuperFastHash(super_fast_hash::SuperFastHash),
}

impl Location {
    /// Continue with the next set of open zones, if it has any.
    pub(crate) fn skip_zones(&mut self) {
        if let Location::Zones(zones) = self {
            zones.skip_set();
        }
    }
}

impl LocationName {
    /// Return the entry of the list.
    #[must_use]
    pub fn entry(self) -> &'static LocationEntry {
        &LOCATIONS[self as usize]
    }
}

impl<F: LocationFunction> LocationFunction for Box<F> {
    const PARAMETERS: &'static [LocationParameter] = F::PARAMETERS;
    const IS_RANDOM: bool = F::IS_RANDOM;
    const HAS_HOT_AREA: bool = F::HAS_HOT_AREA;

    fn create(slots: u64, values: &[i128], rng: Xoshiro256PlusPlus) -> Box<F> {
        Box::new(F::create(slots, values, rng))
    }

    #[inline]
    fn next_slot(&mut self) -> u64 {
        (**self).next_slot()
    }

    fn parts(values: &[i128]) -> u64 {
        F::parts(values)
    }

    fn hot_slots(&self) -> u64 {
        (**self).hot_slots()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_core::random::SeedableRng;

    /// Return the 99.9 % quantile of chi-square (Wilson & Hilferty 1931).
    pub(super) fn critical(degrees: f64) -> f64 {
        if degrees == 0.0 {
            return 1e-9;
        }
        let spread = 2.0 / (9.0 * degrees);
        degrees * (1.0 - spread + 3.09 * spread.sqrt()).powi(3)
    }

    /// Return Pearson's statistic over slots; slots with an expected count below ten are pooled.
    pub(super) fn deviation(counts: &[u64], expected: &[f64]) -> (f64, f64) {
        let (mut sum, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
        for (count, expected) in counts.iter().map(|count| *count as f64).zip(expected) {
            if *expected < 10.0 {
                rest = (rest.0 + count, rest.1 + expected);
                continue;
            }
            sum += (count - expected).powi(2) / expected;
            cells += 1.0;
        }
        if rest.1 >= 10.0 {
            sum += (rest.0 - rest.1).powi(2) / rest.1;
            cells += 1.0;
        }
        (sum, cells - 1.0)
    }

    pub(super) fn count_slots(
        slots: u64,
        ios: u64,
        mut next_slot: impl FnMut() -> u64,
    ) -> Vec<u64> {
        let mut counts = vec![0; slots as usize];
        (0..ios).for_each(|_| counts[next_slot() as usize] += 1);
        counts
    }

    /// Pins the sequence of a seed.
    #[test]
    fn same_seed_gives_the_same_sequence() {
        let rng = || Xoshiro256PlusPlus::seed_from_u64(1);
        let mut zipf = Location::new(LocationName::Zipf, 1000, &[99], rng());
        let mut area = Location::new(LocationName::HotCold, 1000, &[20, 80], rng());
        let drawn: Vec<u64> = (0..6).map(|_| zipf.next_slot()).collect();
        let hot: Vec<u64> = (0..6).map(|_| area.next_slot()).collect();
        assert_eq!(drawn, [852, 857, 493, 715, 712, 430]);
        assert_eq!(hot, [797, 149, 118, 618, 26, 474]);
    }
}
