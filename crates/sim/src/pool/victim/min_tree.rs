//! A tree of minima over counts that are stored elsewhere: minima of groups of 64, and of groups of those.
//!
//! ```text
//! tops               3
//! minima             3              5        …       one of each 64 below
//! counts (external)  9 4 3 … 7      5 8 …    …
//! ```
//!
//! Every invalidated page lowers a count, which usually touches one minimum and changes none. Removing a
//! count reads 63 neighbours a level. Every plane has a tree of its own, all in two flat arrays.

/// Counts per group: 128 bytes, two cache lines.
const GROUP: usize = 64;

/// Counts of this value or more are absent from the tree.
const ABSENT: u16 = crate::pool::blocks::NOT_CLOSED;

/// Minima over the counts of the blocks of each plane.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct MinTrees {
    minima: Vec<u16>,
    tops: Vec<u16>,
    /// Entries per plane.
    minima_each: usize,
    tops_each: usize,
}

impl MinTrees {
    /// Create trees over `length` counts for each of `planes`, all absent.
    pub(super) fn new(planes: usize, length: usize) -> MinTrees {
        let minima_each = length.div_ceil(GROUP);
        let tops_each = minima_each.div_ceil(GROUP);
        MinTrees {
            minima: vec![ABSENT; planes * minima_each],
            tops: vec![ABSENT; planes * tops_each],
            minima_each,
            tops_each,
        }
    }

    /// Lower the count at `index` of `plane` to `count`, which does not exceed its old value.
    #[inline]
    pub(super) fn lower(&mut self, plane: usize, index: usize, count: u16) {
        let minimum = &mut self.minima[plane * self.minima_each + index / GROUP];
        if count < *minimum {
            *minimum = count;
            let top = &mut self.tops[plane * self.tops_each + index / GROUP / GROUP];
            *top = count.min(*top);
        }
    }

    /// Remove the count at `index` of `plane` from the tree; `counts` are the counts of that plane. The
    /// caller must raise that count to [`ABSENT`] or more before the next call of `smallest`.
    pub(super) fn remove(&mut self, plane: usize, index: usize, counts: &[u16]) {
        let group = index / GROUP;
        let minima = &mut self.minima[plane * self.minima_each..][..self.minima_each];
        let (before, after) = members(counts, group).split_at(index % GROUP);
        minima[group] = smallest(before).min(smallest(&after[1..]));
        let tops = &mut self.tops[plane * self.tops_each..][..self.tops_each];
        tops[group / GROUP] = smallest(members(minima, group / GROUP));
    }

    /// Return the index of the smallest of `counts`, the counts of `plane`, the first of several; `None` if
    /// all are absent.
    pub(super) fn smallest(&self, plane: usize, counts: &[u16]) -> Option<usize> {
        let tops = &self.tops[plane * self.tops_each..][..self.tops_each];
        let minimum = smallest(tops);
        if minimum >= ABSENT {
            return None;
        }
        let at = |counts: &[u16]| counts.iter().position(|count| *count == minimum);
        let top = at(tops)?;
        let minima = &self.minima[plane * self.minima_each..][..self.minima_each];
        let group = top * GROUP + at(members(minima, top))?;
        Some(group * GROUP + at(members(counts, group))?)
    }
}

/// Return the members of a group.
#[inline]
fn members(counts: &[u16], group: usize) -> &[u16] {
    &counts[group * GROUP..counts.len().min((group + 1) * GROUP)]
}

/// Return the smallest count; the compiler vectorizes this loop.
#[inline]
fn smallest(counts: &[u16]) -> u16 {
    counts.iter().copied().fold(ABSENT, u16::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a scan of all counts.
        #[test]
        fn min_tree_matches_linear_scan(
            length in 1usize..9_000, planes in 1usize..4,
            steps in prop::collection::vec((any::<u32>(), 0u16..300, any::<u8>()), 1..400),
        ) {
            let mut trees = MinTrees::new(planes, length);
            let mut counts = vec![vec![ABSENT + 7; length]; planes];
            for (at, count, plane) in steps {
                let (at, plane) = (at as usize % length, usize::from(plane) % planes);
                if count == 0 && counts[plane][at] < ABSENT {
                    trees.remove(plane, at, &counts[plane]);
                    counts[plane][at] = ABSENT + 3;
                } else if count <= counts[plane][at] {
                    counts[plane][at] = count;
                    trees.lower(plane, at, count);
                }
                let expected = counts[plane].iter().enumerate().min_by_key(|(_, count)| **count)
                    .filter(|(_, count)| **count < ABSENT).map(|(at, _)| at);
                prop_assert_eq!(trees.smallest(plane, &counts[plane]), expected);
            }
        }
    }
}
