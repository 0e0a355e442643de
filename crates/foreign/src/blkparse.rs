//! The text output of `blkparse` for a `blktrace`: one event of a block device per line.
//!
//! **Source**: blkparse(1), "default output format": device, CPU, number, seconds, process id, action,
//! RWBS, then "sector + count" in sectors of 512 bytes.
//! **Faithful**: reads, writes and discards with their times, as they were queued (Q) or, without
//! such events, as they were issued to the device (D).
//! **Simplified**: devices are placed side by side. Flushes and commands are counted, and not
//! replayed.
//! **Ambiguous**: lines that are not events (messages, the summary at the end) are ignored.

use uflip_core::Mode;

use crate::lines::{LineError, LineReader};
use crate::recorded::RecordedTrace;

const ALLOWED: &str = "DEVICE CPU NUMBER SECONDS PID ACTION RWBS SECTOR + COUNT";
const SECTOR: u64 = 512;

pub(crate) fn matches(first: &str) -> bool {
    first.split_whitespace().next().is_some_and(is_device)
        && first.split_whitespace().nth(3).is_some_and(|time| nanoseconds(time).is_some())
}

/// "8,16"
fn is_device(word: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once(',').is_some_and(|(major, minor)| number(major) && number(minor))
}

pub(crate) fn read(lines: &mut LineReader<'_>) -> Result<RecordedTrace, LineError> {
    let empty = || RecordedTrace { has_times: true, ..RecordedTrace::default() };
    let (mut queued, mut issued) = (empty(), empty());
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        let mut words = line.split_whitespace();
        let device = words.next().filter(|word| is_device(word));
        let (Some(device), Some(time), Some(action), Some(rwbs)) =
            (device, words.nth(2), words.nth(1), words.next())
        else {
            continue;
        };
        let recorded = match action {
            "Q" => &mut queued,
            "D" => &mut issued,
            _ => continue,
        };
        let invalid = |lines: &LineReader<'_>| lines.error(&line, ALLOWED);
        // The letters before the flags: R, W, D (discard), F (flush), N (none).
        let mode = match rwbs.trim_start_matches('F').chars().next() {
            Some('R') => Mode::Read,
            Some('W') => Mode::Write,
            Some('D') => Mode::Trim,
            _ if rwbs.starts_with('F') => {
                recorded.skip_operation("flush");
                continue;
            }
            _ => {
                recorded.skip_operation("command");
                continue;
            }
        };
        let at = nanoseconds(time).ok_or_else(|| invalid(lines))?;
        let sector = words.next().and_then(bytes);
        let separator = words.next();
        let count = words.next().and_then(bytes);
        let (Some(offset), Some("+"), Some(size)) = (sector, separator, count) else {
            if rwbs.starts_with('F') && separator.is_none_or(|word| word != "+") {
                recorded.skip_operation("flush");
                continue;
            }
            return Err(invalid(lines));
        };
        let source = recorded.source(lines, device)?;
        recorded.push(lines, source, mode, (offset, size), at)?;
    }
    Ok(if queued.ios.is_empty() { issued } else { queued })
}

fn bytes(sectors: &str) -> Option<u64> {
    sectors.parse::<u64>().ok()?.checked_mul(SECTOR)
}

/// Parse seconds with up to nine decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let is_short = (1..=9).contains(&fraction.len());
    if !is_short || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.parse::<u64>().ok()? * 10u64.pow(9 - fraction.len() as u32);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}
