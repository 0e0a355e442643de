//! Flash after power was lost, under an FTL that merges: which pages are programmed, and which blocks stand in for others.

use super::Flash;
use crate::flash::geometry::BlockIdx;

impl Flash {
    /// Pages of a block that an FTL knows which merges turn out to be programmed, whatever its order: `programmed`
    /// says which ones, the last of them being one before `end`.
    pub(crate) fn found_pages(
        &mut self,
        block: BlockIdx,
        end: u32,
        programmed: impl Fn(u32) -> bool,
    ) {
        let Flash { nand, replaced, .. } = self;
        let by = replaced.as_ref().map_or(block, |replaced| replaced.block(block));
        if nand.is_in_any_order() {
            return nand.found_pages(by, programmed);
        }
        let found = replaced.as_mut().and_then(|replaced| replaced.found(block, programmed));
        nand.found_programmed(by, found.unwrap_or(end));
    }

    /// Blocks say for which of those that an FTL knows they stand in, `named`; nothing is programmed in any other that
    /// is not known as bad.
    pub(crate) fn stand_in_again(&mut self, named: &[Option<BlockIdx>]) {
        let Flash { nand, replaced, geometry, .. } = self;
        let mut taken = vec![false; geometry.blocks() as usize];
        named.iter().flatten().for_each(|block| taken[block.0 as usize] = true);
        let others = (0..geometry.blocks()).map(BlockIdx);
        let erased: Vec<BlockIdx> =
            others.filter(|block| !taken[block.0 as usize] && !nand.is_bad(*block)).collect();
        for block in &erased {
            match nand.is_in_any_order() {
                true => nand.found_pages(*block, |_| false),
                false => nand.found_programmed(*block, 0),
            }
        }
        let replaced = replaced.as_mut().expect("others stand in for blocks");
        replaced.begin_anew(named, &erased, geometry, |block| nand.erases(block));
    }
}
