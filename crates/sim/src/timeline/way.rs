//! The way of an operation: from resource to resource, and what each of them costs it.

use std::num::NonZeroU32;

use super::op::Kind;
use super::rings::{Die, UNKNOWN};
use super::{DieQueue, Lane, Op, Report, Stage, Timeline};
use crate::flash::geometry::DieIdx;
use crate::timeline::breakdown::{Account as _, Cause, SimBreakdown};

impl<T: Copy + From<u64> + Into<u64>> Timeline<T> {
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
    #[inline]
    pub(super) fn arrive(&mut self, at: u64, index: u32) {
        if self.ops[index as usize].stage == Stage::Channel {
            return self.leave_channel(at, index);
        }
        let op = self.take(index);
        self.begin(at, op);
    }

    /// The operation has arrived where its stage says.
    #[inline(never)]
    pub(super) fn begin(&mut self, at: u64, mut op: Op<T>) {
        match op.stage {
            Stage::BusIn if self.buses.is_empty() => self.enter_ring(at, op),
            Stage::BusIn => {
                let end = self.bus(at, &op);
                op.stage = Stage::Ring;
                self.begin_when(end, at, op);
            }
            Stage::Ring => self.enter_ring(at, op),
            Stage::Channel => unreachable!("who has a die arrives at a channel by its list"),
            Stage::BusOut => {
                let end = self.bus(at, &op);
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
    pub(super) fn enter_ring(&mut self, at: u64, op: Op<T>) {
        let die = &mut self.dies[op.die.0 as usize];
        if die.free_at <= at {
            if die.ring.is_empty() {
                return self.start(at, at, op);
            }
            // Others wait, and the die is released at this very moment: what takes no time at all can end
            // on one die and go on here before it is this one's turn.
            debug_assert!(die.free_at == at, "who waits is released first");
            return self.wait(at, op);
        }
        if self.timing.die_queue == DieQueue::Fifo && die.free_at != UNKNOWN {
            let free_at = die.free_at;
            if op.account.is_some() {
                self.charge_known(at, &op);
            }
            self.dies[op.die.0 as usize].passes_on(at);
            return self.start(free_at, at, op);
        }
        self.wait(at, op);
    }

    /// The operation waits for its die, and nobody knows until when.
    #[inline(never)]
    fn wait(&mut self, at: u64, mut op: Op<T>) {
        op.arrived = at;
        if self.timing.die_queue == DieQueue::Fifo {
            op.arrived = self.charge_known(at, &op);
        }
        let die = op.die;
        let Die { free_at, ring, .. } = &mut self.dies[die.0 as usize];
        ring.push_back(op);
        if *free_at != UNKNOWN && ring.len() == 1 {
            self.calendar.release(*free_at, die);
        }
    }

    /// The operation waits from `at` on for those before it: charge it for what is known of that;
    /// returns from when on it is not.
    fn charge_known(&mut self, at: u64, op: &Op<T>) -> u64 {
        let Timeline { dies, accounts, .. } = self;
        let mut since = at;
        for (until, holder) in dies[op.die.0 as usize].known() {
            if until > since {
                charge(accounts, op, holder.cause(), until - since);
                since = until;
            }
        }
        since
    }

    /// The die does what it does until `end`.
    #[inline]
    fn hold(&mut self, die: DieIdx, end: u64, now: u64) {
        let state = &mut self.dies[die.0 as usize];
        state.free_at = end;
        if !state.ring.is_empty() {
            self.hand_over(die, end, now);
        }
    }

    /// `die`, for which somebody waits, does what it does until `end`: where the next is certain, it is
    /// started now.
    #[inline(never)]
    fn hand_over(&mut self, die: DieIdx, end: u64, now: u64) {
        if end <= now || self.timing.die_queue == DieQueue::Fifo {
            self.let_next_start(end, now, die);
        } else {
            self.calendar.release(end, die);
        }
    }

    /// The next in the ring of `die` has it from `at` on.
    pub(super) fn let_next_start(&mut self, at: u64, now: u64, die: DieIdx) {
        let Timeline { dies, accounts, timing, .. } = self;
        let state = &mut dies[die.0 as usize];
        for op in &state.ring {
            let waited = at - op.arrived.max(state.held_since);
            charge(accounts, op, state.purpose.cause(), waited);
        }
        state.passes_on(now);
        let next = state.next(timing.die_queue).expect("a die is released for somebody");
        self.start(at, now, next);
    }

    /// The operation has its die from `at` on, which may lie in the future.
    #[inline(always)]
    fn start(&mut self, at: u64, now: u64, op: Op<T>) {
        let state = &mut self.dies[op.die.0 as usize];
        (state.held_since, state.purpose) = (at, op.purpose);
        let end = match op.kind {
            Kind::Read => {
                self.charge(&op, Cause::CellRead, op.cell_ns);
                return self.announce(at + op.cell_ns, 0, op);
            }
            Kind::Program if at > now => return self.announce(at, op.cell_ns, op),
            Kind::Program => {
                let channel = state.channel as usize;
                self.serve(channel, at);
                let Timeline { channels, accounts, timing, .. } = self;
                transfer(&mut channels[channel].lane, at, &op, timing.transfer_ns, accounts)
            }
            Kind::Inside => {
                self.charge(&op, op.purpose.cause(), op.cell_ns);
                at + op.cell_ns
            }
        };
        self.hold(op.die, end, now);
        self.finish(end, now, &op);
    }

    /// The operation, which will have its die, will arrive at its channel at `at`, and hold the die for
    /// `after` longer than the channel.
    #[inline(always)]
    fn announce(&mut self, at: u64, after: u64, mut op: Op<T>) {
        op.stage = Stage::Channel;
        op.ends = UNKNOWN;
        let length = self.timing.transfer_ns * u64::from(op.transfers);
        let die = &mut self.dies[op.die.0 as usize];
        die.free_at = UNKNOWN;
        let channel = die.channel as usize;
        let index = self.put(op);
        let channel = &mut self.channels[channel];
        channel.announce(at, index);
        // Sooner it cannot end.
        let end = channel.lane.free_at.max(at) + length + after;
        self.calendar.arrive(end, index);
    }

    /// Everybody who has arrived at `channel` by `now` is served, in order.
    #[inline]
    fn serve(&mut self, channel: usize, now: u64) {
        while let Some((at, index)) = self.channels[channel].take(now) {
            let Timeline { ops, channels, accounts, timing, .. } = self;
            let op = &mut ops[index as usize];
            op.ends = transfer(&mut channels[channel].lane, at, op, timing.transfer_ns, accounts);
            let (die, end) = (op.die, op.ends);
            self.hold(die, end, now);
        }
    }

    /// An operation whose arrival at the channel was announced could have ended by now.
    #[inline]
    fn leave_channel(&mut self, at: u64, index: u32) {
        let Op { die, ends, .. } = self.ops[index as usize];
        if ends == UNKNOWN {
            self.serve(self.dies[die.0 as usize].channel as usize, at);
        }
        let ends = self.ops[index as usize].ends;
        if ends > at {
            return self.calendar.arrive(ends, index);
        }
        // Not copied as a whole: what has just been written in parts is slow to read together.
        let Op { kind, link_bytes, next, report, token, .. } = self.ops[index as usize];
        let over_bus = kind == Kind::Read && !self.buses.is_empty();
        if over_bus || link_bytes > 0 {
            return self.go_out(at, index, over_bus);
        }
        self.unused.push(index);
        self.end_of(at, at, next, report, token);
    }

    /// What the operation that was kept has read leaves the channel.
    #[inline(never)]
    fn go_out(&mut self, at: u64, index: u32, over_bus: bool) {
        let mut op = self.take(index);
        if over_bus {
            op.stage = Stage::BusOut;
            self.begin(at, op);
        } else {
            self.leave(at, at, op);
        }
    }

    /// What was read goes over the link at `end`, where it is the host's.
    #[inline]
    fn leave(&mut self, end: u64, now: u64, op: Op<T>) {
        if op.link_bytes == 0 {
            self.finish(end, now, &op);
        } else {
            self.begin_when(end, now, Op { stage: Stage::Link, ..op });
        }
    }

    /// The operation ends at `end`; told when its user wants to know.
    #[inline]
    pub(super) fn finish(&mut self, end: u64, now: u64, op: &Op<T>) {
        self.end_of(end, now, op.next, op.report, op.token);
    }

    #[inline]
    fn end_of(&mut self, end: u64, now: u64, next: Option<NonZeroU32>, report: Report, token: T) {
        if let Some(next) = next {
            return self.go_on(end, now, next.get() - 1);
        }
        match report {
            Report::AtEnd if end > now => self.calendar.tell(end, token.into()),
            Report::WhenKnown | Report::AtEnd if self.told.is_none() => {
                self.told = Some((end, token));
            }
            Report::WhenKnown | Report::AtEnd => self.told_next.push_back((end, token)),
            Report::Never => {}
        }
    }

    /// The operation that was kept begins at `at`.
    #[cold]
    fn go_on(&mut self, at: u64, now: u64, index: u32) {
        if at > now {
            self.calendar.arrive(at, index);
        } else {
            self.arrive(at, index);
        }
    }

    /// A page over the internal bus of the operation's channel; returns the end.
    fn bus(&mut self, at: u64, op: &Op<T>) -> u64 {
        let bus = self.dies[op.die.0 as usize].channel as usize % self.buses.len();
        let length = self.timing.bus_ns;
        let end = self.buses[bus].take(at, length) + length;
        self.charge(op, Cause::Bus, end - at);
        end
    }

    #[inline]
    fn charge(&mut self, op: &Op<T>, cause: Cause, ns: u64) {
        charge(&mut self.accounts, op, cause, ns);
    }
}

/// The operation, which has its die, has arrived at the channel at `at`; returns when the die has done
/// it.
#[inline]
fn transfer<T>(
    channel: &mut Lane,
    at: u64,
    op: &Op<T>,
    page_ns: u64,
    accounts: &mut [SimBreakdown],
) -> u64 {
    let length = page_ns * u64::from(op.transfers);
    let sent = channel.take(at, length);
    // The cells of a read came before.
    let cell_ns = if op.kind == Kind::Read { 0 } else { op.cell_ns };
    if op.account.is_some() {
        charge(accounts, op, Cause::ChannelWait, sent - at);
        charge(accounts, op, Cause::Transfer, length);
        charge(accounts, op, Cause::CellProgram, cell_ns);
    }
    sent + length + cell_ns
}

#[inline]
fn charge<T>(accounts: &mut [SimBreakdown], op: &Op<T>, cause: Cause, ns: u64) {
    if let Some(account) = op.account {
        accounts[account.index()].add(op.lump.unwrap_or(cause), ns);
    }
}
