//! What is kept of every block between two erases.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::Misfits;
use crate::flash::wear_out::History;

/// All keys of `[block_history]`.
pub(super) const BLOCK_HISTORY: &[&str] = &["retention_by_block", "read_disturb_doubling"];

/// The table `[block_history]`, for flash that wears out.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct BlockHistoryPart {
    /// Each block's data is as old as its oldest page; otherwise all data has one age.
    pub retention_by_block: bool,
    /// Reads of pages of a block, since it was erased, that double its errors; none: reads disturb nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_disturb_doubling: Option<u32>,
}

impl Profile {
    pub(super) fn block_history(&self) -> Option<History> {
        let part = self.block_history?;
        let blocks = self.geometry().blocks();
        Some(History::new(blocks, part.retention_by_block, part.read_disturb_doubling))
    }

    pub(super) fn misfits_of_history(&self, found: &mut Misfits) {
        let Some(part) = self.block_history else { return };
        let nothing = self.reliability.is_none();
        let allowed = "[reliability] and [recovery] beside [block_history]";
        found.refuse(nothing, "retention_by_block", &part.retention_by_block, allowed);
        found.refuse(
            part.read_disturb_doubling == Some(0),
            "read_disturb_doubling",
            &0,
            "1 or more",
        );
    }
}
