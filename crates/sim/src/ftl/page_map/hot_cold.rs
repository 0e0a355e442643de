//! Detection of hot and cold pages without hints of the host: several Bloom filters, which are emptied in
//! turn.
//!
//! ```text
//! filters   [ oldest ] [        ] [        ] [ newest ]     a write is inserted into the next filter that lacks
//! weight         1          2          3          4        its page; hot: the filters that have it weigh enough
//! ```
//!
//! **Source**: Park & Du, *Hot data identification for flash-based storage systems using multiple Bloom
//! filters* (MSST 2011).
//! **Faithful**: filters take turns; a page that a filter already holds goes to the next one that does not;
//! after a number of writes the filter that was emptied longest ago is emptied; younger filters weigh more,
//! by equal steps.
//! **Simplified**: weights are whole numbers, V … 1 (the paper's 2 … 2/V are these times 2/V); hash functions
//! are two mixed ones, the others sums of them (Kirsch & Mitzenmacher 2006).
//! **Ambiguous**: whether a write counts before it is judged; here it does, as in the paper's figure 3. How a
//! relocated page is classified: it stays with the others of its block, and is judged again when it is
//! written.

use uflip_core::random::mix;

use crate::collections::bits;
use crate::flash::geometry::Lpn;

/// The table `[hot_cold]`.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct HotColdPart {
    pub bloom_filters: u32,
    pub bloom_filter_bits: u32,
    pub bloom_hashes: u32,
    /// Writes after which the oldest filter is emptied.
    pub bloom_window: u32,
    /// A page is hot if the filters that hold it reach this total weight.
    pub hot_weight: u32,
}

/// Classifies pages as hot or cold by recent writes.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Detector")]
pub(crate) struct HotColdDetector {
    #[serde(rename = "of")]
    part: HotColdPart,
    filters: Vec<Vec<u64>>,
    /// The filter of the next write, the one that was emptied last, and the writes since.
    turn: u32,
    newest: u32,
    since: u32,
}

impl HotColdDetector {
    pub(crate) fn new(part: HotColdPart) -> HotColdDetector {
        let words = part.bloom_filter_bits.div_ceil(64) as usize;
        let filters = vec![vec![0; words]; part.bloom_filters as usize];
        HotColdDetector { part, filters, turn: 0, newest: part.bloom_filters - 1, since: 0 }
    }

    /// Record a write of `page`; returns whether it is hot.
    pub(crate) fn written(&mut self, page: Lpn) -> bool {
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
