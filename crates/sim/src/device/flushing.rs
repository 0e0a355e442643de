//! Commands without data: trim, flush, and the flush at the end of a durable write (`durable.rs`).
//!
//! **Source**: NVM Express Base Specification 2.0, Dataset Management, Deallocate; ATA ACS-4, TRIM.
//! **Faithful**: deallocated data need not be kept; data that is not on flash yet is not written
//! there.
//! **Simplified**: a trim takes the controller as long as the command of a write, whatever it
//! covers: maps change in memory, and entries of a map on flash in the controller's own time.
//! **Ambiguous**: when a trim takes effect. Here when its command has been processed: writes whose
//! data still is on its way then are newer than the trim.

use uflip_core::{Io, Mode};

use super::SimDevice;
use super::any::{AnyBackend, dispatch};
use super::backend::{Backend, Hardware};
use super::cache::WriteCache;
use super::durable::HeldCompletion;
use super::event::{CompletionTarget, DeviceEvent, IoIdx, PageIdx};
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
    pub(super) fn begin_flush(&mut self, index: IoIdx, at: u64) {
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
