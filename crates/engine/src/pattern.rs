//! A running pattern: a pure function of (specification, seed) that yields one I/O after another.
//!
//! **Source**: uFLIP (2009) §3.1, Table 1, attribute t(IOᵢ), and the mixed patterns.
//! **Faithful**: consecutive, pause(Pause), burst(Pause, Burst); pause(p) = burst(1, p); a mix of
//! ratio n issues n I/Os of the first pattern, then one of the second ("2 SR / 1 RR"); other mixes
//! are those of [`crate::spec::mix_order`].
//! **Simplified**: nothing.
//! **Ours**: arrivals of an open loop ([`crate::arrivals`]), and lists of I/Os ([`crate::list`]).
//! **Ambiguous**: Table 1 prints the burst's pause as (i mod Burst) × Pause, which would pause
//! after every I/O but each Burst-th, growing with i. The text places the pause *between groups of
//! Burst I/Os*, and this implementation follows it. Each part of a mix counts its own I/Os for its
//! pauses.

use std::sync::Arc;

use uflip_core::random::Xoshiro256PlusPlus;
use uflip_core::{Bytes, Io, Mode, Nanos};

use crate::arrivals::Arrivals;
use crate::drive::{NextRequest, Requests, When};
use crate::list::IoList;
use crate::location::{Location, LocationName};
use crate::spec::mix_order::{MixOrder, generator};
use crate::spec::{Basic, Resolved, StreamSource, StreamSpec};

/// The endless sequence of I/Os of one process.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: IoSource,
    arrivals: Option<Arrivals>,
}

/// The source of offsets, sizes and modes.
#[derive(Clone, Debug)]
enum IoSource {
    /// Location functions.
    Functions {
        first: Cursor,
        /// The other patterns of a mix.
        others: Vec<Cursor>,
        mix_order: MixOrder,
    },
    /// A list; after its end the last I/O repeats.
    List { list: Arc<IoList>, next: usize },
}

#[derive(Clone, Debug)]
struct Cursor {
    location: Location,
    mode: Mode,
    /// The write streams: `hot_stream` for the first `hot_slots` slots, `stream` for all others.
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
    /// Start the sequence that `stream` specifies.
    ///
    /// # Panics
    /// If it is a replay whose list was not provided.
    #[must_use]
    pub fn new(stream: &StreamSpec) -> Pattern {
        let (rng, mix_order) = (generator(stream), MixOrder::new(stream));
        let source = match &stream.source {
            StreamSource::Basic(basic) => IoSource::Functions {
                first: Cursor::new(basic, rng),
                others: Vec::new(),
                mix_order,
            },
            StreamSource::Mix { parts, .. } => {
                let mut jumped = rng.clone();
                let others = parts[1..].iter().map(|part| {
                    let same_zones = parts[0].location == LocationName::Zones
                        && part.location == LocationName::Zones;
                    jumped.long_jump();
                    if same_zones {
                        let mut other = Cursor::new(part, rng.clone());
                        other.location.skip_zones();
                        other
                    } else {
                        Cursor::new(part, jumped.clone())
                    }
                });
                let others = others.collect();
                IoSource::Functions {
                    first: Cursor::new(&parts[0], rng.clone()),
                    others,
                    mix_order,
                }
            }
            StreamSource::List(list) => {
                let list = list.as_ref().expect("a running replay has its list of I/Os");
                IoSource::List { list: Arc::clone(list), next: 0 }
            }
        };
        Pattern { source, arrivals: stream.arrivals.map(|rule| Arrivals::new(rule, stream)) }
    }

    /// Return the next I/O.
    #[inline]
    pub fn next_io(&mut self) -> NextRequest {
        let mut next = match &mut self.source {
            IoSource::Functions { first, others, .. } if others.is_empty() => first.next_io(),
            IoSource::Functions { first, others, mix_order } => match mix_order.next_part() {
                0 => first.next_io(),
                part => others[usize::from(part) - 1].next_io(),
            },
            IoSource::List { list, next } => {
                let index = (*next).min(list.len() - 1);
                *next += 1;
                list.next_at(index)
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
    fn next_request(&mut self) -> NextRequest {
        self.next_io()
    }
}

impl Cursor {
    fn new(basic: &Basic, rng: Xoshiro256PlusPlus) -> Cursor {
        let location = Location::new(basic.location, basic.slots, &basic.location_values, rng);
        let hot_slots = location.hot_slots();
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
    fn next_io(&mut self) -> NextRequest {
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
        NextRequest { io, when: When::After(pause) }
    }
}

impl Resolved {
    /// Return every I/O that the pattern issues, process by process; empty for a list that was not
    /// provided.
    pub fn issued(&self) -> impl Iterator<Item = Io> + '_ {
        self.streams.iter().filter(|spec| spec.source != StreamSource::List(None)).flat_map(
            |spec| {
                let mut sequence = Pattern::new(spec);
                (0..spec.total_ios).map(move |_| sequence.next_io().io)
            },
        )
    }
}
