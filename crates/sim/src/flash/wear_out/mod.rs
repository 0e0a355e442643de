//! What wear does to the blocks and pages of one device: which reads fail at first, which programs and
//! erases fail, which pages are worn.
//!
//! Nothing is drawn: every chance is decided by a number made from the seed, the place, and how often
//! its block was erased. So the same read of the same data gives the same answer, in whatever order
//! operations come, and there is no generator to be kept.
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
//! **Simplified**: all data has one age, unless blocks have a [`History`]; a retry gains the same factor each time; programs and erases
//! fail in proportion to erases; a page that cannot be read is counted and has its data
//! all the same, since there is none.
//! **Ambiguous**: OFC retires a page by its RBER "when being read after having been aged": here after
//! the age that data has, judged when the block is erased.

mod history;
mod scrub;
mod vector;

use serde::{Deserialize, Serialize};
use uflip_core::random::{GOLDEN_GAMMA, finalise, mix};

use crate::flash::geometry::{BlockIdx, Geometry, Place, Ppn};
use crate::flash::reliability::{Rber, Reliability};
pub(crate) use history::{BEFORE, History};
pub(crate) use scrub::ScrubLimits;
pub(crate) use vector::{Failing, Reading};

/// What a device is made of, as far as it wears out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WearOutOptions {
    pub(crate) seed: u64,
    /// Erases of every block before the device was handed over.
    pub(crate) cycles_before: u32,
    pub(crate) rated_cycles: u32,
    /// Where so many pages share cells, the last of them is the worst; 1: all pages are alike.
    pub(crate) pages_of_a_cell: u32,
    pub(crate) grain: Grain,
    pub(crate) data_age_ns: u64,
    pub(crate) read_retries: u32,
    pub(crate) retry_gain: f64,
    /// Chances that a program and an erase fail on a block at its rated erases.
    pub(crate) program_failures: f64,
    pub(crate) erase_failures: f64,
    /// A page with more errors is worn.
    pub(crate) retire_rber: f64,
}

/// How many neighbours, counted as a geometry counts pages, have something in common.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Grain {
    /// So many are as good as each other: a page of a plane.
    pub(crate) quality: u32,
    /// So many are read and decoded together: either all of them fail, or none.
    pub(crate) read: u32,
}

impl Grain {
    /// Flash pages, each of which is read as a whole.
    pub(crate) fn flash_pages(geometry: &Geometry) -> Grain {
        Grain { quality: geometry.units(), read: geometry.units() }
    }
}

/// Which one of those that `many` pages make `page` is in.
#[inline]
fn group(page: Ppn, many: u32) -> u32 {
    if many == 1 { page.0 } else { page.0 / many }
}

/// The laws of wear, applied to the places of one device.
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
    /// Of every block, where that matters.
    history: Option<History>,
    read_retries: u32,
    gain: Rber,
    program_failures: u64,
    erase_failures: u64,
    retire: Rber,
}

/// How a read went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadOutcome {
    /// How often the page was read again.
    pub(crate) retries: u32,
    /// Whether the errors could be corrected in the end.
    pub(crate) corrected: bool,
}

/// What a number decides about; keeps them apart.
#[derive(Clone, Copy)]
enum Lot {
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
            gain: Rber::of(options.retry_gain),
            program_failures: chance(options.program_failures),
            erase_failures: chance(options.erase_failures),
            retire: Rber::of(options.retire_rber),
        }
    }

    /// The same where every block has its own history.
    pub(crate) fn with_history(self, history: History) -> WearOut {
        WearOut { history: Some(history), ..self }
    }

    /// Whether `block` was bad when the device was made, where a share of `chance` of all is.
    pub(crate) fn is_factory_bad(seed: u64, chance: u64, block: BlockIdx) -> bool {
        lot(seed, Lot::Factory, block.0, 0) < chance
    }

    /// Read `from` at `clock`, whose block was erased so often here.
    pub(crate) fn read(&mut self, from: Place, erases: u32, clock: u64) -> ReadOutcome {
        let outcome = self.judge(from, erases, clock);
        if let Some(history) = &mut self.history {
            history.read(from.block, 1 + outcome.retries);
        }
        outcome
    }

    fn judge(&self, from: Place, erases: u32, clock: u64) -> ReadOutcome {
        let rate = self.rate(from, erases) + self.since_erased(from.block, clock);
        self.outcome(from.page, erases, rate)
    }

    /// How a read of `page` goes whose errors are so many at first.
    fn outcome(&self, page: Ppn, erases: u32, mut rate: Rber) -> ReadOutcome {
        let drawn = lot(self.seed, Lot::Read, group(page, self.grain.read), erases);
        for retries in 0..=self.read_retries {
            if drawn >= self.laws.failing_below(rate) {
                return ReadOutcome { retries, corrected: true };
            }
            rate = rate + self.gain;
        }
        ReadOutcome { retries: self.read_retries, corrected: false }
    }

    /// A page of `block` was programmed at `clock`.
    #[inline]
    pub(crate) fn programmed(&mut self, block: BlockIdx, clock: u64) {
        if let Some(history) = &mut self.history {
            history.programmed(block, clock);
        }
    }

    /// `block` was erased.
    pub(crate) fn erased(&mut self, block: BlockIdx) {
        if let Some(history) = &mut self.history {
            history.erased(block);
        }
    }

    /// Power was lost, and these blocks are erased: what was counted of others is known again.
    pub(crate) fn begin_anew(&mut self, erased: impl Iterator<Item = BlockIdx>) {
        if let Some(history) = &mut self.history {
            history.begin_anew(erased);
        }
    }

    /// Whether a block may be due to be moved at `clock`.
    pub(crate) fn has_due(&self, clock: u64) -> bool {
        self.history.as_ref().is_some_and(|history| history.has_due(clock, self.data_age_ns))
    }

    /// The next block that is.
    pub(crate) fn next_due(&mut self, clock: u64) -> Option<BlockIdx> {
        self.history.as_mut()?.next_due(clock, self.data_age_ns)
    }

    /// What age and reads have added to the errors of `block`.
    fn since_erased(&self, block: BlockIdx, clock: u64) -> Rber {
        let Some(history) = &self.history else { return self.age };
        let age_ns = history.age_ns(block, clock, self.data_age_ns);
        self.laws.age(age_ns) + history.disturbed(block)
    }

    /// Whether programming `to` fails.
    #[inline]
    pub(crate) fn program_fails(&self, to: Place, erases: u32) -> bool {
        self.program_failures > 0 && self.draws_failure(to, erases)
    }

    #[inline(never)]
    fn draws_failure(&self, to: Place, erases: u32) -> bool {
        let page = self.geometry.flash_page(to.page);
        lot(self.seed, Lot::Program, page, erases) < self.scaled(self.program_failures, erases)
    }

    /// Whether the next erase of a block that was erased so often fails: by chance, or because it would take too
    /// long. A block endures as many cycles as its data sheet says, so that the one after these is judged first.
    pub(crate) fn erase_fails(&self, block: BlockIdx, erases: u32) -> bool {
        self.laws.erase_extra_ns(self.cycles_before.saturating_add(erases)).is_none()
            || lot(self.seed, Lot::Erase, block.0, erases)
                < self.scaled(self.erase_failures, erases)
    }

    /// How much longer than the first the next erase of a block takes [ns].
    pub(crate) fn erase_extra_ns(&self, erases: u32) -> u64 {
        let cycles = self.cycles_before.saturating_add(erases);
        // A block that fails takes as long as the longest that does not.
        self.laws.erase_extra_ns(cycles).unwrap_or_else(|| self.laws.erase_extra_most_ns())
    }

    /// Whether `page` has too many errors to be programmed again.
    pub(crate) fn is_worn(&self, page: Place, erases: u32) -> bool {
        self.rate(page, erases) + self.age > self.retire
    }

    /// How many errors `page` has when it is read: greater where there are more.
    pub(crate) fn errors(&self, page: Place, erases: u32) -> u32 {
        (self.rate(page, erases) + self.age).order()
    }

    /// RBER of `page` when it is read at once.
    fn rate(&self, page: Place, erases: u32) -> Rber {
        self.laws.wear(self.cycles_before.saturating_add(erases)) + self.quality(page)
    }

    /// What makes `page` better or worse than others.
    fn quality(&self, page: Place) -> Rber {
        let shared = self.pages_of_a_cell;
        let high = shared > 1 && self.geometry.flash_page_in_block(page) % shared == shared - 1;
        let number = group(page.page, self.grain.quality);
        self.laws.page(lot(self.seed, Lot::Quality, number, 0), high)
    }

    /// A chance that is what it is at the rated erases, and grows in proportion to them.
    fn scaled(&self, at_rated: u64, erases: u32) -> u64 {
        let cycles = u128::from(self.cycles_before.saturating_add(erases));
        let scaled = u128::from(at_rated) * cycles / u128::from(self.rated_cycles);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// A number of 64 bits below which a random one falls with probability `p`.
pub(crate) fn chance(p: f64) -> u64 {
    (p * 2f64.powi(64)) as u64
}

/// The number that decides about `what` at a place and a time: mixed twice, so that neighbours have nothing in
/// common.
fn lot(seed: u64, what: Lot, place: u32, time: u32) -> u64 {
    let key = finalise(seed.wrapping_add((what as u64).wrapping_mul(GOLDEN_GAMMA)));
    finalise(key ^ mix(u64::from(place) << 32 | u64::from(time)))
}

#[cfg(test)]
mod tests;
