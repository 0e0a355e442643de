//! Controller threads: one per channel, behind the common submission path, which is the processor
//! of the [timeline](crate::timeline).

use crate::flash::geometry::DieIdx;

/// Times of the threads [ns].
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ThreadTimes {
    /// Per page: on the common submission path, and in its channel's thread.
    pub(crate) submission_ns: u64,
    pub(crate) dispatch_ns: u64,
    /// Per command: its completion.
    pub(crate) completion_ns: u64,
    pub(crate) lun_switch_ns: u64,
}

/// The thread of a channel.
#[derive(Clone, Copy, Default, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Thread {
    free_at: u64,
    /// The LUN of its channel's last write.
    wrote: Option<DieIdx>,
}

impl Thread {
    /// Process a page from `at` on, not earlier than any page before, for `length`; return the end.
    #[inline]
    pub(super) fn process(&mut self, at: u64, length: u64) -> u64 {
        self.free_at = self.free_at.max(at) + length;
        self.free_at
    }

    /// Record a write of the channel to `die`; return whether its last write went to another LUN.
    #[inline]
    pub(super) fn switches_to(&mut self, die: DieIdx) -> bool {
        self.wrote.replace(die).is_some_and(|last| last != die)
    }
}
