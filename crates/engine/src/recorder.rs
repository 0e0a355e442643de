//! The recorder of a run's I/Os, in bounded memory.
//!
//! ```text
//!  virtual time           one block that grows in place: no time passes there
//!  real time              one block, allocated and touched before the first I/O
//!  real time, open end    block ── block ── block        each prepared by another thread
//!                                    └ being filled      before its first I/O
//!  a long run with a      (block) ─ (block) ─ block      full blocks go to a writer thread
//!  sink, either time          └ gone        └ being filled
//! ```
//!
//! In real time no page fault may fall into a response time, and the device may not idle during an
//! allocation. The length of a run with a stop rule is unknown, so its memory grows as it goes. The
//! available memory is checked with [`Control`] before each allocation: a failed allocation ends
//! the process, and a successful one may end another process.
//!
//! With a [`Sink`] memory is bounded for any length of run. In virtual time the device waits for
//! the writer, and blocks are small and handed over early: a packed I/O takes much less memory than
//! here. In real time the device never waits. Up to [`BACKLOG_BYTES`] may wait to be written; a run
//! that exceeds it ends with an error.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use uflip_core::{Breakdown, Completion, Device, Error, ErrorKind, Io, Nanos, Result};

use crate::drive::{Control, RecordCompletion};
use crate::trace::{Causes, Columns, NOT_COMPLETED};

/// I/Os per block with one process, and the first allocation in virtual time.
const BLOCK_IOS: usize = 1 << 16;
/// The same with a sink in virtual time: 2.5 MB with all causes.
const VIRTUAL_BLOCK_IOS: usize = 1 << 14;
/// The least with many processes: a block is written, and later read, as a unit.
const MIN_BLOCK_IOS: usize = 1 << 12;
/// The largest backlog in real time, over all processes [bytes]: some seconds of the fastest
/// devices, for when the disk is busy with other work.
const BACKLOG_BYTES: u64 = 256 << 20;
/// The largest backlog in virtual time [blocks]: the device waits until a block is taken.
const BACKLOG_BLOCKS: usize = 0;
/// The largest allocation before the first I/O of a run with an open end, over all processes
/// [bytes].
const PREALLOCATED_BYTES: u64 = 64 << 20;
/// The same for any run with a sink in virtual time.
const VIRTUAL_PREALLOCATED_BYTES: u64 = 4 << 20;
/// Blocks prepared in advance.
const READY_BLOCKS: usize = 2;
/// Runs up to this size skip the memory check [bytes].
const SMALL_BYTES: u64 = 16 << 20;
/// Memory of the checks after a run, per I/O [bytes].
const CHECK_BYTES: u64 = 32;
/// Memory for everything except the trace [bytes].
const MARGIN_BYTES: u64 = 64 << 20;

/// The length of a run, and its clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordingPlan {
    pub(crate) processes: usize,
    pub(crate) causes: usize,
    pub(crate) in_real_time: bool,
    /// The number of I/Os is only an upper bound.
    pub(crate) has_open_end: bool,
    /// Full blocks are handed over.
    pub(crate) has_sink: bool,
}

/// The receiver of full blocks during a long run.
pub trait Sink: Send {
    /// Take the next I/Os of a process. Called on a separate thread.
    ///
    /// # Errors
    /// If they cannot be stored: the run ends with this error.
    fn take(&mut self, process: usize, block: Columns) -> Result<()>;
}

/// Blocks for a sink, each with its process.
pub(crate) type FullBlock = (usize, Columns);

/// Pass blocks to the sink until the run is over; an error ends the run.
pub(crate) fn pass_to_sink(
    blocks: &Receiver<FullBlock>,
    sink: &mut dyn Sink,
    control: &Control,
) -> Result<()> {
    for (process, block) in blocks {
        sink.take(process, block).inspect_err(|_| control.cancel())?;
    }
    Ok(())
}

impl RecordingPlan {
    fn bytes(&self, ios: usize) -> u64 {
        (ios as u64).saturating_mul(16 + 8 * self.causes as u64)
    }

    /// Return the I/Os per block: fewer with many processes, which each have their own blocks.
    fn block_ios(&self) -> usize {
        let max_ios = if self.hands_over_early() { VIRTUAL_BLOCK_IOS } else { BLOCK_IOS };
        (max_ios / self.processes).next_power_of_two().clamp(MIN_BLOCK_IOS, max_ios)
    }

    /// Return whether blocks are handed over as soon as that saves memory: in virtual time it takes
    /// no time.
    fn hands_over_early(&self) -> bool {
        self.has_sink && !self.in_real_time
    }

    /// Return the largest allocation before the first I/O, over all processes [bytes].
    fn max_preallocated_bytes(&self) -> u64 {
        if self.hands_over_early() { VIRTUAL_PREALLOCATED_BYTES } else { PREALLOCATED_BYTES }
    }

    /// Return the number of blocks that may wait to be written.
    pub(crate) fn backlog(&self) -> usize {
        if !self.in_real_time {
            return BACKLOG_BLOCKS;
        }
        ((BACKLOG_BYTES / self.bytes(self.block_ios())) as usize).max(self.processes)
    }

    /// Return whether `total` I/Os of each process are allocated before the first one.
    pub(crate) fn is_preallocated(&self, total: usize) -> bool {
        let bytes = self.bytes(total).saturating_mul(self.processes as u64);
        bytes <= self.max_preallocated_bytes() || !self.has_open_end && !self.has_sink
    }

    /// Return how many of `ios` I/Os are in memory at the same time.
    fn ios_in_memory(&self, ios: usize) -> usize {
        let blocks = self.backlog() + self.processes * (2 + READY_BLOCKS);
        let preallocated = (self.max_preallocated_bytes() / self.bytes(1)) as usize;
        let max_ios = (blocks * self.block_ios()).max(preallocated);
        if self.has_sink { ios.min(max_ios) } else { ios }
    }

    /// Return the memory for a trace of `ios` I/Os: the trace, and the copies made while it is
    /// judged or stored [bytes].
    fn needed_bytes(&self, ios: usize) -> u64 {
        let bytes = self.bytes(ios);
        let more = if self.has_open_end { bytes.saturating_mul(3) } else { bytes / 2 };
        bytes.saturating_add(more)
    }

    /// Return an error if `more` I/Os, of `total`, do not fit into memory.
    pub(crate) fn check(&self, more: usize, total: usize, control: &Control) -> Result<()> {
        let (before, after) = (self.ios_in_memory(total - more), self.ios_in_memory(total));
        // A run in a file can be checked with a few columns in memory.
        let needs_check_memory = self.has_sink && control.needs_whole_columns();
        let check_bytes = if needs_check_memory { CHECK_BYTES * total as u64 } else { 0 };
        if self.bytes(after) <= SMALL_BYTES && check_bytes <= SMALL_BYTES {
            return Ok(());
        }
        let needed =
            (self.needed_bytes(after) - self.needed_bytes(before)) + check_bytes + MARGIN_BYTES;
        let available = control.available_memory();
        if needed <= available { Ok(()) } else { Err(not_enough_memory(total, needed, available)) }
    }
}

/// Create the error of a trace that needs `needed` more bytes with only `available` bytes.
pub(crate) fn not_enough_memory(ios: usize, needed: u64, available: u64) -> Error {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    Error::new(ErrorKind::Unavailable, "There is not enough memory for the trace of this run")
        .at("io_count, max_ios or repeat")
        .got(format!("{} more for a trace of {ios} I/Os", mib(needed)))
        .allowed(format!("{}, within the limits of the process and the machine", mib(available)))
        .action("reduce the number of I/Os (io_count, max_ios), or allow more memory (ulimit -v, cgroup)")
}

/// Create the error of a run whose I/Os come faster than they can be written.
fn too_slow() -> Error {
    Error::new(ErrorKind::Unavailable, "The trace of this run cannot be written fast enough")
        .at("the results folder")
        .got(format!("{} MiB waiting to be written", BACKLOG_BYTES >> 20))
        .allowed("a shorter backlog: the device never waits for the disk")
        .action(
            "store the results on a faster disk (--out), or reduce the number of I/Os (io_count)",
        )
}

/// Columns in the course of being filled.
struct ColumnBlock {
    columns: Columns,
    /// Rows still empty.
    left: usize,
}

impl ColumnBlock {
    /// Allocate a block of `length` I/Os; `None` if memory is insufficient. In virtual time, where
    /// page faults are harmless, unused pages are never touched.
    fn new(length: usize, plan: &RecordingPlan) -> Option<ColumnBlock> {
        // `vec!` aborts without memory, so reserve first, for all columns at once.
        let words = length.checked_mul(2 + plan.causes)?;
        Vec::<u64>::new().try_reserve_exact(words).ok()?;
        let unknown = if plan.in_real_time { NOT_COMPLETED } else { 0 };
        let columns = Columns {
            submit_ns: vec![unknown; length],
            response_time_ns: vec![NOT_COMPLETED; length],
            cause_ns: (0..plan.causes).map(|_| vec![unknown; length]).collect(),
        };
        Some(ColumnBlock { columns, left: length })
    }

    /// Grow to `length`; `None` if memory is insufficient.
    fn grow_to(&mut self, length: usize) -> Option<()> {
        self.left += length - self.columns.len();
        self.columns.each().try_for_each(|column| {
            column.try_reserve_exact(length - column.len()).ok()?;
            column.resize(length, NOT_COMPLETED);
            Some(())
        })
    }
}

/// The recorded I/Os of a process.
#[derive(Debug)]
pub(crate) struct RecordedIos {
    /// I/Os already handed to a sink.
    pub(crate) handed_over: usize,
    /// The I/Os after them.
    pub(crate) rest: Columns,
}

impl RecordedIos {
    pub(crate) fn len(&self) -> usize {
        self.handed_over + self.rest.len()
    }

    /// Keep the first `ios` I/Os. A sink learns the length from the final pattern.
    pub(crate) fn truncate(&mut self, ios: usize) {
        self.rest.truncate(ios.saturating_sub(self.handed_over));
        self.handed_over = self.handed_over.min(ios);
    }
}

/// The recorder of one process.
pub(crate) struct RunRecorder<'c> {
    control: &'c Control,
    plan: RecordingPlan,
    causes: Causes,
    process: usize,
    /// The largest number of I/Os of the process.
    total: usize,
    /// Blocks not handed over yet.
    blocks: Vec<ColumnBlock>,
    /// The index of the first I/O in them.
    first: usize,
    /// The I/O `index` is in block `(index - first) >> shift`.
    shift: u32,
    /// Memory is allocated for I/Os below this index.
    allocated: usize,
    /// I/Os below this index were judged and may be handed over.
    judged: usize,
    prepared: Option<Receiver<Result<ColumnBlock>>>,
    out: Option<SyncSender<FullBlock>>,
    failed: Option<Error>,
}

impl<'c> RunRecorder<'c> {
    /// Create the recorder of up to `total` I/Os of `process`, one of the processes of the checked
    /// `plan`. Full blocks of a long run go `out`.
    pub(crate) fn new(
        plan: RecordingPlan,
        causes: Causes,
        process: usize,
        total: usize,
        control: &'c Control,
        out: Option<&SyncSender<FullBlock>>,
    ) -> Result<RunRecorder<'c>> {
        let mut recorder = RunRecorder {
            control,
            plan,
            causes,
            process,
            total,
            blocks: Vec::new(),
            first: 0,
            shift: usize::BITS - 1,
            allocated: 0,
            judged: usize::MAX,
            prepared: None,
            out: None,
            failed: None,
        };
        if plan.is_preallocated(total) {
            recorder.take_new(total)?;
            return Ok(recorder);
        }
        recorder.out = out.cloned();
        if plan.in_real_time || plan.has_sink {
            recorder.shift = plan.block_ios().trailing_zeros();
        }
        if plan.in_real_time {
            recorder.prepared = Some(prepare_ahead(plan, total, control));
            recorder.take_prepared()?;
        } else {
            recorder.take_new(plan.block_ios().min(total))?;
        }
        Ok(recorder)
    }

    /// Return the largest number of I/Os of the process.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Return the error, if the recorder failed.
    pub(crate) fn take_failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// Return the first `ios` recorded I/Os.
    pub(crate) fn into_recorded(self, ios: usize) -> RecordedIos {
        let mut remaining = ios - self.first;
        let parts = self.blocks.into_iter().map(|mut block| {
            let length = remaining.min(block.columns.len());
            remaining -= length;
            block.columns.truncate(length);
            block.columns
        });
        let rest = Columns::concat(parts.collect(), self.plan.causes);
        RecordedIos { handed_over: self.first, rest }
    }

    /// Set that I/Os below `ios` were judged, and hand over blocks of judged I/Os.
    pub(crate) fn set_judged(&mut self, ios: usize) {
        self.judged = ios;
        self.hand_over();
    }

    /// Hand over full blocks.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self) {
        let Some(out) = &self.out else { return };
        while let Some(block) = self.blocks.first()
            && block.left == 0
            && self.first + block.columns.len() <= self.judged
        {
            let columns = self.blocks.remove(0).columns;
            self.first += columns.len();
            let full = (self.process, columns);
            // The sink takes no more blocks after an error: then the run is ending.
            if !self.plan.in_real_time {
                let _ = out.send(full);
            } else if let Err(TrySendError::Full(_)) = out.try_send(full) {
                self.failed.get_or_insert_with(too_slow);
                self.control.cancel();
            }
        }
    }

    /// Return the response times from I/O number `from` to the first gap or the end of the block
    /// [ns].
    pub(crate) fn completed_from(&self, from: usize) -> &[u64] {
        if from >= self.allocated {
            return &[];
        }
        let rest = &self.blocks[(from - self.first) >> self.shift].columns.response_time_ns;
        let rest = &rest[from & self.mask()..];
        let completed = rest.iter().position(|time| *time == NOT_COMPLETED).unwrap_or(rest.len());
        &rest[..completed]
    }

    #[inline]
    fn mask(&self) -> usize {
        (1 << self.shift) - 1
    }

    /// Allocate memory for I/O number `index`.
    #[cold]
    #[inline(never)]
    fn allocate_for(&mut self, index: usize) {
        while index >= self.allocated && self.failed.is_none() {
            let result = match self.prepared {
                Some(_) => self.take_prepared(),
                None if self.out.is_some() => {
                    let length = self.plan.block_ios().min(self.total - self.allocated);
                    let all = (self.allocated + length) * self.plan.processes;
                    let checked = self.plan.check(length, all, self.control);
                    checked.and_then(|()| self.take_new(length))
                }
                None => {
                    let length = (2 * self.allocated).max(index + 1).min(self.total);
                    let (more, all) = (length - self.allocated, length * self.plan.processes);
                    let checked = self.plan.check(more, all, self.control);
                    checked.and_then(|()| self.grow_in_place(length))
                }
            };
            if let Err(error) = result {
                self.failed = Some(error);
                self.control.cancel();
            }
        }
    }

    fn grow_in_place(&mut self, length: usize) -> Result<()> {
        let not_enough_memory = || {
            let needed = self.plan.bytes(length - self.allocated);
            not_enough_memory(length, needed, self.control.available_memory())
        };
        self.blocks[0].grow_to(length).ok_or_else(not_enough_memory)?;
        self.allocated = length;
        Ok(())
    }

    fn take_new(&mut self, length: usize) -> Result<()> {
        let not_enough_memory = || {
            not_enough_memory(self.total, self.plan.bytes(length), self.control.available_memory())
        };
        let block = ColumnBlock::new(length, &self.plan).ok_or_else(not_enough_memory)?;
        self.allocated += length;
        self.blocks.push(block);
        Ok(())
    }

    fn take_prepared(&mut self) -> Result<()> {
        let prepared = self.prepared.as_ref().expect("an allocating thread is running");
        let received = prepared.recv();
        let no_block = |_| {
            Err(not_enough_memory(self.allocated, MARGIN_BYTES, self.control.available_memory()))
        };
        let block = received.unwrap_or_else(no_block)?;
        self.allocated += block.columns.len();
        self.blocks.push(block);
        Ok(())
    }
}

/// Prepare blocks on a separate thread, a few ahead of their use, until the receiver is dropped.
fn prepare_ahead(
    plan: RecordingPlan,
    total: usize,
    control: &Control,
) -> Receiver<Result<ColumnBlock>> {
    let (sender, receiver) = sync_channel(READY_BLOCKS);
    let memory = Control::for_memory_checks(control);
    let prepare = move || {
        let length = plan.block_ios();
        for from in (0..total).step_by(length) {
            let total_ios = (from + length) * plan.processes;
            let block = plan.check(length, total_ios, &memory).and_then(|()| {
                let block = ColumnBlock::new(length.min(total - from), &plan);
                block.ok_or_else(|| {
                    not_enough_memory(total_ios, MARGIN_BYTES, memory.available_memory())
                })
            });
            let last = block.is_err();
            if sender.send(block).is_err() || last {
                return;
            }
        }
    };
    // Without a thread the channel closes, and the first receiver gets an error.
    let _ = std::thread::Builder::new().spawn(prepare);
    receiver
}

impl<D: Device<Request = Io>> RecordCompletion<D> for RunRecorder<'_> {
    fn amount(&self, io: &Io) -> (u64, bool) {
        (io.size.0, io.mode.is_write())
    }

    #[inline]
    fn record(
        &mut self,
        index: usize,
        _: &Io,
        start: Nanos,
        arrived: Nanos,
        completion: &Completion<D::Breakdown, D::Status>,
    ) {
        if index >= self.allocated {
            self.allocate_for(index);
            if index >= self.allocated {
                return;
            }
        }
        let Completion { submitted, completed, breakdown, .. } = completion;
        let row = index & self.mask();
        let block = &mut self.blocks[(index - self.first) >> self.shift];
        block.columns.submit_ns[row] = arrived.0 - start.0;
        block.columns.response_time_ns[row] = completed.0 - arrived.0;
        let (wait, device) = (submitted.0 - arrived.0, completed.0 - submitted.0);
        self.causes.store(&mut block.columns.cause_ns, row, wait, device, breakdown.parts());
        block.left -= 1;
        if block.left == 0 {
            self.hand_over();
        }
    }
}
