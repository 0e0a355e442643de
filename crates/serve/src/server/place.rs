//! A device with its data: what a request does there, and its reply.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uflip_core::{Bytes, Io, Mode, Ticket};

use crate::data::Data;
use crate::export::Export;
use crate::paced::Paced;
use crate::record::Line;
use crate::session::{Command, Request};
use crate::statistics::Served;
use crate::wire::{errno, put_data_head, put_error, put_simple};

/// A range may be 4 GiB long where no data comes with it. It is trimmed or zeroed in steps of so much
/// [bytes], each a few milliseconds of work, and other clients are served in between.
const STEP_BYTES: u32 = 4 << 20;

/// A request under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) client: u64,
    pub(super) request: Request,
    /// When it was whole [ns].
    pub(super) arrived: u64,
    /// How much of its range was given to the device so far [bytes].
    pub(super) begun: u32,
    /// How many I/Os and syncs it still waits for.
    pub(super) parts: u32,
    /// How long the device took, on the wall clock [ns].
    pub(super) simulated: u64,
    pub(super) failed: bool,
}

impl UnderWay {
    pub(super) fn new(client: u64, request: Request, arrived: u64) -> UnderWay {
        UnderWay { client, request, arrived, begun: 0, parts: 0, simulated: 0, failed: false }
    }

    /// Whether nothing of it is left to be given to the device.
    pub(super) fn is_begun(&self) -> bool {
        self.failed || self.begun == self.request.length
    }

    /// What is written down of it, where it is answered at `now`: what the device reads or writes, zeroes
    /// as well; nothing of flushes, nor of trims, which the form does not know.
    pub(super) fn line(&self, now: u64) -> Option<Line> {
        let mode = match self.request.command {
            Command::Read => Mode::Read,
            Command::Write | Command::WriteZeroes { .. } => Mode::Write,
            Command::Flush | Command::Trim => return None,
        };
        let Request { export, offset, length: size, .. } = self.request;
        let (arrived, response) = (self.arrived, now.saturating_sub(self.arrived));
        let line = Line { export, arrived, mode, offset, size, response };
        (!self.failed).then_some(line)
    }
}

/// A device, and what waits for it.
pub(super) struct Place {
    pub(super) data: Data,
    /// Whether the data outlives the process, so that there is something to sync.
    pub(super) durable: bool,
    pub(super) paced: Paced,
    pub(super) tickets: BTreeMap<Ticket, usize>,
    pub(super) served: Served,
    /// What of a range is trimmed or zeroed at once [bytes].
    step_bytes: u32,
    /// Pages that had been programmed when it was first served.
    programmed_before: u64,
}

impl Place {
    pub(super) fn new(data: Data, durable: bool, paced: Paced, sector: u32) -> Place {
        let programmed_before = paced.counters().map_or(0, |counters| counters.pages_programmed);
        let (tickets, served) = (BTreeMap::new(), Served::default());
        let step_bytes = STEP_BYTES.max(sector);
        Place { data, durable, paced, tickets, served, step_bytes, programmed_before }
    }

    /// What was served until `now`, and what became of the device.
    pub(super) fn document(&mut self, export: &Export, now: u64) -> Value {
        let mut document = self.served.document(now);
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

    /// Give a request, or the next step of one, to the device at `now`; what it is made of there is known
    /// by `key`.
    pub(super) fn step(&mut self, new: &mut UnderWay, key: usize, now: u64) {
        let Request { command, offset, length, .. } = new.request;
        let left = length - new.begun;
        let step = match command {
            Command::Trim | Command::WriteZeroes { .. } => left.min(self.step_bytes),
            Command::Read | Command::Write | Command::Flush => left,
        };
        let (at, size) = (Bytes(offset + u64::from(new.begun)), Bytes(u64::from(step)));
        new.begun += step;
        match command {
            Command::Read => self.submit(new, Mode::Read, (at, size), key, now),
            Command::Write => self.submit(new, Mode::Write, (at, size), key, now),
            Command::Flush => {
                let ticket = self.paced.flush(now);
                self.waits_for(new, ticket, key);
            }
            Command::Trim => {
                self.paced.trim(now, at, size);
                new.failed = self.data.zero(at.0, size.0, false).is_err();
            }
            Command::WriteZeroes { keep } => {
                new.failed = self.data.zero(at.0, size.0, keep).is_err();
                self.submit(new, Mode::Write, (at, size), key, now);
            }
        }
    }

    fn submit(
        &mut self,
        new: &mut UnderWay,
        mode: Mode,
        (offset, size): (Bytes, Bytes),
        key: usize,
        now: u64,
    ) {
        let io = Io { offset, size, mode, stream: 0 };
        match self.paced.submit(now, &io, new.request.fua) {
            Ok(ticket) => self.waits_for(new, ticket, key),
            Err(_) => new.failed = true,
        }
    }

    fn waits_for(&mut self, new: &mut UnderWay, ticket: Ticket, key: usize) {
        self.tickets.insert(ticket, key);
        new.parts += 1;
    }

    /// Put the reply of a request into `out`, and count it as answered at `now`.
    pub(super) fn answer(&mut self, done: &UnderWay, out: &mut Vec<u8>, now: u64) {
        let Request { cookie, command, offset, length, structured, .. } = done.request;
        let before = out.len();
        let mut failed = done.failed;
        if command == Command::Read && !failed {
            put_data_head(out, structured, cookie, offset, length);
            failed = self.data.read(out, offset, length).is_err();
        } else if !failed {
            put_simple(out, cookie, 0);
        }
        if failed {
            out.truncate(before);
            put_error(out, structured, cookie, errno::EIO);
            self.served.failed += 1;
        } else {
            self.served.count(command, length);
            self.served.time(now, now.saturating_sub(done.arrived), done.simulated);
        }
    }
}
