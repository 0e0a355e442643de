//! The state of a block between two erases.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::InvalidKeys;
use crate::flash::wear_out::{BlockHistory, ScrubLimits};

/// The table `[block_history]`, for flash that wears out.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct BlockHistoryPart {
    /// The data of each block is as old as its oldest page; otherwise all data has one age.
    pub retention_by_block: bool,
    /// Reads of pages of a block since its erase that double its errors; none: no read disturb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_disturb_doubling: Option<u32>,
    /// Reads after which a block is scrubbed; none: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub_reads: Option<u32>,
    /// Age at which a block is scrubbed; none: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub_age_s: Option<f64>,
}

impl BlockHistoryPart {
    fn scrubs(&self) -> bool {
        self.scrub_reads.is_some() || self.scrub_age_s.is_some()
    }
}

impl Profile {
    pub(super) fn block_history(&self) -> Option<BlockHistory> {
        let part = self.block_history?;
        let blocks = self.geometry().blocks();
        let history =
            BlockHistory::new(blocks, part.retention_by_block, part.read_disturb_doubling);
        let age_ns = part.scrub_age_s.map(|age_s| (age_s * 1e9) as u64);
        Some(history.scrubbed(ScrubLimits { reads: part.scrub_reads, age_ns }))
    }

    /// Return whether blocks are scrubbed.
    pub(super) fn scrubs(&self) -> bool {
        self.block_history.is_some_and(|part| part.scrubs())
    }

    pub(super) fn find_invalid_history(&self, invalid: &mut InvalidKeys) {
        let Some(part) = self.block_history else { return };
        let nothing = self.reliability.is_none();
        let allowed = "[reliability] and [recovery] beside [block_history]";
        invalid.reject_if(nothing, "retention_by_block", &part.retention_by_block, allowed);
        let reads = part.scrub_reads.unwrap_or(1);
        let undisturbed = part.scrub_reads.is_some() && part.read_disturb_doubling.is_none();
        let allowed = "no such key without read_disturb_doubling: reads disturb nothing";
        invalid.reject_if(undisturbed, "scrub_reads", &reads, allowed);
        let age = part.scrub_age_s.unwrap_or(1.0);
        let ageless = part.scrub_age_s.is_some() && !part.retention_by_block;
        let allowed = "no such key without retention_by_block: all data has one age";
        invalid.reject_if(ageless, "scrub_age_s", &age, allowed);
        let allowed = "no such key with [zones], which keep their blocks until the host resets them: it moves its data";
        invalid.reject_if(
            self.is_zoned() && part.scrub_reads.is_some(),
            "scrub_reads",
            &reads,
            allowed,
        );
        invalid.reject_if(
            self.is_zoned() && part.scrub_age_s.is_some(),
            "scrub_age_s",
            &age,
            allowed,
        );
        let spares = self.recovery.as_ref().and_then(|part| part.replacement_blocks);
        let nowhere = part.scrubs() && self.merges() && spares == Some(0);
        let allowed = "1 or more a plane with scrub_reads or scrub_age_s: blocks are moved there";
        invalid.reject_if(nowhere, "replacement_blocks", &0, allowed);
    }
}
