//! What moves no data: a trim; and what follows where a host wants to know that its data is on flash
//! (`durable.rs`): a flush, by itself or at the end of a write.
//!
//! **Source**: NVM Express Base Specification 2.0, Dataset Management, Deallocate; ATA ACS-4, TRIM.
//! **Faithful**: what is deallocated needs not be kept; what is not on flash yet is not written there.
//! **Simplified**: a trim takes the controller as long as the command of a write, whatever it covers: maps
//! are changed in memory, and entries of a map on flash in the controller's own time.
//! **Ambiguous**: when it counts. Here when the controller has taken it in: writes whose data is still on
//! its way then are newer than the trim.

use uflip_core::{Io, Mode};

use super::SimDevice;
use super::any::{AnyBackend, dispatch};
use super::backend::{Backend, Hardware};
use super::cache::WriteCache;
use super::durable::Held;
use super::event::{DeviceEvent, IoIdx, PageIdx, Target};
use crate::flash::fast_path::Full;
use crate::flash::geometry::Lpn;
use crate::timeline::Timing;

impl SimDevice {
    /// A flush, a trim or a command to a zone is let in at `at`.
    #[cold]
    pub(super) fn begin_without_data(&mut self, index: IoIdx, io: &Io, at: u64) {
        if io.mode == Mode::Write {
            return self.begin_flush(index, at);
        }
        let Timing { command_write_ns: length, command_write_latency_ns: latency, .. } =
            self.events.timing;
        let taken_in = self.events.process(at, length, latency);
        if taken_in > at {
            self.events.remind(taken_in, DeviceEvent::CommandProcessed(index).into());
        } else {
            self.taken_in_without_data(index, io, taken_in);
        }
    }

    /// The controller has taken in a trim, or a command to a zone.
    #[cold]
    pub(super) fn taken_in_without_data(&mut self, index: IoIdx, io: &Io, at: u64) {
        match io.mode {
            Mode::Trim => self.trim_taken_in(index, io, at),
            _ => self.zone_taken_in(index, io, at),
        }
    }

    /// The controller has taken in a trim: what it covers is gone.
    #[cold]
    fn trim_taken_in(&mut self, index: IoIdx, io: &Io, at: u64) {
        self.events.reach(at);
        self.host.taken_in(index, at);
        self.trim(io.offset, io.size);
        let page = self.host.page(index, Lpn(0), at, &mut self.events.accounts);
        self.ended::<Full>(page, at);
    }

    /// A flush is let in at `at`, and waits for what the host takes for written.
    #[cold]
    pub(super) fn begin_flush(&mut self, index: IoIdx, at: u64) {
        self.events.reach(at);
        self.host.taken_in(index, at);
        let page = self.host.page(index, Lpn(0), at, &mut self.events.accounts);
        self.ended::<Full>(page, at);
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
            dispatch!(backend, backend => backend.fill_up(end, hardware));
        }
        self.fail_if_worn_out(index);
        if let Some(until) = self.cache.as_mut().and_then(WriteCache::end_epoch) {
            self.events.awaits_flush(end);
            return self.durable.hold(Held { page: index, since: end, until });
        }
        self.drain(index, end, taken);
    }

    /// What the cache has of a device that has worn out finds no place: whoever waits for that waits in vain.
    pub(super) fn fail_if_worn_out(&mut self, index: PageIdx) {
        if self.cache.is_some() && dispatch!(&self.backend, backend => backend.is_read_only()) {
            self.host.fail(index);
        }
    }

    /// Write to flash what the FTL keeps in memory, from `at` on: the page `index`, which would end at
    /// `end`, ends with that.
    pub(super) fn drain(&mut self, index: PageIdx, end: u64, at: u64) {
        let SimDevice { backend, flash, events, host, .. } = self;
        let hardware = &mut Hardware { flash, events };
        let waits =
            dispatch!(backend, backend => backend.drain(at, Target::drained(index), hardware));
        if let AnyBackend::Merged(merged) = backend
            && merged.keeps_in_vain()
        {
            host.fail(index);
        }
        if waits {
            // From then on it waits.
            host.arrived(index, end);
        } else {
            self.end::<Full>(index, end);
        }
    }

    /// What the FTL kept in memory when `index` was to end is on flash.
    pub(super) fn drained(&mut self, index: PageIdx, at: u64) {
        let since = self.host.page_of(index).arrived;
        let die = self.events.programmed_until(None, at);
        let merges = matches!(self.backend, AnyBackend::Merged(_));
        self.events.spent_on_flush(index.account(), die, merges, since, at);
        self.end::<Full>(index, at);
    }
}
