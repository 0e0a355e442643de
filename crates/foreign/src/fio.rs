//! fio's I/O logs, versions 2 and 3 (`fio --write_iolog=FILE`).
//!
//! **Source**: the behaviour of fio, observed with 3.17, 3.33 and 3.42 and unchanged since 2009
//! (`read_iolog_get`); its documentation, "Trace file format v2" and "v3" (HOWTO); the output of
//! fio 3.33, which is version 3 without waits.
//! **Faithful**: reads, writes and trims with their offsets and lengths; in version 3 their times
//! [µs]; in version 2 waits, each until the given ms after fio's start, or no wait if that has
//! passed.
//! **Simplified**: files are placed side by side. Syncs are counted, and not replayed; so are waits
//! of version 3, which fio ignores. Times count from the first I/O, whereas fio's own start-up
//! takes about 0.1 s before it.
//! **Ambiguous**: HOWTO calls a wait "microseconds … relative to the previous wait statement,
//! everything below 100 is discarded". No fio that reads version 2 does that, and a file that fio
//! replays in 3 s takes 3 s here. A file name may contain blanks, which the format does not quote:
//! the action is searched from the end of the line.

use uflip_core::Mode;

use crate::lines::{LineError, LineReader};
use crate::recorded::RecordedTrace;

const HEADER: &str = "fio version ";
const ALLOWED: &str = "FILE add|open|close; FILE read|write|sync|datasync|trim OFFSET LENGTH; \
                       FILE wait MILLISECONDS 0";
const MS: u64 = 1_000_000;

pub(crate) fn matches(first: &str) -> bool {
    first.starts_with(HEADER) && first.ends_with(" iolog")
}

pub(crate) fn read(lines: &mut LineReader<'_>) -> Result<RecordedTrace, LineError> {
    let header = lines.next()?.unwrap_or("").to_owned();
    let version = header.strip_prefix(HEADER).and_then(|rest| rest.strip_suffix(" iolog"));
    let timed = match version {
        Some("2") => false,
        Some("3") => true,
        _ => return Err(lines.error(&header, "fio version 2 iolog, fio version 3 iolog")),
    };
    let mut recorded = RecordedTrace { has_times: timed, ..RecordedTrace::default() };
    let mut now = 0u64;
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        let invalid = |lines: &LineReader<'_>| lines.error(&line, ALLOWED);
        let mut rest = line.as_str();
        if timed {
            let (time, after) = rest.split_once(' ').ok_or_else(|| invalid(lines))?;
            now = microseconds(time).ok_or_else(|| invalid(lines))?;
            rest = after.trim_start();
        }
        let mut words = rest.rsplitn(4, ' ');
        let last = words.next().unwrap_or("");
        if matches!(last, "add" | "open" | "close") {
            continue;
        }
        let (Some(offset), Some(action), Some(file)) = (words.next(), words.next(), words.next())
        else {
            return Err(invalid(lines));
        };
        let (Ok(offset), Ok(length)) = (offset.parse::<u64>(), last.parse()) else {
            return Err(invalid(lines));
        };
        let mode = match action {
            "read" => Mode::Read,
            "write" => Mode::Write,
            "trim" => Mode::Trim,
            "sync" => {
                recorded.skip_operation("sync");
                continue;
            }
            "datasync" => {
                recorded.skip_operation("datasync");
                continue;
            }
            "wait" if timed => {
                recorded.skip_operation("wait");
                continue;
            }
            "wait" => {
                let until = offset.checked_mul(MS).ok_or_else(|| invalid(lines))?;
                now = now.max(until);
                recorded.has_times = true;
                continue;
            }
            _ => return Err(invalid(lines)),
        };
        let source = recorded.source(lines, file)?;
        recorded.push(lines, source, mode, (offset, length), now)?;
    }
    Ok(recorded)
}

fn microseconds(text: &str) -> Option<u64> {
    text.parse::<u64>().ok()?.checked_mul(1000)
}
