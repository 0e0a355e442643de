//! What is going to happen, in order.

use crate::geometry::DieIdx;

/// One thing that happens. Ordered by time; at one time releases of dies come first, by die, and then
/// everything else in the order in which it was added.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Event {
    pub(super) at: u64,
    order: u64,
    pub(super) what: What,
}

/// An operation, or a die to be released.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct What {
    index: u32,
    release: bool,
}

impl What {
    pub(super) fn op(self) -> Option<u32> {
        (!self.release).then_some(self.index)
    }

    pub(super) fn die(self) -> DieIdx {
        DieIdx(self.index)
    }
}

/// All events, latest first. There is an event for every operation under way, so there are few, and
/// most are added near the end: cheaper than a heap.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Calendar {
    events: Vec<Event>,
    added: u64,
    /// When the last event happened.
    pub(super) now: u64,
}

/// Orders below it are releases.
const FIRST_OP: u64 = 1 << 32;

impl Calendar {
    /// The next event, where it is due by `until`.
    #[inline]
    pub(super) fn take(&mut self, until: u64) -> Option<Event> {
        let event = self.events.pop_if(|event| event.at <= until)?;
        self.now = event.at;
        Some(event)
    }

    #[inline]
    pub(super) fn add_op(&mut self, at: u64, index: u32) {
        let order = FIRST_OP + self.added;
        self.added += 1;
        self.add(Event { at, order, what: What { index, release: false } });
    }

    #[inline]
    pub(super) fn add_release(&mut self, at: u64, die: DieIdx) {
        let what = What { index: die.0, release: true };
        self.add(Event { at, order: u64::from(die.0), what });
    }

    #[inline]
    fn add(&mut self, event: Event) {
        debug_assert!(event.at >= self.now, "{event:?} lies before {}", self.now);
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
