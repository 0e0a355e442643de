//! The effects of wear on the blocks and pages of one device: reads that fail at first, programs and erases
//! that fail, worn pages.
//!
//! No random generator is used: a hash of the seed, the address and the erase count of its block decides every
//! chance. The same read of the same data therefore gives the same result, in whatever order operations come,
//! and no generator state is stored.
//!
//! ```text
//! first read fails ─▶ read again, with other reference voltages: RBER × retry_gain ─▶ … ─▶ corrected
//!                                                                                     └─▶ given up
//! ```
//!
//! **Source**: laws in `reliability/`; retirement OFC (2011) §IV.C and Figure 4; read retry as Cai et
//! al. (HPCA 2015) describe it.
//! **Faithful**: failures out of the binomial tail of the ECC; a retry reads the page again, cell and
//! transfer.
//! **Simplified**: all data has one age, unless blocks have a [`History`]; a retry gains the same factor each
//! time; programs and erases fail in proportion to erases; an uncorrectable page is counted but returns its
//! data, since data is not simulated.
//! **Ambiguous**: OFC retires a page by its RBER "when being read after having been aged": here after the age
//! that data has, judged when the block is erased.

mod history;
mod scrub;
mod vector;

use serde::{Deserialize, Serialize};
use uflip_core::random::{GOLDEN_GAMMA, finalise, mix};

use crate::flash::geometry::{BlockIdx, Geometry, PageAddress, Ppn};
use crate::flash::reliability::{Rber, Reliability};
pub(crate) use history::{BEFORE, BlockHistory};
pub(crate) use scrub::ScrubLimits;
pub(crate) use vector::{FailingSectors, Reading};

/// The wear parameters of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WearOutOptions {
    pub(crate) seed: u64,
    /// Erases of every block before the device was handed over.
    pub(crate) cycles_before: u32,
    pub(crate) rated_cycles: u32,
    /// If this many pages share cells, the last of them is the worst; 1: all pages are alike.
    pub(crate) pages_of_a_cell: u32,
    pub(crate) grain: Grain,
    pub(crate) data_age_ns: u64,
    pub(crate) read_retries: u32,
    pub(crate) retry_gain: f64,
    /// Probabilities that a program and an erase fail on a block at its rated erases.
    pub(crate) program_failures: f64,
    pub(crate) erase_failures: f64,
    /// A page with a higher RBER is worn.
    pub(crate) retire_rber: f64,
}

/// The number of neighbouring pages of the geometry that share a property.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Grain {
    /// Pages of the same quality: a page of a plane.
    pub(crate) quality: u32,
    /// Pages that are read and decoded together: either all of them fail, or none.
    pub(crate) read: u32,
}

impl Grain {
    /// Return the grain of flash pages that are read as a whole.
    pub(crate) fn flash_pages(geometry: &Geometry) -> Grain {
        Grain { quality: geometry.units(), read: geometry.units() }
    }
}

/// Return the number of the group of `many` pages that contains `page`.
#[inline]
fn group(page: Ppn, many: u32) -> u32 {
    if many == 1 { page.0 } else { page.0 / many }
}

/// The laws of wear, applied to the addresses of one device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WearOut {
    laws: Reliability,
    geometry: Geometry,
    seed: u64,
    cycles_before: u32,
    rated_cycles: u32,
    pages_of_a_cell: u32,
    grain: Grain,
    data_age_ns: u64,
    age: Rber,
    /// The history of every block, if that matters.
    history: Option<BlockHistory>,
    read_retries: u32,
    gain: Rber,
    program_failures: u64,
    erase_failures: u64,
    retire: Rber,
}

/// The outcome of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadOutcome {
    /// The number of read retries.
    pub(crate) retries: u32,
    /// Whether the errors could be corrected in the end.
    pub(crate) corrected: bool,
}

/// The purpose of a random number; keeps the sequences independent.
#[derive(Clone, Copy)]
enum RandomPurpose {
    Factory = 1,
    Quality = 2,
    Read = 3,
    Program = 4,
    Erase = 5,
}

impl WearOut {
    pub(crate) fn new(laws: Reliability, geometry: Geometry, options: WearOutOptions) -> WearOut {
        WearOut {
            data_age_ns: options.data_age_ns,
            age: laws.age(options.data_age_ns),
            history: None,
            laws,
            geometry,
            seed: options.seed,
            cycles_before: options.cycles_before,
            rated_cycles: options.rated_cycles,
            pages_of_a_cell: options.pages_of_a_cell,
            grain: options.grain,
            read_retries: options.read_retries,
            gain: Rber::from_rate(options.retry_gain),
            program_failures: chance(options.program_failures),
            erase_failures: chance(options.erase_failures),
            retire: Rber::from_rate(options.retire_rber),
        }
    }

    /// Return this state with a history of every block.
    pub(crate) fn with_history(self, history: BlockHistory) -> WearOut {
        WearOut { history: Some(history), ..self }
    }

    /// Return whether `block` is bad from the factory, with the probability `chance`.
    pub(crate) fn is_factory_bad(seed: u64, chance: u64, block: BlockIdx) -> bool {
        draw(seed, RandomPurpose::Factory, block.0, 0) < chance
    }

    /// Read `from` at `clock`, whose block was erased `erases` times in this simulation.
    pub(crate) fn read(&mut self, from: PageAddress, erases: u32, clock: u64) -> ReadOutcome {
        let outcome = self.judge(from, erases, clock);
        if let Some(history) = &mut self.history {
            history.read(from.block, 1 + outcome.retries);
        }
        outcome
    }

    fn judge(&self, from: PageAddress, erases: u32, clock: u64) -> ReadOutcome {
        let rate = self.rate(from, erases) + self.age_and_disturb(from.block, clock);
        self.outcome(from.page, erases, rate)
    }

    /// Return the outcome of a read of `page` whose first attempt has the error rate `rate`.
    fn outcome(&self, page: Ppn, erases: u32, mut rate: Rber) -> ReadOutcome {
        let drawn = draw(self.seed, RandomPurpose::Read, group(page, self.grain.read), erases);
        for retries in 0..=self.read_retries {
            if drawn >= self.laws.failing_below(rate) {
                return ReadOutcome { retries, corrected: true };
            }
            rate = rate + self.gain;
        }
        ReadOutcome { retries: self.read_retries, corrected: false }
    }

    /// Record that a page of `block` was programmed at `clock`.
    #[inline]
    pub(crate) fn programmed(&mut self, block: BlockIdx, clock: u64) {
        if let Some(history) = &mut self.history {
            history.programmed(block, clock);
        }
    }

    /// Record that `block` was erased.
    pub(crate) fn erased(&mut self, block: BlockIdx) {
        if let Some(history) = &mut self.history {
            history.erased(block);
        }
    }

    /// Reset after a power loss, with these erased blocks; the counts of the others are kept.
    pub(crate) fn reset_after_power_loss(&mut self, erased: impl Iterator<Item = BlockIdx>) {
        if let Some(history) = &mut self.history {
            history.reset_after_power_loss(erased);
        }
    }

    /// Return whether a block may be due for scrubbing at `clock`.
    pub(crate) fn has_due(&self, clock: u64) -> bool {
        self.history.as_ref().is_some_and(|history| history.has_due(clock, self.data_age_ns))
    }

    /// Return the next block that is due.
    pub(crate) fn next_due(&mut self, clock: u64) -> Option<BlockIdx> {
        self.history.as_mut()?.next_due(clock, self.data_age_ns)
    }

    /// Return the factor of errors that age and reads have added to `block`.
    fn age_and_disturb(&self, block: BlockIdx, clock: u64) -> Rber {
        let Some(history) = &self.history else { return self.age };
        let age_ns = history.age_ns(block, clock, self.data_age_ns);
        self.laws.age(age_ns) + history.disturbed(block)
    }

    /// Return whether programming `to` fails.
    #[inline]
    pub(crate) fn program_fails(&self, to: PageAddress, erases: u32) -> bool {
        self.program_failures > 0 && self.draws_failure(to, erases)
    }

    #[inline(never)]
    fn draws_failure(&self, to: PageAddress, erases: u32) -> bool {
        let page = self.geometry.flash_page(to.page);
        draw(self.seed, RandomPurpose::Program, page, erases)
            < self.scaled(self.program_failures, erases)
    }

    /// Return whether the next erase of a block with `erases` erases fails: by chance, or because
    /// it would take too long. A block endures the cycles of its data sheet, so the one after these
    /// is judged first.
    pub(crate) fn erase_fails(&self, block: BlockIdx, erases: u32) -> bool {
        self.laws.erase_extra_ns(self.cycles_before.saturating_add(erases)).is_none()
            || draw(self.seed, RandomPurpose::Erase, block.0, erases)
                < self.scaled(self.erase_failures, erases)
    }

    /// Return how much longer than the first the next erase of a block takes [ns].
    pub(crate) fn erase_extra_ns(&self, erases: u32) -> u64 {
        let cycles = self.cycles_before.saturating_add(erases);
        // A failing erase takes as long as the longest successful one.
        self.laws.erase_extra_ns(cycles).unwrap_or_else(|| self.laws.max_erase_extra_ns())
    }

    /// Return whether `page` has too many errors to be programmed again.
    pub(crate) fn is_worn(&self, page: PageAddress, erases: u32) -> bool {
        self.rate(page, erases) + self.age > self.retire
    }

    /// Return a number that grows with the errors of `page` when it is read.
    pub(crate) fn errors(&self, page: PageAddress, erases: u32) -> u32 {
        (self.rate(page, erases) + self.age).order()
    }

    /// Return the RBER of `page` if it is read immediately.
    fn rate(&self, page: PageAddress, erases: u32) -> Rber {
        self.laws.wear(self.cycles_before.saturating_add(erases)) + self.quality(page)
    }

    /// Return the quality of `page` relative to others.
    fn quality(&self, page: PageAddress) -> Rber {
        let shared = self.pages_of_a_cell;
        let high = shared > 1 && self.geometry.flash_page_in_block(page) % shared == shared - 1;
        let number = group(page.page, self.grain.quality);
        self.laws.page(draw(self.seed, RandomPurpose::Quality, number, 0), high)
    }

    /// Scale a probability, given at the rated erases, in proportion to the erases.
    fn scaled(&self, at_rated: u64, erases: u32) -> u64 {
        let cycles = u128::from(self.cycles_before.saturating_add(erases));
        let scaled = u128::from(at_rated) * cycles / u128::from(self.rated_cycles);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// Return the threshold of 64 bits below which a random number falls with probability `p`.
pub(crate) fn chance(p: f64) -> u64 {
    (p * 2f64.powi(64)) as u64
}

/// Return the random number for `purpose` at an index (page or block) and a time: mixed twice, so that neighbours are
/// independent.
fn draw(seed: u64, purpose: RandomPurpose, index: u32, time: u32) -> u64 {
    let key = finalise(seed.wrapping_add((purpose as u64).wrapping_mul(GOLDEN_GAMMA)));
    finalise(key ^ mix(u64::from(index) << 32 | u64::from(time)))
}

#[cfg(test)]
mod tests;
