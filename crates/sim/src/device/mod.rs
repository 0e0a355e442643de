//! A simulated SSD behind the `Device` trait: the host interface and the virtual clock.
//!
//! A host I/O is taken in by the controller, cut into flash pages, and completes when its last page
//! does. Reads of pages that were never written are answered by the controller alone. A write that
//! covers a page only in part reads the rest first.

mod backend;
mod build;
mod cache;
mod collector;
mod describe;
mod durable;
mod host;
mod interface;
mod issued;
mod merging;
mod paged;
mod precondition;
pub mod snapshot;
mod timed;
mod token;
mod untimed;
mod waiting;

use std::ops::Range;

use serde_json::Value;
use uflip_core::{
    Bytes, Completion, Counters, Device, DeviceInfo, Durability, Error, ErrorKind, Io, Mode, Nanos,
    Result, Ticket,
};

use crate::config::{CLOCK_END_NS, Profile, clock_ran_out};
use crate::device::backend::{Backend, Hardware, Write};
use crate::device::cache::{Flushed, Sectors, WriteCache};
use crate::device::describe::{describe, history, not_described};
use crate::device::durable::{Durable, Held, Promise};
use crate::device::host::{Host, HostPage};
use crate::device::interface::Interface;
use crate::device::merging::Merged;
use crate::device::paged::Paged;
use crate::device::snapshot::Header;
use crate::device::token::Epoch;
use crate::device::token::{IoIdx, PageIdx};
use crate::device::token::{Target, Token, Told};
use crate::flash::geometry::Lpn;
use crate::flash::media::Flash;
use crate::ftl::extent::Extent;
use crate::timeline::breakdown::{Cause, SimBreakdown};
use crate::timeline::{Timeline, Timing};

/// So many announced I/Os later, what the map says of one is in the cache.
const ANNOUNCED: usize = 4;

/// A flash device in virtual time. A copy is a device of its own in the same state.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct SimDevice {
    /// Follows from the profile; [`SimDevice::described`] puts it back.
    #[serde(skip, default = "not_described")]
    info: DeviceInfo,
    flash: Flash,
    backend: AnyBackend,
    events: Timeline<Token>,
    host: Host,
    interface: Interface,
    cache: Option<WriteCache>,
    durable: Durable,
    now: u64,
    sector_bytes: u64,
    /// Where the last read ended [bytes].
    read_end: u64,
    /// The pages of the last I/Os that were announced.
    #[serde(skip)]
    announced: [Range<u32>; ANNOUNCED],
    /// How many were.
    #[serde(skip)]
    announcements: usize,
}

/// One of the two kinds of FTLs. Which one it is never changes, so the branch is always foreseen.
// In place: a device has one of them, and goes through it with every page.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum AnyBackend {
    Paged(Paged),
    Merged(Merged),
}

impl AnyBackend {
    #[inline]
    fn plans_whole_writes(&self) -> bool {
        match self {
            AnyBackend::Paged(_) => Paged::PLANS_WHOLE_WRITES,
            AnyBackend::Merged(_) => Merged::PLANS_WHOLE_WRITES,
        }
    }
}

/// Say `$what` of the backend, whichever it is.
macro_rules! either {
    ($backend:expr, $name:ident => $what:expr) => {
        match $backend {
            AnyBackend::Paged($name) => $what,
            AnyBackend::Merged($name) => $what,
        }
    };
}

impl SimDevice {
    /// Make the device that `profile` describes, in the state that it asks for.
    ///
    /// # Errors
    /// As [`SimDevice::make`].
    pub fn new(name: &str, profile: Profile) -> Result<SimDevice> {
        SimDevice::make(name, profile, || false)
    }

    /// The same, until `is_stopped` says that it is not wanted any more; asked with every write that
    /// brings the device into its state.
    ///
    /// # Errors
    /// Names in the profile that do not exist; a device that wears out before it is in its state;
    /// [`ErrorKind::Interrupted`] where it was stopped.
    pub fn make(name: &str, profile: Profile, is_stopped: impl Fn() -> bool) -> Result<SimDevice> {
        let geometry = profile.geometry();
        let mut device = SimDevice {
            info: describe(name, &profile),
            flash: profile.flash()?,
            backend: profile.backend()?,
            events: Timeline::new(geometry, profile.timing()),
            host: Host::default(),
            interface: Interface::new(profile.timing.commands_at_once),
            cache: profile.write_cache(),
            durable: Durable::default(),
            now: 0,
            sector_bytes: u64::from(profile.geometry.sector_bytes),
            read_end: 0,
            announced: Default::default(),
            announcements: 0,
        };
        device.apply(precondition::writes(&profile).take_while(|_| !is_stopped()))?;
        if is_stopped() {
            return Err(Error::new(ErrorKind::Interrupted, "Making the device was interrupted"));
        }
        device.info.details.insert("history".into(), history(&device.flash));
        // What brought the device into its state is not part of any measurement.
        device.flash.counters = Counters::default();
        Ok(device)
    }

    /// What a file with this device says about it.
    pub(crate) fn header(&self) -> Header {
        let detail = |key: &str| self.info.details.get(key).cloned().unwrap_or_default();
        Header {
            version: crate::device::snapshot::VERSION.into(),
            name: self.info.model.clone(),
            profile: detail("profile"),
            history: detail("history"),
        }
    }

    /// Whether it is one that `profile` describes, as far as its shape says.
    pub(crate) fn is_of(&self, profile: &Profile) -> bool {
        let paged = matches!(self.backend, AnyBackend::Paged(_));
        self.flash.geometry == profile.geometry()
            && self.sector_bytes == u64::from(profile.geometry.sector_bytes)
            && self.cache.is_some() == profile.write_cache().is_some()
            && paged == profile.gc.is_some()
    }

    /// The same device with a description.
    pub(crate) fn described(mut self, info: DeviceInfo, history: Value) -> SimDevice {
        self.info = info;
        self.info.details.insert("history".into(), history);
        self
    }

    /// What is known of the device that `profile` describes, without making it: no state, no history.
    #[must_use]
    pub fn inspect(name: &str, profile: &Profile) -> DeviceInfo {
        describe(name, profile)
    }

    /// What the writes that are submitted from now on wait for.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durable.ask_for(durability);
        let write_through = self.durable.is_write_through();
        either!(&mut self.backend, backend => backend.set_write_through(write_through));
    }

    /// Do what `ios` ask for in the untimed gear: no time passes, everything is counted. For bringing
    /// a device into a state, and for studies of write amplification. What is under way is ended
    /// first, and the clock goes on until then.
    ///
    /// # Errors
    /// The device is, or becomes, read-only, and something is to be written.
    pub fn apply(&mut self, ios: impl Iterator<Item = Io>) -> Result<()> {
        while !self.host.is_settled() {
            let (at, token) = self.events.next(u64::MAX).expect("an I/O under way ends");
            self.happens(at, token);
        }
        // Flash does what it was asked for already; what would have followed is done without time.
        while self.events.next(u64::MAX).is_some() {}
        self.interface.rest();
        self.now = self.now.max(self.events.now());
        let SimDevice { backend, flash, cache, .. } = self;
        either!(backend, backend => {
            backend.end_untimed(flash);
            for (page, whole) in cache.iter_mut().flat_map(WriteCache::empty) {
                backend.write_untimed(page, &Extent::single(page, whole), flash);
            }
            untimed::apply(backend, flash, ios)
        })
    }

    /// Why `io` failed.
    #[cold]
    fn failure(&self, io: &Io) -> Error {
        let at = format!("{}, byte {}", self.info.url, io.offset.0);
        match io.mode {
            Mode::Write => either!(&self.backend, backend => backend.why_read_only()).at(at),
            Mode::Read => Error::new(
                ErrorKind::Device,
                "The simulated flash cannot be read: too many bit errors",
            )
            .at(at)
            .got("more wrong bits than the ECC corrects, after all retries")
            .action("set fail_uncorrectable = false to count such reads, or wear the device less"),
        }
    }

    /// Tell the device that `size` bytes at `offset` are not needed any more (TRIM). Pages that are
    /// covered only in part keep their data. Takes no time.
    pub fn trim(&mut self, offset: Bytes, size: Bytes) {
        let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
        let io = Io { offset, size, mode: Mode::Write };
        for page in Extent::of(&io, page_bytes).covered() {
            either!(&mut self.backend, backend => backend.trim(page));
            if let Some(cache) = &mut self.cache {
                cache.trim(page);
            }
        }
    }

    /// Whether the data of `request`, which the processor takes in now, goes over the link before anything
    /// else that may still want to, so that the link need not wait with it until then. True of a write
    /// while no read is under way: whatever comes later is also taken in later. Not of one that goes past
    /// a cache, whose pages have to leave that when it is taken in.
    #[inline]
    fn is_next_on_the_link(&self, index: IoIdx, request: &Io) -> bool {
        let in_order = self.events.timing.command_read_ns > 0;
        let alone = !self.host.has_open_reads() && !self.backend.plans_whole_writes();
        let past_a_cache = self.cache.is_some() && self.host.is_write_through(index);
        request.mode == Mode::Write && in_order && alone && !past_a_cache
    }

    /// How long the processor takes to take `request` in.
    #[inline]
    fn command_ns(&mut self, request: &Io) -> u64 {
        let Timing { command_read_ns, command_write_ns, seek_read_ns, .. } = self.events.timing;
        if request.mode == Mode::Write {
            return command_write_ns;
        }
        let goes_on = request.offset.0 == self.read_end;
        self.read_end = request.offset.0 + request.size.0;
        if goes_on { command_read_ns } else { command_read_ns + seek_read_ns }
    }

    /// Let happen what happens until `until` or the first end of an I/O, whichever comes first; returns
    /// that end.
    #[inline]
    fn settle(&mut self, until: u64) -> Option<u64> {
        // Nothing is known of the time after the last I/O: the host may come back at any moment.
        while !self.host.is_idle() {
            let end = self.host.first_end();
            let limit = end.map_or(until, |end| end.min(until));
            match self.events.next(limit) {
                Some((at, token)) => self.happens(at, token),
                None if end.is_none() && until == u64::MAX => {
                    let SimDevice { backend, flash, events, .. } = self;
                    let now = events.now().max(self.now);
                    let hardware = &mut Hardware { flash, events };
                    either!(backend, backend => backend.stuck(now, hardware));
                }
                None => return end.filter(|end| *end <= until),
            }
        }
        None
    }

    /// Let everything happen that is due by `until`.
    #[inline]
    fn advance(&mut self, until: u64) {
        while let Some((at, token)) = self.events.next(until) {
            self.happens(at, token);
        }
    }

    #[inline]
    fn happens(&mut self, at: u64, token: Token) {
        match token.told() {
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
            Told::Collect(die) => {
                let SimDevice { backend, flash, events, .. } = self;
                let hardware = &mut Hardware { flash, events };
                either!(backend, backend => backend.collect(die, at, hardware));
            }
        }
    }

    /// An I/O is let in at `at`: the controller's processor takes it in.
    #[inline]
    fn begin(&mut self, index: IoIdx, at: u64) {
        let (io, extent) = self.host.io(index);
        let length = self.command_ns(&io);
        let taken_in = self.events.process(at, length);
        if taken_in > at && !self.is_next_on_the_link(index, &io) {
            self.events.remind(taken_in, Told::TakenIn(index).into());
        } else {
            self.taken_in(index, &io, extent, taken_in);
        }
    }

    /// The controller has taken in an I/O at `at`: its pages are read, or their data comes over the link.
    #[inline]
    fn taken_in(&mut self, index: IoIdx, io: &Io, extent: Extent, at: u64) {
        self.host.taken_in(index, at);
        if io.mode == Mode::Read {
            return self.read(index, io, extent, at);
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
        for page in extent.touched().map(Lpn) {
            let (of_host, end) = self.send(index, io, page, at);
            self.write(Write { page, extent, target: Target::host(of_host) }, end);
        }
    }

    /// The data of a page of an I/O goes over the link; returns when it is there.
    #[inline]
    fn send(&mut self, index: IoIdx, io: &Io, page: Lpn, at: u64) -> (PageIdx, u64) {
        let SimDevice { flash, events, host, .. } = self;
        let page_bytes = u64::from(flash.geometry.shape().page_bytes);
        let of_host = host.page(index, page, at, &mut events.accounts);
        let end = events.send(at, bytes_in(io, page.0, page_bytes));
        events.spent(Some(of_host.account()), Cause::Link, end - at);
        (of_host, end)
    }

    /// Read the pages of an I/O.
    fn read(&mut self, index: IoIdx, io: &Io, extent: Extent, at: u64) {
        let SimDevice { backend, flash, events, host, cache, sector_bytes, .. } = self;
        let page_bytes = u64::from(flash.geometry.shape().page_bytes);
        for page in extent.touched() {
            let bytes = bytes_in(io, page, page_bytes);
            let page = Lpn(page);
            let target = Target::host(host.page(index, page, at, &mut events.accounts));
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
    #[inline]
    fn arrived(&mut self, index: PageIdx, at: u64) {
        let HostPage { of, page, .. } = self.host.page_of(index);
        if let Some(cache) = &mut self.cache
            && !self.host.is_write_through(of)
        {
            let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
            let (io, _) = self.host.io(of);
            let sectors = sectors_of(&io, page, page_bytes, self.sector_bytes);
            self.host.arrived(index, at);
            if cache.offer(index, page, sectors) {
                self.ended(index, at);
            }
            return self.flush(at);
        }
        let extent = self.host.extent(of);
        self.write(Write { page, extent, target: Target::host(index) }, at);
    }

    #[inline]
    fn write(&mut self, write: Write, at: u64) {
        let SimDevice { backend, flash, events, .. } = self;
        let hardware = &mut Hardware { flash, events };
        either!(backend, backend => backend.write(write, at, hardware));
    }

    fn set_cache_idle(&mut self, idle: bool) {
        if let Some(cache) = &mut self.cache {
            cache.idle = idle;
        }
    }

    /// Write to flash what the cache wants to be rid of.
    fn flush(&mut self, at: u64) {
        while let Some(flushed) = self.cache.as_mut().and_then(WriteCache::next_flush) {
            self.write_flushed(flushed, at);
        }
    }

    fn write_flushed(&mut self, flushed: Flushed, at: u64) {
        let Flushed { page, whole, epoch } = flushed;
        let extent = Extent::single(page, whole);
        self.write(Write { page, extent, target: Target::flush(epoch) }, at);
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
            let end = self.drain(held.page, at, at);
            self.end(held.page, end);
        }
        while let Some(index) = self.cache.as_mut().and_then(WriteCache::admit) {
            let waited = at - self.host.page_of(index).arrived;
            self.events.spent(Some(index.account()), Cause::CacheWait, waited);
            self.ended(index, at);
        }
        self.flush(at);
    }

    /// A page of the host ends at `end`, unless a flush of what is volatile follows its I/O.
    #[inline]
    fn ended(&mut self, index: PageIdx, end: u64) {
        match self.host.before_flush(index, end) {
            None => self.end(index, end),
            Some(taken) => self.end_with_flush(index, end, taken),
        }
    }

    /// The last page of an I/O, all of which was `taken` then, ends when everything is durable.
    #[cold]
    fn end_with_flush(&mut self, index: PageIdx, end: u64, taken: u64) {
        if self.cache.is_some() {
            self.set_cache_idle(true);
            self.flush(end);
            self.set_cache_idle(false);
        }
        if let Some(until) = self.cache.as_mut().and_then(WriteCache::end_epoch) {
            return self.durable.hold(Held { page: index, since: end, until });
        }
        let end = self.drain(index, end, taken);
        self.end(index, end);
    }

    /// Write to flash what the FTL keeps in memory, from `at` on; returns when the page `index`, which
    /// has ended at `end`, ends with that.
    fn drain(&mut self, index: PageIdx, end: u64, at: u64) -> u64 {
        let SimDevice { backend, flash, events, .. } = self;
        let hardware = &mut Hardware { flash, events };
        let drained = either!(backend, backend => backend.drain(at, hardware));
        if drained == at {
            return end;
        }
        events.spent(Some(index.account()), Cause::CacheWait, drained - end);
        drained
    }

    #[inline]
    fn end(&mut self, index: PageIdx, end: u64) {
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
fn bytes_in(io: &Io, page: u32, page_bytes: u64) -> u64 {
    let begin = u64::from(page) * page_bytes;
    let end = io.offset.0 + io.size.0;
    end.min(begin + page_bytes) - io.offset.0.max(begin)
}

/// The sectors of `page` that `io` touches, one bit each.
fn sectors_of(io: &Io, page: Lpn, page_bytes: u64, sector_bytes: u64) -> Sectors {
    let begin = u64::from(page.0) * page_bytes;
    let from = io.offset.0.max(begin) - begin;
    let to = (io.offset.0 + io.size.0).min(begin + page_bytes) - begin;
    let sectors = (to - from) / sector_bytes;
    u64::MAX >> (64 - sectors) << (from / sector_bytes)
}

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
        // Idle is a device without an I/O under way; between two others the host only looks away.
        let idle = self.host.is_idle();
        if idle {
            self.set_cache_idle(true);
            self.flush(now);
        }
        let SimDevice { backend, flash, events, .. } = self;
        let hardware = &mut Hardware { flash, events };
        either!(backend, backend => backend.begin_idle(now, t.0, hardware));
        self.advance(t.0);
        either!(&mut self.backend, backend => backend.end_idle());
        self.set_cache_idle(false);
        self.now = t.0;
    }

    #[inline]
    fn prefetch(&mut self, request: &Io) {
        let shape = self.flash.geometry.shape();
        let pages = Extent::of(request, u64::from(shape.page_bytes)).touched();
        if pages.end > shape.logical_pages {
            return;
        }
        let place = &mut self.announced[self.announcements % ANNOUNCED];
        self.announcements += 1;
        // The entries of those in the map are at hand by now.
        let before = std::mem::replace(place, pages.clone());
        either!(&self.backend, backend => {
            pages.for_each(|page| backend.prefetch(Lpn(page)));
            before.for_each(|page| backend.prefetch_old(Lpn(page)));
        });
    }

    fn submit(&mut self, request: &Io) -> Result<Ticket> {
        let now = self.now;
        self.advance(now);
        if request.mode == Mode::Write && either!(&self.backend, backend => backend.is_read_only())
        {
            return Err(self.failure(request));
        }
        if now.max(either!(&self.backend, backend => backend.planned_until())) >= CLOCK_END_NS {
            return Err(clock_ran_out().at(&self.info.url));
        }
        let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
        let extent = Extent::of(request, page_bytes);
        let promise = match request.mode {
            Mode::Read => Promise::Taken,
            Mode::Write => self.durable.promise(),
        };
        let (io, ticket) = self.host.submit(*request, extent, now, promise);
        if !self.interface.is_limited() || self.interface.lets_in(io) {
            self.begin(io, now);
        }
        Ok(ticket)
    }

    #[inline]
    fn next_completion(&mut self, before: Nanos) -> Option<Nanos> {
        self.settle(before.0).map(Nanos)
    }

    #[inline]
    fn complete(&mut self) -> Result<Completion<SimBreakdown>> {
        self.settle(u64::MAX);
        let failed = self.host.first_failed();
        let completion = self.host.complete(&self.events.accounts);
        self.now = self.now.max(completion.completed.0);
        match failed {
            None => Ok(completion),
            Some(io) => Err(self.failure(&io)),
        }
    }

    fn counters(&self) -> Option<Counters> {
        let absorbed = self.cache.as_ref().map_or(0, |cache| cache.absorbed);
        let mut counters = Counters { pages_absorbed: absorbed, ..self.flash.counters };
        either!(&self.backend, backend => backend.count(&mut counters));
        Some(counters)
    }

    fn split(&self, _: usize) -> Result<Option<Vec<SimDevice>>> {
        // One device serves all submitters: they meet at its dies and channels.
        Ok(None)
    }
}
