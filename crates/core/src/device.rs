//! What a device promises, whether it is real or simulated.

use crate::{Bytes, Nanos, Result, ZoneReport};

/// Names one submitted request until its completion is handed out.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct Ticket(pub u64);

/// What the time of a completed request was spent on.
///
/// A device in virtual time knows and returns a type with one part per cause; a real device is a
/// black box and returns `()`. The parts sum to the response time.
pub trait Breakdown: Copy + Default + Send + 'static {
    /// One name per cause, in the order of [`Breakdown::parts`]; empty where unknowable.
    const CAUSES: &'static [&'static str];

    /// The time spent on each cause [ns], as many as there are [`Breakdown::CAUSES`].
    fn parts(&self) -> &[u64];
}

impl Breakdown for () {
    const CAUSES: &'static [&'static str] = &[];

    #[inline]
    fn parts(&self) -> &[u64] {
        &[]
    }
}

/// The end of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Completion<B, S = ()> {
    /// Which request it was.
    pub ticket: Ticket,
    /// When it was submitted, on the device's clock.
    pub submitted: Nanos,
    /// When it completed, on the device's clock.
    pub completed: Nanos,
    /// What the time between was spent on.
    pub breakdown: B,
    /// How it ended, where a completed request can have failed in part; `()` where it cannot.
    pub status: S,
}

/// What kind of thing a device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// Does nothing: it measures the harness.
    Null,
    /// A regular file on a real file system.
    File,
    /// A block device of the machine.
    Block,
    /// An export of an NBD server.
    Nbd,
    /// A simulated flash device in virtual time.
    Sim,
}

/// What is known about a device before any I/O.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct DeviceInfo {
    /// How a user names it (`sim:demo`, `file:scratch.bin`, `/dev/nvme0n1`, `null`).
    pub url: String,
    /// What kind of thing it is.
    pub kind: DeviceKind,
    /// Whether its times are simulated.
    pub simulated: bool,
    /// Model, as the device or its profile gives it; empty where there is none.
    pub model: String,
    /// Serial number; empty where there is none.
    pub serial: String,
    /// Firmware revision; empty where there is none.
    pub firmware: String,
    /// Addressable size.
    pub capacity_bytes: Bytes,
    /// Smallest I/O and alignment: offsets and sizes are multiples of it.
    pub sector_bytes: Bytes,
    /// Which clock the times come from: `virtual` or `monotonic`.
    pub clock: &'static str,
    /// How I/Os are made (`pread/pwrite O_DIRECT`, `virtual`, …).
    pub io: String,
    /// What is written: `random` (incompressible) or `zeros`.
    pub data: &'static str,
    /// Anything else worth keeping with a result.
    pub details: serde_json::Map<String, serde_json::Value>,
}

impl DeviceInfo {
    /// Streams of writes that the device keeps apart where the host names them; 1 where it knows none, or
    /// tells hot writes from cold ones by itself.
    #[must_use]
    pub fn write_streams(&self) -> u64 {
        let profile = self.details.get("profile");
        let table = |name| profile.and_then(|profile| profile.get(name));
        let given = table("ftl").and_then(|ftl| ftl.get("write_streams"));
        let asks_host = table("hot_cold").is_none();
        given.filter(|_| asks_host).and_then(serde_json::Value::as_u64).unwrap_or(1)
    }
}

/// What a device counted since it was made. A simulated device knows all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Counters {
    /// Flash pages that host reads touched.
    pub host_pages_read: u64,
    /// Logical pages that the host's writes programmed, whole or in part.
    pub host_pages_written: u64,
    /// Flash pages read, for whatever reason.
    pub pages_read: u64,
    /// Flash pages programmed, for whatever reason.
    pub pages_programmed: u64,
    /// Flash pages moved by garbage collection.
    pub pages_relocated: u64,
    /// Flash pages read because a write covered only a part of them.
    pub pages_read_to_modify: u64,
    /// Host page writes that a write cache absorbed: their page was still in it.
    pub pages_absorbed: u64,
    /// Pages programmed with nothing, to fill a flash page up that a host wanted to be durable.
    pub pages_padded: u64,
    /// Metadata pages programmed when a block was full.
    pub metadata_pages_programmed: u64,
    /// Pages of a map on flash read.
    pub mapping_pages_read: u64,
    /// Pages of a map on flash programmed.
    pub mapping_pages_programmed: u64,
    /// Entries of the map that were in the controller's memory when they were asked for.
    pub mapping_hits: u64,
    /// Those that were not.
    pub mapping_misses: u64,
    /// Valid pages of collected blocks that were given up instead of moved.
    pub pages_given_up: u64,
    /// Reads repeated because the ECC could not correct the errors.
    pub read_retries: u64,
    /// Pages whose errors could not be corrected in the end.
    pub uncorrectable_reads: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Blocks retired, those of which single pages were retired not counted.
    pub blocks_retired: u64,
    /// Single pages retired.
    pub pages_retired: u64,
    /// Blocks collected.
    pub blocks_collected: u64,
    /// Blocks moved because of their reads or their age.
    pub blocks_scrubbed: u64,
    /// Blocks moved because they wear less than others of their die.
    pub blocks_levelled: u64,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Blocks collected while the host was idle.
    pub blocks_collected_idle: u64,
    /// Merges of a hybrid FTL in which a log block became the data block as it was.
    pub switch_merges: u64,
    /// Merges in which the rest was copied to the log block, which then became the data block.
    pub partial_merges: u64,
    /// Merges in which all newest pages of a data block or merge unit were copied to a new one.
    pub full_merges: u64,
    /// Merges done while the host was idle, or beside its reads.
    pub merges_idle: u64,
}

impl Counters {
    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Counters) -> Counters {
        Counters {
            host_pages_read: self.host_pages_read - before.host_pages_read,
            host_pages_written: self.host_pages_written - before.host_pages_written,
            pages_read: self.pages_read - before.pages_read,
            pages_programmed: self.pages_programmed - before.pages_programmed,
            pages_relocated: self.pages_relocated - before.pages_relocated,
            pages_read_to_modify: self.pages_read_to_modify - before.pages_read_to_modify,
            pages_absorbed: self.pages_absorbed - before.pages_absorbed,
            pages_padded: self.pages_padded - before.pages_padded,
            metadata_pages_programmed: self.metadata_pages_programmed
                - before.metadata_pages_programmed,
            mapping_pages_read: self.mapping_pages_read - before.mapping_pages_read,
            mapping_pages_programmed: self.mapping_pages_programmed
                - before.mapping_pages_programmed,
            mapping_hits: self.mapping_hits - before.mapping_hits,
            mapping_misses: self.mapping_misses - before.mapping_misses,
            pages_given_up: self.pages_given_up - before.pages_given_up,
            read_retries: self.read_retries - before.read_retries,
            uncorrectable_reads: self.uncorrectable_reads - before.uncorrectable_reads,
            program_failures: self.program_failures - before.program_failures,
            erase_failures: self.erase_failures - before.erase_failures,
            blocks_retired: self.blocks_retired - before.blocks_retired,
            pages_retired: self.pages_retired - before.pages_retired,
            blocks_collected: self.blocks_collected - before.blocks_collected,
            blocks_scrubbed: self.blocks_scrubbed - before.blocks_scrubbed,
            blocks_levelled: self.blocks_levelled - before.blocks_levelled,
            blocks_erased: self.blocks_erased - before.blocks_erased,
            blocks_collected_idle: self.blocks_collected_idle - before.blocks_collected_idle,
            switch_merges: self.switch_merges - before.switch_merges,
            partial_merges: self.partial_merges - before.partial_merges,
            full_merges: self.full_merges - before.full_merges,
            merges_idle: self.merges_idle - before.merges_idle,
        }
    }
}

/// A device that requests can be submitted to. Time belongs to the world that it lives in: the
/// wall clock for a real device, a virtual clock for a simulated one, which only moves when
/// [`Device::wait_until`] or [`Device::complete`] move it.
///
/// The contract: every accepted `submit` is answered by exactly one `complete`; completions come
/// in the order of their time; `now` never goes back; a failed request returns its error from
/// `submit` or `complete` and leaves no ticket behind.
pub trait Device: Sized {
    /// [`crate::Io`] for block devices.
    type Request: Copy + Send;
    /// How a completed request ended: `()` where it either succeeds or is an error of the run.
    type Status: Copy;
    /// What a completion can say about where the time went.
    type Breakdown: Breakdown;

    /// What is known about the device.
    fn info(&self) -> &DeviceInfo;

    /// The device's clock.
    fn now(&self) -> Nanos;

    /// Let time pass until `t`; returns at once where `t` is not in the future. A simulated device
    /// does its background work here.
    fn wait_until(&mut self, t: Nanos);

    /// `request` will be submitted soon, or never: a device in memory may look things up ahead. Nothing
    /// that can be observed changes.
    #[inline]
    fn prefetch(&mut self, _request: &Self::Request) {}

    /// Submit one request at [`Device::now`].
    ///
    /// # Errors
    /// What the device or the operating system says; the message names the request.
    fn submit(&mut self, request: &Self::Request) -> Result<Ticket>;

    /// When the next completion will be (or was) due, if nothing is submitted until then; `None` where
    /// nothing is outstanding, and where it is due later than `before`. A caller who will submit
    /// something at `before` thereby says that nothing needs to be known of what comes after: what is
    /// submitted then may change it.
    fn next_completion(&mut self, before: Nanos) -> Option<Nanos>;

    /// Take the earliest completion.
    ///
    /// # Errors
    /// What the device or the operating system says.
    ///
    /// # Panics
    /// Where nothing is outstanding.
    fn complete(&mut self) -> Result<Completion<Self::Breakdown, Self::Status>>;

    /// What the device counted; `None` where unknowable.
    fn counters(&self) -> Option<Counters>;

    /// The zones of the device as they are now; `None` where it has none.
    ///
    /// # Errors
    /// What the operating system says.
    fn zones(&self) -> Result<Option<ZoneReport>> {
        Ok(None)
    }

    /// One handle per submitter, for devices whose submitters are threads; `None` for a device
    /// that serves all submitters itself, in virtual time.
    ///
    /// # Errors
    /// Where a further handle cannot be opened.
    fn split(&self, submitters: usize) -> Result<Option<Vec<Self>>>;
}
