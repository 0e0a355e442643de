//! The queue of the kernel below a [`crate::QueuedDevice`], and the table of its I/Os: those that are
//! outstanding, by slot and in order, and those that have completed and wait to be taken.

use std::collections::VecDeque;

use uflip_core::{Completion, Error, Io, Mode, Nanos, Result, Ticket, ZoneReport};

use crate::buffer::Pool;
use crate::direct::DirectDevice;

/// A queue of the kernel, which executes the I/Os of a queued device.
pub trait IoQueue: Sized + Send {
    /// Whether a flush after every N-th write is possible while nothing else is outstanding.
    const FLUSHES: bool;

    /// Open another queue to the same target, for the handle `direct`.
    fn open_another(&self, direct: &mut DirectDevice, depth: u32) -> Result<Self>;

    /// Use the memory of `pool` from now on; nothing is outstanding.
    fn attach(&mut self, pool: &Pool);

    /// Return whether I/Os of this mode enter the queue; others are blocking calls.
    fn accepts(mode: Mode) -> bool;

    /// Queue `io`, with its data at `memory`.
    fn push(
        &mut self,
        slot: u32,
        io: &Io,
        memory: *mut u8,
        direct: &DirectDevice,
    ) -> std::io::Result<()>;

    /// Return the number of entries that are not yet submitted to the kernel.
    fn queued(&self) -> usize;

    /// Submit the queued entries, and wait for `completions`.
    fn enter(&mut self, completions: usize) -> std::io::Result<()>;

    /// Submit the queued entries, and wait for a completion, at most for `timeout`.
    fn enter_until(&mut self, timeout: Nanos) -> std::io::Result<()>;

    /// Return whether completions wait in the kernel until it is entered.
    fn holds_completions(&mut self) -> bool;

    /// Complete the I/Os of all present completions.
    fn reap(&mut self, table: &mut InflightTable);

    /// Return the error of a failed I/O, from the number that was returned for it.
    fn io_error(&self, direct: &DirectDevice, io: &Io, number: i32) -> Error;

    /// Return the zones of the target.
    fn zones(&self, direct: &DirectDevice) -> Result<Option<ZoneReport>>;

    /// Release the target: the kernel frees a queue asynchronously and holds its files until then,
    /// so that the next opener of the device would find it in use.
    fn release(&mut self);
}

#[derive(Clone, Copy)]
struct Inflight {
    ticket: Ticket,
    io: Io,
    submitted: Nanos,
}

/// A completed I/O, or a failed one with the number that the kernel or the drive returned.
pub(crate) type Outcome = std::result::Result<Completion<()>, (Io, i32)>;

/// The I/Os of a queue.
pub struct InflightTable {
    slots: Vec<Option<Inflight>>,
    free: Vec<u32>,
    pub(crate) outstanding: usize,
    /// All entries in order of submission, with their slots; completed ones are removed at the
    /// front.
    order: VecDeque<(Ticket, u32)>,
    /// The oldest outstanding I/O that was reported to the watch.
    oldest: Option<Ticket>,
    completed: VecDeque<Outcome>,
    tickets: u64,
}

impl InflightTable {
    pub(crate) fn new(depth: u32) -> InflightTable {
        InflightTable {
            slots: vec![None; depth as usize],
            free: (0..depth).rev().collect(),
            outstanding: 0,
            order: VecDeque::with_capacity(depth as usize),
            oldest: None,
            completed: VecDeque::with_capacity(depth as usize),
            tickets: 0,
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Take a free slot for `io`; the first I/O of an empty queue is reported to the watch.
    #[inline]
    pub(crate) fn take_slot(&mut self, io: &Io, direct: &DirectDevice) -> u32 {
        let slot = self.free.pop().expect("a slot is free below the queue depth");
        if self.outstanding == 0 {
            self.oldest = Some(Ticket(self.tickets));
            direct.watch_queue(Some(io));
        }
        slot
    }

    #[inline]
    fn next_ticket(&mut self) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        ticket
    }

    /// Enter an I/O into its slot.
    #[inline]
    pub(crate) fn begin(&mut self, slot: u32, io: Io, submitted: Nanos) -> Ticket {
        let ticket = self.next_ticket();
        self.slots[slot as usize] = Some(Inflight { ticket, io, submitted });
        self.order.push_back((ticket, slot));
        self.outstanding += 1;
        ticket
    }

    /// Complete the I/O of a slot; `failure` is the number that was returned for it.
    #[inline]
    pub(crate) fn end(&mut self, slot: u32, completed: Nanos, failure: Option<i32>) {
        let Some(Inflight { ticket, io, submitted }) = self.slots[slot as usize].take() else {
            return;
        };
        self.free.push(slot);
        self.outstanding -= 1;
        let completion = Completion { ticket, submitted, completed, breakdown: (), status: () };
        self.completed.push_back(failure.map_or(Ok(completion), |number| Err((io, number))));
    }

    /// Add an I/O that was executed by a blocking call.
    pub(crate) fn push_completed(&mut self, submitted: Nanos, completed: Nanos) -> Ticket {
        let ticket = self.next_ticket();
        let completion = Completion { ticket, submitted, completed, breakdown: (), status: () };
        self.completed.push_back(Ok(completion));
        ticket
    }

    /// Return the I/O of a slot.
    #[inline]
    pub(crate) fn io(&self, slot: u32) -> Option<&Io> {
        self.slots[slot as usize].as_ref().map(|inflight| &inflight.io)
    }

    /// Return the oldest completion.
    #[inline]
    pub(crate) fn first_completed(&self) -> Option<&Outcome> {
        self.completed.front()
    }

    /// Take the oldest completion.
    #[inline]
    pub(crate) fn take_completed(&mut self) -> Option<Outcome> {
        self.completed.pop_front()
    }

    /// Report the oldest outstanding I/O to the watch, if it changed: its age counts from that
    /// moment.
    #[inline]
    pub(crate) fn report_oldest(&mut self, direct: &DirectDevice) {
        let oldest = self.find_oldest();
        let ticket = oldest.map(|(ticket, _)| ticket);
        if ticket != self.oldest {
            self.oldest = ticket;
            direct.watch_queue(oldest.as_ref().map(|(_, io)| io));
        }
    }

    #[inline]
    fn find_oldest(&mut self) -> Option<(Ticket, Io)> {
        while let Some(&(ticket, slot)) = self.order.front() {
            match self.slots[slot as usize] {
                Some(inflight) if inflight.ticket == ticket => return Some((ticket, inflight.io)),
                _ => self.order.pop_front(),
            };
        }
        None
    }
}
