//! Blocks that stand in for others: what a controller does about blocks that fail where its FTL has a
//! place for every page of a block, and none for a block that lacks some.
//!
//! ```text
//! what the FTL knows    0   1   2   3                     of every die
//!                       │   │   │   └──────────────┐
//! what stands in        0   ✗   2   3 ✗            │      1 is bad from the factory, 3 has failed
//!                           └── 4 …  in reserve    5
//! ```
//!
//! An FTL that merges sees the blocks of a die without those in reserve, and never hears that one was
//! replaced. What was programmed in a block of which a program failed is copied to the one that replaces
//! it; one that cannot be erased, or has worn pages, is replaced when it is empty.
//!
//! **Source**: bad blocks replaced out of a reserve, as data sheets of NAND flash ask for (Micron TN-29-59,
//! Bad Block Management); retirement of whole blocks OFC (2011) §IV.C.
//! **Faithful**: a block is replaced by one of its die, so that what goes on side by side stays so.
//! **Simplified**: the table takes no flash; everything that is programmed is copied, valid or not; the
//! reserve does not wear before it is used.
//! **Ambiguous**: when a device ends: here when a die has none left to replace a block with.

use serde::{Deserialize, Serialize};

use crate::flash::geometry::{BlockIdx, DieIdx, Geometry, Place};

/// Which block stands in for which.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Replaced {
    /// The device as the FTL knows it: fewer blocks a die.
    known: Geometry,
    stands_in: Vec<BlockIdx>,
    /// Blocks that have not been used, per die; the last is the next.
    reserve: Vec<Vec<BlockIdx>>,
    /// A block with worn pages is replaced; otherwise only one that fails.
    pub(super) retire_worn: bool,
    /// A block has failed, and its die had none to replace it with.
    pub(super) used_up: bool,
}

impl Replaced {
    /// For an FTL that knows `known` of `whole`, of whose blocks `bad` cannot be used; `None` where a die
    /// has fewer good blocks than are known.
    pub(crate) fn new(
        known: Geometry,
        whole: &Geometry,
        bad: &[BlockIdx],
        retire_worn: bool,
    ) -> Option<Replaced> {
        let (mut stands_in, mut reserve) = (Vec::new(), Vec::new());
        let needed = known.shape().blocks_per_die as usize;
        for die in (0..whole.shape().dies).map(DieIdx) {
            let good = whole.blocks_of(die).filter(|block| bad.binary_search(block).is_err());
            let mut good: Vec<BlockIdx> = good.collect();
            if good.len() < needed {
                return None;
            }
            let mut spare = good.split_off(needed);
            spare.reverse();
            stands_in.extend(good);
            reserve.push(spare);
        }
        Some(Replaced { known, stands_in, reserve, retire_worn, used_up: false })
    }

    /// The block that stands in for `block`.
    #[inline]
    pub(super) fn block(&self, block: BlockIdx) -> BlockIdx {
        self.stands_in[block.0 as usize]
    }

    /// Where in `whole` the page is that the FTL knows as `place`.
    #[inline]
    pub(crate) fn place(&self, place: Place, whole: &Geometry) -> Place {
        whole.place(self.block(place.block), self.known.page_in_block(place))
    }

    /// A block of the same die that may stand in for `block`, and has not been used.
    pub(super) fn next(&mut self, block: BlockIdx) -> Option<BlockIdx> {
        let next = self.reserve[self.known.die_of(block).0 as usize].pop();
        self.used_up |= next.is_none();
        next
    }

    /// From now on `by` stands in for `block`.
    pub(super) fn replace(&mut self, block: BlockIdx, by: BlockIdx) {
        self.stands_in[block.0 as usize] = by;
    }
}
