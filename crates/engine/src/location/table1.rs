//! The four location functions of uFLIP.
//!
//! **Source**: uFLIP (2009) §3.1 and Table 1, attribute LBA(IOᵢ).
//! **Faithful**: sequential, random, ordered(Incr), partitioned(Partitions), IOShift, TargetOffset.
//! **Simplified**: nothing.
//! **Ambiguous**: (1) the table lets addresses leave the target space (a shift at its end, Incr < 0
//! at its beginning, a long run); here they wrap, and only slots that lie wholly inside the target
//! space are used: `slots = ⌊(TargetSize − IOShift) / IOSize⌋`. (2) PS = TargetSize / Partitions is
//! rounded down to whole I/Os, so that every partition stays aligned. (3) "random" draws slots
//! uniformly and independently, with replacement.

use uflip_core::random::{Xoshiro256PlusPlus, uniform};

use super::{LocationFunction, LocationParameter};

/// `Seq`: slot i mod n.
#[derive(Clone, Debug)]
pub(crate) struct Sequential {
    slot: u64,
    slots: u64,
}

impl LocationFunction for Sequential {
    fn create(slots: u64, _values: &[i128], _rng: Xoshiro256PlusPlus) -> Sequential {
        Sequential { slot: 0, slots }
    }

    #[inline]
    fn next_slot(&mut self) -> u64 {
        let current = self.slot;
        self.slot = if current + 1 == self.slots { 0 } else { current + 1 };
        current
    }
}

/// `Rnd`: a slot drawn uniformly.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    rng: Box<Xoshiro256PlusPlus>,
    slots: u64,
}

impl LocationFunction for Random {
    const IS_RANDOM: bool = true;

    fn create(slots: u64, _values: &[i128], rng: Xoshiro256PlusPlus) -> Random {
        Random { rng: Box::new(rng), slots }
    }

    #[inline]
    fn next_slot(&mut self) -> u64 {
        uniform(&mut self.rng, self.slots)
    }
}

/// `Order`: slot (Incr × i) mod n; a negative Incr walks down from the end of the target space.
#[derive(Clone, Debug)]
pub(crate) struct Ordered {
    slot: u64,
    /// Incr mod n: the step in 0 … n−1.
    step: u64,
    slots: u64,
}

impl LocationFunction for Ordered {
    const PARAMETERS: &'static [LocationParameter] = &[LocationParameter {
        name: "incr",
        default: 1,
        least: i64::MIN as i128,
        most: i64::MAX as i128,
        help: "Increment in I/Os, also 0 and negative",
    }];

    fn create(slots: u64, values: &[i128], _rng: Xoshiro256PlusPlus) -> Ordered {
        Ordered { slot: 0, step: values[0].rem_euclid(i128::from(slots)) as u64, slots }
    }

    #[inline]
    fn next_slot(&mut self) -> u64 {
        let current = self.slot;
        let next = current + self.step;
        self.slot = if next >= self.slots { next - self.slots } else { next };
        current
    }
}

/// `Partitioning`: partition i mod P, slot ⌊i/P⌋ mod (slots in a partition) inside it.
#[derive(Clone, Debug)]
pub(crate) struct Partitioned {
    /// The next partition.
    partition: u64,
    /// The next slot, the same in every partition.
    slot: u64,
    partitions: u64,
    /// Slots in one partition.
    slots: u64,
}

impl LocationFunction for Partitioned {
    const PARAMETERS: &'static [LocationParameter] = &[LocationParameter {
        name: "partitions",
        default: 1,
        least: 1,
        most: u64::MAX as i128,
        help: "Partitions of the target",
    }];

    fn create(slots: u64, values: &[i128], _rng: Xoshiro256PlusPlus) -> Partitioned {
        Partitioned { partition: 0, slot: 0, partitions: values[0] as u64, slots }
    }

    #[inline]
    fn next_slot(&mut self) -> u64 {
        let current = self.partition * self.slots + self.slot;
        self.partition += 1;
        if self.partition == self.partitions {
            self.partition = 0;
            self.slot = if self.slot + 1 == self.slots { 0 } else { self.slot + 1 };
        }
        current
    }

    fn parts(values: &[i128]) -> u64 {
        values[0] as u64
    }
}
