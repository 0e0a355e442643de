//! Descriptor rings, scanned at every change; and the set-up times of a bus.

use super::{DIES, Reference, ReferenceEvent};
use crate::timeline::Stage;

impl Reference {
    /// Return the set-up time of a bus transfer.
    pub(super) fn setup_ns(&self, stage: Stage) -> u64 {
        let read = stage == Stage::BusOut;
        if read { self.timing.bus_read_setup_ns } else { self.timing.bus_write_setup_ns }
    }

    /// Submit an operation to the firmware if it has rings; otherwise start it.
    pub(super) fn submit(&mut self, number: usize) {
        if self.timing.rings.is_none() {
            return self.arrive(number);
        }
        self.noticed[number] = false;
        self.held.push_back(number);
        self.serve_rings();
    }

    /// Move each request that finds a free entry.
    fn serve_rings(&mut self) {
        let Some(rings) = self.timing.rings else { return };
        loop {
            for die in 0..DIES as usize {
                while self.ring_begun[die] < rings.rx_entries
                    && let Some(number) = self.sent[die].pop_front()
                {
                    self.ring_begun[die] += 1;
                    self.arrive(number);
                }
            }
            let Some(first) = self.held.front() else { return };
            let die = self.ops[*first].die.0 as usize;
            if self.sent[die].len() == rings.tx_entries as usize {
                return;
            }
            self.sent[die].extend(self.held.pop_front());
        }
    }

    /// Notice completions: die by die, in the order of their ends.
    pub(super) fn notice(&mut self) {
        let mut now: Vec<_> = self
            .completions
            .iter()
            .filter(|completions| completions.0 <= self.now)
            .copied()
            .collect();
        self.completions.retain(|completions| completions.0 > self.now);
        // Completions of one die at equal times keep their order.
        now.sort_by_key(|(noticed, die, end, _)| (*noticed, *die, *end));
        for (_, die, _, number) in now {
            self.ring_begun[die as usize] -= 1;
            self.noticed[number] = true;
            self.serve_rings();
            if self.ops[number].link_bytes > 0 {
                self.ops[number].stage = Stage::Link;
                self.arrive(number);
            } else {
                self.end(number);
            }
        }
    }

    /// Post the completion if there are rings; return whether it must be noticed first.
    pub(super) fn post_completion(&mut self, number: usize) -> bool {
        let Some(rings) = self.timing.rings.filter(|_| !self.noticed[number]) else {
            return false;
        };
        let noticed = rings.noticed(self.now);
        self.completions.push((noticed, self.ops[number].die.0, self.now, number));
        self.events.push((noticed, 100, ReferenceEvent::Notice));
        true
    }
}
