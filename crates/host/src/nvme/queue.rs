//! A queue of NVMe commands: each I/O as one command, or as pieces that the drive accepts.

use std::sync::Arc;

use uflip_core::{Bytes, Device, Durability, Error, Io, Mode, Nanos, Result, ZoneReport};

use super::command::{Command, DatasetRange, PAGE_BYTES, Transfer, is_ordered};
use super::namespace::{Namespace, read_zones};
use super::status::{io_error, os_action};
use super::transport::{CommandQueue, Transport};
use crate::buffer::Pool;
use crate::clock;
use crate::completions::{Completions, not_polled};
use crate::direct::DirectDevice;
use crate::io_queue::{InflightTable, IoQueue};
use crate::queued_device::{QueuedDevice, no_ring};

/// The largest piece of a deallocation [blocks]: a range has 32 bits.
const DEALLOCATED_BLOCKS_MAX: u64 = 1 << 31;
/// The reason why passthrough is not polled.
const POLLING_CRASHES: &str = "kernels crash when they poll a command without data";

/// An NVMe drive by its own commands.
pub type NvmeDevice = QueuedDevice<NvmeQueue>;

/// A queue of NVMe commands.
pub struct NvmeQueue {
    transport: Arc<dyn Transport>,
    namespace: Arc<Namespace>,
    commands: Box<dyn CommandQueue>,
    queued: usize,
    /// The I/O of each slot.
    jobs: Vec<Job>,
    /// The range of a deallocation of each slot: the drive reads it from here.
    ranges: Vec<DatasetRange>,
    /// Completions that were found, kept to avoid an allocation.
    found: Vec<(u32, i32)>,
}

/// An I/O and its pieces.
#[derive(Clone, Copy)]
struct Job {
    io: Io,
    /// The address of its data.
    memory: u64,
    /// The bytes for which pieces were queued.
    queued_bytes: u64,
    /// The number of pieces in the queue.
    outstanding: u32,
    durable: bool,
    /// Whether a flush follows the last piece.
    flushes: bool,
    /// The first failure.
    failure: Option<i32>,
}

impl NvmeQueue {
    /// Create a queue, and store the I/O method in the properties of `direct`.
    pub(crate) fn open(
        transport: Arc<dyn Transport>,
        namespace: Arc<Namespace>,
        direct: &mut DirectDevice,
        depth: u32,
    ) -> Result<NvmeQueue> {
        let polled = direct.polls;
        let commands = transport.queue(depth, polled);
        let commands = commands.map_err(|error| no_ring(&direct.info().url, &error))?;
        let suffix = if polled { ", polled" } else { "" };
        direct.info.io = format!("io_uring passthrough{suffix}");
        let nothing = Io { offset: Bytes(0), size: Bytes(0), mode: Mode::Read, stream: 0 };
        let job = Job {
            io: nothing,
            memory: 0,
            queued_bytes: 0,
            outstanding: 0,
            durable: false,
            flushes: false,
            failure: None,
        };
        Ok(NvmeQueue {
            transport,
            namespace,
            commands,
            queued: 0,
            jobs: vec![job; depth as usize],
            ranges: vec![DatasetRange::default(); depth as usize],
            found: Vec::with_capacity(depth as usize),
        })
    }

    /// Return the size of the next piece of an I/O with `left` bytes.
    fn piece_bytes(&self, mode: Mode, left: u64) -> u64 {
        let block = self.namespace.block_bytes;
        let limit = match mode {
            Mode::Trim => DEALLOCATED_BLOCKS_MAX * block,
            Mode::Append => self.namespace.append_bytes_max,
            mode if mode.moves_data() => self.namespace.command_bytes_max,
            _ => self.namespace.zones.map_or(left, |zones| zones.zone_blocks * block),
        };
        let unit = block.max(PAGE_BYTES);
        left.min((limit / unit * unit).max(unit))
    }

    /// Queue the next piece of a slot.
    fn push_piece(&mut self, slot: u32) -> std::io::Result<()> {
        let Job { io, memory, queued_bytes, durable, .. } = self.jobs[slot as usize];
        let (nsid, block) = (self.namespace.id, self.namespace.block_bytes);
        let bytes = self.piece_bytes(io.mode, io.size.0 - queued_bytes);
        let start = (io.offset.0 + queued_bytes) / block;
        let command = match io.mode {
            Mode::Trim => {
                let range = &mut self.ranges[slot as usize];
                *range = DatasetRange::new(start, bytes / block);
                Command::deallocate(nsid, range)
            }
            mode if mode.moves_data() => {
                let start = if mode == Mode::Append { self.zone_start(start) } else { start };
                let transfer = Transfer {
                    start,
                    blocks: bytes / block,
                    memory: memory + queued_bytes,
                    bytes,
                    durable,
                    placement: self.placement_of(io.stream),
                };
                Command::transfer(nsid, mode, &transfer)
            }
            mode => Command::manage_zone(nsid, mode, start),
        };
        let job = &mut self.jobs[slot as usize];
        job.queued_bytes += bytes;
        self.push_command(slot, &command)
    }

    fn push_command(&mut self, slot: u32, command: &Command) -> std::io::Result<()> {
        self.jobs[slot as usize].outstanding += 1;
        self.queued += 1;
        self.commands.push(slot, command)
    }

    fn zone_start(&self, block: u64) -> u64 {
        let zone_blocks = self.namespace.zones.map_or(1, |zones| zones.zone_blocks.max(1));
        block / zone_blocks * zone_blocks
    }

    /// Return the placement identifier of a stream; stream 0 names none.
    fn placement_of(&self, stream: u8) -> Option<u16> {
        if stream == 0 {
            return None;
        }
        self.namespace.placement.get(usize::from(stream)).copied()
    }

    /// Record the completion of a piece; return whether the whole I/O has completed.
    fn end_piece(&mut self, slot: u32, result: i32) -> bool {
        let job = &mut self.jobs[slot as usize];
        job.outstanding -= 1;
        if result != 0 {
            job.failure.get_or_insert(result);
        }
        let Job { io, queued_bytes, outstanding, failure, flushes, .. } = *job;
        let pushed = if failure.is_some() {
            Ok(())
        } else if queued_bytes < io.size.0 {
            self.push_piece(slot)
        } else if outstanding == 0 && flushes {
            self.jobs[slot as usize].flushes = false;
            self.push_command(slot, &Command::flush(self.namespace.id))
        } else {
            Ok(())
        };
        let job = &mut self.jobs[slot as usize];
        if let Err(error) = pushed {
            job.outstanding -= 1;
            job.failure = Some(-error.raw_os_error().unwrap_or(libc::EIO));
        }
        job.outstanding == 0
    }
}

impl IoQueue for NvmeQueue {
    const FLUSHES: bool = true;

    fn open_another(&self, direct: &mut DirectDevice, depth: u32) -> Result<NvmeQueue> {
        let (transport, namespace) = (Arc::clone(&self.transport), Arc::clone(&self.namespace));
        NvmeQueue::open(transport, namespace, direct, depth)
    }

    fn attach(&mut self, _: &Pool) {}

    #[inline]
    fn accepts(_: Mode) -> bool {
        true
    }

    fn push(
        &mut self,
        slot: u32,
        io: &Io,
        memory: *mut u8,
        direct: &DirectDevice,
    ) -> std::io::Result<()> {
        self.jobs[slot as usize] = Job {
            io: *io,
            memory: memory as u64,
            queued_bytes: 0,
            outstanding: 0,
            durable: direct.durability == Durability::Fua,
            flushes: io.mode.is_write() && direct.count_write(),
            failure: None,
        };
        self.push_piece(slot)?;
        if !is_ordered(io, self.namespace.zones.is_some()) {
            while self.jobs[slot as usize].queued_bytes < io.size.0 {
                self.push_piece(slot)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn queued(&self) -> usize {
        self.queued
    }

    fn enter(&mut self, completions: usize) -> std::io::Result<()> {
        self.commands.enter(completions)?;
        self.queued = 0;
        Ok(())
    }

    fn enter_until(&mut self, timeout: Nanos) -> std::io::Result<()> {
        self.commands.enter_until(timeout)
    }

    fn holds_completions(&mut self) -> bool {
        self.commands.holds_completions()
    }

    fn reap(&mut self, table: &mut InflightTable) {
        let mut found = std::mem::take(&mut self.found);
        self.commands.drain(&mut found);
        if !found.is_empty() {
            let completed = clock::now();
            for (slot, result) in found.drain(..) {
                if self.end_piece(slot, result) {
                    table.end(slot, completed, self.jobs[slot as usize].failure);
                }
            }
        }
        self.found = found;
    }

    fn io_error(&self, direct: &DirectDevice, io: &Io, number: i32) -> Error {
        io_error(&direct.info().url, io, number)
    }

    fn zones(&self, direct: &DirectDevice) -> Result<Option<ZoneReport>> {
        read_zones(&*self.transport, &self.namespace, &direct.info().url)
    }

    fn release(&mut self) {}
}

impl NvmeDevice {
    /// Choose the completion mode; return whether completions are polled, which they never are:
    /// Linux 6.1 crashes when it polls a command without data, such as a flush.
    ///
    /// # Errors
    /// If polling was required.
    pub fn set_completions(&mut self, completions: Completions) -> Result<bool> {
        match completions {
            Completions::Polled => Err(not_polled(&self.direct().info().url, POLLING_CRASHES)),
            Completions::Auto | Completions::Interrupt => Ok(false),
        }
    }

    /// Make all written data durable.
    ///
    /// # Errors
    /// Any error of the drive.
    pub fn sync(&self) -> Result<()> {
        let flush = Command::flush(self.queue.namespace.id);
        self.queue.transport.io(flush, &mut []).map_err(|error| {
            let error = std::io::Error::from(error);
            Error::os("The device could not be flushed", &self.direct().info().url, &error)
                .action(os_action(&error))
        })
    }

    /// Deallocate a range.
    ///
    /// # Errors
    /// If the drive does not support it, or was opened for reading.
    pub fn trim(&mut self, offset: Bytes, size: Bytes) -> Result<()> {
        self.submit(&Io { offset, size, mode: Mode::Trim, stream: 0 })?;
        self.complete().map(|_| ())
    }
}
