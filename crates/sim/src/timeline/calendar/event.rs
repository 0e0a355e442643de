//! Events of the calendar, packed into one word plus time.

use crate::flash::geometry::DieIdx;

/// An event. Ordered by time; at equal times releases of dies come first, by die, and then all
/// others in the order in which they were added.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(in crate::timeline) struct Event {
    pub(in crate::timeline) at: u64,
    /// The kind in the highest bits, and the index below. One word, so that it moves as a whole.
    #[serde(rename = "what")]
    pub(super) code: u64,
}

/// An event of the calendar.
#[derive(Clone, Copy, Debug)]
pub(in crate::timeline) enum EventKind<T> {
    /// The die completes its operation.
    Release(DieIdx),
    /// An operation arrives at its stage.
    Arrive(u32),
    /// A report to the user of the timeline.
    Report(T),
    /// The firmware polls its descriptor rings.
    Notice,
}

/// Bit position of the kind.
pub(super) const KIND_SHIFT: u32 = 62;
pub(super) const RELEASE: u64 = 0;
pub(super) const ARRIVE: u64 = 1;
pub(super) const REPORT: u64 = 2;
pub(super) const NOTICE: u64 = 3;

impl Event {
    #[inline(always)]
    pub(super) fn is_release(self) -> bool {
        self.code >> KIND_SHIFT == RELEASE
    }

    #[inline]
    pub(in crate::timeline) fn kind<T: From<u64>>(self) -> EventKind<T> {
        let index = self.code & ((1 << KIND_SHIFT) - 1);
        match self.code >> KIND_SHIFT {
            RELEASE => EventKind::Release(DieIdx(index as u32)),
            ARRIVE => EventKind::Arrive(index as u32),
            REPORT => EventKind::Report(T::from(index)),
            _ => EventKind::Notice,
        }
    }
}
