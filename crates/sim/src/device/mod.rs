//! A simulated SSD behind the `Device` trait: the host interface and the virtual clock.
//!
//! The controller processes a host I/O's command and splits the I/O into flash pages. The I/O
//! completes when its last page does. The controller alone answers reads of pages that were never
//! written. A write that covers part of a page reads the rest first.
//!
//! ```text
//! host_interface  command queues, outstanding I/Os, notification of the host
//! io_path         an I/O from its command to its last page; flush: trim, flush, durable writes
//! cache           the write cache
//! backend         what is common to the three kinds of devices:
//!   paged         a page map; collector: its garbage collection; write_backlog: writes without a
//!                 free page; page_buffer, sub_page: mapping units smaller than a flash page;
//!                 data_reduction: compression and deduplication
//!   merging       a merging FTL; jobs: its plans
//!   zoned         zones
//! event           events, and the targets of flash operations
//! timed_flash     flash operations on the timeline; untimed: the mode in which no time passes
//! power           power loss; recovery: what follows it
//! ```

mod backend;
mod cache;
mod collector;
mod data_reduction;
mod event;
mod flush;
mod host_interface;
mod io_path;
mod jobs;
mod merging;
mod page_buffer;
mod paged;
mod power;
mod recovery;
mod sub_page;
#[cfg(test)]
mod tests;
mod timed_flash;
mod untimed;
mod write_backlog;
mod zoned;

use std::hint::cold_path;
use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value, json};
use uflip_core::{
    Bytes, Completion, ContentShares, Counters, Device, DeviceInfo, Durability, Error, ErrorKind,
    Io, Mode, Nanos, Result, Ticket, ZoneReport,
};

use crate::config::{CLOCK_END_NS, Profile};
use crate::flash::contents::Origin;
use crate::flash::fast_path::{AllFeatures, Minimal};
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress, PlaneIdx};
use crate::flash::media::Flash;
use crate::ftl::extent::{NO_PAGES, PageExtent};
use crate::ftl::{Merging, PageMap};
use crate::snapshot::{self, Snapshot, not_described};
use crate::timeline::Timeline;
use crate::timeline::breakdown::SimBreakdown;
use crate::timeline::log::{OpSource, Operations};
use backend::{Backend, Hardware};
use cache::WriteCache;
use collector::Pace;
use event::{DeviceEvent, EventTag};
use flush::{CompletionRule, Durable};
use host_interface::{Host, Interface, Interrupts};
use jobs::PlanJobs;
use merging::MergingBackend;
use page_buffer::PageBuffer;
use paged::PageMapBackend;
pub use power::{Outage, PowerCut};
pub use recovery::Recovery;
use zoned::ZonedBackend;

/// Distance of prefetching: after this number of announced I/Os, the map entry of an I/O is in the
/// CPU cache.
const PREFETCH_DISTANCE: usize = 4;

/// A flash device in virtual time. A clone is an independent device in the same state.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct SimDevice {
    /// Derived from the profile; [`SimDevice::with_description`] restores it.
    #[serde(skip, default = "not_described")]
    info: DeviceInfo,
    flash: Flash,
    backend: AnyBackend,
    events: Timeline<EventTag>,
    host: Host,
    interface: Interface,
    /// Present if completions wait for an interrupt or a poll.
    interrupts: Option<Box<Interrupts>>,
    cache: Option<WriteCache>,
    durable: Durable,
    now: u64,
    /// No I/O is accepted from this time on: the end of the clock, or a power loss.
    refuses_from: u64,
    sector_bytes: u64,
    /// See [`SimDevice::is_built_minimal`]; false until the device is described.
    #[serde(skip)]
    minimal: bool,
    /// Event budget of one host call.
    #[serde(skip)]
    event_budget: u64,
    /// End of the last read [bytes].
    read_end: u64,
    /// The pages of the last announced I/Os.
    #[serde(skip)]
    announced: [Range<u32>; PREFETCH_DISTANCE],
    /// Number of announced I/Os so far.
    #[serde(skip)]
    announcements: usize,
}

impl SimDevice {
    /// Return roughly the number of bytes written to bring a new device into the state of
    /// `profile`.
    #[must_use]
    pub fn state_bytes(profile: &Profile) -> Bytes {
        untimed::bytes(profile)
    }

    /// Create the device of `profile` in its initial state.
    ///
    /// # Errors
    /// As [`SimDevice::make`].
    pub fn new(name: &str, profile: Profile) -> Result<SimDevice> {
        SimDevice::make(name, profile, |_| false)
    }

    /// Like [`SimDevice::new`], but stop as soon as `is_stopped` returns true. It is called with
    /// the size of each write of the preconditioning.
    ///
    /// # Errors
    /// Unknown names in the profile; a device that wears out during preconditioning;
    /// [`ErrorKind::Interrupted`] if it was stopped.
    pub fn make(
        name: &str,
        profile: Profile,
        is_stopped: impl Fn(Bytes) -> bool,
    ) -> Result<SimDevice> {
        let geometry = profile.geometry();
        let mut device = SimDevice {
            info: SimDevice::inspect(name, &profile),
            flash: profile.flash()?,
            backend: profile.backend()?,
            events: Timeline::new(geometry, profile.timing()),
            host: Host::default(),
            interface: Interface::new(profile.timing.commands_at_once, &profile.queue_weights()),
            interrupts: profile.interrupts.map(|of| Box::new(Interrupts::new(of))),
            cache: profile.write_cache(),
            durable: Durable::for_profile(&profile),
            now: 0,
            refuses_from: CLOCK_END_NS,
            sector_bytes: u64::from(profile.geometry.sector_bytes),
            minimal: false,
            event_budget: SimDevice::event_budget(&geometry),
            read_end: 0,
            announced: Default::default(),
            announcements: 0,
        };
        device.track_contents(&profile);
        if let Some(meter) = profile.energy_meter() {
            device.events.set_energy_meter(meter);
        }
        device.minimal = device.is_built_minimal();
        device.do_untimed(untimed::writes(&profile).take_while(|io| !is_stopped(io.size)))?;
        if is_stopped(Bytes(0)) {
            return Err(Error::new(ErrorKind::Interrupted, "Making the device was interrupted"));
        }
        let (min_erases, mean, max_erases) = device.flash.nand.wear();
        let counters = &device.flash.counters;
        let history = json!({
            "pages_written": counters.host_pages_written,
            "pages_programmed": counters.pages_programmed,
            "blocks_erased": counters.blocks_erased,
            "erases_of_a_block": {"least": min_erases, "mean": mean, "most": max_erases},
        });
        device.info.details.insert("history".into(), history);
        // Preconditioning does not belong to any measurement.
        device.flash.counters = Counters::default();
        device.flash.clock = 0;
        Ok(device)
    }

    /// Return whether the device has no optional feature: see [`crate::flash::fast_path`].
    fn is_built_minimal(&self) -> bool {
        let paged = match &self.backend {
            AnyBackend::Paged(paged) => paged.is_minimal(),
            _ => false,
        };
        let waits =
            self.cache.is_some() || self.interface.is_limited() || self.interrupts.is_some();
        paged && !waits && self.flash.is_minimal() && self.events.is_minimal()
    }

    /// Return the properties of the device of `profile` without creating it: no state, no history.
    #[must_use]
    pub fn inspect(name: &str, profile: &Profile) -> DeviceInfo {
        let geometry = profile.geometry();
        let mut details = Map::new();
        details.insert("profile".into(), serde_json::to_value(profile).expect("serializable"));
        details.insert(
            "flash_bytes".into(),
            Value::from(u64::from(geometry.pages()) * u64::from(geometry.shape().page_bytes)),
        );
        if let Some(part) = profile.zones {
            let size = part.zone_bytes / u64::from(geometry.shape().page_bytes);
            let zones = json!({
                "zone_bytes": part.zone_bytes,
                "zone_capacity_bytes": profile.zone_capacity_bytes(),
                "zone_count": u64::from(geometry.shape().logical_pages) / size,
                "max_open_zones": part.max_open_zones,
                "max_active_zones": part.max_active_zones,
            });
            details.insert("zones".into(), zones);
            details.insert("deallocates".into(), false.into());
        }
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

    /// Set the durability of the writes that are submitted from now on.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durable.set(durability);
    }

    /// Do `ios` untimed: no time passes, everything is counted. For preconditioning and for studies
    /// of write amplification. I/Os in flight are completed first, which advances the clock.
    ///
    /// # Errors
    /// The device is or becomes read-only, and there is something to write.
    pub fn apply(&mut self, ios: impl Iterator<Item = Io>) -> Result<()> {
        self.reset_event_budget();
        while !self.host.is_settled() {
            match self.events.next(u64::MAX) {
                Some((at, token)) => self.dispatch::<AllFeatures>(at, token),
                // Units of several streams may wait in page buffers that no further write fills.
                None => self.fail_stuck_ios(),
            }
        }
        // The flash has already done its part; what would follow is done untimed.
        while self.events.next(u64::MAX).is_some() {}
        self.interface.reset();
        self.now = self.now.max(self.events.now());
        // Pages that are written now have this age.
        self.flash.clock = self.now;
        self.do_untimed(ios)
    }

    /// Do `ios` untimed while no I/O is in flight.
    fn do_untimed(&mut self, ios: impl Iterator<Item = Io>) -> Result<()> {
        self.hand_over_contents(Origin::Map);
        let SimDevice { backend, flash, cache, .. } = self;
        let applied = dispatch!(backend, backend => {
            backend.end_untimed(flash);
            for flushed in cache.iter_mut().flat_map(WriteCache::drain) {
                backend.write_untimed(flushed.page, &flushed.extent(), flash);
            }
            untimed::apply(backend, flash, ios)
        });
        self.settle_contents(true);
        applied
    }

    /// Return the error of a failed `io`.
    #[cold]
    fn failure(&self, io: &Io) -> Error {
        let at = format!("{}, byte {}", self.info.url, io.offset.0);
        match io.mode {
            Mode::Read => Error::new(
                ErrorKind::Device,
                "The simulated flash cannot be read: too many bit errors",
            )
            .at(at)
            .got("more wrong bits than the ECC corrects, after all retries")
            .action("set fail_uncorrectable = false to count such reads, or wear the device less"),
            _ => dispatch!(&self.backend, backend => backend.read_only_error()).at(at),
        }
    }

    /// Mark `size` bytes at `offset` as unused (TRIM). Partly covered pages keep their data. Takes
    /// no time.
    pub fn trim(&mut self, offset: Bytes, size: Bytes) {
        let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
        let io = Io { offset, size, mode: Mode::Write, stream: 0 };
        let covered = PageExtent::of_io(&io, page_bytes).covered();
        if self.cache.is_some() {
            let SimDevice { backend, flash, events, .. } = self;
            let (at, hardware) = (events.now(), &mut Hardware { flash, events });
            dispatch!(backend, backend => backend.drop_trimmed_writes(covered.clone(), at, hardware));
        }
        for page in covered.map(crate::Lpn) {
            dispatch!(&mut self.backend, backend => backend.trim(page));
            if let Some(cache) = &mut self.cache {
                cache.trim(page);
            }
            if let Some(contents) = &mut self.events.contents {
                contents.trimmed(page.0);
            }
        }
    }
}

// The three kinds of backends as one type.

/// A page map, a merging FTL, or zones. The variant of a device never changes, so the branch is
/// always predicted.
// Not boxed: a device has one backend and uses it for every page.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum AnyBackend {
    Paged(PageMapBackend),
    Merged(MergingBackend),
    Zoned(ZonedBackend),
}

impl AnyBackend {
    /// Return whether a write may reserve the link ahead of time and overtake an earlier write.
    /// Zones and plans of whole writes need their writes in order.
    #[inline]
    pub(crate) fn may_reserve_link(&self) -> bool {
        matches!(self, AnyBackend::Paged(_))
    }

    /// Return the flash address of `page`.
    pub(crate) fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        match self {
            AnyBackend::Paged(paged) => paged.ftl().lookup(page),
            AnyBackend::Merged(merged) => merged.lookup(page),
            AnyBackend::Zoned(zoned) => zoned.lookup(page),
        }
    }

    #[inline]
    pub(crate) fn plans_whole_writes(&self) -> bool {
        match self {
            AnyBackend::Paged(_) => PageMapBackend::PLANS_WHOLE_WRITES,
            AnyBackend::Merged(_) => MergingBackend::PLANS_WHOLE_WRITES,
            AnyBackend::Zoned(_) => ZonedBackend::PLANS_WHOLE_WRITES,
        }
    }
}

/// Evaluate `$what` for the backend, whichever kind it is.
macro_rules! dispatch {
    ($backend:expr, $name:ident => $what:expr) => {
        match $backend {
            $crate::device::AnyBackend::Paged($name) => $what,
            $crate::device::AnyBackend::Merged($name) => $what,
            $crate::device::AnyBackend::Zoned($name) => $what,
        }
    };
}
pub(crate) use dispatch;

// Creation of the backend and the write cache of a profile.

impl Profile {
    /// Return the write cache, if the profile has one.
    pub(crate) fn write_cache(&self) -> Option<WriteCache> {
        let unit = self.geometry.page_bytes / self.units();
        let sectors = unit / self.geometry.sector_bytes;
        let pages = self.cache.write_cache_bytes / u64::from(unit);
        let together = self.units() as usize;
        (pages > 0).then(|| WriteCache::new(pages as usize, sectors, self.cache.flush, together))
    }

    /// Return the backend of the profile.
    ///
    /// # Errors
    /// Unknown names or parameters of policies.
    pub(crate) fn backend(&self) -> Result<AnyBackend> {
        let geometry = self.geometry();
        let planes = geometry.shape().planes;
        if let Some(part) = self.zones {
            return Ok(AnyBackend::Zoned(ZonedBackend::new(geometry, part)));
        }
        if self.merges() {
            let steps = self.streams.as_ref().map_or(0, |part| part.reads_per_step);
            let buffers = self.streams.as_ref().is_some_and(|part| part.rewrite_buffer);
            let ftl = Merging::by_name(&self.merging_options())?;
            let jobs = PlanJobs::new(planes, self.ftl.merges_side_by_side.unwrap_or(1));
            return Ok(AnyBackend::Merged(MergingBackend::new(ftl, jobs, steps, buffers)));
        }
        let gc = self.gc()?;
        let ftl = PageMap::new(self.ftl_options()?);
        let hosts = ftl.write_streams();
        let frontiers = self.relocation_frontier(gc).open_blocks(hosts);
        let gather = (self.units() > 1).then(|| PageBuffer::new(planes, hosts, frontiers));
        let pace = Pace {
            idle_goal: gc.idle_free_blocks as usize,
            blocks: gc.collections_per_channel,
            pages: gc.relocations_at_once.unwrap_or(1),
        };
        Ok(AnyBackend::Paged(PageMapBackend::new(
            ftl,
            geometry.shape(),
            pace,
            gather,
            self.data_reduction(),
        )))
    }
}

// The `Device` trait of a simulated device.

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

    fn set_content(&mut self, content: Option<ContentShares>) -> Result<()> {
        if let AnyBackend::Paged(PageMapBackend { reduction: Some(reduction), .. }) =
            &mut self.backend
        {
            reduction.set_content(content.unwrap_or_default());
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        let absorbed = self.cache.as_ref().map_or(0, |cache| cache.absorbed);
        let pages_absorbed = self.flash.counters.pages_absorbed + absorbed;
        let energy = self.events.energy.as_ref();
        let energy = energy.map(|meter| meter.energy(self.host.commands(), self.now));
        Some(Counters { pages_absorbed, energy, ..self.flash.counters })
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

// A block device as a snapshot file.

impl Snapshot for SimDevice {
    type Profile = Profile;
    const INTERFACE: &str = "block";

    fn check(profile: &Profile, location: &str) -> Result<()> {
        profile.check(location)
    }

    fn memory_bytes(profile: &Profile) -> u64 {
        profile.memory_bytes()
    }

    fn description(name: &str, profile: &Profile) -> DeviceInfo {
        SimDevice::inspect(name, profile)
    }

    fn matches_profile(&self, profile: &Profile) -> bool {
        let paged = matches!(self.backend, AnyBackend::Paged(_));
        self.flash.geometry == profile.geometry()
            && self.sector_bytes == u64::from(profile.geometry.sector_bytes)
            && self.cache.is_some() == profile.write_cache().is_some()
            && paged == profile.gc.is_some()
            && self.has_zones() == profile.zones.is_some()
    }

    fn with_description(mut self, info: DeviceInfo) -> SimDevice {
        self.info = info;
        let reduction = self.profile().data_reduction();
        if let AnyBackend::Paged(paged) = &mut self.backend {
            paged.reduction = reduction;
        }
        self.minimal = self.is_built_minimal();
        self.event_budget = SimDevice::event_budget(&self.flash.geometry);
        self
    }

    fn save_unless(&self, path: &Path, is_stopped: &dyn Fn() -> bool) -> Result<()> {
        snapshot::save_unless(self, path, is_stopped)
    }

    fn restore(path: &Path) -> Result<SimDevice> {
        snapshot::restore(path)
    }
}

// Read-only access to the inside of a device, for recordings and drawings: contents of its blocks,
// operations of its dies.

impl SimDevice {
    /// Record every flash operation from now on. I/Os are numbered from here as well.
    ///
    /// # Panics
    /// If an I/O is outstanding.
    pub fn record_operations(&mut self) {
        assert!(self.host.is_idle(), "no I/O may be outstanding");
        self.host.number_from_here();
        self.events.begin_log(self.events.now(), work_of);
    }

    /// Note an I/O that was submitted at `begin` and ended at `end`: a long log keeps only the
    /// operations around the slowest I/Os.
    pub fn note_completion(&mut self, begin: u64, end: u64) {
        self.events.log_completion(begin, end);
    }

    /// Stop recording; return the operations since [`SimDevice::record_operations`].
    pub fn recorded_operations(&mut self) -> Operations {
        self.events.end_log()
    }

    /// Return the channel of each plane, and the time of a page transfer [ns].
    #[must_use]
    pub fn channels(&self) -> (Vec<u32>, u64) {
        let planes = 0..self.flash.geometry.shape().planes;
        let channels =
            planes.map(|plane| self.flash.geometry.channel_of(PlaneIdx(plane)) as u32).collect();
        (channels, self.events.timing.transfer_ns)
    }

    /// Return the clock of each plane: its own, or that of the first plane of its die.
    #[must_use]
    pub fn clocks(&self) -> Vec<u32> {
        let geometry = &self.flash.geometry;
        (0..geometry.shape().planes).map(|plane| geometry.die_of(PlaneIdx(plane)).0).collect()
    }

    /// Return channels, planes, data and metadata pages per block, and bytes per page.
    #[must_use]
    pub fn shape(&self) -> [u32; 4] {
        let shape = self.flash.geometry.shape();
        [shape.channels, shape.planes, shape.pages_per_block, shape.page_bytes]
    }

    /// Return the erase count of each block, plane by plane.
    #[must_use]
    pub fn erases(&self) -> Vec<u32> {
        let blocks = 0..self.flash.geometry.blocks();
        blocks.map(|block| self.flash.nand.erases(BlockIdx(block))).collect()
    }

    /// Return the number of erased blocks per plane without programmed pages.
    #[must_use]
    pub fn erased_blocks(&self) -> Vec<u32> {
        self.flash.nand.erased_blocks()
    }

    /// Return the number of valid pages of each full block, `None` for others. Return nothing if
    /// the FTL does not count them, as a merging FTL.
    #[must_use]
    pub fn valid_pages(&self) -> Option<Vec<Option<u16>>> {
        let AnyBackend::Paged(paged) = &self.backend else { return None };
        let blocks = 0..self.flash.geometry.blocks();
        Some(blocks.map(|block| paged.ftl().valid_in(BlockIdx(block))).collect())
    }
}

/// Return the purpose of the operation of an event tag.
fn work_of(token: u64) -> OpSource {
    match EventTag::from(token).event() {
        DeviceEvent::Collect(plane) => OpSource::Collection(plane.0),
        DeviceEvent::StepDone(job, _) => OpSource::Plan(job.0),
        _ => OpSource::Other,
    }
}
