//! Addresses inside a flash device, and the arithmetic between them.
//!
//! Everything is flat. Dies are numbered channels first (die d sits on channel d mod C), so that
//! counting through the dies is OFC's round robin "over channels, then dies" (OFC §IV.C). A block's
//! number contains its die, a page's number its block:
//!
//! ```text
//! BlockIdx = die × blocks_per_die + block in die        Ppn = BlockIdx × pages_per_block + page
//! ```

/// Logical page number: what the host addresses, in flash pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Lpn(pub u32);

/// Physical page number, flat over the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ppn(pub u32);

/// An erase block, flat over the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BlockIdx(pub u32);

/// A die (LUN), flat over the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DieIdx(pub u32);

/// How many of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Geometry {
    pub channels: u32,
    pub dies: u32,
    pub blocks_per_die: u32,
    pub pages_per_block: u32,
    pub page_bytes: u32,
    /// Pages that the host can address.
    pub logical_pages: u32,
}

impl Geometry {
    /// Blocks of all dies.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.dies * self.blocks_per_die
    }

    /// Pages of all blocks.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.blocks() * self.pages_per_block
    }

    #[inline]
    pub(crate) fn block_of(&self, page: Ppn) -> BlockIdx {
        BlockIdx(page.0 / self.pages_per_block)
    }

    #[inline]
    pub(crate) fn page_in_block(&self, page: Ppn) -> u32 {
        page.0 % self.pages_per_block
    }

    #[inline]
    pub(crate) fn first_page(&self, block: BlockIdx) -> Ppn {
        Ppn(block.0 * self.pages_per_block)
    }

    #[inline]
    pub(crate) fn die_of(&self, block: BlockIdx) -> DieIdx {
        DieIdx(block.0 / self.blocks_per_die)
    }

    #[inline]
    pub(crate) fn channel_of(&self, die: DieIdx) -> usize {
        (die.0 % self.channels) as usize
    }
}
