//! Reads of several sectors of a flash page at once, of which each fails or not.

use super::{ReadOutcome, WearOut};
use crate::flash::geometry::{BlockIdx, Place};
use crate::flash::reliability::Rber;

/// A flash page that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    erases: u32,
    /// What its block adds to the errors of each of its pages: wear, age, and reads.
    block: Rber,
}

impl WearOut {
    /// Whether a page of `block`, which was erased so often, may have to be read again at `clock`; `None` where
    /// even the worst page of all can be corrected at once.
    #[inline]
    pub(crate) fn reading(&self, block: BlockIdx, erases: u32, clock: u64) -> Option<Reading> {
        let wear = self.laws.wear(self.cycles_before.saturating_add(erases));
        let block = wear + self.since_erased(block, clock);
        let of_cell = |high| self.laws.page(u64::MAX, high);
        let worst = block + of_cell(false).max(of_cell(self.pages_of_a_cell > 1));
        let may_fail = self.program_failures > 0 || self.laws.failing_below(worst) > 0;
        may_fail.then_some(Reading { erases, block })
    }

    /// How the read of the sector at `from` goes.
    pub(crate) fn read_sector(&self, from: Place, reading: Reading) -> ReadOutcome {
        if self.program_fails(from, reading.erases) {
            return ReadOutcome { retries: self.read_retries, corrected: false };
        }
        let rate = reading.block + self.quality(from);
        self.outcome(from.page, reading.erases, rate)
    }

    /// Pages of `block` were read so many times.
    #[inline]
    pub(crate) fn was_read(&mut self, block: BlockIdx, times: u32) {
        if let Some(history) = &mut self.history {
            history.read(block, times);
        }
    }
}
