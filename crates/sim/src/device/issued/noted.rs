//! What is programmed is written down, where somebody wants to know it when power is cut.

use super::Issued;
use crate::flash::contents::Origin;
use crate::flash::geometry::Place;
use crate::flash::make::Make;

impl<M: Make> Issued<'_, M> {
    /// What was decided about `to` is kept, where somebody wants to know it when power is cut. Returns
    /// the record of its program, unless it is one of several units of a flash page.
    #[inline]
    pub(super) fn note(&mut self, to: Place, origin: Option<Origin>, programmed: bool) -> u32 {
        if M::PLAIN || self.events.contents.is_none() {
            0
        } else {
            self.note_down(to, origin, programmed)
        }
    }

    #[inline(never)]
    fn note_down(&mut self, to: Place, origin: Option<Origin>, programmed: bool) -> u32 {
        let Some(contents) = &mut self.events.contents else { return 0 };
        let origin = origin.or(match self.target.account {
            Some(account) => Some(Origin::Account(account.number())),
            None => Some(Origin::Cache),
        });
        let page = self.page.map(|page| page.0).zip(origin);
        contents.decide(to, page, self.role, programmed);
        if self.gather.is_some() { 0 } else { contents.program(to) }
    }

    /// [`Issued::note`] of a page of metadata, which is a flash page of its own.
    pub(super) fn note_metadata(&mut self, to: Place, programmed: bool) -> u32 {
        let units = self.flash.geometry.units();
        let Some(contents) = &mut self.events.contents else { return 0 };
        (0..units).for_each(|unit| contents.decide(to.behind(unit), None, 0, programmed));
        contents.program(to)
    }
}
