//! What a plan of an FTL that merges programs for the host.

use super::event::Target;
use crate::flash::geometry::Lpn;
use crate::ftl::extent::Extent;

/// Which pages of the host a plan programs.
#[derive(Clone, Copy)]
pub(super) enum Written {
    Nothing,
    /// One that has come for this target.
    Page(Lpn, Target),
    /// What has stayed in memory.
    Kept(Extent),
}
