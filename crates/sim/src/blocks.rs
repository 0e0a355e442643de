//! Which pages are valid, which blocks are free, open or closed: the books of a page-mapped FTL.
//!
//! Flat arrays with one bit a page and one small record a block, so that an update touches one cache
//! line of each; the valid pages of a victim are found 64 at a time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::geometry::{BlockIdx, DieIdx, Geometry, Place, Ppn};

/// Into which open block of a die a page goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Stream {
    /// Pages that the host writes.
    Host = 0,
    /// Pages that garbage collection moves; the same as [`Stream::Host`] unless separated.
    Relocated = 1,
    /// Pages of the map, where it is kept on flash.
    Mapping = 2,
}

/// Which streams have open blocks of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Streams {
    /// Relocated pages do not share those of the host.
    pub(crate) separate: bool,
    /// There are mapping pages, which never share.
    pub(crate) mapping: bool,
}

/// Which block is filled next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum FreeOrder {
    /// The one erased longest ago.
    Oldest,
    /// The one erased least often: dynamic wear levelling.
    LeastWorn,
}

/// The state of every block, as the FTL keeps it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Blocks {
    geometry: Geometry,
    /// Per page: one bit, set while it holds the newest version of a logical page.
    valid: Vec<u64>,
    blocks: Vec<Block>,
    /// Per block: how many of its pages take data.
    usable: Vec<u16>,
    /// Blocks filled so far: a clock for policies that ask for age.
    fills: u64,
    /// Per die: erased blocks.
    free: Vec<FreeList>,
    /// Per die and stream: the block being filled.
    open: Vec<Open>,
    /// Open blocks of a die, and which of them each stream has.
    streams: usize,
    kinds: [u8; 3],
    /// Erased blocks of all dies, and their pages that take data.
    free_blocks: u32,
    free_pages: u32,
    /// Pages that take data in all blocks that are not retired.
    usable_pages: u32,
    /// The fewest pages that take data in any block.
    least_usable: u32,
    /// Retired pages, one bit each; empty while there is none.
    retired: Vec<u64>,
    /// Per kind: pages left in the open blocks of all dies.
    open_pages: [u32; 3],
}

#[derive(Clone, Copy, Default, Debug, serde::Serialize, serde::Deserialize)]
struct Block {
    /// How many of its pages are valid.
    valid_count: u16,
    /// Filled and not chosen as a victim since.
    closed: bool,
    /// How often it was erased.
    wear: u32,
    /// The number of the fill that closed it.
    closed_at: u64,
}

/// The next page of a block being filled and the first that takes no data; equal where there is
/// none.
#[derive(Clone, Copy, Default, Debug, serde::Serialize, serde::Deserialize)]
struct Open {
    next: u32,
    end: u32,
    block: u32,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
enum FreeList {
    Oldest(VecDeque<BlockIdx>),
    LeastWorn(BinaryHeap<Reverse<(u32, u32)>>),
}

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
        let dies = geometry.shape().dies;
        let relocated = u8::from(of.separate);
        let mapping = relocated + u8::from(of.mapping);
        let streams = usize::from(mapping) + 1;
        let good = |die| {
            let blocks = geometry.blocks_of(DieIdx(die));
            blocks.filter(|block| bad.binary_search(block).is_err())
        };
        let list = |die| match order {
            FreeOrder::Oldest => FreeList::Oldest(good(die).collect()),
            FreeOrder::LeastWorn => {
                FreeList::LeastWorn(good(die).map(|block| Reverse((0, block.0))).collect())
            }
        };
        let usable = geometry.data_pages() as u16;
        let free_blocks = geometry.blocks() - bad.len() as u32;
        let pages = free_blocks * geometry.data_pages();
        Blocks {
            geometry,
            valid: vec![0; geometry.pages().div_ceil(64) as usize],
            blocks: vec![Block::default(); geometry.blocks() as usize],
            usable: vec![usable; geometry.blocks() as usize],
            fills: 0,
            free: (0..dies).map(list).collect(),
            open: vec![Open::default(); dies as usize * streams],
            streams,
            kinds: [0, relocated, mapping],
            free_blocks,
            free_pages: pages,
            usable_pages: pages,
            least_usable,
            retired: Vec::new(),
            open_pages: [0; 3],
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Erased blocks of all dies.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.free_blocks
    }

    /// Pages that relocation can still take, on all dies.
    #[inline]
    pub(crate) fn pages_for_relocation(&self) -> u32 {
        self.free_pages + self.open_pages[self.kind(Stream::Relocated)]
    }

    /// Whether so many relocated and so many mapping pages find room together. Each stream fills
    /// blocks of its own.
    pub(crate) fn fits(&self, relocated: u32, mapping: u32) -> bool {
        self.fits_with(relocated, mapping, self.free_blocks, &self.open_pages)
    }

    /// The same, once `stream` has taken a page, and opened a block for it or not.
    pub(crate) fn fits_after(
        &self,
        stream: Stream,
        opens: bool,
        relocated: u32,
        mapping: u32,
    ) -> bool {
        let Some(free) = self.free_blocks.checked_sub(u32::from(opens)) else {
            return false;
        };
        let mut open_pages = self.open_pages;
        let left = &mut open_pages[self.kind(stream)];
        *left = (*left + u32::from(opens) * self.least_usable).saturating_sub(1);
        self.fits_with(relocated, mapping, free, &open_pages)
    }

    fn fits_with(&self, relocated: u32, mapping: u32, free: u32, open_pages: &[u32; 3]) -> bool {
        let blocks = |stream, pages: u32| {
            let beyond = pages.saturating_sub(open_pages[self.kind(stream)]);
            beyond.div_ceil(self.least_usable)
        };
        blocks(Stream::Relocated, relocated) + blocks(Stream::Mapping, mapping) <= free
    }

    /// How many of these a host page takes away: itself, unless relocated pages have blocks of their
    /// own; then nothing, or the block that it opens.
    #[inline]
    pub(crate) fn cost_of_host_page(&self, opens: bool) -> u32 {
        match (self.kinds[Stream::Relocated as usize], opens) {
            (0, _) => 1,
            (_, false) => 0,
            (_, true) => self.geometry.data_pages(),
        }
    }

    /// Which of a die's open blocks is that of `stream`.
    #[inline]
    fn kind(&self, stream: Stream) -> usize {
        usize::from(self.kinds[stream as usize])
    }

    /// Erased blocks of `die`, the open ones not counted.
    #[inline]
    pub(crate) fn free_in(&self, die: DieIdx) -> usize {
        match &self.free[die.0 as usize] {
            FreeList::Oldest(list) => list.len(),
            FreeList::LeastWorn(heap) => heap.len(),
        }
    }

    #[inline]
    fn open_of(&self, die: DieIdx, stream: Stream) -> usize {
        if self.streams == 1 {
            die.0 as usize
        } else {
            die.0 as usize * self.streams + self.kind(stream)
        }
    }

    /// Whether `die` has a page left in the open block of `stream`.
    #[inline]
    pub(crate) fn has_open_page(&self, die: DieIdx, stream: Stream) -> bool {
        let open = &self.open[self.open_of(die, stream)];
        open.next != open.end
    }

    /// Whether `die` can take a page of `stream` at all.
    #[inline]
    pub(crate) fn has_page(&self, die: DieIdx, stream: Stream) -> bool {
        self.has_open_page(die, stream) || self.free_in(die) > 0
    }

    /// Take the next page of `die`. Where it is its block's last, [`Blocks::close_if_full`] must be
    /// called once the page is accounted for.
    ///
    /// # Panics
    /// Where the die has none.
    #[inline]
    pub(crate) fn take_page(&mut self, die: DieIdx, stream: Stream) -> Place {
        let index = self.open_of(die, stream);
        let kind = if self.streams == 1 { 0 } else { self.kind(stream) };
        if self.open[index].next == self.open[index].end {
            self.open_pages[kind] += self.open_block(die, index);
        }
        self.open_pages[kind] -= 1;
        let open = &mut self.open[index];
        let page = Ppn(open.next);
        open.next += 1;
        if !self.retired.is_empty() {
            open.next = first_usable(&self.retired, open.next, open.end);
        }
        let open = self.open[index];
        Place { page, block: BlockIdx(open.block), die }
    }

    #[cold]
    fn open_block(&mut self, die: DieIdx, index: usize) -> u32 {
        let block = match &mut self.free[die.0 as usize] {
            FreeList::Oldest(list) => list.pop_front(),
            FreeList::LeastWorn(heap) => heap.pop().map(|Reverse((_, block))| BlockIdx(block)),
        };
        let block = block.expect("a die that has a page");
        let usable = self.usable(block);
        self.free_blocks -= 1;
        self.free_pages -= usable;
        let end = self.geometry.first_page(block).0 + self.geometry.data_pages();
        self.open[index] = Open { next: self.first_usable(block).0, end, block: block.0 };
        usable
    }

    /// The first page of `block` that takes data.
    pub(crate) fn first_usable(&self, block: BlockIdx) -> Ppn {
        let first = self.geometry.first_page(block).0;
        if self.retired.is_empty() {
            return Ppn(first);
        }
        Ppn(first_usable(&self.retired, first, first + self.geometry.data_pages()))
    }

    /// The block of the page taken last, where that page filled it up; it is closed from now on.
    #[inline]
    pub(crate) fn close_if_full(&mut self, die: DieIdx, stream: Stream) -> Option<BlockIdx> {
        let index = self.open_of(die, stream);
        let open = self.open[index];
        if open.next != open.end {
            return None;
        }
        self.fills += 1;
        let block = &mut self.blocks[open.block as usize];
        block.closed_at = self.fills;
        block.closed = true;
        Some(BlockIdx(open.block))
    }

    /// Whether collecting the closed blocks of `die` would gain anything. Mostly answered by the
    /// first block that is looked at.
    pub(crate) fn has_reclaimable(&self, die: DieIdx) -> bool {
        self.geometry.blocks_of(die).any(|block| {
            let books = &self.blocks[block.0 as usize];
            books.closed && books.valid_count < self.usable[block.0 as usize]
        })
    }

    /// Whether `block` was filled and not chosen as a victim since.
    pub(crate) fn is_closed(&self, block: BlockIdx) -> bool {
        self.blocks[block.0 as usize].closed
    }

    #[inline]
    pub(crate) fn mark_valid(&mut self, at: Place) {
        let page = at.page.0;
        self.valid[page as usize / 64] |= 1 << (page % 64);
        self.blocks[at.block.0 as usize].valid_count += 1;
    }

    /// Returns how many pages of its block are valid now, and whether the block is closed.
    #[inline]
    pub(crate) fn mark_invalid(&mut self, at: Place) -> (u16, bool) {
        let page = at.page.0;
        self.valid[page as usize / 64] &= !(1 << (page % 64));
        let block = &mut self.blocks[at.block.0 as usize];
        block.valid_count -= 1;
        (block.valid_count, block.closed)
    }

    #[cfg(test)]
    pub(crate) fn is_valid(&self, page: Ppn) -> bool {
        self.valid[page.0 as usize / 64] >> (page.0 % 64) & 1 == 1
    }

    /// `block` was chosen as a victim: it is closed no more.
    pub(crate) fn begin_collection(&mut self, block: BlockIdx) {
        self.blocks[block.0 as usize].closed = false;
    }

    /// The first valid page of `block` at or after `from`.
    #[inline]
    pub(crate) fn next_valid(&self, block: BlockIdx, from: Ppn) -> Option<Ppn> {
        let end = self.geometry.first_page(block).0 + self.geometry.shape().pages_per_block;
        let mut page = from.0;
        while page < end {
            let bits = self.valid[page as usize / 64] >> (page % 64);
            if bits != 0 {
                let found = page + bits.trailing_zeros();
                return (found < end).then_some(Ppn(found));
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }

    /// No page of `block` is valid any more.
    pub(crate) fn clear(&mut self, block: BlockIdx) {
        let first = self.geometry.first_page(block).0 as usize;
        let end = first + self.geometry.shape().pages_per_block as usize;
        crate::bits::clear(&mut self.valid, first, end);
        self.blocks[block.0 as usize].valid_count = 0;
    }

    /// The valid pages of `block`, in order.
    pub(crate) fn valid_pages(&self, block: BlockIdx) -> impl Iterator<Item = Ppn> + '_ {
        let next = move |after: Option<Ppn>| {
            let from = after.map_or(self.geometry.first_page(block), |page| Ppn(page.0 + 1));
            self.next_valid(block, from)
        };
        std::iter::successors(next(None), move |page| next(Some(*page)))
    }

    #[inline]
    pub(crate) fn valid_count(&self, block: BlockIdx) -> u16 {
        self.blocks[block.0 as usize].valid_count
    }

    /// How often `block` was erased.
    pub(crate) fn wear(&self, block: BlockIdx) -> u32 {
        self.blocks[block.0 as usize].wear
    }

    /// How many blocks were filled since `block` was.
    pub(crate) fn age(&self, block: BlockIdx) -> u64 {
        self.fills - self.blocks[block.0 as usize].closed_at
    }

    /// What is known of `at` will be asked for soon.
    #[inline]
    pub(crate) fn prefetch(&self, at: Place) {
        crate::huge::prefetch(&self.valid, at.page.0 as usize / 64);
        crate::huge::prefetch(&self.blocks, at.block.0 as usize);
    }

    /// `block` was erased: it is free again.
    pub(crate) fn set_free(&mut self, block: BlockIdx) {
        let books = &mut self.blocks[block.0 as usize];
        assert_eq!(books.valid_count, 0, "an erased block holds no valid page: {block:?}");
        books.wear += 1;
        let wear = books.wear;
        match &mut self.free[self.geometry.die_of(block).0 as usize] {
            FreeList::Oldest(list) => list.push_back(block),
            FreeList::LeastWorn(heap) => heap.push(Reverse((wear, block.0))),
        }
        self.free_blocks += 1;
        self.free_pages += self.usable(block);
    }

    /// `block`, which was erased or could not be, is not used any more.
    pub(crate) fn retire_block(&mut self, block: BlockIdx) {
        let books = &mut self.blocks[block.0 as usize];
        assert_eq!(books.valid_count, 0, "a retired block holds no valid page: {block:?}");
        books.wear += 1;
        self.usable_pages -= u32::from(std::mem::take(&mut self.usable[block.0 as usize]));
    }

    /// `page`, whose block was erased and is not free yet, is not used any more.
    pub(crate) fn retire_page(&mut self, page: Place) {
        if self.retired.is_empty() {
            self.retired = vec![0; self.geometry.pages().div_ceil(64) as usize];
        }
        self.retired[page.page.0 as usize / 64] |= 1 << (page.page.0 % 64);
        self.usable[page.block.0 as usize] -= 1;
        self.usable_pages -= 1;
    }

    /// Whether `page` was retired by itself.
    pub(crate) fn is_retired(&self, page: Ppn) -> bool {
        !self.retired.is_empty() && self.retired[page.0 as usize / 64] >> (page.0 % 64) & 1 == 1
    }

    /// How many pages of `block` take data.
    pub(crate) fn usable(&self, block: BlockIdx) -> u32 {
        u32::from(self.usable[block.0 as usize])
    }

    /// Pages that take data in all blocks that are not retired.
    pub(crate) fn usable_pages(&self) -> u32 {
        self.usable_pages
    }
}

/// The first page from `next` on and before `end` that is not retired; `end` where there is none.
fn first_usable(retired: &[u64], next: u32, end: u32) -> u32 {
    (next..end).find(|page| retired[*page as usize / 64] >> (page % 64) & 1 == 0).unwrap_or(end)
}
