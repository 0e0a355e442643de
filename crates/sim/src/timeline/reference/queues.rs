//! A device in which every resource has a queue and is released by an event.

mod planes;
mod register;
mod rings;
mod suspended;

use std::collections::VecDeque;

use super::{CHANNELS, DIES, LINK_NS, RandomOp, follow_up, op};
use crate::timeline::op::OpKind;
use crate::timeline::{DieQueue, Op, Purpose, Stage, Timing};
use planes::ReferenceRow;
use register::Register;
use suspended::Suspendable;

/// An event of the reference.
#[derive(Clone, Copy, Debug)]
enum ReferenceEvent {
    ReleaseDie(usize),
    /// A host page is in the register of a die; its program time.
    Loaded(usize, u64),
    /// The cells of a page that was in the register are programmed.
    Programmed(usize),
    /// The page of this operation is in the register of its plane.
    InRegister(usize),
    ReleaseLane(usize),
    /// All events of this time are done, except that a free lane takes the next operation.
    Serve(usize),
    Arrive(usize),
    /// The operation ends.
    End(usize),
    /// The firmware polls its rings.
    Notice,
}

/// A waiting operation: its number, its time on the resource, and its order.
type WaitingOp = (usize, u64, u64);

/// A queue, and whether it is being served.
#[derive(Default)]
struct Resource {
    busy: bool,
    queue: VecDeque<WaitingOp>,
}

pub(super) struct Reference {
    timing: Timing,
    registers: Vec<Register>,
    now: u64,
    events: Vec<(u64, u64, ReferenceEvent)>,
    orders: u64,
    /// Channels, then buses, then memory, then the link.
    lanes: Vec<Resource>,
    dies: Vec<Resource>,
    ops: Vec<Op<u64>>,
    /// The successor of each operation, which starts before the end is reported.
    successors: Vec<Option<Op<u64>>>,
    pub(super) ends: Vec<Option<u64>>,
    follows: Vec<Option<Box<RandomOp>>>,
    reports: VecDeque<usize>,
    /// With descriptor rings: requests held by the firmware, TX rings, occupied RX entries,
    /// completions (time of notice, die, end), and those noticed.
    held: VecDeque<usize>,
    sent: Vec<VecDeque<usize>>,
    ring_begun: Vec<u32>,
    completions: Vec<(u64, u32, u64, usize)>,
    noticed: Vec<bool>,
    /// The suspendable operation of each die; and the suspended one, its remaining time, and its
    /// number of suspensions.
    suspendable: Vec<Option<Suspendable>>,
    suspended: Vec<Option<(usize, u64, u32)>>,
    /// The multi-plane operation of each die.
    rows: Vec<ReferenceRow>,
}

impl Reference {
    pub(super) fn new(timing: Timing) -> Reference {
        let lanes = CHANNELS as usize + timing.buses as usize + 2;
        Reference {
            timing,
            registers: (0..DIES).map(|_| Register::default()).collect(),
            now: 0,
            events: Vec::new(),
            orders: 1000,
            lanes: (0..lanes).map(|_| Resource::default()).collect(),
            dies: (0..DIES).map(|_| Resource::default()).collect(),
            ops: Vec::new(),
            successors: Vec::new(),
            ends: Vec::new(),
            follows: Vec::new(),
            reports: VecDeque::new(),
            held: VecDeque::new(),
            sent: vec![VecDeque::new(); DIES as usize],
            ring_begun: vec![0; DIES as usize],
            completions: Vec::new(),
            noticed: Vec::new(),
            suspendable: vec![None; DIES as usize],
            suspended: vec![None; DIES as usize],
            rows: (0..DIES).map(|_| ReferenceRow::default()).collect(),
        }
    }

    fn order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }

    pub(super) fn issue(&mut self, job: &RandomOp) {
        let number = self.ops.len();
        self.ops.push(op(job, number, &self.timing));
        self.successors.push(follow_up(job, number, &self.timing));
        self.ends.push(None);
        self.follows.push(job.follow.clone());
        self.noticed.push(false);
        self.submit(number);
    }

    pub(super) fn run(&mut self, until: u64) {
        loop {
            while let Some(number) = self.reports.pop_front() {
                self.ends[number] = Some(self.now);
                if let Some(job) = self.follows[number].take() {
                    self.issue(&job);
                }
            }
            let next = self.events.iter().enumerate().min_by_key(|(_, event)| (event.0, event.1));
            match next.map(|(index, event)| (index, event.0)) {
                Some((index, at)) if at <= until => {
                    let (at, _, happens) = self.events.remove(index);
                    self.now = at;
                    match happens {
                        ReferenceEvent::ReleaseDie(die) => self.release_die(die),
                        ReferenceEvent::Loaded(die, cell_ns) => self.loaded(die, cell_ns),
                        ReferenceEvent::Programmed(die) => self.programmed(die),
                        ReferenceEvent::InRegister(number) => self.in_register(number),
                        ReferenceEvent::ReleaseLane(lane) => self.release_lane(lane),
                        ReferenceEvent::Serve(lane) => self.serve(lane),
                        ReferenceEvent::Arrive(number) => self.arrive(number),
                        ReferenceEvent::End(number) => self.end(number),
                        ReferenceEvent::Notice => self.notice(),
                    }
                }
                _ => break,
            }
        }
        self.now = self.now.max(until);
    }

    fn arrive(&mut self, number: usize) {
        let Op { stage, die, .. } = self.ops[number];
        let channel = (die.0 % CHANNELS) as usize;
        let bus = CHANNELS as usize + channel % self.timing.buses.max(1) as usize;
        let memory = self.lanes.len() - 2;
        let of_memory = self.timing.memory_ns * u64::from(self.ops[number].transfers);
        match stage {
            Stage::BusIn if self.timing.buses > 0 && of_memory > 0 => {
                self.queue_lane(memory, number, of_memory);
            }
            Stage::Memory => self.queue_lane(memory, number, of_memory),
            Stage::BusIn | Stage::Bus | Stage::BusOut if self.timing.buses > 0 => {
                let length = self.timing.bus_ns * u64::from(self.ops[number].transfers);
                self.queue_lane(bus, number, length + self.setup_ns(stage));
            }
            Stage::BusIn => {
                self.advance(number);
                self.arrive(number);
            }
            Stage::Ring if self.has_planes() => self.arrive_at_planes(number),
            Stage::Ring if self.dies[die.0 as usize].busy => {
                let die = die.0 as usize;
                if self.dies[die].queue.is_empty() && self.takes_next(die, number) {
                    return self.hold(number);
                }
                self.dies[die].queue.push_back((number, 0, self.now));
                if self.is_read_of_host(number) {
                    self.suspend(die);
                }
            }
            Stage::Ring => self.hold(number),
            Stage::Channel => {
                let length = self.timing.transfer_ns * u64::from(self.ops[number].transfers);
                self.queue_lane(channel, number, length);
            }
            Stage::Link => self.queue_lane(self.lanes.len() - 1, number, LINK_NS),
            Stage::BusOut | Stage::Bus => unreachable!("the reference has no bus"),
            Stage::Submit | Stage::Cells => unreachable!("no operation arrives at this stage"),
        }
    }

    fn queue_lane(&mut self, lane: usize, number: usize, length: u64) {
        let order = self.order();
        self.lanes[lane].queue.push_back((number, length, order));
        if !self.lanes[lane].busy {
            self.events.push((self.now, u64::MAX, ReferenceEvent::Serve(lane)));
        }
    }

    fn release_lane(&mut self, lane: usize) {
        self.lanes[lane].busy = false;
        self.events.push((self.now, u64::MAX, ReferenceEvent::Serve(lane)));
    }

    /// Return the first in the queue, or an earlier one of its plan.
    fn next_on(&mut self, lane: usize) -> Option<WaitingOp> {
        let plan_turn = |number: usize| self.ops[number].plan_turn();
        let Resource { queue, .. } = &mut self.lanes[lane];
        let first = *queue.front()?;
        let mut best = 0;
        if let Some((plan, _)) = plan_turn(first.0).filter(|_| lane < CHANNELS as usize) {
            let of_plan = |at: &usize| plan_turn(queue[*at].0).is_some_and(|turn| turn.0 == plan);
            best = (0..queue.len()).filter(of_plan).min_by_key(|at| plan_turn(queue[*at].0))?;
        }
        queue.swap(0, best);
        queue.pop_front()
    }

    fn serve(&mut self, lane: usize) {
        if self.lanes[lane].busy {
            return;
        }
        let Some((number, length, order)) = self.next_on(lane) else { return };
        self.lanes[lane].busy = true;
        // A lane becomes free before arrivals at the same time; among lanes there is no order.
        self.events.push((self.now + length, 500, ReferenceEvent::ReleaseLane(lane)));
        self.served(number, self.now + length, order);
    }

    /// End the service of `number` on a lane at `end`.
    fn served(&mut self, number: usize, end: u64, order: u64) {
        let Op { stage, kind, die, cell_ns, .. } = self.ops[number];
        let release = (u64::from(die.0), ReferenceEvent::ReleaseDie(die.0 as usize));
        let mut end = end;
        if stage == Stage::Channel && self.has_planes() {
            if self.sent_of_planes(number, end) {
                return;
            }
        } else if stage == Stage::Channel && self.is_cached(number) {
            self.events.push((end, release.0, ReferenceEvent::Loaded(die.0 as usize, cell_ns)));
        } else if stage == Stage::Channel {
            end += if kind == OpKind::Program { cell_ns } else { 0 };
            self.events.push((end, release.0, release.1));
        }
        let happens = self.advance(number);
        self.events.push((end, order, happens));
        if stage == Stage::Channel && kind == OpKind::Program && !self.is_cached(number) {
            self.start_suspendable(die.0 as usize, number, (end - cell_ns, end), 0);
        }
    }

    fn end(&mut self, number: usize) {
        if self.post_completion(number) {
            return;
        }
        match self.successors[number].take() {
            Some(successors) => {
                self.ops[number] = successors;
                self.submit(number);
            }
            None => self.reports.push_back(number),
        }
    }

    /// Return the event that follows the current stage.
    fn advance(&mut self, number: usize) -> ReferenceEvent {
        let buses = self.timing.buses > 0;
        let memory = buses && self.timing.memory_ns > 0;
        let rings = self.timing.rings.is_some();
        let op = &mut self.ops[number];
        let next = match (op.stage, op.kind) {
            (Stage::BusIn, _) if memory => Stage::Bus,
            (Stage::BusIn | Stage::Bus, _) => Stage::Ring,
            (Stage::Channel, OpKind::Read) if buses => Stage::BusOut,
            (Stage::BusOut, _) if memory => Stage::Memory,
            (Stage::Channel, OpKind::Read) | (Stage::BusOut | Stage::Memory, _)
                if op.link_bytes > 0 && !rings =>
            {
                Stage::Link
            }
            _ => return ReferenceEvent::End(number),
        };
        op.stage = next;
        ReferenceEvent::Arrive(number)
    }

    fn hold(&mut self, number: usize) {
        if self.has_planes() {
            return self.hold_planes(number);
        }
        let Op { die, kind, cell_ns, .. } = self.ops[number];
        self.dies[die.0 as usize].busy = true;
        self.suspendable[die.0 as usize] = None;
        let cached = self.is_cached(number);
        let register = &mut self.registers[die.0 as usize];
        (register.is_sole_holder, register.reserved) = (cached, cached);
        match kind {
            OpKind::Read => {
                self.ops[number].stage = Stage::Channel;
                let order = self.order();
                self.events.push((self.now + cell_ns, order, ReferenceEvent::Arrive(number)));
            }
            OpKind::Program => {
                self.ops[number].stage = Stage::Channel;
                self.arrive(number);
            }
            OpKind::Inside => {
                let release = ReferenceEvent::ReleaseDie(die.0 as usize);
                self.events.push((self.now + cell_ns, u64::from(die.0), release));
                let order = self.order();
                self.events.push((self.now + cell_ns, order, ReferenceEvent::End(number)));
                self.start_suspendable(die.0 as usize, number, (self.now, self.now + cell_ns), 0);
            }
        }
    }

    fn rank(&self, number: usize) -> u8 {
        match (self.timing.die_queue, self.ops[number].purpose) {
            (DieQueue::Fifo, _) | (DieQueue::ReadsFirst, Purpose::HostRead) => 0,
            (DieQueue::ReadsFirst, Purpose::HostWrite) => 1,
            (DieQueue::ReadsFirst, _) => 2,
            (DieQueue::CollectionFirst, Purpose::HostRead | Purpose::HostWrite) => 1,
            (DieQueue::CollectionFirst, _) => 0,
        }
    }

    fn release_die(&mut self, die: usize) {
        self.dies[die].busy = false;
        let queue = &self.dies[die].queue;
        let best =
            (0..queue.len()).min_by_key(|position| (self.rank(queue[*position].0), *position));
        let next_reads = best.is_some_and(|position| self.is_read_of_host(queue[position].0));
        if self.suspended[die].is_some() && !next_reads {
            return self.resume(die);
        }
        if let Some((number, ..)) = best.and_then(|position| self.dies[die].queue.remove(position))
        {
            self.hold(number);
        }
    }
}
