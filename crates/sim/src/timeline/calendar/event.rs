//! What happens, in one word beside its time.

use crate::flash::geometry::DieIdx;

/// One thing that happens. Ordered by time; at one time releases of dies come first, by die, and then
/// everything else in the order in which it was added.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(in crate::timeline) struct Event {
    pub(in crate::timeline) at: u64,
    /// What happens: its kind in the highest bits, and which one. One word, so that it moves as a whole.
    pub(super) what: u64,
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(in crate::timeline) enum What<T> {
    /// The die has done what it did.
    Release(DieIdx),
    /// An operation arrives where its stage says.
    Arrive(u32),
    /// Somebody is told.
    Tell(T),
    /// The firmware looks at its rings.
    Notice,
}

/// Where the kind of an event is.
pub(super) const KIND: u32 = 62;
pub(super) const RELEASE: u64 = 0;
pub(super) const ARRIVE: u64 = 1;
pub(super) const TELL: u64 = 2;
pub(super) const NOTICE: u64 = 3;

impl Event {
    #[inline(always)]
    pub(super) fn is_release(self) -> bool {
        self.what >> KIND == RELEASE
    }

    #[inline]
    pub(in crate::timeline) fn what<T: From<u64>>(self) -> What<T> {
        let which = self.what & ((1 << KIND) - 1);
        match self.what >> KIND {
            RELEASE => What::Release(DieIdx(which as u32)),
            ARRIVE => What::Arrive(which as u32),
            TELL => What::Tell(T::from(which)),
            _ => What::Notice,
        }
    }
}
