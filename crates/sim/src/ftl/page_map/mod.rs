//! The page-mapped FTL: any logical page on any physical page.
//!
//! **Source**: OFC (2011) §IV.B–E.
//! **Faithful**: full page-level map in memory; a write page allocator for host and relocated pages;
//! one metadata page at the end of a block where the geometry has it, written when the block is full
//! and read when it is collected; dynamic and static wear levelling.
//! **Simplified**: the map is never stored on flash; `dftl` does that (`dftl.rs`), on the same
//! machinery.
//! **Ambiguous**: the report does not say when collection begins. Here a plane begins when the host has
//! opened the last block that it may (no more than `reserved_blocks` are left), so that collection has the
//! time in which that block is filled. It ends when the plane has one more free block. A host that always
//! writes leaves such a collection the space to begin (`gc.rs`). Figure 5(a)'s fixed number of
//! relocated pages "independently of the actual number of still valid pages" loses data if more are valid.
//! Both readings are implemented: a least number (valid pages always move, and invalid ones are moved on
//! top), and exactly that number, whose surplus is dropped.

mod dftl;
mod gc;
mod retirement;
mod slc;
mod streams;
mod write;

use std::collections::BTreeMap;

use crate::collections::huge;
use crate::flash::contents::{BlockCondition, Contents, Image, Label};
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::media::{CollectMedia, Flash};
use crate::pool::alloc::Allocator;
use crate::pool::blocks::{BlockUse, Blocks, PageStream, RelocationFrontier, Streams};
use crate::pool::free::FreeOrder;
use crate::pool::victim::Victims;
use dftl::MapOnFlash;
pub use dftl::MappingPart;
pub(crate) use dftl::{MappingOptions, RESERVED_FOR_MAPPING, mapping_pages};
use gc::ScrubQueue;
pub(crate) use gc::{CollectedPage, Collection};
pub use retirement::Retire;
use retirement::Retirement;
pub(crate) use retirement::{RetirementOptions, read_only};
use slc::SlcCache;
pub(crate) use slc::SlcOptions;
use streams::HostStreams;
pub use streams::HotColdPart;

/// Options of a page map.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct PageMapOptions {
    pub(crate) geometry: Geometry,
    pub(crate) allocator: Allocator,
    pub(crate) victims: Victims,
    /// Free blocks that every plane keeps for relocated pages, at least 1.
    pub(crate) reserved_blocks: usize,
    /// Relocated pages stay on their plane; otherwise they are placed round robin, like host pages.
    pub(crate) same_die: bool,
    /// Relocated pages of all streams fill separate blocks: hot and cold data are separated by their history.
    /// Otherwise they share the host's blocks or, with several host streams, each stream has separate blocks
    /// for them.
    pub(crate) separate: bool,
    pub(crate) free_order: FreeOrder,
    /// Static wear levelling moves the least-worn block once another block of its plane has this many more
    /// erases; 0: never. It is not a bound: one block moves at a time, and seldom.
    pub(crate) static_threshold: u32,
    /// See the file header on figure 5(a).
    pub(crate) load: RelocationLoad,
    /// The map is kept on flash (DFTL).
    pub(crate) mapping: Option<MappingOptions>,
    /// Flash wears out, and blocks and pages are retired.
    pub(crate) retirement: Option<RetirementOptions>,
    /// Number of host write streams, at least 1, and the detector of hot pages.
    pub(crate) write_streams: u8,
    pub(crate) hot_cold: Option<HotColdPart>,
    /// The host's pages pass through an SLC cache.
    pub(crate) slc: Option<SlcOptions>,
    /// Blocks are scrubbed: moved because of their reads or their age.
    pub(crate) scrubs: bool,
    /// Power may be lost.
    pub(crate) power_loss: bool,
}

/// The number of pages of a victim that are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum RelocationLoad {
    /// All valid pages, and invalid ones on top if those are fewer than this; 0: the valid ones.
    AtLeast(u32),
    /// This number; the data of further valid pages is lost. An artificial load, for figure 5(a) only.
    Exactly(u32),
}

impl RelocationLoad {
    /// Return the number at which moving becomes artificial or stops.
    fn number(self) -> u32 {
        match self {
            RelocationLoad::AtLeast(number) | RelocationLoad::Exactly(number) => number,
        }
    }
}

/// Map, reverse map, and block accounting.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct PageMap {
    /// Per logical page: its physical page; `UNMAPPED` if it was never written. Mapping pages follow those of
    /// the host.
    #[serde(with = "crate::collections::huge::flat")]
    map: Vec<u32>,
    /// Per physical page: the logical page that was programmed there last.
    #[serde(with = "crate::collections::huge::flat")]
    reverse: Vec<u32>,
    pub(super) blocks: Blocks,
    pub(super) options: PageMapOptions,
    /// The cached mapping table and mapping blocks of a map on flash.
    pub(super) on_flash: Option<Box<MapOnFlash>>,
    /// Retired blocks and pages, on flash that wears out.
    pub(super) retirement: Option<Box<Retirement>>,
    /// State of several host write streams.
    host_streams: Option<Box<HostStreams>>,
    /// The blocks of an SLC cache.
    slc: Option<Box<SlcCache>>,
    /// Blocks waiting to be scrubbed.
    scrubs: Option<Box<ScrubQueue>>,
    /// The policy is overruled and the emptiest block is the victim: until every plane has its reserve or, if
    /// urgent, until a page has found space; see `gc.rs`.
    overruled: bool,
    urgent: bool,
    /// Number of times the policy was overruled since.
    overrules: u32,
    /// No plane can take a page: the device is read-only.
    pub(super) full: bool,
    /// Per plane: erases since the least-worn block was last looked for.
    since_static: Vec<u32>,
    /// Pages reserved for collections in progress, which may still have to move them; the host leaves them
    /// free.
    pub(super) reserved: u32,
    /// Pages that the host leaves free in addition: a block of them, if a due collection could not begin for
    /// lack of pages while others were in progress.
    reserved_for_next: u32,
    /// The valid pages of a victim; reused to avoid allocation.
    pub(super) scratch: Vec<Ppn>,
    /// The same as logical pages.
    moving: Vec<Lpn>,
    /// If units are packed into flash pages: the plane of the last unit, per host stream and then per stream
    /// of relocated pages.
    last_plane: Vec<PlaneIdx>,
}

/// Marks an empty entry of the two arrays; elsewhere it is an `Option`.
const UNMAPPED: u32 = u32::MAX;

impl PageMap {
    /// Return the number of valid pages of `block`, if it is closed.
    pub(crate) fn valid_in(&self, block: BlockIdx) -> Option<u16> {
        self.blocks.is_closed(block).then(|| self.blocks.valid_count(block))
    }

    /// Return the number of valid pages of the victim of `collection`.
    pub(crate) fn valid_in_victim(&self, collection: &Collection) -> u16 {
        self.blocks.valid_count(collection.victim)
    }

    pub(crate) fn new(options: PageMapOptions) -> PageMap {
        let geometry = options.geometry;
        let retirement = options.retirement.as_ref();
        let (bad, least_usable) = match retirement {
            Some(retirement) => {
                (&retirement.bad[..], retirement.usable_pages_min.clamp(1, geometry.data_pages()))
            }
            None => (&[][..], geometry.data_pages()),
        };
        let on_flash = options.mapping.map(|mapping| Box::new(MapOnFlash::new(&geometry, mapping)));
        let mapping_pages = on_flash.as_ref().map_or(0, |flash_map| flash_map.mapping_pages());
        let pages = geometry.shape().logical_pages + mapping_pages;
        // An SLC cache is an additional stream beside the only one of the host.
        let hosts = options.write_streams + u8::from(options.slc.is_some());
        let relocation = RelocationFrontier::for_streams(options.separate, options.write_streams);
        let streams = Streams {
            hosts,
            slc_pages: options.slc.map(|slc| slc.pages),
            relocation,
            mapping: on_flash.is_some(),
        };
        let mut blocks = Blocks::new(geometry, streams, options.free_order, bad, least_usable);
        if options.hot_cold.is_some() {
            blocks.set_first_cold();
        }
        PageMap {
            map: huge::filled(pages as usize, UNMAPPED),
            reverse: huge::filled(geometry.pages() as usize, UNMAPPED),
            blocks,
            on_flash,
            retirement: retirement.map(|options| Box::new(Retirement::new(options.clone()))),
            host_streams: HostStreams::new(hosts, relocation, options.hot_cold),
            slc: options.slc.map(|slc| Box::new(SlcCache::new(slc, geometry.shape().planes))),
            scrubs: options.scrubs.then(|| Box::new(ScrubQueue::new(geometry.shape().planes))),
            overruled: false,
            urgent: false,
            overrules: 0,
            full: false,
            since_static: vec![0; geometry.shape().planes as usize],
            reserved: 0,
            reserved_for_next: 0,
            scratch: Vec::with_capacity(geometry.shape().pages_per_block as usize),
            moving: Vec::with_capacity(geometry.shape().pages_per_block as usize),
            last_plane: {
                let frontiers = usize::from(relocation.open_blocks(hosts).max(1));
                vec![PlaneIdx(0); 2 * usize::from(hosts) + frontiers]
            },
            options,
        }
    }

    /// Return the address of `page`; `None` if it was never written.
    #[inline]
    pub(crate) fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let at = self.map[page.0 as usize];
        (at != UNMAPPED).then(|| self.options.geometry.address_of(Ppn(at)))
    }

    /// Return the address of `page` for a read in the untimed mode. If the map is on flash, its entry is
    /// fetched first, and a collection that this makes due is done at once.
    #[inline]
    pub(crate) fn find(&mut self, page: Lpn, media: &mut impl CollectMedia) -> Option<PageAddress> {
        if let Some(plane) = self.fetch_entry(page, media) {
            self.make_free_page(plane, media);
        }
        self.lookup(page)
    }

    /// Prefetch the map entry of `page`, which will be looked up soon.
    #[inline]
    pub(crate) fn prefetch(&self, page: Lpn) {
        huge::prefetch(&self.map, page.0 as usize);
    }

    /// Prefetch the accounting of the old address of `page`, which will be written soon; its map entry is
    /// already in the cache.
    #[inline]
    pub(crate) fn prefetch_old(&self, page: Lpn) {
        let old = self.map[page.0 as usize];
        if old != UNMAPPED {
            self.blocks.prefetch(Ppn(old));
        }
    }

    /// Discard the content of `page` (TRIM).
    pub(crate) fn trim(&mut self, page: Lpn) {
        if let Some(old) = self.lookup(page) {
            self.invalidate(old);
            self.forget(page);
        }
    }

    /// Clear the map entry of `page`.
    fn forget(&mut self, page: Lpn) {
        self.map[page.0 as usize] = UNMAPPED;
        if let Some(flash_map) = &mut self.on_flash {
            flash_map.changed(page);
        }
    }

    #[inline(always)]
    fn invalidate(&mut self, at: PageAddress) {
        let (valid_pages, closed) = self.blocks.mark_invalid(at);
        if closed {
            self.options.victims.invalidated(at.plane, at.block, valid_pages);
        }
    }

    #[inline(always)]
    pub(super) fn map_page(&mut self, page: Lpn, at: PageAddress) {
        self.map[page.0 as usize] = at.page.0;
        self.reverse[at.page.0 as usize] = page.0;
    }

    /// Check that map, reverse map and accounting agree; for tests.
    ///
    /// # Panics
    /// If they do not.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        use crate::flash::geometry::BlockIdx;
        let geometry = self.options.geometry;
        let mut valid = vec![0; geometry.blocks() as usize];
        let mut mapped = 0;
        for (lpn, at) in self.map.iter().enumerate().filter(|(_, at)| **at != UNMAPPED) {
            mapped += 1;
            assert_eq!(self.reverse[*at as usize] as usize, lpn, "the reverse map agrees");
            assert!(self.blocks.is_valid(Ppn(*at)), "a mapped page is valid");
            valid[geometry.block_of(Ppn(*at)).0 as usize] += 1;
        }
        for page in (0..geometry.pages()).map(Ppn).filter(|page| self.blocks.is_pending(*page)) {
            assert!(self.blocks.is_valid(page), "{page:?} of an open block will be valid");
            mapped += 1;
            valid[geometry.block_of(page).0 as usize] += 1;
        }
        let bits = (0..geometry.pages()).filter(|page| self.blocks.is_valid(Ppn(*page))).count();
        assert_eq!(bits, mapped, "valid pages equal mapped pages and pending ones");
        for block in (0..geometry.blocks()).map(BlockIdx) {
            assert_eq!(self.blocks.valid_count(block), valid[block.0 as usize], "{block:?}");
        }
    }

    /// Return whether any page of `block` is valid.
    pub(crate) fn holds_valid(&self, block: BlockIdx) -> bool {
        self.blocks.valid_count(block) > 0
    }

    /// Return the block accounting.
    pub(crate) fn blocks(&self) -> &Blocks {
        &self.blocks
    }
}

// Recovery of the page map from spare areas after a power loss.
//
// ```text
// spare areas ─▶ newest version of each logical page ─▶ map, reverse map, valid pages
//             └▶ programmed pages of each block      ─▶ free │ open, continued behind them │ full
// ```
//
// **Source**: uFLIP (2009) §2.2, where the direct map is in memory and recovered from the inverse map on flash.
// **Faithful**: only data that was read is used. In a block that was being filled, the pages after the last
// programmed one are used; pages that are torn or were passed over are lost until it is collected.
// **Simplified**: policies, wear levelling and filters of hot pages start empty; a map on flash (DFTL) is
// found with the pages that it was last written to, and later changes are known.
// **Ambiguous**: if two blocks of a plane were being filled for the same stream, the one that was opened
// later is continued.

impl PageMap {
    /// Rebuild an empty map from `contents`. Blocks in `erase_again` become free, or are retired if
    /// that erase failed. Returns the use of every block.
    pub(crate) fn restore(
        &mut self,
        contents: &Contents,
        erase_again: &[(BlockIdx, bool)],
        flash: &mut Flash,
    ) -> Vec<BlockUse> {
        if let Some(listed) = contents.defects() {
            self.find_defects(listed);
        }
        let image = &contents.read_image();
        let mut uses = self.uses(image);
        self.mark_unusable(&mut uses, contents, erase_again);
        let wear = contents.estimated_erases();
        let keys = match self.options.free_order {
            FreeOrder::FewestErrors => {
                let blocks = (0..uses.len() as u32).map(BlockIdx);
                blocks.map(|block| self.errors_of(block, flash)).collect()
            }
            FreeOrder::Oldest | FreeOrder::LeastWorn => wear.clone(),
        };
        self.blocks.restore(&uses, &wear, &keys);
        for (page, at) in (0..).map(Lpn).zip(&image.map) {
            if let Some(at) = *at {
                let at = self.options.geometry.address_of(at);
                self.map_page(page, at);
                self.blocks.mark_valid(at);
            }
        }
        let mut filled: Vec<(u64, BlockIdx, u8)> = Vec::new();
        for (index, used) in (0..).zip(&uses) {
            if let BlockUse::Filled { role } = *used {
                filled.push((image.blocks[index as usize].1.opened, BlockIdx(index), role));
            }
        }
        filled.sort_unstable();
        for (_, block, role) in filled {
            let stream = self.blocks.stream_in(role, self.on_flash.is_some());
            self.blocks.close(block, stream);
            let address =
                PageAddress { page: Ppn(0), block, plane: self.options.geometry.plane_of(block) };
            self.register_closed(address, stream);
        }
        for (at, _) in uses.iter().enumerate().filter(|(_, used)| **used == BlockUse::Erased) {
            let block = BlockIdx(at as u32);
            let erased = erase_again.iter().all(|(other, erased)| *other != block || *erased);
            self.reuse(self.options.geometry.plane_of(block), block, erased, flash);
        }
        self.resume_collection();
        uses
    }

    /// Correct the use of blocks that seem to be free: listed ones are bad. Those that were erased `again`,
    /// or had a failed program, must be checked.
    fn mark_unusable(
        &self,
        uses: &mut [BlockUse],
        contents: &Contents,
        erase_again: &[(BlockIdx, bool)],
    ) {
        erase_again.iter().for_each(|(block, _)| uses[block.0 as usize] = BlockUse::Erased);
        for (block, used) in (0..).map(BlockIdx).zip(uses) {
            if contents.is_listed(block) {
                *used = BlockUse::Bad;
            } else if *used == BlockUse::Free
                && self.failed_programs().binary_search(&block).is_ok()
            {
                *used = BlockUse::Erased;
            }
        }
    }

    /// Return the use of every block.
    fn uses(&self, image: &Image) -> Vec<BlockUse> {
        let geometry = &self.options.geometry;
        let mut uses = Vec::with_capacity(image.blocks.len());
        // Per plane and role: the block opened last, of those with a page left, and when.
        let mut last: BTreeMap<(u32, u8), (u64, usize)> = BTreeMap::new();
        for (block, (condition, label)) in (0..).map(BlockIdx).zip(&image.blocks) {
            let Label { role, opened, .. } = *label;
            let BlockCondition::Programmed(pages) = *condition else {
                uses.push(BlockUse::Free);
                continue;
            };
            let next = Ppn(geometry.first_page(block).0 + pages);
            let mut used = BlockUse::Filled { role };
            if let Some(next) = self.blocks.next_usable_page(block, role, next) {
                let newest = last.entry((geometry.plane_of(block).0, role)).or_insert((0, 0));
                if opened > newest.0 {
                    if newest.0 > 0 {
                        uses[newest.1] = used;
                    }
                    *newest = (opened, uses.len());
                    used = BlockUse::Open { role, next };
                }
            }
            uses.push(used);
        }
        uses
    }

    /// Return every mapped page and its address.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (u32, PageAddress)> + '_ {
        (0..self.map.len() as u32).filter_map(|page| Some((page, self.lookup(Lpn(page))?)))
    }

    /// Return the number of map entries, those of mapping pages included.
    pub(crate) fn mapped_pages(&self) -> u32 {
        self.map.len() as u32
    }

    /// Return the label in the spare areas of `block`, as far as the accounting has it.
    pub(crate) fn label(&self, block: BlockIdx) -> Label {
        let (role, order) = self.blocks.label(block);
        let plane = self.options.geometry.plane_of(block);
        let of_map =
            self.on_flash.as_ref().is_some_and(|flash_map| flash_map.is_closed(plane, block));
        let role = if of_map { self.blocks.kind(PageStream::Mapping) as u8 } else { role };
        Label { role, opened: 1 + order, erases: self.blocks.wear(block), by: block }
    }

    /// Register a full block with the component that chooses it: mapping blocks, SLC cache or policy.
    fn register_closed(&mut self, last_page: PageAddress, stream: PageStream) {
        let PageAddress { block, plane, .. } = last_page;
        match (&mut self.on_flash, stream) {
            (Some(flash_map), PageStream::Mapping) => flash_map.closed(plane, block),
            _ if self.blocks.is_cache(block) => {
                self.slc.iter_mut().for_each(|slc| slc.filled(plane, block));
            }
            _ => self.options.victims.closed(plane, block, self.blocks.valid_count(block)),
        }
    }
}
