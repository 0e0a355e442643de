//! Timeline operations on pages: cell times, dies and purposes.

use super::TimedFlash;
use crate::device::event::EventTag;
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::{DieIdx, PageAddress};
use crate::timeline::{Op, Purpose};

impl<M: FastPath> TimedFlash<'_, M> {
    /// Return the program time of the cells of `page`.
    #[inline]
    pub(super) fn program_ns(&self, page: PageAddress) -> u64 {
        if !M::MINIMAL
            && let Some((_, program_ns)) = self.flash.slc_ns(page.block)
        {
            return program_ns;
        }
        let geometry = &self.flash.geometry;
        let page = if M::MINIMAL {
            geometry.page_in_block(page)
        } else {
            geometry.flash_page_in_block(page)
        };
        self.events.timing.cells.program_page(page)
    }

    /// Return the read time of the cells of `page`.
    #[inline]
    pub(super) fn read_ns(&self, page: PageAddress) -> u64 {
        if let Some((read_ns, _)) = self.flash.slc_ns(page.block) {
            return read_ns;
        }
        self.events.timing.cells.read_page(|| self.flash.geometry.flash_page_in_block(page))
    }

    /// Return the purpose of page moves.
    #[inline(always)]
    pub(super) fn relocation_purpose(&self) -> Purpose {
        if M::MINIMAL { Purpose::Relocation } else { self.moves }
    }

    /// Add the page to `op`, if operations are recorded.
    #[inline(always)]
    pub(super) fn op_at(address: PageAddress, op: Op<EventTag>) -> Op<EventTag> {
        if M::MINIMAL { op } else { op.on(address) }
    }

    #[inline(always)]
    fn die_at(&self, address: PageAddress) -> DieIdx {
        self.flash.geometry.die_at_of::<M>(address)
    }

    /// Return a read of `from`.
    #[inline]
    pub(super) fn read_op(
        &self,
        from: PageAddress,
        purpose: Purpose,
        token: EventTag,
    ) -> Op<EventTag> {
        let transfers = self.units_read;
        let op = Op::read(self.die_at(from), self.read_ns(from), purpose, token);
        Self::op_at(from, Op { transfers, ..op })
    }

    /// Return a program of the whole flash page of `to`.
    #[inline(always)]
    pub(super) fn program_op(
        &self,
        to: PageAddress,
        purpose: Purpose,
        token: EventTag,
    ) -> Op<EventTag> {
        let transfers = if M::MINIMAL { 1 } else { self.events.timing.program_transfers };
        let op = Op::program(self.die_at(to), self.program_ns(to), purpose, token);
        Self::op_at(to, Op { transfers, ..op })
    }
}
