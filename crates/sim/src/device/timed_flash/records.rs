//! Records of programs and erases, kept if power may be cut.

use std::hint::cold_path;

use super::TimedFlash;
use crate::flash::contents::{Defect, Origin};
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::{BlockIdx, PageAddress, PlaneIdx, Ppn};
use crate::timeline::{Op, Purpose, Report};

impl<M: FastPath> TimedFlash<'_, M> {
    /// Record the content of `to`, if power may be cut. Return the record of its program; 0 for a
    /// unit of a flash page, which is recorded with the page.
    #[inline]
    pub(super) fn note(
        &mut self,
        to: PageAddress,
        origin: Option<Origin>,
        programmed: bool,
    ) -> u32 {
        if M::MINIMAL || self.events.contents.is_none() {
            0
        } else {
            cold_path();
            self.record_program(to.page, to.block, to.plane, origin, programmed)
        }
    }

    /// The address is passed in parts: a value just written in parts is slow to read as a whole, and
    /// slower behind a cache miss (store forwarding).
    #[inline(never)]
    fn record_program(
        &mut self,
        page: Ppn,
        block: BlockIdx,
        plane: PlaneIdx,
        origin: Option<Origin>,
        programmed: bool,
    ) -> u32 {
        let to = PageAddress { page, block, plane };
        let Some(contents) = &mut self.events.contents else { return 0 };
        let origin = origin.or(match self.target.account {
            Some(account) => Some(Origin::Account(account.number())),
            None => Some(Origin::Cache),
        });
        let holds = self.page.map(|page| page.0).zip(origin);
        contents.decide(to, holds, self.role, programmed);
        if self.gather.is_some() { 0 } else { contents.program(to) }
    }

    /// Like [`TimedFlash::note`], for a metadata page, which occupies a whole flash page.
    pub(super) fn note_metadata(&mut self, to: PageAddress, programmed: bool) -> u32 {
        let units = self.flash.geometry.units();
        let Some(contents) = &mut self.events.contents else { return 0 };
        (0..units).for_each(|unit| contents.decide(to.plus_pages(unit), None, 0, programmed));
        contents.program(to)
    }

    /// Record that the erase of `block` has failed.
    #[cold]
    pub(super) fn note_failed_erase(&mut self, block: BlockIdx) {
        if let Some(contents) = &mut self.events.contents {
            contents.erase_failed(block, self.at);
        }
    }

    /// Program the defect list of the die of `block` with its present content.
    pub(super) fn note_defect(&mut self, defect: Defect, block: BlockIdx) {
        let contents = self.events.contents.as_mut();
        let nand = &self.flash.nand;
        let listed = contents.and_then(|contents| contents.list(defect, block, nand));
        let Some(writes) = listed else { return };
        let geometry = &self.flash.geometry;
        let die = geometry.die_of(geometry.plane_of(block));
        let program_ns = self.events.timing.cells.program_page(0);
        let transfers = self.events.timing.program_transfers;
        let op = Op::program(die, program_ns, Purpose::Metadata, self.target.token);
        self.events.issue(self.at, Op { transfers, writes, report: Report::Never, ..op });
    }
}
