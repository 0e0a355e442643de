//! The table `[geometry]`.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::Misfits;
use crate::flash::nand::PageOrder;
use crate::timeline::MultiPlane;

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
    /// What the planes of a die can do at the same time with one command; nothing where not said.
    #[serde(default, skip_serializing_if = "is_none")]
    pub multi_plane: MultiPlane,
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

fn is_none(what: &MultiPlane) -> bool {
    *what == MultiPlane::None
}

impl Profile {
    /// What stands beside planes that work together, and cannot.
    pub(super) fn misfits_of_planes(&self, found: &mut Misfits) {
        let of = self.geometry.multi_plane;
        if is_none(&of) {
            return;
        }
        let (alone, name) = (self.geometry.planes_per_die == 1, of.name());
        let allowed =
            "\"none\" where planes_per_die = 1: a command for several planes needs several";
        found.refuse(alone, "multi_plane", &name, allowed);
        let apart = self.geometry.independent_planes;
        let allowed = "false with multi_plane: planes that work on their own take a command each";
        found.refuse(apart, "independent_planes", &apart, allowed);
        let cached = self.timing.cache_program;
        let allowed = "false with multi_plane: until all planes begin to program, each holds its page in the \
                       register that would take the next";
        found.refuse(cached, "cache_program", &cached, allowed);
        let allowed =
            "no [suspend] with multi_plane: a chip stops one array, and here several are at work";
        found.refuse(self.suspend.is_some(), "multi_plane", &name, allowed);
    }
}
