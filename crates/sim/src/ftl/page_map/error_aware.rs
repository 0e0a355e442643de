//! Error-aware block allocation: the bit errors of a block and the expected lifetime of the data decide which
//! block is filled. It is a third way to treat flash that wears out, besides the retirement of blocks and of
//! pages.
//!
//! ```text
//! free blocks by the errors of their worst page    few ├──────────────┤ many
//! the host's data, which is overwritten soon          ▲
//! what collection moves, or the detector calls cold                   ▲
//! ```
//!
//! A block with many errors is therefore erased seldom, since its data stays valid for long, and one with few
//! errors takes the wear. Blocks become worn at the same time rather than after the same number of erases.
//!
//! **Source**: OFC (2011) §IV.C: "allocate pages based on the current raw bit error rate as well as the actual write
//! pattern to be written"; blocks levelled by their errors: Pan, Dong & Zhang (IEEE TVLSI 21(7), 2013), Peleato et al.
//! (IEEE ICC 2015).
//! **Faithful**: the bit error rate at the time, and the data, choose the block.
//! **Simplified**: a block's rate is that of its worst usable page; it is known from its first erase on. The
//! bits of a page do not matter, since data is not simulated.
//! **Ambiguous**: the report gives zeros as an example of a pattern that wears more; here the pattern is the
//! time until data is overwritten, which follows from its stream.

use super::PageMap;
use crate::flash::geometry::{BlockIdx, Ppn};
use crate::flash::media::CollectMedia;

impl PageMap {
    /// Return a number that grows with the bit errors of the worst usable page of the erased `block`.
    pub(super) fn errors_of(&self, block: BlockIdx, media: &impl CollectMedia) -> u32 {
        let geometry = &self.options.geometry;
        let first = geometry.first_page(block).0;
        let pages = (first..first + geometry.data_pages()).map(Ppn);
        let used = pages.filter(|page| !self.blocks.is_retired(*page));
        used.map(|page| media.errors(geometry.address_in(block, page))).max().unwrap_or(u32::MAX)
    }
}
