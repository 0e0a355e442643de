//! Multi-plane operations: the waiting operations are checked one by one.

use super::super::plane_of;
use super::{Reference, ReferenceEvent};
use crate::timeline::op::OpKind;
use crate::timeline::{MultiPlane, Stage};

/// The multi-plane operation of a die.
#[derive(Default)]
pub(super) struct ReferenceRow {
    /// The operations that have the die.
    members: Vec<usize>,
    /// Number of pages not yet transferred.
    to_send: usize,
    /// The command that starts the program was not sent yet.
    open: bool,
}

impl Reference {
    pub(super) fn has_planes(&self) -> bool {
        self.timing.multi_plane != MultiPlane::None
    }

    /// Return whether one command can do both.
    fn are_compatible(&self, first: usize, second: usize) -> bool {
        let (first, second) = (&self.ops[first], &self.ops[second]);
        let (Some(at), Some(second_address)) = (plane_of(first), plane_of(second)) else {
            return false;
        };
        let same = first.kind == second.kind && first.purpose == second.purpose;
        let addressed = match self.timing.multi_plane {
            MultiPlane::None => false,
            MultiPlane::AnyPage => true,
            MultiPlane::SamePage => at.page == second_address.page,
            MultiPlane::SameBlock => {
                (at.block, at.page) == (second_address.block, second_address.page)
            }
        };
        same && first.cell_ns == second.cell_ns && at.plane != second_address.plane && addressed
    }

    /// Return whether `number` joins the work of `die`, ahead of the first `position` waiting
    /// operations.
    fn may_join(&self, die: usize, number: usize, position: usize) -> bool {
        let members = &self.rows[die].members;
        let queue = self.dies[die].queue.iter().take(position);
        members.iter().all(|member| self.are_compatible(*member, number))
            && queue.into_iter().all(|(other, ..)| {
                let planes = plane_of(&self.ops[number]).zip(plane_of(&self.ops[*other]));
                let different_planes = planes.is_some_and(|(one, other)| one.plane != other.plane);
                different_planes || self.rank(number) < self.rank(*other)
            })
    }

    /// Handle the arrival of an operation at its die's queue.
    pub(super) fn arrive_at_planes(&mut self, number: usize) {
        let die = self.ops[number].die.0 as usize;
        if self.rows[die].open && self.may_join(die, number, usize::MAX) {
            self.rows[die].members.push(number);
            self.rows[die].to_send += 1;
            return self.send_planes(number);
        }
        self.dies[die].queue.push_back((number, 0, self.now));
        if !self.dies[die].busy && self.dies[die].queue.len() == 1 {
            self.events.push((self.now, die as u64, ReferenceEvent::ReleaseDie(die)));
        }
    }

    /// Send its page over the channel.
    fn send_planes(&mut self, number: usize) {
        self.ops[number].stage = Stage::Channel;
        self.arrive(number);
    }

    pub(super) fn hold_planes(&mut self, first: usize) {
        let (die, kind, cell_ns) = {
            let op = &self.ops[first];
            (op.die.0 as usize, op.kind, op.cell_ns)
        };
        self.dies[die].busy = true;
        self.rows[die].members = vec![first];
        let mut position = 0;
        while let Some((number, ..)) = self.dies[die].queue.get(position).copied() {
            if self.may_join(die, number, position) {
                self.dies[die].queue.remove(position);
                self.rows[die].members.push(number);
            } else {
                position += 1;
            }
        }
        let members = self.rows[die].members.clone();
        self.rows[die].to_send = members.len();
        self.rows[die].open = kind == OpKind::Program;
        match kind {
            OpKind::Inside => self.end_together(die, self.now + cell_ns),
            OpKind::Program => members.iter().for_each(|number| self.send_planes(*number)),
            OpKind::Read => {
                for number in members {
                    self.ops[number].stage = Stage::Channel;
                    let order = self.order();
                    self.events.push((self.now + cell_ns, order, ReferenceEvent::Arrive(number)));
                }
            }
        }
    }

    /// End all work of a die at `end`.
    fn end_together(&mut self, die: usize, end: u64) {
        self.events.push((end, die as u64, ReferenceEvent::ReleaseDie(die)));
        for number in self.rows[die].members.clone() {
            let order = self.order();
            self.events.push((end, order, ReferenceEvent::End(number)));
        }
    }

    /// Transfer the page of `number` until `end`; return whether nothing else happens now.
    pub(super) fn sent_of_planes(&mut self, number: usize, end: u64) -> bool {
        let op = &self.ops[number];
        let (die, kind) = (op.die.0 as usize, op.kind);
        if kind == OpKind::Program {
            let order = self.order();
            self.events.push((end, order, ReferenceEvent::InRegister(number)));
            return true;
        }
        self.rows[die].to_send -= 1;
        if self.rows[die].to_send == 0 {
            self.events.push((end, die as u64, ReferenceEvent::ReleaseDie(die)));
        }
        false
    }

    /// Handle a page of `number` in the register of its plane.
    pub(super) fn in_register(&mut self, number: usize) {
        let op = &self.ops[number];
        let (die, cell_ns) = (op.die.0 as usize, op.cell_ns);
        self.rows[die].to_send -= 1;
        // They end in the order in which they were sent.
        self.rows[die].members.retain(|member| *member != number);
        self.rows[die].members.push(number);
        if self.rows[die].to_send == 0 {
            self.rows[die].open = false;
            self.end_together(die, self.now + cell_ns);
        }
    }
}
