//! What is recorded of an operation on flash.

/// One operation: times are those of the device's clock [ns].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Operation {
    /// When it came to the ring of its die, and had the die.
    pub asked: u64,
    /// From when on it had its die, and until when.
    pub begin: u64,
    /// See `begin`.
    pub end: u64,
    /// Its data on the channel; both 0 where none went there. Of a program that holds its channel before it
    /// has its die, from when on it does.
    pub sent: u64,
    /// See `sent`.
    pub sent_until: u64,
    /// How long the cells took: of a read from `begin` on, of all others up to `end`.
    pub cells: u64,
    /// The plane; of a die whose planes go by one time and are not told to work together, the first.
    pub plane: u32,
    /// The I/O for which it was done, and one more, from the beginning of the log; 0: for none.
    pub io: u32,
    /// The collection or plan that it is of, and one more; 0: of none.
    pub job: u32,
    /// The block that is emptied by that, and one more; 0: not known.
    pub block: u32,
    /// One of [`Operations::KINDS`].
    pub kind: u8,
    /// One of [`Operations::PURPOSES`].
    pub purpose: u8,
}

/// A wait of a host page that no operation has: for a free page, or for a place in the write cache.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Since when, and until when.
    pub from: u64,
    /// See `from`.
    pub until: u64,
    /// The I/O that waited, and one more; 0: not known.
    pub io: u32,
    /// The die, as its first plane, that had the free page in the end, or whose program made the place.
    pub plane: u32,
    /// The page that was programmed then: its own, or the one that was flushed.
    pub page: u32,
    /// One of [`Operations::WAITS`].
    pub kind: u8,
}

/// What was recorded.
#[derive(Clone, Default, Debug)]
pub struct Operations {
    /// In the order in which their ends were known.
    pub kept: Vec<Operation>,
    /// Every operation that was not kept ended before the end of one of these, and was asked for after its
    /// beginning; in order.
    pub gaps: Vec<(u64, u64)>,
    /// Kept or not.
    pub all: u64,
    /// Waits beside the operations that were kept, in the order of their ends.
    pub waits: Vec<Wait>,
    /// Collections by their number, and how many valid pages their blocks had when they began.
    pub valid: Vec<(u32, u32)>,
}

impl Operations {
    /// What an operation does on its die.
    pub const KINDS: [&'static str; 4] = ["read", "program", "inside", "rest"];
    /// What is left of a program or an erase that was suspended.
    pub(super) const REST: u8 = 3;
    /// What a page of the host waits for outside of the dies.
    pub const WAITS: [&'static str; 2] = ["free page", "write cache"];
    /// For what it does it.
    pub const PURPOSES: [&'static str; 9] = [
        "host read",
        "host write",
        "relocation",
        "merge",
        "erase",
        "metadata",
        "mapping",
        "retry",
        "scrub",
    ];
}
