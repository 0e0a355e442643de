//! What the response time of one host I/O was spent on, along the path of its last page.

use std::num::NonZeroU32;

use uflip_core::Breakdown;

/// One part per cause [ns]; they sum to the response time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct SimBreakdown {
    parts: [u64; SimBreakdown::COUNT],
}

/// The causes, in the order of [`SimBreakdown::CAUSES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Cause {
    /// The controller's processor takes in the command, and waiting for it; for the interface, where that lets
    /// only so many commands in; for its rings of descriptors, and until it notices what is over.
    Controller,
    /// Data on the host link, and waiting for it.
    Link,
    /// Data on the controller's internal bus and in its memory, and waiting for them.
    Bus,
    /// Another host I/O, or another page of this one, has the die.
    DieWait,
    /// The channel is taken.
    ChannelWait,
    /// This page's data on the channel.
    Transfer,
    /// The cells of this page are read.
    CellRead,
    /// The cells of this page are programmed.
    CellProgram,
    /// Reading the page that this write covers only in part.
    ReadToModify,
    /// The die is reading or programming pages for garbage collection.
    Relocation,
    /// The die is erasing a block.
    Erase,
    /// The die programs the metadata page of a full block.
    Metadata,
    /// No free page: the write waits for the collection of a block to end.
    FreePage,
    /// The write waits for the write cache: for a page of a full one to be flushed, or for all of it.
    CacheWait,
    /// Pages are copied by merges of a block-mapped or hybrid FTL.
    Merge,
    /// The map is read from flash and written back (DFTL), for this page or for another.
    Mapping,
    /// The page is read again because of bit errors, or programmed again after a failure.
    Retry,
    /// The die moves what a block holds because of its reads or its age.
    Scrub,
}

impl SimBreakdown {
    const COUNT: usize = 18;
}

/// Where the time of a host page is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct AccountIdx(NonZeroU32);

impl AccountIdx {
    pub(crate) fn new(index: u32) -> AccountIdx {
        AccountIdx(NonZeroU32::MIN.saturating_add(index))
    }

    pub(super) fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The number that it was made of.
    pub(crate) fn number(self) -> u32 {
        self.0.get() - 1
    }
}

/// Somebody who keeps account of where time goes, or does not care (`()`).
pub(crate) trait Account {
    fn add(&mut self, cause: Cause, ns: u64);
}

impl Account for SimBreakdown {
    #[inline]
    fn add(&mut self, cause: Cause, ns: u64) {
        self.parts[cause as usize] += ns;
    }
}

impl Breakdown for SimBreakdown {
    const CAUSES: &'static [&'static str] = &[
        "controller_ns",
        "link_ns",
        "bus_ns",
        "die_wait_ns",
        "channel_wait_ns",
        "transfer_ns",
        "cell_read_ns",
        "cell_program_ns",
        "read_to_modify_ns",
        "relocation_ns",
        "erase_ns",
        "metadata_ns",
        "free_page_wait_ns",
        "cache_wait_ns",
        "merge_ns",
        "mapping_ns",
        "retry_ns",
        "scrub_ns",
    ];

    #[inline]
    fn parts(&self) -> &[u64] {
        &self.parts
    }
}
