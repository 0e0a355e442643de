//! Channel transfers: their order, duration and end.

use std::hint::cold_path;

use super::op::OpKind;
use super::{Account, Lane, MultiPlane, Op, Stage, Timeline, Timing, UNKNOWN};
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::timeline::breakdown::Cause;

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Announce the operation, which will have its die, for its channel at `at`. It will hold the
    /// die for `after` longer than the channel.
    #[inline(always)]
    pub(super) fn announce<M: FastPath>(&mut self, at: u64, after: u64, op: Op<T>) {
        let length = self.timing.channel_ns_of::<M, T>(&op);
        let die = &mut self.dies[op.die.0 as usize];
        die.free_at = UNKNOWN;
        let channel = die.channel as usize;
        // Modified in place: a value written in parts is slow to copy as a whole.
        let index = self.put(op);
        let op = &mut self.ops[index as usize];
        op.stage = Stage::Channel;
        (op.arrived, op.ends) = (at, UNKNOWN);
        let channel = &mut self.channels[channel];
        channel.announce(at, index);
        // The earliest possible end.
        let end = channel.lane.free_at.max(at) + length + after;
        self.calendar.arrive(end, index);
    }

    /// Like [`Timeline::announce`], for an operation that has arrived but may not be next.
    #[inline(never)]
    pub(super) fn announce_arrived(&mut self, at: u64, op: Op<T>) {
        self.announce::<AllFeatures>(at, self.after(&op), op);
    }

    /// Serve all operations that have arrived at `channel` by `now`, in order.
    #[inline(always)]
    pub(super) fn serve<M: FastPath>(&mut self, channel: usize, now: u64) {
        if self.channels[channel].is_due(now) {
            self.serve_due::<M>(channel, now);
        }
    }

    /// Like `serve`, if there are any.
    #[inline(never)]
    fn serve_due<M: FastPath>(&mut self, channel: usize, now: u64) {
        while let Some((at, index)) = self.next_served::<M>(channel, now) {
            self.serve_one::<M>(channel, at, index, now);
        }
    }

    /// Serve the operation, which arrived at `channel` at `at`.
    #[inline(always)]
    pub(super) fn serve_one<M: FastPath>(&mut self, channel: usize, at: u64, index: u32, now: u64) {
        let Timeline { ops, channels, accounts, timing, dies, .. } = self;
        let op = &mut ops[index as usize];
        op.ends = transfer::<M, T, A>(&mut channels[channel].lane, at, op, timing, accounts);
        let (die, mut end) = (op.die, op.ends);
        if !M::MINIMAL && self.planes.is_some() {
            cold_path();
            return self.channel_granted(index, at, now);
        }
        if !M::MINIMAL && timing.cache_program && op.is_host_program() {
            end = dies[die.0 as usize].program(end, op.cell_ns);
        }
        if !M::MINIMAL && self.writes_down {
            cold_path();
            let op = &self.ops[index as usize];
            let begin = if op.kind == OpKind::Read { at - op.cell_ns } else { at };
            self.record_op(op.die, op.summary(), begin, end);
        }
        self.hold::<M>(die, end, now);
        if !M::MINIMAL && self.timing.suspend.is_some() {
            self.begin_suspendable(index, now);
        }
    }

    /// Return the next operation to serve on `channel`, if it is certain by `now`.
    #[inline]
    fn next_served<M: FastPath>(&mut self, channel: usize, now: u64) -> Option<(u64, u32)> {
        if !M::MINIMAL && self.timing.has_plan_order {
            self.next_in_plan_order(channel, now)
        } else {
            self.channels[channel].take(now)
        }
    }

    /// Like `next_served`, for operations with an order within a plan. Separate, to keep the usual
    /// case fast.
    #[inline(never)]
    fn next_in_plan_order(&mut self, channel: usize, now: u64) -> Option<(u64, u32)> {
        let Timeline { ops, channels, .. } = self;
        let index =
            channels[channel].take_in_plan_order(now, |index| ops[index as usize].plan_turn())?;
        Some((ops[index as usize].arrived, index))
    }

    /// Handle the time at which an announced operation could have ended.
    #[inline]
    pub(super) fn leave_channel<M: FastPath>(&mut self, at: u64, index: u32) {
        let Op { die, ends, arrived, .. } = self.ops[index as usize];
        debug_assert!(arrived <= at, "a transfer does not end before its arrival");
        if ends == UNKNOWN {
            if !M::MINIMAL {
                self.sending = Some(index);
            }
            self.serve::<M>(self.dies[die.0 as usize].channel as usize, at);
            // Its cells are busy, or were suspended; then its slot may already be reused.
            if !M::MINIMAL && self.sending.take().is_none() {
                return;
            }
        }
        let ends = self.ops[index as usize].ends;
        if ends == UNKNOWN {
            cold_path();
            return self.reschedule(index);
        }
        if ends > at {
            return self.calendar.arrive(ends, index);
        }
        // Not copied as a whole: a value just written in parts is slow to read together.
        let Op { kind, link_bytes, next, report, token, .. } = self.ops[index as usize];
        if !M::MINIMAL && kind == OpKind::Program && self.planes.is_some() {
            cold_path();
            return self.register_loaded(at, index);
        }
        let over_bus = !M::MINIMAL && kind == OpKind::Read && !self.buses.is_empty();
        if over_bus || link_bytes > 0 || !M::MINIMAL && self.descriptors.is_some() {
            return self.move_off_channel(at, index, over_bus);
        }
        self.unused.push(index);
        self.report_end(at, at, next, report, token);
    }

    /// Return the number of transfers for the host's `bytes` of a page.
    #[inline]
    pub(crate) fn transfers_of(&self, bytes: u64) -> u16 {
        match self.timing.transfer_parts {
            0 => self.timing.read_transfers,
            parts => (bytes * parts / self.page_bytes) as u16,
        }
    }

    /// Return for how long after its transfer the operation's end need not be known.
    fn after(&self, op: &Op<T>) -> u64 {
        let needs_end =
            self.is_cached(op) || self.timing.suspend.is_some() || self.planes.is_some();
        if op.kind == OpKind::Read || needs_end { 0 } else { op.cell_ns }
    }

    /// Reschedule the operation, which was not served yet: the channel is busy until then.
    #[inline(never)]
    fn reschedule(&mut self, index: u32) {
        let op = &self.ops[index as usize];
        let length = self.timing.channel_ns_of::<AllFeatures, T>(op);
        let after = self.after(op);
        let lane = self.channels[self.dies[op.die.0 as usize].channel as usize].lane;
        self.calendar.arrive(lane.free_at + length + after, index);
    }
}

/// Transfer the data of an operation that has its die and arrived at the channel at `at`. Return
/// when the die has completed it, or when the register has the page.
#[inline(always)]
pub(super) fn transfer<M: FastPath, T, A: Account>(
    channel: &mut Lane,
    at: u64,
    op: &Op<T>,
    timing: &Timing,
    accounts: &mut [A],
) -> u64 {
    let single = timing.transfer::<M>(op.transfers);
    let again = if M::MINIMAL { 0 } else { timing.retry_time(op, single) };
    let sent = channel.take(at, single + again);
    // The cells of a read came before; those of a page in the register follow.
    let cached = !M::MINIMAL && timing.cache_program && op.is_host_program();
    let multi_plane = !M::MINIMAL && timing.multi_plane != MultiPlane::None;
    let later = op.kind == OpKind::Read || cached || multi_plane;
    let cell_ns = if later { 0 } else { op.cell_ns };
    if op.account.is_some() {
        charge(accounts, op, Cause::ChannelWait, sent - at);
        charge(accounts, op, Cause::Transfer, single);
        charge(accounts, op, Cause::CellProgram, cell_ns);
        if !M::MINIMAL && again > 0 {
            charge(accounts, op, Cause::Retry, again);
        }
    }
    sent + single + again + cell_ns
}

#[inline(always)]
pub(super) fn charge<T, A: Account>(accounts: &mut [A], op: &Op<T>, cause: Cause, ns: u64) {
    if let Some(account) = op.account {
        accounts[account.index()].add(op.charge_as.unwrap_or(cause), ns);
    }
}

impl Timing {
    /// Return the channel time of `transfers` pages or parts of a page.
    #[inline(always)]
    pub(super) fn transfer<M: FastPath>(&self, transfers: u16) -> u64 {
        self.length::<M>(self.transfer_ns, transfers)
    }

    /// Return the time of `transfers` pages or parts of a page, if a page takes `page_ns`.
    #[inline(always)]
    pub(super) fn length<M: FastPath>(&self, page_ns: u64, transfers: u16) -> u64 {
        if M::MINIMAL || self.transfer_parts == 0 {
            return page_ns * u64::from(transfers);
        }
        let shift = self.transfer_parts.trailing_zeros();
        match page_ns.checked_mul(transfers.into()) {
            // Usually a page has 2^n sectors; a division would take as long as all the rest.
            Some(all) if self.transfer_parts >> shift == 1 => all >> shift,
            Some(all) => all / self.transfer_parts,
            // No real channel is that slow.
            None => {
                cold_path();
                (u128::from(page_ns) * u128::from(transfers) / u128::from(self.transfer_parts))
                    as u64
            }
        }
    }

    /// Return the additional channel time of read retries; one transfer takes `once`.
    #[inline(always)]
    fn retry_time<T>(&self, op: &Op<T>, once: u64) -> u64 {
        if op.retries == 0 { 0 } else { u64::from(op.retries) * (op.cell_ns + once) }
    }

    /// Return the channel time of the operation.
    #[inline(always)]
    fn channel_ns_of<M: FastPath, T>(&self, op: &Op<T>) -> u64 {
        let once = self.transfer::<M>(op.transfers);
        if M::MINIMAL { once } else { once + self.retry_time(op, once) }
    }
}
