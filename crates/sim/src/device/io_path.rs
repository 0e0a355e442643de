//! What happens in a device, and what follows: from an I/O that is let in to its last page.

use uflip_core::{Io, Mode};

use super::SimDevice;
use super::any::{AnyBackend, dispatch};
use super::backend::{Backend, Hardware, Write};
use super::cached::{bytes_in, sectors_of};
use super::event::{DeviceEvent, EventTag, IoIdx, PageIdx, Target};
use super::host::HostPage;
use crate::flash::fast_path::{FastPath, Full, Minimal};
use crate::flash::geometry::{Geometry, Lpn, PlaneIdx};
use crate::ftl::extent::Extent;
use crate::timeline::breakdown::Cause;

/// What happens for a page that is moved, and what may happen on the smallest device.
const EVENTS_PER_MOVE: u64 = 16;
const EVENTS_LEAST: u64 = 1 << 20;

impl SimDevice {
    /// Whether the data of `request`, which the processor takes in now, goes over the link before anything
    /// else that may still want to, so that the link need not wait with it until then. True of a write
    /// while no read is under way: whatever comes later is also taken in later. Not of one that goes past
    /// a cache, whose pages have to leave that when it is taken in.
    #[inline(always)]
    fn is_next_on_the_link<M: FastPath>(&self, index: IoIdx, request: &Io) -> bool {
        let in_order = self.events.timing.writes_in_order;
        if M::MINIMAL {
            return request.mode == Mode::Write && in_order && !self.host.has_open_reads();
        }
        let alone = !self.host.has_open_reads() && self.backend.takes_ahead();
        let past_a_cache = self.cache.is_some() && self.host.is_write_through(index);
        request.mode == Mode::Write && in_order && alone && !past_a_cache
    }

    /// Whether it has nothing that a device need not have, and nobody records what it does.
    #[inline(always)]
    pub(super) fn is_minimal(&self) -> bool {
        self.minimal && !self.events.is_watched()
    }

    /// `request` comes to the processor at `at`: when that has taken it in.
    #[inline(always)]
    fn command(&mut self, request: &Io, at: u64) -> u64 {
        let timing = &self.events.timing;
        if request.mode != Mode::Read {
            let latency = timing.command_write_latency_ns;
            return self.events.process(at, timing.command_write_ns, latency);
        }
        let goes_on = request.offset.0 == self.read_end;
        self.read_end = request.offset.0 + request.size.0;
        let seek_ns = if goes_on { 0 } else { timing.seek_read_ns };
        let latency = timing.command_read_latency_ns;
        self.events.process(at, timing.command_read_ns + seek_ns, latency)
    }

    /// Let happen what happens until `until` or the first end of an I/O, if that is earlier; returns it.
    #[inline(always)]
    pub(super) fn settle(&mut self, until: u64) -> Option<u64> {
        if self.is_minimal() {
            self.settle_of::<Minimal>(until)
        } else {
            self.settle_of::<Full>(until)
        }
    }

    #[inline(always)]
    fn settle_of<M: FastPath>(&mut self, until: u64) -> Option<u64> {
        self.host_has_its_turn();
        // Nothing is known of the time after the last I/O: the host may come back at any moment.
        if self.host.is_idle() {
            return None;
        }
        loop {
            let end = self.host.first_end_or_never();
            match self.events.next_undisturbed::<M>(end.min(until)) {
                Some((at, token)) => self.dispatch::<M>(at, token),
                None if end.min(until) == u64::MAX => self.is_stuck(),
                None => return self.host.first_end().filter(|end| *end <= until),
            }
        }
    }

    /// Nothing will happen any more, and an I/O has not ended.
    #[cold]
    pub(super) fn is_stuck(&mut self) {
        let SimDevice { backend, flash, events, now, .. } = self;
        let now = events.now().max(*now);
        let hardware = &mut Hardware { flash, events };
        dispatch!(backend, backend => backend.stuck(now, hardware));
    }

    /// The host asks for something: until then no more can have happened than that every page was moved
    /// as often as a block has pages. A file may hold a device that would go on for ever.
    #[inline]
    pub(super) fn host_has_its_turn(&mut self) {
        self.events.allow(self.events_most);
    }

    /// What [`SimDevice::host_has_its_turn`] allows.
    pub(super) fn most_events(geometry: &Geometry) -> u64 {
        let moves = u64::from(geometry.pages()) * u64::from(geometry.shape().pages_per_block);
        EVENTS_LEAST + EVENTS_PER_MOVE * moves
    }

    /// Let everything happen that is due by `until`.
    #[inline]
    pub(super) fn advance(&mut self, until: u64) {
        self.host_has_its_turn();
        if self.events.is_due(until) {
            if self.is_minimal() {
                self.catch_up::<Minimal>(until);
            } else {
                self.catch_up::<Full>(until);
            }
        }
    }

    #[inline(never)]
    fn catch_up<M: FastPath>(&mut self, until: u64) {
        while let Some((at, token)) = self.events.next_undisturbed::<M>(until) {
            self.dispatch::<M>(at, token);
        }
    }

    /// What happens with every page has a copy of [`SimDevice::hear`] each, in which there is nothing else.
    #[inline(always)]
    pub(super) fn dispatch<M: FastPath>(&mut self, at: u64, token: EventTag) {
        self.flash.clock = at;
        if let Some(plane) = token.collects() {
            self.collect::<M>(at, plane);
        } else if let Some(page) = token.arrived() {
            self.arrived::<M>(page, at);
        } else if let Some(page) = token.ended() {
            self.ended::<M>(page, at);
        } else {
            self.dispatch_rare(at, token.event());
        }
    }

    /// The next step of the collection of `plane`.
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
                self.taken_in::<Full>(index, &io, extent, at);
            }
            DeviceEvent::DataInMemory(page) => self.arrived::<Full>(page, at),
            DeviceEvent::PageDone(page) => self.ended::<Full>(page, at),
            DeviceEvent::PageFailed(page) => {
                self.host.fail(page);
                self.ended::<Full>(page, at);
            }
            DeviceEvent::Flushed(epoch, page) => self.flushed(page, epoch, at),
            DeviceEvent::CommandSlotFreed => {
                if let Some(next) = self.interface.next() {
                    let (io, extent) = self.host.io(next);
                    self.begin::<Full>(next, &io, extent, at);
                }
            }
            DeviceEvent::Drained(page) => self.drained(page, at),
            DeviceEvent::CompletionPosted(io) => self.posted(io, at),
            DeviceEvent::CoalescingTimeout(raised) => self.coalesced(raised, at),
            DeviceEvent::Collect(plane) => self.collect::<Full>(at, plane),
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

    /// An I/O is let in at `at`: the controller's processor takes it in.
    #[inline(always)]
    pub(super) fn begin<M: FastPath>(&mut self, index: IoIdx, io: &Io, extent: Extent, at: u64) {
        if extent.touched().is_empty() {
            return self.begin_without_data(index, io, at);
        }
        let taken_in = self.command(io, at);
        if taken_in > at && !self.is_next_on_the_link::<M>(index, io) {
            self.events.remind(taken_in, DeviceEvent::CommandProcessed(index).into());
        } else {
            self.taken_in::<M>(index, io, extent, taken_in);
        }
    }

    /// The controller has taken in an I/O at `at`: its pages are read, or their data comes over the link.
    #[inline(always)]
    fn taken_in<M: FastPath>(&mut self, index: IoIdx, io: &Io, extent: Extent, at: u64) {
        self.flash.clock = at;
        self.host.taken_in(index, at);
        match io.mode {
            Mode::Read => return self.read(index, io, extent, at),
            Mode::Write => {}
            _ => return self.taken_in_without_data(index, io, at),
        }
        let write_through = !M::MINIMAL && self.host.is_write_through(index);
        if write_through {
            self.expel(extent, at);
        }
        if !M::MINIMAL
            && (self.cache.is_none() || write_through)
            && self.backend.plans_whole_writes()
        {
            return self.write_as_one(index, io, extent, at);
        }
        for page in extent.touched().map(Lpn) {
            let (of_host, end) = self.send::<M>(index, io, page, at);
            self.events.remind(end, DeviceEvent::DataInMemory(of_host).into());
        }
    }

    /// Write the pages of an I/O one after the other, none of another one's between them.
    #[inline(always)]
    fn write_as_one(&mut self, index: IoIdx, io: &Io, extent: Extent, at: u64) {
        self.events.reach(at);
        for page in extent.touched().map(Lpn) {
            let (of_host, end) = self.send::<Full>(index, io, page, at);
            self.note_arrival(of_host);
            let (target, through) = (Target::host(of_host), self.host.is_write_through(index));
            self.write::<Full>(Write { page, extent, target, through }, end);
        }
    }

    /// The data of a page of an I/O goes over the link; returns when it is there.
    #[inline(always)]
    fn send<M: FastPath>(&mut self, index: IoIdx, io: &Io, page: Lpn, at: u64) -> (PageIdx, u64) {
        let SimDevice { flash, events, host, .. } = self;
        let page_bytes = u64::from(flash.geometry.shape().page_bytes);
        let of_host = host.page(index, page, at, &mut events.accounts);
        if !M::MINIMAL {
            events.works_for(of_host.account(), || host.number_of(index));
        }
        let end = events.send(at, bytes_in(io, page.0, page_bytes));
        events.spent(Some(of_host.account()), Cause::Link, end - at);
        (of_host, end)
    }

    /// Read the pages of an I/O.
    fn read(&mut self, index: IoIdx, io: &Io, extent: Extent, at: u64) {
        if self.flash.geometry.units() > 1 {
            return self.read_units(index, io, extent, at);
        }
        let SimDevice { backend, flash, events, host, cache, sector_bytes, .. } = self;
        let page_bytes = u64::from(flash.geometry.shape().page_bytes);
        for page in extent.touched() {
            let bytes = bytes_in(io, page, page_bytes);
            let page = Lpn(page);
            let of_host = host.page(index, page, at, &mut events.accounts);
            events.works_for(of_host.account(), || host.number_of(index));
            let target = Target::host(of_host);
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

    /// The data of a page to be written is in the controller's memory.
    #[inline(always)]
    fn arrived<M: FastPath>(&mut self, index: PageIdx, at: u64) {
        let HostPage { of, page, .. } = self.host.page_of(index);
        if M::MINIMAL {
            let extent = self.host.extent(of);
            let write = Write { page, extent, target: Target::host(index), through: false };
            return self.write::<M>(write, at);
        }
        self.note_arrival(index);
        if let Some(cache) = &mut self.cache
            && !self.host.is_write_through(of)
        {
            let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
            let (io, _) = self.host.io(of);
            let sectors = sectors_of(&io, page, page_bytes, self.sector_bytes);
            self.host.arrived(index, at);
            if cache.offer(index, page, sectors, io.stream) {
                self.ended::<M>(index, at);
            } else {
                self.events.awaits_flush(at);
            }
            return self.flush(at);
        }
        let extent = self.host.extent(of);
        let through = self.host.is_write_through(of);
        self.write::<M>(Write { page, extent, target: Target::host(index), through }, at);
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

    /// A page of the host ends at `end`, unless a flush of what is volatile follows its I/O.
    #[inline(always)]
    pub(super) fn ended<M: FastPath>(&mut self, index: PageIdx, end: u64) {
        if M::MINIMAL {
            // Nothing is volatile.
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
            return self.end_unheard(index, end);
        }
        let Some((mode, end)) = self.host.ended(index, end) else { return };
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
