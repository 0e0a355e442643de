//! A pattern at work: a pure function of (specification, seed) that yields one I/O after another.
//!
//! **Source**: uFLIP (2009) §3.1, Table 1, attribute t(IOᵢ), and the mixed patterns.
//! **Faithful**: consecutive, pause(Pause), burst(Pause, Burst); pause(p) = burst(1, p); a mix of
//! ratio n issues n I/Os of the first pattern, then one of the second ("2 SR / 1 RR").
//! **Simplified**: nothing.
//! **Ours**: arrivals of an open loop ([`crate::arrivals`]), and lists of I/Os ([`crate::list`]).
//! **Ambiguous**: Table 1 prints the burst's pause as (i mod Burst) × Pause, which would pause after
//! every I/O but each Burst-th, growing with i; the text says that the pause stands *between groups
//! of Burst I/Os*, and so it is here. A part of a mix counts its own I/Os for its pauses.

use std::sync::Arc;

use uflip_core::random::Xoshiro256PlusPlus;
use uflip_core::{Bytes, Io, Mode, Nanos};

use crate::address::Location;
use crate::arrivals::Arrivals;
use crate::drive::Requests;
use crate::list::IoList;
use crate::skewed::{HotCold, Zipf};
use crate::spec::{Basic, LocationKind, Source, StreamSpec};
use crate::turns::{Turns, generator};

/// When an I/O is to be submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// So long after the completion of the one before; 0 before the first.
    After(Nanos),
    /// So long after the start of the run, whatever became of the others: an open loop.
    At(Nanos),
}

/// One I/O and when it is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Next<R = Io> {
    /// What to submit.
    pub io: R,
    /// When.
    pub when: When,
}

impl<R> Next<R> {
    /// Whether nothing may be under way when it is submitted.
    #[inline]
    pub(crate) fn is_after_pause(&self) -> bool {
        matches!(self.when, When::After(pause) if pause > Nanos(0))
    }
}

/// One process's endless sequence of I/Os.
#[derive(Clone, Debug)]
pub struct Pattern {
    made: Made,
    arrivals: Option<Arrivals>,
}

/// Where offsets, sizes and modes come from.
#[derive(Clone, Debug)]
enum Made {
    /// From functions.
    Functions {
        first: Cursor,
        /// The second pattern of a mix.
        second: Option<Cursor>,
        turns: Turns,
    },
    /// From a list, by their number; behind its end its last one.
    List { list: Arc<IoList>, next: usize },
}

#[derive(Clone, Debug)]
struct Cursor {
    location: Location,
    mode: Mode,
    /// The streams of its writes: to so many hot slots at the beginning, and to all others.
    hot_slots: u64,
    hot_stream: u8,
    stream: u8,
    io_size: u64,
    base: u64,
    pause: Nanos,
    burst: u64,
    until_pause: u64,
}

impl Pattern {
    /// The sequence that `stream` specifies, from its beginning.
    ///
    /// # Panics
    /// Where it is of a list that is elsewhere.
    #[must_use]
    pub fn new(stream: &StreamSpec) -> Pattern {
        let (rng, turns) = (generator(stream), Turns::new(stream));
        let made = match &stream.source {
            Source::Basic(basic) => {
                Made::Functions { first: Cursor::new(basic, rng), second: None, turns }
            }
            Source::Mix { first, second, .. } => {
                let mut second_rng = rng.clone();
                second_rng.long_jump();
                let second = Some(Cursor::new(second, second_rng));
                Made::Functions { first: Cursor::new(first, rng), second, turns }
            }
            Source::List(list) => {
                let list = list.as_ref().expect("the list of a pattern that is run is here");
                Made::List { list: Arc::clone(list), next: 0 }
            }
        };
        Pattern { made, arrivals: stream.arrivals.map(|rule| Arrivals::new(rule, stream)) }
    }

    /// The next I/O.
    #[inline]
    pub fn next_io(&mut self) -> Next {
        let mut next = match &mut self.made {
            Made::Functions { first, second, turns } => match second {
                Some(second) if turns.next_part() == 1 => second.next_io(),
                _ => first.next_io(),
            },
            Made::List { list, next } => {
                let this = (*next).min(list.len() - 1);
                *next += 1;
                list.next_at(this)
            }
        };
        if let Some(arrivals) = &mut self.arrivals {
            next.when = When::At(arrivals.next_instant());
        }
        next
    }
}

impl Requests for Pattern {
    type Request = Io;

    #[inline]
    fn next_request(&mut self) -> Next {
        self.next_io()
    }
}

impl Cursor {
    fn new(basic: &Basic, rng: Xoshiro256PlusPlus) -> Cursor {
        let location = match basic.location {
            LocationKind::Sequential => Location::sequential(basic.slots),
            LocationKind::Random => Location::random(basic.slots, rng),
            LocationKind::Zipf { skew_percent } => {
                Location::Zipf(Box::new(Zipf::new(basic.slots, skew_percent, rng)))
            }
            LocationKind::HotCold { space_percent, io_percent } => Location::HotCold(Box::new(
                HotCold::new(basic.slots, space_percent, io_percent, rng),
            )),
            LocationKind::Ordered { incr } => Location::ordered(basic.slots, incr),
            LocationKind::Partitioned { partitions } => {
                Location::partitioned(basic.slots, partitions)
            }
        };
        let hot_slots = match &location {
            Location::HotCold(areas) => areas.hot_slots(),
            _ => 0,
        };
        let burst = basic.burst.unwrap_or(u64::MAX);
        Cursor {
            location,
            mode: basic.mode,
            hot_slots,
            hot_stream: basic.hot_write_stream,
            stream: basic.write_stream,
            io_size: basic.io_size.0,
            base: basic.base.0,
            pause: basic.pause,
            burst,
            until_pause: burst,
        }
    }

    #[inline]
    fn next_io(&mut self) -> Next {
        let mut pause = Nanos(0);
        if self.until_pause == 0 {
            pause = self.pause;
            self.until_pause = self.burst;
        }
        self.until_pause -= 1;
        let slot = self.location.next_slot();
        let io = Io {
            offset: Bytes(self.base + slot * self.io_size),
            size: Bytes(self.io_size),
            mode: self.mode,
            stream: if slot < self.hot_slots { self.hot_stream } else { self.stream },
        };
        Next { io, when: When::After(pause) }
    }
}
