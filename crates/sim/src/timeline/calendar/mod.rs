//! What is going to happen, in order.

mod event;

use std::collections::VecDeque;
use std::hint::cold_path;
use std::{iter, mem};

use crate::flash::geometry::DieIdx;
pub(super) use event::What;
use event::{ARRIVE, Event, KIND, NOTICE, RELEASE, TELL};

/// So many spans of time have a place of their own: what 32 I/Os and as many dies wait for is a few in each.
const PLACES: usize = u64::BITS as usize;
/// A span of time has so many bits [ns]: together they are about as long as a program.
const SPAN_BITS: u32 = 14;
/// No node.
const NONE: u32 = u32::MAX;

/// An event, and the next one of its span.
#[derive(Clone, Copy, Debug)]
struct Node {
    event: Event,
    next: u32,
}

/// All events, first first. What is soon stands in the list of its span of time, of which there are so many, in a
/// circle, that each has few: so neither to find a new one's place nor to find the first looks at many. What is later
/// than all spans stands in a list of its own.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(from = "Listed", into = "Listed")]
pub(super) struct Calendar {
    nodes: Vec<Node>,
    /// The first node that holds no event any more, before others; or none.
    unused: u32,
    /// The first and the last node of each span; nothing, where the span's bit is not set.
    ends: [(u32, u32); PLACES],
    /// Which spans have events.
    has: u64,
    /// What was more than all spans ahead when it was added.
    far: VecDeque<Event>,
    /// When the first of these happens; the end of time, where there is none.
    far_from: u64,
    /// When the last event happened.
    pub(super) now: u64,
    /// So many events may happen before the host has its turn again.
    left: u64,
    /// The host asks for nothing before, unless it is told something.
    pub(super) undisturbed_until: u64,
}

impl Default for Calendar {
    fn default() -> Calendar {
        Calendar {
            nodes: Vec::new(),
            unused: NONE,
            ends: [(NONE, NONE); PLACES],
            has: 0,
            far: VecDeque::new(),
            far_from: u64::MAX,
            now: 0,
            left: 0,
            undisturbed_until: 0,
        }
    }
}

impl Calendar {
    /// Whether an event is due by `until`.
    #[inline(always)]
    pub(super) fn is_due(&self, until: u64) -> bool {
        self.first_at() <= until && !self.is_empty()
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.has == 0 && self.far_from == u64::MAX
    }

    /// The next event, where it is due by `until`.
    #[inline(always)]
    pub(super) fn take(&mut self, until: u64) -> Option<Event> {
        if self.is_empty() {
            return None;
        }
        let event = match self.first_soon() {
            Some((event, place)) if event.at < self.far_from => {
                if event.at > until {
                    return None;
                }
                self.leave(place);
                event
            }
            soon => self.take_of_both(soon, until)?,
        };
        self.now = event.at;
        self.count();
        Some(event)
    }

    /// The first event of those that are soon, and the place of its span.
    #[inline(always)]
    fn first_soon(&self) -> Option<(Event, usize)> {
        let place = self.first_place()?;
        Some((self.nodes[self.ends[place].0 as usize].event, place))
    }

    /// When the first event happens; the end of time, where there is none.
    #[inline(always)]
    fn first_at(&self) -> u64 {
        self.first_soon().map_or(self.far_from, |(event, _)| event.at.min(self.far_from))
    }

    /// The next event, where it is due by `until` and the first of those that are far is not later than `soon`.
    #[cold]
    fn take_of_both(&mut self, soon: Option<(Event, usize)>, until: u64) -> Option<Event> {
        let far = *self.far.front()?;
        // Of two at one time what is far was added before.
        let is_next =
            |(soon, _): &(Event, _)| soon.is_release() && (soon.at, soon.what) < (far.at, far.what);
        let soon = soon.filter(is_next);
        let event = soon.map_or(far, |(event, _)| event);
        if event.at > until {
            return None;
        }
        match soon {
            Some((_, place)) => self.leave(place),
            None => self.leave_far(0),
        }
        Some(event)
    }

    /// The event at `ahead` of those that are far happens, or does not.
    #[cold]
    fn leave_far(&mut self, ahead: usize) {
        self.far.remove(ahead);
        self.far_from = self.far.front().map_or(u64::MAX, |event| event.at);
    }

    /// The first span that has events: from that of now on, around.
    #[inline(always)]
    fn first_place(&self) -> Option<usize> {
        let from = (self.now >> SPAN_BITS) as u32 % PLACES as u32;
        let ahead = self.has.rotate_right(from).trailing_zeros();
        (self.has != 0).then(|| (from + ahead) as usize % PLACES)
    }

    /// The first event of a span happens.
    #[inline(always)]
    fn leave(&mut self, place: usize) {
        let (first, last) = self.ends[place];
        self.ends[place].0 = self.let_go(first);
        self.has &= !(u64::from(first == last) << place);
    }

    /// Node `index` holds no event any more; return the one that followed it.
    #[inline(always)]
    fn let_go(&mut self, index: u32) -> u32 {
        let node = &mut self.nodes[index as usize];
        let next = mem::replace(&mut node.next, self.unused);
        self.unused = index;
        next
    }

    /// A node that holds `event`, and that nothing follows.
    #[inline(always)]
    fn hold(&mut self, event: Event) -> u32 {
        let index = self.unused;
        if let Some(node) = self.nodes.get_mut(index as usize) {
            self.unused = mem::replace(&mut node.next, NONE);
            node.event = event;
            return index;
        }
        // Seldom: there are as many nodes as there ever were events at once.
        cold_path();
        self.nodes.push(Node { event, next: NONE });
        self.nodes.len() as u32 - 1
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
        let soon = (0..PLACES).filter(|place| self.has >> place & 1 == 1);
        for place in soon {
            let (mut before, mut index) = (NONE, self.ends[place].0);
            while index != NONE && self.nodes[index as usize].event.what != what {
                (before, index) = (index, self.nodes[index as usize].next);
            }
            if index != NONE {
                return self.leave_behind(place, before, index);
            }
        }
        if let Some(ahead) = self.far.iter().position(|event| event.what == what) {
            self.leave_far(ahead);
        }
    }

    /// The event of node `index`, which follows `before` in its span, does not happen.
    fn leave_behind(&mut self, place: usize, before: u32, index: u32) {
        if before == NONE {
            return self.leave(place);
        }
        let next = self.let_go(index);
        self.nodes[before as usize].next = next;
        if next == NONE {
            self.ends[place].1 = before;
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

    /// Put `event` behind all that `are_before` it.
    #[inline(always)]
    fn put_behind(&mut self, event: Event, are_before: impl Fn(&Event) -> bool) {
        debug_assert!(event.at >= self.now, "an event at {} lies before {}", event.at, self.now);
        let span = event.at >> SPAN_BITS;
        if span - (self.now >> SPAN_BITS) >= PLACES as u64 {
            cold_path();
            let behind = self.far.partition_point(are_before);
            self.far_from = self.far_from.min(event.at);
            return self.far.insert(behind, event);
        }
        let place = span as usize % PLACES;
        let node = self.hold(event);
        if self.has >> place & 1 == 0 {
            self.has |= 1 << place;
            self.ends[place] = (node, node);
            return;
        }
        let (first, last) = self.ends[place];
        if are_before(&self.nodes[last as usize].event) {
            self.nodes[last as usize].next = node;
            self.ends[place].1 = node;
        } else if !are_before(&self.nodes[first as usize].event) {
            self.nodes[node as usize].next = first;
            self.ends[place].0 = node;
        } else {
            self.put_between(node, first, are_before);
        }
    }

    /// The same behind the node `before`, where one of those behind it is later.
    #[inline(always)]
    fn put_between(&mut self, node: u32, mut before: u32, are_before: impl Fn(&Event) -> bool) {
        let mut next = self.nodes[before as usize].next;
        while are_before(&self.nodes[next as usize].event) {
            (before, next) = (next, self.nodes[next as usize].next);
        }
        self.nodes[node as usize].next = next;
        self.nodes[before as usize].next = node;
    }
}

/// A calendar as it is kept: its events in their order.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Calendar")]
struct Listed {
    events: Vec<Event>,
    /// Those before it have happened.
    first: usize,
    now: u64,
}

impl From<Calendar> for Listed {
    fn from(mut calendar: Calendar) -> Listed {
        let now = calendar.now;
        calendar.allow(u64::MAX);
        Listed { events: iter::from_fn(|| calendar.take(u64::MAX)).collect(), first: 0, now }
    }
}

impl From<Listed> for Calendar {
    fn from(Listed { events, first, now }: Listed) -> Calendar {
        let mut calendar = Calendar { now, ..Calendar::default() };
        for event in events.into_iter().skip(first) {
            // A file may hold one that lies in the past.
            calendar.put_behind(Event { at: event.at.max(now), ..event }, |_| true);
        }
        calendar
    }
}
