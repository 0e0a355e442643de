//! Resources shared by all dies that serve one request at a time: the processor, the link, and
//! others.

use super::{Account, AccountIdx, Op, OpKind, Timeline, Timing};
use crate::flash::fast_path::AllFeatures;
use crate::timeline::breakdown::Cause;

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
