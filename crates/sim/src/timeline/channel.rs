//! Channels: announced arrivals, the order and duration of transfers, and programs that hold their
//! channel.
//!
//! Service is FIFO, except for plans with many page moves: whichever page of the plan arrived, the
//! one planned first is served, as one processor would send its pages in order. So reads of later
//! pages do not delay the program of a page that has been read.

use std::hint::cold_path;

use super::breakdown::Cause;
use super::die_queue::UNKNOWN;
use super::op::OpKind;
use super::{Account, Lane, MultiPlane, Op, Purpose, Stage, Timeline, Timing};
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::DieIdx;

/// A channel transfers one operation's data at a time. An operation's arrival time is known when
/// its die starts it; earlier arrivals of others are not.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Channel {
    pub(super) lane: Lane,
    /// Arrival times and operations, latest first; ties in the order of announcement. At most one
    /// per die.
    announced: Vec<(u64, u32)>,
}

impl Channel {
    /// Announce the operation for `at`.
    #[inline(always)]
    pub(super) fn announce(&mut self, at: u64, index: u32) {
        let mut position = self.announced.len();
        self.announced.push((at, index));
        while position > 0 && self.announced[position - 1].0 <= at {
            self.announced[position] = self.announced[position - 1];
            position -= 1;
        }
        self.announced[position] = (at, index);
    }

    /// Return whether any operation has arrived by `now`.
    #[inline(always)]
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.announced.last().is_some_and(|first| first.0 <= now)
    }

    /// Remove the first operation that has arrived by `now`.
    #[inline]
    pub(super) fn take(&mut self, now: u64) -> Option<(u64, u32)> {
        let first = *self.announced.last()?;
        if first.0 > now {
            return None;
        }
        self.announced.pop();
        Some(first)
    }

    /// Like [`Channel::take`], if operations have an order within a plan: `turn` returns plan and
    /// position. Only arrivals before `now` are certain: at `now` others may still arrive.
    #[inline]
    fn take_in_plan_order(
        &mut self,
        now: u64,
        turn: impl Fn(u32) -> Option<(u32, u32)>,
    ) -> Option<u32> {
        let (at, first) = *self.announced.last()?;
        let start = self.lane.free_at.max(at);
        if start >= now {
            return None;
        }
        self.announced.pop();
        let Some((plan, mut best)) = turn(first) else { return Some(first) };
        let mut chosen = None;
        let announced = self.announced.iter().enumerate().rev();
        for (position, (_, index)) in announced.take_while(|(_, (at, _))| *at <= start) {
            if let Some((_, rank)) =
                turn(*index).filter(|(other, rank)| *other == plan && *rank < best)
            {
                (chosen, best) = (Some(position), rank);
            }
        }
        let Some(position) = chosen else { return Some(first) };
        // They swap positions.
        Some(std::mem::replace(&mut self.announced[position].1, first))
    }

    /// Return whether an operation that arrives at `at` has to wait.
    #[inline]
    pub(super) fn is_taken(&self, at: u64) -> bool {
        self.lane.free_at > at || self.announced.last().is_some_and(|(other, _)| *other <= at)
    }
}

// Transfers.

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
    fn serve_one<M: FastPath>(&mut self, channel: usize, at: u64, index: u32, now: u64) {
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

// Programs that hold their channel until their die is ready, as with some controllers.
//
// ```text
// program:  channel and queue of the die ─▶ both ─▶ channel turns to the die ─▶ transfer ─▶ cells
//           └─────────── the channel is held, even while the die is busy ────┘
// ```
//
// Everything else waits until the program has transferred its page. Only earlier reads on its own
// die pass: the die is not ready before their data has left it. So when a program arrives, all
// earlier work of its die is known, and so is its end: it needs no event.
//
// Operations arrive at a channel and its dies in the order of issue, and their times never
// decrease. So they may be issued ahead of time: a later issue arrives later.
//
// **Source**: OX, traffic control of uFLIP-OC's (2017) card: a command to a busy LUN is sent with
// a flag that blocks its channel until the LUN is ready.
// **Faithful**: head-of-line blocking of a channel by its programs; reads and erases wait for
// their die alone.
// **Simplified**: a command takes no time on the channel.
// **Ambiguous**: what passes a program that holds the channel. Here only its own die, which would
// never be ready otherwise.

impl<T: Copy + From<u64> + Into<u64>, A: Account> Timeline<T, A> {
    /// Serve all arrivals at the channel of `die` up to `at`; none will follow before `at`.
    #[inline]
    pub(crate) fn catch_up(&mut self, die: DieIdx, at: u64) {
        self.serve::<AllFeatures>(self.dies[die.0 as usize].channel as usize, at);
    }

    /// Return whether the last operation of `die`, which has caught up to `at`, is a program that
    /// continues at `at`.
    #[inline]
    pub(crate) fn is_programming(&self, die: DieIdx, at: u64) -> bool {
        let die = &self.dies[die.0 as usize];
        die.free_at != UNKNOWN && die.free_at > at && die.purpose == Purpose::HostWrite
    }

    /// Let `op` arrive at its die at `at`; the die has caught up to then.
    #[inline]
    pub(crate) fn arrive_at_die(&mut self, at: u64, op: Op<T>) {
        self.join_die_queue::<AllFeatures>(at, op);
    }

    /// Let the program `op` arrive at its channel and die at `at`; both have caught up to then. The
    /// channel takes `turn_ns` to switch to the die. Return when the die has the page, which it
    /// then programs.
    pub(crate) fn program_holding(&mut self, at: u64, turn_ns: u64, op: Op<T>) -> u64 {
        let die = op.die.0 as usize;
        let channel = self.dies[die].channel as usize;
        let held = self.channels[channel].lane.free_at.max(at);
        self.charge(&op, Cause::ChannelWait, held - at);
        while self.dies[die].free_at == UNKNOWN {
            self.start_waiting_read(channel, op.die, at);
        }
        let begin = self.charge_known(held, &op);
        let once = self.timing.transfer::<AllFeatures>(op.transfers);
        self.charge(&op, Cause::DieSwitch, turn_ns);
        self.charge(&op, Cause::Transfer, once);
        let sent = begin + turn_ns + once;
        self.channels[channel].lane.free_at = sent;
        let state = &mut self.dies[die];
        state.record_successor(at);
        (state.held_since, state.purpose, state.cached) = (begin, op.purpose, false);
        state.free_at = sent + op.cell_ns;
        if self.watched {
            self.note_holding(&op, [at, held, begin, sent]);
        }
        sent
    }

    /// Transfer the data that `die` reads over its held channel, when it has been read.
    #[inline(never)]
    fn start_waiting_read(&mut self, channel: usize, die: DieIdx, now: u64) {
        let Timeline { channels, ops, .. } = self;
        let announced = &mut channels[channel].announced;
        let of_die = |(_, index): &(u64, u32)| ops[*index as usize].die == die;
        let position = announced.iter().position(of_die);
        let (at, index) =
            announced.remove(position.expect("the channel queues the read of a waiting die"));
        self.serve_one::<AllFeatures>(channel, at, index, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_serves_plan_in_planning_order() {
        let mut channel = Channel { lane: Lane { free_at: 11 }, ..Channel::default() };
        // Two of plan 1, one of no plan, and another of plan 1 which comes too late to be first.
        let turns = [Some((1, 7)), None, Some((1, 3)), Some((1, 2))];
        for (at, index) in [(9, 0), (10, 1), (10, 2), (12, 3)] {
            channel.announce(at, index);
        }
        let mut take = |now| channel.take_in_plan_order(now, |index| turns[index as usize]);
        assert_eq!(take(11), None, "at 11 others may still arrive");
        assert_eq!(take(12), Some(2));
        assert_eq!(take(12), Some(1), "the operation before the overtaken page");
        assert_eq!(take(12), Some(0));
        assert_eq!(take(12), None);
        assert_eq!(take(13), Some(3));
    }
}
