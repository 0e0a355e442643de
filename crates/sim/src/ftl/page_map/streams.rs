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

use uflip_core::random::mix;

use super::{Collection, PageMap};
use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Lpn, PlaneIdx};
use crate::keys::parameters;
use crate::pool::blocks::{PageStream, RelocationFrontier};

/// State of several write streams.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(in crate::ftl) struct HostStreams {
    /// Classifies pages as hot or cold, if the host gives no hints.
    detector: Option<HotColdDetector>,
    /// Per open block of a plane: pages reserved for collections in progress, which may still move them
    /// there.
    reserved: Vec<u32>,
}

/// A page to be allocated.
pub(super) struct PageRequest {
    /// The role of the open block that takes it.
    pub(super) kind: usize,
    /// Pages that it consumes.
    pub(super) pages: u32,
    pub(super) opens: bool,
}

impl HostStreams {
    /// Create the state of `streams` host streams; `None` for one stream.
    pub(super) fn new(
        streams: u8,
        relocation: RelocationFrontier,
        detector: Option<HotColdPart>,
    ) -> Option<Box<HostStreams>> {
        let reserved = vec![0; usize::from(streams + relocation.open_blocks(streams).max(1))];
        let detector = detector.map(HotColdDetector::new);
        (streams > 1).then(|| Box::new(HostStreams { detector, reserved }))
    }
}

impl PageMap {
    /// Return the stream of a write of `page`. Called once for every page that the host writes.
    #[inline]
    pub(crate) fn stream_of(&mut self, page: Lpn, hint: u8) -> u8 {
        match &mut self.host_streams {
            None => 0,
            Some(host_streams) => match &mut host_streams.detector {
                None => hint,
                Some(detector) => u8::from(detector.written(page)),
            },
        }
    }

    /// Return whether the host has several streams.
    #[inline]
    pub(crate) fn has_write_streams(&self) -> bool {
        self.host_streams.is_some()
    }

    /// Return the number of host streams.
    pub(crate) fn write_streams(&self) -> u8 {
        self.blocks.write_streams()
    }

    /// Select the stream of the next host page.
    #[inline]
    pub(crate) fn select_stream(&mut self, stream: u8) {
        if self.host_streams.is_some() {
            self.blocks.select_stream(stream);
        }
    }

    /// Select the stream of the pages that are moved from `victim`.
    #[inline]
    pub(super) fn select_stream_of(&mut self, victim: BlockIdx) {
        if self.host_streams.is_some() {
            self.blocks.select_stream_of(victim);
        }
    }

    /// Return the role of the open block that takes the pages of `collection`.
    pub(crate) fn relocation_role(&self, collection: &Collection) -> u8 {
        self.blocks.relocation_role(collection.victim)
    }

    /// Reserve `pages` pages in the stream of `victim`.
    #[inline]
    pub(super) fn reserve_in_stream(&mut self, victim: BlockIdx, pages: u32) {
        if let Some(host_streams) = &mut self.host_streams {
            host_streams.reserved[usize::from(self.blocks.relocation_role(victim))] += pages;
        }
    }

    /// Release `pages` reserved pages in the stream of `victim`.
    #[inline]
    pub(super) fn release_in_stream(&mut self, victim: BlockIdx, pages: u32) {
        if let Some(host_streams) = &mut self.host_streams {
            host_streams.reserved[usize::from(self.blocks.relocation_role(victim))] -= pages;
        }
    }

    /// Return whether all reserved pages and the page of `request` fit, if each stream fills blocks
    /// of its own; and `more` pages of another victim, in its stream or in any.
    pub(super) fn fits_streams(
        &self,
        host_streams: &HostStreams,
        request: Option<PageRequest>,
        more: Option<(Option<BlockIdx>, u32)>,
    ) -> bool {
        let opens = request.as_ref().is_some_and(|request| request.opens);
        let pages = more.map_or(0, |(_, pages)| pages);
        self.fits_in_worst_case(host_streams, opens, pages)
            || self.fits_counted(host_streams, request, more)
    }

    /// Return whether everything fits in the worst case: no open block has a page left, and every
    /// stream opens one that it does not fill. Usually true. Called with every unit, hence no
    /// division.
    #[inline]
    fn fits_in_worst_case(&self, host_streams: &HostStreams, opens: bool, more: u32) -> bool {
        let min_usable = u64::from(self.blocks.least_usable());
        let reserved: u64 = host_streams.reserved.iter().map(|pages| u64::from(*pages)).sum();
        let begun = host_streams.reserved.len() as u64 + 1;
        let max_needed = reserved + u64::from(more) + begun * min_usable;
        max_needed + u64::from(opens) * min_usable
            <= u64::from(self.blocks.free_blocks()) * min_usable
    }

    /// [`PageMap::fits_streams`], counted stream by stream.
    #[cold]
    fn fits_counted(
        &self,
        host_streams: &HostStreams,
        request: Option<PageRequest>,
        more: Option<(Option<BlockIdx>, u32)>,
    ) -> bool {
        let min_usable = self.blocks.least_usable();
        let opens = request.as_ref().is_some_and(|request| request.opens);
        let Some(free) = self.blocks.free_blocks().checked_sub(u32::from(opens)) else {
            return false;
        };
        let mut needed = 0;
        for (kind, open) in self.blocks.open_pages().iter().enumerate() {
            let allocated = match &request {
                Some(request) if kind == request.kind => request.pages,
                _ => self.padding_of_stream(kind as u8),
            };
            let is_opened =
                request.as_ref().is_some_and(|request| request.opens && request.kind == kind);
            let opened = u32::from(is_opened) * min_usable;
            let left = (open + opened).saturating_sub(allocated);
            let is_same_role = |(victim, _): &(Option<BlockIdx>, u32)| {
                victim
                    .is_some_and(|victim| usize::from(self.blocks.relocation_role(victim)) == kind)
            };
            let moved = more.filter(is_same_role).map_or(0, |(_, pages)| pages);
            needed +=
                (host_streams.reserved[kind] + moved).saturating_sub(left).div_ceil(min_usable);
        }
        if let Some((None, pages)) = more {
            needed += pages.div_ceil(min_usable);
        }
        needed <= free
    }

    /// Return whether a host page fits into the open block on `plane`, or into one that is opened.
    #[inline]
    pub(super) fn fits_host_page(&self, plane: PlaneIdx, opens: bool) -> bool {
        let Some(host_streams) = &self.host_streams else { return true };
        let next = self.reserved_for_next;
        if self.fits_in_worst_case(host_streams, opens, next) {
            return true;
        }
        let kind = usize::from(self.blocks.selected_role());
        let request = PageRequest { kind, pages: self.pages_for_host_page(plane), opens };
        self.fits_counted(host_streams, Some(request), (next > 0).then_some((None, next)))
    }

    /// Return `plane`, which has no open page of `stream`. If opening a block would leave too little space
    /// for the reserved pages, return a plane that has an open page instead.
    #[inline]
    pub(super) fn prefer_open_page(
        &self,
        host_streams: &HostStreams,
        plane: PlaneIdx,
        stream: PageStream,
    ) -> PlaneIdx {
        if self.fits_in_worst_case(host_streams, true, 0) {
            return plane;
        }
        let request = PageRequest { kind: self.blocks.kind(stream), pages: 1, opens: true };
        if self.fits_counted(host_streams, Some(request), None) {
            return plane;
        }
        self.plane_with_open_page(stream).unwrap_or(plane)
    }

    /// Check that no pages are reserved; for tests of the untimed mode, where no collection is in progress
    /// between calls.
    ///
    /// # Panics
    /// If some are.
    #[cfg(test)]
    pub(crate) fn check_streams(&self) {
        let left =
            self.host_streams.as_ref().map_or(0, |host_streams| host_streams.reserved.iter().sum());
        assert_eq!((left, self.reserved), (0, 0), "every reserved page was used or released");
    }

    /// Return the pages that may have to stay empty after the host's last units in `stream`.
    fn padding_of_stream(&self, stream: u8) -> u32 {
        if !self.packs_units() || stream >= self.blocks.write_streams() {
            return 0;
        }
        let planes = 0..self.options.geometry.shape().planes;
        planes.map(|plane| self.blocks.free_in_flash_page(PlaneIdx(plane), stream)).sum()
    }
}

// Detection of hot and cold pages without hints of the host: several Bloom filters, which are emptied in
// turn.
//
// ```text
// filters   [ oldest ] [        ] [        ] [ newest ]     a write is inserted into the next filter that lacks
// weight         1          2          3          4        its page; hot: the filters that have it weigh enough
// ```
//
// **Source**: Park & Du, *Hot data identification for flash-based storage systems using multiple Bloom
// filters* (MSST 2011).
// **Faithful**: filters take turns; a page that a filter already holds goes to the next one that does not;
// after a number of writes the filter that was emptied longest ago is emptied; younger filters weigh more,
// by equal steps.
// **Simplified**: weights are whole numbers, V … 1 (the paper's 2 … 2/V are these times 2/V); hash functions
// are two mixed ones, the others sums of them (Kirsch & Mitzenmacher 2006).
// **Ambiguous**: whether a write counts before it is judged; here it does, as in the paper's figure 3. How a
// relocated page is classified: it stays with the others of its block, and is judged again when it is
// written.

parameters! {
    /// The table `[hot_cold]`.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct HotColdPart {
        // The paper has 4; more filters distinguish more classes of age.
        bloom_filters: u32 = "1 to 16",
            "Bloom filters that record written pages (Park & Du 2011): a page goes into the next \
             filter in turn that does not contain it";
        // Up to 2 MiB a filter.
        bloom_filter_bits: u32 = "64 to 16777216" in "bits",
            "size of each filter";
        // More hashes fill a filter, which then matches every page.
        bloom_hashes: u32 = "1 to 16",
            "bits that a page sets in a filter";
        bloom_window: u32 = "1 or more",
            "pages written after which the oldest filter is emptied";
        hot_weight: u32 = "1 to the sum of the weights of all filters",
            "weight from which on a page is hot: the sum over the filters that contain it, 1 for \
             the oldest filter, one more for each younger one";
    }
}

/// Classifies pages as hot or cold by recent writes.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Detector")]
struct HotColdDetector {
    #[serde(rename = "of")]
    part: HotColdPart,
    filters: Vec<Vec<u64>>,
    /// The filter of the next write, the one that was emptied last, and the writes since.
    turn: u32,
    newest: u32,
    since: u32,
}

impl HotColdDetector {
    fn new(part: HotColdPart) -> HotColdDetector {
        let words = part.bloom_filter_bits.div_ceil(64) as usize;
        let filters = vec![vec![0; words]; part.bloom_filters as usize];
        HotColdDetector { part, filters, turn: 0, newest: part.bloom_filters - 1, since: 0 }
    }

    /// Record a write of `page`; returns whether it is hot.
    fn written(&mut self, page: Lpn) -> bool {
        let filters = self.part.bloom_filters;
        let next = (0..filters).map(|step| (self.turn + step) % filters);
        let not_in = next.clone().find(|filter| !self.holds(*filter, page));
        if let Some(filter) = not_in {
            for bit in filter_bits(&self.part, page) {
                bits::insert(&mut self.filters[filter as usize], bit);
            }
        }
        self.turn = (self.turn + 1) % filters;
        let weight: u32 = (0..filters)
            .filter(|filter| self.holds(*filter, page))
            // The filter after the newest is the oldest, and weighs 1.
            .map(|filter| (filter + filters - self.newest - 1) % filters + 1)
            .sum();
        self.since += 1;
        if self.since == self.part.bloom_window {
            self.since = 0;
            self.newest = (self.newest + 1) % filters;
            self.filters[self.newest as usize].fill(0);
        }
        weight >= self.part.hot_weight
    }

    fn holds(&self, filter: u32, page: Lpn) -> bool {
        filter_bits(&self.part, page).all(|bit| bits::has(&self.filters[filter as usize], bit))
    }
}

/// Return the bits of `page` in a filter.
fn filter_bits(part: &HotColdPart, page: Lpn) -> impl Iterator<Item = usize> + use<> {
    let (first, second) = (mix(u64::from(page.0)), mix(u64::from(page.0) | 1 << 32) | 1);
    let bits = u64::from(part.bloom_filter_bits);
    (0..u64::from(part.bloom_hashes))
        .map(move |number| (first.wrapping_add(number.wrapping_mul(second)) % bits) as usize)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

    use super::*;

    const PART: HotColdPart = HotColdPart {
        bloom_filters: 4,
        bloom_filter_bits: 1 << 20,
        bloom_hashes: 2,
        bloom_window: 50,
        hot_weight: 7,
    };

    /// The paper's rules with sets in place of filters, the newest last.
    struct Sets(Vec<(u32, BTreeSet<u32>)>, u32, u32);

    impl Sets {
        fn written(&mut self, page: u32) -> bool {
            let Sets(sets, turn, since) = self;
            for step in 0..4 {
                let name = (*turn + step) % 4;
                let (_, set) = sets.iter_mut().find(|(filter, _)| *filter == name).unwrap();
                if set.insert(page) {
                    break;
                }
            }
            *turn += 1;
            let weight: usize =
                (1..).zip(&*sets).filter(|(_, (_, set))| set.contains(&page)).map(|(w, _)| w).sum();
            *since += 1;
            if *since % PART.bloom_window == 0 {
                let (name, _) = sets.remove(0);
                sets.push((name, BTreeSet::new()));
            }
            weight >= PART.hot_weight as usize
        }
    }

    #[test]
    fn large_filters_match_sets() {
        let mut detector = HotColdDetector::new(PART);
        let mut sets = Sets((0..4).map(|name| (name, BTreeSet::new())).collect(), 0, 0);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut hot = [0; 2];
        for _ in 0..20_000 {
            let range = 1 + uniform(&mut rng, 200);
            let page = uniform(&mut rng, range) as u32;
            let expected = sets.written(page);
            assert_eq!(detector.written(Lpn(page)), expected, "{page}");
            hot[usize::from(expected)] += 1;
        }
        assert!(hot.iter().all(|often| *often > 2_000), "hot and cold pages: {hot:?}");
    }

    /// Two hash functions, n pages in a filter of m bits: a share (1 − e^(−2n/m))² of other pages is a false
    /// positive.
    #[test]
    fn false_positives_match_filter_size() {
        let part = HotColdPart {
            bloom_filters: 1,
            bloom_filter_bits: 2000,
            bloom_window: u32::MAX,
            ..PART
        };
        let mut detector = HotColdDetector::new(part);
        for page in 0..500 {
            detector.written(Lpn(page));
        }
        let mistaken = (1000..101_000).filter(|page| detector.holds(0, Lpn(*page))).count();
        let expected = 100_000.0 * (1.0 - (-2.0 * 500.0 / 2000.0_f64).exp()).powi(2);
        let share = mistaken as f64 / expected;
        println!("{mistaken} of 100,000, expected {expected:.0}");
        assert!((share - 1.0).abs() < 0.1, "{share}");
    }
}
