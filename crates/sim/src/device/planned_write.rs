//! The host pages that a plan of a merging FTL programs.

use super::event::CompletionTarget;
use crate::flash::geometry::Lpn;
use crate::ftl::extent::PageExtent;

/// The host pages that a plan programs.
#[derive(Clone, Copy)]
pub(super) enum PlannedPages {
    Nothing,
    /// A page that has arrived for this target.
    Page(Lpn, CompletionTarget),
    /// The buffered pages.
    Buffered(PageExtent),
}
