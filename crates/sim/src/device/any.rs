//! The three kinds of backends as one type.

use crate::device::backend::Backend as _;
use crate::device::merging::MergingBackend;
use crate::device::paged::PageMapBackend;
use crate::device::zoned::ZonedBackend;
use crate::flash::geometry::{Lpn, PageAddress};

/// A page map, a merging FTL, or zones. The variant of a device never changes, so the branch is
/// always predicted.
// Not boxed: a device has one backend and uses it for every page.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum AnyBackend {
    Paged(PageMapBackend),
    Merged(MergingBackend),
    Zoned(ZonedBackend),
}

impl AnyBackend {
    /// Return whether a write may reserve the link ahead of time and overtake an earlier write.
    /// Zones and plans of whole writes need their writes in order.
    #[inline]
    pub(crate) fn may_reserve_link(&self) -> bool {
        matches!(self, AnyBackend::Paged(_))
    }

    /// Return the flash address of `page`.
    pub(crate) fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        match self {
            AnyBackend::Paged(paged) => paged.ftl().lookup(page),
            AnyBackend::Merged(merged) => merged.lookup(page),
            AnyBackend::Zoned(zoned) => zoned.lookup(page),
        }
    }

    #[inline]
    pub(crate) fn plans_whole_writes(&self) -> bool {
        match self {
            AnyBackend::Paged(_) => PageMapBackend::PLANS_WHOLE_WRITES,
            AnyBackend::Merged(_) => MergingBackend::PLANS_WHOLE_WRITES,
            AnyBackend::Zoned(_) => ZonedBackend::PLANS_WHOLE_WRITES,
        }
    }
}

/// Evaluate `$what` for the backend, whichever kind it is.
macro_rules! dispatch {
    ($backend:expr, $name:ident => $what:expr) => {
        match $backend {
            $crate::device::any::AnyBackend::Paged($name) => $what,
            $crate::device::any::AnyBackend::Merged($name) => $what,
            $crate::device::any::AnyBackend::Zoned($name) => $what,
        }
    };
}
pub(crate) use dispatch;
