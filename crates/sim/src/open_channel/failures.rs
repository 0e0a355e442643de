//! The table `[failures]`: what of the flash fails beside reads that are worn out, and how reads are saved.

use serde::{Deserialize, Serialize};

/// Everything in it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/open-channel-profiles.md
pub struct FailuresPart {
    /// RBER of a repeated read, times that of the one before.
    pub retry_gain: f64,
    /// Share of blocks that are bad from the factory.
    pub factory_bad_share: f64,
    /// Chances on a block at its rated erases; they grow in proportion to erases.
    pub program_failures: f64,
    pub erase_failures: f64,
    /// Reads of pages of a block, since it was erased, that double its errors; none: reads disturb nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_disturb_doubling: Option<u32>,
}
