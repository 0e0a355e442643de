//! Threads of the controller: one a channel, behind the one path that all commands come in on, which is the
//! processor of the [timeline](crate::timeline).

use crate::flash::geometry::DieIdx;

/// How long they take [ns].
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ThreadTimes {
    /// A page on the path that all channels share, and at its channel's thread.
    pub(crate) submission_ns: u64,
    pub(crate) dispatch_ns: u64,
    /// A command on its way back.
    pub(crate) completion_ns: u64,
    pub(crate) lun_switch_ns: u64,
}

/// The thread of a channel.
#[derive(Clone, Copy, Default, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Thread {
    free_at: u64,
    /// The LUN that its channel wrote to last.
    wrote: Option<DieIdx>,
}

impl Thread {
    /// A page comes at `at`, no earlier than any before it, and takes `length`; returns when that is over.
    #[inline]
    pub(super) fn take_in(&mut self, at: u64, length: u64) -> u64 {
        self.free_at = self.free_at.max(at) + length;
        self.free_at
    }

    /// The channel writes to `die`: whether it wrote to another one last.
    #[inline]
    pub(super) fn turns_to(&mut self, die: DieIdx) -> bool {
        self.wrote.replace(die).is_some_and(|last| last != die)
    }
}
