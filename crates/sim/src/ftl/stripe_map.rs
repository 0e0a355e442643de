//! A page map over stripes (superblocks, the *lines* of FEMU and NVMeVirt) that stops the host for its
//! housekeeping: it collects one stripe at a time, and stores its map on flash, or keeps it in memory.
//!
//! ```text
//! write ─▶ page of the map in memory? ─ no ─▶ read it
//!       ─▶ too many changed pages of the map? ─▶ program all of them                         a long stop
//!       ─▶ stripe full? ─▶ open another; too few left? ─▶ move the valid pages of the emptiest,
//!                          program the map pages that change, erase                       a stop
//!       ─▶ program
//! ```
//!
//! **Source**: Gupta, Kim & Urgaonkar: DFTL (ASPLOS 2009) §3, for the map on flash; Agrawal et al. (USENIX
//! 2008) §3.4, for stripes over planes ("gangs") as the unit of allocation and cleaning. The model of the Intel
//! X25-M that Myers & Sinclair (2010) §5.2 measured. With the map in memory, `stripe_dies` of all dies and
//! `separate_stripes`: lines as in NVMeVirt (Kim et al., FAST 2023; `conv_ftl.c`); without the last, as in FEMU (Li
//! et al., FAST 2018).
//! **Faithful**: misses read a page of the map; map entries changed by a collection are written back before
//! the victim is erased, in a batch, each page of the map once; the directory is in memory.
//! **Simplified**: the memory holds whole pages of the map, and evicts the least recently used one. Changed
//! pages are not written one by one as they are evicted, but all at once. In the untimed mode reads find
//! every entry in memory. TRIM changes the map and costs nothing. Parity takes space and time; no page is
//! rebuilt from it. Stripes of the map have none.
//! **Ambiguous**: how much space the map has: here four times its size, so that collecting its stripes moves
//! few pages.

use uflip_core::{Error, Result};

use super::{FtlOptions, MergingFtl};
use crate::collections::{bits, huge};
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, Ppn};
use crate::flash::plan::{FlashPlan, Move};
use crate::ftl::extent::PageExtent;
use crate::ftl::mapping_cache::{CachePolicy, MappingCache};
use crate::keys::parameters;
use crate::pool::stripes::{StripeContent, Stripes};

/// The map, the stripes, and the part of the map that is in memory.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct StripeMap {
    geometry: Geometry,
    stripes: Stripes,
    /// Per logical page: its address, or [`UNMAPPED`]. Pages of the map follow those of the host.
    #[serde(with = "crate::collections::huge::flat")]
    map: Vec<u32>,
    /// Per physical page: the logical page that was programmed there last.
    #[serde(with = "crate::collections::huge::flat")]
    reverse: Vec<u32>,
    /// Maximum number of stripes with pages of the map.
    #[serde(rename = "most_map_stripes")]
    max_map_stripes: u32,
    entries_a_page: u32,
    /// Pages of the map in memory, each as one entry.
    cache: MappingCache,
    /// Map pages that changed since they were programmed, in that order; and the same, one bit each.
    changed: Vec<u32>,
    is_changed: Vec<u64>,
    #[serde(rename = "most_changed")]
    max_changed: usize,
    /// Buffers, reused to avoid allocation: the moves of a collection, the map pages that they change, and
    /// the addresses of stored map pages.
    moves: Vec<Move>,
    #[serde(rename = "concerned")]
    changed_by_moves: Vec<u32>,
    stored: Vec<(PageAddress, Option<PageAddress>)>,
    /// The whole map is in memory, and none of it on flash.
    in_memory: bool,
    /// Whether relocated pages fill stripes of their own.
    separate: bool,
}

const UNMAPPED: u32 = u32::MAX;

impl MergingFtl for StripeMap {
    const APPENDS: bool = true;
    type Table = StripesPart;

    fn check(options: &FtlOptions<'_, StripesPart>) -> Result<()> {
        check(options)
    }

    fn new(options: &FtlOptions<'_, StripesPart>) -> StripeMap {
        let (part, geometry) = (options.table, options.geometry);
        let shape = geometry.shape();
        let stripe_pages = Stripes::pages_of(&geometry, part.stripe_dies);
        let (map_pages, max_map_stripes) = map_size(part, &geometry, stripe_pages);
        let in_pages = |bytes: u64| (bytes / u64::from(shape.page_bytes)) as usize;
        let cached = in_pages(part.map_memory_bytes);
        StripeMap {
            geometry,
            stripes: Stripes::new(geometry, part.stripe_dies, part.has_parity()),
            map: huge::filled((shape.logical_pages + map_pages) as usize, UNMAPPED),
            reverse: huge::filled(geometry.pages() as usize, UNMAPPED),
            max_map_stripes,
            entries_a_page: shape.page_bytes / ENTRY_BYTES,
            cache: MappingCache::new(map_pages, cached, 1, CachePolicy::Lru, true),
            changed: Vec::new(),
            is_changed: vec![0; map_pages.div_ceil(64) as usize],
            max_changed: in_pages(part.map_changed_bytes),
            moves: Vec::new(),
            changed_by_moves: Vec::new(),
            stored: Vec::new(),
            in_memory: part.map_memory_bytes == 0,
            separate: part.separates(),
        }
    }

    #[inline]
    fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let at = self.map[page.0 as usize];
        (at != UNMAPPED).then(|| self.geometry.address_of(Ppn(at)))
    }

    fn find(&mut self, page: Lpn, plan: &mut FlashPlan) -> Option<PageAddress> {
        self.load_map_page(page.0 / self.entries_a_page, plan);
        self.lookup(page)
    }

    fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let map_page = page.0 / self.entries_a_page;
        self.load_map_page(map_page, plan);
        if !self.in_memory && self.changed.len() >= self.max_changed {
            self.store_changed(plan);
        }
        if self.stripes.is_filled(StripeContent::Data) {
            self.open_data(plan);
        }
        let merge_from = extent.merge_source(page, || self.lookup(page));
        let to = self.stripes.take_page(StripeContent::Data);
        plan.program(to, merge_from);
        if let Some(parity) = self.stripes.take_parity(StripeContent::Data) {
            plan.parity(parity);
        }
        self.map_page(page, to);
        self.change(map_page);
    }

    fn trim(&mut self, page: Lpn) {
        if let Some(old) = self.lookup(page) {
            self.stripes.invalidate(old);
            self.map[page.0 as usize] = UNMAPPED;
        }
    }

    #[inline]
    fn prefetch(&self, page: Lpn) {
        huge::prefetch(&self.map, page.0 as usize);
    }

    fn map_pages(&self) -> u32 {
        self.map.len() as u32 - self.geometry.shape().logical_pages
    }

    fn page_of_map(&self, to: PageAddress) -> Option<Lpn> {
        Some(Lpn(self.reverse[to.page.0 as usize]))
    }

    fn group_of(&self, block: BlockIdx) -> u32 {
        self.stripes.stripe_of(self.geometry.address_at(block, 0))
    }

    /// No stripe is continued: its planes may have stopped at different rows.
    fn rebuild(&mut self, survey: &Survey<'_>, _plan: &mut FlashPlan) {
        let of_host = self.geometry.shape().logical_pages;
        for stripe in survey.groups().iter().copied() {
            let mut content = StripeContent::Data;
            let blocks: Vec<BlockIdx> = self.stripes.blocks(stripe).collect();
            for block in &blocks {
                for offset in 0..self.geometry.shape().pages_per_block {
                    let at = self.geometry.address_at(*block, offset);
                    let Some((page, newest)) = survey.page_at(at) else { continue };
                    self.reverse[at.page.0 as usize] = page.0;
                    if page.0 >= of_host {
                        content = StripeContent::Map;
                    }
                    if newest {
                        self.map[page.0 as usize] = at.page.0;
                        self.stripes.set_valid(at);
                    }
                }
            }
            self.stripes.set_filled(stripe, content);
        }
    }

    #[cfg(test)]
    fn audit(&self) {
        let mapped = self.map.iter().filter(|at| **at != UNMAPPED);
        self.stripes.audit(mapped.map(|at| Ppn(*at)));
        for (page, at) in (0u32..).zip(&self.map).filter(|(_, at)| **at != UNMAPPED) {
            assert_eq!(self.reverse[*at as usize], page);
        }
        assert!(self.stripes.stripes_with(StripeContent::Map) <= self.max_map_stripes);
        assert!(self.changed.len() <= self.max_changed);
        assert!(self.changed.iter().all(|page| bits::has(&self.is_changed, *page as usize)));
    }
}

/// The map, in memory and on flash.
impl StripeMap {
    /// Load `map_page` into memory, unless the whole map is there.
    fn load_map_page(&mut self, map_page: u32, plan: &mut FlashPlan) {
        if self.in_memory {
            return;
        }
        let hit = self.cache.find(map_page);
        plan.count_map_lookup(hit);
        if hit {
            return;
        }
        if self.cache.leaves_changed().is_some() {
            self.store_changed(plan);
        }
        if let Some(at) = self.lookup(self.logical(map_page)) {
            plan.load_map(at);
            plan.barrier();
        }
        self.cache.insert(map_page);
    }

    /// Return the logical page number of `map_page`.
    #[inline]
    fn logical(&self, map_page: u32) -> Lpn {
        Lpn(self.geometry.shape().logical_pages + map_page)
    }

    /// Mark `map_page`, which is in memory, as changed.
    #[inline]
    fn change(&mut self, map_page: u32) {
        if self.in_memory {
            return;
        }
        self.cache.change(map_page);
        if !bits::has(&self.is_changed, map_page as usize) {
            bits::insert(&mut self.is_changed, map_page as usize);
            self.changed.push(map_page);
        }
    }

    /// Program every changed page of the map.
    fn store_changed(&mut self, plan: &mut FlashPlan) {
        let changed = std::mem::take(&mut self.changed);
        self.store(&changed, plan);
        plan.barrier();
        self.changed = changed;
        self.changed.clear();
    }

    /// Program pages of the map: from memory or, if they are not cached, with their unchanged entries read
    /// from flash.
    fn store(&mut self, map_pages: &[u32], plan: &mut FlashPlan) {
        let mut remaining = map_pages;
        while !remaining.is_empty() {
            if self.stripes.is_filled(StripeContent::Map) {
                self.open_map(plan);
            }
            let (fit, others) = remaining
                .split_at(remaining.len().min(self.stripes.pages_left(StripeContent::Map)));
            remaining = others;
            let mut pages = std::mem::take(&mut self.stored);
            pages.clear();
            pages.extend(fit.iter().map(|map_page| self.reallocate(*map_page)));
            plan.store_map(&pages);
            self.stored = pages;
        }
    }

    /// Allocate the next address of `map_page`; also returns the address of its unchanged entries, if they must
    /// be read.
    fn reallocate(&mut self, map_page: u32) -> (PageAddress, Option<PageAddress>) {
        let page = self.logical(map_page);
        let old = if self.cache.has(map_page) { None } else { self.lookup(page) };
        let to = self.stripes.take_page(StripeContent::Map);
        self.map_page(page, to);
        self.cache.mark_all_clean(map_page);
        bits::remove(&mut self.is_changed, map_page as usize);
        (to, old)
    }

    /// Place `page` at `to`, and invalidate its old address.
    #[inline]
    fn map_page(&mut self, page: Lpn, to: PageAddress) {
        if let Some(old) = self.lookup(page) {
            self.stripes.invalidate(old);
        }
        self.put(page, to);
    }

    /// Record in both maps that `page` is at `to`.
    #[inline]
    fn put(&mut self, page: Lpn, to: PageAddress) {
        self.map[page.0 as usize] = to.page.0;
        self.reverse[to.page.0 as usize] = page.0;
    }
}

/// Space reclamation.
impl StripeMap {
    /// Open a stripe for data. If too few are left then, the valid pages of the emptiest one are moved to it;
    /// or before, to stripes of their own, until enough are left.
    fn open_data(&mut self, plan: &mut FlashPlan) {
        while self.separate && !self.leaves_reserve(1) {
            self.collect(StripeContent::Relocated, plan);
        }
        self.stripes.open(StripeContent::Data);
        if !self.separate && !self.leaves_reserve(0) {
            self.collect(StripeContent::Data, plan);
        }
    }

    /// Return whether the reserve and `more` stripes are free.
    fn leaves_reserve(&self, more: u32) -> bool {
        let for_map = self.max_map_stripes - self.stripes.stripes_with(StripeContent::Map);
        self.stripes.free() >= RESERVE + for_map + more
    }

    /// Move the valid pages of the emptiest stripe to the one being filled with `content`, and erase it.
    fn collect(&mut self, content: StripeContent, plan: &mut FlashPlan) {
        plan.begin_reclaim();
        let victim = self.stripes.emptiest(StripeContent::Data).expect("a full data stripe");
        self.move_all(victim, content, plan);
        if !self.in_memory {
            self.store_moved(plan);
        }
        self.erase(victim, plan);
    }

    /// Program the map pages that the last moves have changed.
    fn store_moved(&mut self, plan: &mut FlashPlan) {
        let mut changed_by_moves = std::mem::take(&mut self.changed_by_moves);
        let moved = self.moves.iter().filter_map(|moved| moved.from);
        let pages = moved.map(|from| self.reverse[from.page.0 as usize]);
        changed_by_moves.extend(pages.map(|page| page / self.entries_a_page));
        changed_by_moves.sort_unstable();
        changed_by_moves.dedup();
        self.store(&changed_by_moves, plan);
        changed_by_moves.clear();
        self.changed_by_moves = changed_by_moves;
        let StripeMap { changed, is_changed, .. } = self;
        changed.retain(|page| bits::has(is_changed, *page as usize));
    }

    /// Open a stripe for pages of the map. If they have reached their limit, the valid pages of the emptiest
    /// one are moved to it.
    fn open_map(&mut self, plan: &mut FlashPlan) {
        let all = self.stripes.stripes_with(StripeContent::Map) == self.max_map_stripes;
        self.stripes.open(StripeContent::Map);
        if all {
            let victim = self.stripes.emptiest(StripeContent::Map).expect("a full map stripe");
            self.move_all(victim, StripeContent::Map, plan);
            self.erase(victim, plan);
        }
    }

    /// Move the valid pages of `victim` to the stripe being filled with `content`, and to another when it is full.
    fn move_all(&mut self, victim: u32, content: StripeContent, plan: &mut FlashPlan) {
        let mut moves = std::mem::take(&mut self.moves);
        moves.clear();
        for offset in 0..self.stripes.pages() {
            let Some(from) = self.stripes.valid_address(victim, offset) else { continue };
            if self.stripes.is_filled(content) {
                self.stripes.open(content);
            }
            let to = self.stripes.take_page(content);
            // A valid page is at its mapped address, so the map need not be read.
            self.stripes.invalidate(from);
            self.put(Lpn(self.reverse[from.page.0 as usize]), to);
            moves.push(Move { from: Some(from), to });
            let parity = self.stripes.take_parity(content);
            moves.extend(parity.map(|to| Move { from: None, to }));
        }
        plan.copy_stream(&moves);
        self.moves = moves;
    }

    fn erase(&mut self, stripe: u32, plan: &mut FlashPlan) {
        plan.barrier();
        self.stripes.blocks(stripe).for_each(|block| plan.erase(block));
        plan.barrier();
        self.stripes.release(stripe);
    }
}

// The table [stripes] of the profile, and the checks of a device that has it.

parameters! {
    /// Parameters of the page map over stripes.
    #[derive(Clone, PartialEq, Debug)]
    pub struct StripesPart {
        stripe_dies: u32 = "a divisor of the number of dies" in "dies",
            "dies that a stripe spans, with one block on each";
        map_memory_bytes: u64 = "0, or a page or more" in "bytes",
            "memory for pages of the map; a write, or a read in the timed mode, whose map page \
             is not in memory reads it from flash. 0: the whole map is in memory, and none of it \
             on flash";
        map_changed_bytes: u64 = "a page to `map_memory_bytes`; 0 if that is 0" in "bytes",
            "limit of changed map pages in memory; at the limit all of them are programmed at \
             once";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        separate_stripes: Option<bool> = "`true`, `false`; `false` without the key",
            "relocated pages fill stripes of their own; otherwise the rest of the stripe that the host \
             fills next";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stripe_parity: Option<bool> = "`true`, `false`; `false` without the key",
            "one page of each row of a stripe of data (a page of each of its dies) is the parity of the \
             others (RAIN), and no data of the host; needs `stripe_dies` of 2 or more";
    }
}

impl StripesPart {
    fn has_parity(&self) -> bool {
        self.stripe_parity.unwrap_or(false)
    }

    fn separates(&self) -> bool {
        self.separate_stripes.unwrap_or(false)
    }

    /// Return the pages of a stripe that hold data.
    fn data_pages(&self, geometry: &Geometry) -> u32 {
        let parity = if self.has_parity() { geometry.shape().pages_per_block } else { 0 };
        Stripes::pages_of(geometry, self.stripe_dies) - parity
    }
}

/// Bytes of an entry: a physical page number.
const ENTRY_BYTES: u32 = 4;

/// Size of the stripes for the map, as a multiple of the size of the map.
const MAP_STRIPE_FACTOR: u32 = 4;

/// Erased stripes in addition to those that the map may still take: one for data, one for the map.
const RESERVE: u32 = 2;

/// Further stripes with `separate_stripes`: those being filled by the host and by relocation are no victims.
const SEPARATE_RESERVE: u32 = 2;

/// Return the pages of the map on flash, and the stripes that they may take: the multiple of its size, and one
/// that is filled.
fn map_size(part: &StripesPart, geometry: &Geometry, stripe_pages: u32) -> (u32, u32) {
    if part.map_memory_bytes == 0 {
        return (0, 0);
    }
    let shape = geometry.shape();
    let pages = shape.logical_pages.div_ceil(shape.page_bytes / ENTRY_BYTES);
    (pages, MAP_STRIPE_FACTOR * pages.div_ceil(stripe_pages) + 1)
}

/// Check that `options` describe a possible device.
///
/// # Errors
/// Parameters that leave too little space.
fn check(options: &FtlOptions<'_, StripesPart>) -> Result<()> {
    let (part, geometry) = (options.table, options.geometry);
    let shape = geometry.shape();
    if part.stripe_dies == 0 || !shape.planes.is_multiple_of(part.stripe_dies) {
        return Err(Error::usage("The dies cannot be divided into stripes")
            .got(format!("stripe_dies = {} of {} dies", part.stripe_dies, shape.planes))
            .allowed("a number that divides the dies")
            .action("change stripe_dies"));
    }
    if part.has_parity() && part.stripe_dies < 2 {
        return Err(Error::usage("A stripe with parity needs a die for it")
            .got(format!("stripe_parity = true, stripe_dies = {}", part.stripe_dies))
            .allowed("stripe_dies of 2 or more")
            .action("raise stripe_dies, or leave out stripe_parity"));
    }
    let page = u64::from(shape.page_bytes);
    let (cached, changed) = (part.map_memory_bytes / page, part.map_changed_bytes / page);
    let in_memory = part.map_memory_bytes == 0 && part.map_changed_bytes == 0;
    if !in_memory && !(1..=cached).contains(&changed) {
        return Err(Error::usage("The part of the map in memory has an invalid size")
            .got(format!(
                "map_memory_bytes = {}, map_changed_bytes = {}",
                part.map_memory_bytes, part.map_changed_bytes
            ))
            .allowed(format!(
                "map_changed_bytes from {page} (a page) to map_memory_bytes, or both 0"
            ))
            .action("change one of the two"));
    }
    let pages = Stripes::pages_of(&geometry, part.stripe_dies);
    let stripes = Stripes::count(&geometry, part.stripe_dies);
    let data = shape.logical_pages.div_ceil(part.data_pages(&geometry));
    let (_, map) = map_size(part, &geometry, pages);
    let reserve = RESERVE + if part.separates() { SEPARATE_RESERVE } else { 0 };
    let needed = u64::from(data) + u64::from(map) + u64::from(reserve) + 1;
    if needed > u64::from(stripes) {
        return Err(Error::usage("The device has too few stripes for its FTL")
            .got(format!("{stripes} stripes, of which the host's data takes {data}"))
            .allowed(format!(
                "{needed} or more: {map} for the map, {} to collect with",
                reserve + 1
            ))
            .action("raise spare_factor or blocks_per_die, or lower stripe_dies"));
    }
    Ok(())
}
