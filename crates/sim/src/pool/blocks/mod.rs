//! Block accounting of a page-mapped FTL: which pages are valid, which blocks are free, open or closed.
//!
//! Flat arrays: one bit a page, two bytes a block for values that change with every page (`valid.rs`).
//! Everything else is stored separately, so that the arrays of a large device stay in the processor's cache.
//! `free_space.rs` computes the pages left for each purpose.

mod free_space;
mod open;
mod restore;
mod streams;
mod valid;

pub(crate) use restore::BlockUse;
pub(crate) use streams::{CACHE, WRITE_STREAMS_MAX};

pub(crate) use open::AllocatedPage;
use open::OpenBlock;
use streams::KINDS_MAX;

use crate::collections::{bits, huge};
use crate::flash::geometry::{BlockIdx, Geometry, PageAddress, PlaneIdx, Ppn};
use crate::pool::free::{FreeOrder, FreePool};

/// The kind of page: selects the open block of a plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Stream")]
pub(crate) enum PageStream {
    /// Pages that the host writes.
    Host = 0,
    /// Pages that garbage collection moves; see [`RelocationFrontier`].
    Relocated = 1,
    /// Mapping pages, where the map is on flash.
    Mapping = 2,
}

/// The open blocks of a plane that take relocated pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum RelocationFrontier {
    /// The open blocks that the host fills.
    Shared,
    /// One separate block.
    Single,
    /// One separate block for each host stream.
    PerStream,
}

impl RelocationFrontier {
    /// Return the frontier of a device with `write_streams` host streams. `separate`: relocated pages of all
    /// streams share one block.
    pub(crate) fn for_streams(separate: bool, write_streams: u8) -> RelocationFrontier {
        match (separate, write_streams) {
            (true, _) => RelocationFrontier::Single,
            (false, 0 | 1) => RelocationFrontier::Shared,
            (false, _) => RelocationFrontier::PerStream,
        }
    }

    /// Return how many open blocks of a plane take relocated pages only.
    pub(crate) fn open_blocks(self, hosts: u8) -> u8 {
        match self {
            RelocationFrontier::Shared => 0,
            RelocationFrontier::Single => 1,
            RelocationFrontier::PerStream => hosts,
        }
    }
}

/// The streams that have open blocks of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Streams {
    /// Number of host streams, at least 1.
    pub(crate) hosts: u8,
    /// Pages of an SLC cache block; host stream 1 is then the SLC cache.
    pub(crate) slc_pages: Option<u32>,
    pub(crate) relocation: RelocationFrontier,
    /// The map is on flash; mapping pages never share a block.
    pub(crate) mapping: bool,
}

/// The state of every block, as the FTL records it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Blocks {
    geometry: Geometry,
    /// Per page: one bit, set while it holds the newest version of a logical page, or is still to be
    /// programmed in an open block.
    valid: Vec<u64>,
    /// Per block: the number of its valid pages, plus [`NOT_CLOSED`].
    counts: Vec<u16>,
    /// Per block: erase count.
    wear: Vec<u32>,
    /// Per block: the number of the fill that closed it.
    closed_at: Vec<u64>,
    /// Per block: the number of its usable pages, which are not retired.
    usable: Vec<u16>,
    /// Blocks filled so far: a clock for age-based policies.
    fills: u64,
    /// Erased blocks of each plane, and their number.
    free: FreePool,
    free_in: Vec<u32>,
    /// Per plane and role: the block being filled.
    open: Vec<OpenBlock>,
    /// Open blocks per plane, and the selected role of each kind of page.
    streams: usize,
    kinds: [u8; 3],
    /// Number of host streams, and the destination of relocated pages.
    hosts: u8,
    relocation: RelocationFrontier,
    slc_pages: Option<u32>,
    /// Per block: the role it was last opened for; empty if the host has one stream.
    role_of: Vec<u8>,
    /// Erased blocks of all planes, and their usable pages.
    free_blocks: u32,
    free_pages: u32,
    /// Usable pages of all blocks that are not retired.
    usable_pages: u32,
    /// The fewest usable pages of any block.
    least_usable: u32,
    /// Retired pages, one bit each; empty while no page is retired.
    retired: Vec<u64>,
    /// Per role: pages left in the open blocks of all planes.
    open_pages: [u32; KINDS_MAX],
    /// Bit mask of the roles that hold cold data; `None` unless blocks are chosen by their bit errors.
    cold: Option<u32>,
    /// Number of times a block was freed or opened.
    #[serde(skip)]
    supply_changes: u64,
}

/// Added to the count of a block that is not closed. A closed block is filled with data and was not chosen as
/// a victim since. One comparison then finds the smallest count among closed blocks.
pub(crate) const NOT_CLOSED: u16 = 1 << 15;

impl Blocks {
    /// Create the accounting with every block erased and free, except those in `bad`, which is sorted. A
    /// block in use has at least `least_usable` usable pages.
    pub(crate) fn new(
        geometry: Geometry,
        streams_config: Streams,
        order: FreeOrder,
        bad: &[BlockIdx],
        least_usable: u32,
    ) -> Blocks {
        let planes = geometry.shape().planes;
        let frontiers = streams_config.relocation.open_blocks(streams_config.hosts);
        let relocated = if frontiers > 0 { streams_config.hosts } else { 0 };
        let last = streams_config.hosts - 1 + frontiers;
        let mapping = last + u8::from(streams_config.mapping);
        let streams = usize::from(mapping) + 1;
        let good = |plane| {
            let blocks = geometry.blocks_of(PlaneIdx(plane));
            blocks.filter(|block| bad.binary_search(block).is_err())
        };
        let numbers = |plane| good(plane).map(|block| block.0).collect();
        let usable = geometry.data_pages() as u16;
        let free_blocks = geometry.blocks() - bad.len() as u32;
        let pages = free_blocks * geometry.data_pages();
        let free_in = (0..planes).map(|plane| good(plane).count() as u32).collect();
        Blocks {
            geometry,
            valid: huge::filled(geometry.pages().div_ceil(64) as usize, 0),
            counts: huge::filled(geometry.blocks() as usize, NOT_CLOSED),
            wear: vec![0; geometry.blocks() as usize],
            closed_at: vec![0; geometry.blocks() as usize],
            usable: vec![usable; geometry.blocks() as usize],
            fills: 0,
            free: FreePool::new(order, (0..planes).map(numbers)),
            free_in,
            open: vec![OpenBlock::default(); planes as usize * streams],
            streams,
            kinds: [0, relocated, mapping],
            hosts: streams_config.hosts,
            relocation: streams_config.relocation,
            slc_pages: streams_config.slc_pages,
            role_of: vec![0; if streams_config.hosts > 1 { geometry.blocks() as usize } else { 0 }],
            free_blocks,
            free_pages: pages,
            usable_pages: pages,
            least_usable,
            retired: Vec::new(),
            open_pages: [0; KINDS_MAX],
            cold: (order == FreeOrder::FewestErrors).then_some(match streams_config.relocation {
                RelocationFrontier::Single => 1 << streams_config.hosts,
                RelocationFrontier::Shared | RelocationFrontier::PerStream => 0,
            }),
            supply_changes: 0,
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Return the role of the open block that takes pages of `stream`.
    #[inline]
    pub(crate) fn kind(&self, stream: PageStream) -> usize {
        usize::from(self.kinds[stream as usize])
    }

    /// Return the number of erased blocks of `plane`, open ones excluded.
    #[inline]
    pub(crate) fn free_in(&self, plane: PlaneIdx) -> usize {
        self.free_in[plane.0 as usize] as usize
    }

    #[inline]
    fn open_of(&self, plane: PlaneIdx, stream: PageStream) -> usize {
        plane.0 as usize * self.streams + self.kind(stream)
    }

    /// Return whether the open block of `stream` on `plane` has a free page.
    #[inline]
    pub(crate) fn has_open_page(&self, plane: PlaneIdx, stream: PageStream) -> bool {
        !self.open[self.open_of(plane, stream)].is_full()
    }

    /// Return whether `plane` can take a page of `stream` at all.
    #[inline]
    pub(crate) fn has_page(&self, plane: PlaneIdx, stream: PageStream) -> bool {
        self.has_open_page(plane, stream) || self.free_in(plane) > 0
    }

    /// Return the first usable page of `block`.
    pub(crate) fn first_usable(&self, block: BlockIdx) -> Ppn {
        let first = self.geometry.first_page(block).0;
        if self.retired.is_empty() {
            return Ppn(first);
        }
        Ppn(first_usable(&self.retired, first, first + self.geometry.data_pages()))
    }

    /// Close the full `block`: policies may choose it from now on, unless it holds mapping pages or is an SLC
    /// cache block.
    pub(crate) fn close(&mut self, block: BlockIdx, stream: PageStream) {
        self.fills += 1;
        self.closed_at[block.0 as usize] = self.fills;
        if stream != PageStream::Mapping && !self.is_cache(block) {
            self.counts[block.0 as usize] &= !NOT_CLOSED;
        }
    }

    /// Mark the first host stream, and its relocated pages, as cold.
    pub(crate) fn set_first_cold(&mut self) {
        let relocated = match self.relocation {
            RelocationFrontier::PerStream => 1 << self.hosts,
            RelocationFrontier::Shared | RelocationFrontier::Single => 0,
        };
        self.cold = self.cold.map(|cold| cold | 1 | relocated);
    }

    /// Return the erase count of `block`.
    pub(crate) fn wear(&self, block: BlockIdx) -> u32 {
        self.wear[block.0 as usize]
    }

    /// Return the number of blocks filled since `block` was.
    pub(crate) fn age(&self, block: BlockIdx) -> u64 {
        self.fills - self.closed_at[block.0 as usize]
    }

    /// Return the erased `block` to the free pool.
    pub(crate) fn set_free(&mut self, block: BlockIdx) {
        assert_eq!(self.valid_count(block), 0, "an erased block holds no valid page: {block:?}");
        let wear = self.wear[block.0 as usize] + 1;
        self.set_free_with(block, wear);
    }

    /// Like [`Blocks::set_free`], with `key` as the order in the free pool.
    pub(crate) fn set_free_with(&mut self, block: BlockIdx, key: u32) {
        self.wear[block.0 as usize] += 1;
        let plane = self.geometry.plane_of(block).0;
        self.free_in[plane as usize] += 1;
        self.free.put_worn(plane, block.0, key);
        self.free_blocks += 1;
        self.free_pages += self.usable(block);
        self.supply_changes += 1;
    }

    /// Retire `block`, which was erased or failed to erase.
    pub(crate) fn retire_block(&mut self, block: BlockIdx) {
        assert_eq!(self.valid_count(block), 0, "a retired block holds no valid page: {block:?}");
        self.wear[block.0 as usize] += 1;
        self.usable_pages -= u32::from(std::mem::take(&mut self.usable[block.0 as usize]));
    }

    /// Retire `block`, which was never used and turns out to be bad.
    pub(crate) fn retire_unused(&mut self, block: BlockIdx) {
        self.usable_pages -= u32::from(std::mem::take(&mut self.usable[block.0 as usize]));
    }

    /// Retire `page`, whose block was erased and is not free yet.
    pub(crate) fn retire_page(&mut self, page: PageAddress) {
        if self.retired.is_empty() {
            self.retired = vec![0; self.geometry.pages().div_ceil(64) as usize];
        }
        bits::insert(&mut self.retired, page.page.0 as usize);
        self.usable[page.block.0 as usize] -= 1;
        self.usable_pages -= 1;
    }

    /// Return whether `page` was retired individually.
    pub(crate) fn is_retired(&self, page: Ppn) -> bool {
        !self.retired.is_empty() && bits::has(&self.retired, page.0 as usize)
    }

    /// Return the number of usable pages of `block`.
    pub(crate) fn usable(&self, block: BlockIdx) -> u32 {
        u32::from(self.usable[block.0 as usize])
    }
}

/// Return the first page in `next..end` that is not retired; `end` if there is no such page.
fn first_usable(retired: &[u64], next: u32, end: u32) -> u32 {
    (next..end).find(|page| !bits::has(retired, *page as usize)).unwrap_or(end)
}
