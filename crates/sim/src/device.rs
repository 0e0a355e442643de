//! A simulated SSD behind the `Device` trait: the host interface and the virtual clock.
//!
//! A host I/O is taken in by the controller, cut into flash pages, and completes when its last page
//! does. Reads of pages that were never written are answered by the controller alone. A write that
//! covers a page only in part reads the rest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde_json::{Map, Value, json};
use uflip_core::{
    Bytes, Completion, Counters, Device, DeviceInfo, DeviceKind, Io, Mode, Nanos, Result, Ticket,
};

use crate::backend::{Backend, Extent, Hardware};
use crate::breakdown::{Account, Cause, SimBreakdown};
use crate::cache::{Sectors, WriteCache};
use crate::geometry::Lpn;
use crate::media::{Flash, Media, Timed};
use crate::merging::Merged;
use crate::paged::Paged;
use crate::profile::Profile;
use crate::snapshot::Header;
use crate::timeline::Timeline;

/// A flash device in virtual time. A copy is a device of its own in the same state.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct SimDevice {
    /// Follows from the profile; [`SimDevice::described`] puts it back.
    #[serde(skip, default = "not_described")]
    info: DeviceInfo,
    flash: Flash,
    backend: AnyBackend,
    timeline: Timeline,
    now: u64,
    tickets: u64,
    /// The completion that is due first; with one I/O at a time nothing else is ever needed.
    first: Option<Pending>,
    /// The others, by time of completion, then by ticket.
    later: BinaryHeap<Reverse<Pending>>,
    cache: Option<WriteCache>,
    sector_bytes: u64,
}

/// One of the two kinds of FTLs. Which one it is never changes, so the branch is always foreseen.
// In place: a device has one of them, and goes through it with every page.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum AnyBackend {
    Paged(Paged),
    Merged(Merged),
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

/// So many I/Os are looked at ahead in the untimed gear, to have their map entries at hand.
const BATCH: usize = 64;

/// A completion that waits for its time. Ordered by time, then by ticket, which is unique.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
struct Pending(Completion<SimBreakdown>);

impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> std::cmp::Ordering {
        (self.0.completed, self.0.ticket).cmp(&(other.0.completed, other.0.ticket))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl SimDevice {
    /// Make the device that `profile` describes, in the state that it asks for.
    ///
    /// # Errors
    /// Names in the profile that do not exist.
    pub fn new(name: &str, profile: Profile) -> Result<SimDevice> {
        let geometry = profile.geometry();
        let mut device = SimDevice {
            info: describe(name, &profile),
            flash: Flash::new(geometry, profile.page_order()),
            backend: profile.backend()?,
            timeline: Timeline::new(geometry, profile.timing()),
            now: 0,
            tickets: 0,
            first: None,
            later: BinaryHeap::new(),
            cache: profile.write_cache(),
            sector_bytes: u64::from(profile.geometry.sector_bytes),
        };
        device.apply(crate::precondition::writes(&profile));
        device.info.details.insert("history".into(), history(&device.flash));
        // What brought the device into its state is not part of any measurement.
        device.flash.counters = Counters::default();
        Ok(device)
    }

    /// What a file with this device says about it.
    pub(crate) fn header(&self) -> Header {
        let detail = |key: &str| self.info.details.get(key).cloned().unwrap_or_default();
        Header {
            version: crate::snapshot::VERSION.into(),
            name: self.info.model.clone(),
            profile: detail("profile"),
            history: detail("history"),
        }
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

    /// Do what `ios` ask for in the untimed gear: no time passes, everything is counted. For bringing
    /// a device into a state, and for studies of write amplification.
    pub fn apply(&mut self, ios: impl Iterator<Item = Io>) {
        let SimDevice { backend, flash, cache, now, .. } = self;
        either!(backend, backend => apply(backend, flash, cache, *now, ios));
    }

    /// Tell the device that `size` bytes at `offset` are not needed any more (TRIM). Pages that are
    /// covered only in part keep their data. Takes no time.
    pub fn trim(&mut self, offset: Bytes, size: Bytes) {
        let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
        let io = Io { offset, size, mode: Mode::Write };
        for (page, bytes) in pages_of(&io, page_bytes) {
            if bytes == page_bytes {
                either!(&mut self.backend, backend => backend.trim(page));
                if let Some(cache) = &mut self.cache {
                    cache.trim(page);
                }
            }
        }
    }

    /// Serve `io`, submitted now: when it ends and how it came to that.
    #[inline]
    fn serve(&mut self, io: &Io) -> (u64, SimBreakdown) {
        let SimDevice { backend, flash, timeline, cache, sector_bytes, now, .. } = self;
        let hardware = &mut Hardware { flash, timeline };
        either!(backend, backend => serve(backend, hardware, cache, io, *now, *sector_bytes))
    }
}

/// Do what `ios` ask for in the untimed gear.
fn apply<B: Backend>(
    backend: &mut B,
    flash: &mut Flash,
    cache: &mut Option<WriteCache>,
    now: u64,
    ios: impl Iterator<Item = Io>,
) {
    let page_bytes = u64::from(flash.geometry.shape().page_bytes);
    backend.end_untimed(flash);
    if let Some(cache) = cache {
        cache.flush_all(now, |page, whole, at| {
            backend.write_untimed(page, &Extent::single(page, whole), flash);
            at
        });
    }
    let mut batch = Vec::with_capacity(BATCH);
    let mut ios = ios.peekable();
    while ios.peek().is_some() {
        batch.clear();
        for io in ios.by_ref().take(BATCH) {
            let extent = Extent::of(&io, page_bytes);
            batch.extend(pages_of(&io, page_bytes).map(|(page, _)| (io.mode, page, extent)));
        }
        batch.iter().for_each(|(_, page, _)| backend.prefetch(*page));
        batch.iter().for_each(|(_, page, _)| backend.prefetch_old(*page));
        for (mode, page, extent) in &batch {
            match mode {
                Mode::Write => backend.write_untimed(*page, extent, flash),
                Mode::Read => {
                    if let Some(at) = backend.find(*page, flash) {
                        flash.read(at);
                    }
                }
            }
        }
    }
}

/// Serve `io`, submitted at `now`: when it ends and how it came to that.
#[inline]
fn serve<B: Backend>(
    backend: &mut B,
    hardware: &mut Hardware<'_>,
    cache: &mut Option<WriteCache>,
    io: &Io,
    now: u64,
    sector_bytes: u64,
) -> (u64, SimBreakdown) {
    let page_bytes = u64::from(hardware.flash.geometry.shape().page_bytes);
    let extent = Extent::of(io, page_bytes);
    backend.advance(now, hardware);
    let mut path = SimBreakdown::default();
    let mut ready = hardware.timeline.command(io.mode == Mode::Write, now, &mut path);
    let (mut end, mut slowest) = (0, path);
    for (page, bytes) in pages_of(io, page_bytes) {
        if io.mode == Mode::Write {
            // Data comes over the link page after page; what it took is on each page's path.
            ready = hardware.timeline.link(ready, bytes, &mut path);
        }
        let mut of_page = path;
        let ended = match (io.mode, cache.as_mut()) {
            (Mode::Write, None) => backend.write(page, &extent, ready, hardware, &mut of_page),
            (Mode::Write, Some(cache)) => {
                let sectors = sectors_of(io, page, page_bytes, sector_bytes);
                let taken = cache.write(page, sectors, ready, |page, whole, at| {
                    backend.write(page, &Extent::single(page, whole), at, hardware, &mut ())
                });
                of_page.add(Cause::CacheWait, taken - ready);
                taken
            }
            (Mode::Read, Some(cache))
                if cache.holds(page, sectors_of(io, page, page_bytes, sector_bytes)) =>
            {
                hardware.timeline.link(ready, bytes, &mut of_page)
            }
            (Mode::Read, _) => read_page(backend, hardware, page, bytes, ready, &mut of_page),
        };
        if ended > end {
            (end, slowest) = (ended, of_page);
        }
    }
    if io.mode == Mode::Read {
        backend.after_read(end, hardware);
    }
    (end, slowest)
}

/// The flash pages that an I/O touches, and how many bytes of each.
#[inline]
fn pages_of(io: &Io, page_bytes: u64) -> impl Iterator<Item = (Lpn, u64)> + use<> {
    let (offset, end) = (io.offset.0, io.offset.0 + io.size.0);
    // A shift where it will do: a division takes as long as everything else about a small I/O.
    let page_of = |byte: u64| {
        if page_bytes.is_power_of_two() {
            byte >> page_bytes.trailing_zeros()
        } else {
            byte / page_bytes
        }
    };
    (page_of(offset)..page_of(end + page_bytes - 1)).map(move |page| {
        let from = offset.max(page * page_bytes);
        let to = end.min((page + 1) * page_bytes);
        (Lpn(page as u32), to - from)
    })
}

/// The sectors of `page` that `io` touches, one bit each.
fn sectors_of(io: &Io, page: Lpn, page_bytes: u64, sector_bytes: u64) -> Sectors {
    let begin = u64::from(page.0) * page_bytes;
    let from = io.offset.0.max(begin) - begin;
    let to = (io.offset.0 + io.size.0).min(begin + page_bytes) - begin;
    let sectors = (to - from) / sector_bytes;
    u64::MAX >> (64 - sectors) << (from / sector_bytes)
}

/// Read `bytes` of `page` from `ready` on; returns the end.
#[inline]
fn read_page(
    backend: &mut impl Backend,
    hardware: &mut Hardware<'_>,
    page: Lpn,
    bytes: u64,
    ready: u64,
    path: &mut SimBreakdown,
) -> u64 {
    let Hardware { flash, timeline } = hardware;
    let mut media = Timed::new(flash, timeline, ready, path).sending(bytes);
    match backend.find(page, &mut media) {
        Some(at) => media.read(at),
        None => media.answer(),
    }
    media.end
}

/// The host leaves the device alone from `now` to `until`; `cache` is flushed where nothing is under
/// way.
fn idle<B: Backend>(
    backend: &mut B,
    hardware: &mut Hardware<'_>,
    cache: Option<&mut WriteCache>,
    now: u64,
    until: u64,
) {
    if let Some(cache) = cache {
        cache.flush_all(now, |page, whole, at| {
            backend.write(page, &Extent::single(page, whole), at, hardware, &mut ())
        });
    }
    backend.idle(now, until, hardware);
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
        let SimDevice { backend, flash, timeline, cache, now, first, .. } = self;
        let hardware = &mut Hardware { flash, timeline };
        // Idle is a device without an I/O under way; between two others the host only looks away.
        let cache = cache.as_mut().filter(|_| first.is_none());
        either!(backend, backend => idle(backend, hardware, cache, *now, t.0));
        self.now = t.0;
        self.timeline.advance(self.now);
    }

    #[inline]
    fn prefetch(&self, request: &Io) {
        let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
        either!(&self.backend, backend => {
            pages_of(request, page_bytes).for_each(|(page, _)| backend.prefetch(page));
        });
    }

    fn submit(&mut self, request: &Io) -> Result<Ticket> {
        let submitted = self.now;
        let (completed, breakdown) = self.serve(request);
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let pending = Pending(Completion {
            ticket,
            submitted: Nanos(submitted),
            completed: Nanos(completed),
            breakdown,
            status: (),
        });
        match self.first.replace(pending) {
            None => {}
            Some(first) if first < pending => {
                self.first = Some(first);
                self.later.push(Reverse(pending));
            }
            Some(first) => self.later.push(Reverse(first)),
        }
        Ok(ticket)
    }

    #[inline]
    fn next_completion(&self) -> Option<Nanos> {
        self.first.as_ref().map(|pending| pending.0.completed)
    }

    #[inline]
    fn complete(&mut self) -> Result<Completion<SimBreakdown>> {
        let Pending(completion) = self.first.take().expect("something is outstanding");
        self.first = self.later.pop().map(|Reverse(pending)| pending);
        self.now = self.now.max(completion.completed.0);
        self.timeline.advance(self.now);
        Ok(completion)
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

/// What brought a device into its state.
fn history(flash: &Flash) -> Value {
    let (least, mean, most) = flash.nand.wear();
    json!({
        "pages_written": flash.counters.host_pages_written,
        "pages_programmed": flash.counters.pages_programmed,
        "blocks_erased": flash.counters.blocks_erased,
        "erases_of_a_block": {"least": least, "mean": mean, "most": most},
    })
}

/// The description of a device whose state was read and nothing else.
fn not_described() -> DeviceInfo {
    DeviceInfo {
        url: String::new(),
        kind: DeviceKind::Sim,
        simulated: true,
        model: String::new(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes: Bytes(0),
        sector_bytes: Bytes(0),
        clock: "virtual",
        io: "virtual".into(),
        data: "none",
        details: Map::new(),
    }
}

fn describe(name: &str, profile: &Profile) -> DeviceInfo {
    let geometry = profile.geometry();
    let mut details = Map::new();
    details.insert("profile".into(), serde_json::to_value(profile).expect("plain data"));
    details.insert(
        "flash_bytes".into(),
        Value::from(u64::from(geometry.pages()) * u64::from(geometry.shape().page_bytes)),
    );
    DeviceInfo {
        url: format!("sim:{name}"),
        model: name.into(),
        capacity_bytes: Bytes(
            u64::from(geometry.shape().logical_pages) * u64::from(geometry.shape().page_bytes),
        ),
        sector_bytes: Bytes(u64::from(profile.geometry.sector_bytes)),
        details,
        ..not_described()
    }
}
