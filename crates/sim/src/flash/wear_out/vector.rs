//! Reads of several sectors of a flash page at once, each of which may fail.
//!
//! Shared properties are determined once: for the flash page, whether its program failed; for sectors of the
//! same quality, their error rate. Only the random number is drawn per sector.

use super::{RandomPurpose, ReadOutcome, WearOut, draw, group};
use crate::flash::geometry::{BlockIdx, PageAddress};
use crate::flash::reliability::Rber;

/// A flash page that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    erases: u32,
    /// The errors that its block adds to each of its pages: wear, age, and reads.
    block: Rber,
    /// Its program failed.
    is_lost: bool,
}

/// Sectors of it with the same quality, some of which may need a read retry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailingSectors {
    page: Reading,
    rate: Rber,
    below: u64,
}

impl WearOut {
    /// Return whether the flash page of `from`, in a block with `erases` erases, may need a read
    /// retry at `clock`; `None` if even the worst page can be corrected at once.
    #[inline]
    pub(crate) fn reading(&self, from: PageAddress, erases: u32, clock: u64) -> Option<Reading> {
        let wear = self.laws.wear(self.cycles_before.saturating_add(erases));
        let block = wear + self.age_and_disturb(from.block, clock);
        let of_cell = |high| self.laws.page(u64::MAX, high);
        let worst = block + of_cell(false).max(of_cell(self.pages_of_a_cell > 1));
        let is_lost = self.program_fails(from, erases);
        let may_fail = is_lost || self.laws.failing_below(worst) > 0;
        may_fail.then_some(Reading { erases, block, is_lost })
    }

    /// Return the sectors of `page` with the same quality as the one at `from`; `None` if each is corrected
    /// at once.
    #[inline]
    pub(crate) fn failing_sectors(
        &self,
        from: PageAddress,
        page: Reading,
    ) -> Option<FailingSectors> {
        let rate = page.block + self.quality(from);
        let below = self.laws.failing_below(rate);
        (page.is_lost || below > 0).then_some(FailingSectors { page, rate, below })
    }

    /// Read the sector at `from`, which is one of `failing`.
    #[inline]
    pub(crate) fn read_sector(&self, from: PageAddress, failing: FailingSectors) -> ReadOutcome {
        let FailingSectors { page: Reading { erases, is_lost, .. }, rate, below } = failing;
        if is_lost {
            return ReadOutcome { retries: self.read_retries, corrected: false };
        }
        let drawn = draw(self.seed, RandomPurpose::Read, group(from.page, self.grain.read), erases);
        if drawn >= below {
            return ReadOutcome { retries: 0, corrected: true };
        }
        self.outcome(from.page, erases, rate)
    }

    /// Record that pages of `block` were read `times` times.
    #[inline]
    pub(crate) fn was_read(&mut self, block: BlockIdx, times: u32) {
        if let Some(history) = &mut self.history {
            history.read(block, times);
        }
    }
}
