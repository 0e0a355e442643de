//! A simulated SSD behind the `Device` trait: the host interface and the virtual clock.
//!
//! A host I/O is taken in by the controller, cut into flash pages, and completes when its last page
//! does. Reads of pages that were never written are answered by the controller alone. A write that
//! covers a page only in part reads the rest first.

mod any;
mod backend;
mod build;
mod cache;
mod cached;
mod collector;
mod decided;
mod describe;
mod device_impl;
mod durable;
mod event;
mod flushing;
mod host;
mod inflight_flushes;
mod inside;
mod interface;
mod interrupts;
mod io_path;
mod jobs;
mod merging;
mod outage;
mod page_allocation;
mod page_buffer;
mod paged;
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
mod written;
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
use crate::flash::fast_path::Full;
use crate::flash::media::Flash;
use crate::ftl::extent::Extent;
use crate::snapshot::not_described;
use crate::timeline::Timeline;

pub use outage::Outage;
pub use power::PowerCut;
pub use recovery::Recovery;

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
    events: Timeline<EventTag>,
    host: Host,
    interface: Interface,
    /// Where the host does not hear of an end by that alone.
    interrupts: Option<Box<Interrupts>>,
    cache: Option<WriteCache>,
    durable: Durable,
    now: u64,
    /// From then on nothing is submitted any more: at the end of the clock, and while there is no power.
    refuses_from: u64,
    sector_bytes: u64,
    /// See [`SimDevice::is_built_minimal`]; false of a device that was not described yet.
    #[serde(skip)]
    minimal: bool,
    /// So much may happen before the host has its turn again.
    #[serde(skip)]
    events_most: u64,
    /// Where the last read ended [bytes].
    read_end: u64,
    /// The pages of the last I/Os that were announced.
    #[serde(skip)]
    announced: [Range<u32>; ANNOUNCED],
    /// How many were.
    #[serde(skip)]
    announcements: usize,
}

impl SimDevice {
    /// About how much is written to bring a new device into the state of `profile`.
    #[must_use]
    pub fn state_bytes(profile: &Profile) -> Bytes {
        precondition::bytes(profile)
    }

    /// Make the device that `profile` describes, in the state that it asks for.
    ///
    /// # Errors
    /// As [`SimDevice::make`].
    pub fn new(name: &str, profile: Profile) -> Result<SimDevice> {
        SimDevice::make(name, profile, |_| false)
    }

    /// The same, until `is_stopped` says that it is not wanted any more; asked with the size of every
    /// write that brings the device into its state.
    ///
    /// # Errors
    /// Names in the profile that do not exist; a device that wears out before it is in its state;
    /// [`ErrorKind::Interrupted`] where it was stopped.
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
            durable: Durable::of(&profile),
            now: 0,
            refuses_from: CLOCK_END_NS,
            sector_bytes: u64::from(profile.geometry.sector_bytes),
            minimal: false,
            events_most: SimDevice::most_events(&geometry),
            read_end: 0,
            announced: Default::default(),
            announcements: 0,
        };
        device.keep_contents(&profile);
        device.minimal = device.is_built_minimal();
        device.do_untimed(precondition::writes(&profile).take_while(|io| !is_stopped(io.size)))?;
        if is_stopped(Bytes(0)) {
            return Err(Error::new(ErrorKind::Interrupted, "Making the device was interrupted"));
        }
        device.info.details.insert("history".into(), history(&device.flash));
        // What brought the device into its state is not part of any measurement.
        device.flash.counters = Counters::default();
        device.flash.clock = 0;
        Ok(device)
    }

    /// Whether it has nothing that a device need not have: see [`crate::flash::make`].
    fn is_built_minimal(&self) -> bool {
        let paged = match &self.backend {
            AnyBackend::Paged(paged) => paged.is_minimal(),
            _ => false,
        };
        let waits =
            self.cache.is_some() || self.interface.is_limited() || self.interrupts.is_some();
        paged && !waits && self.flash.is_minimal() && self.events.is_minimal()
    }

    /// What is known of the device that `profile` describes, without making it: no state, no history.
    #[must_use]
    pub fn inspect(name: &str, profile: &Profile) -> DeviceInfo {
        describe(name, profile)
    }

    /// What the writes that are submitted from now on wait for.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durable.ask_for(durability);
    }

    /// Do what `ios` ask for in the untimed gear: no time passes, everything is counted. For bringing
    /// a device into a state, and for studies of write amplification. What is under way is ended
    /// first, and the clock goes on until then.
    ///
    /// # Errors
    /// The device is, or becomes, read-only, and something is to be written.
    pub fn apply(&mut self, ios: impl Iterator<Item = Io>) -> Result<()> {
        self.host_has_its_turn();
        while !self.host.is_settled() {
            match self.events.next(u64::MAX) {
                Some((at, token)) => self.dispatch::<Full>(at, token),
                // Units of several streams may wait in buffers that nobody fills up.
                None => self.is_stuck(),
            }
        }
        // Flash does what it was asked for already; what would have followed is done without time.
        while self.events.next(u64::MAX).is_some() {}
        self.interface.rest();
        self.now = self.now.max(self.events.now());
        // What is written now is as old as that.
        self.flash.clock = self.now;
        self.do_untimed(ios)
    }

    /// Do what `ios` ask for in the untimed gear, while nothing is under way.
    fn do_untimed(&mut self, ios: impl Iterator<Item = Io>) -> Result<()> {
        self.lend_contents(Origin::Map);
        let SimDevice { backend, flash, cache, .. } = self;
        let applied = dispatch!(backend, backend => {
            backend.end_untimed(flash);
            for flushed in cache.iter_mut().flat_map(WriteCache::empty) {
                backend.write_untimed(flushed.page, &flushed.extent(), flash);
            }
            untimed::apply(backend, flash, ios)
        });
        self.settle_contents(true);
        applied
    }

    /// Why `io` failed.
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
            _ => dispatch!(&self.backend, backend => backend.why_read_only()).at(at),
        }
    }

    /// Tell the device that `size` bytes at `offset` are not needed any more (TRIM). Pages that are
    /// covered only in part keep their data. Takes no time.
    pub fn trim(&mut self, offset: Bytes, size: Bytes) {
        let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
        let io = Io { offset, size, mode: Mode::Write, stream: 0 };
        let covered = Extent::of(&io, page_bytes).covered();
        if self.cache.is_some() {
            let SimDevice { backend, flash, events, .. } = self;
            let (at, hardware) = (events.now(), &mut Hardware { flash, events });
            dispatch!(backend, backend => backend.forget(covered.clone(), at, hardware));
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
