//! Write-cache traffic: pages that are flushed, and host pages that wait for a cache slot.

use uflip_core::Io;

use super::SimDevice;
use super::any::AnyBackend;
use super::backend::Write;
use super::cache::{Flushed, WriteCache};
use super::event::{CompletionTarget, Epoch, PageIdx};
use super::inflight_flushes::Sectors;
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{DieIdx, Lpn};
use crate::ftl::extent::PageExtent;

impl SimDevice {
    pub(super) fn set_cache_idle(&mut self, idle: bool) {
        if let Some(cache) = &mut self.cache {
            cache.idle = idle;
        }
    }

    /// Write the pages to flash that the cache evicts next.
    pub(super) fn flush(&mut self, at: u64) {
        while let Some(flushed) = self.cache.as_mut().and_then(WriteCache::next_flush) {
            self.write_flushed(flushed, at);
        }
    }

    fn write_flushed(&mut self, flushed: Flushed, at: u64) {
        let Flushed { page, epoch, .. } = flushed;
        self.events.contents.iter_mut().for_each(|contents| contents.page_left_cache(page.0));
        let extent = flushed.extent();
        let through = false; // an I/O that waits for it waits for its epoch
        let write = Write {
            page,
            extent,
            target: CompletionTarget::flush(page, epoch),
            write_through: through,
        };
        self.write::<AllFeatures>(write, at);
    }

    /// Flush the cached pages of a write that bypasses the cache.
    pub(super) fn evict(&mut self, extent: PageExtent, at: u64) {
        if self.backend.plans_whole_writes() && self.flash.has_scrubs(at) {
            self.events.advance_to(at); // a scrub begins now
        }
        for page in extent.touched().map(Lpn) {
            if let Some(flushed) = self.cache.as_mut().and_then(|cache| cache.evict(page)) {
                self.write_flushed(flushed, at);
            }
        }
    }

    /// Handle a flushed page that is on flash: its slot is free for another.
    pub(super) fn flushed(&mut self, page: Lpn, epoch: Epoch, at: u64) {
        let cache = self.cache.as_mut().expect("a flushed page came from the cache");
        cache.flushed(page, epoch);
        while let Some(cache) = &self.cache
            && let Some(held) = self.durable.release(|until| cache.is_flushed(until))
        {
            self.record_cache_wait(held.page, held.since, page, at);
            self.fail_if_worn_out(held.page);
            self.drain(held.page, at, at);
        }
        while let Some(index) = self.cache.as_mut().and_then(WriteCache::admit) {
            self.record_cache_wait(index, self.host.page_of(index).arrived, page, at);
            self.end_page::<AllFeatures>(index, at);
        }
        let first = self.cache.as_ref().and_then(WriteCache::first_waiting);
        let arrived = first.map(|index| self.host.page_of(index).arrived);
        self.events.awaited_flush(arrived.into_iter().chain(self.durable.held_since()).min());
        self.flush(at);
    }

    /// Charge the host page `index` for its wait for a cache slot, from `since` until `flushed`
    /// was on flash at `at`.
    fn record_cache_wait(&mut self, index: PageIdx, since: u64, flushed: Lpn, at: u64) {
        let die = self.die_of_flush(flushed, at);
        let merges = matches!(self.backend, AnyBackend::Merged(_));
        self.events.spent_on_flush(index.account(), die, merges, since, at);
        self.events.note_cache_wait(index.account(), die, flushed, since, at);
    }

    /// Return the die whose program of `page` ended at `at`. The map may have a newer address by now.
    fn die_of_flush(&self, page: Lpn, at: u64) -> Option<DieIdx> {
        let last_die = self.backend.lookup(page).map(|address| self.flash.geometry.die_at(address));
        self.events.programmed_until(last_die, at)
    }
}

/// Return the sectors of `page` that `io` touches, one bit each.
pub(super) fn sectors_of(io: &Io, page: Lpn, page_bytes: u64, sector_bytes: u64) -> Sectors {
    let from = io.offset.0.saturating_sub(u64::from(page.0) * page_bytes);
    let sectors = bytes_in(io, page.0, page_bytes) / sector_bytes;
    u64::MAX >> (64 - sectors) << (from / sector_bytes)
}

/// Return the number of bytes of `page` that `io` touches.
#[inline]
pub(super) fn bytes_in(io: &Io, page: u32, page_bytes: u64) -> u64 {
    let begin = u64::from(page) * page_bytes;
    let end = io.offset.0 + io.size.0;
    end.min(begin + page_bytes) - io.offset.0.max(begin)
}
