//! For whom a plan is carried out, and where it waits for others.

use crate::device::event::Target;
use crate::timeline::{AccountIdx, Purpose};

/// Where plans wait for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Line {
    Path,
    Beside,
}

/// For whom a plan is carried out, and from when on.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Order {
    pub(crate) ready: u64,
    /// Who is told of the end.
    pub(crate) target: Option<Target>,
    /// A host read has so many bytes.
    pub(crate) read_bytes: Option<u64>,
    /// What is moved is moved because of its reads or its age.
    pub(crate) scrubs: bool,
}

impl Order {
    /// For nobody: a block is moved because of its reads or its age.
    pub(crate) fn of_scrub(ready: u64) -> Order {
        Order { ready, target: None, read_bytes: None, scrubs: true }
    }

    /// For whom the dies work that move pages.
    pub(super) fn moves(&self) -> Purpose {
        if self.scrubs { Purpose::Scrub } else { Purpose::Merge }
    }

    pub(super) fn account(&self) -> Option<AccountIdx> {
        self.target.and_then(|target| target.account)
    }
}
