//! What is going to happen, in order.

use crate::geometry::DieIdx;

/// One thing that happens. Ordered by time; at one time releases of dies come first, by die, and then
/// everything else in the order in which it was added.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Event<T> {
    pub(super) at: u64,
    pub(super) what: What<T>,
}

/// What happens.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum What<T> {
    /// The die has done what it did.
    Release(DieIdx),
    /// An operation arrives where its stage says.
    Arrive(u32),
    /// Somebody is told.
    Tell(T),
}

/// All events, first first. There is an event for every operation under way at most, so there are few,
/// and most are added at one of the two ends: cheaper than a heap.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Calendar<T> {
    events: Vec<Event<T>>,
    /// Those before it have happened.
    first: usize,
    /// When the last event happened.
    pub(super) now: u64,
}

impl<T> Default for Calendar<T> {
    fn default() -> Calendar<T> {
        Calendar { events: Vec::new(), first: 0, now: 0 }
    }
}

impl<T: Copy> Calendar<T> {
    /// The next event, where it is due by `until`.
    #[inline]
    pub(super) fn take(&mut self, until: u64) -> Option<Event<T>> {
        let event = *self.events.get(self.first)?;
        if event.at > until {
            return None;
        }
        self.first += 1;
        self.now = event.at;
        Some(event)
    }

    #[inline]
    pub(super) fn arrive(&mut self, at: u64, index: u32) {
        self.add(Event { at, what: What::Arrive(index) }, |other| other.at <= at);
    }

    #[inline]
    pub(super) fn tell(&mut self, at: u64, token: T) {
        self.add(Event { at, what: What::Tell(token) }, |other| other.at <= at);
    }

    pub(super) fn release(&mut self, at: u64, die: DieIdx) {
        self.add(Event { at, what: What::Release(die) }, |other| match other.what {
            What::Release(earlier) if other.at == at => earlier.0 < die.0,
            _ => other.at < at,
        });
    }

    /// Put `event` behind all that are `earlier`.
    #[inline]
    fn add(&mut self, event: Event<T>, earlier: impl Fn(&Event<T>) -> bool) {
        debug_assert!(event.at >= self.now, "an event at {} lies before {}", event.at, self.now);
        if self.first > 0 && self.events.get(self.first).is_some_and(|first| !earlier(first)) {
            self.first -= 1;
            self.events[self.first] = event;
            return;
        }
        if self.events.len() == self.events.capacity() {
            self.events.drain(..self.first);
            self.first = 0;
        }
        let mut place = self.events.len();
        self.events.push(event);
        let events = &mut self.events[self.first..];
        place -= self.first;
        while place > 0 && !earlier(&events[place - 1]) {
            events[place] = events[place - 1];
            place -= 1;
        }
        events[place] = event;
    }
}
