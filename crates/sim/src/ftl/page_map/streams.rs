//! Write streams: data that is overwritten together is stored together.
//!
//! ```text
//! hint of the host, or the detector's ─▶ stream ─▶ its open block of each plane
//! collection ─▶ another open block of the victim's stream, or one for the pages of all streams (`separate_streams`)
//! ```
//!
//! **Source**: the streams directive of NVMe 1.3 (a write names its stream); flexible data placement of NVMe
//! 2.1 (TP 4146): a write names a placement handle, which stands for a *reclaim unit handle*, and the data
//! written through one handle fills one *reclaim unit* after the other. Kang et al., *The multi-streamed
//! solid-state drive* (HotStorage 2014).
//! **Faithful**: writes of different streams share no block. Relocated pages stay with their stream, which
//! FDP calls *persistently isolated*, or share blocks with the relocated pages of others: *initially
//! isolated*. A persistently isolated handle has a reclaim unit that the host fills, and another one for
//! relocated pages, as in FEMU (`pi_gc_rus` of a reclaim unit handle). With one unit for both, a relocated
//! page would leave a hole in the sequential writes of the host.
//! **Simplified**: a reclaim unit is a block of a plane, and not one of each plane together; the host
//! receives no event when one is full.
//! **Ambiguous**: a page whose stream changes is stored in the stream of its last write.

use super::hot_cold::{Detector, HotColdPart};
use super::{Collection, PageMap};
use crate::flash::geometry::{BlockIdx, Lpn, PlaneIdx};
use crate::pool::blocks::{RelocationFrontier, Stream};

/// State of several write streams.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(in crate::ftl) struct Apart {
    /// Classifies pages as hot or cold, if the host gives no hints.
    detector: Option<Detector>,
    /// Per open block of a plane: pages reserved for collections under way, which may still move them there.
    promised: Vec<u32>,
}

/// A page to be allocated.
pub(super) struct Wanted {
    /// The role of the open block that takes it.
    pub(super) kind: usize,
    /// Pages that it consumes.
    pub(super) pages: u32,
    pub(super) opens: bool,
}

impl Apart {
    /// Create the state of `streams` host streams; `None` for one stream.
    pub(super) fn new(
        streams: u8,
        relocation: RelocationFrontier,
        detector: Option<HotColdPart>,
    ) -> Option<Box<Apart>> {
        let promised = vec![0; usize::from(streams + relocation.open_blocks(streams).max(1))];
        let detector = detector.map(Detector::new);
        (streams > 1).then(|| Box::new(Apart { detector, promised }))
    }
}

impl PageMap {
    /// Return the stream of a write of `page`. Called once for every page that the host writes.
    #[inline]
    pub(crate) fn stream_of(&mut self, page: Lpn, hint: u8) -> u8 {
        match &mut self.apart {
            None => 0,
            Some(apart) => match &mut apart.detector {
                None => hint,
                Some(detector) => u8::from(detector.written(page)),
            },
        }
    }

    /// Whether the host has several streams.
    #[inline]
    pub(crate) fn keeps_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// Return the number of host streams.
    pub(crate) fn write_streams(&self) -> u8 {
        self.blocks.write_streams()
    }

    /// Select the stream of the next host page.
    #[inline]
    pub(crate) fn serve(&mut self, stream: u8) {
        if self.apart.is_some() {
            self.blocks.serve(stream);
        }
    }

    /// Select the stream of the pages that are moved from `victim`.
    #[inline]
    pub(super) fn serve_pages_of(&mut self, victim: BlockIdx) {
        if self.apart.is_some() {
            self.blocks.serve_pages_of(victim);
        }
    }

    /// Return the role of the open block that takes the pages of `collection`.
    pub(crate) fn goes_with(&self, collection: &Collection) -> u8 {
        self.blocks.goes_with(collection.victim)
    }

    /// Reserve `pages` pages in the stream of `victim`.
    #[inline]
    pub(super) fn promise_apart(&mut self, victim: BlockIdx, pages: u32) {
        if let Some(apart) = &mut self.apart {
            apart.promised[usize::from(self.blocks.goes_with(victim))] += pages;
        }
    }

    /// Release `pages` reserved pages in the stream of `victim`.
    #[inline]
    pub(super) fn release_apart(&mut self, victim: BlockIdx, pages: u32) {
        if let Some(apart) = &mut self.apart {
            apart.promised[usize::from(self.blocks.goes_with(victim))] -= pages;
        }
    }

    /// Whether all reserved pages and the `wanted` page fit, if each stream fills blocks of its own; and
    /// `more` pages of another victim, in its stream or in any.
    pub(super) fn fits_apart(
        &self,
        apart: &Apart,
        wanted: Option<Wanted>,
        more: Option<(Option<BlockIdx>, u32)>,
    ) -> bool {
        let opens = wanted.as_ref().is_some_and(|wanted| wanted.opens);
        let pages = more.map_or(0, |(_, pages)| pages);
        self.fits_easily(apart, opens, pages) || self.fits_counted(apart, wanted, more)
    }

    /// Whether everything fits in the worst case: no open block has a page left, and every stream opens one
    /// that it does not fill. Usually true. Called with every unit, hence no division.
    #[inline]
    fn fits_easily(&self, apart: &Apart, opens: bool, more: u32) -> bool {
        let least = u64::from(self.blocks.least_usable());
        let promised: u64 = apart.promised.iter().map(|pages| u64::from(*pages)).sum();
        let begun = apart.promised.len() as u64 + 1;
        let most = promised + u64::from(more) + begun * least;
        most + u64::from(opens) * least <= u64::from(self.blocks.free_blocks()) * least
    }

    /// [`PageMap::fits_apart`], counted stream by stream.
    #[cold]
    fn fits_counted(
        &self,
        apart: &Apart,
        wanted: Option<Wanted>,
        more: Option<(Option<BlockIdx>, u32)>,
    ) -> bool {
        let least = self.blocks.least_usable();
        let opens = wanted.as_ref().is_some_and(|wanted| wanted.opens);
        let Some(free) = self.blocks.free_blocks().checked_sub(u32::from(opens)) else {
            return false;
        };
        let mut needed = 0;
        for (kind, open) in self.blocks.open_pages().iter().enumerate() {
            let taken = match &wanted {
                Some(wanted) if kind == wanted.kind => wanted.pages,
                _ => self.owed_to(kind as u8),
            };
            let is_opened = wanted.as_ref().is_some_and(|it| it.opens && it.kind == kind);
            let opened = u32::from(is_opened) * least;
            let left = (open + opened).saturating_sub(taken);
            let own = |(victim, _): &(Option<BlockIdx>, u32)| {
                victim.is_some_and(|victim| usize::from(self.blocks.goes_with(victim)) == kind)
            };
            let moved = more.filter(own).map_or(0, |(_, pages)| pages);
            needed += (apart.promised[kind] + moved).saturating_sub(left).div_ceil(least);
        }
        if let Some((None, pages)) = more {
            needed += pages.div_ceil(least);
        }
        needed <= free
    }

    /// Whether a host page fits into the open block on `plane`, or into one that is opened.
    #[inline]
    pub(super) fn fits_host_page(&self, plane: PlaneIdx, opens: bool) -> bool {
        let Some(apart) = &self.apart else { return true };
        let kept = self.kept_for_next;
        if self.fits_easily(apart, opens, kept) {
            return true;
        }
        let kind = usize::from(self.blocks.served());
        let wanted = Wanted { kind, pages: self.pages_taken(plane), opens };
        self.fits_counted(apart, Some(wanted), (kept > 0).then_some((None, kept)))
    }

    /// Return `plane`, which has no open page of `stream`. If opening a block would leave too little space
    /// for the reserved pages, return a plane that has an open page instead.
    #[inline]
    pub(super) fn without_opening(
        &self,
        apart: &Apart,
        plane: PlaneIdx,
        stream: Stream,
    ) -> PlaneIdx {
        if self.fits_easily(apart, true, 0) {
            return plane;
        }
        let wanted = Wanted { kind: self.blocks.kind(stream), pages: 1, opens: true };
        if self.fits_counted(apart, Some(wanted), None) {
            return plane;
        }
        self.plane_with_open_page(stream).unwrap_or(plane)
    }

    /// Check that no pages are reserved; for tests of the untimed mode, where no collection is under way
    /// between calls.
    ///
    /// # Panics
    /// If some are.
    #[cfg(test)]
    pub(crate) fn check_streams(&self) {
        let left = self.apart.as_ref().map_or(0, |apart| apart.promised.iter().sum());
        assert_eq!((left, self.promised), (0, 0), "what was promised was kept or given back");
    }

    /// Return the pages that may have to stay empty after the host's last units in `stream`.
    fn owed_to(&self, stream: u8) -> u32 {
        if !self.gathers() || stream >= self.blocks.write_streams() {
            return 0;
        }
        let planes = 0..self.options.geometry.shape().planes;
        planes.map(|plane| self.blocks.left_to_gather(PlaneIdx(plane), stream)).sum()
    }
}
