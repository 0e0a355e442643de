//! Block accounting of a page-mapped FTL: which pages are valid, which blocks are free, open or closed.
//!
//! Flat arrays: one bit a page, two bytes a block for values that change with every page (`valid.rs`).
//! Everything else is stored separately, so that the arrays of a large device stay in the processor's cache.

mod valid;

use crate::collections::{bits, huge};
use crate::flash::fast_path::{AllFeatures, FastPath};
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

// Free pages left for relocated pages, for mapping pages, and so for the host.

impl Blocks {
    /// Return the usable pages of all blocks that are not retired.
    pub(crate) fn usable_pages(&self) -> u32 {
        self.usable_pages
    }

    /// Return the number of erased blocks of all planes.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.free_blocks
    }

    /// Return how many pages relocation can still take, on all planes.
    #[inline]
    pub(crate) fn pages_for_relocation(&self) -> u32 {
        self.free_pages + self.open_pages[self.kind(PageStream::Relocated)]
    }

    /// Return whether `relocated` and `mapping` pages fit together. Each stream fills blocks of its
    /// own.
    pub(crate) fn fits(&self, relocated: u32, mapping: u32) -> bool {
        self.fits_with(relocated, mapping, self.free_blocks, &self.open_pages)
    }

    /// Like [`Blocks::fits`], once `stream` has taken a page and, if `opens`, opened a block for it.
    pub(crate) fn fits_after(
        &self,
        stream: PageStream,
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

    fn fits_with(
        &self,
        relocated: u32,
        mapping: u32,
        free: u32,
        open_pages: &[u32; KINDS_MAX],
    ) -> bool {
        let blocks = |stream, pages: u32| {
            let beyond = pages.saturating_sub(open_pages[self.kind(stream)]);
            beyond.div_ceil(self.least_usable)
        };
        blocks(PageStream::Relocated, relocated) + blocks(PageStream::Mapping, mapping) <= free
    }

    /// Return how often a block was freed or opened.
    #[inline]
    pub(crate) fn supply_changes(&self) -> u64 {
        self.supply_changes
    }

    /// Return how many pages for relocation a host page consumes: one where relocated pages share the host's
    /// blocks. Otherwise none, or the whole block that it opens.
    #[inline]
    pub(crate) fn cost_of_host_page(&self, opens: bool) -> u32 {
        match (self.relocation, opens) {
            (RelocationFrontier::Shared, _) => 1,
            (_, false) => 0,
            (_, true) => self.geometry.data_pages(),
        }
    }
}

// The open blocks of a plane, and the allocation of their pages.

/// A block being filled: its next page, and the end of its usable pages. The two are equal when it is full.
#[derive(Clone, Copy, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Open")]
struct OpenBlock {
    next: u32,
    end: u32,
    block: u32,
}

impl OpenBlock {
    #[inline]
    fn is_full(self) -> bool {
        self.next == self.end
    }
}

/// An allocated page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocatedPage {
    pub(crate) address: PageAddress,
    /// The page fills its block.
    pub(crate) is_last: bool,
}

impl Blocks {
    /// Allocate the next page of `plane`, which is valid from now on. If it is the last of its block,
    /// [`Blocks::close`] must be called once the page is accounted for.
    ///
    /// # Panics
    /// If the plane has no page left.
    #[inline(always)]
    pub(crate) fn take_page(&mut self, plane: PlaneIdx, stream: PageStream) -> AllocatedPage {
        self.take_page_of::<AllFeatures>(plane, stream)
    }

    /// Like [`Blocks::take_page`], for a device of one make.
    #[inline(always)]
    pub(crate) fn take_page_of<M: FastPath>(
        &mut self,
        plane: PlaneIdx,
        stream: PageStream,
    ) -> AllocatedPage {
        let index = self.open_of(plane, stream);
        if self.open[index].is_full() {
            self.open_another(plane, stream);
        }
        let mut allocated = self.take_open(index, plane, stream);
        if !M::MINIMAL && !self.retired.is_empty() {
            allocated.is_last = self.pass_retired(plane, stream);
        }
        allocated
    }

    /// Allocate the next page of the block that `plane` has open for `stream`, on a device without retired
    /// pages.
    #[inline]
    pub(crate) fn take_open_page(&mut self, plane: PlaneIdx, stream: PageStream) -> AllocatedPage {
        self.take_open(self.open_of(plane, stream), plane, stream)
    }

    #[inline(always)]
    fn take_open(&mut self, index: usize, plane: PlaneIdx, stream: PageStream) -> AllocatedPage {
        self.open_pages[self.kind(stream)] -= 1;
        let open = &mut self.open[index];
        let page = Ppn(open.next);
        open.next += 1;
        let address = PageAddress { page, block: BlockIdx(open.block), plane };
        AllocatedPage { address, is_last: open.is_full() }
    }

    /// Return whether the next page of `stream` on `plane` continues a partly filled flash page.
    #[inline]
    pub(crate) fn has_open_flash_page(&self, plane: PlaneIdx, stream: PageStream) -> bool {
        let open = &self.open[self.open_of(plane, stream)];
        open.next != open.end && self.geometry.begun_in_flash_page(Ppn(open.next)) > 0
    }

    /// Return whether the flash page of `at` is partly filled, and so not programmed yet.
    pub(crate) fn is_in_open_flash_page(&self, at: PageAddress) -> bool {
        let first = at.plane.0 as usize * self.streams;
        let page = self.geometry.flash_page(at.page);
        self.open[first..first + self.streams].iter().any(|open| {
            let begun = self.geometry.begun_in_flash_page(Ppn(open.next)) > 0;
            begun && open.next != open.end && self.geometry.flash_page(Ppn(open.next)) == page
        })
    }

    /// Skip retired pages of the open block; returns whether it is then full.
    #[cold]
    fn pass_retired(&mut self, plane: PlaneIdx, stream: PageStream) -> bool {
        let index = self.open_of(plane, stream);
        let open = &mut self.open[index];
        open.next = first_usable(&self.retired, open.next, open.end);
        open.next == open.end
    }

    /// Open another block of `plane` for `stream`.
    ///
    /// # Panics
    /// If the plane has no free block.
    #[cold]
    pub(crate) fn open_another(&mut self, plane: PlaneIdx, stream: PageStream) {
        let index = self.open_of(plane, stream);
        self.open_pages[self.kind(stream)] += self.open_block(plane, index);
    }

    fn open_block(&mut self, plane: PlaneIdx, index: usize) -> u32 {
        let free = &mut self.free;
        let cold = self.cold.is_some_and(|cold| cold & 1 << (index % self.streams) != 0);
        let block = if cold { free.take_for_cold(plane.0) } else { free.take(plane.0) };
        let block = BlockIdx(block.expect("the plane has a free block"));
        let usable = self.usable(block);
        self.free_blocks -= 1;
        self.free_in[plane.0 as usize] -= 1;
        self.free_pages -= usable;
        self.supply_changes += 1;
        let pages = self.pages_of(index);
        let end = self.geometry.first_page(block).0 + pages.unwrap_or(self.geometry.data_pages());
        self.open[index] = OpenBlock { next: self.first_usable(block).0, end, block: block.0 };
        if let Some(role) = self.role_of.get_mut(block.0 as usize) {
            *role = (index % self.streams) as u8;
        }
        self.expect_valid(block, end);
        pages.unwrap_or(usable)
    }
}

// Recovery of the block accounting after a power loss.

/// The use of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockUse {
    /// Erased and free.
    Free,
    /// Open in this role; its next page is `next`.
    Open { role: u8, next: Ppn },
    /// Full; it was last opened in this role.
    Filled { role: u8 },
    /// Erased, but to be checked for worn pages before it is free.
    Erased,
    /// Retired.
    Bad,
}

impl Blocks {
    /// Reset the accounting to blocks with the given use and erase count. `keys` order the free blocks. The
    /// caller then sets which pages are valid, and then which blocks are closed.
    pub(crate) fn restore(&mut self, uses: &[BlockUse], wear: &[u32], keys: &[u32]) {
        self.free.clear();
        self.supply_changes += 1;
        self.free_in.fill(0);
        (self.free_blocks, self.free_pages) = (0, 0);
        for (block, used) in (0..).map(BlockIdx).zip(uses) {
            let at = block.0 as usize;
            self.wear[at] = wear[at];
            match *used {
                BlockUse::Free => self.restore_free(block, keys[at]),
                BlockUse::Erased | BlockUse::Bad => {}
                BlockUse::Filled { role } => {
                    self.role_of.get_mut(at).into_iter().for_each(|stream_role| *stream_role = role)
                }
                BlockUse::Open { role, next } => self.restore_open(block, role, next),
            }
        }
    }

    fn restore_free(&mut self, block: BlockIdx, key: u32) {
        let plane = self.geometry.plane_of(block).0;
        self.free_in[plane as usize] += 1;
        self.free.put_worn(plane, block.0, key);
        self.free_blocks += 1;
        self.free_pages += self.usable(block);
    }

    fn restore_open(&mut self, block: BlockIdx, role: u8, next: Ppn) {
        let plane = self.geometry.plane_of(block);
        let index = plane.0 as usize * self.streams + usize::from(role);
        let end = self.end_of(block, role).0;
        self.open[index] = OpenBlock { next: next.0, end, block: block.0 };
        self.role_of
            .get_mut(block.0 as usize)
            .into_iter()
            .for_each(|stream_role| *stream_role = role);
        let retired = self.expect_valid_from(next.0, end);
        self.counts[block.0 as usize] += (end - next.0 - retired) as u16;
        self.open_pages[usize::from(role)] += end - next.0 - retired;
    }

    /// Return the first usable page of `block` from `next` on, if it is opened in `role` and such a page
    /// exists.
    pub(crate) fn next_usable_page(&self, block: BlockIdx, role: u8, next: Ppn) -> Option<Ppn> {
        let end = self.end_of(block, role).0;
        let next = match self.retired.is_empty() {
            true => next.0,
            false => first_usable(&self.retired, next.0.min(end), end),
        };
        (next < end).then_some(Ppn(next))
    }

    /// Return the role of `block`, as far as it is recorded, and the number of its fill.
    pub(crate) fn label(&self, block: BlockIdx) -> (u8, u64) {
        let first = self.geometry.plane_of(block).0 as usize * self.streams;
        let open = &self.open[first..first + self.streams];
        let is_open = |open: &OpenBlock| open.block == block.0 && open.next != open.end;
        match open.iter().position(is_open) {
            Some(role) => (role as u8, self.fills + 1),
            None => (self.role_of(block), self.closed_at[block.0 as usize]),
        }
    }

    /// Return the end of the pages that take data in `block`, if it is opened in `role`.
    pub(crate) fn end_of(&self, block: BlockIdx, role: u8) -> Ppn {
        let pages = self.pages_of(usize::from(role)).unwrap_or(self.geometry.data_pages());
        Ppn(self.geometry.first_page(block).0 + pages)
    }

    /// Return the kind of page that an open block in `role` takes.
    pub(crate) fn stream_in(&self, role: u8, has_mapping: bool) -> PageStream {
        if has_mapping && usize::from(role) == self.kind(PageStream::Mapping) {
            PageStream::Mapping
        } else if role < self.hosts {
            PageStream::Host
        } else {
            PageStream::Relocated
        }
    }
}

// Several host write streams, each of which fills blocks of its own.
//
// ```text
// host stream   0        1        2         relocated pages                          mapping pages
// open block   [ ▓▓░ ]  [ ▓░░ ]  [ ▓▓▓ ]    [ ▓░░ ]  [ ▓▓░ ]  [ ▓░░ ] one a stream   [ ▓░░ ]
//                                           or [ ▓░░ ] one for those of all
// ```
//
// One host stream and one stream of relocated pages are selected at a time. The caller selects a stream
// before it allocates a page, so a device with one stream pays nothing.

/// Maximum number of write streams: more than drives with streams or placement handles offer.
pub(crate) const WRITE_STREAMS_MAX: u32 = 16;

/// The number of the host stream that is the SLC cache, on devices that have one.
pub(crate) const CACHE: u8 = 1;

/// Maximum number of open blocks of a plane: those of the host's streams and as many for relocated pages, or
/// one for relocated and one for mapping pages.
const KINDS_MAX: usize = 2 * WRITE_STREAMS_MAX as usize;

impl Blocks {
    /// Return the number of host streams.
    #[inline]
    pub(crate) fn write_streams(&self) -> u8 {
        self.hosts
    }

    /// Select the stream of the host pages that are allocated next.
    #[inline]
    pub(crate) fn select_stream(&mut self, stream: u8) {
        debug_assert!(stream < self.hosts, "the stream exists");
        self.kinds[PageStream::Host as usize] = stream;
    }

    /// Select the stream of the pages that are relocated from `block` next.
    #[inline]
    pub(crate) fn select_stream_of(&mut self, block: BlockIdx) {
        if self.relocation != RelocationFrontier::Single {
            self.kinds[PageStream::Relocated as usize] = self.relocation_role(block);
        }
    }

    /// Return the role that `block` had when it was last opened: its index among a plane's open blocks.
    #[inline]
    fn role_of(&self, block: BlockIdx) -> u8 {
        self.role_of.get(block.0 as usize).copied().unwrap_or(0)
    }

    /// Return the stream whose pages `block` holds; numbers beyond those of the host stand for relocated
    /// pages of all streams.
    #[inline]
    pub(crate) fn stream_of(&self, block: BlockIdx) -> u8 {
        let role = self.role_of(block);
        match self.relocation {
            RelocationFrontier::PerStream if role >= self.hosts => role - self.hosts,
            _ => role,
        }
    }

    /// Return the role of the open block that takes pages relocated from `block`.
    #[inline]
    pub(crate) fn relocation_role(&self, block: BlockIdx) -> u8 {
        match (self.relocation, self.stream_of(block)) {
            (RelocationFrontier::Single, _) => self.hosts,
            (RelocationFrontier::PerStream, stream) => self.hosts + stream,
            // Folded pages go where the host's pages go when they bypass the cache.
            (RelocationFrontier::Shared, CACHE) if self.slc_pages.is_some() => 0,
            (RelocationFrontier::Shared, stream) => stream,
        }
    }

    /// Return whether `block` belongs to an SLC cache, or did when it was last opened.
    #[inline]
    pub(crate) fn is_cache(&self, block: BlockIdx) -> bool {
        self.slc_pages.is_some() && self.role_of(block) == CACHE
    }

    /// Return whether `plane` has an open SLC cache block with a free page.
    pub(crate) fn has_open_cache(&self, plane: PlaneIdx) -> bool {
        let open = &self.open[plane.0 as usize * self.streams + usize::from(CACHE)];
        open.next != open.end
    }

    /// Return the pages of the open block at `index` if it is an SLC cache block, which holds fewer than
    /// others.
    fn pages_of(&self, index: usize) -> Option<u32> {
        self.slc_pages.filter(|_| index % self.streams == usize::from(CACHE))
    }

    /// Return the role of the open block that takes host pages now.
    #[inline]
    pub(crate) fn selected_role(&self) -> u8 {
        self.kinds[PageStream::Host as usize]
    }

    /// Return, per role that takes data, the free pages in the open blocks of all planes.
    pub(crate) fn open_pages(&self) -> &[u32] {
        &self.open_pages[..usize::from(self.hosts + self.relocation.open_blocks(self.hosts))]
    }

    /// Return how many pages are left in the flash page that is partly filled on `plane` for a host stream.
    #[inline]
    pub(crate) fn free_in_flash_page(&self, plane: PlaneIdx, stream: u8) -> u32 {
        let next = self.open[plane.0 as usize * self.streams + usize::from(stream)].next;
        match self.geometry.begun_in_flash_page(Ppn(next)) {
            0 => 0,
            begun => self.geometry.units() - begun,
        }
    }

    /// Return the fewest usable pages of any block.
    pub(crate) fn least_usable(&self) -> u32 {
        self.least_usable
    }
}
