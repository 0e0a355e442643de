//! What is under way: units that are filled in order, and units that are merged.

use crate::flash::geometry::{Lpn, Place};
use crate::ftl::run::Run;
use crate::pool::units::UnitIdx;

/// The log of whole clusters, and that of small ones.
pub(super) const WHOLE: usize = 0;
pub(super) const SMALL: usize = 1;

/// A unit being filled in order.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Stream {
    pub(super) logical: u32,
    pub(super) unit: UnitIdx,
    pub(super) run: Run,
}

/// Why a unit is merged.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum Reason {
    /// Its stream gives way, or goes on.
    Stream,
    /// This cluster was to leave the log.
    Cluster(u32),
    /// A small cluster was to leave the log of such.
    Small,
}

/// A unit that is merged step by step beside the host.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Reclaim {
    pub(super) logical: u32,
    pub(super) target: UnitIdx,
    /// What its stream has there already.
    pub(super) there: Run,
    pub(super) reason: Reason,
}

/// What a merge around the host's data left out, for the host brings it.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Bringing {
    /// The page that comes next.
    pub(super) next: Lpn,
    /// The rest of the last page, where the host brings only a part of that. It lies where it was before
    /// the merge, which is not erased before it is read: nothing takes a unit until then.
    pub(super) rest: Option<Place>,
}
