//! The path of an I/O through the device: from the admitted command to its last page.

use uflip_core::{Io, Mode};

use super::backend::{Backend, Hardware, Write};
use super::cache::{bytes_in, sectors_of};
use super::event::{CompletionTarget, DeviceEvent, EventTag, IoIdx, PageIdx};
use super::host_interface::HostPage;
use super::{AnyBackend, SimDevice, dispatch};
use crate::flash::fast_path::{AllFeatures, FastPath, Minimal};
use crate::flash::geometry::{Geometry, Lpn, PlaneIdx};
use crate::ftl::extent::PageExtent;
use crate::timeline::breakdown::Cause;

/// Events per moved page, and the smallest event budget of a device.
const EVENTS_PER_MOVE: u64 = 16;
const MIN_EVENTS: u64 = 1 << 20;

impl SimDevice {
    /// Return whether the data of `request` may take the link now, although its command is still
    /// being processed. True for a write while no read is in flight: every later request is also
    /// processed later. False for a write-through request with a cache: its pages first leave the
    /// cache.
    #[inline(always)]
    fn may_reserve_link<M: FastPath>(&self, index: IoIdx, request: &Io) -> bool {
        let in_order = self.events.timing.writes_in_order;
        if M::MINIMAL {
            return request.mode == Mode::Write && in_order && !self.host.has_open_reads();
        }
        let may_reserve = !self.host.has_open_reads() && self.backend.may_reserve_link();
        let bypasses_cache = self.cache.is_some() && self.host.is_write_through(index);
        request.mode == Mode::Write && in_order && may_reserve && !bypasses_cache
    }

    /// Return whether the device has no optional feature, and nothing records its work.
    #[inline(always)]
    pub(super) fn is_minimal(&self) -> bool {
        self.minimal && !self.events.is_watched()
    }

    /// Return when the processor has processed the command of `request`, which arrives at `at`.
    #[inline(always)]
    fn process_command(&mut self, request: &Io, at: u64) -> u64 {
        let timing = &self.events.timing;
        if request.mode != Mode::Read {
            let latency = timing.command_write_latency_ns;
            return self.events.process(at, timing.command_write_ns, latency);
        }
        let is_sequential = request.offset.0 == self.read_end;
        self.read_end = request.offset.0 + request.size.0;
        let seek_ns = if is_sequential { 0 } else { timing.seek_read_ns };
        let latency = timing.command_read_latency_ns;
        self.events.process(at, timing.command_read_ns + seek_ns, latency)
    }

    /// Process events until `until` or the first completion, whichever is earlier; return that
    /// completion.
    #[inline(always)]
    pub(super) fn settle(&mut self, until: u64) -> Option<u64> {
        if self.is_minimal() {
            self.settle_of::<Minimal>(until)
        } else {
            self.settle_of::<AllFeatures>(until)
        }
    }

    #[inline(always)]
    fn settle_of<M: FastPath>(&mut self, until: u64) -> Option<u64> {
        self.reset_event_budget();
        // Stop after the last I/O: the host may submit another at any time.
        if self.host.is_idle() {
            return None;
        }
        loop {
            let end = self.host.first_end_or_never();
            match self.events.next_undisturbed::<M>(end.min(until)) {
                Some((at, token)) => self.dispatch::<M>(at, token),
                None if end.min(until) == u64::MAX => self.fail_stuck_ios(),
                None => return self.host.first_end().filter(|end| *end <= until),
            }
        }
    }

    /// Fail the I/Os that have not completed although no event is left.
    #[cold]
    pub(super) fn fail_stuck_ios(&mut self) {
        let SimDevice { backend, flash, events, now, .. } = self;
        let now = events.now().max(*now);
        let hardware = &mut Hardware { flash, events };
        dispatch!(backend, backend => backend.fail_stuck_ios(now, hardware));
    }

    /// Reset the event budget, once per host call: every page may move as often as a block has
    /// pages. The budget stops a corrupt snapshot from looping for ever.
    #[inline]
    pub(super) fn reset_event_budget(&mut self) {
        self.events.set_event_budget(self.event_budget);
    }

    /// Return the event budget of [`SimDevice::reset_event_budget`].
    pub(super) fn event_budget(geometry: &Geometry) -> u64 {
        let moves = u64::from(geometry.pages()) * u64::from(geometry.shape().pages_per_block);
        MIN_EVENTS + EVENTS_PER_MOVE * moves
    }

    /// Process all events that are due by `until`.
    #[inline]
    pub(super) fn advance(&mut self, until: u64) {
        self.reset_event_budget();
        if self.events.is_due(until) {
            if self.is_minimal() {
                self.catch_up::<Minimal>(until);
            } else {
                self.catch_up::<AllFeatures>(until);
            }
        }
    }

    #[inline(never)]
    fn catch_up<M: FastPath>(&mut self, until: u64) {
        while let Some((at, token)) = self.events.next_undisturbed::<M>(until) {
            self.dispatch::<M>(at, token);
        }
    }

    /// Handle one event. Each event that occurs for every page has an inlined copy of its branch of
    /// [`SimDevice::dispatch_rare`].
    #[inline(always)]
    pub(super) fn dispatch<M: FastPath>(&mut self, at: u64, token: EventTag) {
        self.flash.clock = at;
        if let Some(plane) = token.collecting_plane() {
            self.collect::<M>(at, plane);
        } else if let Some(page) = token.arrived_page() {
            self.arrived::<M>(page, at);
        } else if let Some(page) = token.ended_page() {
            self.end_page::<M>(page, at);
        } else {
            self.dispatch_rare(at, token.event());
        }
    }

    /// Take the next step of the garbage collection of `plane`.
    #[inline(always)]
    fn collect<M: FastPath>(&mut self, at: u64, plane: PlaneIdx) {
        let SimDevice { backend, flash, events, .. } = self;
        let hardware = &mut Hardware { flash, events };
        match backend {
            AnyBackend::Paged(paged) if M::MINIMAL => paged.step::<M>(plane, at, hardware),
            backend => {
                dispatch!(backend, backend => backend.handle_event(DeviceEvent::Collect(plane), at, hardware));
            }
        }
    }

    #[inline(never)]
    fn dispatch_rare(&mut self, at: u64, event: DeviceEvent) {
        match event {
            DeviceEvent::CommandProcessed(index) => {
                let (io, extent) = self.host.io(index);
                self.command_processed::<AllFeatures>(index, &io, extent, at);
            }
            DeviceEvent::DataInMemory(page) => self.arrived::<AllFeatures>(page, at),
            DeviceEvent::PageDone(page) => self.end_page::<AllFeatures>(page, at),
            DeviceEvent::PageFailed(page) => {
                self.host.fail(page);
                self.end_page::<AllFeatures>(page, at);
            }
            DeviceEvent::Flushed(epoch, page) => self.flushed(page, epoch, at),
            DeviceEvent::CommandSlotFreed => {
                if let Some(next) = self.interface.next() {
                    let (io, extent) = self.host.io(next);
                    self.begin::<AllFeatures>(next, &io, extent, at);
                }
            }
            DeviceEvent::Drained(page) => self.drained(page, at),
            DeviceEvent::CompletionPosted(io) => self.posted(io, at),
            DeviceEvent::CoalescingTimeout(raised) => self.coalesced(raised, at),
            DeviceEvent::Collect(plane) => self.collect::<AllFeatures>(at, plane),
            DeviceEvent::PlanStart(_)
            | DeviceEvent::MovePlanned(..)
            | DeviceEvent::ProgramsDone(_)
            | DeviceEvent::StepDone(..)
            | DeviceEvent::GatheredPageProgrammed(_)
            | DeviceEvent::UnitRead(_) => {
                let SimDevice { backend, flash, events, .. } = self;
                let hardware = &mut Hardware { flash, events };
                dispatch!(backend, backend => backend.handle_event(event, at, hardware));
            }
        }
    }

    /// Start an admitted I/O at `at`: the processor processes its command.
    #[inline(always)]
    pub(super) fn begin<M: FastPath>(
        &mut self,
        index: IoIdx,
        io: &Io,
        extent: PageExtent,
        at: u64,
    ) {
        if extent.touched().is_empty() {
            return self.begin_without_data(index, io, at);
        }
        let command_processed = self.process_command(io, at);
        if command_processed > at && !self.may_reserve_link::<M>(index, io) {
            self.events.remind(command_processed, DeviceEvent::CommandProcessed(index).into());
        } else {
            self.command_processed::<M>(index, io, extent, command_processed);
        }
    }

    /// Continue an I/O whose command has been processed: read its pages, or send their data over
    /// the link.
    #[inline(always)]
    fn command_processed<M: FastPath>(
        &mut self,
        index: IoIdx,
        io: &Io,
        extent: PageExtent,
        at: u64,
    ) {
        self.flash.clock = at;
        self.host.command_processed(index, at);
        match io.mode {
            Mode::Read => return self.read(index, io, extent, at),
            Mode::Write => {}
            _ => return self.command_without_data_processed(index, io, at),
        }
        let write_through = !M::MINIMAL && self.host.is_write_through(index);
        if write_through {
            self.evict(extent, at);
        }
        if !M::MINIMAL
            && (self.cache.is_none() || write_through)
            && self.backend.plans_whole_writes()
        {
            return self.write_contiguously(index, io, extent, at);
        }
        for page in extent.touched().map(Lpn) {
            let (of_host, end) = self.send::<M>(index, io, page, at);
            self.events.remind(end, DeviceEvent::DataInMemory(of_host).into());
        }
    }

    /// Write the pages of an I/O back to back, without pages of another I/O between them.
    #[inline(always)]
    fn write_contiguously(&mut self, index: IoIdx, io: &Io, extent: PageExtent, at: u64) {
        self.events.advance_to(at);
        for page in extent.touched().map(Lpn) {
            let (of_host, end) = self.send::<AllFeatures>(index, io, page, at);
            self.note_arrival(of_host);
            let (target, through) =
                (CompletionTarget::host(of_host), self.host.is_write_through(index));
            self.write::<AllFeatures>(Write { page, extent, target, write_through: through }, end);
        }
    }

    /// Send the data of a page of an I/O over the link; return its index and its arrival time.
    #[inline(always)]
    fn send<M: FastPath>(&mut self, index: IoIdx, io: &Io, page: Lpn, at: u64) -> (PageIdx, u64) {
        let SimDevice { flash, events, host, .. } = self;
        let page_bytes = u64::from(flash.geometry.shape().page_bytes);
        let of_host = host.page(index, page, at, &mut events.accounts);
        if !M::MINIMAL {
            events.assign_account(of_host.account(), || host.number_of(index));
        }
        let end = events.send(at, bytes_in(io, page.0, page_bytes));
        events.charge_account(Some(of_host.account()), Cause::Link, end - at);
        (of_host, end)
    }

    /// Read the pages of an I/O.
    fn read(&mut self, index: IoIdx, io: &Io, extent: PageExtent, at: u64) {
        if self.flash.geometry.units() > 1 {
            return self.read_units(index, io, extent, at);
        }
        let SimDevice { backend, flash, events, host, cache, sector_bytes, .. } = self;
        let page_bytes = u64::from(flash.geometry.shape().page_bytes);
        for page in extent.touched() {
            let bytes = bytes_in(io, page, page_bytes);
            let page = Lpn(page);
            let of_host = host.page(index, page, at, &mut events.accounts);
            events.assign_account(of_host.account(), || host.number_of(index));
            let target = CompletionTarget::host(of_host);
            let cached = cache.as_ref().is_some_and(|cache| {
                cache.holds(page, sectors_of(io, page, page_bytes, *sector_bytes))
            });
            if cached {
                events.deliver(at, at, bytes, target.op());
            } else {
                let hardware = &mut Hardware { flash, events };
                dispatch!(backend, backend => backend.read(page, bytes, at, target, hardware));
            }
        }
    }

    /// Handle the data of a page to be written, which has arrived in the controller's memory.
    #[inline(always)]
    fn arrived<M: FastPath>(&mut self, index: PageIdx, at: u64) {
        let HostPage { io, page, .. } = self.host.page_of(index);
        if M::MINIMAL {
            let extent = self.host.extent(io);
            let write =
                Write { page, extent, target: CompletionTarget::host(index), write_through: false };
            return self.write::<M>(write, at);
        }
        self.note_arrival(index);
        if let Some(cache) = &mut self.cache
            && !self.host.is_write_through(io)
        {
            let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
            let (io, _) = self.host.io(io);
            let sectors = sectors_of(&io, page, page_bytes, self.sector_bytes);
            self.host.arrived(index, at);
            if cache.offer(index, page, sectors, io.stream) {
                self.end_page::<M>(index, at);
            } else {
                self.events.awaits_flush(at);
            }
            return self.flush(at);
        }
        let extent = self.host.extent(io);
        let through = self.host.is_write_through(io);
        self.write::<M>(
            Write { page, extent, target: CompletionTarget::host(index), write_through: through },
            at,
        );
    }

    #[inline(always)]
    pub(super) fn write<M: FastPath>(&mut self, mut write: Write, at: u64) {
        let SimDevice { backend, flash, events, .. } = self;
        let hardware = &mut Hardware { flash, events };
        if M::MINIMAL
            && let AnyBackend::Paged(paged) = backend
        {
            return paged.allocate_and_write::<M>(&write, at, hardware);
        }
        dispatch!(backend, backend => backend.write(&mut write, at, hardware));
    }

    /// End a host page at `end`, unless its I/O waits for a flush of volatile data.
    #[inline(always)]
    pub(super) fn end_page<M: FastPath>(&mut self, index: PageIdx, end: u64) {
        if M::MINIMAL {
            // The device has no volatile data.
            return self.end::<M>(index, end);
        }
        match self.host.before_flush(index, end) {
            None => self.end::<M>(index, end),
            Some(taken) => self.end_with_flush(index, end, taken),
        }
    }

    #[inline(always)]
    pub(super) fn end<M: FastPath>(&mut self, index: PageIdx, end: u64) {
        if !M::MINIMAL && self.interrupts.is_some() {
            return self.end_pending_notification(index, end);
        }
        let Some((mode, end)) = self.host.end_page(index, end) else { return };
        if M::MINIMAL {
            return;
        }
        if self.interface.is_limited() {
            self.events.remind(end, DeviceEvent::CommandSlotFreed.into());
        }
        if mode == Mode::Read {
            let SimDevice { backend, flash, events, .. } = self;
            let hardware = &mut Hardware { flash, events };
            dispatch!(backend, backend => backend.after_read(end, hardware));
        }
    }
}
