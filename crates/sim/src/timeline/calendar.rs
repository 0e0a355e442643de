//! What is going to happen, in order.

use std::hint::cold_path;

use crate::flash::geometry::DieIdx;

/// One thing that happens. Ordered by time; at one time releases of dies come first, by die, and then
/// everything else in the order in which it was added.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Event {
    pub(super) at: u64,
    /// What happens: its kind in the highest bits, and which one. One word, so that it moves as a whole.
    what: u64,
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum What<T> {
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
const KIND: u32 = 62;
const RELEASE: u64 = 0;
const ARRIVE: u64 = 1;
const TELL: u64 = 2;
const NOTICE: u64 = 3;

impl Event {
    #[inline]
    pub(super) fn what<T: From<u64>>(self) -> What<T> {
        let which = self.what & ((1 << KIND) - 1);
        match self.what >> KIND {
            RELEASE => What::Release(DieIdx(which as u32)),
            ARRIVE => What::Arrive(which as u32),
            TELL => What::Tell(T::from(which)),
            _ => What::Notice,
        }
    }
}

/// So many are few: what 32 I/Os and as many dies wait for is.
const FEW: usize = 96;

/// All events, first first. There is an event for every operation under way at most, so there are few: to look
/// for the place of a new one by halves and to move what is behind it costs less than a heap.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Calendar {
    events: Vec<Event>,
    /// Those before it have happened.
    first: usize,
    /// When the last event happened.
    pub(super) now: u64,
    /// So many events may happen before the host has its turn again.
    #[serde(skip)]
    left: u64,
    /// The host asks for nothing before, unless it is told something.
    #[serde(skip)]
    pub(super) undisturbed_until: u64,
}

impl Calendar {
    /// Whether an event is due by `until`.
    #[inline(always)]
    pub(super) fn is_due(&self, until: u64) -> bool {
        self.events.get(self.first).is_some_and(|event| event.at <= until)
    }

    /// The next event, where it is due by `until`.
    #[inline(always)]
    pub(super) fn take(&mut self, until: u64) -> Option<Event> {
        let event = *self.events.get(self.first)?;
        if event.at > until {
            return None;
        }
        self.first += 1;
        self.now = event.at;
        self.count();
        Some(event)
    }

    /// Something happens. No device that was made does so much before the host has its turn; a file may hold
    /// one that goes on for ever.
    #[inline]
    pub(super) fn count(&mut self) {
        self.left = self.left.checked_sub(1).expect("what is under way has an end");
    }

    /// `most` more events may happen.
    #[inline]
    pub(super) fn allow(&mut self, most: u64) {
        self.left = most;
    }

    /// It is `at`: what happened before has.
    #[inline]
    pub(super) fn reach(&mut self, at: u64) {
        debug_assert!(at == 0 || !self.is_due(at - 1));
        self.now = self.now.max(at);
    }

    #[inline]
    pub(super) fn arrive(&mut self, at: u64, index: u32) {
        self.add(at, ARRIVE << KIND | u64::from(index));
    }

    /// The operation, which would have arrived, does not.
    pub(super) fn withdraw_arrival(&mut self, index: u32) {
        self.withdraw(ARRIVE << KIND | u64::from(index));
    }

    /// The die is not released when it would have been, if it would.
    pub(super) fn withdraw_release(&mut self, die: DieIdx) {
        self.withdraw(RELEASE << KIND | u64::from(die.0));
    }

    fn withdraw(&mut self, what: u64) {
        let ahead = self.events[self.first..].iter().position(|event| event.what == what);
        if let Some(place) = ahead {
            self.events.remove(self.first + place);
        }
    }

    #[inline]
    pub(super) fn tell(&mut self, at: u64, token: u64) {
        debug_assert!(token >> KIND == 0, "the kind has two bits");
        self.add(at, TELL << KIND | token);
    }

    #[inline]
    pub(super) fn notice(&mut self, at: u64) {
        self.add(at, NOTICE << KIND);
    }

    /// Of two at one time a release is earlier than what is none, and than that of a later die.
    #[inline]
    pub(super) fn release(&mut self, at: u64, die: DieIdx) {
        let event = Event { at, what: RELEASE << KIND | u64::from(die.0) };
        self.put_behind(event, |other| (other.at, other.what) <= (at, event.what));
    }

    /// Put what is no release behind all that is not later.
    #[inline]
    fn add(&mut self, at: u64, what: u64) {
        self.put_behind(Event { at, what }, |other| other.at <= at);
    }

    /// Put `event` behind all that `are_before` it. Among a few, its place is found from the nearer end by those that
    /// make room for it; among many by halves.
    #[inline(always)]
    fn put_behind(&mut self, event: Event, are_before: impl Fn(&Event) -> bool) {
        debug_assert!(event.at >= self.now, "an event at {} lies before {}", event.at, self.now);
        let live = &self.events[self.first..];
        if live.len() > FEW {
            cold_path();
            let place = live.partition_point(are_before);
            return self.put(place, event);
        }
        let is_soon = live.get(live.len() / 2).is_some_and(|middle| !are_before(middle));
        if self.first > 0 && is_soon {
            self.add_soon(event, are_before);
        } else {
            self.add_late(event, are_before);
        }
    }

    /// The same from the beginning, where there is room.
    #[inline(always)]
    fn add_soon(&mut self, event: Event, are_before: impl Fn(&Event) -> bool) {
        self.first -= 1;
        let live = &mut self.events[self.first..];
        let mut place = 0;
        while place + 1 < live.len() && are_before(&live[place + 1]) {
            live[place] = live[place + 1];
            place += 1;
        }
        live[place] = event;
    }

    /// The same from the end.
    #[inline(always)]
    fn add_late(&mut self, event: Event, are_before: impl Fn(&Event) -> bool) {
        self.make_room();
        self.events.push(event);
        let live = &mut self.events[self.first..];
        let mut place = live.len() - 1;
        while place > 0 && !are_before(&live[place - 1]) {
            live[place] = live[place - 1];
            place -= 1;
        }
        live[place] = event;
    }

    /// There is room for another event at the end.
    #[inline]
    fn make_room(&mut self) {
        if self.events.len() == self.events.capacity() {
            self.forget_the_past();
        }
    }

    /// What has happened goes.
    #[cold]
    fn forget_the_past(&mut self) {
        self.events.drain(..self.first);
        self.first = 0;
        // Seldom, as long as half of it is past each time.
        self.events.reserve(self.events.len() + 16);
    }

    /// Put `event` behind so many of those that have not happened; the fewer of them move.
    #[inline(always)]
    fn put(&mut self, place: usize, event: Event) {
        let behind = self.events.len() - self.first - place;
        if place < behind && self.first > 0 {
            self.events.copy_within(self.first..self.first + place, self.first - 1);
            self.first -= 1;
            self.events[self.first + place] = event;
            return;
        }
        self.make_room();
        self.events.insert(self.first + place, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that is sorted anew each time, where equal times keep their order.
        #[test]
        fn events_happen_in_the_order_of_their_time_and_then_as_they_were_added(
            steps in prop::collection::vec((0u64..60, 0u32..5, any::<bool>()), 1..400),
        ) {
            let (mut calendar, mut list) = (Calendar::default(), Vec::new());
            calendar.allow(u64::MAX);
            for (number, (after, most, dense)) in (0..).zip(steps) {
                let at = calendar.now + if dense { after / 20 } else { after };
                calendar.tell(at, number);
                list.push((at, number));
                // Few are taken, so that many stand there.
                if most == 0 {
                    list.sort_by_key(|(at, _)| *at);
                    let (at, number) = list.remove(0);
                    let event = calendar.take(u64::MAX).expect("one was added");
                    prop_assert_eq!(event.at, at);
                    prop_assert!(matches!(event.what::<u64>(), What::Tell(told) if told == number));
                }
            }
        }
    }
}
