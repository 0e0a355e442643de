//! The random log of FAST: blocks that are filled in write order, and the address of each page.
//!
//! ```text
//! ring    │ filled first │ … │ filled last │ being filled ─▶ │      reclaimed in the same order
//! ```
//!
//! One ring for all data blocks, or one for each plane and its data blocks.

use std::collections::VecDeque;
use std::ops::Range;

use crate::collections::{bits, huge};
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PlaneIdx, Ppn};

/// Rings of log blocks, and the valid pages in them.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct RandomLog {
    geometry: Geometry,
    /// Each plane has a ring.
    per_plane: bool,
    rings: Vec<Ring>,
    /// Maximum number of blocks of a ring.
    #[serde(rename = "most")]
    max_blocks: usize,
    /// Per logical page: the address of its newest version, or [`UNMAPPED`].
    logged: Vec<u32>,
    /// The same, one bit a page.
    is_logged: Vec<u64>,
}

/// Log blocks, the one filled first at the front; the last one is being filled.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Ring {
    blocks: VecDeque<LogBlock>,
    /// The next page of the block being filled.
    next: u32,
}

/// A log block, and the logical page in each of its pages.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct LogBlock {
    pub(crate) block: BlockIdx,
    pub(crate) pages: Vec<u32>,
}

const UNMAPPED: u32 = u32::MAX;

impl LogBlock {
    /// Create a log block from `block`, which is erased.
    pub(crate) fn new(block: BlockIdx, geometry: &Geometry) -> LogBlock {
        LogBlock { block, pages: vec![UNMAPPED; geometry.shape().pages_per_block as usize] }
    }
}

impl RandomLog {
    /// Create a log of `blocks` blocks in all.
    pub(crate) fn new(geometry: Geometry, blocks: u32, per_plane: bool) -> RandomLog {
        let rings = if per_plane { geometry.shape().planes as usize } else { 1 };
        let max_blocks = blocks as usize / rings;
        let pages = geometry.shape().logical_pages as usize;
        let ring = Ring {
            blocks: VecDeque::with_capacity(max_blocks + 1),
            next: geometry.shape().pages_per_block,
        };
        RandomLog {
            geometry,
            per_plane,
            rings: vec![ring; rings],
            max_blocks,
            logged: huge::filled(pages, UNMAPPED),
            is_logged: vec![0; pages.div_ceil(64)],
        }
    }

    pub(crate) fn is_per_plane(&self) -> bool {
        self.per_plane
    }

    /// Return the ring that takes pages of the logical block `logical`.
    #[inline]
    pub(crate) fn ring_of(&self, logical: u32) -> usize {
        if self.per_plane { (logical % self.geometry.shape().planes) as usize } else { 0 }
    }

    /// Return the plane of a ring, if rings are per plane.
    pub(crate) fn plane_of(&self, ring: usize) -> Option<PlaneIdx> {
        self.per_plane.then_some(PlaneIdx(ring as u32))
    }

    /// Return the address of `page`, if its newest version is in the log.
    #[inline]
    pub(crate) fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let at = self.logged[page.0 as usize];
        (at != UNMAPPED).then(|| self.geometry.address_of(Ppn(at)))
    }

    /// Return whether a version of `page` is in the log.
    #[inline]
    pub(crate) fn has(&self, page: Lpn) -> bool {
        bits::has(&self.is_logged, page.0 as usize)
    }

    /// Drop the version of `page` in the log.
    #[inline]
    pub(crate) fn forget(&mut self, page: Lpn) {
        self.logged[page.0 as usize] = UNMAPPED;
        bits::remove(&mut self.is_logged, page.0 as usize);
    }

    #[inline]
    pub(crate) fn prefetch(&self, page: Lpn) {
        huge::prefetch(&self.logged, page.0 as usize);
    }

    /// Return whether the block being filled has no page left.
    #[inline]
    pub(crate) fn is_filled(&self, ring: usize) -> bool {
        self.rings[ring].next == self.geometry.shape().pages_per_block
    }

    /// Return whether `ring` may have another block.
    pub(crate) fn may_grow(&self, ring: usize) -> bool {
        self.rings[ring].blocks.len() < self.max_blocks
    }

    /// Return `ring`, which has run out, and the other rings that have as well.
    pub(crate) fn full_rings(&self, ring: usize) -> Vec<usize> {
        let rings = self.rings.len();
        let after = (0..rings).map(|step| (ring + step) % rings);
        after.filter(|ring| self.is_filled(*ring) && !self.may_grow(*ring)).collect()
    }

    /// Begin to fill `log`.
    pub(crate) fn open(&mut self, ring: usize, log: LogBlock) {
        let ring = &mut self.rings[ring];
        ring.blocks.push_back(log);
        ring.next = 0;
    }

    /// Take the next page of `ring`, for `page`.
    #[inline]
    pub(crate) fn take_page(&mut self, ring: usize, page: Lpn) -> PageAddress {
        let ring = &mut self.rings[ring];
        let log = ring.blocks.back_mut().expect("the ring has an open log block");
        let address = self.geometry.address_at(log.block, ring.next);
        log.pages[ring.next as usize] = page.0;
        ring.next += 1;
        address
    }

    /// Record the page of `ring` that was taken last as the newest version of `page`.
    #[inline]
    pub(crate) fn record(&mut self, ring: usize, page: Lpn) {
        let ring = &self.rings[ring];
        let log = ring.blocks.back().expect("the ring has an open log block");
        self.logged[page.0 as usize] = self.geometry.first_page(log.block).0 + ring.next - 1;
        bits::insert(&mut self.is_logged, page.0 as usize);
    }

    /// Remove the block that was filled first from `ring`.
    pub(crate) fn take_oldest(&mut self, ring: usize) -> LogBlock {
        self.rings[ring].blocks.pop_front().expect("a full ring has log blocks")
    }

    /// Return the logical page in `slot` of `log`, if this is its newest version.
    pub(crate) fn live(&self, log: &LogBlock, slot: usize) -> Option<Lpn> {
        // Empty if power was lost while the page was programmed.
        let page = Some(log.pages[slot]).filter(|page| *page != UNMAPPED)?;
        let at = self.geometry.first_page(log.block).0 + slot as u32;
        (self.logged[page as usize] == at).then_some(Lpn(page))
    }

    /// Remove every one of `pages` from the log; `take` receives each one with its address.
    pub(crate) fn take_all(&mut self, pages: Range<u32>, mut take: impl FnMut(Lpn, PageAddress)) {
        let (first, end) = (pages.start as usize, pages.end as usize);
        bits::drain(&mut self.is_logged, first, end, |page| {
            take(Lpn(page as u32), self.geometry.address_of(Ppn(self.logged[page])));
            self.logged[page] = UNMAPPED;
        });
    }

    /// Restore `block`, which is filled or full, as the last of its ring.
    pub(crate) fn restore(
        &mut self,
        block: BlockIdx,
        survey: &Survey<'_>,
        is_newest: impl Fn(Lpn) -> bool,
        logical_block: impl Fn(Lpn) -> u32,
    ) {
        let mut log = LogBlock::new(block, &self.geometry);
        let mut of_ring = 0;
        for slot in 0..self.geometry.shape().pages_per_block {
            let at = self.geometry.address_at(block, slot);
            let Some((page, newest)) = survey.page_at(at) else { continue };
            of_ring = self.ring_of(logical_block(page));
            log.pages[slot as usize] = page.0;
            if newest && is_newest(page) {
                self.logged[page.0 as usize] = at.page.0;
                bits::insert(&mut self.is_logged, page.0 as usize);
            }
        }
        self.open(of_ring, log);
        self.rings[of_ring].next = survey.programmed(block);
    }

    /// Return all its blocks.
    #[cfg(test)]
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockIdx> + '_ {
        self.rings.iter().flat_map(|ring| &ring.blocks).map(|log| log.block)
    }

    /// Check that the accounting is consistent.
    #[cfg(test)]
    pub(crate) fn audit(&self) {
        for (page, address) in self.logged.iter().enumerate() {
            assert_eq!(*address != UNMAPPED, bits::has(&self.is_logged, page));
        }
        assert!(self.rings.iter().all(|ring| ring.blocks.len() <= self.max_blocks));
    }
}
