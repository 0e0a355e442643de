//! Whether a plan would have the device to itself, so that how long it takes follows from its steps alone.

use super::{Account, Timeline};
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::DieIdx;

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// [`Timeline::next_of`] of a device whose host asks for nothing before `until`, unless it is told something.
    #[inline(always)]
    pub(crate) fn next_undisturbed<M: FastPath>(&mut self, until: u64) -> Option<(u64, T)> {
        if !M::MINIMAL {
            self.calendar.undisturbed_until = until;
        }
        self.next_of::<M>(until)
    }

    /// Before then the host asks for nothing, unless it is told something; of what [`Timeline::next_undisturbed`]
    /// has just returned.
    #[inline]
    pub(crate) fn undisturbed_until(&self) -> u64 {
        self.calendar.undisturbed_until
    }

    /// Whether nothing is going to happen or to be told, nobody watches, and `dies` and all that is shared are free.
    pub(crate) fn is_quiet(&self, mut dies: impl Iterator<Item = DieIdx>) -> bool {
        let now = self.calendar.now;
        let is_free = |free_at: u64| free_at <= now;
        !self.is_due(u64::MAX)
            && !self.writes_down
            // The firmware looks at rings at times of its own; what planes do together follows from pages, too.
            && self.descriptors.is_none()
            && self.planes.is_none()
            && [self.processor, self.memory].iter().all(|lane| is_free(lane.free_at))
            && self.channels.iter().all(|channel| is_free(channel.lane.free_at))
            && self.buses.iter().all(|bus| is_free(bus.free_at))
            && dies.all(|die| is_free(self.dies[die.0 as usize].free_at))
    }

    /// The clocks of the same device, on which nothing goes on.
    pub(crate) fn at_rest(&self) -> Timeline<T, A> {
        Timeline::new(self.geometry, self.timing)
    }
}
