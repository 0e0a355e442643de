//! The clocks of a merging FTL's device: who is busy until when. It charges time and knows nothing of
//! FTLs. All operations of a write are placed when it is planned (`device/merging.rs`), so clocks are enough;
//! a page map, whose collections run beside the host, has a timeline of events (`timeline/`).
//!
//! A die does one thing at a time, in the order in which operations are given to it (OFC's request
//! rings are first in, first out). Channels, buses, the processor and the link carry one thing at a
//! time; each takes the first gap at or after the moment it is ready, so a read's transfer slips in
//! before a program whose die is not ready yet: nothing is reserved over a die's busy time.
//!
//! ```text
//! program:  bus │ wait for die │ wait for channel │ transfer │ program cells
//! read:     wait for die │ read cells │ wait for channel │ transfer │ bus
//! erase:    wait for die │ erase
//! ```
//!
//! **Source**: OFC (2011) §III–IV (die rings, channel controllers, internal buses).
//! **Faithful**: dies and channels as resources; erase and program occupy the die alone; a page goes
//! over its channel and over one of the internal buses.
//! **Simplified**: a page is on the bus before or after it is on the channel, as through a FIFO of one
//! page; no cache program, so a die must be ready before data moves to it.
//! **Ambiguous**: which transfer goes first when two want one lane. Here operations are placed in the
//! order in which they are issued, and a later one may fill an earlier gap that is long enough, but
//! never delays what was placed before it.

mod lane;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::flash::geometry::{DieIdx, Geometry};
use crate::timeline::Timing;
use crate::timeline::breakdown::{Account, Cause};
use lane::Lane;

/// For whom a die works; waiting for it is charged accordingly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Purpose {
    Host,
    Erase,
    Metadata,
    Merge,
    Mapping,
}

/// A page that moves: from a die, where it does not come from memory, to a page of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) source: Option<DieIdx>,
    pub(crate) target: DieIdx,
    pub(crate) high: bool,
}

/// All clocks of a device.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Clocks {
    geometry: Geometry,
    timing: Timing,
    /// Nothing will be submitted before it any more: what ended earlier may be forgotten.
    now: u64,
    dies: Vec<Die>,
    channels: Vec<Lane>,
    buses: Vec<Lane>,
    processor: Lane,
}

/// A piece of work of a die.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Work {
    start: u64,
    end: u64,
    purpose: Purpose,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Die {
    /// What it does last; it is free at its end.
    last: Work,
    /// What it does before that and may not have ended, in order, neighbours merged. Mostly nothing,
    /// which is why the last piece has a place of its own.
    before: VecDeque<Work>,
    /// From when on the register can take the next page of the host, while the host's last page is
    /// programmed.
    register_free: u64,
}

impl Clocks {
    pub(crate) fn new(geometry: Geometry, timing: Timing) -> Clocks {
        let shape = geometry.shape();
        Clocks {
            geometry,
            timing,
            now: 0,
            dies: vec![Die::idle(); shape.dies as usize],
            channels: vec![Lane::default(); shape.channels as usize],
            buses: vec![Lane::default(); timing.buses as usize],
            processor: Lane::default(),
        }
    }

    /// Nothing will be submitted before `now` any more.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        self.now = now;
    }

    /// Read a page of `die` from `ready` on; returns when its data is in the controller's memory.
    #[inline]
    pub(crate) fn read(
        &mut self,
        die: DieIdx,
        ready: u64,
        purpose: Purpose,
        path: &mut impl Account,
    ) -> u64 {
        let die = self.geometry.clock_of(die);
        let channel = self.geometry.channel_of(die);
        let Timing { read_ns, transfer_ns, .. } = self.timing;
        let die = &mut self.dies[die.0 as usize];
        let start = die.wait(self.now, ready, path);
        let data = start + read_ns;
        path.add(Cause::CellRead, read_ns);
        let sent = self.channels[channel].take(self.now, data, transfer_ns);
        path.add(Cause::ChannelWait, sent - data);
        path.add(Cause::Transfer, transfer_ns);
        die.occupy(self.now, start, sent + transfer_ns, purpose);
        self.bus(channel, sent + transfer_ns, path)
    }

    /// Program a page of `die` with data that is in memory from `ready` on; returns the end.
    #[inline]
    pub(crate) fn program(
        &mut self,
        die: DieIdx,
        high: bool,
        ready: u64,
        purpose: Purpose,
        path: &mut impl Account,
    ) -> u64 {
        let die = self.geometry.clock_of(die);
        let channel = self.geometry.channel_of(die);
        let transfer_ns = self.timing.transfer_ns;
        let program_ns = if high { self.timing.program_high_ns } else { self.timing.program_ns };
        let arrived = self.bus(channel, ready, path);
        let die = &mut self.dies[die.0 as usize];
        if self.timing.cache_program && purpose == Purpose::Host {
            let start = die.wait_for_register(self.now, arrived, path);
            let sent = self.channels[channel].take(self.now, start, transfer_ns);
            path.add(Cause::ChannelWait, sent - start);
            path.add(Cause::Transfer, transfer_ns);
            let end = sent + transfer_ns;
            let begin = end.max(die.last.end);
            die.occupy(self.now, begin, begin + program_ns, purpose);
            die.register_free = begin;
            return end;
        }
        let start = die.wait(self.now, arrived, path);
        let sent = self.channels[channel].take(self.now, start, transfer_ns);
        path.add(Cause::ChannelWait, sent - start);
        path.add(Cause::Transfer, transfer_ns);
        path.add(Cause::CellProgram, program_ns);
        let end = sent + transfer_ns + program_ns;
        die.occupy(self.now, start, end, purpose);
        end
    }

    /// Copy a page of a merge, planned from `ready` on: read it, program it when its data is there;
    /// returns the end.
    #[inline]
    pub(crate) fn copy(&mut self, source: DieIdx, target: DieIdx, high: bool, ready: u64) -> u64 {
        let relocate_ns = self.timing.relocate_ns;
        let planned = self.processor.take(self.now, ready, relocate_ns) + relocate_ns;
        let data = self.read(source, planned, Purpose::Merge, &mut ());
        self.program(target, high, data, Purpose::Merge, &mut ())
    }

    /// Move `pages` in order from `ready` on, reading ahead by as many pages as there are dies, so that
    /// no die waits for data while another programs; returns the end of the last.
    pub(crate) fn stream(&mut self, pages: &[Moved], ready: u64, purpose: Purpose) -> u64 {
        let ahead = self.dies.len();
        let relocate_ns = self.timing.relocate_ns;
        let mut data = VecDeque::with_capacity(ahead + 1);
        let mut end = ready;
        for step in 0..pages.len() + ahead {
            if let Some(page) = pages.get(step) {
                let planned = self.processor.take(self.now, ready, relocate_ns) + relocate_ns;
                let read = |die| self.read(die, planned, purpose, &mut ());
                data.push_back(page.source.map_or(planned, read));
            }
            if let Some(page) = step.checked_sub(ahead).and_then(|index| pages.get(index)) {
                let ready = data.pop_front().expect("it was read before");
                end = end.max(self.program(page.target, page.high, ready, purpose, &mut ()));
            }
        }
        end
    }

    /// [`Clocks::copy`] of several pages, `low` even ones and `high` odd ones, in whichever order;
    /// returns the end of the last.
    pub(crate) fn copy_many(
        &mut self,
        source: DieIdx,
        target: DieIdx,
        low: u64,
        high: u64,
        ready: u64,
    ) -> u64 {
        let Timing { read_ns, program_ns, program_high_ns, relocate_ns, transfer_ns, .. } =
            self.timing;
        let alone = transfer_ns == 0 && self.buses.is_empty();
        if alone && source == target && relocate_ns == 0 {
            // Nothing but the die is needed: one long piece of work.
            let die = &mut self.dies[self.geometry.clock_of(target).0 as usize];
            let start = die.last.end.max(ready);
            let end = start + low * (read_ns + program_ns) + high * (read_ns + program_high_ns);
            die.occupy(self.now, start, end, Purpose::Merge);
            return end;
        }
        let pages = (0..low).map(|_| false).chain((0..high).map(|_| true));
        pages.map(|high| self.copy(source, target, high, ready)).max().unwrap_or(ready)
    }

    /// Erase a block of `die` from `ready` on; returns the end.
    #[inline]
    pub(crate) fn erase(&mut self, die: DieIdx, ready: u64) -> u64 {
        let die = &mut self.dies[self.geometry.clock_of(die).0 as usize];
        let start = die.last.end.max(ready);
        die.occupy(self.now, start, start + self.timing.erase_ns, Purpose::Erase);
        start + self.timing.erase_ns
    }

    /// A page over the internal bus of `channel`.
    #[inline]
    fn bus(&mut self, channel: usize, ready: u64, path: &mut impl Account) -> u64 {
        if self.buses.is_empty() {
            return ready;
        }
        let bus = channel % self.buses.len();
        let length = self.timing.bus_ns;
        let end = self.buses[bus].take(self.now, ready, length) + length;
        path.add(Cause::Bus, end - ready);
        end
    }
}

impl Die {
    fn idle() -> Die {
        let last = Work { start: 0, end: 0, purpose: Purpose::Host };
        Die { last, before: VecDeque::new(), register_free: 0 }
    }

    /// When work can start that is ready at `ready`; the wait is charged to whom the die works for.
    #[inline]
    fn wait(&mut self, now: u64, ready: u64, path: &mut impl Account) -> u64 {
        if self.last.end <= ready {
            return ready;
        }
        self.wait_for_work(now, ready, path)
    }

    /// When data for the host's next page can be sent that is ready at `ready`: once the page before
    /// it has left the register, or whatever else the die does has ended.
    #[inline]
    fn wait_for_register(&mut self, now: u64, ready: u64, path: &mut impl Account) -> u64 {
        if self.last.purpose != Purpose::Host {
            return self.wait(now, ready, path);
        }
        let start = ready.max(self.register_free);
        path.add(Cause::DieWait, start - ready);
        start
    }

    fn wait_for_work(&mut self, now: u64, ready: u64, path: &mut impl Account) -> u64 {
        while self.before.front().is_some_and(|work| work.end <= now) {
            self.before.pop_front();
        }
        let mut attributed = 0;
        for work in [&self.last].into_iter().chain(self.before.iter().rev()) {
            if work.end <= ready {
                break;
            }
            let length = work.end - work.start.max(ready);
            attributed += length;
            path.add(
                match work.purpose {
                    Purpose::Host => Cause::DieWait,
                    Purpose::Erase => Cause::Erase,
                    Purpose::Metadata => Cause::Metadata,
                    Purpose::Merge => Cause::Merge,
                    Purpose::Mapping => Cause::Mapping,
                },
                length,
            );
        }
        // Gaps between two pieces of work: the die waits for data of an operation ahead of this one.
        path.add(Cause::DieWait, self.last.end - ready - attributed);
        self.last.end
    }

    /// Work from `start`, which is not before what it does already, to `end`.
    #[inline]
    fn occupy(&mut self, now: u64, start: u64, end: u64, purpose: Purpose) {
        if self.last.end <= now {
            self.before.clear();
        } else if self.last.end == start && self.last.purpose == purpose {
            self.last.end = end;
            return;
        } else {
            self.before.push_back(self.last);
        }
        self.last = Work { start, end, purpose };
    }
}
