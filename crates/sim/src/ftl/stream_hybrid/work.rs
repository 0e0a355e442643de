//! Work in progress: units that are filled in order, and units that are merged.

use crate::flash::geometry::{Lpn, PageAddress};
use crate::ftl::run::Run;
use crate::pool::units::UnitIdx;

/// Indices of the log of whole clusters, and of the log of small ones.
pub(super) const WHOLE: usize = 0;
pub(super) const SMALL: usize = 1;

/// A unit being filled in order.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Stream")]
pub(super) struct SequentialStream {
    pub(super) logical: u32,
    pub(super) unit: UnitIdx,
    pub(super) run: Run,
}

/// The reason for a merge.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Reason")]
pub(super) enum MergeReason {
    /// Its stream is closed or resumed.
    Stream,
    /// This cluster must leave the log.
    Cluster(u32),
    /// A small cluster must leave the log of small clusters.
    Small,
}

/// A unit that is merged step by step in the background.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Reclaim {
    pub(super) logical: u32,
    pub(super) target: UnitIdx,
    /// The pages that its stream already has there.
    #[serde(rename = "there")]
    pub(super) existing: Run,
    pub(super) reason: MergeReason,
}

/// The pages that a merge around the host's data omitted, because the host writes them.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Bringing")]
pub(super) struct OmittedPages {
    /// The page that comes next.
    pub(super) next: Lpn,
    /// The address of the rest of the last page, if the host writes only a part of it. It is the address before
    /// the merge, which is not erased before it is read: no step takes a unit until then.
    #[serde(rename = "rest")]
    pub(super) merge_from: Option<PageAddress>,
}
