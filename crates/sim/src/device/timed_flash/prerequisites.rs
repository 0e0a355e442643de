//! Operations that precede the read or program of a host page: map reads and read retries.

use super::TimedFlash;
use crate::device::event::{CompletionTarget, EventTag};
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::PageAddress;
use crate::timeline::breakdown::Cause;
use crate::timeline::{Op, Purpose, Report};

/// Transfer size of the host's memory over the link: one cache line.
const HOST_LINE_BYTES: u32 = 64;

impl<M: FastPath> TimedFlash<'_, M> {
    /// Do a map operation: a host page waits for it, a collection does not.
    pub(super) fn map_op(&mut self, op: Op<EventTag>) {
        match self.target.account {
            None => self.events.issue(self.at, Op { report: Report::Never, ..op }),
            account => self.before.push(Op { account, charge_as: Some(Cause::Mapping), ..op }),
        }
    }

    /// Read a page of the map, including ECC retries.
    pub(super) fn read_map_page(&mut self, from: PageAddress) {
        let transfers = self.events.timing.program_transfers;
        let op = Op { transfers, ..self.read_op(from, Purpose::Mapping, self.target.token) };
        for _ in 0..=std::mem::take(&mut self.flash.retries) {
            self.map_op(op);
        }
    }

    /// Fetch a map entry from host memory: one cache line over the link, after the host's latency.
    #[cold]
    pub(super) fn fetch_entry(&mut self) {
        let CompletionTarget { token, account, .. } = self.target;
        self.later = self.events.timing.host_memory_read_ns;
        self.events.charge_account(account, Cause::Mapping, self.later);
        let (report, lump) = (Report::Never, Some(Cause::Mapping));
        let op = Op { link_bytes: HOST_LINE_BYTES, ..Op::without_flash_time(token) };
        self.before.push(Op { report, account, charge_as: lump, ..op });
    }

    /// Repeat the last read as often as the ECC requires; the host page waits for that.
    #[inline(always)]
    pub(super) fn issue_retries(&mut self, from: PageAddress, purpose: Purpose) {
        if !M::MINIMAL && self.flash.retries > 0 {
            self.retry(from, purpose);
        }
    }

    #[cold]
    fn retry(&mut self, from: PageAddress, purpose: Purpose) {
        for _ in 0..std::mem::take(&mut self.flash.retries) {
            let CompletionTarget { token, account, .. } = self.target;
            let op = self.read_op(from, purpose, token);
            let report = Report::Never;
            self.before.push(Op { report, account, charge_as: Some(Cause::Retry), ..op });
        }
    }
}
