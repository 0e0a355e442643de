//! The minimum over many small numbers, kept up to date: groups of 64, groups of groups, and so on.
//!
//! ```text
//! level 2 (one)      3
//! level 1            3              5        …       one minimum of each 64 below
//! level 0 (keys)     9 4 3 … 7      5 8 …    …
//! ```
//!
//! Lowering a key, which happens at every invalidated page, touches at most one number a level and
//! mostly only the first; raising one looks at 64 neighbours a level. Three levels hold 262,144 keys.

/// A group is this many keys: 128 bytes, two cache lines.
const GROUP: usize = 64;

/// The key of what is not in the tree.
const ABSENT: u16 = u16::MAX;

/// Keys with their minimum.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct MinTree {
    levels: Vec<Vec<u16>>,
}

impl MinTree {
    /// `length` keys, all absent.
    pub(super) fn new(length: usize) -> MinTree {
        let mut levels = vec![vec![ABSENT; length.next_multiple_of(GROUP)]];
        while levels.last().is_some_and(|level| level.len() > GROUP) {
            let groups = levels.last().map_or(0, |level| level.len() / GROUP);
            levels.push(vec![ABSENT; groups.next_multiple_of(GROUP)]);
        }
        MinTree { levels }
    }

    /// Set a key to a value that is not above its old one.
    #[inline]
    pub(super) fn lower(&mut self, mut index: usize, key: u16) {
        for level in &mut self.levels {
            if level[index] <= key {
                return;
            }
            level[index] = key;
            index /= GROUP;
        }
    }

    /// Take a key out.
    pub(super) fn remove(&mut self, mut index: usize) {
        let mut key = ABSENT;
        for level in &mut self.levels {
            level[index] = key;
            let group = index / GROUP * GROUP;
            key = level[group..group + GROUP].iter().copied().min().unwrap_or(ABSENT);
            index /= GROUP;
        }
    }

    /// The index of the smallest key, the first of several; `None` where all are absent.
    pub(super) fn smallest(&self) -> Option<usize> {
        let mut group = 0;
        for level in self.levels.iter().rev() {
            // The minimum, then its place: two passes that the compiler turns into vectors.
            let keys = &level[group * GROUP..(group + 1) * GROUP];
            let smallest = keys.iter().copied().min().unwrap_or(ABSENT);
            if smallest == ABSENT {
                return None;
            }
            group = group * GROUP + keys.iter().position(|key| *key == smallest)?;
        }
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a scan of all keys.
        #[test]
        fn the_smallest_is_what_a_scan_finds(
            length in 1usize..9_000, steps in prop::collection::vec((any::<u32>(), 0u16..300), 1..400),
        ) {
            let mut tree = MinTree::new(length);
            let mut keys = vec![ABSENT; length];
            for (at, key) in steps {
                let at = at as usize % length;
                if key == 0 {
                    keys[at] = ABSENT;
                    tree.remove(at);
                } else if key <= keys[at] {
                    keys[at] = key;
                    tree.lower(at, key);
                }
                let expected = keys.iter().enumerate().min_by_key(|(_, key)| **key)
                    .filter(|(_, key)| **key != ABSENT).map(|(at, _)| at);
                prop_assert_eq!(tree.smallest(), expected);
            }
        }
    }
}
