//! Programs that hold their channel until their die is ready, as with some controllers.
//!
//! ```text
//! program:  channel and queue of the die ─▶ both ─▶ channel turns to the die ─▶ transfer ─▶ cells
//!           └─────────── the channel is held, even while the die is busy ────┘
//! ```
//!
//! Everything else waits until the program has transferred its page. Only earlier reads on its own
//! die pass: the die is not ready before their data has left it. So when a program arrives, all
//! earlier work of its die is known, and so is its end: it needs no event.
//!
//! Operations arrive at a channel and its dies in the order of issue, and their times never
//! decrease. So they may be issued ahead of time: a later issue arrives later.
//!
//! **Source**: OX, traffic control of uFLIP-OC's (2017) card: a command to a busy LUN is sent with
//! a flag that blocks its channel until the LUN is ready.
//! **Faithful**: head-of-line blocking of a channel by its programs; reads and erases wait for
//! their die alone.
//! **Simplified**: a command takes no time on the channel.
//! **Ambiguous**: what passes a program that holds the channel. Here only its own die, which would
//! never be ready otherwise.

use super::die_queue::UNKNOWN;
use super::{Account, Op, Purpose, Timeline};
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::DieIdx;
use crate::timeline::breakdown::Cause;

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Serve all arrivals at the channel of `die` up to `at`; none will follow before `at`.
    #[inline]
    pub(crate) fn catch_up(&mut self, die: DieIdx, at: u64) {
        self.serve::<AllFeatures>(self.dies[die.0 as usize].channel as usize, at);
    }

    /// Return whether the last operation of `die`, which has caught up to `at`, is a program that
    /// continues at `at`.
    #[inline]
    pub(crate) fn is_programming(&self, die: DieIdx, at: u64) -> bool {
        let die = &self.dies[die.0 as usize];
        die.free_at != UNKNOWN && die.free_at > at && die.purpose == Purpose::HostWrite
    }

    /// Let `op` arrive at its die at `at`; the die has caught up to then.
    #[inline]
    pub(crate) fn arrive_at_die(&mut self, at: u64, op: Op<T>) {
        self.join_die_queue::<AllFeatures>(at, op);
    }

    /// Let the program `op` arrive at its channel and die at `at`; both have caught up to then. The
    /// channel takes `turn_ns` to switch to the die. Return when the die has the page, which it
    /// then programs.
    pub(crate) fn program_holding(&mut self, at: u64, turn_ns: u64, op: Op<T>) -> u64 {
        let die = op.die.0 as usize;
        let channel = self.dies[die].channel as usize;
        let held = self.channels[channel].lane.free_at.max(at);
        self.charge(&op, Cause::ChannelWait, held - at);
        while self.dies[die].free_at == UNKNOWN {
            self.start_waiting_read(channel, op.die, at);
        }
        let begin = self.charge_known(held, &op);
        let once = self.timing.transfer::<AllFeatures>(op.transfers);
        self.charge(&op, Cause::DieSwitch, turn_ns);
        self.charge(&op, Cause::Transfer, once);
        let sent = begin + turn_ns + once;
        self.channels[channel].lane.free_at = sent;
        let state = &mut self.dies[die];
        state.record_successor(at);
        (state.held_since, state.purpose, state.cached) = (begin, op.purpose, false);
        state.free_at = sent + op.cell_ns;
        if self.watched {
            self.note_holding(&op, [at, held, begin, sent]);
        }
        sent
    }

    /// Transfer the data that `die` reads over its held channel, when it has been read.
    #[inline(never)]
    fn start_waiting_read(&mut self, channel: usize, die: DieIdx, now: u64) {
        let Timeline { channels, ops, .. } = self;
        let read = channels[channel].take_matching(|index| ops[index as usize].die == die);
        let (at, index) = read.expect("the channel queues the read of a waiting die");
        self.serve_one::<AllFeatures>(channel, at, index, now);
    }
}
