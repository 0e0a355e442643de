//! The block traces of MSR Cambridge, as published by SNIA: CSV, one I/O per line.
//!
//! **Source**: D. Narayanan, A. Donnelly, A. Rowstron, *Write off-loading* (FAST 2008), and the README of
//! the traces: Timestamp, Hostname, DiskNumber, Type, Offset, Size, ResponseTime. Times are Windows file
//! times (100 ns), offsets and sizes bytes.
//! **Faithful**: all fields but the response time.
//! **Simplified**: disks are placed side by side.
//! **Ambiguous**: some times go back; I/Os are sorted by time.

use uflip_core::Mode;

use crate::lines::{LineError, LineReader};
use crate::recorded::RecordedTrace;

const ALLOWED: &str = "TIMESTAMP,HOST,DISK,Read|Write,OFFSET,SIZE,RESPONSE_TIME";
const TICK_NS: u64 = 100;
/// The zero of times, so that they fit nanoseconds: about the year 2000, in ticks since 1601.
const EPOCH: u64 = 125_911_584_000_000_000;

pub(crate) fn matches(first: &str) -> bool {
    first == HEADER || fields(first).is_some()
}

/// The header line, present in some copies.
const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

struct Fields<'a> {
    at: u64,
    disk: (&'a str, &'a str),
    mode: Mode,
    range: (u64, u64),
}

fn fields(line: &str) -> Option<Fields<'_>> {
    let mut words = line.split(',');
    let mut next = || words.next().map(str::trim);
    let ticks = next()?.parse::<u64>().ok()?;
    let disk = (next()?, next()?);
    let mode = match next()? {
        "Read" | "read" => Mode::Read,
        "Write" | "write" => Mode::Write,
        _ => return None,
    };
    let range = (next()?.parse().ok()?, next()?.parse().ok()?);
    next()?.parse::<u64>().ok()?;
    if next().is_some() {
        return None;
    }
    // Other clocks have small numbers.
    let ticks = ticks.checked_sub(EPOCH).unwrap_or(ticks);
    Some(Fields { at: ticks.checked_mul(TICK_NS)?, disk, mode, range })
}

pub(crate) fn read(lines: &mut LineReader<'_>) -> Result<RecordedTrace, LineError> {
    let mut recorded = RecordedTrace { has_times: true, ..RecordedTrace::default() };
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        if line == HEADER && lines.number() == 1 {
            continue;
        }
        let Some(Fields { at, disk, mode, range }) = fields(&line) else {
            return Err(lines.error(&line, ALLOWED));
        };
        let source = recorded.source(lines, &format!("{}.{}", disk.0, disk.1))?;
        recorded.push(lines, source, mode, range, at)?;
    }
    Ok(recorded)
}
