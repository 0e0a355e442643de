//! Which pages are valid, which blocks are free, open or closed: the books of a page-mapped FTL.
//!
//! Flat arrays: one bit a page, two bytes a block for what changes with every page (`valid.rs`), and
//! the rest apart, so that the books of a large device stay in the cache. Which pages are left for whom
//! is in `room.rs`.

mod apart;
mod open;
mod restore;
mod room;
mod valid;

pub(crate) use apart::{CACHE, WRITE_STREAMS_MAX};
pub(crate) use restore::Use;

use apart::KINDS_MAX;
use open::Open;
pub(crate) use open::Taken;

use crate::collections::{bits, huge};
use crate::flash::geometry::{BlockIdx, Geometry, Place, PlaneIdx, Ppn};
use crate::pool::free::{FreeOrder, FreePool};

/// Into which open block of a plane a page goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Stream {
    /// Pages that the host writes.
    Host = 0,
    /// Pages that garbage collection moves; see [`RelocationFrontier`].
    Relocated = 1,
    /// Pages of the map, where it is kept on flash.
    Mapping = 2,
}

/// Which open blocks of a plane take relocated pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum RelocationFrontier {
    /// Those that the host fills.
    Shared,
    /// One of their own.
    Single,
    /// One of their own for each stream of the host.
    PerStream,
}

impl RelocationFrontier {
    /// Of a device with so many streams of the host, which separates relocated pages from all of them or not.
    pub(crate) fn of(separate: bool, write_streams: u8) -> RelocationFrontier {
        match (separate, write_streams) {
            (true, _) => RelocationFrontier::Single,
            (false, 0 | 1) => RelocationFrontier::Shared,
            (false, _) => RelocationFrontier::PerStream,
        }
    }

    /// How many open blocks of a plane it is, beside those of the host's streams.
    pub(crate) fn open_blocks(self, hosts: u8) -> u8 {
        match self {
            RelocationFrontier::Shared => 0,
            RelocationFrontier::Single => 1,
            RelocationFrontier::PerStream => hosts,
        }
    }
}

/// Which streams have open blocks of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Streams {
    /// Those of the host, at least 1.
    pub(crate) hosts: u8,
    /// The second of them is an SLC cache, whose blocks hold so many pages.
    pub(crate) slc_pages: Option<u32>,
    pub(crate) relocation: RelocationFrontier,
    /// There are mapping pages, which never share.
    pub(crate) mapping: bool,
}

/// The state of every block, as the FTL keeps it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Blocks {
    geometry: Geometry,
    /// Per page: one bit, set while it holds the newest version of a logical page; and in an open block
    /// while it is still to be programmed with one.
    valid: Vec<u64>,
    /// Per block: how many of its pages are valid, and [`NOT_CLOSED`] on top.
    counts: Vec<u16>,
    /// Per block: how often it was erased.
    wear: Vec<u32>,
    /// Per block: the number of the fill that closed it.
    closed_at: Vec<u64>,
    /// Per block: how many of its pages take data.
    usable: Vec<u16>,
    /// Blocks filled so far: a clock for policies that ask for age.
    fills: u64,
    /// Erased blocks of each plane, and how many there are.
    free: FreePool,
    free_in: Vec<u32>,
    /// Per plane and stream: the block being filled.
    open: Vec<Open>,
    /// Open blocks of a plane, and which of them each stream has.
    streams: usize,
    kinds: [u8; 3],
    /// Streams of the host, and where relocated pages go.
    hosts: u8,
    relocation: RelocationFrontier,
    slc_pages: Option<u32>,
    /// Per block: which of them it was opened for last; empty where the host has one.
    role_of: Vec<u8>,
    /// Erased blocks of all planes, and their pages that take data.
    free_blocks: u32,
    free_pages: u32,
    /// Pages that take data in all blocks that are not retired.
    usable_pages: u32,
    /// The fewest pages that take data in any block.
    least_usable: u32,
    /// Retired pages, one bit each; empty while there is none.
    retired: Vec<u64>,
    /// Per kind: pages left in the open blocks of all planes.
    open_pages: [u32; KINDS_MAX],
    /// Of these kinds, a bit each, is data that is seldom overwritten, where that matters.
    cold: Option<u32>,
}

/// Added to the count of a block that is not closed: filled with data, and not chosen as a victim
/// since. So one comparison finds the smallest count among the closed ones.
pub(crate) const NOT_CLOSED: u16 = 1 << 15;

impl Blocks {
    /// Every block erased and free, but the `bad` ones, which are in order. Of a block that is used,
    /// at least `least_usable` pages take data.
    pub(crate) fn new(
        geometry: Geometry,
        of: Streams,
        order: FreeOrder,
        bad: &[BlockIdx],
        least_usable: u32,
    ) -> Blocks {
        let planes = geometry.shape().planes;
        let frontiers = of.relocation.open_blocks(of.hosts);
        let relocated = if frontiers > 0 { of.hosts } else { 0 };
        let last = of.hosts - 1 + frontiers;
        let mapping = last + u8::from(of.mapping);
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
            open: vec![Open::default(); planes as usize * streams],
            streams,
            kinds: [0, relocated, mapping],
            hosts: of.hosts,
            relocation: of.relocation,
            slc_pages: of.slc_pages,
            role_of: vec![0; if of.hosts > 1 { geometry.blocks() as usize } else { 0 }],
            free_blocks,
            free_pages: pages,
            usable_pages: pages,
            least_usable,
            retired: Vec::new(),
            open_pages: [0; KINDS_MAX],
            cold: (order == FreeOrder::FewestErrors).then_some(match of.relocation {
                RelocationFrontier::Single => 1 << of.hosts,
                RelocationFrontier::Shared | RelocationFrontier::PerStream => 0,
            }),
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Which of a plane's open blocks is that of `stream`.
    #[inline]
    pub(crate) fn kind(&self, stream: Stream) -> usize {
        usize::from(self.kinds[stream as usize])
    }

    /// Erased blocks of `plane`, the open ones not counted.
    #[inline]
    pub(crate) fn free_in(&self, plane: PlaneIdx) -> usize {
        self.free_in[plane.0 as usize] as usize
    }

    #[inline]
    fn open_of(&self, plane: PlaneIdx, stream: Stream) -> usize {
        plane.0 as usize * self.streams + self.kind(stream)
    }

    /// Whether `plane` has a page left in the open block of `stream`.
    #[inline]
    pub(crate) fn has_open_page(&self, plane: PlaneIdx, stream: Stream) -> bool {
        !self.open[self.open_of(plane, stream)].is_full()
    }

    /// Whether `plane` can take a page of `stream` at all.
    #[inline]
    pub(crate) fn has_page(&self, plane: PlaneIdx, stream: Stream) -> bool {
        self.has_open_page(plane, stream) || self.free_in(plane) > 0
    }

    /// The first page of `block` that takes data.
    pub(crate) fn first_usable(&self, block: BlockIdx) -> Ppn {
        let first = self.geometry.first_page(block).0;
        if self.retired.is_empty() {
            return Ppn(first);
        }
        Ppn(first_usable(&self.retired, first, first + self.geometry.data_pages()))
    }

    /// `block` is full: it is closed from now on, unless it holds mapping pages.
    pub(crate) fn close(&mut self, block: BlockIdx, stream: Stream) {
        self.fills += 1;
        self.closed_at[block.0 as usize] = self.fills;
        if stream != Stream::Mapping && !self.is_cache(block) {
            self.counts[block.0 as usize] &= !NOT_CLOSED;
        }
    }

    /// The first stream of the host has what is seldom overwritten.
    pub(crate) fn set_first_cold(&mut self) {
        let relocated = match self.relocation {
            RelocationFrontier::PerStream => 1 << self.hosts,
            RelocationFrontier::Shared | RelocationFrontier::Single => 0,
        };
        self.cold = self.cold.map(|cold| cold | 1 | relocated);
    }

    /// How often `block` was erased.
    pub(crate) fn wear(&self, block: BlockIdx) -> u32 {
        self.wear[block.0 as usize]
    }

    /// How many blocks were filled since `block` was.
    pub(crate) fn age(&self, block: BlockIdx) -> u64 {
        self.fills - self.closed_at[block.0 as usize]
    }

    /// `block` was erased: it is free again.
    pub(crate) fn set_free(&mut self, block: BlockIdx) {
        assert_eq!(self.valid_count(block), 0, "an erased block holds no valid page: {block:?}");
        let wear = self.wear[block.0 as usize] + 1;
        self.set_free_with(block, wear);
    }

    /// [`Blocks::set_free`] where the next of those that are free is found by `key`.
    pub(crate) fn set_free_with(&mut self, block: BlockIdx, key: u32) {
        self.wear[block.0 as usize] += 1;
        let plane = self.geometry.plane_of(block).0;
        self.free_in[plane as usize] += 1;
        self.free.put_worn(plane, block.0, key);
        self.free_blocks += 1;
        self.free_pages += self.usable(block);
    }

    /// `block`, which was erased or could not be, is not used any more.
    pub(crate) fn retire_block(&mut self, block: BlockIdx) {
        assert_eq!(self.valid_count(block), 0, "a retired block holds no valid page: {block:?}");
        self.wear[block.0 as usize] += 1;
        self.usable_pages -= u32::from(std::mem::take(&mut self.usable[block.0 as usize]));
    }

    /// `block`, of which nothing is used yet, turns out to be bad.
    pub(crate) fn found_bad(&mut self, block: BlockIdx) {
        self.usable_pages -= u32::from(std::mem::take(&mut self.usable[block.0 as usize]));
    }

    /// `page`, whose block was erased and is not free yet, is not used any more.
    pub(crate) fn retire_page(&mut self, page: Place) {
        if self.retired.is_empty() {
            self.retired = vec![0; self.geometry.pages().div_ceil(64) as usize];
        }
        bits::insert(&mut self.retired, page.page.0 as usize);
        self.usable[page.block.0 as usize] -= 1;
        self.usable_pages -= 1;
    }

    /// Whether `page` was retired by itself.
    pub(crate) fn is_retired(&self, page: Ppn) -> bool {
        !self.retired.is_empty() && bits::has(&self.retired, page.0 as usize)
    }

    /// How many pages of `block` take data.
    pub(crate) fn usable(&self, block: BlockIdx) -> u32 {
        u32::from(self.usable[block.0 as usize])
    }
}

/// The first page from `next` on and before `end` that is not retired; `end` where there is none.
fn first_usable(retired: &[u64], next: u32, end: u32) -> u32 {
    (next..end).find(|page| !bits::has(retired, *page as usize)).unwrap_or(end)
}
