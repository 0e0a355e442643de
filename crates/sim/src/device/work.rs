//! What happens in a device, and what follows: from an I/O that is let in to its last page.

use uflip_core::{Io, Mode};

use super::SimDevice;
use super::any::either;
use super::backend::{Backend, Hardware, Write};
use super::cache::{Flushed, Sectors, WriteCache};
use super::host::HostPage;
use super::token::{Epoch, IoIdx, PageIdx, Target, Token, Told};
use crate::flash::geometry::Lpn;
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
    fn is_next_on_the_link(&self, index: IoIdx, request: &Io) -> bool {
        let in_order = self.events.timing.writes_in_order;
        let alone = !self.host.has_open_reads() && self.backend.takes_ahead();
        let past_a_cache = self.cache.is_some() && self.host.is_write_through(index);
        request.mode == Mode::Write && in_order && alone && !past_a_cache
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

    /// Let happen what happens until `until` or the first end of an I/O, whichever comes first; returns
    /// that end.
    #[inline(always)]
    pub(super) fn settle(&mut self, until: u64) -> Option<u64> {
        self.host_has_its_turn();
        // Nothing is known of the time after the last I/O: the host may come back at any moment.
        while !self.host.is_idle() {
            let end = self.host.first_end();
            let limit = end.map_or(until, |end| end.min(until));
            match self.events.next(limit) {
                Some((at, token)) => self.happens(at, token),
                None if end.is_none() && until == u64::MAX => self.is_stuck(),
                None => return end.filter(|end| *end <= until),
            }
        }
        None
    }

    /// Nothing will happen any more, and an I/O has not ended.
    #[cold]
    pub(super) fn is_stuck(&mut self) {
        let SimDevice { backend, flash, events, now, .. } = self;
        let now = events.now().max(*now);
        let hardware = &mut Hardware { flash, events };
        either!(backend, backend => backend.stuck(now, hardware));
    }

    /// The host asks for something: until then no more can have happened than that every page was moved
    /// as often as a block has pages. A file may hold a device that would go on for ever.
    #[inline]
    pub(super) fn host_has_its_turn(&mut self) {
        let geometry = &self.flash.geometry;
        let moves = u64::from(geometry.pages()) * u64::from(geometry.shape().pages_per_block);
        self.events.allow(EVENTS_LEAST + EVENTS_PER_MOVE * moves);
    }

    /// Let everything happen that is due by `until`.
    #[inline]
    pub(super) fn advance(&mut self, until: u64) {
        self.host_has_its_turn();
        if self.events.is_due(until) {
            self.catch_up(until);
        }
    }

    #[inline(never)]
    fn catch_up(&mut self, until: u64) {
        while let Some((at, token)) = self.events.next(until) {
            self.happens(at, token);
        }
    }

    /// What happens with every page has a copy of [`SimDevice::hear`] each, in which there is nothing else.
    #[inline(always)]
    pub(super) fn happens(&mut self, at: u64, token: Token) {
        self.flash.clock = at;
        if let Some(die) = token.collects() {
            self.hear(at, Told::Collect(die));
        } else if let Some(page) = token.arrived() {
            self.hear(at, Told::Arrived(page));
        } else if let Some(page) = token.ended() {
            self.hear(at, Told::Ended(page));
        } else {
            self.hear_seldom(at, token.told());
        }
    }

    #[inline(never)]
    fn hear_seldom(&mut self, at: u64, told: Told) {
        self.hear(at, told);
    }

    #[inline(always)]
    fn hear(&mut self, at: u64, told: Told) {
        match told {
            Told::TakenIn(index) => {
                let (io, extent) = self.host.io(index);
                self.taken_in(index, &io, extent, at);
            }
            Told::Arrived(page) => self.arrived(page, at),
            Told::Ended(page) => self.ended(page, at),
            Told::Failed(page) => {
                self.host.fail(page);
                self.ended(page, at);
            }
            Told::Flushed(epoch) => self.flushed(epoch, at),
            Told::Freed => {
                if let Some(next) = self.interface.next() {
                    self.begin(next, at);
                }
            }
            Told::Drained(page) => self.drained(page, at),
            Told::Collect(_)
            | Told::Begin(_)
            | Told::Planned(..)
            | Told::Stepped(..)
            | Told::Programmed(_)
            | Told::Modified(_) => {
                let SimDevice { backend, flash, events, .. } = self;
                let hardware = &mut Hardware { flash, events };
                either!(backend, backend => backend.happened(told, at, hardware));
            }
        }
    }

    /// An I/O is let in at `at`: the controller's processor takes it in.
    #[inline(always)]
    pub(super) fn begin(&mut self, index: IoIdx, at: u64) {
        let (io, extent) = self.host.io(index);
        if extent.touched().is_empty() {
            return self.begin_without_data(index, &io, at);
        }
        let taken_in = self.command(&io, at);
        if taken_in > at && !self.is_next_on_the_link(index, &io) {
            self.events.remind(taken_in, Told::TakenIn(index).into());
        } else {
            self.taken_in(index, &io, extent, taken_in);
        }
    }

    /// The controller has taken in an I/O at `at`: its pages are read, or their data comes over the link.
    #[inline(always)]
    fn taken_in(&mut self, index: IoIdx, io: &Io, extent: Extent, at: u64) {
        self.flash.clock = at;
        self.host.taken_in(index, at);
        match io.mode {
            Mode::Read => return self.read(index, io, extent, at),
            Mode::Write => {}
            _ => return self.taken_in_without_data(index, io, at),
        }
        let write_through = self.host.is_write_through(index);
        if write_through {
            self.expel(extent, at);
        }
        if (self.cache.is_none() || write_through) && self.backend.plans_whole_writes() {
            return self.write_as_one(index, io, extent, at);
        }
        for page in extent.touched().map(Lpn) {
            let (of_host, end) = self.send(index, io, page, at);
            self.events.remind(end, Told::Arrived(of_host).into());
        }
    }

    /// Write the pages of an I/O one after the other, none of another one's between them.
    fn write_as_one(&mut self, index: IoIdx, io: &Io, extent: Extent, at: u64) {
        self.events.reach(at);
        for page in extent.touched().map(Lpn) {
            let (of_host, end) = self.send(index, io, page, at);
            let through = self.host.is_write_through(index);
            self.write(Write { page, extent, target: Target::host(of_host), through }, end);
        }
    }

    /// The data of a page of an I/O goes over the link; returns when it is there.
    #[inline(always)]
    fn send(&mut self, index: IoIdx, io: &Io, page: Lpn, at: u64) -> (PageIdx, u64) {
        let SimDevice { flash, events, host, .. } = self;
        let page_bytes = u64::from(flash.geometry.shape().page_bytes);
        let of_host = host.page(index, page, at, &mut events.accounts);
        events.works_for(of_host.account(), || host.number_of(index));
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
                either!(backend, backend => backend.read(page, bytes, at, target, hardware));
            }
        }
    }

    /// The data of a page to be written is in the controller's memory.
    #[inline(always)]
    fn arrived(&mut self, index: PageIdx, at: u64) {
        let HostPage { of, page, .. } = self.host.page_of(index);
        self.note_arrival(index);
        if let Some(cache) = &mut self.cache
            && !self.host.is_write_through(of)
        {
            let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
            let (io, _) = self.host.io(of);
            let sectors = sectors_of(&io, page, page_bytes, self.sector_bytes);
            self.host.arrived(index, at);
            if cache.offer(index, page, sectors, io.stream) {
                self.ended(index, at);
            }
            return self.flush(at);
        }
        let extent = self.host.extent(of);
        let through = self.host.is_write_through(of);
        self.write(Write { page, extent, target: Target::host(index), through }, at);
    }

    #[inline(always)]
    fn write(&mut self, write: Write, at: u64) {
        let SimDevice { backend, flash, events, .. } = self;
        let hardware = &mut Hardware { flash, events };
        either!(backend, backend => backend.write(write, at, hardware));
    }

    pub(super) fn set_cache_idle(&mut self, idle: bool) {
        if let Some(cache) = &mut self.cache {
            cache.idle = idle;
        }
    }

    /// Write to flash what the cache wants to be rid of.
    pub(super) fn flush(&mut self, at: u64) {
        while let Some(flushed) = self.cache.as_mut().and_then(WriteCache::next_flush) {
            self.write_flushed(flushed, at);
        }
    }

    fn write_flushed(&mut self, flushed: Flushed, at: u64) {
        let Flushed { page, epoch, .. } = flushed;
        self.events.contents.iter_mut().for_each(|contents| contents.leaves_cache(page.0));
        let extent = flushed.extent();
        let through = false; // who waits for it waits for its epoch
        self.write(Write { page, extent, target: Target::flush(epoch), through }, at);
    }

    /// Write to flash what the cache has of pages that are written past it.
    fn expel(&mut self, extent: Extent, at: u64) {
        for page in extent.touched().map(Lpn) {
            if let Some(flushed) = self.cache.as_mut().and_then(|cache| cache.expel(page)) {
                self.write_flushed(flushed, at);
            }
        }
    }

    /// A page of the cache is on flash: there is a place for another.
    fn flushed(&mut self, epoch: Epoch, at: u64) {
        let cache = self.cache.as_mut().expect("it had the page");
        cache.flushed(epoch);
        while let Some(cache) = &self.cache
            && let Some(held) = self.durable.release(|until| cache.is_over(until))
        {
            self.events.spent(Some(held.page.account()), Cause::CacheWait, at - held.since);
            self.drain(held.page, at, at);
        }
        while let Some(index) = self.cache.as_mut().and_then(WriteCache::admit) {
            let waited = at - self.host.page_of(index).arrived;
            self.events.spent(Some(index.account()), Cause::CacheWait, waited);
            self.ended(index, at);
        }
        self.flush(at);
    }

    /// A page of the host ends at `end`, unless a flush of what is volatile follows its I/O.
    #[inline(always)]
    pub(super) fn ended(&mut self, index: PageIdx, end: u64) {
        match self.host.before_flush(index, end) {
            None => self.end(index, end),
            Some(taken) => self.end_with_flush(index, end, taken),
        }
    }

    #[inline(always)]
    pub(super) fn end(&mut self, index: PageIdx, end: u64) {
        let Some((mode, end)) = self.host.ended(index, end) else { return };
        if self.interface.is_limited() {
            self.events.remind(end, Told::Freed.into());
        }
        if mode == Mode::Read {
            let SimDevice { backend, flash, events, .. } = self;
            let hardware = &mut Hardware { flash, events };
            either!(backend, backend => backend.after_read(end, hardware));
        }
    }
}

/// How many bytes of `page` `io` touches.
#[inline]
pub(super) fn bytes_in(io: &Io, page: u32, page_bytes: u64) -> u64 {
    let begin = u64::from(page) * page_bytes;
    let end = io.offset.0 + io.size.0;
    end.min(begin + page_bytes) - io.offset.0.max(begin)
}

/// The sectors of `page` that `io` touches, one bit each.
pub(super) fn sectors_of(io: &Io, page: Lpn, page_bytes: u64, sector_bytes: u64) -> Sectors {
    let from = io.offset.0.saturating_sub(u64::from(page.0) * page_bytes);
    let sectors = bytes_in(io, page.0, page_bytes) / sector_bytes;
    u64::MAX >> (64 - sectors) << (from / sector_bytes)
}
