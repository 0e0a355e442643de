//! Mapping units (indirection units) smaller than a flash page: several neighbours are programmed as one flash page.
//!
//! ```text
//! writes of units    a   b   c   d │ e   f …      the map stores the address of each unit
//! flash pages       [a | b | c | d] [e | f |   |  ]
//!                    plane 0           plane 1         the next plane, one flash page at a time
//! ```
//!
//! Everything here counts in units; the accounting of flash pages is only the plane of each. Units that are
//! moved are packed with others, whatever flash pages they came from.
//!
//! **Source**: what drives since about 2012 do: pages of 8 and 16 KiB, a map of 4 KiB. FEMU and SimpleSSD
//! (`superpage`, I/O units) have the same.
//! **Faithful**: a flash page is programmed once, as a whole.
//! **Simplified**: units that are moved count as safe once they are in the buffer of their new page; drives
//! keep the victim until then, or preserve the buffer over a power loss.
//! **Ambiguous**: whether the host's units and those that are moved share a flash page; here they do unless
//! `separate_streams`, or several streams of the host, keep their blocks apart.

use super::{CollectedPage, Collection, PageMap};
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::{Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::media::CollectMedia;
use crate::pool::blocks::PageStream;

impl PageMap {
    /// Return whether several units make a flash page.
    #[inline]
    pub(super) fn packs_units(&self) -> bool {
        self.options.geometry.units() > 1
    }

    /// Return the plane of the partly filled flash page that takes the next unit of `stream`, if there is
    /// one.
    #[inline]
    pub(super) fn plane_in_progress(&self, stream: PageStream) -> Option<PlaneIdx> {
        let plane = self.last_plane[self.last_plane_index(stream)];
        (self.packs_units() && self.blocks.has_open_flash_page(plane, stream)).then_some(plane)
    }

    /// Like [`PageMap::plane_in_progress`], for the host.
    #[inline]
    pub(crate) fn host_plane_in_progress(&mut self) -> Option<PlaneIdx> {
        if !self.packs_units() {
            return None;
        }
        if self.slc.is_some()
            && let Some(plane) = self.cache_plane_in_progress()
        {
            return Some(plane);
        }
        self.plane_in_progress(PageStream::Host)
    }

    /// Record that the next unit of `stream` goes to `plane`.
    #[inline(always)]
    pub(super) fn set_last_plane<M: FastPath>(&mut self, plane: PlaneIdx, stream: PageStream) {
        if M::MINIMAL {
            return;
        }
        let at = self.last_plane_index(stream);
        self.last_plane[at] = plane;
    }

    /// Return the index of `stream` in `last_plane`; the host's streams come first.
    #[inline]
    fn last_plane_index(&self, stream: PageStream) -> usize {
        let moved = stream as usize & 1;
        moved * usize::from(self.blocks.write_streams()) + self.blocks.kind(stream)
    }

    /// Return how many pages for relocation a host page may consume: the pages that it takes, or none if
    /// relocated pages have blocks of their own.
    #[inline]
    pub(super) fn relocation_pages_used<M: FastPath>(&self, plane: PlaneIdx, opens: bool) -> u32 {
        match self.blocks.cost_of_host_page(opens) {
            1 if !M::MINIMAL => self.pages_for_host_page(plane),
            cost => cost,
        }
    }

    /// Return how many pages of its block a host page may take: those to the end of its flash page, since the
    /// rest may have to stay empty.
    #[inline]
    pub(super) fn pages_for_host_page(&self, plane: PlaneIdx) -> u32 {
        if !self.packs_units() {
            return 1;
        }
        if self.blocks.has_open_flash_page(plane, PageStream::Host) {
            return self.blocks.free_in_flash_page(plane, self.blocks.selected_role());
        }
        self.options.geometry.units()
    }

    /// Return whether [`PageMap::has_free_page`] is certainly false for every plane: collections
    /// under way need all pages that are left. This saves one check per plane.
    #[inline]
    pub(crate) fn no_plane_has_space(&self) -> bool {
        if self.on_flash.is_some() || self.host_streams.is_some() {
            return false;
        }
        let (left, needed) =
            (self.blocks.pages_for_relocation(), self.reserved + self.reserved_for_next);
        let cost = self.blocks.cost_of_host_page(false);
        let max_needed = cost * self.options.geometry.units();
        left < needed + cost
            || left < needed + max_needed && left < needed + self.min_pages_for_host_page()
    }

    /// Return whether [`PageMap::has_free_page`] is certainly false for `plane`, which has no open page and
    /// may not open a block. `may_open` is [`PageMap::may_open_any`]; while it is the same, the result is
    /// true until [`PageMap::supply_changes`] grows.
    #[inline]
    pub(crate) fn lacks_block(&self, plane: PlaneIdx, may_open: bool) -> bool {
        self.slc.is_none()
            && self.host_streams.is_none()
            && !self.blocks.has_open_page(plane, PageStream::Host)
            && (!may_open || self.blocks.free_in(plane) <= self.options.reserved_blocks)
    }

    /// Return whether collections under way leave enough pages to open a block for the host.
    #[inline]
    pub(crate) fn may_open_any(&self) -> bool {
        let needed = self.reserved + self.reserved_for_next + self.blocks.cost_of_host_page(true);
        self.on_flash.is_some() || self.blocks.pages_for_relocation() >= needed
    }

    /// Return whether a collection may begin. False only if it certainly may not on any plane:
    /// relocated pages have blocks of their own, and too few pages remain for collections under way
    /// and another one.
    #[inline]
    pub(crate) fn may_begin_collection(&self) -> bool {
        self.is_urgent()
            || self.slc.is_some()
            || self.on_flash.is_some()
            || self.host_streams.is_some()
            || self.blocks.cost_of_host_page(false) > 0
            || self.blocks.pages_for_relocation() >= self.reserved + self.pages_for_any_victim()
    }

    /// Return how often a block was freed or opened.
    #[inline]
    pub(crate) fn supply_changes(&self) -> u64 {
        self.blocks.supply_changes()
    }

    /// Return the fewest pages that a host page may take on any plane; see [`PageMap::relocation_pages_used`]. They are
    /// fewer than a whole flash page only where one is partly filled. If relocated pages stay on their plane,
    /// each plane may have a partly filled one.
    fn min_pages_for_host_page(&self) -> u32 {
        let cost = self.blocks.cost_of_host_page(false);
        if cost == 0 || !self.packs_units() || self.options.same_die {
            return cost;
        }
        let begun = |plane: &PlaneIdx| self.blocks.has_open_flash_page(*plane, PageStream::Host);
        let planes = self.last_plane.iter().copied().filter(begun);
        planes
            .map(|plane| self.pages_for_host_page(plane))
            .min()
            .unwrap_or(self.options.geometry.units())
    }

    /// Return the pages that may have to stay empty after the host's last unit.
    pub(super) fn padding_reserve(&self) -> u32 {
        let shared = self.blocks.cost_of_host_page(false);
        self.plane_in_progress(PageStream::Host).map_or(0, |plane| {
            shared * self.blocks.free_in_flash_page(plane, self.blocks.selected_role())
        })
    }

    /// Return whether `at` is in a flash page that is not full yet.
    #[inline]
    pub(crate) fn is_in_open_flash_page(&self, at: PageAddress) -> bool {
        self.packs_units() && self.blocks.is_in_open_flash_page(at)
    }

    /// Pad the host's partly filled flash page on `plane`.
    pub(crate) fn pad(&mut self, plane: PlaneIdx, media: &mut impl CollectMedia) {
        while self.blocks.has_open_flash_page(plane, PageStream::Host) {
            let slot = self.blocks.take_page(plane, PageStream::Host);
            media.pad(slot.address);
            self.blocks.mark_invalid(slot.address);
            self.close_if_full(slot, PageStream::Host, media);
        }
    }

    /// Return the next unit to move, if it was read together with `item`.
    #[inline]
    pub(crate) fn next_in_flash_page(
        &self,
        collection: &mut Collection,
        item: CollectedPage,
    ) -> Option<CollectedPage> {
        if !self.packs_units() || self.has_reached_load(collection) {
            return None;
        }
        let next = self.blocks.next_valid(collection.victim, collection.next)?;
        let geometry = &self.options.geometry;
        if geometry.flash_page(next) != geometry.flash_page(item.from.page) {
            return None;
        }
        Some(self.item(collection, next))
    }

    /// Return the number of valid units from `from`, the first valid one, to the end of its flash page. They
    /// are read now and moved when that read has ended; their map entries are prefetched.
    #[inline]
    pub(crate) fn valid_in_flash_page(&self, from: Ppn) -> u32 {
        let geometry = &self.options.geometry;
        let units = geometry.units() - geometry.begun_in_flash_page(from);
        let valid = (from.0..from.0 + units).filter(|unit| self.blocks.is_valid(Ppn(*unit)));
        valid.map(|unit| self.prefetch(Lpn(self.reverse[unit as usize]))).count() as u32
    }
}
