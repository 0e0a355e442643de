//! The `Device` trait and its contract, for real and simulated devices, and the completion queue of a
//! synchronous device.

use std::collections::VecDeque;

use crate::{Bytes, ContentShares, Energy, Nanos, Result, ZoneReport};

/// The identifier of a submitted request, valid until its completion is taken.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct Ticket(pub u64);

/// The parts of the response time of a completed request.
///
/// A device in virtual time returns a type with one part per cause. A real device is a black box
/// and returns `()`. The parts sum to the response time.
pub trait Breakdown: Copy + Default + Send + 'static {
    /// One name per cause, in the order of [`Breakdown::parts`]; empty if the device reports no
    /// causes.
    const CAUSES: &'static [&'static str];

    /// Return the time spent on each cause [ns], in the order of [`Breakdown::CAUSES`].
    fn parts(&self) -> &[u64];
}

/// What users see of a column with the time of a cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CauseColumn {
    /// Its name in traces.
    pub column: &'static str,
    /// Its name in tables and figures: the common term.
    pub label: &'static str,
    /// Its colour in figures, as `#rrggbb`.
    pub color: &'static str,
    /// The activity on which the time is spent.
    pub meaning: &'static str,
}

impl Breakdown for () {
    const CAUSES: &'static [&'static str] = &[];

    #[inline]
    fn parts(&self) -> &[u64] {
        &[]
    }
}

/// The completion of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Completion<B, S = ()> {
    /// The completed request.
    pub ticket: Ticket,
    /// The time of its submission, on the device's clock.
    pub submitted: Nanos,
    /// The time of its completion, on the device's clock.
    pub completed: Nanos,
    /// The parts of the response time.
    pub breakdown: B,
    /// The status, if a completed request can fail in part; `()` otherwise.
    pub status: S,
}

/// The kind of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// Does nothing: for measuring the harness.
    Null,
    /// A regular file on a real file system.
    File,
    /// A block device of the machine.
    Block,
    /// A namespace of an NVMe drive, by its own commands.
    Nvme,
    /// An export of an NBD server.
    Nbd,
    /// A simulated flash device in virtual time.
    Sim,
}

/// The properties of a device, available before any I/O.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct DeviceInfo {
    /// The name that a user gives it (`sim:demo`, `file:scratch.bin`, `/dev/nvme0n1`, `null`).
    pub url: String,
    /// The kind of device.
    pub kind: DeviceKind,
    /// Whether its times are simulated.
    pub simulated: bool,
    /// The model, from the device or its profile; may be empty.
    pub model: String,
    /// The serial number; may be empty.
    pub serial: String,
    /// The firmware revision; may be empty.
    pub firmware: String,
    /// The addressable size.
    pub capacity_bytes: Bytes,
    /// The smallest I/O and alignment: offsets and sizes are multiples of it.
    pub sector_bytes: Bytes,
    /// The clock of all times: `virtual` or `monotonic`.
    pub clock: &'static str,
    /// The I/O method (`pread/pwrite O_DIRECT`, `virtual`, …).
    pub io: String,
    /// The data of writes: `random` (incompressible) or `zeros`.
    pub data: &'static str,
    /// Further properties, stored with a result.
    pub details: serde_json::Map<String, serde_json::Value>,
}

impl DeviceInfo {
    /// Return the number of write streams that the host can name: those of a profile, or the
    /// placement handles of an NVMe namespace. 1 if the device does not support streams, or
    /// separates hot and cold writes by itself.
    #[must_use]
    pub fn write_streams(&self) -> u64 {
        let namespace = self.details.get("namespace");
        let handles = namespace.and_then(|namespace| namespace.get("placement_handles"));
        if let Some(handles) = handles.and_then(serde_json::Value::as_u64) {
            return handles;
        }
        let profile = self.details.get("profile");
        let table = |name| profile.and_then(|profile| profile.get(name));
        let write_streams = table("ftl").and_then(|ftl| ftl.get("write_streams"));
        let asks_host = table("hot_cold").is_none();
        write_streams.filter(|_| asks_host).and_then(serde_json::Value::as_u64).unwrap_or(1)
    }
}

/// Define [`Counters`] and their difference from one list of names.
macro_rules! counters {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// The counters of a device since its creation. A simulated device fills all of them.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
        pub struct Counters {
            $($(#[$about])* pub $name: u64,)*
            /// Energy by cause, if the device accounts for energy. Computed when the counters are
            /// read.
            #[serde(skip)]
            pub energy: Option<Energy>,
        }

        impl Counters {
            /// Return the difference to the earlier counters `before`.
            #[must_use]
            pub fn since(&self, before: &Counters) -> Counters {
                Counters {
                    $($name: self.$name - before.$name,)*
                    energy: self.energy.zip(before.energy).map(|(now, before)| now.since(&before)),
                }
            }
        }
    };
}

counters! {
    /// Flash pages touched by host reads.
    host_pages_read,
    /// Logical pages programmed for host writes, whole or in part.
    host_pages_written,
    /// Flash pages read, for any reason.
    pages_read,
    /// Flash pages programmed, for any reason.
    pages_programmed,
    /// Flash pages moved by garbage collection.
    pages_relocated,
    /// Flash pages read because a write covered only a part of them.
    pages_read_to_modify,
    /// Host page writes absorbed by a write cache: their page was still cached.
    pages_absorbed,
    /// Pages programmed as padding, to complete a flash page that must be durable.
    pages_padded,
    /// Metadata pages programmed when a block became full.
    metadata_pages_programmed,
    /// Pages of an on-flash map read.
    mapping_pages_read,
    /// Pages of an on-flash map programmed.
    mapping_pages_programmed,
    /// Map lookups that hit the controller's memory.
    mapping_hits,
    /// Map lookups that missed it.
    mapping_misses,
    /// Valid pages of collected blocks that were dropped instead of moved.
    pages_given_up,
    /// Reads repeated because the ECC could not correct the errors.
    read_retries,
    /// Pages with uncorrectable errors after all retries.
    uncorrectable_reads,
    /// Programs that failed.
    program_failures,
    /// Erases that failed.
    erase_failures,
    /// Blocks retired; blocks with single retired pages do not count.
    blocks_retired,
    /// Single pages retired.
    pages_retired,
    /// Blocks reclaimed by garbage collection.
    blocks_collected,
    /// Blocks moved because of read disturb or age.
    blocks_scrubbed,
    /// Blocks moved by wear levelling, because they wear less than others of their die.
    blocks_levelled,
    /// Blocks erased.
    blocks_erased,
    /// Blocks reclaimed by garbage collection while the host was idle.
    blocks_collected_idle,
    /// Switch merges of a hybrid FTL: the log block became the data block unchanged.
    switch_merges,
    /// Partial merges: the remaining pages were copied to the log block, which became the data
    /// block.
    partial_merges,
    /// Full merges: all newest pages of a data block or merge unit were copied to a new block.
    full_merges,
    /// Merges done while the host was idle, or alongside its reads.
    merges_idle,
}

impl Counters {
    /// Return the counters as JSON, in their order: those of energy only if the device accounts for it.
    ///
    /// # Panics
    /// Never: counters are serializable.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string(self).expect("counters are serializable");
        for (name, nanojoules) in self.energy.iter().flat_map(Energy::named) {
            text.pop();
            text.push_str(&format!(",\"{name}\":{nanojoules}}}"));
        }
        text
    }
}

/// A device that accepts requests.
///
/// A real device uses the wall clock. A simulated device uses a virtual clock, which moves only in
/// [`Device::wait_until`] and [`Device::complete`].
///
/// The contract: each accepted `submit` leads to exactly one `complete`. Completions come in time
/// order. `now` never goes back. A failed request returns its error from `submit` or `complete`,
/// and its ticket is no longer outstanding.
pub trait Device: Sized {
    /// The type of requests: [`crate::Io`] for block devices.
    type Request: Copy + Send;
    /// The status of a completed request: `()` if a failure is an error of the run.
    type Status: Copy;
    /// The breakdown of the response time in a completion.
    type Breakdown: Breakdown;

    /// Return the properties of the device.
    fn info(&self) -> &DeviceInfo;

    /// Return the time of the device's clock.
    fn now(&self) -> Nanos;

    /// Let time pass until `t`; return at once if `t` is not in the future. A simulated device does
    /// its background work here.
    fn wait_until(&mut self, t: Nanos);

    /// Announce a `request` that may be submitted soon, so that a device in memory can prefetch its
    /// tables. This has no observable effect.
    #[inline]
    fn prefetch(&mut self, _request: &Self::Request) {}

    /// Submit one request at [`Device::now`].
    ///
    /// # Errors
    /// Any error of the device or the operating system; the message names the request.
    fn submit(&mut self, request: &Self::Request) -> Result<Ticket>;

    /// Return the time of the next completion if nothing else is submitted before it. `None` if
    /// nothing is outstanding, or if the next completion comes later than `before`. A caller that
    /// submits a request at `before` needs no later time, since that request may change it.
    fn next_completion(&mut self, before: Nanos) -> Option<Nanos>;

    /// Take the earliest completion.
    ///
    /// # Errors
    /// Any error of the device or the operating system.
    ///
    /// # Panics
    /// If nothing is outstanding.
    fn complete(&mut self) -> Result<Completion<Self::Breakdown, Self::Status>>;

    /// Return the counters; `None` if the device has none.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// Set the content of all following writes; `None`: the device's own choice.
    ///
    /// # Errors
    /// If the device cannot write such content.
    fn set_content(&mut self, _content: Option<ContentShares>) -> Result<()> {
        Ok(())
    }

    /// Return the present state of all zones; `None` if the device is not zoned.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn zones(&self) -> Result<Option<ZoneReport>> {
        Ok(None)
    }

    /// Return one handle per submitter, for devices whose submitters are threads. `None` if the
    /// device serves all submitters itself, in virtual time.
    ///
    /// # Errors
    /// If a further handle cannot be opened.
    fn split(&self, submitters: usize) -> Result<Option<Vec<Self>>>;
}

/// Completed requests, in order, until the caller takes them; also numbers the tickets.
#[derive(Clone, Default, Debug)]
pub struct CompletionQueue {
    tickets: u64,
    completions: VecDeque<Completion<()>>,
}

impl CompletionQueue {
    /// Return the ticket of the next request.
    #[inline]
    #[must_use]
    pub fn next_ticket(&self) -> Ticket {
        Ticket(self.tickets)
    }

    /// Add a completed request and return its ticket.
    #[inline]
    pub fn push(&mut self, submitted: Nanos, completed: Nanos) -> Ticket {
        let ticket = self.next_ticket();
        self.tickets += 1;
        self.completions.push_back(Completion {
            ticket,
            submitted,
            completed,
            breakdown: (),
            status: (),
        });
        ticket
    }

    /// Return whether all completions were taken.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.completions.is_empty()
    }

    /// Return the time of the oldest completion.
    #[inline]
    #[must_use]
    pub fn next_completion(&self) -> Option<Nanos> {
        self.completions.front().map(|completion| completion.completed)
    }

    /// Take the oldest completion.
    ///
    /// # Panics
    ///
    /// If the queue is empty.
    #[inline]
    pub fn complete(&mut self) -> Completion<()> {
        self.completions.pop_front().expect("an I/O is outstanding")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_returned_once_in_time_order() {
        let mut queue = CompletionQueue::default();
        assert!(queue.is_empty() && queue.next_completion().is_none());
        let first = queue.push(Nanos(10), Nanos(30));
        let second = queue.push(Nanos(20), Nanos(25));
        assert_ne!(first, second);
        assert_eq!(queue.next_completion(), Some(Nanos(30)));
        let done = queue.complete();
        assert_eq!((done.ticket, done.submitted, done.completed), (first, Nanos(10), Nanos(30)));
        assert_eq!(queue.complete().ticket, second);
        assert!(queue.is_empty());
    }
}
