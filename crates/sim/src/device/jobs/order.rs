//! The requester of a plan, and the queue it waits in.

use crate::device::event::CompletionTarget;
use crate::timeline::{AccountIdx, Purpose};

/// A queue of plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Line")]
pub(crate) enum PlanClass {
    #[serde(rename = "Path")]
    Foreground,
    #[serde(rename = "Beside")]
    Background,
}

/// The requester of a plan, and its earliest start.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Order")]
pub(crate) struct PlanRequest {
    pub(crate) ready: u64,
    /// The target of its end.
    pub(crate) target: Option<CompletionTarget>,
    /// Number of bytes of a host read.
    pub(crate) read_bytes: Option<u64>,
    /// The plan is a scrub.
    pub(crate) scrubs: bool,
}

impl PlanRequest {
    /// Return the order of a scrub, which has no requester.
    pub(crate) fn of_scrub(ready: u64) -> PlanRequest {
        PlanRequest { ready, target: None, read_bytes: None, scrubs: true }
    }

    /// Return the purpose of page moves.
    pub(super) fn move_purpose(&self) -> Purpose {
        if self.scrubs { Purpose::Scrub } else { Purpose::Merge }
    }

    pub(super) fn account(&self) -> Option<AccountIdx> {
        self.target.and_then(|target| target.account)
    }
}
