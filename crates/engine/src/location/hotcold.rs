//! A hot and a cold area.
//!
//! **Source**: ours; uFLIP's locations (§3.1) are uniform. P. Desnoyers, *Analytic modeling of SSD
//! write performance* (SYSTOR 2012) for hot and cold data.
//! **Faithful**: the hot area has its share of the I/Os, and within either area all slots are equally
//! likely.
//! **Simplified**: nothing.
//! **Ambiguous**: the placement. The hot area is contiguous, at the beginning of the target space; it
//! spans many blocks, and `target_offset` moves it.

use uflip_core::random::{Xoshiro256PlusPlus, uniform};

use super::{LocationFunction, LocationParameter};

/// Return a share of 1 to 99 %.
const fn share(name: &'static str, default: i128, help: &'static str) -> LocationParameter {
    LocationParameter { name, default, least: 1, most: 99, help }
}

/// Slots of a hot area at the beginning, or of the cold rest.
#[derive(Clone, Debug)]
pub(crate) struct HotCold {
    rng: Xoshiro256PlusPlus,
    hot: u64,
    cold: u64,
    hot_io_percent: u64,
}

impl HotCold {
    /// Create the areas; the hot one has at least one slot, and leaves at least one to the cold
    /// one.
    fn new(slots: u64, space_percent: u64, io_percent: u64, rng: Xoshiro256PlusPlus) -> HotCold {
        let share = (u128::from(slots) * u128::from(space_percent) / 100) as u64;
        let hot = share.clamp(1, (slots - 1).max(1));
        HotCold { rng, hot, cold: slots - hot, hot_io_percent: io_percent }
    }
}

impl LocationFunction for HotCold {
    /// "80 % of the I/Os go to 20 % of the space".
    const PARAMETERS: &'static [LocationParameter] = &[
        share("hot_space_percent", 20, "Share of the target that is hot"),
        share("hot_io_percent", 80, "Share of the I/Os to the hot area"),
    ];
    const IS_RANDOM: bool = true;
    const HAS_HOT_AREA: bool = true;

    fn create(slots: u64, values: &[i128], rng: Xoshiro256PlusPlus) -> HotCold {
        HotCold::new(slots, values[0] as u64, values[1] as u64, rng)
    }

    #[inline]
    fn next_slot(&mut self) -> u64 {
        if uniform(&mut self.rng, 100) < self.hot_io_percent || self.cold == 0 {
            uniform(&mut self.rng, self.hot)
        } else {
            self.hot + uniform(&mut self.rng, self.cold)
        }
    }

    fn hot_slots(&self) -> u64 {
        self.hot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::tests::{count_slots, critical, deviation};
    use uflip_core::random::SeedableRng;

    #[test]
    fn hot_area_receives_its_share() {
        const IOS: u64 = 400_000;
        for (seed, slots) in (1..).zip([1u64, 2, 3, 10, 1000, 4093]) {
            for (space, io) in [(20, 80), (1, 99), (50, 50), (99, 1)] {
                let rng = Xoshiro256PlusPlus::seed_from_u64(seed * 1000 + space);
                let mut area = HotCold::new(slots, space, io, rng);
                let counts = count_slots(slots, IOS, || area.next_slot());
                let hot = (slots * space / 100).clamp(1, (slots - 1).max(1));
                let expected_count = |slot: u64| match slot < hot {
                    true if slots == hot => IOS as f64 / hot as f64,
                    true => IOS as f64 * io as f64 / 100.0 / hot as f64,
                    false => IOS as f64 * (100 - io) as f64 / 100.0 / (slots - hot) as f64,
                };
                let expected: Vec<f64> = (0..slots).map(expected_count).collect();
                let (statistic, degrees) = deviation(&counts, &expected);
                assert!(statistic <= critical(degrees), "{slots}, {space}/{io}: {statistic}");
            }
        }
    }
}
