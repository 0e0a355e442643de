//! What follows where a host wants to know that its data is on flash (`durable.rs`): a flush, by itself or
//! at the end of a write.

use super::SimDevice;
use super::any::either;
use super::backend::{Backend, Hardware};
use super::cache::WriteCache;
use super::durable::Held;
use super::token::{IoIdx, PageIdx, Target};
use crate::flash::geometry::Lpn;
use crate::timeline::breakdown::Cause;

impl SimDevice {
    /// A flush is let in at `at`, and waits for what the host takes for written.
    #[cold]
    pub(super) fn begin_flush(&mut self, index: IoIdx, at: u64) {
        self.events.reach(at);
        self.host.taken_in(index, at);
        let page = self.host.page(index, Lpn(0), at, &mut self.events.accounts);
        self.ended(page, at);
    }

    /// The last page of an I/O, all of which was `taken` then, ends when everything is durable.
    #[cold]
    pub(super) fn end_with_flush(&mut self, index: PageIdx, end: u64, taken: u64) {
        if self.cache.is_some() {
            self.set_cache_idle(true);
            self.flush(end);
            self.set_cache_idle(false);
            let SimDevice { backend, flash, events, .. } = self;
            let hardware = &mut Hardware { flash, events };
            either!(backend, backend => backend.fill_up(end, hardware));
        }
        if let Some(until) = self.cache.as_mut().and_then(WriteCache::end_epoch) {
            return self.durable.hold(Held { page: index, since: end, until });
        }
        self.drain(index, end, taken);
    }

    /// Write to flash what the FTL keeps in memory, from `at` on: the page `index`, which would end at
    /// `end`, ends with that.
    pub(super) fn drain(&mut self, index: PageIdx, end: u64, at: u64) {
        let SimDevice { backend, flash, events, host, .. } = self;
        let hardware = &mut Hardware { flash, events };
        if either!(backend, backend => backend.drain(at, Target::drained(index), hardware)) {
            // From then on it waits.
            host.arrived(index, end);
        } else {
            self.end(index, end);
        }
    }

    /// What the FTL kept in memory when `index` was to end is on flash.
    pub(super) fn drained(&mut self, index: PageIdx, at: u64) {
        let since = self.host.page_of(index).arrived;
        self.events.spent(Some(index.account()), Cause::CacheWait, at - since);
        self.end(index, at);
    }
}
