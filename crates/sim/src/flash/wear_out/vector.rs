//! Reads of several sectors of a flash page at once, of which each fails or not.
//!
//! What sectors have in common is found out once: for the flash page whether its program failed, and for those that
//! are as good as each other how many errors they have. Of each sector only its lot is drawn.

use super::{Lot, ReadOutcome, WearOut, group, lot};
use crate::flash::geometry::{BlockIdx, Place};
use crate::flash::reliability::Rber;

/// A flash page that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    erases: u32,
    /// What its block adds to the errors of each of its pages: wear, age, and reads.
    block: Rber,
    /// Its program failed.
    is_lost: bool,
}

/// Sectors of it that are as good as each other, and of which some may have to be read again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failing {
    page: Reading,
    rate: Rber,
    below: u64,
}

impl WearOut {
    /// Whether the flash page that `from` is in, of a block that was erased so often, may have to be read again at
    /// `clock`; `None` where even the worst page of all can be corrected at once.
    #[inline]
    pub(crate) fn reading(&self, from: Place, erases: u32, clock: u64) -> Option<Reading> {
        let wear = self.laws.wear(self.cycles_before.saturating_add(erases));
        let block = wear + self.since_erased(from.block, clock);
        let of_cell = |high| self.laws.page(u64::MAX, high);
        let worst = block + of_cell(false).max(of_cell(self.pages_of_a_cell > 1));
        let is_lost = self.program_fails(from, erases);
        let may_fail = is_lost || self.laws.failing_below(worst) > 0;
        may_fail.then_some(Reading { erases, block, is_lost })
    }

    /// The sectors of `page` that are as good as the one at `from`; `None` where each is corrected at once.
    #[inline]
    pub(crate) fn failing_sectors(&self, from: Place, page: Reading) -> Option<Failing> {
        let rate = page.block + self.quality(from);
        let below = self.laws.failing_below(rate);
        (page.is_lost || below > 0).then_some(Failing { page, rate, below })
    }

    /// How the read of the sector at `from`, which is one of `failing`, goes.
    #[inline]
    pub(crate) fn read_sector(&self, from: Place, failing: Failing) -> ReadOutcome {
        let Failing { page: Reading { erases, is_lost, .. }, rate, below } = failing;
        if is_lost {
            return ReadOutcome { retries: self.read_retries, corrected: false };
        }
        let drawn = lot(self.seed, Lot::Read, group(from.page, self.grain.read), erases);
        if drawn >= below {
            return ReadOutcome { retries: 0, corrected: true };
        }
        self.outcome(from.page, erases, rate)
    }

    /// Pages of `block` were read so many times.
    #[inline]
    pub(crate) fn was_read(&mut self, block: BlockIdx, times: u32) {
        if let Some(history) = &mut self.history {
            history.read(block, times);
        }
    }
}
