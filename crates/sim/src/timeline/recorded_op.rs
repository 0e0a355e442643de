//! Recorded flash operations.

/// A recorded operation; times are those of the device's clock [ns].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Operation {
    /// When it joined the queue of its die.
    pub arrived: u64,
    /// When it got its die, and when it ended.
    pub begin: u64,
    /// See `begin`.
    pub end: u64,
    /// Channel transfer; both 0 without one. A program that holds its channel before its die: from
    /// then on.
    pub sent: u64,
    /// See `sent`.
    pub sent_until: u64,
    /// Cell time: of a read from `begin` on, of all others up to `end`.
    pub cells: u64,
    /// The plane; for a die whose planes share a clock without multi-plane operations, its first
    /// plane.
    pub plane: u32,
    /// Number of its I/O plus 1, from the beginning of the log; 0: none.
    pub io: u32,
    /// Number of its collection or plan plus 1; 0: none.
    pub job: u32,
    /// The victim block of that plus 1; 0: unknown.
    pub block: u32,
    /// Index into [`Operations::KINDS`].
    pub kind: u8,
    /// Index into [`Operations::PURPOSES`].
    pub purpose: u8,
}

/// A wait of a host page outside the dies: for a free page, or for a slot of the write cache.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Wait {
    /// When it began and ended.
    pub from: u64,
    /// See `from`.
    pub until: u64,
    /// Number of the I/O plus 1; 0: unknown.
    pub io: u32,
    /// First plane of the die that supplied the free page, or whose program freed the cache slot.
    pub plane: u32,
    /// The page that was programmed then: its own, or the one that was flushed.
    pub page: u32,
    /// Index into [`Operations::WAITS`].
    pub kind: u8,
}

/// A recording.
#[derive(Clone, Default, Debug)]
pub struct Operations {
    /// The kept operations, in the order in which their ends became known.
    pub operations: Vec<Operation>,
    /// Time ranges with dropped operations, in order: every dropped operation overlaps one.
    pub gaps: Vec<(u64, u64)>,
    /// Number of operations, kept or dropped.
    pub all: u64,
    /// Waits near the kept operations, in the order of their ends.
    pub waits: Vec<Wait>,
    /// Collections by number, and the valid pages of their victims at the start.
    pub valid: Vec<(u32, u32)>,
}

impl Operations {
    /// Kinds of operations.
    pub const KINDS: [&'static str; 4] = ["read", "program", "inside", "rest"];
    /// Kind: the rest of a program or an erase that was suspended.
    pub(super) const REST: u8 = 3;
    /// The cause of a host page's wait outside the dies.
    pub const WAITS: [&'static str; 2] = ["free page", "write cache"];
    /// Purposes of operations.
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
