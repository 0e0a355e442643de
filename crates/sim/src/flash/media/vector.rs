//! Operations of a host that places data itself: a violated rule is its mistake, and is returned as a value.
//!
//! It programs and erases whole flash pages, and reads sectors of them; a sector is what a [`Geometry`]
//! counts as a page.
//!
//! [`Geometry`]: crate::flash::geometry::Geometry

use super::{CollectMedia as _, Flash};
use crate::flash::geometry::{BlockIdx, PageAddress};
use crate::flash::nand::Violation;
use crate::flash::wear_out::{FailingSectors, ReadOutcome, Reading};

impl Flash {
    /// Program the flash page that begins at `to`; returns false if that fails: the page then holds no data.
    #[inline]
    pub(crate) fn try_program(&mut self, to: PageAddress) -> Result<bool, Violation> {
        self.nand.try_program(to, self.geometry.units())?;
        Ok(self.wear_out.is_none() || self.judge_program(to.page, to.block))
    }

    /// Erase `block`; returns false if that fails, and the block is then retired.
    pub(crate) fn try_erase(&mut self, block: BlockIdx) -> Result<bool, Violation> {
        self.nand.check_erase(block)?;
        self.counters.blocks_erased += 1;
        let erases = self.nand.erases(block);
        if let Some(wear_out) = &mut self.wear_out {
            if wear_out.erase_fails(block, erases) {
                self.counters.erase_failures += 1;
                self.retire_block(block);
                return Ok(false);
            }
            wear_out.erased(block);
        }
        self.nand.erase(block);
        Ok(true)
    }

    /// Begin to read a flash page, of which `from` is a sector; `None` if no sector of it can fail.
    #[inline]
    pub(crate) fn try_read(&self, from: PageAddress) -> Result<Option<Reading>, Violation> {
        self.nand.check_read(from)?;
        let erases = self.nand.erases(from.block);
        let wear_out = self.wear_out.as_ref();
        Ok(wear_out.and_then(|wear_out| wear_out.reading(from, erases, self.clock)))
    }

    /// Return the sectors of `page` with the same quality as the one at `from`, those of a plane; `None` if
    /// each is corrected at once.
    #[inline]
    pub(crate) fn failing_sectors(
        &self,
        from: PageAddress,
        page: Reading,
    ) -> Option<FailingSectors> {
        self.wear_out.as_ref()?.failing_sectors(from, page)
    }

    /// Read the sector at `from`, which is one of `failing`.
    #[inline]
    pub(crate) fn read_sector(
        &mut self,
        from: PageAddress,
        failing: FailingSectors,
    ) -> ReadOutcome {
        let Some(wear_out) = &self.wear_out else {
            return ReadOutcome { retries: 0, corrected: true };
        };
        let outcome = wear_out.read_sector(from, failing);
        self.counters.uncorrectable_reads += u64::from(!outcome.corrected);
        outcome
    }

    /// Record that `pages` pages of `block` were read.
    #[inline]
    pub(crate) fn was_read(&mut self, block: BlockIdx, pages: u32) {
        if let Some(wear_out) = &mut self.wear_out {
            wear_out.was_read(block, pages);
        }
    }
}
