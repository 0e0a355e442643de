//! A device in which every resource has a queue and is released by an event.

use std::collections::VecDeque;

use super::{CHANNELS, DIES, LINK_NS, RandomOp, follow_up, op, plane_of};
use crate::timeline::op::OpKind;
use crate::timeline::{DieQueue, MultiPlane, Op, Purpose, Stage, Timing};

/// An event of the reference.
#[derive(Clone, Copy, Debug)]
enum ReferenceEvent {
    ReleaseDie(usize),
    /// A host page is in the register of a die; its program time.
    Loaded(usize, u64),
    /// The cells of a page that was in the register are programmed.
    Programmed(usize),
    /// The cells have read the page of this operation, before its die was free (cache read).
    ReadAhead(usize),
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
                        ReferenceEvent::ReadAhead(number) => self.read_ahead_ended(number),
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
                self.read_ahead(die);
                if self.is_read_of_host(number) {
                    self.suspend(die);
                }
            }
            Stage::Ring => self.hold(number),
            Stage::Channel => {
                let length = self.timing.transfer_ns * u64::from(self.ops[number].transfers);
                self.queue_lane(channel, number, length);
                self.leave_read_register(number);
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
        self.registers[die.0 as usize].read_left = false;
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
        if let Some((number, is_read)) = self.registers[die].ahead.take() {
            self.registers[die].read_left = false;
            self.ops[number].stage = Stage::Channel;
            if is_read {
                self.arrive(number);
            }
            return;
        }
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

// Multi-plane operations: the waiting operations are checked one by one.

/// The multi-plane operation of a die.
#[derive(Default)]
struct ReferenceRow {
    /// The operations that have the die.
    members: Vec<usize>,
    /// Number of pages not yet transferred.
    to_send: usize,
    /// The command that starts the program was not sent yet.
    open: bool,
}

impl Reference {
    fn has_planes(&self) -> bool {
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
    fn arrive_at_planes(&mut self, number: usize) {
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

    fn hold_planes(&mut self, first: usize) {
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
    fn sent_of_planes(&mut self, number: usize, end: u64) -> bool {
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
    fn in_register(&mut self, number: usize) {
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

// Cache program: a die accepts the next page while it programs one.

/// The state of a die with cache program.
#[derive(Default)]
struct Register {
    /// No other operation holds the die.
    is_sole_holder: bool,
    /// A page is in the register, or is being transferred to it.
    reserved: bool,
    /// The program time of a page that waits in the register for the cells.
    loaded: Option<u64>,
    /// The cells are busy.
    cells: bool,
    /// Cache read: the page of the running read has left the page register.
    read_left: bool,
    /// The next read, which the cells began before the die was free, and whether they have ended.
    ahead: Option<(usize, bool)>,
}

impl Reference {
    /// Return whether the operation ends when its data is in the die's register.
    fn is_cached(&self, number: usize) -> bool {
        let Op { kind, purpose, .. } = self.ops[number];
        self.timing.cache_program && kind == OpKind::Program && purpose == Purpose::HostWrite
    }

    /// Return whether the register of the die accepts a page while the cells are busy.
    fn takes_next(&self, die: usize, number: usize) -> bool {
        let Register { is_sole_holder, reserved, .. } = self.registers[die];
        is_sole_holder && !reserved && self.is_cached(number)
    }

    /// Let the page of a read leave the page register of its die for the channel.
    fn leave_read_register(&mut self, number: usize) {
        let die = self.ops[number].die.0 as usize;
        if self.timing.cache_read && self.ops[number].is_host_read() {
            self.registers[die].read_left = true;
            self.read_ahead(die);
        }
    }

    /// Read the first waiting page of the host, if the page register is free.
    fn read_ahead(&mut self, die: usize) {
        let register = &mut self.registers[die];
        let Some(&(first, ..)) = self.dies[die].queue.front() else { return };
        if !register.read_left || register.ahead.is_some() || !self.ops[first].is_host_read() {
            return;
        }
        self.dies[die].queue.pop_front();
        register.ahead = Some((first, false));
        let order = self.order();
        let end = self.now + self.ops[first].cell_ns;
        self.events.push((end, order, ReferenceEvent::ReadAhead(first)));
    }

    fn read_ahead_ended(&mut self, number: usize) {
        match &mut self.registers[self.ops[number].die.0 as usize].ahead {
            Some(ahead) if ahead.0 == number => ahead.1 = true,
            // Its die was free in the meantime.
            _ => self.arrive(number),
        }
    }

    fn loaded(&mut self, die: usize, cell_ns: u64) {
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

    fn programmed(&mut self, die: usize) {
        self.registers[die].cells = false;
        if self.registers[die].loaded.is_some() {
            self.program(die);
        } else if !self.registers[die].reserved {
            self.release_die(die);
        }
    }

    // Descriptor rings, scanned at every change; and the set-up times of a bus.

    /// Return the set-up time of a bus transfer.
    fn setup_ns(&self, stage: Stage) -> u64 {
        let read = stage == Stage::BusOut;
        if read { self.timing.bus_read_setup_ns } else { self.timing.bus_write_setup_ns }
    }

    /// Submit an operation to the firmware if it has rings; otherwise start it.
    fn submit(&mut self, number: usize) {
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
    fn notice(&mut self) {
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
    fn post_completion(&mut self, number: usize) -> bool {
        let Some(rings) = self.timing.rings.filter(|_| !self.noticed[number]) else {
            return false;
        };
        let noticed = rings.noticed(self.now);
        self.completions.push((noticed, self.ops[number].die.0, self.now, number));
        self.events.push((noticed, 100, ReferenceEvent::Notice));
        true
    }
}

// Suspended programs and erases: the events of their ends are withdrawn.

/// A suspendable operation of a die.
#[derive(Clone, Copy)]
struct Suspendable {
    number: usize,
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

    fn is_read_of_host(&self, number: usize) -> bool {
        self.ops[number].purpose == Purpose::HostRead
    }

    /// Start the cell time of `number` on `die`.
    fn start_suspendable(&mut self, die: usize, number: usize, cells: (u64, u64), times: u32) {
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
    fn suspend(&mut self, die: usize) {
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
    fn resume(&mut self, die: usize) {
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
