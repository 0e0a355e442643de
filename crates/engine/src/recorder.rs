//! Where the I/Os of a run are put while it lasts: room for them, in bounded memory.
//!
//! ```text
//!  virtual time           one block that grows in place: no time passes there
//!  real time              one block, allocated and touched before the first I/O
//!  real time, open end    block ── block ── block        each touched by a thread beside the run
//!                                    └ being filled      before its first I/O comes
//! ```
//!
//! In real time no page fault may fall into a response time, and the device may not idle while memory is
//! got. A budget is not what a run comes to use, so the memory of a run that finds its length itself is
//! got as it goes. What memory may be used is asked of [`Control`] before it is got: an allocation that
//! fails ends the process, one that succeeds may end another one.

use std::sync::mpsc::{Receiver, sync_channel};

use uflip_core::{Breakdown, Completion, Device, Error, ErrorKind, Io, Nanos, Result};

use crate::drive::{Control, Record};
use crate::trace::{Trace, UNTOLD, pack};

/// I/Os of a block in real time, and those that a block in virtual time begins with.
const BLOCK_IOS: usize = 1 << 16;
/// What a run with an open end may take at once, before its first I/O, in all processes [bytes].
const AT_ONCE_BYTES: u64 = 64 << 20;
/// Blocks that are ready before they are needed.
const READY_BLOCKS: usize = 2;
/// Runs of up to so much are not worth a look at the memory of the system [bytes].
const SMALL_BYTES: u64 = 16 << 20;
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
}

impl Plan {
    fn bytes(&self, ios: usize) -> u64 {
        (ios as u64).saturating_mul(24 + 8 * self.causes as u64)
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
        if self.bytes(in_all) <= SMALL_BYTES {
            return Ok(());
        }
        let there = self.needs(in_all - more);
        let needed = (self.needs(in_all) - there).saturating_add(MARGIN_BYTES);
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

/// Columns of one length.
struct Block {
    submit_ns: Vec<u64>,
    response_time_ns: Vec<u64>,
    packed_io: Vec<u64>,
    cause_ns: Vec<Vec<u64>>,
}

impl Block {
    /// A block of `length` I/Os; `None` where there is not so much memory. In virtual time, where no
    /// page fault can be measured, pages that are not come to are never touched.
    fn new(length: usize, plan: &Plan) -> Option<Block> {
        // `vec!` ends the process where there is no memory: so ask first, for all columns at once.
        let words = length.checked_mul(3 + plan.causes)?;
        Vec::<u64>::new().try_reserve_exact(words).ok()?;
        let unknown = if plan.in_real_time { UNTOLD } else { 0 };
        Some(Block {
            submit_ns: vec![unknown; length],
            response_time_ns: vec![UNTOLD; length],
            packed_io: vec![unknown; length],
            cause_ns: (0..plan.causes).map(|_| vec![unknown; length]).collect(),
        })
    }

    fn columns(&mut self) -> impl Iterator<Item = &mut Vec<u64>> {
        let fixed = [&mut self.submit_ns, &mut self.response_time_ns, &mut self.packed_io];
        fixed.into_iter().chain(&mut self.cause_ns)
    }

    /// Make it `length` long; `None` where there is not so much memory.
    fn grow_to(&mut self, length: usize) -> Option<()> {
        self.columns().try_for_each(|column| {
            column.try_reserve_exact(length - column.len()).ok()?;
            column.resize(length, UNTOLD);
            Some(())
        })
    }
}

/// The I/Os of one process.
pub(crate) struct Recorder<'c> {
    control: &'c Control,
    plan: Plan,
    /// The process makes at most so many I/Os.
    total: usize,
    blocks: Vec<Block>,
    /// The I/O `index` is in block `index >> shift`.
    shift: u32,
    /// There is a place for I/Os below this.
    room: usize,
    ahead: Option<Receiver<Result<Block>>>,
    failed: Option<Error>,
}

impl<'c> Recorder<'c> {
    /// Room for `total` I/Os of each process of `plan`, which was checked.
    pub(crate) fn new(plan: Plan, total: usize, control: &'c Control) -> Result<Recorder<'c>> {
        let mut recorder = Recorder {
            control,
            plan,
            total,
            blocks: Vec::new(),
            shift: usize::BITS - 1,
            room: 0,
            ahead: None,
            failed: None,
        };
        let small = plan.bytes(total).saturating_mul(plan.processes as u64) <= AT_ONCE_BYTES;
        let at_once = small || !plan.has_open_end;
        if plan.in_real_time && !at_once {
            recorder.shift = BLOCK_IOS.trailing_zeros();
            recorder.ahead = Some(prepare_ahead(plan, total, control));
            recorder.take_block()?;
        } else {
            recorder.room = if at_once { total } else { BLOCK_IOS };
            let block = Block::new(recorder.room, &plan);
            let too_little = || too_little(total, plan.bytes(recorder.room), control.room());
            recorder.blocks.push(block.ok_or_else(too_little)?);
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

    /// The trace of the first `ios` I/Os.
    pub(crate) fn into_trace(mut self, ios: usize) -> Trace {
        self.ahead = None;
        let mut trace = Trace::empty(self.plan.causes);
        if let [only] = &mut self.blocks[..] {
            trace
                .columns()
                .zip(only.columns())
                .for_each(|(whole, part)| std::mem::swap(whole, part));
        } else {
            for number in 0..3 + self.plan.causes {
                let whole = trace.columns().nth(number).expect("as many columns");
                whole.reserve_exact(ios);
                for block in &mut self.blocks {
                    // Given back as soon as it is copied: two traces do not fit where one did.
                    let part = std::mem::take(block.columns().nth(number).expect("as many"));
                    whole.extend_from_slice(&part[..part.len().min(ios - whole.len())]);
                }
            }
        }
        trace.truncate(ios);
        trace
    }

    /// The response times from I/O number `from` on that are known without a gap [ns], up to the end
    /// of its block.
    pub(crate) fn known_from(&self, from: usize) -> &[u64] {
        if from >= self.room {
            return &[];
        }
        let rest = &self.blocks[from >> self.shift].response_time_ns[from & self.mask()..];
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
                Some(_) => self.take_block(),
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

    fn take_block(&mut self) -> Result<()> {
        let ahead = self.ahead.as_ref().expect("there is a thread");
        let received = ahead.recv();
        let lost = |_| Err(too_little(self.room, MARGIN_BYTES, self.control.room()));
        let block = received.unwrap_or_else(lost)?;
        self.room += block.submit_ns.len();
        self.blocks.push(block);
        Ok(())
    }
}

/// Make blocks on a thread of its own, a few ahead of their use, until nobody takes them any more.
fn prepare_ahead(plan: Plan, total: usize, control: &Control) -> Receiver<Result<Block>> {
    let (sender, receiver) = sync_channel(READY_BLOCKS);
    let memory = Control::of_memory(control);
    let prepare = move || {
        for from in (0..total).step_by(BLOCK_IOS) {
            let in_all = (from + BLOCK_IOS) * plan.processes;
            let made = plan.check(BLOCK_IOS, in_all, &memory).and_then(|()| {
                let block = Block::new(BLOCK_IOS.min(total - from), &plan);
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
        io: &Io,
        start: Nanos,
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
        let block = &mut self.blocks[index >> self.shift];
        block.submit_ns[at] = submitted.0 - start.0;
        block.response_time_ns[at] = completed.0 - submitted.0;
        block.packed_io[at] = pack(*io);
        for (column, part) in block.cause_ns.iter_mut().zip(breakdown.parts()) {
            column[at] = *part;
        }
    }
}
