//! What was done where others stand in for blocks: a note for each program and each erase, in order, for whoever keeps
//! what is on flash. A plan as it was done says where; a note says what that means to the FTL that asked for it.

use crate::flash::geometry::{BlockIdx, Place, Ppn};

/// A program or an erase.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// What the FTL knows as `to` was programmed, or failed to be, in the block `by` of the flash.
    Program { to: Place, by: BlockIdx, holds: Holds, fails: bool },
    /// The next of `pages` of `old` was copied to `into`, beside which one is there or not that has `failed`; it `ends`
    /// what moves a block, or not.
    Copy { old: BlockIdx, into: BlockIdx, pages: u32, failed: bool, ends: Option<Moved> },
    /// The block `block` was erased, or failed to be, which stood in for `known`, if for any.
    Erase { known: Option<BlockIdx>, block: BlockIdx, fails: bool },
    /// The block is not used any more, and the list of its plane says so.
    List(BlockIdx),
}

/// What a page holds that is programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    Host,
    /// What is on another page, as the FTL knows pages.
    Page(Ppn),
    Map,
    Nothing,
}

/// All was copied that the FTL knows as the block `known`, but what was to be on `failed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moved {
    pub(crate) known: BlockIdx,
    pub(crate) failed: Option<Place>,
}
