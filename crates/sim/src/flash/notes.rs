//! Notes of executed operations on a device that replaces blocks: one for each program and each erase, in
//! order, for the recorded content of the flash. An executed plan gives the physical addresses; a note gives
//! their meaning for the FTL.

use crate::flash::geometry::{BlockIdx, PageAddress, Ppn};

/// A program or an erase.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// The FTL's page `to` was programmed in the physical block `by`, or that failed.
    Program { to: PageAddress, by: BlockIdx, holds: PageContent, fails: bool },
    /// The next of `pages` pages of `old` was copied to `into`. `failed`: `old` also has a page whose program
    /// failed. `ends`: the move that this copy completes, if any.
    Copy { old: BlockIdx, into: BlockIdx, pages: u32, failed: bool, ends: Option<BlockMove> },
    /// The physical block `block`, which was the block `logical` of the FTL if any, was erased, or that failed.
    Erase { logical: Option<BlockIdx>, block: BlockIdx, fails: bool },
    /// The block is retired, and listed as a defect of its plane.
    List(BlockIdx),
}

/// The content of a programmed page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageContent {
    Host,
    /// A copy of another page, as the FTL numbers pages.
    Page(Ppn),
    Map,
    Nothing,
}

/// All pages of the FTL's block `logical` were copied, except the content of `failed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockMove {
    pub(crate) logical: BlockIdx,
    pub(crate) failed: Option<PageAddress>,
}
