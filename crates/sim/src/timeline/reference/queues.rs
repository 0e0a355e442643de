//! A device in which every resource has a queue and is released by an event.

use std::collections::VecDeque;

use super::{CHANNELS, DIES, Job, LINK_NS, op, then};
use crate::timeline::op::Kind;
use crate::timeline::{DieQueue, Op, Purpose, Stage, Timing};

/// What happens in the reference.
#[derive(Clone, Copy, Debug)]
enum Happens {
    ReleaseDie(usize),
    ReleaseLane(usize),
    Arrive(usize),
    /// The operation is over.
    End(usize),
}

/// Who waits: an operation, for how long it needs the resource, and the order of what comes after.
type Waiting = (usize, u64, u64);

/// A queue, and whether somebody is served.
#[derive(Default)]
struct Resource {
    busy: bool,
    queue: VecDeque<Waiting>,
}

pub(super) struct Reference {
    timing: Timing,
    now: u64,
    events: Vec<(u64, u64, Happens)>,
    orders: u64,
    /// Channels, then buses, then the link.
    lanes: Vec<Resource>,
    dies: Vec<Resource>,
    ops: Vec<Op<u64>>,
    /// What follows each at once, before its end is told.
    then: Vec<Option<Op<u64>>>,
    pub(super) ends: Vec<Option<u64>>,
    follows: Vec<Option<Box<Job>>>,
    told: VecDeque<usize>,
}

impl Reference {
    pub(super) fn new(timing: Timing) -> Reference {
        let lanes = CHANNELS as usize + timing.buses as usize + 1;
        Reference {
            timing,
            now: 0,
            events: Vec::new(),
            orders: 1000,
            lanes: (0..lanes).map(|_| Resource::default()).collect(),
            dies: (0..DIES).map(|_| Resource::default()).collect(),
            ops: Vec::new(),
            then: Vec::new(),
            ends: Vec::new(),
            follows: Vec::new(),
            told: VecDeque::new(),
        }
    }

    fn order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }

    pub(super) fn issue(&mut self, job: &Job) {
        let number = self.ops.len();
        self.ops.push(op(job, number, &self.timing));
        self.then.push(then(job, number, &self.timing));
        self.ends.push(None);
        self.follows.push(job.follow.clone());
        self.arrive(number);
    }

    pub(super) fn run(&mut self, until: u64) {
        loop {
            while let Some(number) = self.told.pop_front() {
                self.ends[number] = Some(self.now);
                if let Some(job) = self.follows[number].take() {
                    self.issue(&job);
                }
            }
            let next = self.events.iter().enumerate().min_by_key(|(_, event)| (event.0, event.1));
            match next.map(|(place, event)| (place, event.0)) {
                Some((place, at)) if at <= until => {
                    let (at, _, happens) = self.events.remove(place);
                    self.now = at;
                    match happens {
                        Happens::ReleaseDie(die) => self.release_die(die),
                        Happens::ReleaseLane(lane) => self.release_lane(lane),
                        Happens::Arrive(number) => self.arrive(number),
                        Happens::End(number) => self.end(number),
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
        match stage {
            Stage::BusIn | Stage::BusOut if self.timing.buses > 0 => {
                self.queue_lane(bus, number, self.timing.bus_ns);
            }
            Stage::BusIn => {
                self.advance(number);
                self.arrive(number);
            }
            Stage::Ring if self.dies[die.0 as usize].busy => {
                self.dies[die.0 as usize].queue.push_back((number, 0, self.now));
            }
            Stage::Ring => self.hold(number),
            Stage::Channel => {
                let length = self.timing.transfer_ns * u64::from(self.ops[number].transfers);
                self.queue_lane(channel, number, length);
            }
            Stage::Link => self.queue_lane(self.lanes.len() - 1, number, LINK_NS),
            Stage::BusOut => unreachable!("there is no bus"),
        }
    }

    fn queue_lane(&mut self, lane: usize, number: usize, length: u64) {
        let order = self.order();
        self.lanes[lane].queue.push_back((number, length, order));
        if !self.lanes[lane].busy {
            self.release_lane(lane);
        }
    }

    fn release_lane(&mut self, lane: usize) {
        self.lanes[lane].busy = false;
        let Some((number, length, order)) = self.lanes[lane].queue.pop_front() else { return };
        self.lanes[lane].busy = true;
        // A lane is free before anybody arrives at the same moment; among lanes there is no order.
        self.events.push((self.now + length, 500, Happens::ReleaseLane(lane)));
        self.served(number, self.now + length, order);
    }

    /// What a lane carries for `number` will be over at `end`.
    fn served(&mut self, number: usize, end: u64, order: u64) {
        let Op { stage, kind, die, cell_ns, .. } = self.ops[number];
        let release = (u64::from(die.0), Happens::ReleaseDie(die.0 as usize));
        let mut end = end;
        if stage == Stage::Channel {
            end += if kind == Kind::Program { cell_ns } else { 0 };
            self.events.push((end, release.0, release.1));
        }
        let happens = self.advance(number);
        self.events.push((end, order, happens));
    }

    fn end(&mut self, number: usize) {
        match self.then[number].take() {
            Some(then) => {
                self.ops[number] = then;
                self.arrive(number);
            }
            None => self.told.push_back(number),
        }
    }

    /// What follows the stage that is over.
    fn advance(&mut self, number: usize) -> Happens {
        let buses = self.timing.buses > 0;
        let op = &mut self.ops[number];
        let next = match (op.stage, op.kind) {
            (Stage::BusIn, _) => Stage::Ring,
            (Stage::Channel, Kind::Read) if buses => Stage::BusOut,
            (Stage::Channel, Kind::Read) | (Stage::BusOut, _) if op.link_bytes > 0 => Stage::Link,
            _ => return Happens::End(number),
        };
        op.stage = next;
        Happens::Arrive(number)
    }

    fn hold(&mut self, number: usize) {
        let Op { die, kind, cell_ns, .. } = self.ops[number];
        self.dies[die.0 as usize].busy = true;
        match kind {
            Kind::Read => {
                self.ops[number].stage = Stage::Channel;
                let order = self.order();
                self.events.push((self.now + cell_ns, order, Happens::Arrive(number)));
            }
            Kind::Program => {
                self.ops[number].stage = Stage::Channel;
                self.arrive(number);
            }
            Kind::Inside => {
                let release = Happens::ReleaseDie(die.0 as usize);
                self.events.push((self.now + cell_ns, u64::from(die.0), release));
                let order = self.order();
                self.events.push((self.now + cell_ns, order, Happens::End(number)));
            }
        }
    }

    fn release_die(&mut self, die: usize) {
        self.dies[die].busy = false;
        let rank = |number: usize| match (self.timing.die_queue, self.ops[number].purpose) {
            (DieQueue::Fifo, _) | (DieQueue::ReadsFirst, Purpose::HostRead) => 0,
            (DieQueue::ReadsFirst, Purpose::HostWrite) => 1,
            (DieQueue::ReadsFirst, _) => 2,
            (DieQueue::CollectionFirst, Purpose::HostRead | Purpose::HostWrite) => 1,
            (DieQueue::CollectionFirst, _) => 0,
        };
        let queue = &self.dies[die].queue;
        let best = (0..queue.len()).min_by_key(|place| (rank(queue[*place].0), *place));
        if let Some((number, ..)) = best.and_then(|place| self.dies[die].queue.remove(place)) {
            self.hold(number);
        }
    }
}
