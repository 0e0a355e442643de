//! What plans count.

/// What is counted where it is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Counted {
    /// A log block was chosen to be reclaimed.
    Reclaim,
    /// A merge was done.
    Merge(Merge),
    /// The part of the map in memory was asked for an entry, and had it or not.
    MapLookup(bool),
}

/// How a merge came by its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Merge {
    /// The log block holds every page, each in its place: it becomes the data block.
    Switch,
    /// The log block holds the first pages in their places; the others are copied to it.
    Partial,
    /// The newest version of every page is copied to a new block.
    Full,
}
