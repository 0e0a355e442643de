//! A calendar queue of future events.

use std::collections::VecDeque;
use std::hint::cold_path;
use std::{iter, mem};

use crate::flash::geometry::DieIdx;

/// Number of buckets; with 32 I/Os and as many dies, each holds few events.
const BUCKETS: usize = u64::BITS as usize;
/// Bits of a bucket's time span [ns]: all buckets together cover about one page program.
const SPAN_BITS: u32 = 14;
/// No node.
const NONE: u32 = u32::MAX;

/// An event, and the next one of its bucket.
#[derive(Clone, Copy, Debug)]
struct EventNode {
    event: Event,
    next: u32,
}

/// All events in order. Near events are in the list of their time bucket; the buckets form a ring,
/// and each has few events. So inserting an event and finding the first are both fast. Events
/// beyond the buckets are in a separate list.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(from = "StoredCalendar", into = "StoredCalendar")]
pub(super) struct Calendar {
    nodes: Vec<EventNode>,
    /// First node of the free list, or none.
    unused: u32,
    /// First and last node of each bucket; meaningless while the bucket's bit is clear.
    ends: [(u32, u32); BUCKETS],
    /// The buckets with events, one bit each.
    has: u64,
    /// Events that were beyond all buckets when they were added.
    far: VecDeque<Event>,
    /// The time of the first of these; otherwise the end of time.
    far_from: u64,
    /// The time of the last event.
    pub(super) now: u64,
    /// Remaining event budget of the host call.
    #[serde(rename = "left")]
    events_left: u64,
    /// The host submits nothing before this time unless it is notified.
    pub(super) undisturbed_until: u64,
}

impl Default for Calendar {
    fn default() -> Calendar {
        Calendar {
            nodes: Vec::new(),
            unused: NONE,
            ends: [(NONE, NONE); BUCKETS],
            has: 0,
            far: VecDeque::new(),
            far_from: u64::MAX,
            now: 0,
            events_left: 0,
            undisturbed_until: 0,
        }
    }
}

impl Calendar {
    /// Return whether an event is due by `until`.
    #[inline(always)]
    pub(super) fn is_due(&self, until: u64) -> bool {
        let first_at =
            self.first_near().map_or(self.far_from, |(event, _)| event.at.min(self.far_from));
        first_at <= until && !self.is_empty()
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.has == 0 && self.far_from == u64::MAX
    }

    /// Remove the next event if it is due by `until`.
    #[inline(always)]
    pub(super) fn take(&mut self, until: u64) -> Option<Event> {
        if self.is_empty() {
            return None;
        }
        let event = match self.first_near() {
            Some((event, bucket)) if event.at < self.far_from => {
                if event.at > until {
                    return None;
                }
                self.remove_first(bucket);
                event
            }
            near => self.take_of_both(near, until)?,
        };
        self.now = event.at;
        self.count();
        Some(event)
    }

    /// Return the first event in the buckets, and its bucket.
    #[inline(always)]
    fn first_near(&self) -> Option<(Event, usize)> {
        let bucket = self.first_bucket()?;
        Some((self.nodes[self.ends[bucket].0 as usize].event, bucket))
    }

    /// Remove the next event if it is due by `until` and the first far event is not later than
    /// `near`.
    #[cold]
    fn take_of_both(&mut self, near: Option<(Event, usize)>, until: u64) -> Option<Event> {
        let far = *self.far.front()?;
        // At equal times the far event was added first.
        let is_next =
            |(near, _): &(Event, _)| near.is_release() && (near.at, near.code) < (far.at, far.code);
        let near = near.filter(is_next);
        let event = near.map_or(far, |(event, _)| event);
        if event.at > until {
            return None;
        }
        match near {
            Some((_, bucket)) => self.remove_first(bucket),
            None => self.remove_far(0),
        }
        Some(event)
    }

    /// Remove the far event at index `ahead`.
    #[cold]
    fn remove_far(&mut self, ahead: usize) {
        self.far.remove(ahead);
        self.far_from = self.far.front().map_or(u64::MAX, |event| event.at);
    }

    /// Return the first bucket with events, starting at the current one.
    #[inline(always)]
    fn first_bucket(&self) -> Option<usize> {
        let from = (self.now >> SPAN_BITS) as u32 % BUCKETS as u32;
        let ahead = self.has.rotate_right(from).trailing_zeros();
        (self.has != 0).then(|| (from + ahead) as usize % BUCKETS)
    }

    /// Remove the first event of a bucket.
    #[inline(always)]
    fn remove_first(&mut self, bucket: usize) {
        let (first, last) = self.ends[bucket];
        self.ends[bucket].0 = self.free_node(first);
        self.has &= !(u64::from(first == last) << bucket);
    }

    /// Free node `index`; return its successor.
    #[inline(always)]
    fn free_node(&mut self, index: u32) -> u32 {
        let node = &mut self.nodes[index as usize];
        let next = mem::replace(&mut node.next, self.unused);
        self.unused = index;
        next
    }

    /// Return a node with `event` and no successor.
    #[inline(always)]
    fn new_node(&mut self, event: Event) -> u32 {
        let index = self.unused;
        if let Some(node) = self.nodes.get_mut(index as usize) {
            self.unused = mem::replace(&mut node.next, NONE);
            node.event = event;
            return index;
        }
        // Rare: there are as many  as there ever were events at once.
        cold_path();
        self.nodes.push(EventNode { event, next: NONE });
        self.nodes.len() as u32 - 1
    }

    /// Count an event against the budget. No real device exceeds it in one host call; a corrupt
    /// snapshot may loop for ever.
    #[inline]
    pub(super) fn count(&mut self) {
        self.events_left =
            self.events_left.checked_sub(1).expect("one host call causes too many events");
    }

    /// Set the event budget to `max_events`.
    #[inline]
    pub(super) fn set_event_budget(&mut self, max_events: u64) {
        self.events_left = max_events;
    }

    /// Advance the clock to `at`: no earlier event is left.
    #[inline]
    pub(super) fn advance_to(&mut self, at: u64) {
        debug_assert!(at == 0 || !self.is_due(at - 1));
        self.now = self.now.max(at);
    }

    #[inline]
    pub(super) fn arrive(&mut self, at: u64, index: u32) {
        self.add(at, ARRIVE << KIND_SHIFT | u64::from(index));
    }

    /// Remove the arrival of the operation.
    pub(super) fn withdraw_arrival(&mut self, index: u32) {
        self.withdraw(ARRIVE << KIND_SHIFT | u64::from(index));
    }

    /// Remove the release of the die, if there is one.
    pub(super) fn withdraw_release(&mut self, die: DieIdx) {
        self.withdraw(RELEASE << KIND_SHIFT | u64::from(die.0));
    }

    fn withdraw(&mut self, code: u64) {
        let buckets = (0..BUCKETS).filter(|bucket| self.has >> bucket & 1 == 1);
        for bucket in buckets {
            let (mut before, mut index) = (NONE, self.ends[bucket].0);
            while index != NONE && self.nodes[index as usize].event.code != code {
                (before, index) = (index, self.nodes[index as usize].next);
            }
            if index != NONE {
                return self.remove_after(bucket, before, index);
            }
        }
        if let Some(position) = self.far.iter().position(|event| event.code == code) {
            self.remove_far(position);
        }
    }

    /// Remove the event of node `index`, which follows `before` in its bucket.
    fn remove_after(&mut self, bucket: usize, before: u32, index: u32) {
        if before == NONE {
            return self.remove_first(bucket);
        }
        let next = self.free_node(index);
        self.nodes[before as usize].next = next;
        if next == NONE {
            self.ends[bucket].1 = before;
        }
    }

    #[inline]
    pub(super) fn add_report(&mut self, at: u64, token: u64) {
        debug_assert!(token >> KIND_SHIFT == 0, "the kind has two bits");
        self.add(at, REPORT << KIND_SHIFT | token);
    }

    #[inline]
    pub(super) fn notice(&mut self, at: u64) {
        self.add(at, NOTICE << KIND_SHIFT);
    }

    /// Add a release. At equal times it precedes all other kinds, and releases of later dies.
    #[inline]
    pub(super) fn release(&mut self, at: u64, die: DieIdx) {
        let event = Event { at, code: RELEASE << KIND_SHIFT | u64::from(die.0) };
        self.insert_after(event, |other| (other.at, other.code) <= (at, event.code));
    }

    /// Add an event other than a release, after all that are not later.
    #[inline]
    fn add(&mut self, at: u64, code: u64) {
        self.insert_after(Event { at, code }, |other| other.at <= at);
    }

    /// Insert `event` after all that `are_before` it.
    #[inline(always)]
    fn insert_after(&mut self, event: Event, are_before: impl Fn(&Event) -> bool) {
        debug_assert!(event.at >= self.now, "an event at {} lies before {}", event.at, self.now);
        let span = event.at >> SPAN_BITS;
        if span - (self.now >> SPAN_BITS) >= BUCKETS as u64 {
            cold_path();
            let position = self.far.partition_point(are_before);
            self.far_from = self.far_from.min(event.at);
            return self.far.insert(position, event);
        }
        let bucket = span as usize % BUCKETS;
        let node = self.new_node(event);
        if self.has >> bucket & 1 == 0 {
            self.has |= 1 << bucket;
            self.ends[bucket] = (node, node);
            return;
        }
        let (first, last) = self.ends[bucket];
        if are_before(&self.nodes[last as usize].event) {
            self.nodes[last as usize].next = node;
            self.ends[bucket].1 = node;
        } else if !are_before(&self.nodes[first as usize].event) {
            self.nodes[node as usize].next = first;
            self.ends[bucket].0 = node;
        } else {
            self.insert_between(node, first, are_before);
        }
    }

    /// Insert the node after `before` or one of its successors.
    #[inline(always)]
    fn insert_between(&mut self, node: u32, mut before: u32, are_before: impl Fn(&Event) -> bool) {
        let mut next = self.nodes[before as usize].next;
        while are_before(&self.nodes[next as usize].event) {
            (before, next) = (next, self.nodes[next as usize].next);
        }
        self.nodes[node as usize].next = next;
        self.nodes[before as usize].next = node;
    }
}

/// A calendar as stored: its events in order.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Calendar")]
struct StoredCalendar {
    events: Vec<Event>,
    /// Number of entries before it that are done.
    first: usize,
    now: u64,
}

impl From<Calendar> for StoredCalendar {
    fn from(mut calendar: Calendar) -> StoredCalendar {
        let now = calendar.now;
        calendar.set_event_budget(u64::MAX);
        StoredCalendar {
            events: iter::from_fn(|| calendar.take(u64::MAX)).collect(),
            first: 0,
            now,
        }
    }
}

impl From<StoredCalendar> for Calendar {
    fn from(StoredCalendar { events, first, now }: StoredCalendar) -> Calendar {
        let mut calendar = Calendar { now, ..Calendar::default() };
        for event in events.into_iter().skip(first) {
            // A corrupt file may contain an event in the past.
            calendar.insert_after(Event { at: event.at.max(now), ..event }, |_| true);
        }
        calendar
    }
}

// Events of the calendar, packed into one word plus time.

/// An event. Ordered by time; at equal times releases of dies come first, by die, and then all
/// others in the order in which they were added.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Event {
    pub(super) at: u64,
    /// The kind in the highest bits, and the index below. One word, so that it moves as a whole.
    #[serde(rename = "what")]
    code: u64,
}

/// An event of the calendar.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventKind<T> {
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
const KIND_SHIFT: u32 = 62;
const RELEASE: u64 = 0;
const ARRIVE: u64 = 1;
const REPORT: u64 = 2;
const NOTICE: u64 = 3;

impl Event {
    #[inline(always)]
    fn is_release(self) -> bool {
        self.code >> KIND_SHIFT == RELEASE
    }

    #[inline]
    pub(super) fn kind<T: From<u64>>(self) -> EventKind<T> {
        let index = self.code & ((1 << KIND_SHIFT) - 1);
        match self.code >> KIND_SHIFT {
            RELEASE => EventKind::Release(DieIdx(index as u32)),
            ARRIVE => EventKind::Arrive(index as u32),
            REPORT => EventKind::Report(T::from(index)),
            _ => EventKind::Notice,
        }
    }
}
