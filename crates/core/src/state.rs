//! The writes that bring a device into a well-defined state: one generator for every device.
//!
//! **Source**: uFLIP (2009) §4.1: random writes of random size, from 0.5 KB to the flash block size
//! of 128 KB, over the whole device; or the sequential alternative.
//! **Faithful**: sizes uniform over whole sectors up to the largest, positions uniform over sectors.
//! **Simplified**: the first pass is sequential, so that every sector is written for certain, which
//! random writes alone would take many times the device for; the random writes then go over it.
//! **Ambiguous**: the paper does not say how much is written at random; the caller does.
//!
//! The sequence is a function of its options, so a fill that was cut short goes on where it stood
//! when as many writes are skipped as were made.

use crate::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use crate::{Bytes, Io, Mode};

/// What to write, and where. All sizes are whole sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateOptions {
    /// Where the target space begins.
    pub target_offset: Bytes,
    /// How long it is.
    pub target_size: Bytes,
    /// The unit of offsets and sizes.
    pub sector: Bytes,
    /// The size of the sequential writes, and the largest random one.
    pub io_size_max: Bytes,
    /// Whether the whole target space is written sequentially first.
    pub fill: bool,
    /// How much is written at random after that; the last write may go beyond it.
    pub random_bytes: Bytes,
    /// The seed of sizes and positions.
    pub seed: u64,
}

/// The writes, in order.
#[derive(Clone, Debug)]
pub struct StateWrites {
    options: StateOptions,
    /// How much of the sequential pass is done.
    filled: u64,
    random_left: u64,
    rng: Xoshiro256PlusPlus,
}

impl StateOptions {
    /// The writes that these options ask for, from the first.
    ///
    /// # Panics
    /// In debug builds where the target space holds no sector.
    #[must_use]
    pub fn writes(self) -> StateWrites {
        debug_assert!(self.target_size >= self.sector, "a target space holds a sector");
        StateWrites {
            options: self,
            filled: 0,
            random_left: self.random_bytes.0,
            rng: Xoshiro256PlusPlus::seed_from_u64(self.seed),
        }
    }

    /// How many writes that is, and of how many bytes: counted, not estimated, which takes seconds
    /// for tens of TiB. `None` where `stop`, which is asked every million of them, says so.
    pub fn totals(self, stop: impl Fn() -> bool) -> Option<(u64, u64)> {
        let whole = if self.fill { self.target_size.0 } else { 0 };
        let (mut ios, mut bytes) = (whole.div_ceil(self.io_size_max.0), whole);
        let mut random = StateOptions { fill: false, ..self }.writes();
        while random.random_left > 0 {
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
        if self.random_left == 0 {
            return None;
        }
        let sizes = (io_size_max.0.min(whole) / sector).max(1);
        let size = (1 + uniform(&mut self.rng, sizes)) * sector;
        let offset = uniform(&mut self.rng, (whole - size) / sector + 1) * sector;
        self.random_left = self.random_left.saturating_sub(size);
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
    fn the_sequential_pass_tiles_the_target_and_nothing_else() {
        let mut end = options().target_offset.0;
        for io in (StateOptions { random_bytes: Bytes(0), ..options() }).writes() {
            assert_eq!((io.offset.0, io.mode), (end, Mode::Write));
            end += io.size.0;
        }
        assert_eq!(end, options().target_offset.0 + options().target_size.0);
    }

    /// Uniform over 1 … 256 sectors: a mean of 128.5, a standard deviation of 73.9 for each write.
    #[test]
    fn random_sizes_are_uniform_up_to_the_largest_and_stay_in_the_target() {
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
    fn as_much_is_written_at_random_as_was_asked_for() {
        let random = StateOptions { fill: false, ..options() };
        let written: u64 = random.writes().map(|io| io.size.0).sum();
        let asked = random.random_bytes.0;
        assert!((asked..asked + random.io_size_max.0).contains(&written), "{written} of {asked}");
    }

    #[test]
    fn what_is_counted_is_what_is_written() {
        for (fill, random_bytes) in [(true, 0), (true, 64 << 20), (false, 1 << 30), (false, 0)] {
            let some = StateOptions { fill, random_bytes: Bytes(random_bytes), ..options() };
            let written: u64 = some.writes().map(|io| io.size.0).sum();
            let totals = some.totals(|| false);
            assert_eq!(totals, Some((some.writes().count() as u64, written)));
        }
        assert_eq!(options().totals(|| true), None);
    }

    #[test]
    fn skipping_what_was_made_goes_on_where_it_stood() {
        let whole: Vec<Io> = options().writes().collect();
        for done in [0, 1, 32, 33, 34, 500, whole.len()] {
            assert!(options().writes().skip(done).eq(whole[done..].iter().copied()));
        }
    }
}
