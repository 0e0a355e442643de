//! A simulated open-channel SSD behind the `Device` trait: vectors, statuses and the virtual clock.

use std::path::Path;

use serde_json::Map;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus};
use uflip_core::{
    Bytes, Counters, Device, DeviceInfo, FlashGeometry, FlashIo, FlashStatus, Nanos, Ppa, Result,
    Ticket,
};

use super::outstanding::{CommandPageIdx, FlashCompletion, OutstandingCommands};
use super::profile::{MediaPart, OpenChannelProfile};
use super::threads::{Thread, ThreadTimes};
use crate::config::{CLOCK_END_NS, clock_overflow};
use crate::flash::geometry::{BlockIdx, DieIdx, PageAddress};
use crate::flash::media::Flash;
use crate::snapshot::{self, Snapshot, not_described};
use crate::timeline::Timeline;
use crate::timeline::breakdown::FlashBreakdown;

/// The state of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[allow(missing_docs)]
pub struct BlockState {
    pub erases: u32,
    pub pages_written: u32,
    pub retired: bool,
}

/// An open-channel SSD in virtual time. A clone is an independent device in the same state.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct OpenChannelDevice {
    /// Derived from the profile; [`Snapshot::with_description`] restores it.
    #[serde(skip, default = "not_described")]
    info: DeviceInfo,
    pub(super) geometry: FlashGeometry,
    pub(super) flash: Flash,
    /// Erases of every block before the device was delivered.
    pub(super) erases_before: u32,
    pub(super) part: MediaPart,
    /// Writes are acknowledged when their data has arrived, not when it is programmed.
    pub(super) write_back: bool,
    pub(super) threads: ThreadTimes,
    /// The thread of each channel.
    pub(super) channels: Vec<Thread>,
    pub(super) timeline: Timeline<CommandPageIdx, FlashBreakdown>,
    #[serde(rename = "under_way")]
    pub(super) outstanding: OutstandingCommands,
    /// Random numbers for retries.
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) now: u64,
}

impl OpenChannelDevice {
    /// Create the device of `profile`.
    ///
    /// # Errors
    /// Numbers that make no wear law.
    pub fn new(name: &str, profile: &OpenChannelProfile) -> Result<OpenChannelDevice> {
        let geometry = profile.geometry();
        let flash = profile.flash()?;
        let mut timeline = Timeline::new(flash.geometry, profile.timing());
        timeline.set_event_budget(u64::MAX);
        Ok(OpenChannelDevice {
            info: OpenChannelDevice::inspect(name, profile),
            geometry,
            flash,
            erases_before: profile.state.erases,
            part: profile.media.clone(),
            write_back: profile.controller.write_back,
            threads: profile.threads(),
            channels: vec![Thread::default(); geometry.channels as usize],
            timeline,
            outstanding: OutstandingCommands::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(profile.state.seed),
            now: 0,
        })
    }

    /// Return the description of the device of `profile` without creating it.
    #[must_use]
    pub fn inspect(name: &str, profile: &OpenChannelProfile) -> DeviceInfo {
        let geometry = profile.geometry();
        let mut details = Map::new();
        details.insert("interface".into(), "open_channel".into());
        details.insert("geometry".into(), serde_json::to_value(geometry).expect("serializable"));
        details.insert("profile".into(), serde_json::to_value(profile).expect("serializable"));
        DeviceInfo {
            url: format!("sim:{name}"),
            model: name.into(),
            capacity_bytes: Bytes(geometry.capacity_bytes()),
            sector_bytes: Bytes(u64::from(geometry.sector_bytes)),
            details,
            ..not_described()
        }
    }

    /// Return the geometry.
    #[must_use]
    pub fn geometry(&self) -> &FlashGeometry {
        &self.geometry
    }

    /// Return the state of the block of `at`.
    ///
    /// # Errors
    /// The address is outside the device.
    pub fn block_state(&self, at: Ppa) -> Result<BlockState> {
        self.geometry().check(at)?;
        let block = self.block(at);
        let nand = &self.flash.nand;
        Ok(BlockState {
            erases: self.erases_before.saturating_add(nand.erases(block)),
            pages_written: nand.next_page(block) / self.geometry.write_sectors(),
            retired: nand.check_erase(block).is_err(),
        })
    }

    /// Return the LUN of `at`, whose planes work together; the channel index varies fastest.
    #[inline]
    pub(super) fn die(&self, at: Ppa) -> DieIdx {
        DieIdx(u32::from(at.lun) * self.geometry.channels + u32::from(at.channel))
    }

    /// Return the block of `at`, in all planes.
    #[inline]
    pub(super) fn block(&self, at: Ppa) -> BlockIdx {
        BlockIdx(self.die(at).0 * self.geometry.blocks_per_plane + at.block)
    }

    /// Return the sector at `at`.
    #[inline]
    pub(super) fn page_address(&self, at: Ppa) -> PageAddress {
        let geometry = &self.geometry;
        let sector = geometry.sector_of_page(at.plane, at.sector);
        self.flash.geometry.address_at(self.block(at), at.page * geometry.write_sectors() + sector)
    }

    /// Return when the first command is answered, if that is by `before` and nothing is submitted
    /// until then.
    fn settle(&mut self, before: u64) -> Option<u64> {
        while self.outstanding.has_open() {
            let until = self.outstanding.first().map_or(before, |first| first.min(before));
            let Some((at, page)) = self.timeline.next(until) else { break };
            self.page_ended(page, at);
        }
        self.outstanding.first().filter(|first| *first <= before)
    }
}

impl Device for OpenChannelDevice {
    type Request = FlashIo;
    type Status = FlashStatus;
    type Breakdown = FlashBreakdown;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn wait_until(&mut self, t: Nanos) {
        self.now = self.now.max(t.0);
    }

    fn submit(&mut self, request: &FlashIo) -> Result<Ticket> {
        if self.now >= CLOCK_END_NS {
            return Err(clock_overflow().at(&self.info.url));
        }
        Ok(self.execute(request))
    }

    #[inline]
    fn next_completion(&mut self, before: Nanos) -> Option<Nanos> {
        self.settle(before.0).map(Nanos)
    }

    #[inline]
    fn complete(&mut self) -> Result<FlashCompletion> {
        self.settle(u64::MAX);
        let completion = self.outstanding.take().expect("a command is outstanding");
        self.now = self.now.max(completion.completed.0);
        Ok(completion)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.flash.counters)
    }

    fn split(&self, _: usize) -> Result<Option<Vec<OpenChannelDevice>>> {
        // One device serves all threads: they share its channels.
        Ok(None)
    }
}

impl Snapshot for OpenChannelDevice {
    type Profile = OpenChannelProfile;
    const INTERFACE: &str = "open_channel";

    fn check(profile: &OpenChannelProfile, location: &str) -> Result<()> {
        profile.check(location)
    }

    fn memory_bytes(profile: &OpenChannelProfile) -> u64 {
        profile.memory_bytes()
    }

    fn description(name: &str, profile: &OpenChannelProfile) -> DeviceInfo {
        OpenChannelDevice::inspect(name, profile)
    }

    fn matches_profile(&self, profile: &OpenChannelProfile) -> bool {
        self.geometry == profile.geometry()
            && self.part == profile.media
            && self.flash.geometry == profile.flash_geometry()
            && self.channels.len() == self.geometry.channels as usize
    }

    fn with_description(mut self, info: DeviceInfo) -> OpenChannelDevice {
        self.timeline.set_event_budget(u64::MAX);
        OpenChannelDevice { info, ..self }
    }

    fn save_unless(&self, path: &Path, is_stopped: &dyn Fn() -> bool) -> Result<()> {
        snapshot::save_unless(self, path, is_stopped)
    }

    fn restore(path: &Path) -> Result<OpenChannelDevice> {
        snapshot::restore(path)
    }
}
