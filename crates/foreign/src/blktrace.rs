//! The binary files of blktrace (`sda.blktrace.0`): one record for each event.
//!
//! ```text
//!  0 magic   4 sequence   8 time [ns]   16 sector   24 bytes   28 action   32 pid   36 device
//! 40 cpu    44 error     46 length of the data that follow                          48
//! ```
//!
//! **Source**: `struct blk_io_trace` in the kernel's `blktrace_api.h`, version 7; blkparse 1.2 prints
//! the same I/Os for the same file (a test).
//! **Faithful**: as `blkparse.rs`.
//! **Simplified**: the files of several CPUs are several files of one trace.
//! **Ambiguous**: nothing; files of machines with another byte order are refused.

use std::io::BufRead;

use uflip_core::{Mode, SpooledVec};

use crate::block_events::{Action, Begin, Event, EventCollector};
use crate::lines::{LineError, LineReader};
use crate::recorded::RecordedTrace;

const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 0x07;
const RECORD_BYTES: usize = 48;
/// The lower half of an action is the event, the upper half flags of the I/O.
const EVENTS: [(u32, Action); 3] =
    [(1, Action::Queued), (7, Action::Issued), (8, Action::Completed)];
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PACKET_COMMAND: u32 = 1 << 25;
const NOTIFICATION: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;

pub(crate) fn matches(bytes: &[u8]) -> bool {
    word(bytes, 0)
        .is_some_and(|magic| magic & !0xff == MAGIC || magic.swap_bytes() & !0xff == MAGIC)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

pub(crate) fn read(
    input: &mut dyn BufRead,
    begin: Option<Begin>,
) -> Result<RecordedTrace, LineError> {
    let mut events = EventCollector::new();
    // Binary records have no lines; their errors name no line either.
    let mut nothing = std::io::empty();
    let mut lines = LineReader::new(&mut nothing);
    let (mut record, mut found) = ([0; RECORD_BYTES], SpooledVec::default());
    let mut number = 0u64;
    while fill(input, &mut record)? {
        number += 1;
        let magic = word(&record, 0).unwrap_or(0);
        if magic != MAGIC | VERSION {
            return Err(LineError::of_file(
                format!("record {number} begins with {magic:#010x}"),
                "records of blktrace, version 7, of a little-endian machine",
            )
            .action("print them as text: blkparse -i FILE"));
        }
        let (action, skipped) = (word(&record, 28).unwrap_or(0), u16_at(&record, 46));
        skip(input, u64::from(skipped))?;
        if let Some(event) = event_of(action) {
            found.push((long(&record, 8).unwrap_or(0), event, action, record));
        }
    }
    // One file for each CPU: an I/O may begin in one and end in another.
    found.sort_in_parts(|(at, ..)| *at);
    for (_, event, action, record) in found.iter() {
        add(&mut events, &mut lines, record, *action, *event)?;
    }
    Ok(events.finish(begin))
}

fn event_of(action: u32) -> Option<Action> {
    if action & NOTIFICATION != 0 {
        return None;
    }
    EVENTS.iter().find(|(number, _)| *number == action & 0xffff).map(|(_, event)| *event)
}

fn add(
    events: &mut EventCollector,
    lines: &mut LineReader<'_>,
    record: &[u8],
    action: u32,
    event: Action,
) -> Result<(), LineError> {
    let size = u64::from(word(record, 24).unwrap_or(0));
    if action & PACKET_COMMAND != 0 {
        events.skip_operation(event, "command");
        return Ok(());
    }
    if size == 0 || (action & FLUSH != 0 && action & WRITE == 0) {
        events.skip_operation(event, "flush");
        return Ok(());
    }
    let mode = match (action & DISCARD != 0, action & WRITE != 0) {
        (true, _) => Mode::Trim,
        (_, true) => Mode::Write,
        _ => Mode::Read,
    };
    let device = word(record, 36).unwrap_or(0);
    let device = format!("{},{}", device >> 20, device & 0xf_ffff);
    let sectors = long(record, 16).unwrap_or(u64::MAX);
    let (at, offset) = (long(record, 8).unwrap_or(u64::MAX), sectors.saturating_mul(512));
    events.add(lines, Event { action: event, device: &device, mode, offset, size, at })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |part| u16::from_le_bytes([part[0], part[1]]))
}

/// Fill a record; false at the end of the file, where half a record is ignored.
pub(crate) fn fill(input: &mut dyn BufRead, record: &mut [u8]) -> Result<bool, LineError> {
    match input.read_exact(record) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(LineError::of_file(error.to_string(), "a file that can be read")),
    }
}

fn skip(input: &mut dyn BufRead, bytes: u64) -> Result<(), LineError> {
    let copied = std::io::copy(&mut std::io::Read::take(input, bytes), &mut std::io::sink());
    copied.map(drop).map_err(|error| LineError::of_file(error.to_string(), "a file to its end"))
}
