//! Wear levelling under a merging FTL, invisible to it: like the replacement of failed blocks.
//!
//! ```text
//! block of the FTL       0    1    2    3            of every plane
//! physical, erases       A 9  B 2  C 7  D 4          0 and 2 are erased, 1 and 3 hold data
//!
//! dynamic   0 is programmed:   C for 0, A for 2      the least worn of the erased blocks
//! static    2 was erased:      B is copied to A,     the least worn block with data, to the most worn erased one
//!                              B is erased: A for 1, B for 0
//! ```
//!
//! **Source**: OFC (2011) §IV.E has both: to fill the least worn block, and to move data that keeps a block
//! from wearing.
//! **Faithful**: both within a plane, as its page maps have it, and static levelling as seldom as theirs.
//! **Simplified**: the table takes no flash of its own; all programmed pages are copied, valid or not, since
//! only the FTL has that information; after a power loss a plane is checked when it has done the interval of
//! erases again.
//! **Ambiguous**: the destination of cold data: here the most worn block, which it spares.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::flash::geometry::{BlockIdx, Geometry, PlaneIdx};

/// Erases of a plane between two checks of static levelling: its blocks divided by this.
pub(crate) const STATIC_INTERVAL: u32 = 16;

/// In place of an erase count: the block holds data.
const HOLDS_DATA: u32 = u32::MAX;

/// The wear levelling state of the blocks of an FTL.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Levelling {
    logical: Geometry,
    dynamic: bool,
    /// Difference in erases between the most and the least worn block of a plane above which data moves; 0:
    /// never.
    static_threshold: u32,
    /// Per plane: erases since the last check.
    since: Vec<u32>,
    /// Per block: the erase count of its physical block, if that is erased.
    wear: Vec<u32>,
    /// The erased blocks of each plane, by erase count.
    erased: Vec<BTreeSet<(u32, u32)>>,
}

impl Levelling {
    /// Create the state of a device with the FTL's geometry, on flash that was never erased.
    pub(crate) fn new(logical: Geometry, dynamic: bool, static_threshold: u32) -> Levelling {
        let of_plane = |plane| logical.blocks_of(plane).map(|block| (0, block.0)).collect();
        let planes = logical.shape().planes;
        Levelling {
            logical,
            dynamic,
            static_threshold,
            since: vec![0; planes as usize],
            wear: vec![0; logical.blocks() as usize],
            erased: (0..planes).map(PlaneIdx).map(of_plane).collect(),
        }
    }

    /// Reset after a power loss; `wear` returns the erase count of a block's physical block, if that is
    /// erased.
    pub(super) fn reset_after_power_loss(&mut self, wear: impl Fn(BlockIdx) -> Option<u32>) {
        self.since.fill(0);
        self.erased.iter_mut().for_each(BTreeSet::clear);
        for block in 0..self.logical.blocks() {
            let erases = wear(BlockIdx(block));
            self.wear[block as usize] = erases.unwrap_or(HOLDS_DATA);
            let plane = self.plane_of(block);
            self.erased[plane].extend(erases.map(|erases| (erases, block)));
        }
    }

    #[inline]
    fn plane_of(&self, block: u32) -> usize {
        self.logical.plane_of(BlockIdx(block)).0 as usize
    }

    /// Note that a page of `block` is programmed next. If it is the first, and another erased block is less
    /// worn, returns that block, with which it is swapped.
    #[inline]
    pub(super) fn programmed(&mut self, block: BlockIdx) -> Option<BlockIdx> {
        if self.wear[block.0 as usize] == HOLDS_DATA {
            return None;
        }
        self.filled(block.0)
    }

    #[inline(never)]
    fn filled(&mut self, block: u32) -> Option<BlockIdx> {
        let wear = std::mem::replace(&mut self.wear[block as usize], HOLDS_DATA);
        let plane = self.plane_of(block);
        let erased = &mut self.erased[plane];
        erased.remove(&(wear, block));
        let least_worn = erased.first().filter(|(erases, _)| self.dynamic && *erases < wear);
        let (erases, other) = *least_worn?;
        erased.remove(&(erases, other));
        erased.insert((wear, other));
        self.wear[other as usize] = wear;
        Some(BlockIdx(other))
    }

    /// Note that the physical block of `block` is erased, with the erase count `wear`.
    pub(super) fn is_erased(&mut self, block: BlockIdx, wear: u32) {
        let plane = self.plane_of(block.0);
        let before = std::mem::replace(&mut self.wear[block.0 as usize], wear);
        self.erased[plane].remove(&(before, block.0));
        self.erased[plane].insert((wear, block.0));
    }

    /// Decide after an erase of `block` whether static levelling moves data now, given the `wear` of blocks.
    /// Returns the source block, and the free block that receives its data (removed from the erased ones).
    pub(super) fn next_move(
        &mut self,
        block: BlockIdx,
        wear: impl Fn(BlockIdx) -> u32,
    ) -> Option<(BlockIdx, BlockIdx)> {
        let plane = self.plane_of(block.0);
        self.since[plane] += 1;
        let every = self.logical.shape().blocks_per_plane.div_ceil(STATIC_INTERVAL);
        if self.static_threshold == 0 || self.since[plane] < every {
            return None;
        }
        self.since[plane] = 0;
        let all = || self.logical.blocks_of(PlaneIdx(plane as u32));
        let max_wear = all().map(&wear).max()?;
        let held = all().filter(|block| self.wear[block.0 as usize] == HOLDS_DATA);
        let cold = held.min_by_key(|block| wear(*block))?;
        if max_wear - wear(cold) <= self.static_threshold {
            return None;
        }
        let (_, free) = self.erased[plane].pop_last()?;
        self.wear[free as usize] = HOLDS_DATA;
        Some((cold, BlockIdx(free)))
    }
}

#[cfg(test)]
mod tests {
    use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

    use super::*;
    use crate::flash::geometry::Shape;

    /// Blocks are programmed and erased at random. A plain list of blocks gives the same result: the filled
    /// block is the least worn of the erased blocks of its plane, and the moved block the least worn of those
    /// with data.
    #[test]
    fn levelling_choice_matches_full_scan() {
        let logical = Geometry::from(Shape {
            channels: 1,
            planes: 2,
            blocks_per_plane: 20,
            pages_per_block: 1,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 1,
        });
        let (blocks, gap) = (40usize, 3);
        let mut levelling = Levelling::new(logical, true, gap);
        let mut replacement_of: Vec<usize> = (0..blocks).collect();
        let (mut wear, mut holds) = (vec![0u32; blocks], vec![false; blocks]);
        let (mut moved, mut changed, mut erased_of_plane) = (0, 0, [0u32; 2]);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for _ in 0..20_000 {
            // Some blocks of a plane are written more often.
            let block =
                uniform(&mut rng, blocks as u64).min(uniform(&mut rng, blocks as u64)) as usize;
            let at = BlockIdx(block as u32);
            let plane = block / 20;
            let of_plane = || plane * 20..(plane + 1) * 20;
            if !holds[block] {
                let least = of_plane()
                    .filter(|other| !holds[*other])
                    .map(|other| wear[replacement_of[other]])
                    .min();
                if let Some(other) = levelling.programmed(at) {
                    replacement_of.swap(block, other.0 as usize);
                    changed += 1;
                }
                assert_eq!(Some(wear[replacement_of[block]]), least);
                holds[block] = true;
                assert_eq!(levelling.programmed(at), None, "the block is no longer erased");
                continue;
            }
            holds[block] = false;
            wear[replacement_of[block]] += 1;
            levelling.is_erased(at, wear[replacement_of[block]]);
            let wear_of = |other: usize| wear[replacement_of[other]];
            let most = of_plane().map(wear_of).max().expect("a plane has blocks");
            let cold = of_plane().filter(|other| holds[*other]).map(wear_of).min();
            let most_erased = of_plane().filter(|other| !holds[*other]).map(wear_of).max();
            let moves = levelling.next_move(at, |other| wear_of(other.0 as usize));
            erased_of_plane[plane] += 1;
            // Twenty blocks are checked every second erase.
            let due = erased_of_plane[plane].is_multiple_of(2)
                && cold.is_some_and(|cold| most - cold > gap);
            assert_eq!(moves.is_some(), due);
            let Some((from, to)) = moves else { continue };
            let (from, to) = (from.0 as usize, to.0 as usize);
            assert_eq!((Some(wear_of(from)), Some(wear_of(to))), (cold, most_erased));
            replacement_of.swap(from, to);
            wear[replacement_of[to]] += 1;
            levelling.is_erased(BlockIdx(to as u32), wear[replacement_of[to]]);
            moved += 1;
        }
        assert!(moved > 100 && changed > 100, "{moved} blocks moved, {changed} were swapped");
    }
}
