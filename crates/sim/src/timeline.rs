//! Who is busy until when: dies, channels, the host link. It charges time and knows nothing of FTLs.
//!
//! A die does one thing at a time, in the order in which operations are given to it. A channel and
//! the link carry one transfer at a time; a transfer takes the first gap at or after the moment it
//! is ready, so that a read may slip in before a program whose die is not ready yet: nothing is
//! reserved over a die's busy time.
//!
//! ```text
//! program:  wait for die │ wait for channel │ transfer │ program cells
//! read:     wait for die │ read cells │ wait for channel │ transfer
//! erase:    wait for die │ erase
//! ```
//!
//! **Source**: OFC (2011) §III–IV (die rings, channel controllers).
//! **Faithful**: dies and channels as resources; erase and program occupy the die alone.
//! **Simplified**: no bus between channels and memory but the host link; no cache program, so a die
//! must be ready before data moves to it.
//! **Ambiguous**: nothing.

use std::collections::VecDeque;

use crate::breakdown::{Cause, SimBreakdown};
use crate::geometry::{DieIdx, Geometry};

/// How long things take [ns].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) read_ns: u64,
    pub(crate) program_ns: u64,
    pub(crate) erase_ns: u64,
    /// One page over a channel.
    pub(crate) transfer_ns: u64,
    pub(crate) command_ns: u64,
    pub(crate) link_bytes_per_s: u64,
}

/// For whom a die works; waiting for it is charged accordingly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Host,
    Relocation,
    Erase,
}

/// All clocks of a device.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    geometry: Geometry,
    timing: Timing,
    dies: Vec<Die>,
    channels: Vec<Lane>,
    link: Lane,
}

#[derive(Clone, Debug, Default)]
struct Die {
    free_at: u64,
    /// What it works on and will work on: `(start, end, purpose)`, in order, neighbours merged.
    work: VecDeque<(u64, u64, Purpose)>,
}

/// Something that carries one transfer at a time.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Taken intervals that end in the future, in order, not overlapping.
    taken: VecDeque<(u64, u64)>,
}

impl Timeline {
    pub(crate) fn new(geometry: Geometry, timing: Timing) -> Timeline {
        Timeline {
            geometry,
            timing,
            dies: vec![Die::default(); geometry.dies as usize],
            channels: vec![Lane::default(); geometry.channels as usize],
            link: Lane::default(),
        }
    }

    pub(crate) fn timing(&self) -> Timing {
        self.timing
    }

    /// When every die is free.
    pub(crate) fn idle_at(&self) -> u64 {
        self.dies.iter().map(|die| die.free_at).max().unwrap_or(0)
    }

    /// Forget what ended before `now`; nothing will be submitted before it any more.
    pub(crate) fn forget_before(&mut self, now: u64) {
        for die in &mut self.dies {
            while die.work.front().is_some_and(|(_, end, _)| *end <= now) {
                die.work.pop_front();
            }
        }
        for lane in self.channels.iter_mut().chain([&mut self.link]) {
            lane.forget_before(now);
        }
    }

    /// `bytes` over the host link from `ready` on; returns the end.
    #[inline]
    pub(crate) fn link(&mut self, ready: u64, bytes: u64, path: &mut SimBreakdown) -> u64 {
        let length = bytes * 1_000_000_000 / self.timing.link_bytes_per_s;
        let end = self.link.take(ready, length) + length;
        path.add(Cause::Link, end - ready);
        end
    }

    /// Read a page of `die` from `ready` on; returns when its data has left the channel.
    #[inline]
    pub(crate) fn read(
        &mut self,
        die: DieIdx,
        ready: u64,
        purpose: Purpose,
        path: &mut SimBreakdown,
    ) -> u64 {
        let channel = self.geometry.channel_of(die);
        let Timing {
            read_ns,
            transfer_ns,
            ..
        } = self.timing;
        let die = &mut self.dies[die.0 as usize];
        let start = die.wait(ready, path);
        let data = start + read_ns;
        path.add(Cause::CellRead, read_ns);
        let sent = self.channels[channel].take(data, transfer_ns);
        path.add(Cause::ChannelWait, sent - data);
        path.add(Cause::Transfer, transfer_ns);
        die.occupy(start, sent + transfer_ns, purpose);
        sent + transfer_ns
    }

    /// Program a page of `die` with data that is there from `ready` on; returns the end.
    #[inline]
    pub(crate) fn program(
        &mut self,
        die: DieIdx,
        ready: u64,
        purpose: Purpose,
        path: &mut SimBreakdown,
    ) -> u64 {
        let channel = self.geometry.channel_of(die);
        let Timing {
            program_ns,
            transfer_ns,
            ..
        } = self.timing;
        let die = &mut self.dies[die.0 as usize];
        let start = die.wait(ready, path);
        let sent = self.channels[channel].take(start, transfer_ns);
        path.add(Cause::ChannelWait, sent - start);
        path.add(Cause::Transfer, transfer_ns);
        path.add(Cause::CellProgram, program_ns);
        let end = sent + transfer_ns + program_ns;
        die.occupy(start, end, purpose);
        end
    }

    /// Erase a block of `die` from `ready` on.
    #[inline]
    pub(crate) fn erase(&mut self, die: DieIdx, ready: u64) {
        let die = &mut self.dies[die.0 as usize];
        let start = die.free_at.max(ready);
        die.occupy(start, start + self.timing.erase_ns, Purpose::Erase);
    }
}

impl Die {
    /// When work can start that is ready at `ready`; the wait is charged to whom the die works for.
    #[inline]
    fn wait(&self, ready: u64, path: &mut SimBreakdown) -> u64 {
        if self.free_at <= ready {
            return ready;
        }
        let mut attributed = 0;
        for (start, end, purpose) in self.work.iter().rev() {
            if *end <= ready {
                break;
            }
            let length = *end - (*start).max(ready);
            attributed += length;
            path.add(
                match purpose {
                    Purpose::Host => Cause::DieWait,
                    Purpose::Relocation => Cause::Relocation,
                    Purpose::Erase => Cause::Erase,
                },
                length,
            );
        }
        // Gaps between two pieces of work: the die waits for data of an operation ahead of this one.
        path.add(Cause::DieWait, self.free_at - ready - attributed);
        self.free_at
    }

    #[inline]
    fn occupy(&mut self, start: u64, end: u64, purpose: Purpose) {
        self.free_at = end;
        if let Some((_, last_end, last_purpose)) = self.work.back_mut()
            && *last_end == start
            && *last_purpose == purpose
        {
            *last_end = end;
            return;
        }
        self.work.push_back((start, end, purpose));
    }
}

impl Lane {
    fn forget_before(&mut self, now: u64) {
        while self.taken.front().is_some_and(|(_, end)| *end <= now) {
            self.taken.pop_front();
        }
    }

    /// Take the first gap of `length` at or after `ready`; returns its start.
    #[inline]
    fn take(&mut self, ready: u64, length: u64) -> u64 {
        if length == 0 {
            return ready;
        }
        if self.taken.back().is_none_or(|(_, end)| *end <= ready) {
            self.taken.push_back((ready, ready + length));
            return ready;
        }
        let first = self.taken.partition_point(|(_, end)| *end <= ready);
        let (mut start, mut at) = (ready, self.taken.len());
        for (index, (from, to)) in self.taken.iter().enumerate().skip(first) {
            if start + length <= *from {
                at = index;
                break;
            }
            start = *to;
        }
        if at > 0 && self.taken[at - 1].1 == start {
            self.taken[at - 1].1 = start + length;
        } else {
            self.taken.insert(at, (start, start + length));
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_core::Breakdown;

    #[test]
    fn a_transfer_takes_the_first_gap_that_is_long_enough() {
        let mut lane = Lane::default();
        assert_eq!(lane.take(100, 10), 100);
        assert_eq!(lane.take(130, 10), 130);
        assert_eq!(lane.take(95, 10), 110, "5 before the first are too few");
        assert_eq!(lane.take(90, 10), 90, "just before the first");
        assert_eq!(lane.take(90, 20), 140, "no gap of 20 before the end");
        lane.forget_before(120);
        assert_eq!(lane.take(120, 10), 120);
    }

    #[test]
    fn waiting_is_charged_to_whom_the_die_works_for() {
        let mut die = Die::default();
        die.occupy(0, 100, Purpose::Relocation);
        die.occupy(100, 150, Purpose::Erase);
        die.occupy(150, 160, Purpose::Host);
        let mut path = SimBreakdown::default();
        assert_eq!(die.wait(40, &mut path), 160);
        let part = |name| {
            path.parts()[SimBreakdown::CAUSES
                .iter()
                .position(|n| *n == name)
                .unwrap()]
        };
        assert_eq!(
            (part("relocation_ns"), part("erase_ns"), part("die_wait_ns")),
            (60, 50, 10)
        );
    }
}
