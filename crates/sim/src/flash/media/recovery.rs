//! Recovery of the flash under a merging FTL after a power loss: programmed pages and replaced blocks.

use super::Flash;
use crate::flash::geometry::BlockIdx;

impl Flash {
    /// Set the programmed pages of an FTL's block, in whatever order the flash requires; `programmed` tests a
    /// page, and all are before `end`.
    pub(crate) fn restore_pages(
        &mut self,
        block: BlockIdx,
        end: u32,
        programmed: impl Fn(u32) -> bool,
    ) {
        let Flash { nand, replacements, .. } = self;
        let by = replacements.as_ref().map_or(block, |replacements| replacements.block(block));
        if nand.is_in_any_order() {
            return nand.restore_pages(by, programmed);
        }
        let programmed_pages =
            replacements.as_mut().and_then(|replacements| replacements.rebuild(block, programmed));
        nand.restore_programmed(by, programmed_pages.unwrap_or(end));
    }

    /// Restore the replacement of blocks: `named` is the physical block of each of the FTL's blocks. All
    /// other good blocks are erased.
    pub(crate) fn restore_replacements(&mut self, named: &[Option<BlockIdx>]) {
        let Flash { nand, replacements, geometry, .. } = self;
        let mut used = vec![false; geometry.blocks() as usize];
        named.iter().flatten().for_each(|block| used[block.0 as usize] = true);
        let others = (0..geometry.blocks()).map(BlockIdx);
        let erased: Vec<BlockIdx> =
            others.filter(|block| !used[block.0 as usize] && !nand.is_bad(*block)).collect();
        for block in &erased {
            match nand.is_in_any_order() {
                true => nand.restore_pages(*block, |_| false),
                false => nand.restore_programmed(*block, 0),
            }
        }
        let replacements = replacements.as_mut().expect("the replacement table exists");
        replacements.reset_after_power_loss(named, &erased, geometry, |block| nand.erases(block));
    }
}
