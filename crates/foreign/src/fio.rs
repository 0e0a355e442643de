//! fio's I/O logs, versions 2 and 3 (`fio --write_iolog=FILE`).
//!
//! **Source**: the behaviour of fio, observed with 3.17, 3.33 and 3.42 and unchanged since 2009
//! (`read_iolog_get`); its documentation, "Trace file format v2" and "v3" (HOWTO); the output of
//! fio 3.33, which is version 3 without waits.
//! **Faithful**: reads, writes and trims with their offsets and lengths, in the order of the file; in
//! version 3 their times [µs], where a time below the one before is no wait; in version 2 waits, each
//! until the given ms after fio's start, or no wait if that has passed.
//! **Simplified**: files are placed side by side. Syncs are counted, and not replayed; so are waits
//! of version 3, which fio ignores. Times count from the first I/O, whereas fio's own start-up
//! takes about 0.1 s before it.
//! **Ambiguous**: HOWTO calls a wait "microseconds … relative to the previous wait statement,
//! everything below 100 is discarded". No fio that reads version 2 does that, and a file that fio
//! replays in 3 s takes 3 s here. A file name may contain blanks, which the format does not quote:
//! the action is searched from the end of the line.

use uflip_core::Mode;

use crate::lines::{LineError, LineReader};
use crate::recorded::{FoundIo, RecordedTrace};
use crate::sample::Sample;

const HEADER: &str = "fio version ";
const ALLOWED: &str = "FILE add|open|close; FILE read|write|sync|datasync|trim OFFSET LENGTH; \
                       FILE wait MILLISECONDS 0";
const MS: u64 = 1_000_000;

pub(crate) fn matches(sample: &Sample) -> usize {
    let is_header = |first: &String| first.starts_with(HEADER) && first.ends_with(" iolog");
    if sample.lines.first().is_some_and(is_header) { sample.lines.len() } else { 0 }
}

/// One line after its time.
enum Entry<'a> {
    /// The opening or closing of a file.
    File,
    Wait(u64),
    Skipped(&'static str),
    Io(&'a str, Mode, u64, u64),
}

fn entry(line: &str) -> Option<Entry<'_>> {
    // From the end: LENGTH, OFFSET, ACTION, and the file name, each after blanks or tabs.
    let (rest, last) = last_word(line);
    if matches!(last, "add" | "open" | "close") {
        return Some(Entry::File);
    }
    let (rest, offset) = last_word(rest);
    let (file, action) = last_word(rest);
    let (offset, length) = (offset.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    if file.is_empty() {
        return None;
    }
    let io = |mode| Some(Entry::Io(file, mode, offset, length));
    match action {
        "read" => io(Mode::Read),
        "write" => io(Mode::Write),
        "trim" => io(Mode::Trim),
        "sync" => Some(Entry::Skipped("sync")),
        "datasync" => Some(Entry::Skipped("datasync")),
        "wait" => Some(Entry::Wait(offset)),
        _ => None,
    }
}

fn last_word(text: &str) -> (&str, &str) {
    let text = text.trim_end();
    text.rsplit_once(|letter: char| letter.is_ascii_whitespace()).unwrap_or(("", text))
}

pub(crate) fn read(lines: &mut LineReader<'_>) -> Result<RecordedTrace, LineError> {
    let header = lines.next()?.unwrap_or("").to_owned();
    let version = header.strip_prefix(HEADER).and_then(|rest| rest.strip_suffix(" iolog"));
    let timed = match version {
        Some("2") => false,
        Some("3") => true,
        _ => return Err(lines.error(&header, "fio version 2 iolog, fio version 3 iolog")),
    };
    let mut recorded = RecordedTrace::with_offsets(timed);
    recorded.assumptions.version = version.unwrap_or("").to_owned();
    let (mut now, mut last_time) = (0u64, 0u64);
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        let mut rest = line.as_str();
        if timed {
            let Some((time, after)) = timed_line(rest) else {
                lines.skip_odd_line();
                continue;
            };
            recorded.steps_back += u64::from(time < last_time);
            now = now.saturating_add(time.saturating_sub(last_time));
            last_time = time;
            rest = after;
        }
        match entry(rest) {
            None => lines.skip_odd_line(),
            Some(Entry::File) => {}
            Some(Entry::Skipped(name)) => recorded.skip_operation(name),
            Some(Entry::Wait(_)) if timed => recorded.skip_operation("wait"),
            Some(Entry::Wait(until)) => match until.checked_mul(MS) {
                Some(until) => {
                    now = now.max(until);
                    recorded.has_times = true;
                }
                None => lines.skip_odd_line(),
            },
            Some(Entry::Io(file, mode, offset, size)) => {
                let source = recorded.source(lines, file.trim())?;
                let (at, ends, response_ns) = (now, false, None);
                let found = FoundIo { source, mode, offset, size, at, ends, response_ns };
                recorded.push(lines, found)?;
            }
        }
    }
    recorded.odd = lines.odd_lines(recorded.ios.len(), ALLOWED)?;
    Ok(recorded)
}

/// Return the time of a line of version 3 [ns], and the rest.
fn timed_line(line: &str) -> Option<(u64, &str)> {
    let (time, rest) = line.split_once(|letter: char| letter.is_ascii_whitespace())?;
    Some((time.parse::<u64>().ok()?.checked_mul(1000)?, rest))
}
