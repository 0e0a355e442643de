//! The `Device` trait of a simulated device.

use std::hint::cold_path;

use uflip_core::{
    Bytes, Completion, Counters, Device, DeviceInfo, Io, Mode, Nanos, Result, Ticket, ZoneReport,
};

use super::any::dispatch;
use super::backend::{Backend, Hardware};
use super::durable::CompletionRule;
use super::{PREFETCH_DISTANCE, SimDevice};
use crate::flash::fast_path::{AllFeatures, Minimal};
use crate::flash::geometry::Lpn;
use crate::ftl::extent::{NO_PAGES, PageExtent};
use crate::timeline::breakdown::SimBreakdown;

impl Device for SimDevice {
    type Request = Io;
    type Status = ();
    type Breakdown = SimBreakdown;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn wait_until(&mut self, t: Nanos) {
        if t.0 <= self.now {
            return;
        }
        let now = self.now;
        self.advance(now);
        // A device is idle if it has no I/O in flight. With I/Os in flight, the host only waits.
        if !self.host.is_idle() {
            self.advance(t.0);
            self.now = t.0;
            return;
        }
        self.set_cache_idle(true);
        self.flush(now);
        let SimDevice { backend, flash, events, .. } = self;
        let hardware = &mut Hardware { flash, events };
        dispatch!(backend, backend => backend.begin_idle(now, t.0, hardware));
        self.advance(t.0);
        dispatch!(&mut self.backend, backend => backend.end_idle());
        self.set_cache_idle(false);
        self.now = t.0;
    }

    #[inline]
    fn prefetch(&mut self, request: &Io) {
        let shape = self.flash.geometry.shape();
        let pages = PageExtent::of_io(request, u64::from(shape.page_bytes)).touched();
        if pages.end > shape.logical_pages || !request.mode.moves_data() {
            return;
        }
        let slot = &mut self.announced[self.announcements % PREFETCH_DISTANCE];
        self.announcements += 1;
        // The map entries of the earlier I/O are in the CPU cache by now.
        let before = std::mem::replace(slot, pages.clone());
        dispatch!(&self.backend, backend => {
            pages.for_each(|page| backend.prefetch(Lpn(page)));
            before.for_each(|page| backend.prefetch_old(Lpn(page)));
        });
    }

    fn submit(&mut self, request: &Io) -> Result<Ticket> {
        let now = self.now;
        self.advance(now);
        if request.mode == Mode::Write
            && dispatch!(&self.backend, backend => backend.is_read_only())
        {
            return Err(self.failure(request));
        }
        if now >= self.refuses_from {
            return Err(self.refusal_error());
        }
        let admitted;
        let mut request = request;
        if request.mode.requires_zones() || self.has_zones() {
            cold_path();
            admitted = self.admit(request)?;
            request = &admitted;
        }
        let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
        let extent = PageExtent::of_io(request, page_bytes);
        let rule = match request.mode {
            Mode::Read => CompletionRule::Accepted,
            Mode::Write => self.durable.completion_rule(),
            // It has no page of its own: see `begin`.
            _ => return Ok(self.enqueue(request, NO_PAGES, CompletionRule::Accepted)),
        };
        Ok(self.enqueue(request, extent, rule))
    }

    #[inline]
    fn next_completion(&mut self, before: Nanos) -> Option<Nanos> {
        self.settle(before.0).map(Nanos)
    }

    #[inline]
    fn complete(&mut self) -> Result<Completion<SimBreakdown>> {
        self.settle(u64::MAX);
        let end = self.host.first_end().expect("an I/O is outstanding");
        self.now = self.now.max(end);
        if let Some(io) = self.host.first_failed() {
            self.host.complete(&self.events.accounts);
            return Err(self.failure(&io));
        }
        // Constructed in place: a completion is as large as the list of causes.
        Ok(self.host.complete(&self.events.accounts))
    }

    fn counters(&self) -> Option<Counters> {
        let absorbed = self.cache.as_ref().map_or(0, |cache| cache.absorbed);
        let pages_absorbed = self.flash.counters.pages_absorbed + absorbed;
        Some(Counters { pages_absorbed, ..self.flash.counters })
    }

    fn zones(&self) -> Result<Option<ZoneReport>> {
        Ok(self.zone_report())
    }

    fn split(&self, _: usize) -> Result<Option<Vec<SimDevice>>> {
        // One device serves all submitters: they share its dies and channels.
        Ok(None)
    }
}

impl SimDevice {
    /// Submit a flush at [`Device::now`]. It completes when all data is durable whose writes had
    /// completed by then. The command takes no time of its own.
    pub fn submit_flush(&mut self) -> Ticket {
        self.advance(self.now);
        let nothing = Io { offset: Bytes(0), size: Bytes(0), mode: Mode::Write, stream: 0 };
        self.enqueue(&nothing, NO_PAGES, self.durable.flush())
    }

    /// Add a request to the host interface.
    #[inline(always)]
    fn enqueue(&mut self, request: &Io, extent: PageExtent, rule: CompletionRule) -> Ticket {
        let now = self.now;
        let (io, ticket) = self.host.submit(*request, extent, now, rule);
        if self.is_minimal() {
            self.begin::<Minimal>(io, request, extent, now);
        } else if !self.interface.is_limited() || self.interface.admit(io, request.mode) {
            self.begin::<AllFeatures>(io, request, extent, now);
        }
        ticket
    }
}
