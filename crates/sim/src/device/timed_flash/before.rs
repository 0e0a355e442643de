//! What must have ended before the host's page is read or programmed: parts of the map, and reads in vain.

use super::TimedFlash;
use crate::device::event::{EventTag, Target};
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::Place;
use crate::timeline::breakdown::Cause;
use crate::timeline::{Op, Purpose, Report};

/// What comes over the link at a time of the host's memory: a line of its caches.
const HOST_LINE_BYTES: u32 = 64;

impl<M: FastPath> TimedFlash<'_, M> {
    /// An operation on the map: the host's page waits for it, a collection does not.
    pub(super) fn on_map(&mut self, op: Op<EventTag>) {
        match self.target.account {
            None => self.events.issue(self.at, Op { report: Report::Never, ..op }),
            account => self.before.push(Op { account, lump: Some(Cause::Mapping), ..op }),
        }
    }

    /// A page of the map is read, as often as the ECC asks for it.
    pub(super) fn read_map_page(&mut self, from: Place) {
        let transfers = self.events.timing.program_transfers;
        let op = Op { transfers, ..self.read_op(from, Purpose::Mapping, self.target.token) };
        for _ in 0..=std::mem::take(&mut self.flash.retries) {
            self.on_map(op);
        }
    }

    /// The entry of the map is in the host's memory: a line of that comes over the link, when it has answered.
    #[cold]
    pub(super) fn fetch_entry(&mut self) {
        let Target { token, account, .. } = self.target;
        self.later = self.events.timing.host_memory_read_ns;
        self.events.spent(account, Cause::Mapping, self.later);
        let (report, lump) = (Report::Never, Some(Cause::Mapping));
        let op = Op { link_bytes: HOST_LINE_BYTES, ..Op::timed_elsewhere(token) };
        self.before.push(Op { report, account, lump, ..op });
    }

    /// What was read is read again, as often as the ECC asked for it; the host's page waits for that.
    #[inline(always)]
    pub(super) fn read_again(&mut self, from: Place, purpose: Purpose) {
        if !M::MINIMAL && self.flash.retries > 0 {
            self.retry(from, purpose);
        }
    }

    #[cold]
    fn retry(&mut self, from: Place, purpose: Purpose) {
        for _ in 0..std::mem::take(&mut self.flash.retries) {
            let Target { token, account, .. } = self.target;
            let op = self.read_op(from, purpose, token);
            let report = Report::Never;
            self.before.push(Op { report, account, lump: Some(Cause::Retry), ..op });
        }
    }
}
