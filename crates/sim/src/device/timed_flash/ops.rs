//! Operations on pages: how long their cells take, where they are, and for whom.

use super::TimedFlash;
use crate::device::event::EventTag;
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::{DieIdx, Place};
use crate::timeline::{Op, Purpose};

impl<M: FastPath> TimedFlash<'_, M> {
    /// How long the cells of `page` are programmed.
    #[inline]
    pub(super) fn program_ns(&self, page: Place) -> u64 {
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

    /// How long the cells of `page` are read.
    #[inline]
    pub(super) fn read_ns(&self, page: Place) -> u64 {
        if let Some((read_ns, _)) = self.flash.slc_ns(page.block) {
            return read_ns;
        }
        self.events.timing.cells.read_page(|| self.flash.geometry.flash_page_in_block(page))
    }

    /// For whom a page is moved.
    #[inline(always)]
    pub(super) fn moves_for(&self) -> Purpose {
        if M::MINIMAL { Purpose::Relocation } else { self.moves }
    }

    /// `op`, and which page it is about, where somebody asks.
    #[inline(always)]
    pub(super) fn on(place: Place, op: Op<EventTag>) -> Op<EventTag> {
        if M::MINIMAL { op } else { op.on(place) }
    }

    #[inline(always)]
    fn die_at(&self, place: Place) -> DieIdx {
        self.flash.geometry.die_at_of::<M>(place)
    }

    /// A read of `from`.
    #[inline]
    pub(super) fn read_op(&self, from: Place, purpose: Purpose, token: EventTag) -> Op<EventTag> {
        let transfers = self.units_read;
        let op = Op::read(self.die_at(from), self.read_ns(from), purpose, token);
        Self::on(from, Op { transfers, ..op })
    }

    /// A program of the whole flash page of `to`.
    #[inline(always)]
    pub(super) fn program_op(&self, to: Place, purpose: Purpose, token: EventTag) -> Op<EventTag> {
        let transfers = if M::MINIMAL { 1 } else { self.events.timing.program_transfers };
        let op = Op::program(self.die_at(to), self.program_ns(to), purpose, token);
        Self::on(to, Op { transfers, ..op })
    }
}
