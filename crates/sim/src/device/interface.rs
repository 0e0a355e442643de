//! Command queues of the host interface: how many commands run at once, and which queue supplies
//! the next.
//!
//! ```text
//! submitted   a  b  c
//! at once: 1  ├─ a ─┤├─ b ─┤├─ c ─┤      b and c wait in the interface, and nothing of them overlaps
//!
//! reads    r1  r2  r3  r4                 a queue for reads and one for the rest, weights 2 and 1:
//! writes   w1  w2                         r1  r2  w1  r3  r4  w2
//! ```
//!
//! **Source**: PATA without queued commands, SATA without NCQ, and USB mass storage (bulk-only
//! transport) execute one command at a time. NVM Express Base Specification 2.0, §3.4.4: round
//! robin and weighted round robin over submission queues; the Linux driver can have separate write
//! queues (`nvme.write_queues`).
//! **Faithful**: each queue is FIFO; empty queues are skipped; no part of a command starts before
//! its admission.
//! **Simplified**: switching to the next command takes no time; at most two queues, and no urgent
//! class.
//! **Ambiguous**: what a weight counts; here commands, whatever their size.

use std::collections::VecDeque;

use uflip_core::Mode;

use crate::device::event::IoIdx;

/// The commands that are admitted, and those that wait.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Interface {
    /// Maximum number of commands at once; 0: unlimited.
    at_once: u32,
    #[serde(rename = "under_way")]
    active: u32,
    /// One queue for all, or one for reads and one for the rest.
    queues: Vec<HostQueue>,
    /// The queue whose turn it is, and the commands left in its turn.
    turn: usize,
    #[serde(rename = "left")]
    turn_left: u32,
}

/// A queue of the host, and its number of commands per turn (weight).
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Queue")]
struct HostQueue {
    weight: u32,
    waiting: VecDeque<IoIdx>,
}

impl Interface {
    /// Create one queue per weight.
    pub(crate) fn new(at_once: u32, weights: &[u32]) -> Interface {
        let queue = |weight: &u32| HostQueue { weight: *weight, waiting: VecDeque::new() };
        let queues = weights.iter().map(queue).collect();
        Interface { at_once, queues, turn_left: weights[0], ..Interface::default() }
    }

    /// Return whether a command may ever have to wait.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.at_once > 0
    }

    /// Admit `io` now if possible; otherwise queue it and return false.
    pub(crate) fn admit(&mut self, io: IoIdx, mode: Mode) -> bool {
        let admitted = self.active < self.at_once;
        if admitted {
            self.active += 1;
        } else {
            let of_rest = usize::from(mode != Mode::Read);
            let last = self.queues.len() - 1;
            self.queues[of_rest.min(last)].waiting.push_back(io);
        }
        admitted
    }

    /// Return the next command to admit, after a completion.
    pub(crate) fn next(&mut self) -> Option<IoIdx> {
        // One full round, plus the rest of the current turn.
        for _ in 0..=self.queues.len() {
            let queue = &mut self.queues[self.turn];
            if self.turn_left > 0
                && let Some(next) = queue.waiting.pop_front()
            {
                self.turn_left -= 1;
                return Some(next);
            }
            self.turn = (self.turn + 1) % self.queues.len();
            self.turn_left = self.queues[self.turn].weight;
        }
        self.active -= 1;
        None
    }

    /// Reset: no command is in progress.
    pub(crate) fn reset(&mut self) {
        let is_empty = self.queues.iter().all(|queue| queue.waiting.is_empty());
        debug_assert!(is_empty, "every I/O has ended");
        self.active = 0;
    }
}
