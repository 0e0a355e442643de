//! How many commands of the host a device works on at once.
//!
//! ```text
//! submitted   a  b  c
//! at once: 1  ├─ a ─┤├─ b ─┤├─ c ─┤      b and c wait in the interface, and nothing of them overlaps
//! ```
//!
//! **Source**: PATA without queued commands, SATA without NCQ, and USB mass storage (bulk-only transport)
//! carry out one command and take the next when it has ended.
//! **Faithful**: first come, first served; nothing of a command begins before it is let in.
//! **Simplified**: to hand the next command over takes no time.
//! **Ambiguous**: nothing.

use std::collections::VecDeque;

use crate::device::token::IoIdx;

/// Who is let in, and who waits.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Interface {
    /// 0: as many as the host sends.
    at_once: u32,
    under_way: u32,
    waiting: VecDeque<IoIdx>,
}

impl Interface {
    pub(crate) fn new(at_once: u32) -> Interface {
        Interface { at_once, ..Interface::default() }
    }

    /// Whether anybody may ever have to wait.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.at_once > 0
    }

    /// Whether `io` is let in now; if not, it waits.
    pub(crate) fn lets_in(&mut self, io: IoIdx) -> bool {
        let room = self.under_way < self.at_once;
        if room {
            self.under_way += 1;
        } else {
            self.waiting.push_back(io);
        }
        room
    }

    /// A command has ended: who comes next.
    pub(crate) fn next(&mut self) -> Option<IoIdx> {
        let next = self.waiting.pop_front();
        self.under_way -= u32::from(next.is_none());
        next
    }

    /// Nothing is under way any more.
    pub(crate) fn rest(&mut self) {
        debug_assert!(self.waiting.is_empty(), "every I/O has ended");
        self.under_way = 0;
    }
}
