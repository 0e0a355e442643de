//! Pools of erased units by location: blocks of a plane, merge units of a bank, stripes of the device.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// The order in which free units are filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum FreeOrder {
    /// The one erased longest ago.
    Oldest,
    /// The one erased least often: dynamic wear levelling.
    LeastWorn,
    /// The one with the fewest bit errors, and for cold data the one with the most.
    FewestErrors,
}

/// Free units, per location.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct FreePool {
    places: Vec<Free>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
enum Free {
    Oldest(VecDeque<u32>),
    /// With erase counts.
    LeastWorn(BinaryHeap<Reverse<(u32, u32)>>),
    /// With bit error counts; sorted.
    FewestErrors(BTreeSet<(u32, u32)>),
}

impl Free {
    #[inline]
    fn take(&mut self) -> Option<u32> {
        match self {
            Free::Oldest(list) => list.pop_front(),
            Free::LeastWorn(heap) => heap.pop().map(|Reverse((_, free))| free),
            Free::FewestErrors(set) => set.pop_first().map(|(_, free)| free),
        }
    }

    /// Take a unit for cold data.
    fn take_for_cold(&mut self) -> Option<u32> {
        match self {
            Free::FewestErrors(set) => set.pop_last().map(|(_, free)| free),
            other => other.take(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Free::Oldest(list) => list.len(),
            Free::LeastWorn(heap) => heap.len(),
            Free::FewestErrors(set) => set.len(),
        }
    }
}

impl FreePool {
    /// Create a pool of units that were never erased, per location.
    pub(crate) fn new(order: FreeOrder, places: impl Iterator<Item = Vec<u32>>) -> FreePool {
        let ordered = |free: Vec<u32>| match order {
            FreeOrder::Oldest => Free::Oldest(free.into()),
            FreeOrder::LeastWorn => {
                Free::LeastWorn(free.into_iter().map(|free| Reverse((0, free))).collect())
            }
            FreeOrder::FewestErrors => {
                Free::FewestErrors(free.into_iter().map(|free| (0, free)).collect())
            }
        };
        FreePool { places: places.map(ordered).collect() }
    }

    /// Create a pool with `each` units at each of `places` locations, numbered consecutively.
    pub(crate) fn full(places: u32, each: u32) -> FreePool {
        let units = |place: u32| (place * each..(place + 1) * each).collect();
        FreePool::new(FreeOrder::Oldest, (0..places).map(units))
    }

    /// Create an empty pool of `places` locations.
    pub(crate) fn empty(places: u32) -> FreePool {
        FreePool::full(places, 0)
    }

    /// Remove all units.
    pub(crate) fn clear(&mut self) {
        for place in &mut self.places {
            match place {
                Free::Oldest(list) => list.clear(),
                Free::LeastWorn(heap) => heap.clear(),
                Free::FewestErrors(set) => set.clear(),
            }
        }
    }

    /// Remove all units except those for which `is_free` returns true.
    pub(crate) fn retain(&mut self, is_free: impl Fn(u32) -> bool) {
        for place in &mut self.places {
            match place {
                Free::Oldest(list) => list.retain(|free| is_free(*free)),
                Free::LeastWorn(heap) => heap.retain(|Reverse((_, free))| is_free(*free)),
                Free::FewestErrors(set) => set.retain(|(_, free)| is_free(*free)),
            }
        }
    }

    /// Take the unit to be filled next at `place`.
    #[inline]
    pub(crate) fn take(&mut self, place: u32) -> Option<u32> {
        self.places[place as usize].take()
    }

    /// Take a unit at `place` for cold data.
    pub(crate) fn take_for_cold(&mut self, place: u32) -> Option<u32> {
        self.places[place as usize].take_for_cold()
    }

    /// Like [`FreePool::take`]; if `place` is empty, takes from the location with the most units, the last of
    /// several.
    pub(crate) fn take_near(&mut self, place: u32) -> Option<u32> {
        self.take(place)
            .or_else(|| self.places.iter_mut().max_by_key(|free| free.len()).and_then(Free::take))
    }

    /// Add `free`, which was erased at `place`.
    #[inline]
    pub(crate) fn put(&mut self, place: u32, free: u32) {
        self.put_worn(place, free, 0);
    }

    /// Like [`FreePool::put`], with an erase count or an error count.
    #[inline]
    pub(crate) fn put_worn(&mut self, place: u32, free: u32, wear: u32) {
        match &mut self.places[place as usize] {
            Free::Oldest(list) => list.push_back(free),
            Free::LeastWorn(heap) => heap.push(Reverse((wear, free))),
            Free::FewestErrors(set) => drop(set.insert((wear, free))),
        }
    }

    /// Return the number of free units.
    pub(crate) fn len(&self) -> usize {
        self.places.iter().map(Free::len).sum()
    }

    /// Return all free units, in no order.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.iter().flat_map(|free| -> Vec<u32> {
            match free {
                Free::Oldest(list) => list.iter().copied().collect(),
                Free::LeastWorn(heap) => heap.iter().map(|Reverse((_, free))| *free).collect(),
                Free::FewestErrors(set) => set.iter().map(|(_, free)| *free).collect(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_pool_is_first_in_first_out_and_borrows_from_fullest_location() {
        let mut pool = FreePool::full(3, 2);
        assert_eq!([0, 0, 0].map(|place| pool.take(place)), [Some(0), Some(1), None]);
        pool.put(0, 1);
        pool.put(0, 0);
        assert_eq!([0, 0].map(|place| pool.take(place)), [Some(1), Some(0)]);
        // Both others have two units: the last location is used.
        assert_eq!([0, 0, 0].map(|place| pool.take_near(place)), [Some(4), Some(2), Some(5)]);
        assert_eq!((pool.len(), pool.iter().collect::<Vec<_>>()), (1, vec![3]));
    }

    #[test]
    fn least_worn_pool_takes_lowest_erase_count() {
        let mut pool = FreePool::new(FreeOrder::LeastWorn, [vec![7, 3]].into_iter());
        assert_eq!(pool.take(0), Some(3), "the lowest number among equally worn units");
        pool.put_worn(0, 3, 5);
        pool.put_worn(0, 9, 4);
        assert_eq!([0; 4].map(|place| pool.take(place)), [Some(7), Some(9), Some(3), None]);
    }

    #[test]
    fn fewest_errors_pool_takes_best_or_for_cold_data_worst() {
        let mut pool = FreePool::new(FreeOrder::FewestErrors, [vec![]].into_iter());
        for (free, errors) in [(1, 30), (2, 10), (3, 40), (4, 20)] {
            pool.put_worn(0, free, errors);
        }
        assert_eq!((pool.take(0), pool.take_for_cold(0)), (Some(2), Some(3)));
        assert_eq!((pool.take_for_cold(0), pool.take(0)), (Some(1), Some(4)));
        assert_eq!(pool.take(0), None);
    }
}
