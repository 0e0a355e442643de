//! The writes that precondition a device: one generator for every device.
//!
//! **Source**: uFLIP (2009) §4.1: random writes of random size, from 0.5 KB to the flash block size
//! of 128 KB, over the whole device; or the sequential alternative.
//! **Faithful**: sizes uniform over whole sectors up to the largest, positions uniform over sectors.
//! **Simplified**: the first pass is sequential, so that every sector is written. Random writes
//! alone would need many times the device size for that. The random writes then go over it.
//! **Ambiguous**: the paper does not state the volume of random writes; the caller sets it.
//!
//! The sequence is a function of its options. An interrupted fill resumes by skipping the writes
//! already made.

use crate::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use crate::{Bytes, Io, Mode};

/// The extent and volume of the writes. All sizes are whole sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateOptions {
    /// The beginning of the target space.
    pub target_offset: Bytes,
    /// The size of the target space.
    pub target_size: Bytes,
    /// The unit of offsets and sizes.
    pub sector: Bytes,
    /// The size of the sequential writes, and the largest random one.
    pub io_size_max: Bytes,
    /// Whether to write the whole target space sequentially first.
    pub fill: bool,
    /// The volume of random writes after that; the last write may exceed it.
    pub random_bytes: Bytes,
    /// The seed of sizes and positions.
    pub seed: u64,
}

/// The sequence of writes.
#[derive(Clone, Debug)]
pub struct StateWrites {
    options: StateOptions,
    /// Bytes of the sequential pass that are done.
    filled: u64,
    random_remaining: u64,
    rng: Xoshiro256PlusPlus,
}

impl StateOptions {
    /// Return the writes for these options, from the first.
    ///
    /// # Panics
    /// In debug builds if the target space is smaller than a sector.
    #[must_use]
    pub fn writes(self) -> StateWrites {
        debug_assert!(self.target_size >= self.sector, "a target space has at least one sector");
        StateWrites {
            options: self,
            filled: 0,
            random_remaining: self.random_bytes.0,
            rng: Xoshiro256PlusPlus::seed_from_u64(self.seed),
        }
    }

    /// Count the writes and their bytes. The exact count takes seconds for tens of TiB. `None` if
    /// `stop`, checked every million writes, returns true.
    pub fn totals(self, stop: impl Fn() -> bool) -> Option<(u64, u64)> {
        let whole = if self.fill { self.target_size.0 } else { 0 };
        let (mut ios, mut bytes) = (whole.div_ceil(self.io_size_max.0), whole);
        let mut random = StateOptions { fill: false, ..self }.writes();
        while random.random_remaining > 0 {
            for io in random.by_ref().take(1 << 20) {
                ios += 1;
                bytes += io.size.0;
            }
            if stop() {
                return None;
            }
        }
        Some((ios, bytes))
    }

    fn write(&self, offset: u64, size: u64) -> Io {
        Io {
            offset: Bytes(self.target_offset.0 + offset),
            size: Bytes(size),
            mode: Mode::Write,
            stream: 0,
        }
    }
}

impl Iterator for StateWrites {
    type Item = Io;

    #[inline]
    fn next(&mut self) -> Option<Io> {
        let StateOptions { target_size, sector, io_size_max, fill, .. } = self.options;
        let (whole, sector) = (target_size.0, sector.0);
        if fill && self.filled < whole {
            let size = io_size_max.0.min(whole - self.filled);
            let write = self.options.write(self.filled, size);
            self.filled += size;
            return Some(write);
        }
        if self.random_remaining == 0 {
            return None;
        }
        let sizes = (io_size_max.0.min(whole) / sector).max(1);
        let size = (1 + uniform(&mut self.rng, sizes)) * sector;
        let offset = uniform(&mut self.rng, (whole - size) / sector + 1) * sector;
        self.random_remaining = self.random_remaining.saturating_sub(size);
        Some(self.options.write(offset, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: u64 = 512;

    fn options() -> StateOptions {
        StateOptions {
            target_offset: Bytes(1 << 20),
            target_size: Bytes((4 << 20) + 3 * SECTOR),
            sector: Bytes(SECTOR),
            io_size_max: Bytes(128 << 10),
            fill: true,
            random_bytes: Bytes(64 << 20),
            seed: 7,
        }
    }

    #[test]
    fn sequential_pass_covers_exactly_the_target() {
        let mut end = options().target_offset.0;
        for io in (StateOptions { random_bytes: Bytes(0), ..options() }).writes() {
            assert_eq!((io.offset.0, io.mode), (end, Mode::Write));
            end += io.size.0;
        }
        assert_eq!(end, options().target_offset.0 + options().target_size.0);
    }

    /// Uniform over 1 … 256 sectors: a mean of 128.5, a standard deviation of 73.9 for each write.
    #[test]
    fn random_sizes_are_uniform_and_within_the_target() {
        let random: Vec<Io> = StateOptions { fill: false, ..options() }.writes().collect();
        let (n, begin) = (random.len() as f64, options().target_offset.0);
        let sectors: Vec<f64> = random.iter().map(|io| (io.size.0 / SECTOR) as f64).collect();
        let mean = sectors.iter().sum::<f64>() / n;
        assert!((mean - 128.5).abs() < 4.0 * 73.9 / n.sqrt(), "mean of {mean} sectors");
        assert!(sectors.contains(&1.0) && sectors.contains(&256.0), "{n} writes");
        for io in random {
            assert!(io.offset.0 >= begin && io.offset.0.is_multiple_of(SECTOR));
            assert!(io.offset.0 + io.size.0 <= begin + options().target_size.0);
        }
    }

    #[test]
    fn random_write_volume_is_as_requested() {
        let random = StateOptions { fill: false, ..options() };
        let written: u64 = random.writes().map(|io| io.size.0).sum();
        let requested = random.random_bytes.0;
        assert!(
            (requested..requested + random.io_size_max.0).contains(&written),
            "{written} of {requested}"
        );
    }

    #[test]
    fn totals_match_the_writes() {
        for (fill, random_bytes) in [(true, 0), (true, 64 << 20), (false, 1 << 30), (false, 0)] {
            let state = StateOptions { fill, random_bytes: Bytes(random_bytes), ..options() };
            let written: u64 = state.writes().map(|io| io.size.0).sum();
            let totals = state.totals(|| false);
            assert_eq!(totals, Some((state.writes().count() as u64, written)));
        }
        assert_eq!(options().totals(|| true), None);
    }

    #[test]
    fn skipping_completed_writes_resumes_the_sequence() {
        let whole: Vec<Io> = options().writes().collect();
        for done in [0, 1, 32, 33, 34, 500, whole.len()] {
            assert!(options().writes().skip(done).eq(whole[done..].iter().copied()));
        }
    }
}
