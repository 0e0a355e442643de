//! The table [streams] of the profile.

use serde::{Deserialize, Serialize};

/// Parameters of the stream hybrid.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct StreamsPart {
    /// Size of a merge unit, which is mapped, filled and merged as a whole.
    pub unit_bytes: u32,
    /// Size of a cluster, which the log maps as a whole.
    pub cluster_bytes: u32,
    /// Groups of planes; a unit is spread over the planes of one.
    pub banks: u32,
    /// Each bank has channels of its own; otherwise every bank has planes on all of them.
    pub own_channels: bool,
    /// Units that may be filled in order at a time.
    pub streams: u32,
    /// Displaced streams that may be resumed: their pages are copied to a new unit.
    pub resumed_streams: u32,
    /// A stream may also run downwards, from the end of a unit.
    pub reverse_streams: bool,
    /// A stream that ends with at most this many clusters goes to the log; others are merged.
    pub fold_clusters: u32,
    /// Clusters that the log holds.
    pub log_clusters: u32,
    /// Flash units of the log.
    pub log_units: u32,
    /// Clusters of a mostly superseded log unit are moved to the next one; otherwise the units that they
    /// belong to are merged.
    pub compact_log: bool,
    /// Logical units that may have clusters in the log at a time; 0: any number.
    pub log_members: u32,
    /// Cluster size of a separate log for partial clusters; 0: no such log.
    pub small_cluster_bytes: u32,
    /// Clusters that this log holds, and its flash units.
    pub small_log_clusters: u32,
    pub small_log_units: u32,
    /// A merge takes only the oldest cluster of its unit out of the log, as a cache writes back; otherwise
    /// all clusters that the unit has there.
    pub evict_single: bool,
    /// Clusters of the log that are kept free in idle time; 0: none.
    pub free_clusters: u32,
    /// Units that are merged at once, each in a bank of its own.
    pub merges_at_once: u32,
    /// Host reads per step of background reclamation; 0: reads are not delayed.
    pub reads_per_step: u32,
    /// Partial clusters are merged with their unit at once.
    pub bypass_partial_clusters: bool,
    /// A write to the same page as the last one stays in memory until another one comes.
    pub rewrite_buffer: bool,
    /// Map pages that are programmed when another stream continues, when a unit moves, and when a
    /// cluster gets one in the log.
    pub switch_map_pages: u32,
    pub merge_map_pages: u32,
    pub log_map_pages: u32,
}
