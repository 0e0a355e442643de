//! Garbage collection: a victim is chosen, its valid pages move, it is erased. The timed mode does this in
//! steps, and the caller decides when each is taken; the untimed mode does it at once.

use std::collections::VecDeque;
use std::hint::cold_path;

use super::dftl::MapOnFlash;
use super::{PageMap, RelocationLoad};
use crate::collections::huge;
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::levelling::STATIC_INTERVAL;
use crate::flash::media::CollectMedia;
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
    reserved_mapping: u32,
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

// Reclamation by the page map when no plane has free space, before the device is full.
//
// ```text
// the policy, twice through every plane ─▶ the emptiest block, until every plane has its reserve ─▶ the
// emptiest block, until a page has found space ─▶ the device is full
// ```
//
// A policy that chooses at random, or considers only a few blocks, may use up the free space of a small
// device although much of it could be reclaimed. A block whose pages are all valid gains nothing, and with a
// map on flash its collection costs mapping pages.
//
// The emptiest block always gains at least one page, because a valid profile leaves something to gain
// (`config/checks.rs`). Every plane keeps its reserve, its open blocks and one more block. So the pages that
// are neither valid nor free cannot all be in open blocks, and some block of some plane can be collected
// while the host waits for space.
//
// There are enough free pages for this collection, too. Usually a victim is chosen only if a whole block of
// pages, and as many mapping pages, could be moved. The emptiest block moves at least one page less. Its
// exact need is counted, and the reserve, which only collections use, is large enough.

/// Maximum number of retries of the policy once every plane has its reserve, while no page finds space.
const OVERRULES_MAX: u32 = 64;

impl PageMap {
    /// Overrule the policy after no plane gained anything: the emptiest block is collected next. Returns
    /// false if that has been tried to the end.
    #[cold]
    pub(crate) fn overrule_policy(&mut self) -> bool {
        let may_repeat =
            self.on_flash.is_some() && !self.overruled && self.overrules < OVERRULES_MAX;
        if !may_repeat && self.urgent {
            return false;
        }
        self.overrules += 1;
        self.overruled = true;
        self.urgent = !may_repeat;
        true
    }

    /// Return to normal operation: a page that had waited found space.
    #[cold]
    pub(crate) fn reset_urgency(&mut self) {
        self.overrules = 0;
        if self.urgent {
            (self.urgent, self.overruled) = (false, false);
        }
    }

    /// Reserve a block of pages for a due collection, which must wait until others have gained that many
    /// pages. Where the host shares open blocks with relocated pages, it would otherwise take these pages as
    /// they come, and in the end only one collection would run for all planes.
    #[cold]
    fn reserve_for_next(&mut self) {
        if self.reserved > 0 {
            self.set_reserve_for_next();
        }
    }

    /// Resume collection after a power loss. A collection that was interrupted has used a part of its plane's
    /// reserve and needs the rest; the emptiest block is what it gains most from.
    pub(super) fn resume_collection(&mut self) {
        self.overruled = true;
        self.set_reserve_for_next();
    }

    /// Reserve a block of pages, which the host may not use until the next collection has begun.
    fn set_reserve_for_next(&mut self) {
        let shared = self.blocks.cost_of_host_page(false) > 0;
        self.reserved_for_next = if shared { self.pages_for_any_victim() } else { 0 };
    }

    /// Stop overruling the policy once every plane has its reserve again.
    #[inline]
    fn stop_overruling(&mut self) {
        if self.overruled && !self.urgent {
            let reserve =
                self.options.geometry.shape().planes * self.options.reserved_blocks as u32;
            self.overruled = self.blocks.free_blocks() < reserve;
        }
    }

    /// Return whether a page waits because no plane has space.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// Return the block of `plane` with the fewest valid pages, with data or mapping pages, if there are
    /// enough pages for its collection. Unlike normal collection, no more than its exact need is required.
    #[cold]
    fn urgent_victim(&mut self, plane: PlaneIdx) -> Option<(BlockIdx, PageStream)> {
        if let Some(block) = self.fold_urgently(plane) {
            return Some((block, PageStream::Relocated));
        }
        let valid = |block: BlockIdx| u32::from(self.blocks.valid_count(block));
        let flash_map = self.on_flash.as_deref();
        let of_map = flash_map.and_then(|flash_map| flash_map.emptiest(plane, &self.blocks));
        let of_map = of_map.filter(|block| valid(*block) < self.blocks.usable(*block));
        let of_map = of_map.filter(|block| self.has_space_for(*block, 0, valid(*block)));
        // Separate streams: there may be space for one and not for another.
        let data = self.blocks.emptiest_that(plane, |block| {
            let moved = self.pages_to_move(valid(block));
            let mapping = flash_map.map_or(0, |flash_map| moved.min(flash_map.mapping_pages()));
            self.has_space_for(block, moved, mapping)
        });
        // Moving a mapping page changes no other mapping page.
        match (of_map, data) {
            (Some(of_map), data) if data.is_none_or(|data| valid(of_map) <= valid(data)) => {
                self.on_flash.as_mut()?.remove(plane, of_map);
                Some((of_map, PageStream::Mapping))
            }
            (_, data) => {
                let data = data?;
                self.options.victims.remove(plane, data, &self.blocks);
                Some((data, PageStream::Relocated))
            }
        }
    }

    /// Return the oldest SLC cache block, if its pages fit.
    fn fold_urgently(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let oldest = self.slc.as_ref()?.oldest(plane)?;
        let valid = u32::from(self.blocks.valid_count(oldest));
        if self.has_space_for(oldest, valid, 0) { self.fold_oldest(plane) } else { None }
    }

    /// Return whether `moved` pages of `victim` and `mapping` mapping pages fit in addition to
    /// everything reserved.
    fn has_space_for(&self, victim: BlockIdx, moved: u32, mapping: u32) -> bool {
        match &self.on_flash {
            Some(flash_map) => {
                self.blocks.fits(self.reserved + moved, flash_map.reserved + mapping)
            }
            None => match &self.host_streams {
                Some(host_streams) => {
                    self.fits_streams(host_streams, None, Some((Some(victim), moved)))
                }
                None => {
                    self.blocks.pages_for_relocation()
                        >= self.reserved + moved + self.padding_reserve()
                }
            },
        }
    }

    /// Return whether the emptiest block is the victim, whatever the policy.
    #[inline]
    fn is_overruled(&self) -> bool {
        self.overruled
    }

    /// Return how many attempts to make while each gains something. Normally a pass through all blocks is
    /// enough; if urgent, every attempt may gain a single page.
    pub(crate) fn max_attempts(&self, pass: u64) -> u64 {
        let gains = if self.urgent { u64::from(self.options.geometry.data_pages()) } else { 1 };
        2 * pass * gains
    }

    // Pages reserved for collections in progress: every collection that begins can finish.

    /// Return the number of pages that are moved of each victim, at least or exactly.
    pub(super) fn load(&self) -> u32 {
        self.options.load.number().min(self.options.geometry.data_pages())
    }

    /// Return whether `collection` moves no more valid pages; see [`RelocationLoad::Exactly`].
    #[inline(always)]
    pub(super) fn has_reached_load(&self, collection: &Collection) -> bool {
        matches!(self.options.load, RelocationLoad::Exactly(_))
            && collection.stream == PageStream::Relocated
            && collection.moved >= self.load()
    }

    /// Return how many pages the collection of a block with `valid` valid pages programs.
    fn pages_to_move(&self, valid: u32) -> u32 {
        match self.options.load {
            RelocationLoad::AtLeast(_) => valid.max(self.load()),
            RelocationLoad::Exactly(_) => self.load(),
        }
    }

    /// Return how many pages are reserved for it: those that move. If power may be lost, pages that were
    /// trimmed, or whose newer versions are lost, may become valid again, and copies may be torn: then the
    /// reserve covers any victim.
    fn pages_for_victim(&self, valid: u32) -> u32 {
        if self.may_revalidate() { self.pages_for_any_victim() } else { self.pages_to_move(valid) }
    }

    /// Return whether a power loss may make invalid pages valid again; a map on flash prevents
    /// that.
    fn may_revalidate(&self) -> bool {
        self.options.power_loss && self.on_flash.is_none()
    }

    /// Return the reserve that covers any victim: a block of pages. If power may be lost, there is one more
    /// page per plane, since each plane may tear one. A map on flash reserves another block anyway.
    pub(super) fn pages_for_any_victim(&self) -> u32 {
        let planes = if self.may_revalidate() { self.options.geometry.shape().planes } else { 0 };
        self.options.geometry.data_pages() + planes
    }

    /// Reserve the pages that `collection` may need.
    pub(super) fn reserve(&mut self, collection: &mut Collection) {
        let valid = u32::from(self.blocks.valid_count(collection.victim));
        if collection.stream == PageStream::Mapping {
            collection.reserved_mapping = valid;
        } else {
            collection.reserved = self.pages_for_victim(valid);
            let mapping_pages =
                self.on_flash.as_ref().map_or(0, |flash_map| flash_map.mapping_pages());
            collection.reserved_mapping = collection.reserved.min(mapping_pages);
        }
        self.reserved += collection.reserved;
        self.reserved_for_next = 0;
        self.reserve_in_stream(collection.victim, collection.reserved);
        if let Some(flash_map) = &mut self.on_flash {
            flash_map.reserved += collection.reserved_mapping;
        }
    }

    /// Release the reserve of `pages` pages, which `collection` has moved.
    #[inline]
    fn use_reserve<M: FastPath>(&mut self, collection: &mut Collection, pages: u32) {
        if M::MINIMAL {
            collection.reserved -= pages;
            self.reserved -= pages;
            return;
        }
        match (&mut self.on_flash, collection.stream) {
            (Some(flash_map), PageStream::Mapping) => {
                collection.reserved_mapping -= pages;
                flash_map.reserved -= pages;
            }
            _ => {
                collection.reserved -= pages;
                self.reserved -= pages;
                self.release_in_stream(collection.victim, pages);
            }
        }
    }
}

// Blocks that are collected regardless of their valid pages: because of their wear, their reads or their
// age.
//
// Such a collection frees no page, and no request waits for it: a plane that needs space collects for space
// every other time.

/// Blocks that are to be moved because of their reads or their age.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct ScrubQueue {
    /// Per plane: waiting blocks, the oldest request first; some may still be open.
    due: Vec<VecDeque<BlockIdx>>,
    /// Per plane: the last collection was for space, although a block waited.
    yielded: Vec<bool>,
    /// Per plane: the block taken from the queue last, until its collection begins.
    moving: Vec<Option<BlockIdx>>,
}

impl ScrubQueue {
    pub(super) fn new(planes: u32) -> ScrubQueue {
        let (due, yielded) = (vec![VecDeque::new(); planes as usize], vec![false; planes as usize]);
        ScrubQueue { due, yielded, moving: vec![None; planes as usize] }
    }
}

impl PageMap {
    /// Queue `block` to be moved.
    pub(crate) fn queue_scrub(&mut self, block: BlockIdx) {
        let plane = self.options.geometry.plane_of(block);
        let scrubs = self.scrubs.as_mut().expect("scrubbing is configured");
        scrubs.due[plane.0 as usize].push_back(block);
    }

    /// Return whether a block of `plane` waits that can be moved.
    #[inline]
    pub(crate) fn has_scrub_waiting(&self, plane: PlaneIdx) -> bool {
        self.scrubs.is_some() && self.next_scrub(plane).is_some()
    }

    /// Return the index of the first waiting block that is full.
    fn next_scrub(&self, plane: PlaneIdx) -> Option<usize> {
        let due = &self.scrubs.as_ref()?.due[plane.0 as usize];
        due.iter().position(|block| self.is_full(plane, *block))
    }

    /// Return whether `block` of `plane` is full, with data or mapping pages, and not a victim.
    fn is_full(&self, plane: PlaneIdx, block: BlockIdx) -> bool {
        let of_map =
            || self.on_flash.as_ref().is_some_and(|flash_map| flash_map.is_closed(plane, block));
        self.blocks.is_closed(block) || of_map()
    }

    /// Remove `block` of `plane`, which was erased, from the queue.
    #[inline]
    fn remove_scrub(&mut self, plane: PlaneIdx, block: BlockIdx) {
        if let Some(scrubs) = &mut self.scrubs {
            scrubs.due[plane.0 as usize].retain(|other| *other != block);
        }
    }

    /// Return a block of `plane` that is to be moved now, even if that frees no page.
    fn scrub_or_levelling_victim(
        &mut self,
        plane: PlaneIdx,
        media: &mut impl CollectMedia,
    ) -> Option<BlockIdx> {
        // The policy is overruled when free pages are short: collect for space only.
        if self.is_overruled() {
            return None;
        }
        if let Some(block) = self.scrub_victim(plane) {
            return Some(block);
        }
        let block = self.static_levelling_victim(plane)?;
        media.count_levelled();
        Some(block)
    }

    fn scrub_victim(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let at = self.next_scrub(plane)?;
        let wants_collection = self.wants_collection::<AllFeatures>(plane);
        let scrubs = self.scrubs.as_mut()?;
        let yielded = &mut scrubs.yielded[plane.0 as usize];
        if wants_collection && !std::mem::replace(yielded, true) {
            return None;
        }
        *yielded = false;
        let block = scrubs.due[plane.0 as usize].remove(at);
        scrubs.moving[plane.0 as usize] = block;
        block
    }

    /// Return whether `victim`, chosen last of `plane`, is moved because of its reads or its age.
    fn is_scrub_victim(&mut self, plane: PlaneIdx, victim: BlockIdx) -> bool {
        let moving = self.scrubs.as_mut().and_then(|scrubs| scrubs.moving[plane.0 as usize].take());
        moving == Some(victim)
    }

    /// Return the block that static wear levelling moves now, if any.
    fn static_levelling_victim(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let gap = self.options.static_threshold;
        let per_plane = self.options.geometry.shape().blocks_per_plane;
        if gap == 0 || self.since_static[plane.0 as usize] < per_plane.div_ceil(STATIC_INTERVAL) {
            return None;
        }
        self.since_static[plane.0 as usize] = 0;
        let blocks = || self.options.geometry.blocks_of(plane);
        let max_wear = blocks().map(|block| self.blocks.wear(block)).max()?;
        let closed = blocks().filter(|block| self.is_full(plane, *block));
        let coldest = closed.min_by_key(|block| self.blocks.wear(*block))?;
        (max_wear - self.blocks.wear(coldest) > gap).then_some(coldest)
    }
}
