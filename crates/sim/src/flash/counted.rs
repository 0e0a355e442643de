//! Events that plans count.

/// An event that is counted when it is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Counted {
    /// A log block was chosen to be reclaimed.
    Reclaim,
    /// A merge was done.
    Merge(Merge),
    /// A lookup in the cached part of the map, and whether it was a hit.
    MapLookup(bool),
}

/// The kind of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Merge {
    /// The log block holds every page, each at its own offset: it becomes the data block.
    Switch,
    /// The log block holds the first pages at their own offsets; the others are copied to it.
    Partial,
    /// The newest version of every page is copied to a new block.
    Full,
}
