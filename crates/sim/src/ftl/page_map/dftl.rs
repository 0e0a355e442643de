//! DFTL: a page map whose entries are on flash, with a part of them in the controller's memory.
//!
//! ```text
//! host page ─▶ entry cached? ─ yes ─────────────────────────────────────────▶ go on
//!                    └ no ─▶ an entry leaves; changed? ─ yes ─▶ write it back ─▶ read its page ─▶ go on
//! collection ─▶ entry of a moved page cached? ─ yes ─▶ changed, nothing else (lazy)
//!                    └ no ─▶ at the end, every mapping page concerned is written once (batch)
//! ```
//!
//! DFTL adds costs to the page map of `page_map/`: the full map in memory stays authoritative, and the
//! mapping pages that DFTL would read and program are read and programmed. A mapping page is a logical page
//! after those of the host. The map's entries for these pages are therefore DFTL's global translation
//! directory, and collection moves mapping pages like any others.
//!
//! **Source**: Gupta, Kim & Urgaonkar: DFTL (ASPLOS 2009) §3; OFC (2011) §IV.B.
//! **Faithful**: cached entries with segmented LRU; a miss reads a mapping page, a changed entry that
//! leaves is written back by read-modify-write; batch updates; lazy updates by collection; mapping
//! pages fill blocks of their own and are collected.
//! Neighbouring entries may be cached together as segments. The cache may be in the host's memory (NVMe's
//! host memory buffer), where a lookup takes a configurable time.
//! **Simplified**: the directory takes no memory and is never stored. Changes in the host's memory are posted
//! and not waited for; whether a segment is cached is found without a lookup there. TRIM changes a cached
//! entry and costs nothing if the entry is not cached. If a read would write an entry back but no page can be
//! reserved for that, it leaves the cache as it is and begins a collection.
//! **Ambiguous**: the paper does not say which mapping block is collected when: here the one with the fewest
//! valid pages, as soon as half of them are invalid, before any block of data. It also does not say what
//! happens if collection uses more pages than it gains, which random policies cause on small devices. Here,
//! once no plane has gained anything, the emptiest block is collected, whatever the policy, until there is
//! free space again.

use super::PageMap;
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PlaneIdx};
use crate::flash::media::CollectMedia;
use crate::ftl::mapping_cache::{CachePolicy, MappingCache};
use crate::keys::parameters;
use crate::pool::blocks::{Blocks, PageStream};

parameters! {
    /// Profile options of a page map on flash.
    #[derive(Clone, PartialEq, Debug)]
    pub struct MappingPart {
        mapping_cache_bytes: u64 = "8 or more" in "bytes",
            "memory for cached entries of the map, 8 bytes each; a segment takes 4 bytes, and 4 \
             for each of its entries";
        mapping_cache_policy: CachePolicy = "`lru`, `segmented_lru`",
            "replacement policy of cached entries; segmented: entries with a single access are \
             evicted first";
        mapping_batch_update: bool = "`true`, `false`",
            "when an entry is written back, all changed entries of its mapping page are written \
             with it";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mapping_segment_entries: Option<u32> =
            "a divisor of the entries of a mapping page (`page_bytes` / 4); 1 without the key",
            "number of neighbouring entries that are cached and evicted together";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_memory_read_ns: Option<u64> = "0 or more; 0 without the key" in "ns",
            "cached entries are in the memory of the host (NVMe's host memory buffer): a look-up \
             takes this time, and 64 bytes over the link. 0: they are in the controller";
    }
}

/// Options of a page map on flash.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct MappingOptions {
    /// Number of cached segments, and the entries of each.
    pub(crate) cached_segments: usize,
    pub(crate) segment_entries: u32,
    pub(crate) policy: CachePolicy,
    pub(crate) batch_update: bool,
}

/// Bytes of an entry on a mapping page: a physical page number. The logical one follows from its position
/// (Gupta et al. §3.2).
const ENTRY_BYTES: u32 = 4;

/// Blocks of a plane that are reserved for mapping pages, besides those for relocated pages. The mapping
/// pages of one collection fill at most one, and host writes may have begun another.
pub(crate) const RESERVED_FOR_MAPPING: u32 = 2;

/// Return the number of mapping pages of `geometry`.
pub(crate) fn mapping_pages(geometry: &Geometry) -> u32 {
    geometry.shape().logical_pages.div_ceil(entries_a_page(geometry))
}

fn entries_a_page(geometry: &Geometry) -> u32 {
    geometry.shape().page_bytes / ENTRY_BYTES
}

/// The outcome of writing back a changed entry that leaves the cache.
pub(super) enum WrittenBack {
    /// Its mapping page was programmed on this plane.
    To(PlaneIdx),
    /// No page could be reserved for it: it stays in the cache.
    NoSpace,
}

/// Additional state of a page map that is on flash.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct MapOnFlash {
    /// Caches segments; with one entry each, it caches entries.
    cache: MappingCache,
    segment_entries: u32,
    /// The logical page number of the first mapping page.
    first: u32,
    /// Per plane: full mapping blocks.
    closed: Vec<Vec<BlockIdx>>,
    /// Per plane: mapping pages whose entries its collection has changed.
    moved: Vec<Vec<u32>>,
    /// Mapping pages reserved for collections in progress, which may still have to program them.
    pub(super) reserved: u32,
}

impl MapOnFlash {
    pub(super) fn new(geometry: &Geometry, options: MappingOptions) -> MapOnFlash {
        let planes = geometry.shape().planes as usize;
        let MappingOptions { cached_segments, segment_entries, policy, batch_update } = options;
        let first = geometry.shape().logical_pages;
        let segments = first.div_ceil(segment_entries);
        let segments_a_page = entries_a_page(geometry) / segment_entries;
        MapOnFlash {
            cache: MappingCache::new(
                segments,
                cached_segments,
                segments_a_page,
                policy,
                batch_update,
            ),
            segment_entries,
            first,
            closed: vec![Vec::new(); planes],
            moved: vec![Vec::with_capacity(geometry.shape().pages_per_block as usize); planes],
            reserved: 0,
        }
    }

    pub(super) fn mapping_pages(&self) -> u32 {
        self.cache.mapping_pages()
    }

    /// Return the segment that contains the entry of the host's `page`.
    #[inline]
    fn segment_of(&self, page: Lpn) -> u32 {
        page.0 / self.segment_entries
    }

    /// Note that the entry of the host's `page` has changed.
    #[inline]
    pub(super) fn changed(&mut self, page: Lpn) {
        self.cache.change(self.segment_of(page));
    }

    /// Note that the collection of `plane` moved the host's `page`.
    pub(super) fn moved(&mut self, plane: PlaneIdx, page: Lpn) {
        let segment = self.segment_of(page);
        if !self.cache.change(segment) {
            self.moved[plane.0 as usize].push(self.cache.mapping_page_of(segment));
        }
    }

    /// Note that `block` of `plane` was filled with mapping pages.
    pub(super) fn closed(&mut self, plane: PlaneIdx, block: BlockIdx) {
        self.closed[plane.0 as usize].push(block);
    }

    /// Remove `block` from the full mapping blocks of `plane`; returns false if it is not one of them.
    pub(super) fn remove(&mut self, plane: PlaneIdx, block: BlockIdx) -> bool {
        let closed = &mut self.closed[plane.0 as usize];
        let at = closed.iter().position(|other| *other == block);
        at.map(|at| closed.remove(at)).is_some()
    }

    /// Return whether `block` of `plane` is a full mapping block.
    pub(super) fn is_closed(&self, plane: PlaneIdx, block: BlockIdx) -> bool {
        self.closed[plane.0 as usize].contains(&block)
    }

    /// Return whether a full mapping block of `plane` has an invalid page.
    pub(super) fn has_reclaimable(&self, plane: PlaneIdx, blocks: &Blocks) -> bool {
        let closed = &mut self.closed[plane.0 as usize].iter();
        closed.any(|block| u32::from(blocks.valid_count(*block)) < blocks.usable(*block))
    }

    /// Return the full mapping block of `plane` with the fewest valid pages.
    pub(super) fn emptiest(&self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx> {
        let closed = self.closed[plane.0 as usize].iter().copied();
        closed.min_by_key(|block| (blocks.valid_count(*block), block.0))
    }
}

impl PageMap {
    /// Load the entry of the host's `page` into the cache, for a read of that page. Returns a plane to
    /// collect: the one that ran out of free blocks because another entry was written back, or one that can
    /// make space for such a write-back. Otherwise reads would use up the pages reserved for the map, and the
    /// cache could no longer change.
    #[inline]
    pub(crate) fn fetch_entry(
        &mut self,
        page: Lpn,
        media: &mut impl CollectMedia,
    ) -> Option<PlaneIdx> {
        self.on_flash.as_ref()?;
        let has_space = self.has_space_to_read();
        match self.load_entry(page, has_space, media)? {
            WrittenBack::To(plane) => {
                Some(plane).filter(|plane| self.wants_collection::<AllFeatures>(*plane))
            }
            WrittenBack::NoSpace => self.plane_to_collect_for_map(),
        }
    }

    /// Return the plane with the emptiest mapping block, of the planes that have no block left for the host.
    #[cold]
    fn plane_to_collect_for_map(&self) -> Option<PlaneIdx> {
        let planes = (0..self.options.geometry.shape().planes).map(PlaneIdx);
        let wanting = planes.filter(|plane| self.wants_collection::<AllFeatures>(*plane));
        wanting.min_by_key(|plane| {
            let emptiest = self.flash_map().emptiest(*plane, &self.blocks);
            emptiest.map_or(u16::MAX, |block| self.blocks.valid_count(block))
        })
    }

    /// Load the entry of the host's `page` into the cache. If another entry must be written back first and
    /// `has_free_page` is false, the entry is used but not cached. Returns the outcome of that write-back, if one was
    /// needed.
    pub(super) fn load_entry(
        &mut self,
        page: Lpn,
        has_free_page: bool,
        media: &mut impl CollectMedia,
    ) -> Option<WrittenBack> {
        let flash_map = self.flash_map_mut();
        let segment = flash_map.segment_of(page);
        let hit = flash_map.cache.find(segment);
        media.look_up_map(hit);
        if hit {
            return None;
        }
        let leaves = flash_map.cache.leaves_changed();
        let mut written = leaves.map(|_| WrittenBack::NoSpace);
        if let (Some(mapping_page), true) = (leaves, has_free_page) {
            written = self.write_mapping_page(mapping_page, media).map(WrittenBack::To);
            self.flash_map_mut().cache.mark_written_back(mapping_page);
        }
        let flash_map = self.flash_map();
        let mapping_page = Lpn(flash_map.first + flash_map.cache.mapping_page_of(segment));
        if let Some(at) = self.lookup(mapping_page) {
            media.read_mapping(at);
        }
        if leaves.is_none() || has_free_page {
            self.flash_map_mut().cache.insert(segment);
        }
        written
    }

    /// Program a new version of `mapping_page`; returns its plane. `None` if no plane can take it.
    fn write_mapping_page(
        &mut self,
        mapping_page: u32,
        media: &mut impl CollectMedia,
    ) -> Option<PlaneIdx> {
        let page = Lpn(self.flash_map().first + mapping_page);
        let Some(plane) = self.plane_for::<AllFeatures>(None, PageStream::Mapping) else {
            self.end_of_life();
            return None;
        };
        let mut to = self.blocks.take_page(plane, PageStream::Mapping);
        let old = self.lookup(page);
        media.set_content(Some(page), || self.blocks.kind(PageStream::Mapping) as u8);
        while !media.program_mapping(to.address, old) {
            match self.replacement_page(to, PageStream::Mapping, media) {
                Some(other) => to = other,
                None => {
                    self.end_of_life();
                    return None;
                }
            }
        }
        if let Some(old) = old {
            self.blocks.mark_invalid(old);
        }
        self.map_page(page, to.address);
        self.close_if_full(to, PageStream::Mapping, media);
        Some(to.address.plane)
    }

    /// Write every mapping page whose entries the collection of `plane` has changed. `reserved` pages were
    /// reserved for this.
    pub(super) fn write_moved(
        &mut self,
        plane: PlaneIdx,
        reserved: u32,
        media: &mut impl CollectMedia,
    ) {
        let mut pages = std::mem::take(&mut self.flash_map_mut().moved[plane.0 as usize]);
        pages.sort_unstable();
        pages.dedup();
        let unused = reserved - pages.len() as u32;
        for mapping_page in &pages {
            self.flash_map_mut().reserved -= 1;
            self.write_mapping_page(*mapping_page, media);
            self.flash_map_mut().cache.mark_all_clean(*mapping_page);
        }
        pages.clear();
        let flash_map = self.flash_map_mut();
        flash_map.reserved -= unused;
        flash_map.moved[plane.0 as usize] = pages;
    }

    /// Return whether the host can write a page, which opens a block if `opens`. There must be
    /// space for that page, for an entry that is written back, and for one more collection.
    pub(super) fn has_space_with_map(&self, opens: bool) -> bool {
        let (relocated, mapping) = self.needed_to_collect();
        self.blocks.fits_after(PageStream::Host, opens, relocated, mapping + 1)
    }

    /// Like [`PageMap::has_space_with_map`], for a read that may write an entry back.
    pub(super) fn has_space_to_read(&self) -> bool {
        let (relocated, mapping) = self.needed_to_collect();
        self.blocks.fits(relocated, mapping + 1)
    }

    pub(super) fn has_space_to_collect(&self) -> bool {
        let (relocated, mapping) = self.needed_to_collect();
        self.blocks.fits(relocated, mapping)
    }

    /// Return the relocated and the mapping pages that the collections in progress and one more may need.
    fn needed_to_collect(&self) -> (u32, u32) {
        let max_pages = self.options.geometry.data_pages();
        let flash_map = self.flash_map();
        (self.reserved + max_pages, flash_map.reserved + flash_map.mapping_pages().min(max_pages))
    }

    /// Return a mapping block of `plane` that should be collected before any other block, and remove it from
    /// its list.
    pub(super) fn mapping_victim(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let flash_map = self.flash_map();
        let block = flash_map.emptiest(plane, &self.blocks)?;
        let valid = u32::from(self.blocks.valid_count(block));
        let worthwhile = 2 * valid <= self.options.geometry.data_pages();
        if !worthwhile || !self.blocks.fits(self.reserved, flash_map.reserved + valid) {
            return None;
        }
        self.flash_map_mut().remove(plane, block);
        Some(block)
    }

    /// Return whether opening another block for `stream` leaves space for everything that is
    /// reserved.
    pub(super) fn may_open(&self, stream: PageStream) -> bool {
        self.blocks.fits_after(stream, true, self.reserved, self.flash_map().reserved)
    }

    pub(super) fn plane_with_open_page(&self, stream: PageStream) -> Option<PlaneIdx> {
        let mut planes = (0..self.options.geometry.shape().planes).map(PlaneIdx);
        planes.find(|plane| self.blocks.has_open_page(*plane, stream))
    }

    fn flash_map(&self) -> &MapOnFlash {
        self.on_flash.as_ref().expect("the map is on flash")
    }

    fn flash_map_mut(&mut self) -> &mut MapOnFlash {
        self.on_flash.as_mut().expect("the map is on flash")
    }
}
