//! Multi-plane operations: planes of a die that do the same operation at the same time.
//!
//! ```text
//! read      │   cells    │ sent │ sent │        erase   │   cells   │
//!           │   cells    │                               │   cells   │
//! program   │ sent │ sent │   cells    │
//!                         │   cells    │
//! ```
//!
//! A free die takes the next operation of its queue, together with all that its other planes can do
//! at the same time. These are equal operations for the same purpose, with the same cell time, at
//! addresses the chip allows. Operations that arrive at the same time start together. A page to be
//! programmed may join while pages of other planes are still being transferred, because the program
//! command follows the last transfer. Operations of one plane never overtake each other, so pages
//! of a block are programmed in order.
//!
//! **Source**: Open NAND Flash Interface Specification 3.0, multi-plane operations and addressing; A. Tavakkol et
//! al., MQSim (FAST 2018), whose scheduler fills the planes of a die from its queue.
//! **Faithful**: one command for planes of one die, no plane twice; cells work in parallel, pages
//! cross the channel one after the other. The page address is the same in all planes, and also the
//! block address where the chip requires it.
//! **Simplified**: the time between the transfers to two planes (tPLPBSY) is 0. No operation waits
//! for a partner, so planes fill up only when more work is queued than one can do. Copies of whole
//! blocks inside a die (one long operation of a merge) go alone.
//! **Ambiguous**: nothing.

use std::num::NonZeroU32;

use super::op::OpKind;
use super::{Account, DieQueue, Op, Timeline};
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{DieIdx, PageAddress, Ppn};
use crate::timeline::breakdown::Cause;

/// Multi-plane capability of a die.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MultiPlane {
    /// No multi-plane operations.
    #[default]
    None,
    /// The same operation, on any page.
    AnyPage,
    /// On the same page of any block, as in ONFI.
    SamePage,
    /// On the same page of the same block of each plane: chips with block address restrictions.
    SameBlock,
}

impl MultiPlane {
    /// Return its name in profiles.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MultiPlane::None => "none",
            MultiPlane::AnyPage => "any_page",
            MultiPlane::SamePage => "same_page",
            MultiPlane::SameBlock => "same_block",
        }
    }
}

/// Multi-plane state of all dies.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Planes<T> {
    dies: Vec<MultiPlaneOp<T>>,
}

/// The multi-plane operation of a die.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Together")]
struct MultiPlaneOp<T> {
    /// Its operations.
    all: Vec<Op<T>>,
    /// Number of pages not yet transferred over the channel.
    to_send: u32,
    /// Pages are being transferred for a program; others may join.
    loads: bool,
    /// Pages in the registers of their planes, and since when.
    loaded: Vec<(Op<T>, u64)>,
}

impl<T: Copy> Planes<T> {
    pub(super) fn new(dies: u32) -> Planes<T> {
        let none = MultiPlaneOp { all: Vec::new(), to_send: 0, loads: false, loaded: Vec::new() };
        Planes { dies: vec![none; dies as usize] }
    }
}

impl<T> Op<T> {
    /// Set the page, or the block's first page, of the operation.
    #[inline]
    pub(crate) fn on(self, address: PageAddress) -> Op<T> {
        Op { page: NonZeroU32::new(address.page.0 + 1), ..self }
    }
}

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    fn op_of(&mut self, die: DieIdx) -> &mut MultiPlaneOp<T> {
        let planes = self.planes.as_mut().expect("multi-plane operations are enabled");
        &mut planes.dies[die.0 as usize]
    }

    /// Return the address of `op` on flash.
    fn flash_address(&self, op: &Op<T>) -> Option<PageAddress> {
        op.page.map(|page| self.geometry.address_of(Ppn(page.get() - 1)))
    }

    /// Return whether the planes of a die can do `op` together with `all`.
    fn is_compatible(&self, all: &[Op<T>], op: &Op<T>) -> bool {
        let first = &all[0];
        if (op.kind, op.purpose, op.cell_ns) != (first.kind, first.purpose, first.cell_ns) {
            return false;
        }
        let Some(at) = self.flash_address(op) else { return false };
        all.iter().all(|other| {
            let Some(other_address) = self.flash_address(other) else { return false };
            let geometry = &self.geometry;
            let page = |address| geometry.flash_page_in_block(address);
            let block = |address: PageAddress| geometry.block_in_plane(address);
            let addressed = match self.timing.multi_plane {
                MultiPlane::None => false,
                MultiPlane::AnyPage => true,
                MultiPlane::SamePage => page(at) == page(other_address),
                MultiPlane::SameBlock => {
                    page(at) == page(other_address) && block(at) == block(other_address)
                }
            };
            at.plane != other_address.plane && addressed
        })
    }

    /// Return whether `op` may overtake `other`, which joined the queue earlier.
    fn may_pass(&self, op: &Op<T>, other: &Op<T>) -> bool {
        let queue = self.timing.die_queue;
        let planes = self.flash_address(op).zip(self.flash_address(other));
        let different_planes = planes.is_some_and(|(at, other)| at.plane != other.plane);
        different_planes || queue != DieQueue::Fifo && queue.prefers(op, other)
    }

    /// Add an operation to the queue of a die with multi-plane operations.
    #[inline(never)]
    pub(super) fn join_queue_of_planes(&mut self, at: u64, op: Op<T>) {
        let die = op.die;
        let MultiPlaneOp { all, loads, .. } = self.op_of(die);
        if *loads {
            let all = std::mem::take(all);
            let ring = &self.dies[die.0 as usize].ring;
            let joins =
                self.is_compatible(&all, &op) && ring.iter().all(|other| self.may_pass(&op, other));
            self.op_of(die).all = all;
            if joins {
                self.record_other_planes(at, &op);
                let together = self.op_of(die);
                together.all.push(op);
                together.to_send += 1;
                return self.announce::<AllFeatures>(at, 0, op);
            }
        }
        self.wait::<AllFeatures>(at, op);
    }

    /// Start the operation together with those that suit it among the waiting ones.
    #[inline(never)]
    pub(super) fn start_together(&mut self, at: u64, op: Op<T>) {
        let die = op.die;
        let mut all = std::mem::take(&mut self.op_of(die).all);
        all.clear();
        self.record_other_planes(at, &op);
        all.push(op);
        let mut position = 0;
        while let Some(next) = self.dies[die.0 as usize].ring.get(position).copied() {
            let mut before = self.dies[die.0 as usize].ring.iter().take(position);
            if self.is_compatible(&all, &next) && before.all(|other| self.may_pass(&next, other)) {
                self.dies[die.0 as usize].take(position);
                if let Some(log) = &mut self.log {
                    log.take_from_queue(die.0 as usize, position);
                }
                self.record_other_planes(at, &next);
                all.push(next);
            } else {
                position += 1;
            }
        }
        let state = &mut self.dies[die.0 as usize];
        (state.held_since, state.purpose, state.cached) = (at, op.purpose, false);
        if op.kind == OpKind::Inside {
            self.start_internal(at, &all);
            // Operations without duration are over, and the next may have begun.
            let together = self.op_of(die);
            if together.all.is_empty() {
                all.clear();
                together.all = all;
            }
            return;
        }
        let (reads, count) = (op.kind == OpKind::Read, all.len());
        let together = self.op_of(die);
        (together.to_send, together.loads, together.all) = (count as u32, !reads, all);
        for position in 0..count {
            let op = self.op_of(die).all[position];
            if reads {
                self.charge(&op, Cause::CellRead, op.cell_ns);
            }
            self.announce::<AllFeatures>(if reads { at + op.cell_ns } else { at }, 0, op);
        }
    }

    /// Do operations without a channel on all planes.
    fn start_internal(&mut self, at: u64, all: &[Op<T>]) {
        let end = at + all[0].cell_ns;
        for op in all {
            self.charge(op, op.purpose.cause(), op.cell_ns);
            if self.writes_down {
                self.record_op(op.die, op.summary(), at, end);
            }
        }
        self.hold::<AllFeatures>(all[0].die, end, at);
        for op in all {
            self.finish_without_transfer(end, at, *op);
        }
    }

    /// Start the channel transfer of the operation, which arrived at `at`: the last read transfer
    /// frees the die.
    #[inline(never)]
    pub(super) fn channel_granted(&mut self, index: u32, at: u64, now: u64) {
        let Op { kind, die, ends, cell_ns, .. } = self.ops[index as usize];
        if kind == OpKind::Program {
            // Others may join until it is transferred.
            return;
        }
        if self.writes_down {
            self.record_op(die, self.ops[index as usize].summary(), at - cell_ns, ends);
        }
        let together = self.op_of(die);
        together.to_send -= 1;
        if together.to_send == 0 {
            self.hold::<AllFeatures>(die, ends, now);
        }
    }

    /// Handle a page that has reached the register of its plane: after the last one the cells
    /// start.
    #[inline(never)]
    pub(super) fn register_loaded(&mut self, at: u64, index: u32) {
        let op = self.take(index);
        let (die, end) = (op.die, at + op.cell_ns);
        let together = self.op_of(die);
        together.loaded.push((op, at));
        together.to_send -= 1;
        if together.to_send > 0 {
            return;
        }
        together.loads = false;
        together.all.clear();
        let mut loaded = std::mem::take(&mut together.loaded);
        for (op, since) in &loaded {
            self.charge(op, Cause::DieWait, at - since);
            self.charge(op, Cause::CellProgram, op.cell_ns);
            if self.writes_down {
                self.record_sent_op(op.die, op.summary(), op.arrived, *since, end);
            }
        }
        self.hold::<AllFeatures>(die, end, at);
        for (op, _) in loaded.drain(..) {
            self.finish_without_transfer(end, at, op);
        }
        self.op_of(die).loaded = loaded;
    }

    /// Record that an operation got its die, possibly together with others.
    fn record_other_planes(&mut self, at: u64, op: &Op<T>) {
        if self.watched {
            self.note_begin(at, op.die.0, op.token.into(), op.account);
        }
        if let Some(log) = &mut self.log {
            log.join_multi_plane(op.die.0, op.page);
        }
    }
}
