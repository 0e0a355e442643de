//! Suspended programs and erases: the events of their ends are withdrawn.

use super::{Reference, ReferenceEvent};
use crate::timeline::Purpose;
use crate::timeline::op::OpKind;

/// A suspendable operation of a die.
#[derive(Clone, Copy)]
pub(super) struct Suspendable {
    pub(super) number: usize,
    /// Begin and end of its cell time.
    cells: (u64, u64),
    times: u32,
}

impl Reference {
    fn stop_ns(&self, number: usize) -> Option<u64> {
        let suspend = self.timing.suspend?;
        let op = &self.ops[number];
        match op.kind {
            OpKind::Program => suspend.program_ns,
            OpKind::Inside if op.purpose == Purpose::Erase => suspend.erase_ns,
            _ => None,
        }
    }

    pub(super) fn is_read_of_host(&self, number: usize) -> bool {
        self.ops[number].purpose == Purpose::HostRead
    }

    /// Start the cell time of `number` on `die`.
    pub(super) fn start_suspendable(
        &mut self,
        die: usize,
        number: usize,
        cells: (u64, u64),
        times: u32,
    ) {
        self.suspendable[die] = None;
        if self.stop_ns(number).is_some() {
            self.suspendable[die] = Some(Suspendable { number, cells, times });
        }
        let waiting = &self.dies[die].queue;
        if waiting.iter().any(|waiting| self.is_read_of_host(waiting.0)) {
            self.suspend(die);
        }
    }

    /// Handle a host read that waits for `die`.
    pub(super) fn suspend(&mut self, die: usize) {
        let Some(Suspendable { number, cells: (begin, end), times }) = self.suspendable[die] else {
            return;
        };
        let Some(stop_ns) = self.stop_ns(number) else { return };
        let stopped = self.now.max(begin);
        let max_suspensions = self.timing.suspend.expect("suspension is enabled").max_suspensions;
        if self.now >= end || times == max_suspensions || end - stopped <= stop_ns {
            return;
        }
        self.events.retain(|(_, _, happens)| match happens {
            ReferenceEvent::ReleaseDie(other) => *other != die,
            ReferenceEvent::End(other) => *other != number,
            _ => true,
        });
        self.suspendable[die] = None;
        self.suspended[die] = Some((number, end - stopped, times + 1));
        self.events.push((stopped + stop_ns, die as u64, ReferenceEvent::ReleaseDie(die)));
    }

    /// Complete the rest of the suspended operation.
    pub(super) fn resume(&mut self, die: usize) {
        let (number, rest_ns, times) =
            self.suspended[die].take().expect("the die has a suspended operation");
        self.dies[die].busy = true;
        let end = self.now + rest_ns;
        self.events.push((end, die as u64, ReferenceEvent::ReleaseDie(die)));
        let order = self.order();
        self.events.push((end, order, ReferenceEvent::End(number)));
        self.start_suspendable(die, number, (self.now, end), times);
    }
}
