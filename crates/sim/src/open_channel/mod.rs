//! A simulated open-channel SSD: NAND, channels and a controller without a translation layer.
//!
//! ```text
//! FlashIo → pages → NAND checks and applies → threads, and timeline charges time → Completion with a status an address
//!           (commands)     (flash)               (below)    (timeline)              (commands)
//! ```
//!
//! **Source**: uFLIP-OC (2017) §4–5 (DragonFire Card with the OX controller), and the public
//! sources of OX for details missing in the paper: one NAND command per page, the order of its
//! threads, and that a command to a busy LUN holds its channel.
//! **Faithful**: low and high pages of MLC; write-back, acknowledged when the data is in the card;
//! reads dominated by the transfer through the ECC; reads that wait for programs and are retried;
//! submission paths for all channels; a channel that its LUNs use in turn.
//! **Simplified**: of several submission paths a command takes the one that is free first, which is its own
//! while the host has no more threads than cores; the pages of a channel keep the order of submission;
//! planes of a LUN work together; no data is kept, but stamps if it is compared;
//! the threads of OX are times, not schedules; a low page can be read before the high page of its
//! cells is written.
//! **Ambiguous**: the cause of the time between two LUNs of a channel. The paper says "overhead on
//! the DFC and OX controller"; here it is [`profile::ControllerPart::lun_switch_ns`], fitted.

mod commands;
mod profile;
mod stamps;

use std::path::Path;

use serde_json::Map;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus};
use uflip_core::{
    Bytes, Counters, Device, DeviceInfo, FlashGeometry, FlashIo, FlashStatus, Nanos, Ppa, Result,
    Ticket,
};

use crate::config::{CLOCK_END_NS, clock_overflow};
use crate::flash::geometry::{BlockIdx, DieIdx, PageAddress};
use crate::flash::media::Flash;
use crate::snapshot;
use crate::snapshot::{Snapshot, not_described};
use crate::timeline::Timeline;
use crate::timeline::breakdown::FlashBreakdown;
use crate::timeline::log::{OpSource, Operations};
use commands::{CommandPageIdx, FlashCompletion, OutstandingCommands};
use profile::MediaPart;
#[cfg(test)]
pub(crate) use profile::OPEN_CHANNEL;
pub use profile::OpenChannelProfile;
use stamps::SectorStamps;

// A simulated open-channel SSD behind the `Device` trait: vectors, statuses and the virtual clock.

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
    geometry: FlashGeometry,
    flash: Flash,
    /// Erases of every block before the device was delivered.
    erases_before: u32,
    part: MediaPart,
    /// Writes are acknowledged when their data has arrived, not when it is programmed.
    write_back: bool,
    threads: ThreadTimes,
    submission: SubmissionPaths,
    /// The thread of each channel.
    channels: Vec<Thread>,
    timeline: Timeline<CommandPageIdx, FlashBreakdown>,
    #[serde(rename = "under_way")]
    outstanding: OutstandingCommands,
    /// Seed of the differences between LUNs.
    seed: u64,
    /// Random numbers for retries.
    rng: Xoshiro256PlusPlus,
    now: u64,
    /// Present while data is compared.
    #[serde(skip)]
    stamps: Option<Box<SectorStamps>>,
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
            submission: SubmissionPaths::new(profile.queue_threads()),
            channels: vec![Thread::default(); geometry.channels as usize],
            timeline,
            outstanding: OutstandingCommands::default(),
            seed: profile.state.seed,
            rng: Xoshiro256PlusPlus::seed_from_u64(profile.state.seed),
            now: 0,
            stamps: None,
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

    /// Compare the data of all following reads with what is written from now on; a difference is
    /// [`uflip_core::AddressStatus::Mismatch`].
    pub fn compare_data(&mut self) {
        let silent_errors = self.info.details["profile"]["controller"]["silent_errors_per_million"]
            .as_u64()
            .unwrap_or(0) as u32;
        self.stamps.get_or_insert_with(|| Box::new(SectorStamps::new(silent_errors)));
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
    fn die(&self, at: Ppa) -> DieIdx {
        DieIdx(u32::from(at.lun) * self.geometry.channels + u32::from(at.channel))
    }

    /// Return the block of `at`, in all planes.
    #[inline]
    fn block(&self, at: Ppa) -> BlockIdx {
        BlockIdx(self.die(at).0 * self.geometry.blocks_per_plane + at.block)
    }

    /// Return the sector at `at`.
    #[inline]
    fn page_address(&self, at: Ppa) -> PageAddress {
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
            && self.submission.free_at.len() == profile.queue_threads()
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

// Read-only access to the inside of an open-channel device, for recordings and drawings.

impl OpenChannelDevice {
    /// Record every flash operation from now on. Commands are numbered from here as well.
    ///
    /// # Panics
    /// If a command is outstanding.
    pub fn record_operations(&mut self) {
        assert!(self.outstanding.is_empty(), "no command may be outstanding");
        self.outstanding.number_from_here();
        // The host places the data: all work is for commands.
        self.timeline.begin_log(self.now, |_| OpSource::Other);
    }

    /// Note a command that was submitted at `begin` and ended at `end`: a long log keeps only the
    /// operations around the slowest.
    pub fn note_completion(&mut self, begin: u64, end: u64) {
        self.timeline.log_completion(begin, end);
    }

    /// Stop recording; return the operations since [`OpenChannelDevice::record_operations`].
    pub fn recorded_operations(&mut self) -> Operations {
        self.timeline.end_log()
    }

    /// Return the channel of each LUN; the channel index varies fastest.
    #[must_use]
    pub fn channels(&self) -> Vec<u32> {
        let luns = 0..self.geometry.channels * self.geometry.luns_per_channel;
        luns.map(|lun| lun % self.geometry.channels).collect()
    }

    /// Return channels, LUNs, pages per block, and bytes per page of one plane.
    #[must_use]
    pub fn shape(&self) -> [u32; 4] {
        let geometry = &self.geometry;
        let page_bytes = geometry.sectors_per_page * geometry.sector_bytes;
        let luns = geometry.channels * geometry.luns_per_channel;
        [geometry.channels, luns, geometry.pages_per_block, page_bytes]
    }

    /// Return the erase count of each block, LUN by LUN.
    #[must_use]
    pub fn erases(&self) -> Vec<u32> {
        let blocks = 0..self.flash.geometry.blocks();
        let erases = |block| self.flash.nand.erases(BlockIdx(block));
        blocks.map(|block| self.erases_before.saturating_add(erases(block))).collect()
    }

    /// Return the number of erased blocks per LUN without programmed pages.
    #[must_use]
    pub fn erased_blocks(&self) -> Vec<u32> {
        self.flash.nand.erased_blocks()
    }
}

// Controller threads: one per channel, behind the submission paths that all channels share.

/// Times of the threads [ns].
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ThreadTimes {
    /// Per page: on a submission path, and in its channel's thread.
    pub(crate) submission_ns: u64,
    pub(crate) dispatch_ns: u64,
    /// Per command: its completion.
    pub(crate) completion_ns: u64,
    pub(crate) lun_switch_ns: u64,
}

/// The submission paths, one for each core of the host, and the one of the current command.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct SubmissionPaths {
    free_at: Vec<u64>,
    current: usize,
}

impl SubmissionPaths {
    fn new(paths: usize) -> SubmissionPaths {
        SubmissionPaths { free_at: vec![0; paths], current: 0 }
    }

    /// Assign the next command to the path that is free first.
    #[inline]
    fn begin_command(&mut self) {
        let paths = 0..self.free_at.len();
        self.current = paths.min_by_key(|path| self.free_at[*path]).expect("there is a path");
    }

    /// Process a page of the command from `at` on for `length`; return the end.
    #[inline]
    fn process(&mut self, at: u64, length: u64) -> u64 {
        let free_at = &mut self.free_at[self.current];
        *free_at = at.max(*free_at) + length;
        *free_at
    }
}

/// The thread of a channel.
#[derive(Clone, Copy, Default, Debug, serde::Serialize, serde::Deserialize)]
struct Thread {
    free_at: u64,
    /// The LUN of its channel's last write.
    wrote: Option<DieIdx>,
}

impl Thread {
    /// Process a page from `at` on for `length`, after all pages before; return the end.
    #[inline]
    fn process(&mut self, at: u64, length: u64) -> u64 {
        self.free_at = self.free_at.max(at) + length;
        self.free_at
    }

    /// Record a write of the channel to `die`; return whether its last write went to another LUN.
    #[inline]
    fn switches_to(&mut self, die: DieIdx) -> bool {
        self.wrote.replace(die).is_some_and(|last| last != die)
    }
}
