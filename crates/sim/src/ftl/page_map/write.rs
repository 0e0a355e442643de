//! Page placement: the host's writes, the pages that relocation allocates, writes in the untimed mode, and
//! mapping units smaller than a flash page.

use super::{CollectedPage, Collection, PageMap, UNMAPPED};
use crate::collections::huge;
use crate::flash::fast_path::{AllFeatures, FastPath, Minimal};
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::media::{CollectMedia, Flash};
use crate::pool::blocks::{AllocatedPage, PageStream};

impl PageMap {
    /// Write `page` of `stream` at once, with every collection that is due. If only a part of it is written,
    /// the rest is merged from its old version.
    ///
    /// If no plane can take it, nothing is written and the device becomes read-only.
    #[inline]
    pub(crate) fn write(
        &mut self,
        page: Lpn,
        whole: bool,
        stream: u8,
        media: &mut impl CollectMedia,
    ) {
        self.select_stream(stream);
        self.bypass_cache(true);
        let first = self.choose_plane::<AllFeatures>(page);
        self.write_from(first, page, whole, media);
    }

    /// Like [`PageMap::write`], with `first` as the first plane to try.
    fn write_from(
        &mut self,
        first: PlaneIdx,
        page: Lpn,
        whole: bool,
        media: &mut impl CollectMedia,
    ) {
        let has_room = self.has_free_page::<AllFeatures>(first);
        let plane = if has_room { Some(first) } else { self.plane_with_space(first, media) };
        let Some(plane) = plane else { return self.end_of_life() };
        self.write_to(plane, page, whole, media);
        if self.wants_collection::<AllFeatures>(plane) {
            self.make_free_page(plane, media);
        }
    }

    /// Return the plane that the host's `page` should go to.
    #[inline]
    pub(crate) fn choose_plane<M: FastPath>(&mut self, page: Lpn) -> PlaneIdx {
        if !M::MINIMAL
            && let Some(plane) = self.host_plane_in_progress()
        {
            return plane;
        }
        self.options.allocator.choose(&self.blocks, page)
    }

    /// Return whether a host page may go to `plane` without collecting first.
    #[inline]
    pub(crate) fn has_free_page<M: FastPath>(&mut self, plane: PlaneIdx) -> bool {
        if !M::MINIMAL && self.slc.is_some() {
            // A partly filled flash page outside the cache is filled first. Otherwise it would stay so, and
            // its plane would be chosen for all further units.
            let has_open_page = self.has_open_page_past_cache(plane);
            if has_open_page && self.has_free_page_past_cache::<M>(plane) || self.fits_cache(plane)
            {
                return true;
            }
        }
        self.has_free_page_past_cache::<M>(plane)
    }

    /// Like [`PageMap::has_free_page`], for a page that bypasses the SLC cache, if there is one.
    #[inline]
    fn has_free_page_past_cache<M: FastPath>(&self, plane: PlaneIdx) -> bool {
        let opens = !self.blocks.has_open_page(plane, PageStream::Host);
        if opens && self.blocks.free_in(plane) <= self.reserved_free::<M>(plane) {
            return false;
        }
        if !M::MINIMAL && self.on_flash.is_some() {
            return self.has_space_with_map(opens);
        }
        if !M::MINIMAL && self.host_streams.is_some() {
            return self.fits_host_page(plane, opens);
        }
        let needed =
            self.reserved + self.reserved_for_next + self.relocation_pages_used::<M>(plane, opens);
        self.blocks.pages_for_relocation() >= needed
    }

    /// Write `page` to `plane`, which has space. Returns false if programs fail until no plane has a page
    /// left: then nothing is written, and the device becomes read-only.
    #[inline]
    pub(crate) fn write_to<D: CollectMedia>(
        &mut self,
        mut plane: PlaneIdx,
        page: Lpn,
        whole: bool,
        media: &mut D,
    ) -> bool {
        let minimal = D::Path::MINIMAL;
        if !minimal && self.on_flash.is_some() {
            self.load_entry(page, true, media);
            // Mapping pages that failed to program may have taken the last free page.
            if !self.blocks.has_page(plane, PageStream::Host) {
                match self.plane_for::<AllFeatures>(None, PageStream::Host) {
                    Some(other) => plane = other,
                    None => return self.refuse(),
                }
            }
        }
        self.set_last_plane::<D::Path>(plane, PageStream::Host);
        let mut to = self.blocks.take_page_of::<D::Path>(plane, PageStream::Host);
        if !minimal && self.slc.is_some() && self.blocks.is_cache(to.address.block) {
            media.set_slc(to.address.block);
        }
        let old = self.lookup(page);
        media.set_content(Some(page), || self.blocks.kind(PageStream::Host) as u8);
        while !media.program(to.address, if whole { None } else { old }) {
            match self.replacement_page(to, PageStream::Host, media) {
                Some(other) => to = other,
                None => return self.refuse(),
            }
        }
        if let Some(old) = old {
            self.invalidate(old);
        }
        self.map_page(page, to.address);
        if !minimal && let Some(flash_map) = &mut self.on_flash {
            flash_map.changed(page);
        }
        self.close_if_full(to, PageStream::Host, media);
        true
    }

    /// Make the device read-only.
    #[cold]
    fn refuse(&mut self) -> bool {
        self.end_of_life();
        false
    }

    /// Return whether the host has opened the last block of `plane` that it may.
    #[inline]
    pub(crate) fn wants_collection<M: FastPath>(&self, plane: PlaneIdx) -> bool {
        self.blocks.free_in(plane) <= self.reserved_free::<M>(plane)
    }

    /// Return whether `plane` has fewer than `goal` free blocks.
    pub(crate) fn has_fewer_free(&self, plane: PlaneIdx, goal: usize) -> bool {
        self.blocks.free_in(plane) < goal + self.reserved_for_cache(plane)
    }

    /// Return the planes to try for a host page: `first` first, then all.
    pub(crate) fn planes_from(&self, first: PlaneIdx) -> impl Iterator<Item = PlaneIdx> + use<> {
        [first].into_iter().chain((0..self.options.geometry.shape().planes).map(PlaneIdx))
    }

    /// Return a plane that has space, or gains some by collecting: `first` itself, or the first other one. A
    /// plane on which nothing can be gained loses its turn (OFC §IV.C: the round robin is relaxed if planes
    /// differ).
    #[cold]
    fn plane_with_space(
        &mut self,
        first: PlaneIdx,
        media: &mut impl CollectMedia,
    ) -> Option<PlaneIdx> {
        loop {
            let mut planes = self.planes_from(first);
            let fitting = planes.find(|plane| {
                self.has_free_page::<AllFeatures>(*plane) || self.make_free_page(*plane, media)
            });
            if fitting.is_some() {
                self.reset_urgency();
                return fitting;
            }
            if !self.overrule_policy() {
                return None;
            }
        }
    }

    /// Return a plane that has a page of `stream`: `home` if pages stay on their plane, or the next
    /// one, round-robin.
    #[inline(always)]
    pub(in crate::ftl) fn plane_for<M: FastPath>(
        &mut self,
        home: Option<PlaneIdx>,
        stream: PageStream,
    ) -> Option<PlaneIdx> {
        if M::MINIMAL {
            return self.plane_with_page::<M>(home, stream);
        }
        if self.on_flash.is_some()
            && !self.may_open(stream)
            && let Some(plane) = self.plane_with_open_page(stream)
        {
            return Some(plane);
        }
        let plane = self.plane_with_page::<M>(home, stream)?;
        let Some(host_streams) = &self.host_streams else { return Some(plane) };
        if self.blocks.has_open_page(plane, stream) {
            return Some(plane);
        }
        let plane = self.prefer_open_page(host_streams, plane, stream);
        self.set_last_plane::<M>(plane, stream);
        Some(plane)
    }

    /// Like [`PageMap::plane_for`], without regard to a map on flash.
    #[inline(always)]
    fn plane_with_page<M: FastPath>(
        &mut self,
        home: Option<PlaneIdx>,
        stream: PageStream,
    ) -> Option<PlaneIdx> {
        match home {
            Some(home) if self.options.same_die && self.blocks.has_page(home, stream) => {
                if !M::MINIMAL && self.host_streams.is_some() {
                    self.set_last_plane::<M>(home, stream);
                }
                Some(home)
            }
            _ if !M::MINIMAL && self.packs_units() => {
                let going_on = self.plane_in_progress(stream);
                if going_on.is_some() {
                    return going_on;
                }
                let plane = self.options.allocator.choose_with_page(&self.blocks, stream)?;
                self.set_last_plane::<M>(plane, stream);
                Some(plane)
            }
            _ => self.options.allocator.choose_with_page(&self.blocks, stream),
        }
    }

    /// Close the block of the page that was just taken, if that page filled it.
    #[inline(always)]
    pub(in crate::ftl) fn close_if_full(
        &mut self,
        allocated: AllocatedPage,
        stream: PageStream,
        media: &mut impl CollectMedia,
    ) {
        if allocated.is_last {
            self.close(allocated.address, stream, media);
        }
    }

    /// Close the block with the last page `last`.
    #[inline(never)]
    fn close(&mut self, last: PageAddress, stream: PageStream, media: &mut impl CollectMedia) {
        let PageAddress { block, plane, .. } = last;
        self.blocks.close(block, stream);
        if let Some(page) = self.metadata_page(plane, block)
            && !media.program_metadata(page)
        {
            self.program_failed(block, media);
        }
        // The block may be chosen only now that its last page is accounted for.
        self.register_closed(last, stream);
    }

    /// Return the metadata page at the end of `block`, if the geometry has one. Blocks of an SLC cache end
    /// before it and have none.
    #[inline]
    pub(in crate::ftl) fn metadata_page(
        &self,
        plane: PlaneIdx,
        block: BlockIdx,
    ) -> Option<PageAddress> {
        let geometry = &self.options.geometry;
        let page = Ppn(geometry.first_page(block).0 + geometry.data_pages());
        let has_one = geometry.shape().metadata_pages > 0 && !self.blocks.is_cache(block);
        has_one.then_some(PageAddress { page, block, plane })
    }
}

// The fast path of the untimed mode for devices without a map on flash and without failing pages.
//
// It makes the same decisions as the code above and `gc.rs`, page by page; but a batch of host pages, or
// all valid pages of a victim, is applied directly to the flat arrays. Everything out of the ordinary, such
// as opening a block, is left to those files. A test runs both on the same writes.

impl PageMap {
    /// Return whether the fast path applies: no map on flash, no retirement, no separate streams.
    #[inline]
    pub(super) fn has_fast_path(&self) -> bool {
        self.on_flash.is_none() && self.retirement.is_none() && self.host_streams.is_none()
    }

    /// Return whether the FTL has only map, accounting and policies: see
    /// [`crate::flash::fast_path`].
    pub(crate) fn is_minimal(&self) -> bool {
        self.has_fast_path() && self.slc.is_none() && self.scrubs.is_none() && !self.packs_units()
    }

    /// Write pages, each in whole or in part and with its stream, as [`PageMap::write`] does.
    pub(crate) fn write_all(
        &mut self,
        pages: impl Iterator<Item = (Lpn, bool, u8)>,
        flash: &mut Flash,
    ) {
        if !self.has_fast_path() || flash.unworn().is_none() {
            return pages.for_each(|(page, whole, stream)| {
                let stream = self.stream_of(page, stream);
                self.write(page, whole, stream, flash);
            });
        }
        if self.packs_units() {
            self.write_fast::<AllFeatures>(pages, flash);
        } else {
            self.write_fast::<Minimal>(pages, flash);
        }
    }

    #[inline(always)]
    fn write_fast<M: FastPath>(
        &mut self,
        pages: impl Iterator<Item = (Lpn, bool, u8)>,
        flash: &mut Flash,
    ) {
        let mut written = 0;
        for (page, whole, _) in pages {
            let plane = self.choose_plane::<M>(page);
            let ordinary = self.blocks.has_open_page(plane, PageStream::Host)
                && !self.wants_collection::<M>(plane)
                && self.reserved == 0;
            if !ordinary {
                self.write_from(plane, page, whole, flash);
                continue;
            }
            self.set_last_plane::<M>(plane, PageStream::Host);
            let allocated = self.blocks.take_open_page(plane, PageStream::Host);
            let to = allocated.address;
            let old = std::mem::replace(&mut self.map[page.0 as usize], to.page.0);
            self.reverse[to.page.0 as usize] = page.0;
            if old != UNMAPPED {
                let old = self.options.geometry.address_of(Ppn(old));
                if !whole {
                    flash.read_to_modify(old);
                }
                self.invalidate(old);
            }
            flash.nand.program(to);
            written += 1;
            self.close_if_full(allocated, PageStream::Host, flash);
        }
        flash.counters.pages_programmed += written;
        flash.counters.host_pages_written += written;
    }

    /// Move all valid pages of a victim; returns their number.
    pub(super) fn move_fast(&mut self, collection: &Collection, flash: &mut Flash) -> u32 {
        if self.packs_units() {
            self.move_fast_of::<AllFeatures>(collection, flash)
        } else {
            self.move_fast_of::<Minimal>(collection, flash)
        }
    }

    #[inline(always)]
    fn move_fast_of<M: FastPath>(&mut self, collection: &Collection, flash: &mut Flash) -> u32 {
        let Collection { plane: home, victim, stream, .. } = *collection;
        let mut pages = std::mem::take(&mut self.moving);
        let valid = usize::from(self.blocks.valid_count(victim));
        pages.resize(valid, Lpn(0));
        let mut slots = pages.iter_mut();
        let mut last = None;
        self.blocks.drain_valid(victim, |page| {
            let Some(slot) = slots.next() else { return };
            *slot = Lpn(self.reverse[page.0 as usize]);
            huge::prefetch(&self.map, slot.0 as usize);
            last = Some(page);
        });
        assert!(slots.next().is_none(), "{victim:?} has as many valid pages as were counted");
        if let Some(page) = last {
            // The last page is the highest: if it was programmed, so were the others.
            flash.nand.read(PageAddress { page, block: victim, plane: home });
        }
        for page in &pages {
            let Some(plane) = self.plane_with_page::<M>(Some(home), stream) else {
                // The page stays where it is, and so does its block.
                let from = self.options.geometry.address_of(Ppn(self.map[page.0 as usize]));
                self.blocks.mark_valid(from);
                continue;
            };
            if !self.blocks.has_open_page(plane, stream) {
                self.blocks.open_another(plane, stream);
            }
            let allocated = self.blocks.take_open_page(plane, stream);
            let to = allocated.address;
            self.map[page.0 as usize] = to.page.0;
            self.reverse[to.page.0 as usize] = page.0;
            flash.nand.program(to);
            self.close_if_full(allocated, stream, flash);
        }
        let moved = pages.len() as u32;
        self.moving = pages;
        flash.counters.pages_read += u64::from(moved);
        flash.counters.pages_programmed += u64::from(moved);
        flash.counters.pages_relocated += u64::from(moved);
        moved
    }
}

// Mapping units (indirection units) smaller than a flash page: several neighbours are programmed as one flash page.
//
// ```text
// writes of units    a   b   c   d │ e   f …      the map stores the address of each unit
// flash pages       [a | b | c | d] [e | f |   |  ]
//                    plane 0           plane 1         the next plane, one flash page at a time
// ```
//
// Everything here counts in units; the accounting of flash pages is only the plane of each. Units that are
// moved are packed with others, whatever flash pages they came from.
//
// **Source**: what drives since about 2012 do: pages of 8 and 16 KiB, a map of 4 KiB. FEMU and SimpleSSD
// (`superpage`, I/O units) have the same.
// **Faithful**: a flash page is programmed once, as a whole.
// **Simplified**: units that are moved count as safe once they are in the buffer of their new page; drives
// keep the victim until then, or preserve the buffer over a power loss.
// **Ambiguous**: whether the host's units and those that are moved share a flash page; here they do unless
// `separate_streams`, or several streams of the host, keep their blocks apart.

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
    fn set_last_plane<M: FastPath>(&mut self, plane: PlaneIdx, stream: PageStream) {
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
    fn relocation_pages_used<M: FastPath>(&self, plane: PlaneIdx, opens: bool) -> u32 {
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
