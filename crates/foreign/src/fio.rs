//! fio's I/O logs, versions 2 and 3 (`fio --write_iolog=FILE`).
//!
//! **Source**: fio's documentation, "Trace file format v2" and "v3" (HOWTO); what fio 3.33 writes.
//! **Faithful**: reads, writes and trims with their offsets and lengths; in version 3 their times [µs]; in
//! version 2 waits, which are relative to the wait before [µs].
//! **Simplified**: files lie side by side. Syncs are counted, and not replayed.
//! **Ambiguous**: a name of a file may hold blanks, which the format does not quote: the action is looked
//! for from the end of the line.

use uflip_core::Mode;

use crate::lines::{Lines, Wrong};
use crate::recorded::Recorded;

const HEAD: &str = "fio version ";
const ALLOWED: &str = "FILE add|open|close; FILE read|write|sync|datasync|trim|wait OFFSET LENGTH";

pub(crate) fn is_it(first: &str) -> bool {
    first.starts_with(HEAD) && first.ends_with(" iolog")
}

pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Recorded, Wrong> {
    let head = lines.next()?.unwrap_or("").to_owned();
    let version = head.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(" iolog"));
    let timed = match version {
        Some("2") => false,
        Some("3") => true,
        _ => return Err(lines.wrong(&head, "fio version 2 iolog, fio version 3 iolog")),
    };
    let mut recorded = Recorded { has_times: timed, ..Recorded::default() };
    let mut now = 0u64;
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        let wrong = |lines: &Lines<'_>| lines.wrong(&line, ALLOWED);
        let mut rest = line.as_str();
        if timed {
            let (time, after) = rest.split_once(' ').ok_or_else(|| wrong(lines))?;
            now = microseconds(time).ok_or_else(|| wrong(lines))?;
            rest = after.trim_start();
        }
        let mut words = rest.rsplitn(4, ' ');
        let last = words.next().unwrap_or("");
        if matches!(last, "add" | "open" | "close") {
            continue;
        }
        let (Some(offset), Some(action), Some(file)) = (words.next(), words.next(), words.next())
        else {
            // A wait has one number only.
            now = waited(rest, now).ok_or_else(|| wrong(lines))?;
            recorded.has_times = true;
            continue;
        };
        let (Ok(offset), Ok(length)) = (offset.parse(), last.parse()) else {
            now = waited(rest, now).ok_or_else(|| wrong(lines))?;
            recorded.has_times = true;
            continue;
        };
        let mode = match action {
            "read" => Mode::Read,
            "write" => Mode::Write,
            "trim" => Mode::Trim,
            "sync" => {
                recorded.leave_out("sync");
                continue;
            }
            "datasync" => {
                recorded.leave_out("datasync");
                continue;
            }
            "wait" => {
                let more: u64 = offset;
                now = more
                    .checked_mul(1000)
                    .and_then(|ns| now.checked_add(ns))
                    .ok_or_else(|| wrong(lines))?;
                recorded.has_times = true;
                continue;
            }
            _ => return Err(wrong(lines)),
        };
        let source = recorded.source(lines, file)?;
        recorded.push(lines, source, mode, (offset, length), now)?;
    }
    Ok(recorded)
}

/// The time after a line `FILE wait MICROSECONDS`.
fn waited(line: &str, now: u64) -> Option<u64> {
    let mut words = line.rsplit(' ');
    let time = microseconds(words.next()?)?;
    (words.next()? == "wait").then(|| now.checked_add(time))?
}

fn microseconds(text: &str) -> Option<u64> {
    text.parse::<u64>().ok()?.checked_mul(1000)
}
