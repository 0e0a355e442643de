//! For whom a plan is carried out, and where it waits for others.

use crate::device::token::Target;
use crate::timeline::AccountIdx;

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
}

impl Order {
    pub(super) fn account(&self) -> Option<AccountIdx> {
        self.target.and_then(|target| target.account)
    }
}
