//! A served device with its data: the execution of requests, and their replies.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uflip_core::{Bytes, Io, Mode, Ticket};

use crate::export_data::ExportData;
use crate::paced_device::PacedDevice;
use crate::request_recorder::RecordedRequest;
use crate::session::{NbdCommand, Request};
use crate::statistics::ExportStatistics;
use crate::wire::{Export, errno, put_data_head, put_error, put_simple};

/// The step size of long trims and zeroings [bytes]. Without data a request may cover 4 GiB. Each
/// step takes a few milliseconds, and other clients are served in between.
const STEP_BYTES: u32 = 4 << 20;

/// An outstanding request.
#[derive(Debug)]
pub(crate) struct ActiveRequest {
    pub(crate) client: u64,
    pub(crate) request: Request,
    /// The time of its complete arrival [ns].
    pub(crate) arrived: u64,
    /// The submitted part of its range [bytes].
    pub(crate) submitted_bytes: u32,
    /// The number of outstanding I/Os and syncs.
    pub(crate) pending_parts: u32,
    /// The response time of the device, on the wall clock [ns].
    pub(crate) simulated: u64,
    pub(crate) failed: bool,
}

impl ActiveRequest {
    pub(crate) fn new(client: u64, request: Request, arrived: u64) -> ActiveRequest {
        ActiveRequest {
            client,
            request,
            arrived,
            submitted_bytes: 0,
            pending_parts: 0,
            simulated: 0,
            failed: false,
        }
    }

    /// Return whether its whole range is submitted.
    pub(crate) fn is_submitted(&self) -> bool {
        self.failed || self.submitted_bytes == self.request.length
    }

    /// Return its record, if it is answered at `now`: reads, writes and zeroings. The format has no
    /// flushes and trims.
    pub(crate) fn record(&self, now: u64) -> Option<RecordedRequest> {
        let mode = match self.request.command {
            NbdCommand::Read => Mode::Read,
            NbdCommand::Write | NbdCommand::WriteZeroes { .. } => Mode::Write,
            NbdCommand::Flush | NbdCommand::Trim => return None,
        };
        let Request { export, offset, length: size, .. } = self.request;
        let (arrived, response) = (self.arrived, now.saturating_sub(self.arrived));
        let record = RecordedRequest { export, arrived, mode, offset, size, response };
        (!self.failed).then_some(record)
    }
}

/// A served device and its outstanding I/Os.
pub(crate) struct ServedDevice {
    pub(crate) data: ExportData,
    /// Whether the data outlives the process, so that it must be synced.
    pub(crate) durable: bool,
    pub(crate) paced: PacedDevice,
    pub(crate) tickets: BTreeMap<Ticket, usize>,
    pub(crate) statistics: ExportStatistics,
    /// The step size of trims and zeroings [bytes].
    step_bytes: u32,
    /// Pages programmed before the server began.
    programmed_before: u64,
}

impl ServedDevice {
    pub(crate) fn new(
        data: ExportData,
        durable: bool,
        paced: PacedDevice,
        sector: u32,
    ) -> ServedDevice {
        let programmed_before = paced.counters().map_or(0, |counters| counters.pages_programmed);
        let (tickets, statistics) = (BTreeMap::new(), ExportStatistics::default());
        let step_bytes = STEP_BYTES.max(sector);
        ServedDevice { data, durable, paced, tickets, statistics, step_bytes, programmed_before }
    }

    /// Return the statistics until `now`, and the state of the device.
    pub(crate) fn document(&mut self, export: &Export, now: u64) -> Value {
        let mut document = self.statistics.document(now);
        document["name"] = json!(export.name);
        document["held_ns"] = json!(self.paced.held_ns());
        let counters = self.paced.counters();
        document["counters"] = json!(counters);
        if let (Some(counters), Some(flash)) = (counters, self.paced.flash()) {
            let programmed = counters.pages_programmed - self.programmed_before;
            let bytes = programmed * u64::from(flash.page_bytes);
            document["flash"] = json!({
                "blocks": flash.blocks,
                "free_blocks": flash.free_blocks,
                "programmed_bytes": bytes,
            });
        }
        document
    }

    /// Submit the next step of a request at `now`; its tickets map to `key`.
    pub(crate) fn step(&mut self, active: &mut ActiveRequest, key: usize, now: u64) {
        let Request { command, offset, length, .. } = active.request;
        let remaining = length - active.submitted_bytes;
        let step = match command {
            NbdCommand::Trim | NbdCommand::WriteZeroes { .. } => remaining.min(self.step_bytes),
            NbdCommand::Read | NbdCommand::Write | NbdCommand::Flush => remaining,
        };
        let (at, size) =
            (Bytes(offset + u64::from(active.submitted_bytes)), Bytes(u64::from(step)));
        active.submitted_bytes += step;
        match command {
            NbdCommand::Read => self.submit(active, Mode::Read, (at, size), key, now),
            NbdCommand::Write => self.submit(active, Mode::Write, (at, size), key, now),
            NbdCommand::Flush => {
                let ticket = self.paced.flush(now);
                self.add_ticket(active, ticket, key);
            }
            NbdCommand::Trim => {
                self.paced.trim(now, at, size);
                active.failed = self.data.zero(at.0, size.0, false).is_err();
            }
            NbdCommand::WriteZeroes { keep } => {
                active.failed = self.data.zero(at.0, size.0, keep).is_err();
                self.submit(active, Mode::Write, (at, size), key, now);
            }
        }
    }

    fn submit(
        &mut self,
        active: &mut ActiveRequest,
        mode: Mode,
        (offset, size): (Bytes, Bytes),
        key: usize,
        now: u64,
    ) {
        let io = Io { offset, size, mode, stream: 0 };
        match self.paced.submit(now, &io, active.request.fua) {
            Ok(ticket) => self.add_ticket(active, ticket, key),
            Err(_) => active.failed = true,
        }
    }

    fn add_ticket(&mut self, active: &mut ActiveRequest, ticket: Ticket, key: usize) {
        self.tickets.insert(ticket, key);
        active.pending_parts += 1;
    }

    /// Append the reply of a request to `out`, and count it as answered at `now`.
    pub(crate) fn answer(&mut self, active: &ActiveRequest, out: &mut Vec<u8>, now: u64) {
        let Request { cookie, command, offset, length, structured, .. } = active.request;
        let before = out.len();
        let mut failed = active.failed;
        if command == NbdCommand::Read && !failed {
            put_data_head(out, structured, cookie, offset, length);
            failed = self.data.read(out, offset, length).is_err();
        } else if !failed {
            put_simple(out, cookie, 0);
        }
        if failed {
            out.truncate(before);
            put_error(out, structured, cookie, errno::EIO);
            self.statistics.failed += 1;
        } else {
            self.statistics.count(command, length);
            self.statistics.time(now, now.saturating_sub(active.arrived), active.simulated);
        }
    }
}
