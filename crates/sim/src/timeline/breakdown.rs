//! The response time of a request by cause, along the path of its last page.
//!
//! There is one list of causes. A device reports a column for each cause, or for several causes
//! that are the same to its user. A list of columns defines the type.

use std::num::NonZeroU32;

use uflip_core::{Breakdown, CauseColumn};

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

/// Define the breakdown of a kind of device: its columns, the causes of each, and its label, colour
/// and meaning. Reports, the explorer and the reference follow. A colour is distinct from all others
/// of a device; an activity has the same one on both.
macro_rules! breakdown {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($column:literal = $($cause:ident)|+ { $label:literal, $color:literal, $meaning:literal })+
        }
    ) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize,
        )]
        pub struct $name {
            parts: [u64; $name::COLUMNS],
        }

        impl $name {
            const COLUMNS: usize = [$($column),+].len();
            /// What users see of each column.
            pub const ABOUT: [CauseColumn; $name::COLUMNS] = [
                $(CauseColumn { column: $column, label: $label, color: $color, meaning: $meaning }),+
            ];
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
        "controller_ns" = Controller {
            "controller", "#3b7fb8",
            "the controller's processor handles the command, waiting for the processor, and the \
             time until the host notices the completion (`[interrupts]`)"
        }
        "link_ns" = Link {
            "host interface", "#e69f00",
            "data on the host link, and waiting for it"
        }
        "bus_ns" = Bus {
            "internal bus", "#009e73",
            "data on the controller's internal bus, and waiting for it"
        }
        "die_wait_ns" = DieWait | ReadWait | ProgramWait {
            "die wait", "#cc79a7",
            "another host I/O, another page of this one, or another page of the write cache \
             occupies the die"
        }
        "channel_wait_ns" = ChannelWait {
            "channel wait", "#d55e00",
            "the channel is busy"
        }
        "transfer_ns" = Transfer {
            "transfer", "#7fc4ee",
            "this page's data on the channel"
        }
        "cell_read_ns" = CellRead {
            "cell read (tR)", "#b8a800",
            "the cells of this page are read"
        }
        "cell_program_ns" = CellProgram {
            "cell program (tPROG)", "#7a5ea8",
            "the cells of this page are programmed"
        }
        "read_to_modify_ns" = ReadToModify {
            "read-modify-write", "#8a8d93",
            "reading the page that this write covers only in part"
        }
        "relocation_ns" = Relocation {
            "GC copy", "#9c6b4e",
            "the die is reading or programming valid pages for garbage collection"
        }
        "erase_ns" = Erase | EraseWait {
            "erase (tBERS)", "#1f3552",
            "the die is erasing a block"
        }
        "metadata_ns" = Metadata {
            "metadata", "#d8b98a",
            "the die programs the metadata page of a full block"
        }
        "free_page_wait_ns" = FreePage {
            "GC stall", "#7d1f3c",
            "no free page: the write waits for the collection of a block to end"
        }
        "cache_wait_ns" = CacheWait {
            "cache wait", "#4f7942",
            "the write waits for the write cache while the die of the flushed page is idle. While \
             that die is busy, the wait counts for the cause that keeps it busy. Also: the write \
             waits for other units to fill its flash page"
        }
        "merge_ns" = Merge {
            "merge", "#ff4fa0",
            "merges of a block-mapped or hybrid FTL copy pages, and waiting for them; their \
             erases are in `erase_ns`"
        }
        "mapping_ns" = Mapping {
            "mapping", "#3a3f00",
            "a mapping page is read, or first written back, for this page; or the die does so for \
             another page (`ftl = \"dftl\"`)"
        }
        "retry_ns" = Retry {
            "retry", "#00d0c8",
            "the page is read again because of bit errors, or programmed again after a failure"
        }
        "scrub_ns" = Scrub {
            "scrub", "#6b00b3",
            "the die moves the pages of a block because of its reads or its age (`scrub_reads`, \
             `scrub_age_s`); its erase is in `erase_ns`"
        }
    }
}

breakdown! {
    /// The response time of one command of an open-channel device by cause [ns]; the parts sum to
    /// the response time.
    FlashBreakdown {
        "submission_ns" = Controller {
            "submission", "#3b7fb8",
            "on the submission path that all channels share, and waiting for it"
        }
        "dispatch_ns" = Dispatch {
            "dispatch", "#009e73",
            "at the channel's thread, and waiting for it"
        }
        "channel_wait_ns" = ChannelWait {
            "channel wait", "#d55e00",
            "another command has the channel"
        }
        "program_wait_ns" = ProgramWait {
            "program wait", "#cc79a7",
            "the LUN is programming for a command before"
        }
        "erase_wait_ns" = EraseWait {
            "erase wait", "#7d1f3c",
            "the LUN is erasing"
        }
        "read_wait_ns" = ReadWait {
            "read wait", "#ff4fa0",
            "the LUN is reading"
        }
        "lun_switch_ns" = DieSwitch {
            "LUN switch", "#4f7942",
            "the channel turns from one LUN to another"
        }
        "cell_read_ns" = CellRead {
            "cell read (tR)", "#b8a800",
            "reading the cells"
        }
        "transfer_ns" = Transfer {
            "transfer", "#7fc4ee",
            "data on the channel and through the ECC"
        }
        "retry_ns" = Retry {
            "retry", "#00d0c8",
            "repeated reads after a disturbance"
        }
        "cell_program_ns" = CellProgram {
            "cell program (tPROG)", "#7a5ea8",
            "programming the cells, if writes are not answered before"
        }
        "cell_erase_ns" = Erase {
            "cell erase", "#1f3552",
            "erasing"
        }
        "completion_ns" = Completion {
            "completion", "#6b00b3",
            "the return path to the host"
        }
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
