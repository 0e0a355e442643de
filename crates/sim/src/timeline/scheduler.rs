//! The path of an operation from resource to resource, its costs, and the resources that all dies
//! share.

use std::hint::cold_path;
use std::num::NonZeroU32;

use super::breakdown::Cause;
use super::channel::{charge, transfer};
use super::die_queue::{Die, UNKNOWN};
use super::op::OpKind;
use super::{Account, AccountIdx, DieQueue, Op, Purpose, Report, Stage, Timeline, Timing};
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::DieIdx;

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Let the operation arrive at its next stage at `at`.
    #[inline]
    pub(super) fn begin_when(&mut self, at: u64, now: u64, op: Op<T>) {
        if at > now {
            let index = self.put(op);
            self.calendar.arrive(at, index);
        } else {
            self.begin(at, op);
        }
    }

    /// Continue a stored operation, which has arrived at its next stage or could have ended.
    #[inline(always)]
    pub(super) fn arrive<M: FastPath>(&mut self, at: u64, index: u32) {
        if self.ops[index as usize].stage == Stage::Channel {
            return self.leave_channel::<M>(at, index);
        }
        let op = self.take(index);
        self.begin(at, op);
    }

    /// Continue the operation at its stage.
    #[inline(never)]
    pub(super) fn begin(&mut self, at: u64, mut op: Op<T>) {
        match op.stage {
            Stage::Submit => self.submit(at, op),
            Stage::BusIn if self.buses.is_empty() => self.join_die_queue::<AllFeatures>(at, op),
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
            Stage::Ring => self.join_die_queue::<AllFeatures>(at, op),
            Stage::Channel => unreachable!(
                "an operation that holds its die arrives through the queue of its channel"
            ),
            Stage::Cells => self.cells_ended(at, op),
            Stage::BusOut => {
                let end = self.bus(at, &op);
                if self.timing.memory_ns > 0 {
                    op.stage = Stage::Memory;
                    return self.begin_when(end, at, op);
                }
                self.send_read_data(end, at, op);
            }
            Stage::Memory => {
                let end = self.memory(at, &op);
                self.send_read_data(end, at, op);
            }
            Stage::Link => {
                let end = self.send(at, u64::from(op.link_bytes));
                self.charge(&op, Cause::Link, end - at);
                self.finish(end, at, &op);
            }
        }
    }

    /// Add the operation to its die's queue.
    #[inline(always)]
    pub(super) fn join_die_queue<M: FastPath>(&mut self, at: u64, mut op: Op<T>) {
        if !M::MINIMAL && self.planes.is_some() {
            cold_path();
            return self.join_queue_of_planes(at, op);
        }
        if !M::MINIMAL && self.timing.cache_read {
            op.arrived = at;
        }
        let die = &mut self.dies[op.die.0 as usize];
        if die.free_at <= at {
            if die.ring.is_empty() {
                return self.start::<M>(at, at, op);
            }
            // Others wait, and the die is released at this very time: an operation without duration
            // can end on one die and continue here before the release.
            debug_assert!(die.free_at == at, "waiting operations are released first");
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
            self.dies[op.die.0 as usize].record_successor(at);
            return self.start::<M>(free_at, at, op);
        }
        if !M::MINIMAL && self.timing.suspend.is_some() && op.purpose == Purpose::HostRead {
            self.suspend(at, op.die);
        }
        self.wait::<M>(at, op);
    }

    /// Return whether the operation ends when its data is in the die's register.
    #[inline]
    pub(super) fn is_cached(&self, op: &Op<T>) -> bool {
        self.timing.cache_program && op.is_host_program()
    }

    /// Start the operation while its die programs the previous page: its data goes to the register
    /// when that is free.
    fn start_in_register(&mut self, at: u64, op: Op<T>) {
        let start = self.dies[op.die.0 as usize].register_free_at.max(at);
        self.charge(&op, Cause::DieWait, start - at);
        self.dies[op.die.0 as usize].record_successor(at);
        self.start::<AllFeatures>(start, at, op);
    }

    /// Append the operation to its die's queue; its start is unknown.
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
            // With multi-plane operations, operations that arrive at the same time wait even for a
            // free die.
            self.calendar.release(if M::MINIMAL { *free_at } else { at.max(*free_at) }, die);
        }
    }

    /// Charge the operation for the known part of its wait from `at` on; return the end of that
    /// part.
    pub(super) fn charge_known(&mut self, at: u64, op: &Op<T>) -> u64 {
        let Timeline { dies, accounts, .. } = self;
        let mut since = at;
        dies[op.die.0 as usize].known().for_each(|(until, holder)| {
            if until > since {
                charge(accounts, op, holder.wait_cause(), until - since);
                since = until;
            }
        });
        since
    }

    /// Hold the die until `end`.
    #[inline(always)]
    pub(super) fn hold<M: FastPath>(&mut self, die: DieIdx, end: u64, now: u64) {
        let state = &mut self.dies[die.0 as usize];
        state.free_at = end;
        if !state.ring.is_empty() {
            self.hand_over::<M>(die, end, now);
        }
    }

    /// Hold `die`, which has a queue, until `end`; start the next operation now if it is certain.
    #[inline(never)]
    fn hand_over<M: FastPath>(&mut self, die: DieIdx, end: u64, now: u64) {
        let fifo = self.timing.die_queue == DieQueue::Fifo && self.planes.is_none();
        if M::MINIMAL || end <= now || fifo {
            self.start_next::<M>(end, now, die);
        } else {
            self.calendar.release(end, die);
        }
    }

    /// Start the next operation in the queue of `die` at `at`.
    pub(super) fn start_next<M: FastPath>(&mut self, mut at: u64, now: u64, die: DieIdx) {
        let Timeline { dies, accounts, timing, .. } = self;
        let state = &mut dies[die.0 as usize];
        if !M::MINIMAL && timing.die_queue == DieQueue::Fifo {
            at = state.next_in_register().map_or(at, |free| free.max(now));
        }
        if state.accounted > 0 {
            for op in &state.ring {
                let waited = at - op.arrived.max(state.held_since);
                charge(accounts, op, state.purpose.wait_cause(), waited);
            }
        }
        state.record_successor(now);
        let position = if M::MINIMAL { 0 } else { state.next_position(timing.die_queue) };
        let next = state.take(position);
        if M::MINIMAL {
            return self.start::<M>(at, now, next);
        }
        if let Some(log) = &mut self.log {
            cold_path();
            log.take_from_queue(die.0 as usize, position);
        }
        if next.stage == Stage::Cells {
            cold_path();
            return self.resume(at, next);
        }
        self.start::<M>(at, now, next);
    }

    /// Start the operation on its die at `at`, which may lie in the future.
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
        let with_register = !M::MINIMAL && self.timing.cache_read;
        if with_register && op.kind != OpKind::Read {
            state.read_register_free_at = UNKNOWN;
        }
        let end = match op.kind {
            OpKind::Read => {
                let read = if with_register { state.sense(at, &op) } else { at + op.cell_ns };
                self.charge(&op, Cause::CellRead, read - at);
                return self.announce::<M>(read, 0, op);
            }
            OpKind::Program if at > now && cached => return self.announce::<M>(at, 0, op),
            OpKind::Program if at > now => return self.announce::<M>(at, op.cell_ns, op),
            OpKind::Program => {
                let channel = state.channel as usize;
                self.serve::<M>(channel, at);
                // Another operation of its plan may arrive at this very time.
                if !M::MINIMAL
                    && self.timing.has_plan_order
                    && (op.has_plan_order || self.channels[channel].is_taken(at))
                {
                    cold_path();
                    return self.announce_arrived(at, op);
                }
                let Timeline { channels, accounts, timing, .. } = self;
                transfer::<M, T, A>(&mut channels[channel].lane, at, &op, timing, accounts)
            }
            OpKind::Inside => {
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
            self.record_op(op.die, op.summary(), at, held);
        }
        self.hold::<M>(op.die, held, now);
        if !M::MINIMAL && self.descriptors.is_some() {
            cold_path();
            return self.post(end, op);
        }
        self.finish(end, now, &op);
    }

    /// Move a stored operation's read data off the channel.
    #[inline(never)]
    pub(super) fn move_off_channel(&mut self, at: u64, index: u32, over_bus: bool) {
        let mut op = self.take(index);
        if over_bus {
            op.stage = Stage::BusOut;
            self.begin(at, op);
        } else {
            self.send_read_data(at, at, op);
        }
    }

    /// Send read data over the link at `end` if it belongs to the host; the firmware handles it
    /// first.
    #[inline]
    fn send_read_data(&mut self, end: u64, now: u64, op: Op<T>) {
        if self.descriptors.is_some() {
            cold_path();
            self.post(end, op);
        } else if op.link_bytes == 0 {
            self.finish(end, now, &op);
        } else {
            self.begin_when(end, now, Op { stage: Stage::Link, ..op });
        }
    }

    /// End the operation at `end`; report it if requested.
    #[inline(always)]
    pub(super) fn finish(&mut self, end: u64, now: u64, op: &Op<T>) {
        self.report_end(end, now, op.next, op.report, op.token);
    }

    #[inline(always)]
    pub(super) fn report_end(
        &mut self,
        end: u64,
        now: u64,
        next: Option<NonZeroU32>,
        report: Report,
        token: T,
    ) {
        if let Some(next) = next {
            return self.start_stored(end, now, next.get() - 1);
        }
        match report {
            Report::AtEnd if end > now => self.calendar.add_report(end, token.into()),
            Report::WhenKnown | Report::AtEnd if self.next_report.is_none() => {
                self.next_report = Some((end, token));
            }
            Report::WhenKnown | Report::AtEnd => {
                cold_path();
                self.later_reports.push_back((end, token));
            }
            Report::Never => {}
        }
    }

    /// Start a stored operation at `at`.
    #[cold]
    fn start_stored(&mut self, at: u64, now: u64, index: u32) {
        if at > now {
            self.calendar.arrive(at, index);
        } else {
            self.calendar.count();
            self.arrive::<AllFeatures>(at, index);
        }
    }

    #[inline]
    pub(super) fn charge(&mut self, op: &Op<T>, cause: Cause, ns: u64) {
        charge(&mut self.accounts, op, cause, ns);
    }
}

// Resources that all dies share, and that serve one request at a time.

/// A FIFO resource that serves one request at a time.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Lane {
    pub(super) free_at: u64,
}

impl Lane {
    /// Take the resource for `length` for an arrival at `at`, the latest so far; return the start.
    #[inline]
    pub(super) fn take(&mut self, at: u64, length: u64) -> u64 {
        let start = at.max(self.free_at);
        self.free_at = start + length;
        start
    }
}

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Use the processor for `length` from `at` on; return the end plus `latency`.
    #[inline]
    pub(crate) fn process(&mut self, at: u64, length: u64, latency: u64) -> u64 {
        let over = if length == 0 { at } else { self.processor.take(at, length) + length };
        over + latency
    }

    /// Send `bytes` over the host link from `at` on; return the end.
    #[inline]
    pub(crate) fn send(&mut self, at: u64, bytes: u64) -> u64 {
        let length =
            if bytes == self.page_bytes { self.link_page_ns } else { link_ns(&self.timing, bytes) };
        self.link.take(at, length) + length
    }

    /// Send `bytes` of the data read by `op`, which is in memory at `at`, over the link.
    #[inline]
    pub(crate) fn deliver(&mut self, at: u64, now: u64, bytes: u64, op: Op<T>) {
        self.issue_when(at, now, Op { link_bytes: bytes as u32, ..op });
    }

    /// Transfer a page over the internal bus of the operation's channel; return the end.
    pub(super) fn bus(&mut self, at: u64, op: &Op<T>) -> u64 {
        let bus = self.dies[op.die.0 as usize].channel as usize % self.buses.len();
        let Timing { bus_ns, bus_read_setup_ns, bus_write_setup_ns, .. } = self.timing;
        let setup = if op.kind == OpKind::Read { bus_read_setup_ns } else { bus_write_setup_ns };
        let length = setup + self.timing.length::<AllFeatures>(bus_ns, op.transfers);
        let end = self.buses[bus].take(at, length) + length;
        self.charge(op, Cause::Bus, end - at);
        end
    }

    /// Transfer a page to or from the controller's memory; return the end.
    pub(super) fn memory(&mut self, at: u64, op: &Op<T>) -> u64 {
        let length = self.timing.length::<AllFeatures>(self.timing.memory_ns, op.transfers);
        let end = self.memory.take(at, length) + length;
        self.charge(op, Cause::Bus, end - at);
        end
    }

    /// End `op` at `end`, which was determined elsewhere.
    #[inline]
    pub(crate) fn end(&mut self, end: u64, now: u64, op: Op<T>) {
        self.finish(end, now, &op);
    }

    /// Charge `ns` of a host page's time to `cause`.
    #[inline]
    pub(crate) fn charge_account(&mut self, account: Option<AccountIdx>, cause: Cause, ns: u64) {
        if let Some(account) = account {
            self.accounts[account.index()].add(cause, ns);
        }
    }
}

#[inline(never)]
pub(super) fn link_ns(timing: &Timing, bytes: u64) -> u64 {
    bytes * 1_000_000_000 / timing.link_bytes_per_s
}

// Whether a plan has the device to itself, so that its duration depends on its steps alone.

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Like [`Timeline::next_of`], for a host that submits nothing before `until` unless it is
    /// notified.
    #[inline(always)]
    pub(crate) fn next_undisturbed<M: FastPath>(&mut self, until: u64) -> Option<(u64, T)> {
        if !M::MINIMAL {
            self.calendar.undisturbed_until = until;
        }
        self.next_of::<M>(until)
    }

    /// Return the time before which the host submits nothing unless it is notified, as of the last
    /// [`Timeline::next_undisturbed`].
    #[inline]
    pub(crate) fn undisturbed_until(&self) -> u64 {
        self.calendar.undisturbed_until
    }

    /// Return whether no event or report is pending, nothing is recorded, and `dies` and all shared
    /// resources are free.
    pub(crate) fn is_idle(&self, mut dies: impl Iterator<Item = DieIdx>) -> bool {
        let now = self.calendar.now;
        let is_free = |free_at: u64| free_at <= now;
        !self.is_due(u64::MAX)
            && !self.writes_down
            // Descriptor rings are polled at times of their own; multi-plane operations also depend
            // on pages.
            && self.descriptors.is_none()
            && self.planes.is_none()
            && [self.processor, self.memory].iter().all(|lane| is_free(lane.free_at))
            && self.channels.iter().all(|channel| is_free(channel.lane.free_at))
            && self.buses.iter().all(|bus| is_free(bus.free_at))
            && dies.all(|die| is_free(self.dies[die.0 as usize].free_at))
    }

    /// Return an idle timeline of the same device.
    pub(crate) fn idle_copy(&self) -> Timeline<T, A> {
        Timeline::new(self.geometry, self.timing)
    }
}
