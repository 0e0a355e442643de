//! Cache program: a die accepts the next page while it programs one.

use super::{Reference, ReferenceEvent};
use crate::timeline::op::OpKind;
use crate::timeline::{DieQueue, Op, Purpose};

/// The state of a die with cache program.
#[derive(Default)]
pub(super) struct Register {
    /// No other operation holds the die.
    pub(super) is_sole_holder: bool,
    /// A page is in the register, or is being transferred to it.
    pub(super) reserved: bool,
    /// The program time of a page that waits in the register for the cells.
    loaded: Option<u64>,
    /// The cells are busy.
    cells: bool,
}

impl Reference {
    /// Return whether the operation ends when its data is in the die's register.
    pub(super) fn is_cached(&self, number: usize) -> bool {
        let Op { kind, purpose, .. } = self.ops[number];
        self.timing.cache_program && kind == OpKind::Program && purpose == Purpose::HostWrite
    }

    /// Return whether the register of the die accepts a page while the cells are busy.
    pub(super) fn takes_next(&self, die: usize, number: usize) -> bool {
        let Register { is_sole_holder, reserved, .. } = self.registers[die];
        is_sole_holder && !reserved && self.is_cached(number)
    }

    pub(super) fn loaded(&mut self, die: usize, cell_ns: u64) {
        self.registers[die].loaded = Some(cell_ns);
        if !self.registers[die].cells {
            self.program(die);
        }
    }

    /// Move the register's page to the cells; the next page may follow.
    fn program(&mut self, die: usize) {
        let register = &mut self.registers[die];
        let cell_ns = register.loaded.take().expect("the register is loaded");
        (register.cells, register.reserved) = (true, false);
        self.events.push((self.now + cell_ns, die as u64, ReferenceEvent::Programmed(die)));
        let first = self.dies[die].queue.front().map(|first| first.0);
        if self.timing.die_queue == DieQueue::Fifo
            && let Some(first) = first.filter(|first| self.takes_next(die, *first))
        {
            self.dies[die].queue.pop_front();
            self.hold(first);
        }
    }

    pub(super) fn programmed(&mut self, die: usize) {
        self.registers[die].cells = false;
        if self.registers[die].loaded.is_some() {
            self.program(die);
        } else if !self.registers[die].reserved {
            self.release_die(die);
        }
    }
}
