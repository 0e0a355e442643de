//! The response time of a request by cause, along the path of its last page.
//!
//! There is one list of causes. A device reports a column for each cause, or for several causes
//! that are the same to its user. A list of columns defines the type.

use std::num::NonZeroU32;

use uflip_core::Breakdown;

/// A cause of passing time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Cause {
    /// The controller's processor, and waiting for it; for a command slot; for descriptor rings,
    /// and until the firmware notices a completion.
    Controller,
    /// Data on the host link, and waiting for it.
    Link,
    /// Data on the controller's internal bus and in its memory, and waiting for them.
    Bus,
    /// Another host I/O, or another page of this one, has the die: it waits there, reads, or
    /// programs.
    DieWait,
    ReadWait,
    ProgramWait,
    /// The channel is busy.
    ChannelWait,
    /// This page's data on the channel.
    Transfer,
    /// The cells of this page are being read.
    CellRead,
    /// The cells of this page are being programmed.
    CellProgram,
    /// Reading the rest of a page that this write covers in part.
    ReadToModify,
    /// The die is reading or programming pages for garbage collection.
    Relocation,
    /// The die is erasing a block, for this request or for another.
    Erase,
    EraseWait,
    /// The die programs the metadata page of a full block.
    Metadata,
    /// No free page: the write waits for the collection of a block to end.
    FreePage,
    /// The write waits for the write cache: for a page of a full one to be flushed, or for all of it.
    CacheWait,
    /// Pages are copied by merges of a block-mapped or hybrid FTL.
    Merge,
    /// The map is read from flash or written to it (DFTL), for this page or for another.
    Mapping,
    /// The page is read again because of bit errors, or programmed again after a failure.
    Retry,
    /// The die scrubs a block because of its reads or its age.
    Scrub,
    /// The thread of a channel dispatches the page, and waiting for it.
    Dispatch,
    /// The channel switches from one die to another.
    DieSwitch,
    /// The completion returns to the host.
    Completion,
}

impl Cause {
    const COUNT: usize = Cause::Completion as usize + 1;
}

/// The account of a host page's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct AccountIdx(NonZeroU32);

impl AccountIdx {
    pub(crate) fn new(index: u32) -> AccountIdx {
        AccountIdx(NonZeroU32::MIN.saturating_add(index))
    }

    pub(super) fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Return the number from which it was made.
    pub(crate) fn number(self) -> u32 {
        self.0.get() - 1
    }
}

/// An account of time by cause.
pub(crate) trait Account: Copy + Default {
    fn add(&mut self, cause: Cause, ns: u64);
}

/// The cause has no column.
const NO_COLUMN: u8 = u8::MAX;

/// Return the column of each cause.
const fn column_of(columns: &[&[Cause]]) -> [u8; Cause::COUNT] {
    let mut column_of = [NO_COLUMN; Cause::COUNT];
    let mut column = 0;
    while column < columns.len() {
        let mut next = 0;
        while next < columns[column].len() {
            column_of[columns[column][next] as usize] = column as u8;
            next += 1;
        }
        column += 1;
    }
    column_of
}

/// Define the breakdown of a kind of device: its columns, and the causes of each.
macro_rules! breakdown {
    ($(#[$doc:meta])* $name:ident { $($column:literal: $($cause:ident)|+,)+ }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize,
        )]
        pub struct $name {
            parts: [u64; $name::COLUMNS],
        }

        impl $name {
            const COLUMNS: usize = [$($column),+].len();
            const PLACES: [u8; Cause::COUNT] = column_of(&[$(&[$(Cause::$cause),+]),+]);
        }

        impl Account for $name {
            #[inline(always)]
            fn add(&mut self, cause: Cause, ns: u64) {
                self.parts[usize::from($name::PLACES[cause as usize])] += ns;
            }
        }

        impl Breakdown for $name {
            const CAUSES: &'static [&'static str] = &[$($column),+];

            #[inline]
            fn parts(&self) -> &[u64] {
                &self.parts
            }
        }
    };
}

breakdown! {
    /// The response time of one I/O of a block device by cause [ns]; the parts sum to the response
    /// time.
    SimBreakdown {
        "controller_ns": Controller,
        "link_ns": Link,
        "bus_ns": Bus,
        "die_wait_ns": DieWait | ReadWait | ProgramWait,
        "channel_wait_ns": ChannelWait,
        "transfer_ns": Transfer,
        "cell_read_ns": CellRead,
        "cell_program_ns": CellProgram,
        "read_to_modify_ns": ReadToModify,
        "relocation_ns": Relocation,
        "erase_ns": Erase | EraseWait,
        "metadata_ns": Metadata,
        "free_page_wait_ns": FreePage,
        "cache_wait_ns": CacheWait,
        "merge_ns": Merge,
        "mapping_ns": Mapping,
        "retry_ns": Retry,
        "scrub_ns": Scrub,
    }
}

breakdown! {
    /// The response time of one command of an open-channel device by cause [ns]; the parts sum to
    /// the response time.
    FlashBreakdown {
        "submission_ns": Controller,
        "dispatch_ns": Dispatch,
        "channel_wait_ns": ChannelWait,
        "program_wait_ns": ProgramWait,
        "erase_wait_ns": EraseWait,
        "read_wait_ns": ReadWait,
        "lun_switch_ns": DieSwitch,
        "cell_read_ns": CellRead,
        "transfer_ns": Transfer,
        "retry_ns": Retry,
        "cell_program_ns": CellProgram,
        "cell_erase_ns": Erase,
        "completion_ns": Completion,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cause that dies and channels charge has a column.
    #[test]
    fn causes_add_to_their_columns() {
        let mut block = SimBreakdown::default();
        [Cause::DieWait, Cause::ReadWait, Cause::ProgramWait]
            .into_iter()
            .for_each(|cause| block.add(cause, 7));
        let column = |name| SimBreakdown::CAUSES.iter().position(|cause| *cause == name);
        assert_eq!(block.parts()[column("die_wait_ns").unwrap()], 21);
        let mut vector = FlashBreakdown::default();
        [Cause::ReadWait, Cause::ProgramWait, Cause::Erase]
            .into_iter()
            .for_each(|cause| vector.add(cause, 5));
        assert_eq!(
            vector.parts().iter().filter(|ns| **ns == 5).count(),
            3,
            "each cause has its own column"
        );
    }
}
