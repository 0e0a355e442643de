//! Power loss at any moment, and workloads that end in one: volatile data and unfinished flash operations are lost.
//!
//! **Source**: uFLIP (2009) §2.2; Zheng et al. (2013), *Understanding the robustness of SSDs under power fault*.
//! **Faithful**: data covered by a flush or FUA is never lost, since the erase of a block waits for
//! the programs that replace its pages. Volatile memory is lost.
//! **Simplified**: power fails within one nanosecond; capacitors last as long as needed, and the
//! data they save is written to flash before the device is ready again.
//! **Ambiguous**: the fate of trimmed data. Here a trim is not recorded on flash, so an older
//! version may come back.

use uflip_core::{Device as _, Error, Io, Nanos, Result, random};

use super::event::PageIdx;
use super::host_interface::Interface;
use super::{AnyBackend, PageMapBackend, Recovery, SimDevice};
use crate::config::{CLOCK_END_NS, Profile, clock_overflow};
use crate::flash::contents::{Contents, Origin};
use crate::flash::geometry::{Lpn, PageAddress};
use crate::timeline::Timeline;

/// The losses of a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PowerCut {
    /// The time of the power cut.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// I/Os that had not completed, or whose completion the host had not received.
    pub ios_under_way: u32,
    /// Pages in the write cache that were not on flash; capacitors save them.
    pub pages_in_cache: u32,
    /// Flash pages whose program was interrupted; they cannot be read.
    pub pages_torn: u32,
    /// Flash pages whose program was queued and had not begun.
    pub pages_not_begun: u32,
    /// Blocks whose erase was interrupted; they must be erased again.
    pub blocks_half_erased: u32,
    /// Host pages whose newest version that reached the device is not on flash.
    pub pages_lost: u32,
    /// Trimmed pages that can be read again.
    #[serde(rename = "pages_come_back")]
    pub pages_resurrected: u32,
}

impl SimDevice {
    /// Record the flash contents if the profile allows power losses.
    pub(super) fn track_contents(&mut self, profile: &Profile) {
        if profile.power_loss.is_none() {
            return;
        }
        let pages = match &self.backend {
            AnyBackend::Paged(paged) => paged.ftl().mapped_pages(),
            AnyBackend::Merged(merged) => {
                self.flash.geometry.shape().logical_pages + merged.ftl.map_pages()
            }
            AnyBackend::Zoned(_) => return,
        };
        let mut contents = Contents::new(profile.ftl_geometry(), pages);
        if self.flash.replaces_blocks() {
            contents.track_physical_blocks(&self.flash.geometry, self.flash.is_ordered());
            self.flash.record_notes();
        }
        if profile.reliability.is_some() {
            contents.list_defects(&self.flash.geometry);
            contents.list_all(&self.flash.nand, &[]);
        }
        self.events.set_contents(Box::new(contents));
    }

    /// Record that the data of a host page has arrived.
    #[inline(always)]
    pub(super) fn note_arrival(&mut self, index: PageIdx) {
        if self.events.contents.is_some() {
            self.record_arrival(index);
        }
    }

    #[inline(never)]
    fn record_arrival(&mut self, index: PageIdx) {
        let page = self.host.page_of(index);
        let is_cached = self.cache.is_some() && !self.host.is_write_through(page.io);
        if let Some(contents) = &mut self.events.contents {
            contents.arrived(page.page.0, index.account().number(), is_cached);
        }
    }

    /// Hand the contents to a merging FTL, which records its own untimed work as versions of this
    /// origin.
    pub(super) fn hand_over_contents(&mut self, origin: Origin) {
        if let AnyBackend::Merged(merged) = &mut self.backend {
            merged.contents = self.events.contents.take().map(|contents| (contents, origin));
        }
    }

    /// Record untimed work as on flash, as versions that are new (`new_versions`) or already known.
    pub(super) fn settle_contents(&mut self, new_versions: bool) {
        let SimDevice { events, backend, flash, .. } = self;
        if let (Some(contents), AnyBackend::Paged(paged)) = (&mut events.contents, &*backend) {
            let ftl = paged.ftl();
            let programmed = |block| flash.nand.programmed(block);
            contents.settle(ftl.mapped(), new_versions, programmed, |block| ftl.label(block));
            contents.list_all(&flash.nand, ftl.failed_programs());
        }
        if let AnyBackend::Merged(merged) = &mut self.backend
            && let Some((mut contents, _)) = merged.contents.take()
        {
            contents.apply_all();
            self.events.set_contents(contents);
        }
    }

    /// Return the error of a submission to a device without power or time left.
    #[cold]
    pub(super) fn refusal_error(&self) -> Error {
        if self.refuses_from == CLOCK_END_NS {
            return clock_overflow().at(&self.info.url);
        }
        Error::usage("The device has no power or has not recovered yet")
            .at(&self.info.url)
            .action("let it recover first")
    }

    /// Return the profile of the device.
    pub(super) fn profile(&self) -> Profile {
        let profile = self.info.details.get("profile").cloned().unwrap_or_default();
        serde_json::from_value(profile).expect("the device info has the profile")
    }

    /// Cut power at `at`, after all earlier events. Work in progress is lost without a completion.
    /// Submissions fail until [`SimDevice::recover`] has ended.
    ///
    /// # Errors
    /// The profile has no table `[power_loss]`; `at` is past.
    pub fn cut_power(&mut self, at: Nanos) -> Result<PowerCut> {
        let profile = self.profile();
        let Some(part) = profile.power_loss.filter(|_| self.events.contents.is_some()) else {
            return Err(Error::usage("The device does not track the contents of its flash")
                .at(&self.info.url)
                .got("a profile without [power_loss]")
                .action("add ?power_loss_protection=false&spare_read_bytes=16 to its name"));
        };
        let latest = self.now.max(self.events.now());
        if at.0 < latest {
            return Err(Error::usage("Power cannot be cut in the past")
                .at(&self.info.url)
                .got(format!("{} ns", at.0))
                .allowed(format!("{latest} ns and later: earlier events are simulated already"))
                .action("cut it now, or simulate no further than the time of the cut"));
        }
        self.advance(at.0);
        let trimmed = self.unmapped();
        let pages_in_cache = self.cache.as_ref().map_or(0, |cache| cache.volatile()) as u32;
        let protected = part.power_loss_protection;
        let mut contents = self.events.contents.take().expect("flash contents are recorded");
        let cut = contents.cut(at.0, protected);
        if let Some(defects) = contents.defects() {
            self.flash.reset_after_power_loss(defects.listed(), contents.erased_blocks());
        }
        let image = contents.read_image();
        let resurrected = trimmed.iter().filter(|page| image.map[page.0 as usize].is_some());
        let pages_resurrected = resurrected.count() as u32;
        let ios_under_way = self.lose_memory(&profile, at.0);
        self.events.set_contents(contents);
        Ok(PowerCut {
            at,
            ios_under_way,
            pages_in_cache,
            pages_torn: cut.torn,
            pages_not_begun: cut.not_begun,
            blocks_half_erased: cut.half_erased,
            pages_lost: cut.lost,
            pages_resurrected,
        })
    }

    /// Return the host pages without data.
    fn unmapped(&self) -> Vec<Lpn> {
        let pages = (0..self.flash.geometry.shape().logical_pages).map(Lpn);
        pages.filter(|page| self.place_of(*page).is_none()).collect()
    }

    /// Return the address of a host page in the FTL's geometry.
    pub(super) fn place_of(&self, page: Lpn) -> Option<PageAddress> {
        match &self.backend {
            AnyBackend::Paged(paged) => paged.ftl().lookup(page),
            AnyBackend::Merged(merged) => merged.lookup(page),
            AnyBackend::Zoned(_) => None,
        }
    }

    /// Reset everything but the flash and the clock. Return the number of outstanding I/Os.
    fn lose_memory(&mut self, profile: &Profile, at: u64) -> u32 {
        self.backend = profile.backend().expect("the profile was valid before");
        self.events = Timeline::new(self.flash.geometry, profile.timing());
        self.events.advance_to(at);
        let absorbed = self.cache.as_ref().map_or(0, |cache| cache.absorbed);
        self.cache = profile.write_cache();
        self.cache.iter_mut().for_each(|cache| cache.absorbed = absorbed);
        self.durable.drop_waiting();
        self.interface = Interface::new(profile.timing.commands_at_once, &profile.queue_weights());
        self.interrupts.iter_mut().for_each(|interrupts| interrupts.drop_pending());
        self.announced = Default::default();
        (self.read_end, self.now, self.refuses_from) = (0, at, 0);
        (self.flash.retries, self.flash.read_failed) = (0, false);
        self.host.drop_outstanding()
    }

    /// Return the version of `page` (in flash pages or units) that a read would find: the number of
    /// its write, from 1 on, or 0 without data. `None` if versions are not recorded.
    #[must_use]
    pub fn version_of(&self, page: u32) -> Option<u64> {
        let contents = self.events.contents.as_ref()?;
        let at = self.place_of(Lpn(page));
        let saved = contents.saved_version(page).unwrap_or(0);
        Some(at.map_or(0, |at| contents.version_at(page, at.page)).max(saved))
    }
}

// Verification of data: versions stand for contents.

impl SimDevice {
    /// Return the number of the write of `page` (in flash pages or units) whose data a read would
    /// find; 0 without data.
    ///
    /// # Errors
    /// The device does not track the contents of its flash.
    pub fn stored_version(&self, page: u32) -> Result<u64> {
        let contents = self.tracked_contents()?;
        if let AnyBackend::Paged(PageMapBackend { reduction: Some(reduction), .. }) = &self.backend
            && reduction.is_absent(Lpn(page))
        {
            return Ok(contents.trimmed_version(page));
        }
        let at = self.place_of(Lpn(page)).map(|at| at.page);
        Ok(contents.version_in_memory(page).unwrap_or_else(|| contents.decided_version(page, at)))
    }

    /// Return the number of writes of `page` that have reached the device.
    ///
    /// # Errors
    /// As [`SimDevice::stored_version`].
    pub fn written_version(&self, page: u32) -> Result<u64> {
        Ok(self.tracked_contents()?.written_version(page))
    }

    /// Return the contents of the flash.
    fn tracked_contents(&self) -> Result<&Contents> {
        self.events.contents.as_deref().ok_or_else(|| {
            Error::usage("The device does not track the contents of its flash")
                .at(&self.info.url)
                .got("a profile without [power_loss]")
                .action("add ?power_loss_protection=true&spare_read_bytes=16 to its name")
        })
    }

    /// Return the silent errors of the profile: whether the data of this write of a page, from
    /// the host, is stored wrong. Copies of the page are then wrong, too.
    pub fn silent_errors(&self) -> impl Fn(u32, u64) -> bool + use<> {
        let part = self.profile().power_loss;
        let per_million = part.and_then(|part| part.silent_errors_per_million).unwrap_or(0);
        move |page, version| {
            let draw = random::mix(random::mix(u64::from(page)) ^ version) % 1_000_000;
            draw < u64::from(per_million)
        }
    }

    /// Return the size of the pages that have versions [bytes].
    #[must_use]
    pub fn version_bytes(&self) -> u64 {
        u64::from(self.flash.geometry.shape().page_bytes)
    }
}

// A workload that ends in a power loss, and the recovery.

/// A power loss from beginning to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Outage {
    /// I/Os completed to the host before the power loss.
    pub ios_completed: u64,
    /// The losses.
    pub cut: PowerCut,
    /// The recovery.
    pub recovery: Recovery,
}

impl SimDevice {
    /// Do `ios` at a queue depth of `at_once` until power is cut at `at`, and recover. If they end
    /// earlier, the device is idle until then.
    ///
    /// # Errors
    /// Those of the I/Os and of [`SimDevice::cut_power`]; `at` is past the end of the clock.
    pub fn survive(
        &mut self,
        ios: impl Iterator<Item = Io>,
        at_once: u32,
        at: Nanos,
    ) -> Result<Outage> {
        if at.0 >= CLOCK_END_NS {
            return Err(clock_overflow().at(&self.info.url));
        }
        let (mut outstanding, mut ios_completed) = (0, 0);
        let mut ios = ios.fuse();
        loop {
            while outstanding < at_once
                && let Some(io) = ios.next()
            {
                self.submit(&io)?;
                outstanding += 1;
            }
            if outstanding == 0 {
                self.wait_until(at);
                break;
            }
            if self.next_completion(at).is_none() {
                break;
            }
            self.complete()?;
            outstanding -= 1;
            ios_completed += 1;
        }
        let cut = self.cut_power(at)?;
        let recovery = self.recover()?;
        Ok(Outage { ios_completed, cut, recovery })
    }
}
