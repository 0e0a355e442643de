//! The table `[geometry]`.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::InvalidKeys;
use crate::flash::nand::PageOrder;
use crate::timeline::MultiPlane;

/// Numbers and sizes of the flash.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct GeometryPart {
    pub channels: u32,
    pub dies_per_channel: u32,
    /// Planes of a die, which share its blocks; default 1.
    #[serde(default = "one")]
    pub planes_per_die: u32,
    /// Each plane works independently; otherwise a die does one operation at a time.
    #[serde(default)]
    pub independent_planes: bool,
    /// Multi-plane capability of a die; default none.
    #[serde(default, skip_serializing_if = "is_single_plane")]
    pub multi_plane: MultiPlane,
    pub blocks_per_die: u32,
    pub pages_per_block: u32,
    /// Program order within a block; the default depends on the FTL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_order: Option<PageOrder>,
    /// Metadata pages at the end of a block: 0 or 1.
    pub metadata_pages: u32,
    pub page_bytes: u32,
    /// Spare bytes that are transferred with each page (metadata, ECC).
    pub spare_bytes: u32,
    pub sector_bytes: u32,
}

impl GeometryPart {
    /// Return the number of units with their own free blocks and collection: planes, or dies of one
    /// plane.
    pub(super) fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel * self.planes_per_die
    }
}

fn one() -> u32 {
    1
}

fn is_single_plane(what: &MultiPlane) -> bool {
    *what == MultiPlane::None
}

impl Profile {
    /// Find options that exclude multi-plane operations.
    pub(super) fn find_invalid_planes(&self, invalid: &mut InvalidKeys) {
        let multi_plane = self.geometry.multi_plane;
        if is_single_plane(&multi_plane) {
            return;
        }
        let (single_plane, name) = (self.geometry.planes_per_die == 1, multi_plane.name());
        let allowed =
            "\"none\" with planes_per_die = 1: a multi-plane command needs several planes";
        invalid.reject_if(single_plane, "multi_plane", &name, allowed);
        let independent = self.geometry.independent_planes;
        let allowed = "false with multi_plane: each independent plane takes its own command";
        invalid.reject_if(independent, "independent_planes", &independent, allowed);
        let cached = self.timing.cache_program;
        let allowed = "false with multi_plane: until all planes begin to program, each holds its page in the \
                       register that would take the next";
        invalid.reject_if(cached, "cache_program", &cached, allowed);
        let allowed =
            "no [suspend] with multi_plane: a chip stops one array, and here several are at work";
        invalid.reject_if(self.suspend.is_some(), "multi_plane", &name, allowed);
    }
}
