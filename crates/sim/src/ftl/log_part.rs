//! The table [log] of the profile: common parameters of FTLs with log blocks.

use serde::{Deserialize, Serialize};
use uflip_core::{Error, Result};

use super::FtlOptions;
use super::data_blocks::DataBlocks;

/// Block-mapped FTLs with log blocks: bast, fast, superblock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct LogPart {
    /// Number of log blocks, which take writes that find no free page in their data block.
    pub log_blocks: u32,
    /// Neighbouring logical blocks that make a superblock; 1 if the FTL has none.
    pub superblock_blocks: u32,
    pub compat: Compat,
    /// Each die has log blocks of its own; by default all dies share them.
    #[serde(default)]
    pub log_per_die: bool,
}

/// The implementation whose faults are reproduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Compat {
    /// No faults.
    None,
    /// FAST in the FlashSim of 2010: merges lose the pages whose newest version is in a log block.
    Flashsim2010,
}

/// Check that the device has the configured log blocks, and at least `min_blocks`.
///
/// # Errors
/// Fewer, or more than fit on the device.
pub(super) fn check_log(options: &FtlOptions<'_, LogPart>, min_blocks: u32) -> Result<()> {
    let part = options.table;
    let blocks = options.geometry.blocks();
    if part.log_blocks < min_blocks || part.log_blocks >= blocks {
        return Err(Error::usage("The number of log blocks is out of range")
            .got(format!("log_blocks = {} of {blocks} blocks", part.log_blocks))
            .allowed(format!("{min_blocks} or more, and fewer than the blocks of the device"))
            .action("change log_blocks"));
    }
    if part.compat != Compat::None && options.name != "fast" {
        return Err(Error::usage("Only FAST supports 'compat'")
            .got(format!("a 'compat' with ftl = \"{}\"", options.name))
            .allowed("compat = \"none\"")
            .action("change one of the two"));
    }
    if part.log_per_die && options.name != "fast" {
        return Err(Error::usage("Only FAST has a log for each die")
            .got(format!("log_per_die = true with ftl = \"{}\"", options.name))
            .allowed("log_per_die = false")
            .action("change one of the two"));
    }
    DataBlocks::check(
        options,
        u64::from(part.log_blocks) + 1,
        &format!("{} log blocks, and 1 for merges", part.log_blocks),
    )
}
