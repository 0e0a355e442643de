//! A device has one of three kinds of backends.

use crate::device::backend::Backend as _;
use crate::device::merging::Merged;
use crate::device::paged::Paged;
use crate::device::zoned::Zoned;
use crate::flash::geometry::{Lpn, Place};

/// One of the two kinds of FTLs, or zones. Which one it is never changes, so the branch is always foreseen.
// In place: a device has one of them, and goes through it with every page.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum AnyBackend {
    Paged(Paged),
    Merged(Merged),
    Zoned(Zoned),
}

impl AnyBackend {
    /// Whether a write may take the link ahead of time, and before one that came before it: zones, and plans
    /// of whole writes, want them in order.
    #[inline]
    pub(crate) fn takes_ahead(&self) -> bool {
        matches!(self, AnyBackend::Paged(_))
    }

    /// Where the map says that `page` is.
    pub(crate) fn lookup(&self, page: Lpn) -> Option<Place> {
        match self {
            AnyBackend::Paged(paged) => paged.ftl().lookup(page),
            AnyBackend::Merged(merged) => merged.lookup(page),
            AnyBackend::Zoned(zoned) => zoned.find(page),
        }
    }

    #[inline]
    pub(crate) fn plans_whole_writes(&self) -> bool {
        match self {
            AnyBackend::Paged(_) => Paged::PLANS_WHOLE_WRITES,
            AnyBackend::Merged(_) => Merged::PLANS_WHOLE_WRITES,
            AnyBackend::Zoned(_) => Zoned::PLANS_WHOLE_WRITES,
        }
    }
}

/// Say `$what` of the backend, whichever it is.
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
