//! Page placement: the host's writes, and the pages that relocation allocates.

use super::PageMap;
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::media::CollectMedia;
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
    pub(super) fn write_from(
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
    pub(super) fn plane_with_page<M: FastPath>(
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
