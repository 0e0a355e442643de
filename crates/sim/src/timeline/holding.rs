//! Channels that a program holds until its die is ready, as some controllers have it.
//!
//! ```text
//! program:  channel and ring of the die ─▶ both ─▶ channel turns to the die ─▶ transfer ─▶ cells
//!           └──────────── the channel is held, whoever has the die ────────┘
//! ```
//!
//! Everything else waits until the program has sent its page. Only reads pass that are on its own die before it:
//! the die is not ready before their data has left it. So when a program arrives, all that its die does before it
//! is known, and so is its end: it is no event.
//!
//! Operations come to a channel and its dies in the order in which they are issued, and their times do not go
//! back. Then they may be issued before their time has come: whoever is issued later arrives later there.
//!
//! **Source**: OX, traffic control of uFLIP-OC's (2017) card: a command to a LUN that is marked as busy is sent with a
//! flag that blocks its channel until the LUN is ready.
//! **Faithful**: head-of-line blocking of a channel by its programs; reads and erases wait for their die alone.
//! **Simplified**: a command takes no time on the channel.
//! **Ambiguous**: what passes a program that holds the channel. Here its own die, which would never be ready else.

use super::die_queue::UNKNOWN;
use super::{Account, Op, Purpose, Timeline};
use crate::flash::fast_path::Full;
use crate::flash::geometry::DieIdx;
use crate::timeline::breakdown::Cause;

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// All that arrives by `at` at the channel of `die` is served; nothing will arrive there before `at`.
    #[inline]
    pub(crate) fn catch_up(&mut self, die: DieIdx, at: u64) {
        self.serve::<Full>(self.dies[die.0 as usize].channel as usize, at);
    }

    /// Whether the last that is asked of `die` is a program which goes on at `at`, up to which it has caught up.
    #[inline]
    pub(crate) fn is_programming(&self, die: DieIdx, at: u64) -> bool {
        let die = &self.dies[die.0 as usize];
        die.free_at != UNKNOWN && die.free_at > at && die.purpose == Purpose::HostWrite
    }

    /// `op` arrives at its die at `at`, up to which that has caught up.
    #[inline]
    pub(crate) fn arrive_at_die(&mut self, at: u64, op: Op<T>) {
        self.join_die_queue::<Full>(at, op);
    }

    /// The program `op` arrives at its channel and its die at `at`, up to which these have caught up, and the
    /// channel takes `turn_ns` to turn to the die. Returns when the die has the page, which it then programs.
    pub(crate) fn program_holding(&mut self, at: u64, turn_ns: u64, op: Op<T>) -> u64 {
        let die = op.die.0 as usize;
        let channel = self.dies[die].channel as usize;
        let held = self.channels[channel].lane.free_at.max(at);
        self.charge(&op, Cause::ChannelWait, held - at);
        while self.dies[die].free_at == UNKNOWN {
            self.let_pass(channel, op.die, at);
        }
        let begin = self.charge_known(held, &op);
        let once = self.timing.transfer::<Full>(op.transfers);
        self.charge(&op, Cause::DieSwitch, turn_ns);
        self.charge(&op, Cause::Transfer, once);
        let sent = begin + turn_ns + once;
        self.channels[channel].lane.free_at = sent;
        let state = &mut self.dies[die];
        state.passes_on(at);
        (state.held_since, state.purpose, state.cached) = (begin, op.purpose, false);
        state.free_at = sent + op.cell_ns;
        if self.watched {
            self.note_holding(&op, [at, held, begin, sent]);
        }
        sent
    }

    /// What `die` reads is sent over its channel, which is held, when it is read.
    #[inline(never)]
    fn let_pass(&mut self, channel: usize, die: DieIdx, now: u64) {
        let Timeline { channels, ops, .. } = self;
        let read = channels[channel].take_out(|index| ops[index as usize].die == die);
        let (at, index) = read.expect("a die that waits for its channel is on the list of that");
        self.serve_one::<Full>(channel, at, index, now);
    }
}
