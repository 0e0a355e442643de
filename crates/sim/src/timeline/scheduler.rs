//! The way of an operation: from resource to resource, and what each of them costs it.

use std::hint::cold_path;
use std::num::NonZeroU32;

use super::channel_transfer::{charge, transfer};
use super::op::Kind;
use super::rings::{Die, UNKNOWN};
use super::{Account, DieQueue, Op, Purpose, Report, Stage, Timeline};
use crate::flash::fast_path::{FastPath, Full};
use crate::flash::geometry::DieIdx;
use crate::timeline::breakdown::Cause;

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// The operation arrives at `at` where its stage says.
    #[inline]
    pub(super) fn begin_when(&mut self, at: u64, now: u64, op: Op<T>) {
        if at > now {
            let index = self.put(op);
            self.calendar.arrive(at, index);
        } else {
            self.begin(at, op);
        }
    }

    /// The operation that was kept has arrived where its stage says, or could have ended.
    #[inline(always)]
    pub(super) fn arrive<M: FastPath>(&mut self, at: u64, index: u32) {
        if self.ops[index as usize].stage == Stage::Channel {
            return self.leave_channel::<M>(at, index);
        }
        let op = self.take(index);
        self.begin(at, op);
    }

    /// The operation has arrived where its stage says.
    #[inline(never)]
    pub(super) fn begin(&mut self, at: u64, mut op: Op<T>) {
        match op.stage {
            Stage::Submit => self.submit(at, op),
            Stage::BusIn if self.buses.is_empty() => self.enter_ring::<Full>(at, op),
            Stage::BusIn if self.timing.memory_ns > 0 => {
                let end = self.memory(at, &op);
                op.stage = Stage::Bus;
                self.begin_when(end, at, op);
            }
            Stage::BusIn | Stage::Bus => {
                let end = self.bus(at, &op);
                op.stage = Stage::Ring;
                self.begin_when(end, at, op);
            }
            Stage::Ring => self.enter_ring::<Full>(at, op),
            Stage::Channel => unreachable!("who has a die arrives at a channel by its list"),
            Stage::Cells => self.cells_over(at, op),
            Stage::BusOut => {
                let end = self.bus(at, &op);
                if self.timing.memory_ns > 0 {
                    op.stage = Stage::Memory;
                    return self.begin_when(end, at, op);
                }
                self.leave(end, at, op);
            }
            Stage::Memory => {
                let end = self.memory(at, &op);
                self.leave(end, at, op);
            }
            Stage::Link => {
                let end = self.send(at, u64::from(op.link_bytes));
                self.charge(&op, Cause::Link, end - at);
                self.finish(end, at, &op);
            }
        }
    }

    /// The operation has arrived at the ring of its die.
    #[inline(always)]
    pub(super) fn enter_ring<M: FastPath>(&mut self, at: u64, op: Op<T>) {
        if !M::MINIMAL && self.planes.is_some() {
            cold_path();
            return self.enter_ring_of_planes(at, op);
        }
        let die = &mut self.dies[op.die.0 as usize];
        if die.free_at <= at {
            if die.ring.is_empty() {
                return self.start::<M>(at, at, op);
            }
            // Others wait, and the die is released at this very moment: what takes no time at all can end
            // on one die and go on here before it is this one's turn.
            debug_assert!(die.free_at == at, "who waits is released first");
            cold_path();
            return self.wait::<M>(at, op);
        }
        let fifo = M::MINIMAL || self.timing.die_queue == DieQueue::Fifo;
        let first = fifo || die.register_free_at <= at;
        if !M::MINIMAL && die.takes_next() && first && op.is_host_program() {
            cold_path();
            return self.start_in_register(at, op);
        }
        if fifo && die.free_at != UNKNOWN {
            let free_at = die.free_at;
            if op.account.is_some() {
                self.charge_known(at, &op);
            }
            self.dies[op.die.0 as usize].passes_on(at);
            return self.start::<M>(free_at, at, op);
        }
        if !M::MINIMAL && self.timing.suspend.is_some() && op.purpose == Purpose::HostRead {
            self.suspend(at, op.die);
        }
        self.wait::<M>(at, op);
    }

    /// Whether the operation ends when its data is in the register of its die.
    #[inline]
    pub(super) fn is_cached(&self, op: &Op<T>) -> bool {
        self.timing.cache_program && op.is_host_program()
    }

    /// The operation has arrived at its die, which programs the page before it: its data goes to the
    /// register when that is free.
    fn start_in_register(&mut self, at: u64, op: Op<T>) {
        let start = self.dies[op.die.0 as usize].register_free_at.max(at);
        self.charge(&op, Cause::DieWait, start - at);
        self.dies[op.die.0 as usize].passes_on(at);
        self.start::<Full>(start, at, op);
    }

    /// The operation waits for its die, and nobody knows until when.
    #[inline(never)]
    pub(super) fn wait<M: FastPath>(&mut self, at: u64, mut op: Op<T>) {
        op.arrived = at;
        if M::MINIMAL && op.account.is_none() {
            op.arrived = self.dies[op.die.0 as usize].known_until(at);
        } else if M::MINIMAL || self.timing.die_queue == DieQueue::Fifo {
            op.arrived = self.charge_known(at, &op);
        }
        let die = op.die;
        if !M::MINIMAL && self.watched {
            cold_path();
            self.note_wait(at, die.0, op.token.into(), op.account);
        }
        let Die { free_at, ring, accounted, .. } = &mut self.dies[die.0 as usize];
        *accounted += u32::from(op.account.is_some());
        ring.push_back(op);
        if *free_at != UNKNOWN && ring.len() == 1 {
            // Where planes work together what comes at one moment waits, even for a die that is free.
            self.calendar.release(if M::MINIMAL { *free_at } else { at.max(*free_at) }, die);
        }
    }

    /// The operation waits from `at` on for those before it: charge it for what is known of that;
    /// returns from when on it is not.
    pub(super) fn charge_known(&mut self, at: u64, op: &Op<T>) -> u64 {
        let Timeline { dies, accounts, .. } = self;
        let mut since = at;
        dies[op.die.0 as usize].known().for_each(|(until, holder)| {
            if until > since {
                charge(accounts, op, holder.wait(), until - since);
                since = until;
            }
        });
        since
    }

    /// The die does what it does until `end`.
    #[inline(always)]
    pub(super) fn hold<M: FastPath>(&mut self, die: DieIdx, end: u64, now: u64) {
        let state = &mut self.dies[die.0 as usize];
        state.free_at = end;
        if !state.ring.is_empty() {
            self.hand_over::<M>(die, end, now);
        }
    }

    /// `die`, for which somebody waits, does what it does until `end`: where the next is certain, it is
    /// started now.
    #[inline(never)]
    fn hand_over<M: FastPath>(&mut self, die: DieIdx, end: u64, now: u64) {
        let fifo = self.timing.die_queue == DieQueue::Fifo && self.planes.is_none();
        if M::MINIMAL || end <= now || fifo {
            self.let_next_start::<M>(end, now, die);
        } else {
            self.calendar.release(end, die);
        }
    }

    /// The next in the ring of `die` has it from `at` on.
    pub(super) fn let_next_start<M: FastPath>(&mut self, mut at: u64, now: u64, die: DieIdx) {
        let Timeline { dies, accounts, timing, .. } = self;
        let state = &mut dies[die.0 as usize];
        if !M::MINIMAL && timing.die_queue == DieQueue::Fifo {
            at = state.next_in_register().map_or(at, |free| free.max(now));
        }
        if state.accounted > 0 {
            for op in &state.ring {
                let waited = at - op.arrived.max(state.held_since);
                charge(accounts, op, state.purpose.wait(), waited);
            }
        }
        state.passes_on(now);
        let place = if M::MINIMAL { 0 } else { state.next_place(timing.die_queue) };
        let next = state.take(place);
        if M::MINIMAL {
            return self.start::<M>(at, now, next);
        }
        if let Some(log) = &mut self.log {
            cold_path();
            log.is_next(die.0 as usize, place);
        }
        if next.stage == Stage::Cells {
            cold_path();
            return self.resume(at, next);
        }
        self.start::<M>(at, now, next);
    }

    /// The operation has its die from `at` on, which may lie in the future.
    #[inline(always)]
    fn start<M: FastPath>(&mut self, at: u64, now: u64, op: Op<T>) {
        if !M::MINIMAL && self.planes.is_some() {
            cold_path();
            return self.start_together(at, op);
        }
        if !M::MINIMAL && self.watched {
            cold_path();
            self.note_begin(now, op.die.0, op.token.into(), op.account);
        }
        let cached = !M::MINIMAL && self.is_cached(&op);
        let state = &mut self.dies[op.die.0 as usize];
        (state.held_since, state.purpose, state.cached) = (at, op.purpose, cached);
        if cached {
            state.cells_free_at = state.free_at;
        }
        let end = match op.kind {
            Kind::Read => {
                self.charge(&op, Cause::CellRead, op.cell_ns);
                return self.announce::<M>(at + op.cell_ns, 0, op);
            }
            Kind::Program if at > now && cached => return self.announce::<M>(at, 0, op),
            Kind::Program if at > now => return self.announce::<M>(at, op.cell_ns, op),
            Kind::Program => {
                let channel = state.channel as usize;
                self.serve::<M>(channel, at);
                // Another of its plan may arrive at this very moment.
                if !M::MINIMAL
                    && self.timing.in_turn
                    && (op.in_turn || self.channels[channel].is_taken(at))
                {
                    cold_path();
                    return self.take_turn(at, op);
                }
                let Timeline { channels, accounts, timing, .. } = self;
                transfer::<M, T, A>(&mut channels[channel].lane, at, &op, timing, accounts)
            }
            Kind::Inside => {
                self.charge(&op, op.purpose.cause(), op.cell_ns);
                at + op.cell_ns
            }
        };
        if !M::MINIMAL && self.timing.suspend.is_some() {
            return self.occupy(at, end, now, op);
        }
        let held = if cached { self.dies[op.die.0 as usize].program(end, op.cell_ns) } else { end };
        if !M::MINIMAL && self.writes_down {
            cold_path();
            self.write_down(op.die, op.what(), at, held);
        }
        self.hold::<M>(op.die, held, now);
        if !M::MINIMAL && self.descriptors.is_some() {
            cold_path();
            return self.post(end, op);
        }
        self.finish(end, now, &op);
    }

    /// What the operation that was kept has read leaves the channel.
    #[inline(never)]
    pub(super) fn go_out(&mut self, at: u64, index: u32, over_bus: bool) {
        let mut op = self.take(index);
        if over_bus {
            op.stage = Stage::BusOut;
            self.begin(at, op);
        } else {
            self.leave(at, at, op);
        }
    }

    /// What was read goes over the link at `end`, where it is the host's; the firmware notices it before.
    #[inline]
    fn leave(&mut self, end: u64, now: u64, op: Op<T>) {
        if self.descriptors.is_some() {
            cold_path();
            self.post(end, op);
        } else if op.link_bytes == 0 {
            self.finish(end, now, &op);
        } else {
            self.begin_when(end, now, Op { stage: Stage::Link, ..op });
        }
    }

    /// The operation ends at `end`; told when its user wants to know.
    #[inline(always)]
    pub(super) fn finish(&mut self, end: u64, now: u64, op: &Op<T>) {
        self.end_of(end, now, op.next, op.report, op.token);
    }

    #[inline(always)]
    pub(super) fn end_of(
        &mut self,
        end: u64,
        now: u64,
        next: Option<NonZeroU32>,
        report: Report,
        token: T,
    ) {
        if let Some(next) = next {
            return self.go_on(end, now, next.get() - 1);
        }
        match report {
            Report::AtEnd if end > now => self.calendar.tell(end, token.into()),
            Report::WhenKnown | Report::AtEnd if self.told.is_none() => {
                self.told = Some((end, token));
            }
            Report::WhenKnown | Report::AtEnd => {
                cold_path();
                self.told_next.push_back((end, token));
            }
            Report::Never => {}
        }
    }

    /// The operation that was kept begins at `at`.
    #[cold]
    fn go_on(&mut self, at: u64, now: u64, index: u32) {
        if at > now {
            self.calendar.arrive(at, index);
        } else {
            self.calendar.count();
            self.arrive::<Full>(at, index);
        }
    }

    #[inline]
    pub(super) fn charge(&mut self, op: &Op<T>, cause: Cause, ns: u64) {
        charge(&mut self.accounts, op, cause, ns);
    }
}
