//! Where the I/Os of a run are put while it lasts: room for them, in bounded memory.
//!
//! ```text
//!  virtual time           one block that grows in place: no time passes there
//!  real time              one block, allocated and touched before the first I/O
//!  real time, open end    block ── block ── block        each touched by a thread beside the run
//!                                    └ being filled      before its first I/O comes
//!  a long run with a      (block) ─ (block) ─ block      full ones go to a thread that writes them
//!  sink, either time          └ gone        └ being filled
//! ```
//!
//! In real time no page fault may fall into a response time, and the device may not idle while memory is
//! got. A budget is not what a run comes to use, so the memory of a run that finds its length itself is
//! got as it goes. What memory may be used is asked of [`Control`] before it is got: an allocation that
//! fails ends the process, one that succeeds may end another one.
//!
//! With a [`Sink`] memory is bounded, whatever the length of the run. In virtual time the device waits
//! for who writes, and blocks are small and handed over early: packed an I/O takes much less memory than
//! here. In real time it never waits: up to [`BACKLOG_BYTES`] wait to be written, and a run whose I/Os
//! come quicker than they can be written ends with an error that says so.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use uflip_core::{Breakdown, Completion, Device, Error, ErrorKind, Io, Nanos, Result};

use crate::causes::Causes;
use crate::drive::{Control, Record};
use crate::trace::{Columns, UNTOLD};

/// I/Os of a block where there is one process, and those that a block in virtual time begins with.
const BLOCK_IOS: usize = 1 << 16;
/// ... where blocks are handed over in virtual time: with all causes 2.5 MB.
const VIRTUAL_BLOCK_IOS: usize = 1 << 14;
/// ... and at least where there are many: a block is what is written, and found again, at once.
const LEAST_BLOCK_IOS: usize = 1 << 12;
/// What may wait to be written in real time, in all processes [bytes]: some seconds of the quickest
/// devices, for a disk that is busy with something else.
const BACKLOG_BYTES: u64 = 256 << 20;
/// Blocks that may wait to be written in virtual time: the device waits until they are taken.
const BACKLOG_BLOCKS: usize = 0;
/// What a run with an open end may take at once, before its first I/O, in all processes [bytes].
const AT_ONCE_BYTES: u64 = 64 << 20;
/// ... and any run in virtual time whose I/Os are handed over.
const VIRTUAL_AT_ONCE_BYTES: u64 = 4 << 20;
/// Blocks that are ready before they are needed.
const READY_BLOCKS: usize = 2;
/// Runs of up to so much are not worth a look at the memory of the system [bytes].
const SMALL_BYTES: u64 = 16 << 20;
/// What checks of a run that is over have in memory, an I/O [bytes].
const LOOKED_AT_BYTES: u64 = 32;
/// Room for all that is not a trace [bytes].
const MARGIN_BYTES: u64 = 64 << 20;

/// How long a run is, and on what clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) processes: usize,
    pub(crate) causes: usize,
    pub(crate) in_real_time: bool,
    /// The number of I/Os is a budget.
    pub(crate) has_open_end: bool,
    /// Full blocks are handed over.
    pub(crate) has_sink: bool,
}

/// Who takes the blocks of a long run while it lasts.
pub trait Sink: Send {
    /// Take the next I/Os of a process. Called on a thread beside the run.
    ///
    /// # Errors
    /// They cannot be kept: the run ends with this error.
    fn take(&mut self, process: usize, block: Columns) -> Result<()>;
}

/// Blocks on their way to a sink, each with its process.
pub(crate) type Full = (usize, Columns);

/// Hand on blocks as they come, until the run is over; an error ends the run.
pub(crate) fn pour(blocks: &Receiver<Full>, sink: &mut dyn Sink, control: &Control) -> Result<()> {
    for (process, block) in blocks {
        sink.take(process, block).inspect_err(|_| control.cancel())?;
    }
    Ok(())
}

impl Plan {
    fn bytes(&self, ios: usize) -> u64 {
        (ios as u64).saturating_mul(16 + 8 * self.causes as u64)
    }

    /// I/Os of a block: fewer where there are many processes, each with blocks of its own.
    fn block_ios(&self) -> usize {
        let most = if self.hands_over_early() { VIRTUAL_BLOCK_IOS } else { BLOCK_IOS };
        (most / self.processes).next_power_of_two().clamp(LEAST_BLOCK_IOS, most)
    }

    /// No time passes while blocks are handed over, so they are as soon as that saves memory.
    fn hands_over_early(&self) -> bool {
        self.has_sink && !self.in_real_time
    }

    /// What a run may take at once, in all processes [bytes].
    fn at_once_bytes(&self) -> u64 {
        if self.hands_over_early() { VIRTUAL_AT_ONCE_BYTES } else { AT_ONCE_BYTES }
    }

    /// Blocks that may wait to be written.
    pub(crate) fn backlog(&self) -> usize {
        if !self.in_real_time {
            return BACKLOG_BLOCKS;
        }
        ((BACKLOG_BYTES / self.bytes(self.block_ios())) as usize).max(self.processes)
    }

    /// Whether there is room for `total` I/Os of each process before the first one.
    pub(crate) fn is_at_once(&self, total: usize) -> bool {
        let all = self.bytes(total).saturating_mul(self.processes as u64);
        all <= self.at_once_bytes() || !self.has_open_end && !self.has_sink
    }

    /// How many of so many I/Os are ever in memory.
    fn held(&self, ios: usize) -> usize {
        let blocks = self.backlog() + self.processes * (2 + READY_BLOCKS);
        let at_once = (self.at_once_bytes() / self.bytes(1)) as usize;
        let most = (blocks * self.block_ios()).max(at_once);
        if self.has_sink { ios.min(most) } else { ios }
    }

    /// What the system must have for a trace of so many I/Os in all: the trace, and what is made of it
    /// while it is judged or stored.
    fn needs(&self, ios: usize) -> u64 {
        let bytes = self.bytes(ios);
        let more = if self.has_open_end { bytes.saturating_mul(3) } else { bytes / 2 };
        bytes.saturating_add(more)
    }

    /// An error where so many I/Os more, of so many in all, do not fit into memory.
    pub(crate) fn check(&self, more: usize, in_all: usize, control: &Control) -> Result<()> {
        let (there, held) = (self.held(in_all - more), self.held(in_all));
        // A run that is in a file may be looked at with a few of its columns in memory.
        let is_looked_at = self.has_sink && control.needs_whole_columns();
        let looked_at = if is_looked_at { LOOKED_AT_BYTES * in_all as u64 } else { 0 };
        if self.bytes(held) <= SMALL_BYTES && looked_at <= SMALL_BYTES {
            return Ok(());
        }
        let needed = (self.needs(held) - self.needs(there)) + looked_at + MARGIN_BYTES;
        let room = control.room();
        if needed <= room { Ok(()) } else { Err(too_little(in_all, needed, room)) }
    }
}

/// The error of a trace that `needed` more bytes than the `room` there is.
pub(crate) fn too_little(ios: usize, needed: u64, room: u64) -> Error {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    Error::new(ErrorKind::Unavailable, "There is not enough memory for the trace of this run")
        .at("io_count, max_ios or repeat")
        .got(format!("{} more for a trace of {ios} I/Os", mib(needed)))
        .allowed(format!("{}: what the limits and the machine leave", mib(room)))
        .action("ask for fewer I/Os (io_count, max_ios), or allow more memory (ulimit -v, cgroup)")
}

/// The error of a run whose I/Os come quicker than they can be written.
fn too_slow() -> Error {
    Error::new(ErrorKind::Unavailable, "The trace of this run cannot be written as it is made")
        .at("where the results are stored")
        .got(format!("{} MiB that wait to be written", BACKLOG_BYTES >> 20))
        .allowed("less: the device never waits for them")
        .action("store the results on a quicker disk (--out), or ask for fewer I/Os (io_count)")
}

/// Columns that are being filled.
struct Block {
    columns: Columns,
    /// Places that are empty.
    left: usize,
}

impl Block {
    /// A block of `length` I/Os; `None` where there is not so much memory. In virtual time, where no
    /// page fault can be measured, pages that are not come to are never touched.
    fn new(length: usize, plan: &Plan) -> Option<Block> {
        // `vec!` ends the process where there is no memory: so ask first, for all columns at once.
        let words = length.checked_mul(2 + plan.causes)?;
        Vec::<u64>::new().try_reserve_exact(words).ok()?;
        let unknown = if plan.in_real_time { UNTOLD } else { 0 };
        let columns = Columns {
            submit_ns: vec![unknown; length],
            response_time_ns: vec![UNTOLD; length],
            cause_ns: (0..plan.causes).map(|_| vec![unknown; length]).collect(),
        };
        Some(Block { columns, left: length })
    }

    /// Make it `length` long; `None` where there is not so much memory.
    fn grow_to(&mut self, length: usize) -> Option<()> {
        self.left += length - self.columns.len();
        self.columns.each().try_for_each(|column| {
            column.try_reserve_exact(length - column.len()).ok()?;
            column.resize(length, UNTOLD);
            Some(())
        })
    }
}

/// What a process leaves behind.
#[derive(Debug)]
pub(crate) struct Kept {
    /// I/Os that were handed to a sink.
    pub(crate) handed_over: usize,
    /// Those after them.
    pub(crate) rest: Columns,
}

impl Kept {
    pub(crate) fn len(&self) -> usize {
        self.handed_over + self.rest.len()
    }

    /// Keep the first `ios` I/Os. A sink is told by the pattern in the end.
    pub(crate) fn truncate(&mut self, ios: usize) {
        self.rest.truncate(ios.saturating_sub(self.handed_over));
        self.handed_over = self.handed_over.min(ios);
    }
}

/// The I/Os of one process.
pub(crate) struct Recorder<'c> {
    control: &'c Control,
    plan: Plan,
    causes: Causes,
    process: usize,
    /// The process makes at most so many I/Os.
    total: usize,
    /// Blocks that are not handed over.
    blocks: Vec<Block>,
    /// The number of the first I/O in them.
    first: usize,
    /// The I/O `index` is in block `(index - first) >> shift`.
    shift: u32,
    /// There is a place for I/Os below this.
    room: usize,
    /// I/Os below this are not needed any more.
    judged: usize,
    ahead: Option<Receiver<Result<Block>>>,
    out: Option<SyncSender<Full>>,
    failed: Option<Error>,
}

impl<'c> Recorder<'c> {
    /// Room for `total` I/Os of `process`, one of those of `plan`, which was checked. Full blocks of a
    /// long run go `out`.
    pub(crate) fn new(
        plan: Plan,
        causes: Causes,
        process: usize,
        total: usize,
        control: &'c Control,
        out: Option<&SyncSender<Full>>,
    ) -> Result<Recorder<'c>> {
        let mut recorder = Recorder {
            control,
            plan,
            causes,
            process,
            total,
            blocks: Vec::new(),
            first: 0,
            shift: usize::BITS - 1,
            room: 0,
            judged: usize::MAX,
            ahead: None,
            out: None,
            failed: None,
        };
        if plan.is_at_once(total) {
            recorder.take_new(total)?;
            return Ok(recorder);
        }
        recorder.out = out.cloned();
        if plan.in_real_time || plan.has_sink {
            recorder.shift = plan.block_ios().trailing_zeros();
        }
        if plan.in_real_time {
            recorder.ahead = Some(prepare_ahead(plan, total, control));
            recorder.take_prepared()?;
        } else {
            recorder.take_new(plan.block_ios().min(total))?;
        }
        Ok(recorder)
    }

    /// I/Os that the process makes at most.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Why it cannot keep more, if it cannot.
    pub(crate) fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// What is kept of the first `ios` I/Os.
    pub(crate) fn into_kept(self, ios: usize) -> Kept {
        let mut left = ios - self.first;
        let parts = self.blocks.into_iter().map(|mut block| {
            let own = left.min(block.columns.len());
            left -= own;
            block.columns.truncate(own);
            block.columns
        });
        let rest = Columns::concat(parts.collect(), self.plan.causes);
        Kept { handed_over: self.first, rest }
    }

    /// I/Os below `ios` were judged; nothing is handed over before that.
    pub(crate) fn judged_to(&mut self, ios: usize) {
        self.judged = ios;
        self.hand_over();
    }

    /// Hand over blocks that are full.
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
            // Nobody takes blocks any more where one could not be written: then the run is ending.
            if !self.plan.in_real_time {
                let _ = out.send(full);
            } else if let Err(TrySendError::Full(_)) = out.try_send(full) {
                self.failed.get_or_insert_with(too_slow);
                self.control.cancel();
            }
        }
    }

    /// The response times from I/O number `from` on that are known without a gap [ns], up to the end
    /// of its block.
    pub(crate) fn known_from(&self, from: usize) -> &[u64] {
        if from >= self.room {
            return &[];
        }
        let rest = &self.blocks[(from - self.first) >> self.shift].columns.response_time_ns;
        let rest = &rest[from & self.mask()..];
        let known = rest.iter().position(|time| *time == UNTOLD).unwrap_or(rest.len());
        &rest[..known]
    }

    #[inline]
    fn mask(&self) -> usize {
        (1 << self.shift) - 1
    }

    /// Make room for I/O number `index`.
    #[cold]
    #[inline(never)]
    fn make_room_for(&mut self, index: usize) {
        while index >= self.room && self.failed.is_none() {
            let more = match self.ahead {
                Some(_) => self.take_prepared(),
                None if self.out.is_some() => {
                    let length = self.plan.block_ios().min(self.total - self.room);
                    let all = (self.room + length) * self.plan.processes;
                    let checked = self.plan.check(length, all, self.control);
                    checked.and_then(|()| self.take_new(length))
                }
                None => {
                    let length = (2 * self.room).max(index + 1).min(self.total);
                    let (more, all) = (length - self.room, length * self.plan.processes);
                    let checked = self.plan.check(more, all, self.control);
                    checked.and_then(|()| self.grow_in_place(length))
                }
            };
            if let Err(error) = more {
                self.failed = Some(error);
                self.control.cancel();
            }
        }
    }

    fn grow_in_place(&mut self, length: usize) -> Result<()> {
        let too_little = || {
            let needed = self.plan.bytes(length - self.room);
            too_little(length, needed, self.control.room())
        };
        self.blocks[0].grow_to(length).ok_or_else(too_little)?;
        self.room = length;
        Ok(())
    }

    fn take_new(&mut self, length: usize) -> Result<()> {
        let too_little = || too_little(self.total, self.plan.bytes(length), self.control.room());
        let block = Block::new(length, &self.plan).ok_or_else(too_little)?;
        self.room += length;
        self.blocks.push(block);
        Ok(())
    }

    fn take_prepared(&mut self) -> Result<()> {
        let ahead = self.ahead.as_ref().expect("there is a thread");
        let received = ahead.recv();
        let lost = |_| Err(too_little(self.room, MARGIN_BYTES, self.control.room()));
        let block = received.unwrap_or_else(lost)?;
        self.room += block.columns.len();
        self.blocks.push(block);
        Ok(())
    }
}

/// Make blocks on a thread of its own, a few ahead of their use, until nobody takes them any more.
fn prepare_ahead(plan: Plan, total: usize, control: &Control) -> Receiver<Result<Block>> {
    let (sender, receiver) = sync_channel(READY_BLOCKS);
    let memory = Control::of_memory(control);
    let prepare = move || {
        let length = plan.block_ios();
        for from in (0..total).step_by(length) {
            let in_all = (from + length) * plan.processes;
            let made = plan.check(length, in_all, &memory).and_then(|()| {
                let block = Block::new(length.min(total - from), &plan);
                block.ok_or_else(|| too_little(in_all, MARGIN_BYTES, memory.room()))
            });
            let last = made.is_err();
            if sender.send(made).is_err() || last {
                return;
            }
        }
    };
    // Without a thread nothing is ever sent, which the first who waits is told.
    let _ = std::thread::Builder::new().spawn(prepare);
    receiver
}

impl<D: Device<Request = Io>> Record<D> for Recorder<'_> {
    #[inline]
    fn record(
        &mut self,
        index: usize,
        _: &Io,
        start: Nanos,
        arrived: Nanos,
        completion: &Completion<D::Breakdown, D::Status>,
    ) {
        if index >= self.room {
            self.make_room_for(index);
            if index >= self.room {
                return;
            }
        }
        let Completion { submitted, completed, breakdown, .. } = completion;
        let at = index & self.mask();
        let block = &mut self.blocks[(index - self.first) >> self.shift];
        block.columns.submit_ns[at] = arrived.0 - start.0;
        block.columns.response_time_ns[at] = completed.0 - arrived.0;
        let (wait, device) = (submitted.0 - arrived.0, completed.0 - submitted.0);
        self.causes.store(&mut block.columns.cause_ns, at, wait, device, breakdown.parts());
        block.left -= 1;
        if block.left == 0 {
            self.hand_over();
        }
    }
}
