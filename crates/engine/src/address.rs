//! The location functions: the address of the i-th I/O of a pattern.
//!
//! **Source**: uFLIP (2009) §3.1 and Table 1, attribute LBA(IOᵢ).
//! **Faithful**: sequential, random, ordered(Incr), partitioned(Partitions), IOShift, TargetOffset.
//! **Simplified**: nothing.
//! **Ours**: the skewed locations zipf and hotcold ([`crate::skewed`]).
//! **Ambiguous**: (1) the table lets addresses leave the target space (a shift at its end, Incr < 0
//! at its beginning, a long run); here they wrap, and only slots that lie wholly inside the target
//! space are used: `slots = ⌊(TargetSize − IOShift) / IOSize⌋`. (2) PS = TargetSize / Partitions is
//! rounded down to whole I/Os, so that every partition stays aligned. (3) "random" draws slots
//! uniformly and independently, with replacement.
//!
//! ```text
//!  TargetOffset                                        TargetOffset + TargetSize
//!  │◀IOShift▶│ slot 0 │ slot 1 │ …        │ slot n−1 │ (rest shorter than an I/O)
//! ```
//!
//! Random numbers are xoshiro256++ seeded through SplitMix64 (`seed_from_u64`). A bounded draw is
//! Lemire's multiply-and-shift with rejection, so every slot is exactly equally likely. Process p
//! of a parallel pattern draws from the generator jumped p times (2¹²⁸ draws apart). The second
//! component of a mix draws from the generator after a long jump.

use uflip_core::random::{Xoshiro256PlusPlus, uniform};

use crate::skewed::{HotCold, Zipf};

/// A location function with its position. It yields slot numbers: the address is `TargetOffset +
/// IOShift + slot × IOSize`.
#[derive(Clone, Debug)]
pub enum Location {
    /// Slot i mod n.
    Sequential {
        /// The next slot.
        slot: u64,
        /// Slots in the target space.
        slots: u64,
    },
    /// A slot drawn uniformly.
    Random {
        /// The generator; boxed to keep the enum small.
        rng: Box<Xoshiro256PlusPlus>,
        /// Slots in the target space.
        slots: u64,
    },
    /// Slot (Incr × i) mod n.
    Ordered {
        /// The next slot.
        slot: u64,
        /// Incr mod n: the step in 0 … n−1.
        step: u64,
        /// Slots in the target space.
        slots: u64,
    },
    /// Partition i mod P, slot ⌊i/P⌋ mod (slots in a partition) inside it.
    Partitioned {
        /// The next partition.
        partition: u64,
        /// The next slot, the same in every partition.
        slot: u64,
        /// The number of partitions.
        partitions: u64,
        /// Slots in one partition.
        slots: u64,
    },
    /// A slot drawn by Zipf's law; boxed, as the next variant, to keep the enum small.
    Zipf(Box<Zipf>),
    /// A slot of the hot or the cold area.
    HotCold(Box<HotCold>),
}

impl Location {
    /// Create uFLIP's `Seq`.
    #[must_use]
    pub fn sequential(slots: u64) -> Location {
        Location::Sequential { slot: 0, slots }
    }

    /// Create uFLIP's `Rnd`.
    #[must_use]
    pub fn random(slots: u64, rng: Xoshiro256PlusPlus) -> Location {
        Location::Random { rng: Box::new(rng), slots }
    }

    /// Create uFLIP's `Order`; a negative `incr` walks down from the end of the target space.
    #[must_use]
    pub fn ordered(slots: u64, incr: i64) -> Location {
        // Both fit i64: slots of at least 512 bytes in a device of at most 2⁶³ bytes.
        let step = incr.rem_euclid(slots as i64) as u64;
        Location::Ordered { slot: 0, step, slots }
    }

    /// Create uFLIP's `Partitioning`; `slots` is the number of slots of one partition.
    #[must_use]
    pub fn partitioned(slots: u64, partitions: u64) -> Location {
        Location::Partitioned { partition: 0, slot: 0, partitions, slots }
    }

    /// Return the slot of the next I/O.
    #[inline]
    pub fn next_slot(&mut self) -> u64 {
        match self {
            Location::Sequential { slot, slots } => {
                let current = *slot;
                *slot = if current + 1 == *slots { 0 } else { current + 1 };
                current
            }
            Location::Random { rng, slots } => uniform(rng, *slots),
            Location::Zipf(zipf) => zipf.next_slot(),
            Location::HotCold(areas) => areas.next_slot(),
            Location::Ordered { slot, step, slots } => {
                let current = *slot;
                let next = current + *step;
                *slot = if next >= *slots { next - *slots } else { next };
                current
            }
            Location::Partitioned { partition, slot, partitions, slots } => {
                let current = *partition * *slots + *slot;
                *partition += 1;
                if *partition == *partitions {
                    *partition = 0;
                    *slot = if *slot + 1 == *slots { 0 } else { *slot + 1 };
                }
                current
            }
        }
    }
}
