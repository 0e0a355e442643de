//! The table [streams] of the profile.

use serde::{Deserialize, Serialize};

/// The stream hybrid.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct StreamsPart {
    /// What is mapped, filled and merged as a whole.
    pub unit_bytes: u32,
    /// What the log maps as a whole.
    pub cluster_bytes: u32,
    /// Groups of planes; a unit is spread over the planes of one.
    pub banks: u32,
    /// Whether each bank has channels of its own; else every bank has planes on all of them.
    pub own_channels: bool,
    /// Units that may be filled in order at a time.
    pub streams: u32,
    /// Streams that had to give way and may come back: what they had is copied.
    pub resumed_streams: u32,
    /// A stream may also run downwards, from the end of a unit.
    pub reverse_streams: bool,
    /// A stream that ends with at most so many clusters goes to the log; others are merged.
    pub fold_clusters: u32,
    /// Clusters that the log holds.
    pub log_clusters: u32,
    /// Units of flash that it has for them.
    pub log_units: u32,
    /// Whether clusters of a log unit that are mostly superseded move on to the next; else the units
    /// that they belong to are merged.
    pub compact_log: bool,
    /// Logical units that the log may have clusters of at a time; 0: any number.
    pub log_members: u32,
    /// What a log of its own maps as a whole for writes of parts of a cluster; 0: there is none.
    pub small_cluster_bytes: u32,
    /// Such clusters that it holds, and units of flash that it has for them.
    pub small_log_clusters: u32,
    pub small_log_units: u32,
    /// A merge takes only the oldest cluster of its unit out of the log, as a cache writes back; else all
    /// that the unit has there.
    pub evict_single: bool,
    /// Clusters of the log that are kept free in idle time; 0: none.
    pub free_clusters: u32,
    /// Units that are merged at once, each in a bank of its own.
    pub merges_at_once: u32,
    /// After every so many host reads reclamation does a step; 0: reads are left alone.
    pub reads_per_step: u32,
    /// Writes of a part of a cluster merge its unit at once.
    pub bypass_partial_clusters: bool,
    /// A write to exactly where the last one went stays in memory until another one comes.
    pub rewrite_buffer: bool,
    /// Map pages that are programmed when another stream continues, when a unit gets a new place, and
    /// when a cluster gets one in the log.
    pub switch_map_pages: u32,
    pub merge_map_pages: u32,
    pub log_map_pages: u32,
}
