//! What is going to happen, in order.

use crate::geometry::DieIdx;

/// One thing that happens. Ordered by time; at one time releases of dies come first, by die, and then
/// everything else in the order in which it was added.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Event<T> {
    pub(super) at: u64,
    order: u64,
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

/// All events, latest first. There is an event for every operation under way, so there are few, and
/// most are added near the end: cheaper than a heap.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Calendar<T> {
    events: Vec<Event<T>>,
    added: u64,
    /// When the last event happened.
    pub(super) now: u64,
}

/// Orders below it are releases.
const FIRST_OTHER: u64 = 1 << 32;

impl<T> Default for Calendar<T> {
    fn default() -> Calendar<T> {
        Calendar { events: Vec::new(), added: FIRST_OTHER, now: 0 }
    }
}

impl<T> Calendar<T> {
    /// The next event, where it is due by `until`.
    #[inline]
    pub(super) fn take(&mut self, until: u64) -> Option<Event<T>> {
        let event = self.events.pop_if(|event| event.at <= until)?;
        self.now = event.at;
        Some(event)
    }

    #[inline]
    pub(super) fn arrive(&mut self, at: u64, index: u32) {
        self.added += 1;
        self.add(Event { at, order: self.added, what: What::Arrive(index) });
    }

    #[inline]
    pub(super) fn tell(&mut self, at: u64, token: T) {
        self.added += 1;
        self.add(Event { at, order: self.added, what: What::Tell(token) });
    }

    #[inline]
    pub(super) fn release(&mut self, at: u64, die: DieIdx) {
        self.add(Event { at, order: u64::from(die.0), what: What::Release(die) });
    }

    #[inline]
    fn add(&mut self, event: Event<T>) {
        debug_assert!(event.at >= self.now, "an event at {} lies before {}", event.at, self.now);
        let mut place = self.events.len();
        while place > 0 {
            let before = &self.events[place - 1];
            if (before.at, before.order) > (event.at, event.order) {
                break;
            }
            place -= 1;
        }
        self.events.insert(place, event);
    }
}
