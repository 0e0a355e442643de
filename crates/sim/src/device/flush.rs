//! Commands without data (trim and flush), and durable writes, which wait for a flush.
//!
//! **Source**: NVM Express Base Specification 2.0, Dataset Management, Deallocate; ATA ACS-4, TRIM.
//! **Faithful**: deallocated data need not be kept; data that is not on flash yet is not written
//! there.
//! **Simplified**: a trim takes the controller as long as the command of a write, whatever it
//! covers: maps change in memory, and entries of a map on flash in the controller's own time.
//! **Ambiguous**: when a trim takes effect. Here when its command has been processed: writes whose
//! data still is on its way then are newer than the trim.

use std::collections::VecDeque;

use uflip_core::{Durability, Io, Mode};

use super::backend::{Backend, Hardware};
use super::cache::WriteCache;
use super::event::{CompletionTarget, DeviceEvent, Epoch, IoIdx, PageIdx};
use super::{AnyBackend, SimDevice, dispatch};
use crate::config::Profile;
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::Lpn;
use crate::timeline::Timing;

impl SimDevice {
    /// Start a flush, a trim or a zone command at `at`.
    #[cold]
    pub(super) fn begin_without_data(&mut self, index: IoIdx, io: &Io, at: u64) {
        if io.mode == Mode::Write {
            return self.begin_flush(index, at);
        }
        let Timing { command_write_ns: length, command_write_latency_ns: latency, .. } =
            self.events.timing;
        let command_processed = self.events.process(at, length, latency);
        if command_processed > at {
            self.events.remind(command_processed, DeviceEvent::CommandProcessed(index).into());
        } else {
            self.command_without_data_processed(index, io, command_processed);
        }
    }

    /// Continue a trim or a zone command after its command has been processed.
    #[cold]
    pub(super) fn command_without_data_processed(&mut self, index: IoIdx, io: &Io, at: u64) {
        match io.mode {
            Mode::Trim => self.trim_processed(index, io, at),
            _ => self.zone_command_accepted(index, io, at),
        }
    }

    /// Execute a trim after its command has been processed: the data it covers is gone.
    #[cold]
    fn trim_processed(&mut self, index: IoIdx, io: &Io, at: u64) {
        self.events.advance_to(at);
        self.host.command_processed(index, at);
        self.trim(io.offset, io.size);
        let page = self.host.page(index, Lpn(0), at, &mut self.events.accounts);
        self.end_page::<AllFeatures>(page, at);
    }

    /// Start a flush at `at`. It waits for all acknowledged data.
    #[cold]
    fn begin_flush(&mut self, index: IoIdx, at: u64) {
        self.events.advance_to(at);
        self.host.command_processed(index, at);
        let page = self.host.page(index, Lpn(0), at, &mut self.events.accounts);
        self.end_page::<AllFeatures>(page, at);
    }

    /// End the last page of an I/O when all data is durable; all of the I/O's data was accepted at
    /// `taken`.
    #[cold]
    pub(super) fn end_with_flush(&mut self, index: PageIdx, end: u64, taken: u64) {
        if self.cache.is_some() {
            self.set_cache_idle(true);
            self.flush(end);
            self.set_cache_idle(false);
            let SimDevice { backend, flash, events, .. } = self;
            let hardware = &mut Hardware { flash, events };
            dispatch!(backend, backend => backend.pad_for_flush(end, hardware));
        }
        self.fail_if_worn_out(index);
        if let Some(until) = self.cache.as_mut().and_then(WriteCache::end_epoch) {
            self.events.awaits_flush(end);
            return self.durable.hold(HeldCompletion { page: index, since: end, until });
        }
        self.drain(index, end, taken);
    }

    /// Fail the page if the device has worn out: cached data finds no space, so the wait would
    /// never end.
    pub(super) fn fail_if_worn_out(&mut self, index: PageIdx) {
        if self.cache.is_some() && dispatch!(&self.backend, backend => backend.is_read_only()) {
            self.host.fail(index);
        }
    }

    /// Write the FTL's buffered data to flash from `at` on. The page `index`, which would end at
    /// `end`, ends with that.
    pub(super) fn drain(&mut self, index: PageIdx, end: u64, at: u64) {
        let SimDevice { backend, flash, events, host, .. } = self;
        let hardware = &mut Hardware { flash, events };
        let waits = dispatch!(backend, backend => backend.drain(at, CompletionTarget::drained(index), hardware));
        if let AnyBackend::Merged(merged) = backend
            && merged.cannot_write_back()
        {
            host.fail(index);
        }
        if waits {
            // It waits from that time on.
            host.arrived(index, end);
        } else {
            self.end::<AllFeatures>(index, end);
        }
    }

    /// End the page `index`, which waited for the FTL's buffered data to reach flash.
    pub(super) fn drained(&mut self, index: PageIdx, at: u64) {
        let since = self.host.page_of(index).arrived;
        let die = self.events.programmed_until(None, at);
        let merges = matches!(self.backend, AnyBackend::Merged(_));
        self.events.spent_on_flush(index.account(), die, merges, since, at);
        self.end::<AllFeatures>(index, at);
    }
}

// Durability of writes, and the I/Os that wait for a flush.
//
// ```text
// fua       data ── past the write cache ──▶ flash ──▶ the write ends
// flush:3   data ──▶ cache, the write ends │ data ──▶ cache, the write ends │ data ──▶ cache ─┐
//                                                          all of the cache ──▶ flash ──▶ ◀──┘ it ends
// ```
//
// **Source**: [`Durability`].
// **Faithful**: no volatile data of a profile outlives the write that waits for it. This covers
// pages in the write cache and in the `rewrite_buffer`. With `power_loss_protection` nothing is
// volatile, and no write waits.
// **Simplified**: the flush command takes no time of its own. The map of an FTL needs no flush, as
// in drives that rebuild it from flash. A page whose program fails at the end of the device's life
// is not reported.
// **Ambiguous**: how drives implement FUA. Here a write bypasses the cache; cached pages of its
// range are written before it.

/// The condition for the completion of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Promise")]
pub(crate) enum CompletionRule {
    /// The controller has accepted its data.
    #[serde(rename = "Taken")]
    Accepted,
    /// Its data is on flash: it bypasses the cache.
    Durable,
    /// All data accepted before is on flash; also the condition of a flush command.
    Flushed,
}

/// The configured durability, and the I/Os that wait for it.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Durable {
    durability: Durability,
    /// Number of writes since the durability was set.
    written: u64,
    /// The last pages of I/Os that wait for a flush, oldest first.
    held: VecDeque<HeldCompletion>,
    /// Capacitors protect all accepted data from a power loss.
    protected: bool,
}

/// The last page of an I/O that completes when a flush does.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Held")]
pub(crate) struct HeldCompletion {
    pub(crate) page: PageIdx,
    pub(crate) since: u64,
    pub(crate) until: Epoch,
}

impl Durable {
    /// Create the default state for `profile`.
    pub(crate) fn for_profile(profile: &Profile) -> Durable {
        let protected = profile.power_loss.is_some_and(|part| part.power_loss_protection);
        Durable { protected, ..Durable::default() }
    }

    /// Return the completion rule of a flush command.
    pub(crate) fn flush(&self) -> CompletionRule {
        if self.protected { CompletionRule::Accepted } else { CompletionRule::Flushed }
    }

    /// Drop all waiting I/Os.
    pub(crate) fn drop_waiting(&mut self) {
        self.held.clear();
    }

    /// Set the durability of the writes from now on.
    pub(crate) fn set(&mut self, durability: Durability) {
        (self.durability, self.written) = (durability, 0);
    }

    /// Return the completion rule of the next write.
    #[inline]
    pub(crate) fn completion_rule(&mut self) -> CompletionRule {
        self.written += 1;
        match self.durability {
            _ if self.protected => CompletionRule::Accepted,
            Durability::Fua => CompletionRule::Durable,
            other if other.flushes_after(self.written - 1) => CompletionRule::Flushed,
            _ => CompletionRule::Accepted,
        }
    }

    pub(crate) fn hold(&mut self, held: HeldCompletion) {
        self.held.push_back(held);
    }

    /// Return since when the oldest I/O has waited.
    pub(crate) fn held_since(&self) -> Option<u64> {
        self.held.front().map(|held| held.since)
    }

    /// Remove and return the oldest waiting I/O if `is_flushed` holds for its epoch.
    pub(crate) fn release(&mut self, is_flushed: impl Fn(Epoch) -> bool) -> Option<HeldCompletion> {
        let over = is_flushed(self.held.front()?.until);
        if over { self.held.pop_front() } else { None }
    }
}
