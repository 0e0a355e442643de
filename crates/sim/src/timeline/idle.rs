//! Whether a plan has the device to itself, so that its duration depends on its steps alone.

use super::{Account, Timeline};
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::DieIdx;

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Like [`Timeline::next_of`], for a host that submits nothing before `until` unless it is
    /// notified.
    #[inline(always)]
    pub(crate) fn next_undisturbed<M: FastPath>(&mut self, until: u64) -> Option<(u64, T)> {
        if !M::MINIMAL {
            self.calendar.undisturbed_until = until;
        }
        self.next_of::<M>(until)
    }

    /// Return the time before which the host submits nothing unless it is notified, as of the last
    /// [`Timeline::next_undisturbed`].
    #[inline]
    pub(crate) fn undisturbed_until(&self) -> u64 {
        self.calendar.undisturbed_until
    }

    /// Return whether no event or report is pending, nothing is recorded, and `dies` and all shared
    /// resources are free.
    pub(crate) fn is_idle(&self, mut dies: impl Iterator<Item = DieIdx>) -> bool {
        let now = self.calendar.now;
        let is_free = |free_at: u64| free_at <= now;
        !self.is_due(u64::MAX)
            && !self.writes_down
            // Descriptor rings are polled at times of their own; multi-plane operations also depend
            // on pages.
            && self.descriptors.is_none()
            && self.planes.is_none()
            && [self.processor, self.memory].iter().all(|lane| is_free(lane.free_at))
            && self.channels.iter().all(|channel| is_free(channel.lane.free_at))
            && self.buses.iter().all(|bus| is_free(bus.free_at))
            && dies.all(|die| is_free(self.dies[die.0 as usize].free_at))
    }

    /// Return an idle timeline of the same device.
    pub(crate) fn idle_copy(&self) -> Timeline<T, A> {
        Timeline::new(self.geometry, self.timing)
    }
}
