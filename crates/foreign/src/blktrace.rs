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
//! **Simplified**: the files of several CPUs are several files of one trace. A record that is cut off, as
//! of a killed blktrace, ends its file, and is counted.
//! **Ambiguous**: nothing; files of machines with another byte order are refused.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use uflip_core::{Mode, SpooledVec};

use crate::block_events::{Action, Begin, Event, EventCollector};
use crate::lines::{LineError, LineReader};
use crate::recorded::RecordedTrace;

const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 0x07;
const RECORD_BYTES: usize = 48;
/// The data of a remap: the device and sector above, in network byte order.
const REMAP_BYTES: usize = 16;
const MAX_CPUS: u32 = 256;
/// The lower half of an action is the event, the upper half flags of the I/O.
const EVENTS: [(u32, Action); 5] = [
    (1, Action::Queued),
    (6, Action::Requeued),
    (7, Action::Issued),
    (8, Action::Completed),
    (15, Action::Remapped),
];
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

/// Return another file of the trace: `sda.blktrace.1` beside `sda.blktrace.0`.
pub(crate) fn file_of_another_cpu(path: &Path) -> Option<PathBuf> {
    let cpu: u32 = path.extension()?.to_str()?.parse().ok()?;
    let others = (0..MAX_CPUS).filter(|other| *other != cpu);
    others.map(|other| path.with_extension(other.to_string())).find(|path| path.exists())
}

/// Read the files of all CPUs.
pub(crate) fn read<'a>(
    inputs: impl Iterator<Item = &'a mut dyn BufRead>,
    begin: Option<Begin>,
) -> Result<RecordedTrace, LineError> {
    let mut events = EventCollector::new();
    // Binary records have no lines; their errors name no line either.
    let mut nothing = std::io::empty();
    let mut lines = LineReader::new(&mut nothing);
    let mut found = SpooledVec::default();
    for input in inputs {
        read_file(input, &mut events, &mut found)?;
    }
    // One file for each CPU: an I/O may begin in one and end in another.
    found.sort_in_parts(|(at, ..)| *at);
    for (_, event, action, record) in found.iter() {
        add(&mut events, &mut lines, record, *action, *event)?;
    }
    let mut recorded = events.finish(begin);
    recorded.odd = lines.odd_lines(recorded.ios.len(), "records of blktrace with possible I/Os")?;
    Ok(recorded)
}

type FoundEvent = (u64, Action, u32, [u8; RECORD_BYTES + REMAP_BYTES]);

/// Add the events of a file, each with the beginning of its data.
fn read_file(
    input: &mut dyn BufRead,
    events: &mut EventCollector,
    found: &mut SpooledVec<FoundEvent>,
) -> Result<(), LineError> {
    let mut record = [0; RECORD_BYTES + REMAP_BYTES];
    for number in 1u64.. {
        let filled = fill(input, &mut record[..RECORD_BYTES])?;
        if filled == 0 {
            break;
        }
        let magic = word(&record, 0).unwrap_or(0);
        if filled >= 4 && magic != MAGIC | VERSION {
            return Err(LineError::of_file(
                format!("record {number} begins with {magic:#010x}"),
                "records of blktrace, version 7, of a little-endian machine",
            )
            .action("print them as text: blkparse -i FILE"));
        }
        let (action, bytes) = (word(&record, 28).unwrap_or(0), usize::from(u16_at(&record, 46)));
        let data = bytes.min(REMAP_BYTES);
        record[RECORD_BYTES..].fill(0);
        let is_whole = filled == RECORD_BYTES
            && fill(input, &mut record[RECORD_BYTES..RECORD_BYTES + data])? == data
            && skip(input, (bytes - data) as u64)? == (bytes - data) as u64;
        if !is_whole {
            events.skip_record(INCOMPLETE);
            break;
        }
        if let Some(event) = event_of(action) {
            found.push((long(&record, 8).unwrap_or(0), event, action, record));
        }
    }
    Ok(())
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
    let device = |number: u32| format!("{},{}", number >> 20, number & 0xf_ffff);
    let sectors = long(record, 16).unwrap_or(u64::MAX);
    let (at, offset) = (long(record, 8).unwrap_or(u64::MAX), sectors.saturating_mul(512));
    let of_record = device(word(record, 36).unwrap_or(0));
    if event == Action::Remapped {
        let above = |at: usize| word(record, at).unwrap_or(0).swap_bytes();
        let sector = u64::from(above(RECORD_BYTES + 8)) << 32 | u64::from(above(RECORD_BYTES + 12));
        events.remap(&of_record, offset, &device(above(RECORD_BYTES)), sector.saturating_mul(512));
        return Ok(());
    }
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
    events.add(lines, Event { action: event, device: &of_record, mode, offset, size, at })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |part| u16::from_le_bytes([part[0], part[1]]))
}

/// The name of a record whose end is missing.
pub(crate) const INCOMPLETE: &str = "incomplete record";

/// Fill a record; return the bytes that were left, fewer at the end of the file.
pub(crate) fn fill(input: &mut dyn BufRead, record: &mut [u8]) -> Result<usize, LineError> {
    let mut filled = 0;
    while filled < record.len() {
        match input.read(&mut record[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(LineError::of_file(error.to_string(), "a file that can be read"));
            }
        }
    }
    Ok(filled)
}

/// Skip bytes; return how many there were.
fn skip(input: &mut dyn BufRead, bytes: u64) -> Result<u64, LineError> {
    std::io::copy(&mut std::io::Read::take(input, bytes), &mut std::io::sink())
        .map_err(|error| LineError::of_file(error.to_string(), "a file to its end"))
}
