//! How many commands of the host a device works on at once, and from which of the host's queues the next comes.
//!
//! ```text
//! submitted   a  b  c
//! at once: 1  ├─ a ─┤├─ b ─┤├─ c ─┤      b and c wait in the interface, and nothing of them overlaps
//!
//! reads    r1  r2  r3  r4                 a queue for reads and one for the rest, weights 2 and 1:
//! writes   w1  w2                         r1  r2  w1  r3  r4  w2
//! ```
//!
//! **Source**: PATA without queued commands, SATA without NCQ, and USB mass storage (bulk-only transport)
//! carry out one command and take the next when it has ended. NVM Express Base Specification 2.0, §3.4.4: round
//! robin, and weighted round robin, over submission queues; the Linux driver has queues of their own for writes
//! (`nvme.write_queues`).
//! **Faithful**: a queue is first come, first served, a queue that is empty is passed over; nothing of a command
//! begins before it is let in.
//! **Simplified**: to hand the next command over takes no time; two queues at most, and no urgent class.
//! **Ambiguous**: what a weight counts: commands, whatever their size.

use std::collections::VecDeque;

use uflip_core::Mode;

use crate::device::event::IoIdx;

/// Who is let in, and who waits.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Interface {
    /// 0: as many as the host sends.
    at_once: u32,
    under_way: u32,
    /// One queue for all, or one for reads and one for the rest.
    queues: Vec<Queue>,
    /// Whose turn it is, and so many commands are left of it.
    turn: usize,
    left: u32,
}

/// A queue of the host, and how many of its commands come in one turn.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Queue {
    weight: u32,
    waiting: VecDeque<IoIdx>,
}

impl Interface {
    /// Of as many queues as there are weights.
    pub(crate) fn new(at_once: u32, weights: &[u32]) -> Interface {
        let queue = |weight: &u32| Queue { weight: *weight, waiting: VecDeque::new() };
        let queues = weights.iter().map(queue).collect();
        Interface { at_once, queues, left: weights[0], ..Interface::default() }
    }

    /// Whether anybody may ever have to wait.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.at_once > 0
    }

    /// Whether `io` is let in now; if not, it waits.
    pub(crate) fn lets_in(&mut self, io: IoIdx, mode: Mode) -> bool {
        let room = self.under_way < self.at_once;
        if room {
            self.under_way += 1;
        } else {
            let of_rest = usize::from(mode != Mode::Read);
            let last = self.queues.len() - 1;
            self.queues[of_rest.min(last)].waiting.push_back(io);
        }
        room
    }

    /// A command has ended: who comes next.
    pub(crate) fn next(&mut self) -> Option<IoIdx> {
        // Once around, and what is left of the turn that it began with.
        for _ in 0..=self.queues.len() {
            let queue = &mut self.queues[self.turn];
            if self.left > 0
                && let Some(next) = queue.waiting.pop_front()
            {
                self.left -= 1;
                return Some(next);
            }
            self.turn = (self.turn + 1) % self.queues.len();
            self.left = self.queues[self.turn].weight;
        }
        self.under_way -= 1;
        None
    }

    /// Nothing is under way any more.
    pub(crate) fn rest(&mut self) {
        let nobody = self.queues.iter().all(|queue| queue.waiting.is_empty());
        debug_assert!(nobody, "every I/O has ended");
        self.under_way = 0;
    }
}
