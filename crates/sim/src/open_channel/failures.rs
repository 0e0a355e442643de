//! The table `[failures]`: failures other than wear, and read retries.

use serde::{Deserialize, Serialize};

/// The table `[failures]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/open-channel-profiles.md
pub struct FailuresPart {
    /// RBER of a read retry, relative to the read before.
    pub retry_gain: f64,
    /// Share of factory bad blocks.
    pub factory_bad_share: f64,
    /// Failure probabilities of a block at its rated erases; they grow in proportion to erases.
    pub program_failures: f64,
    pub erase_failures: f64,
    /// Reads of pages of a block since its erase that double its errors; none: no read disturb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_disturb_doubling: Option<u32>,
}
