//! Mapping units smaller than a flash page: so many neighbours are programmed as one.
//!
//! ```text
//! writes of units    a   b   c   d │ e   f …      the map says for each where it is
//! flash pages       [a | b | c | d] [e | f |   |  ]
//!                    plane 0           plane 1         whose turn it is, a flash page at a time
//! ```
//!
//! Everything here counts in units; the books know nothing of flash pages but that each has its plane. Units
//! that are moved are packed with others, whatever flash pages they came from.
//!
//! **Source**: what drives since about 2012 do: pages of 8 and 16 KiB, a map of 4 KiB. FEMU and SimpleSSD
//! (`superpage`, I/O units) have the same.
//! **Faithful**: a flash page is programmed once, as a whole.
//! **Simplified**: units that are moved count as safe once they are in the buffer of their new page; drives
//! keep the victim until then, or the buffer over a loss of power.
//! **Ambiguous**: whether the host's units and those that are moved share a flash page; here they do unless
//! `separate_streams`, or several streams of the host, keep their blocks apart.

use super::{Collection, Item, PageMap};
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::{Lpn, Place, PlaneIdx, Ppn};
use crate::flash::media::CollectMedia;
use crate::pool::blocks::Stream;

impl PageMap {
    /// Whether several units make a flash page.
    #[inline]
    pub(super) fn gathers(&self) -> bool {
        self.options.geometry.units() > 1
    }

    /// The plane whose flash page the next unit of `stream` goes on with.
    #[inline]
    pub(super) fn goes_on(&self, stream: Stream) -> Option<PlaneIdx> {
        let plane = self.gathers[self.gathers_at(stream)];
        (self.gathers() && self.blocks.is_gathering(plane, stream)).then_some(plane)
    }

    /// The same for the host.
    #[inline]
    pub(crate) fn host_goes_on(&mut self) -> Option<PlaneIdx> {
        if !self.gathers() {
            return None;
        }
        if self.slc.is_some()
            && let Some(plane) = self.cache_goes_on()
        {
            return Some(plane);
        }
        self.goes_on(Stream::Host)
    }

    /// The next unit of `stream` goes to `plane`.
    #[inline(always)]
    pub(super) fn goes_to<M: FastPath>(&mut self, plane: PlaneIdx, stream: Stream) {
        if M::MINIMAL {
            return;
        }
        let at = self.gathers_at(stream);
        self.gathers[at] = plane;
    }

    /// Those of the host's streams come first.
    #[inline]
    fn gathers_at(&self, stream: Stream) -> usize {
        let moved = stream as usize & 1;
        moved * usize::from(self.blocks.write_streams()) + self.blocks.kind(stream)
    }

    /// How many pages a host page may take away from relocated ones: those that it takes, unless these have
    /// blocks of their own.
    #[inline]
    pub(super) fn cost_on<M: FastPath>(&self, plane: PlaneIdx, opens: bool) -> u32 {
        match self.blocks.cost_of_host_page(opens) {
            1 if !M::MINIMAL => self.pages_taken(plane),
            cost => cost,
        }
    }

    /// How many pages a host page may take of its block: those to the end of its flash page, for the rest may
    /// have to be left empty.
    #[inline]
    pub(super) fn pages_taken(&self, plane: PlaneIdx) -> u32 {
        if !self.gathers() {
            return 1;
        }
        if self.blocks.is_gathering(plane, Stream::Host) {
            return self.blocks.left_to_gather(plane, self.blocks.served());
        }
        self.options.geometry.units()
    }

    /// Whether it is certain that [`PageMap::has_room`] says no of every plane, without asking for each: collections
    /// under way need all pages that are left.
    #[inline]
    pub(crate) fn has_room_nowhere(&self) -> bool {
        if self.on_flash.is_some() || self.apart.is_some() {
            return false;
        }
        let (left, needed) =
            (self.blocks.pages_for_relocation(), self.promised + self.kept_for_next);
        let cost = self.blocks.cost_of_host_page(false);
        let most = cost * self.options.geometry.units();
        left < needed + cost || left < needed + most && left < needed + self.least_taken()
    }

    /// The fewest pages that a page of the host may take, on whichever plane: see [`PageMap::cost_on`]. Only where a
    /// flash page has begun are these fewer than all of one, and where relocated pages stay on their plane, one may
    /// have begun on each.
    fn least_taken(&self) -> u32 {
        let cost = self.blocks.cost_of_host_page(false);
        if cost == 0 || !self.gathers() || self.options.same_die {
            return cost;
        }
        let begun = |plane: &PlaneIdx| self.blocks.is_gathering(*plane, Stream::Host);
        let planes = self.gathers.iter().copied().filter(begun);
        planes.map(|plane| self.pages_taken(plane)).min().unwrap_or(self.options.geometry.units())
    }

    /// Pages that may have to be left empty behind what the host has begun.
    pub(super) fn owed(&self) -> u32 {
        let shared = self.blocks.cost_of_host_page(false);
        self.goes_on(Stream::Host)
            .map_or(0, |plane| shared * self.blocks.left_to_gather(plane, self.blocks.served()))
    }

    /// Whether `at` is in a flash page that is not full yet.
    #[inline]
    pub(crate) fn is_gathered(&self, at: Place) -> bool {
        self.gathers() && self.blocks.is_gathered(at)
    }

    /// Fill the flash page up with nothing that the host has begun on `plane`.
    pub(crate) fn pad(&mut self, plane: PlaneIdx, media: &mut impl CollectMedia) {
        while self.blocks.is_gathering(plane, Stream::Host) {
            let taken = self.blocks.take_page(plane, Stream::Host);
            media.pad(taken.place);
            self.blocks.mark_invalid(taken.place);
            self.close_if_full(taken, Stream::Host, media);
        }
    }

    /// The next unit to move, where it was read with `item`.
    #[inline]
    pub(crate) fn next_beside(&self, collection: &mut Collection, item: Item) -> Option<Item> {
        if !self.gathers() || self.has_moved_enough(collection) {
            return None;
        }
        let next = self.blocks.next_valid(collection.victim, collection.next)?;
        let geometry = &self.options.geometry;
        if geometry.flash_page(next) != geometry.flash_page(item.from.page) {
            return None;
        }
        Some(self.item(collection, next))
    }

    /// How many units are valid from the first that is, `from`, to the end of its flash page. They are read now, and
    /// moved when that has ended: by then their entries of the map are at hand.
    #[inline]
    pub(crate) fn valid_beside(&self, from: Ppn) -> u32 {
        let geometry = &self.options.geometry;
        let units = geometry.units() - geometry.begun_in_flash_page(from);
        let valid = (from.0..from.0 + units).filter(|unit| self.blocks.is_valid(Ppn(*unit)));
        valid.map(|unit| self.prefetch(Lpn(self.reverse[unit as usize]))).count() as u32
    }
}
