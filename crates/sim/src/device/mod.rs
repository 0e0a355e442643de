//! A simulated SSD behind the `Device` trait: the host interface and the virtual clock.
//!
//! The controller processes a host I/O's command and splits the I/O into flash pages. The I/O
//! completes when its last page does. The controller alone answers reads of pages that were never
//! written. A write that covers part of a page reads the rest first.

mod any;
mod backend;
mod build;
mod cache;
mod cache_traffic;
mod collector;
mod describe;
mod device_impl;
mod durable;
mod event;
mod flushing;
mod host;
mod inflight_flushes;
mod inspect;
mod interface;
mod interrupts;
mod io_path;
mod jobs;
mod merging;
mod outage;
mod page_allocation;
mod page_buffer;
mod paged;
mod plan_records;
mod planned_write;
mod power;
mod precondition;
mod rebuild;
mod recovery;
mod saved;
mod scan;
mod scrub;
mod sub_page;
#[cfg(test)]
mod tests;
mod timed_flash;
mod untimed;
mod write_backlog;
mod zone_commands;
mod zoned;

use std::ops::Range;

use uflip_core::{Bytes, Counters, DeviceInfo, Durability, Error, ErrorKind, Io, Mode, Result};

use crate::config::{CLOCK_END_NS, Profile};
use crate::device::any::{AnyBackend, dispatch};
use crate::device::backend::{Backend as _, Hardware};
use crate::device::cache::WriteCache;
use crate::device::describe::{describe, history};
use crate::device::durable::Durable;
use crate::device::event::EventTag;
use crate::device::host::Host;
use crate::device::interface::Interface;
use crate::device::interrupts::Interrupts;
use crate::flash::contents::Origin;
use crate::flash::fast_path::AllFeatures;
use crate::flash::media::Flash;
use crate::ftl::extent::PageExtent;
use crate::snapshot::not_described;
use crate::timeline::Timeline;

pub use outage::Outage;
pub use power::PowerCut;
pub use recovery::Recovery;

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
        precondition::bytes(profile)
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
            info: describe(name, &profile),
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
        device.minimal = device.is_built_minimal();
        device.do_untimed(precondition::writes(&profile).take_while(|io| !is_stopped(io.size)))?;
        if is_stopped(Bytes(0)) {
            return Err(Error::new(ErrorKind::Interrupted, "Making the device was interrupted"));
        }
        device.info.details.insert("history".into(), history(&device.flash));
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
        describe(name, profile)
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
