//! Garbage collection: a victim is chosen, its valid pages move, it is erased. The timed mode does this in
//! steps, and the caller decides when each is taken; the untimed mode does it at once.

use std::hint::cold_path;

use super::{PageMap, RelocationLoad};
use crate::collections::huge;
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::media::CollectMedia;
use crate::ftl::page_map::dftl::MapOnFlash;
use crate::pool::blocks::{AllocatedPage, PageStream};

/// A block being collected. The caller decides when its next page moves.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Collection {
    pub(crate) plane: PlaneIdx,
    pub(crate) victim: BlockIdx,
    pub(super) next: Ppn,
    pub(super) moved: u32,
    /// The victim is moved because of its reads or its age.
    pub(crate) scrubs: bool,
    /// The destination of its pages.
    pub(super) stream: PageStream,
    /// Reserved pages: those that it may still have to move.
    pub(super) reserved: u32,
    /// Reserved mapping pages: those that it may still have to program.
    pub(super) reserved_mapping: u32,
}

/// A page to move: a valid one, or one that is moved as an artificial load (figure 5(a)).
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Item")]
pub(crate) struct CollectedPage {
    pub(crate) from: PageAddress,
    /// Its logical page, if it is valid.
    page: Option<Lpn>,
}

impl PageMap {
    /// Choose a victim of `plane` and begin its collection. `None` if there is nothing to gain.
    pub(crate) fn begin_collection(
        &mut self,
        plane: PlaneIdx,
        media: &mut impl CollectMedia,
    ) -> Option<Collection> {
        let of_map = |flash_map: &MapOnFlash| flash_map.has_reclaimable(plane, &self.blocks);
        let of_map = self.on_flash.as_deref().is_some_and(of_map);
        let is_required = of_map || self.has_block_to_fold(plane) || self.has_scrub_waiting(plane);
        if !self.blocks.has_reclaimable(plane) && !is_required {
            return None;
        }
        let (victim, stream) = self.choose_victim(plane, media)?;
        self.blocks.begin_collection(victim);
        // The reverse map of the victim is read next: prefetch its cache lines, 16 entries each.
        let first = self.options.geometry.first_page(victim).0 as usize;
        for line in (0..self.options.geometry.data_pages() as usize).step_by(16) {
            huge::prefetch(&self.reverse, first + line);
        }
        let scrubs = self.is_scrub_victim(plane, victim);
        if scrubs {
            media.count_scrubbed();
        }
        media.begin_collection(victim, self.metadata_page(plane, victim));
        self.since_static[plane.0 as usize] += 1;
        let next = self.options.geometry.first_page(victim);
        let mut collection = Collection {
            plane,
            victim,
            next,
            moved: 0,
            scrubs,
            stream,
            reserved: 0,
            reserved_mapping: 0,
        };
        self.reserve(&mut collection);
        Some(collection)
    }

    /// Return the next victim of `plane`, and the destination of its pages. A collection is begun only if it
    /// can be finished: a victim holds at most a block of pages.
    fn choose_victim(
        &mut self,
        plane: PlaneIdx,
        media: &mut impl CollectMedia,
    ) -> Option<(BlockIdx, PageStream)> {
        if self.is_urgent() {
            return self.urgent_victim(plane);
        }
        let max_pages = self.pages_for_any_victim();
        if self.on_flash.is_some() {
            if let Some(victim) = self.mapping_victim(plane) {
                return Some((victim, PageStream::Mapping));
            }
            if !self.has_space_to_collect() {
                return None;
            }
        } else if let Some(host_streams) = &self.host_streams {
            // Separate streams are counted in blocks.
            let block = self.options.geometry.data_pages();
            if !self.fits_streams(host_streams, None, Some((None, block))) {
                return None;
            }
        } else if self.blocks.pages_for_relocation()
            < self.reserved + max_pages + self.padding_reserve()
        {
            self.reserve_for_next();
            return None;
        }
        if let Some(block) = self.fold_if_due(plane) {
            return Some((block, PageStream::Relocated));
        }
        self.stop_overruling();
        if let Some(victim) = self.scrub_or_levelling_victim(plane, media) {
            let of_map =
                self.on_flash.as_mut().is_some_and(|flash_map| flash_map.remove(plane, victim));
            if !of_map {
                self.options.victims.remove(plane, victim, &self.blocks);
            }
            return Some((
                victim,
                if of_map { PageStream::Mapping } else { PageStream::Relocated },
            ));
        }
        if self.is_overruled() {
            let victim = self.blocks.emptiest(plane)?;
            self.options.victims.remove(plane, victim, &self.blocks);
            return Some((victim, PageStream::Relocated));
        }
        let victim = self.options.victims.choose(plane, &self.blocks)?;
        Some((victim, PageStream::Relocated))
    }

    /// Note that `collection` moved `page`.
    #[inline]
    fn moved(&mut self, collection: &Collection, page: Lpn) {
        if let (Some(flash_map), PageStream::Relocated) = (&mut self.on_flash, collection.stream) {
            flash_map.moved(collection.plane, page);
        }
    }

    /// Drop the valid pages that `collection` does not move; see [`RelocationLoad::Exactly`].
    fn drop_surplus(&mut self, collection: &Collection, media: &mut impl CollectMedia) {
        let (RelocationLoad::Exactly(number), PageStream::Relocated) =
            (self.options.load, collection.stream)
        else {
            return;
        };
        let left = number.saturating_sub(collection.moved) as usize;
        let mut pages = std::mem::take(&mut self.scratch);
        pages.clear();
        pages.extend(self.blocks.valid_pages(collection.victim).skip(left));
        let Collection { victim: block, plane, .. } = *collection;
        for page in &pages {
            self.blocks.mark_invalid(PageAddress { page: *page, block, plane });
            self.forget(Lpn(self.reverse[page.0 as usize]));
        }
        media.record_lost_pages(pages.len() as u32);
        self.scratch = pages;
    }

    /// Return the next page of the victim to move; `None` once all valid pages have moved.
    #[inline(always)]
    pub(crate) fn next_item(&self, collection: &mut Collection) -> Option<CollectedPage> {
        if self.has_reached_load(collection) {
            cold_path();
            return None;
        }
        let Collection { plane, victim: block, next, moved, stream, .. } = *collection;
        if let Some(page) = self.blocks.next_valid(block, next) {
            return Some(self.item(collection, page));
        }
        if stream != PageStream::Relocated || moved >= self.load() {
            return None;
        }
        cold_path();
        collection.moved += 1;
        let from = PageAddress { page: self.blocks.first_usable(block), block, plane };
        Some(CollectedPage { from, page: None })
    }

    /// Return the valid `page`, which is moved next.
    #[inline(always)]
    pub(super) fn item(&self, collection: &mut Collection, page: Ppn) -> CollectedPage {
        collection.next = Ppn(page.0 + 1);
        collection.moved += 1;
        let moves = Lpn(self.reverse[page.0 as usize]);
        // Its map entry changes once the page has been read: prefetch it.
        self.prefetch(moves);
        let from = PageAddress { page, block: collection.victim, plane: collection.plane };
        CollectedPage { from, page: Some(moves) }
    }

    /// Move a page. If the host overwrote it after it was chosen, the read was unnecessary.
    #[inline(always)]
    pub(crate) fn relocate<D: CollectMedia>(
        &mut self,
        collection: &mut Collection,
        item: CollectedPage,
        media: &mut D,
    ) {
        let CollectedPage { from, page } = item;
        self.use_reserve::<D::Path>(collection, 1);
        if page.is_some() && !self.blocks.is_valid(from.page) {
            media.read_unneeded(from);
            return;
        }
        if !D::Path::MINIMAL {
            self.select_stream_of(from.block);
        }
        media.set_content(page, || self.blocks.kind(collection.stream) as u8);
        let Some(to) = self.copy(from, collection.stream, media) else { return };
        if let Some(page) = page {
            self.blocks.mark_invalid(from);
            self.map_page(page, to.address);
            if !D::Path::MINIMAL {
                self.moved(collection, page);
            }
        } else {
            self.blocks.mark_invalid(to.address);
        }
        self.close_if_full(to, collection.stream, media);
    }

    /// Copy `from` to a page of `stream`; returns the new page. `None` if no plane can take a page: the page
    /// stays where it is.
    #[inline(always)]
    fn copy<D: CollectMedia>(
        &mut self,
        from: PageAddress,
        stream: PageStream,
        media: &mut D,
    ) -> Option<AllocatedPage> {
        let plane = self.plane_for::<D::Path>(Some(from.plane), stream)?;
        let mut to = self.blocks.take_page_of::<D::Path>(plane, stream);
        if !media.relocate(from, to.address) {
            to = self.retry_copy(from, to, stream, media)?;
        }
        Some(to)
    }

    /// Retry after programming `to` failed, with other pages until one is programmed.
    #[cold]
    #[inline(never)]
    fn retry_copy(
        &mut self,
        from: PageAddress,
        mut to: AllocatedPage,
        stream: PageStream,
        media: &mut impl CollectMedia,
    ) -> Option<AllocatedPage> {
        loop {
            to = self.replacement_page(to, stream, media)?;
            if media.relocate(from, to.address) {
                return Some(to);
            }
        }
    }

    /// Erase the victim, which has no valid page left.
    pub(crate) fn finish(&mut self, collection: &Collection, media: &mut impl CollectMedia) {
        self.reserved -= collection.reserved;
        self.reserved_for_next *= u32::from(self.reserved > 0);
        self.release_in_stream(collection.victim, collection.reserved);
        self.drop_surplus(collection, media);
        if self.on_flash.is_some() {
            self.write_moved(collection.plane, collection.reserved_mapping, media);
        }
        // Pages that could not move for lack of free pages stay, and so does their block.
        if self.blocks.valid_count(collection.victim) > 0 {
            return self.end_of_life();
        }
        let erased = media.erase(collection.victim);
        self.remove_scrub(collection.plane, collection.victim);
        self.reuse(collection.plane, collection.victim, erased, media);
    }

    /// Collect blocks of `plane` until it has one more than its reserve. Returns false if there is nothing to
    /// gain.
    #[cold]
    pub(super) fn make_free_page(
        &mut self,
        plane: PlaneIdx,
        media: &mut impl CollectMedia,
    ) -> bool {
        // After two passes a policy has considered every block of the plane. If nothing was gained by then,
        // the moved pages came back to this plane.
        for _ in 0..self.max_attempts(self.options.geometry.shape().blocks_per_plane.into()) {
            if self.has_freed_page(plane) {
                return true;
            }
            let Some(collection) = self.begin_collection(plane, media) else {
                return false;
            };
            self.collect_rest(collection, media);
        }
        self.has_freed_page(plane)
    }

    fn has_freed_page(&mut self, plane: PlaneIdx) -> bool {
        !self.wants_collection::<AllFeatures>(plane)
            && (self.on_flash.is_none() || self.has_free_page::<AllFeatures>(plane))
    }

    /// Move all valid pages of a victim, page by page; returns their number.
    fn move_all(&mut self, collection: &Collection, media: &mut impl CollectMedia) -> u32 {
        let Collection { plane, victim: block, stream, .. } = *collection;
        self.select_stream_of(block);
        let mut pages = std::mem::take(&mut self.scratch);
        pages.clear();
        self.blocks.drain_valid(block, |page| pages.push(page));
        for page in &pages {
            let from = PageAddress { page: *page, block, plane };
            let Some(to) = self.copy(from, stream, media) else {
                self.blocks.mark_valid(from);
                continue;
            };
            let page = Lpn(self.reverse[page.0 as usize]);
            self.map_page(page, to.address);
            self.moved(collection, page);
            self.close_if_full(to, stream, media);
        }
        let moved = pages.len() as u32;
        self.scratch = pages;
        moved
    }

    /// Move the rest of a victim and erase it, at once. Nothing else happens during this, so all its
    /// pages are marked invalid first.
    pub(crate) fn collect_rest(
        &mut self,
        mut collection: Collection,
        media: &mut impl CollectMedia,
    ) {
        let block = collection.victim;
        self.drop_surplus(&collection, media);
        collection.next = Ppn(self.options.geometry.first_page(block).0
            + self.options.geometry.shape().pages_per_block);
        let moved = match media.unworn() {
            Some(flash) if self.has_fast_path() => self.move_fast(&collection, flash),
            _ => self.move_all(&collection, media),
        };
        collection.moved += moved;
        self.use_reserve::<AllFeatures>(&mut collection, moved);
        while let Some(item) = self.next_item(&mut collection) {
            self.relocate(&mut collection, item, media);
        }
        self.finish(&collection, media);
    }
}
