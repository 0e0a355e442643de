//! The table `[geometry]`.

use serde::{Deserialize, Serialize};

use crate::flash::nand::PageOrder;

/// Keys of the table that may be left out.
pub(super) const LEFT_OUT: &[&str] = &["page_order"];

/// How many of what, and how large.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct GeometryPart {
    pub channels: u32,
    pub dies_per_channel: u32,
    /// Planes of a die, among which its blocks are divided; 1 where not said.
    #[serde(default = "one")]
    pub planes_per_die: u32,
    /// Each plane works on its own; otherwise a die does one thing at a time.
    #[serde(default)]
    pub independent_planes: bool,
    pub blocks_per_die: u32,
    pub pages_per_block: u32,
    /// In which order those of a block may be programmed; where not said, as the FTL does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_order: Option<PageOrder>,
    /// Pages at the end of a block that hold metadata: 0 or 1.
    pub metadata_pages: u32,
    pub page_bytes: u32,
    /// Bytes beside each page that travel with it (metadata, ECC).
    pub spare_bytes: u32,
    pub sector_bytes: u32,
}

impl GeometryPart {
    /// What has free blocks and a collection of its own: planes, or dies of one plane.
    pub(super) fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel * self.planes_per_die
    }
}

fn one() -> u32 {
    1
}
