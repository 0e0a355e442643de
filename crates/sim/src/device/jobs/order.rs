//! The requester of a plan, and the queue it waits in.

use crate::device::event::Target;
use crate::timeline::{AccountIdx, Purpose};

/// A queue of plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Line {
    Path,
    Beside,
}

/// The requester of a plan, and its earliest start.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Order {
    pub(crate) ready: u64,
    /// The target of its end.
    pub(crate) target: Option<Target>,
    /// Number of bytes of a host read.
    pub(crate) read_bytes: Option<u64>,
    /// The plan is a scrub.
    pub(crate) scrubs: bool,
}

impl Order {
    /// Return the order of a scrub, which has no requester.
    pub(crate) fn of_scrub(ready: u64) -> Order {
        Order { ready, target: None, read_bytes: None, scrubs: true }
    }

    /// Return the purpose of page moves.
    pub(super) fn moves(&self) -> Purpose {
        if self.scrubs { Purpose::Scrub } else { Purpose::Merge }
    }

    pub(super) fn account(&self) -> Option<AccountIdx> {
        self.target.and_then(|target| target.account)
    }
}
