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
//! writes leaves such a collection the space to begin (`free_space.rs`). Figure 5(a)'s fixed number of
//! relocated pages "independently of the actual number of still valid pages" loses data if more are valid.
//! Both readings are implemented: a least number (valid pages always move, and invalid ones are moved on
//! top), and exactly that number, whose surplus is dropped.

mod collect;
mod dftl;
mod error_aware;
mod free_space;
mod gc_reserve;
mod hot_cold;
mod restore;
mod retirement;
mod scrub_queue;
mod slc;
mod streams;
mod sub_page;
mod untimed;
mod write;

pub(crate) use collect::{CollectedPage, Collection};
use dftl::MapOnFlash;
pub use dftl::MappingPart;
pub(crate) use dftl::{MappingOptions, RESERVED_FOR_MAPPING, mapping_pages};
pub use hot_cold::HotColdPart;
pub use retirement::Retire;
use retirement::Retirement;
pub(crate) use retirement::{RetirementOptions, read_only};
use scrub_queue::ScrubQueue;
use slc::SlcCache;
pub(crate) use slc::SlcOptions;
use streams::HostStreams;

use crate::collections::huge;
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::media::CollectMedia;
use crate::pool::alloc::Allocator;
use crate::pool::blocks::{Blocks, RelocationFrontier, Streams};
use crate::pool::free::FreeOrder;
use crate::pool::victim::Victims;

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
    pub(in crate::ftl) blocks: Blocks,
    pub(in crate::ftl) options: PageMapOptions,
    /// The cached mapping table and mapping blocks of a map on flash.
    pub(in crate::ftl) on_flash: Option<Box<MapOnFlash>>,
    /// Retired blocks and pages, on flash that wears out.
    pub(in crate::ftl) retirement: Option<Box<Retirement>>,
    /// State of several host write streams.
    host_streams: Option<Box<HostStreams>>,
    /// The blocks of an SLC cache.
    slc: Option<Box<SlcCache>>,
    /// Blocks waiting to be scrubbed.
    scrubs: Option<Box<ScrubQueue>>,
    /// The policy is overruled and the emptiest block is the victim: until every plane has its reserve or, if
    /// urgent, until a page has found space; see `free_space.rs`.
    overruled: bool,
    urgent: bool,
    /// Number of times the policy was overruled since.
    overrules: u32,
    /// No plane can take a page: the device is read-only.
    pub(in crate::ftl) full: bool,
    /// Per plane: erases since the least-worn block was last looked for.
    since_static: Vec<u32>,
    /// Pages reserved for collections in progress, which may still have to move them; the host leaves them
    /// free.
    pub(in crate::ftl) reserved: u32,
    /// Pages that the host leaves free in addition: a block of them, if a due collection could not begin for
    /// lack of pages while others were in progress.
    reserved_for_next: u32,
    /// The valid pages of a victim; reused to avoid allocation.
    pub(in crate::ftl) scratch: Vec<Ppn>,
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
    pub(in crate::ftl) fn map_page(&mut self, page: Lpn, at: PageAddress) {
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
