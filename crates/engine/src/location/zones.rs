//! Zones that are written in order, and drawn at random.
//!
//! ```text
//!  zones of 4 slots, 2 open     │0 2 4 6│       │       │1 3 5 7│       then two others
//! ```
//!
//! **Source**: G. Haas, B. Lee, P. Bonnet, V. Leis, *SSD-iq* (PVLDB 2025): sequential writes within
//! zones, which are rewritten in random order; ours as a location function.
//! **Faithful**: within a zone slots follow one another; zones are drawn uniformly.
//! **Simplified**: the open zones are written in turn, or at the write pointer of one drawn at random, as
//! fio does with zonemode=zbd. When all are full, as many others are drawn, never the same ones again at
//! once.
//! **Ambiguous**: the discard of a zone before it is rewritten. In a mix both patterns draw the same
//! zones, and the second one is a set ahead ([`Zones::skip_set`]): trims of a zone's size, one for
//! each zone that is written, discard the zones that are written next.

use std::collections::VecDeque;

use uflip_core::random::{Xoshiro256PlusPlus, uniform};

use super::{LocationFunction, LocationParameter};

/// Slots of a set of open zones, in turn.
#[derive(Clone, Debug)]
pub(crate) struct Zones {
    rng: Xoshiro256PlusPlus,
    zones: u64,
    /// Slots of a zone.
    zone_slots: u64,
    open: u64,
    /// Slots of a zone that are written: its capacity.
    capacity: u64,
    /// The generator of the order within a set, if it is random.
    turns: Option<Xoshiro256PlusPlus>,
    /// Of a random order: each open zone that is not full, and the slots written in it.
    pointers: Vec<(u64, u64)>,
    /// The zones drawn last: the open ones at the end, and those before them.
    drawn: VecDeque<u64>,
    /// I/Os within the set.
    next: u64,
}

impl Zones {
    /// Draw the next set of open zones.
    fn draw_set(&mut self) {
        // Enough to exclude both this set and the one before.
        let excluded = (2 * self.open - 1).min(self.zones - 1) as usize;
        for _ in 0..self.open {
            while self.drawn.len() > excluded {
                self.drawn.pop_front();
            }
            let zone = loop {
                let zone = uniform(&mut self.rng, self.zones);
                if !self.drawn.contains(&zone) {
                    break zone;
                }
            };
            self.drawn.push_back(zone);
        }
        self.next = 0;
        if self.turns.is_some() {
            self.pointers = (0..self.open).map(|turn| (turn, 0)).collect();
        }
    }

    /// Return the open zone of the next I/O, and the slot in it.
    fn next_in_set(&mut self) -> (u64, u64) {
        let Some(rng) = &mut self.turns else {
            return (self.next % self.open, self.next / self.open);
        };
        let drawn = uniform(rng, self.pointers.len() as u64) as usize;
        let (turn, slot) = self.pointers[drawn];
        self.pointers[drawn].1 += 1;
        if slot + 1 == self.capacity {
            self.pointers.swap_remove(drawn);
        }
        (turn, slot)
    }

    /// Continue with the next set of zones.
    pub(crate) fn skip_set(&mut self) {
        self.draw_set();
    }
}

impl LocationFunction for Zones {
    const PARAMETERS: &'static [LocationParameter] = &[
        LocationParameter {
            name: "zone_ios",
            default: 256,
            least: 1,
            most: u64::MAX as i128,
            help: "I/Os that fill a zone",
        },
        LocationParameter {
            name: "open_zones",
            default: 1,
            least: 1,
            most: 1024,
            help: "Number of zones written in turn",
        },
        LocationParameter {
            name: "zone_capacity_ios",
            default: 0,
            least: 0,
            most: u64::MAX as i128,
            help: "I/Os after which a zone is full",
        },
        LocationParameter {
            name: "random_turns",
            default: 0,
            least: 0,
            most: 1,
            help: "1: write pointers of random zones",
        },
    ];
    const IS_RANDOM: bool = true;

    fn create(slots: u64, values: &[i128], rng: Xoshiro256PlusPlus) -> Zones {
        let zone_slots = (values[0] as u64).min(slots);
        let zones = slots / zone_slots;
        let open = (values[1] as u64).min(zones);
        let drawn = VecDeque::with_capacity(2 * open as usize + 1);
        let capacity = if values[2] == 0 { zone_slots } else { zone_slots.min(values[2] as u64) };
        // The zones must be those of another order, for the discards of a mix.
        let turns = (values[3] == 1).then(|| {
            let mut turns = rng.clone();
            turns.long_jump();
            turns.jump();
            turns
        });
        let (pointers, next) = (Vec::new(), 0);
        let mut function =
            Zones { rng, zones, zone_slots, open, capacity, turns, pointers, drawn, next };
        function.draw_set();
        function
    }

    #[inline]
    fn next_slot(&mut self) -> u64 {
        if self.next == self.open * self.capacity {
            self.draw_set();
        }
        let (turn, slot) = self.next_in_set();
        self.next += 1;
        let first = self.drawn.len() - self.open as usize;
        self.drawn[first + turn as usize] * self.zone_slots + slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::tests::{count_slots, critical, deviation};
    use uflip_core::random::SeedableRng;

    fn zones(slots: u64, zone_ios: i128, open: i128, seed: u64) -> Zones {
        Zones::create(slots, &[zone_ios, open, 0, 0], Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Return the zones of the first sets, after a check that each is filled in order.
    fn sets_of(function: &mut Zones, zone_slots: u64, open: u64, sets: u64) -> Vec<Vec<u64>> {
        let mut found = Vec::new();
        for _ in 0..sets {
            let slots: Vec<u64> = (0..open * zone_slots).map(|_| function.next_slot()).collect();
            let set: Vec<u64> =
                slots[..open as usize].iter().map(|slot| slot / zone_slots).collect();
            for (io, slot) in slots.iter().enumerate() {
                let (turn, position) = (io % open as usize, io as u64 / open);
                assert_eq!(*slot, set[turn] * zone_slots + position);
            }
            found.push(set);
        }
        found
    }

    #[test]
    fn zones_are_filled_in_turn_and_differ_from_those_before() {
        for (slots, zone_slots, open) in [(1000, 10, 1), (1000, 10, 8), (64, 4, 8), (35, 5, 2)] {
            let mut function = zones(slots, i128::from(zone_slots), i128::from(open), 7);
            let sets = sets_of(&mut function, zone_slots, open, 200);
            for pair in sets.windows(2) {
                let mut both = pair.concat();
                both.sort_unstable();
                both.dedup();
                assert_eq!(both.len() as u64, 2 * open, "{pair:?}");
            }
        }
    }

    /// The same zones are filled in the same sets, in order within each, with equal shares of the I/Os.
    #[test]
    fn random_turns_write_at_the_write_pointers_of_the_same_zones() {
        let (zone_slots, open, capacity, sets) = (10u64, 4usize, 7usize, 500);
        let create = |turns| {
            let rng = Xoshiro256PlusPlus::seed_from_u64(5);
            Zones::create(1000, &[zone_slots as i128, open as i128, capacity as i128, turns], rng)
        };
        let (mut in_turn, mut random) = (create(0), create(1));
        let mut firsts = vec![0; open];
        for _ in 0..sets {
            let slots = |function: &mut Zones| -> Vec<u64> {
                (0..open * capacity).map(|_| function.next_slot()).collect()
            };
            let (mut expected, mut written) = (slots(&mut in_turn), slots(&mut random));
            firsts[expected[..open].iter().position(|slot| *slot == written[0]).unwrap()] += 1;
            let mut pointers = std::collections::BTreeMap::new();
            for slot in &written {
                let pointer = pointers.entry(slot / zone_slots).or_insert(0);
                assert_eq!(slot % zone_slots, *pointer);
                *pointer += 1;
            }
            expected.sort_unstable();
            written.sort_unstable();
            assert_eq!(expected, written);
        }
        let (statistic, degrees) = deviation(&firsts, &vec![(sets / open) as f64; open]);
        assert!(statistic <= critical(degrees), "{statistic}");
    }

    #[test]
    fn every_zone_is_drawn_equally_often() {
        let mut function = zones(4000, 4, 4, 3);
        let counts = count_slots(4000, 1_600_000, || function.next_slot());
        let of_zones: Vec<u64> = counts.iter().step_by(4).copied().collect();
        let (statistic, degrees) = deviation(&of_zones, &[400.0; 1000]);
        assert!(statistic <= critical(degrees), "{statistic}");
    }

    #[test]
    fn skipped_set_is_the_one_that_follows() {
        let (mut ahead, mut behind) = (zones(1 << 16, 1, 4, 9), zones(1 << 20, 16, 4, 9));
        ahead.skip_set();
        let discarded = sets_of(&mut ahead, 1, 4, 50);
        let written = sets_of(&mut behind, 16, 4, 51);
        assert_eq!(discarded, written[1..]);
    }

    #[test]
    fn target_smaller_than_its_zones_is_one_zone() {
        let mut function = zones(3, 256, 16, 1);
        let slots: Vec<u64> = (0..7).map(|_| function.next_slot()).collect();
        assert_eq!(slots, [0, 1, 2, 0, 1, 2, 0]);
    }
}
