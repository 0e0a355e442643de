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
    #[serde(rename = "places")]
    locations: Vec<FreeList>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Free")]
enum FreeList {
    Oldest(VecDeque<u32>),
    /// With erase counts.
    LeastWorn(BinaryHeap<Reverse<(u32, u32)>>),
    /// With bit error counts; sorted.
    FewestErrors(BTreeSet<(u32, u32)>),
}

impl FreeList {
    #[inline]
    fn take(&mut self) -> Option<u32> {
        match self {
            FreeList::Oldest(list) => list.pop_front(),
            FreeList::LeastWorn(heap) => heap.pop().map(|Reverse((_, unit))| unit),
            FreeList::FewestErrors(set) => set.pop_first().map(|(_, unit)| unit),
        }
    }

    /// Take a unit for cold data.
    fn take_for_cold(&mut self) -> Option<u32> {
        match self {
            FreeList::FewestErrors(set) => set.pop_last().map(|(_, unit)| unit),
            other => other.take(),
        }
    }

    fn len(&self) -> usize {
        match self {
            FreeList::Oldest(list) => list.len(),
            FreeList::LeastWorn(heap) => heap.len(),
            FreeList::FewestErrors(set) => set.len(),
        }
    }
}

impl FreePool {
    /// Create a pool of units that were never erased, per location.
    pub(crate) fn new(order: FreeOrder, locations: impl Iterator<Item = Vec<u32>>) -> FreePool {
        let ordered = |units: Vec<u32>| match order {
            FreeOrder::Oldest => FreeList::Oldest(units.into()),
            FreeOrder::LeastWorn => {
                FreeList::LeastWorn(units.into_iter().map(|unit| Reverse((0, unit))).collect())
            }
            FreeOrder::FewestErrors => {
                FreeList::FewestErrors(units.into_iter().map(|unit| (0, unit)).collect())
            }
        };
        FreePool { locations: locations.map(ordered).collect() }
    }

    /// Create a pool with `each` units at each of `locations` locations, numbered consecutively.
    pub(crate) fn full(locations: u32, each: u32) -> FreePool {
        let units = |location: u32| (location * each..(location + 1) * each).collect();
        FreePool::new(FreeOrder::Oldest, (0..locations).map(units))
    }

    /// Create an empty pool of `locations` locations.
    pub(crate) fn empty(locations: u32) -> FreePool {
        FreePool::full(locations, 0)
    }

    /// Remove all units.
    pub(crate) fn clear(&mut self) {
        for list in &mut self.locations {
            match list {
                FreeList::Oldest(list) => list.clear(),
                FreeList::LeastWorn(heap) => heap.clear(),
                FreeList::FewestErrors(set) => set.clear(),
            }
        }
    }

    /// Remove all units except those for which `is_free` returns true.
    pub(crate) fn retain(&mut self, is_free: impl Fn(u32) -> bool) {
        for list in &mut self.locations {
            match list {
                FreeList::Oldest(list) => list.retain(|unit| is_free(*unit)),
                FreeList::LeastWorn(heap) => heap.retain(|Reverse((_, unit))| is_free(*unit)),
                FreeList::FewestErrors(set) => set.retain(|(_, unit)| is_free(*unit)),
            }
        }
    }

    /// Take the unit to be filled next at `location`.
    #[inline]
    pub(crate) fn take(&mut self, location: u32) -> Option<u32> {
        self.locations[location as usize].take()
    }

    /// Take a unit at `location` for cold data.
    pub(crate) fn take_for_cold(&mut self, location: u32) -> Option<u32> {
        self.locations[location as usize].take_for_cold()
    }

    /// Like [`FreePool::take`]; if `location` is empty, takes from the location with the most units,
    /// the last of several.
    pub(crate) fn take_near(&mut self, location: u32) -> Option<u32> {
        self.take(location).or_else(|| {
            self.locations.iter_mut().max_by_key(|list| list.len()).and_then(FreeList::take)
        })
    }

    /// Add `unit`, which was erased at `location`.
    #[inline]
    pub(crate) fn put(&mut self, location: u32, unit: u32) {
        self.put_worn(location, unit, 0);
    }

    /// Like [`FreePool::put`], with an erase count or an error count.
    #[inline]
    pub(crate) fn put_worn(&mut self, location: u32, unit: u32, wear: u32) {
        match &mut self.locations[location as usize] {
            FreeList::Oldest(list) => list.push_back(unit),
            FreeList::LeastWorn(heap) => heap.push(Reverse((wear, unit))),
            FreeList::FewestErrors(set) => drop(set.insert((wear, unit))),
        }
    }

    /// Return the number of free units.
    pub(crate) fn len(&self) -> usize {
        self.locations.iter().map(FreeList::len).sum()
    }

    /// Return all free units, in no order.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.locations.iter().flat_map(|list| -> Vec<u32> {
            match list {
                FreeList::Oldest(list) => list.iter().copied().collect(),
                FreeList::LeastWorn(heap) => heap.iter().map(|Reverse((_, unit))| *unit).collect(),
                FreeList::FewestErrors(set) => set.iter().map(|(_, unit)| *unit).collect(),
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
        assert_eq!([0, 0, 0].map(|location| pool.take(location)), [Some(0), Some(1), None]);
        pool.put(0, 1);
        pool.put(0, 0);
        assert_eq!([0, 0].map(|location| pool.take(location)), [Some(1), Some(0)]);
        // Both others have two units: the last location is used.
        assert_eq!([0, 0, 0].map(|location| pool.take_near(location)), [Some(4), Some(2), Some(5)]);
        assert_eq!((pool.len(), pool.iter().collect::<Vec<_>>()), (1, vec![3]));
    }

    #[test]
    fn least_worn_pool_takes_lowest_erase_count() {
        let mut pool = FreePool::new(FreeOrder::LeastWorn, [vec![7, 3]].into_iter());
        assert_eq!(pool.take(0), Some(3), "the lowest number among equally worn units");
        pool.put_worn(0, 3, 5);
        pool.put_worn(0, 9, 4);
        assert_eq!([0; 4].map(|location| pool.take(location)), [Some(7), Some(9), Some(3), None]);
    }

    #[test]
    fn fewest_errors_pool_takes_best_or_for_cold_data_worst() {
        let mut pool = FreePool::new(FreeOrder::FewestErrors, [vec![]].into_iter());
        for (unit, errors) in [(1, 30), (2, 10), (3, 40), (4, 20)] {
            pool.put_worn(0, unit, errors);
        }
        assert_eq!((pool.take(0), pool.take_for_cold(0)), (Some(2), Some(3)));
        assert_eq!((pool.take_for_cold(0), pool.take(0)), (Some(1), Some(4)));
        assert_eq!(pool.take(0), None);
    }
}
