//! The text output of `blkparse` for a `blktrace`: one event of a block device per line.
//!
//! **Source**: blkparse(1), "default output format": device, CPU, number, seconds, process id, action,
//! RWBS, then "sector + count" in sectors of 512 bytes; the output of blkparse 1.2.
//! **Faithful**: reads, writes and discards with their times, as they were queued (Q) or, without
//! such events, as they were issued to the device (D); response times until the completion (C).
//! **Simplified**: devices are placed side by side. Flushes, empty barriers and pass-through commands
//! are counted, and not replayed. A completion ends all outstanding I/Os in its range. An I/O of a
//! traced device (dm, md) that is passed on to another one (A) counts once; an I/O that is issued again
//! after a requeue (R) too, from its first issue.
//! **Ambiguous**: lines that are not events (messages, headings, the summary) are ignored.

use crate::block_events::{Action, Begin, Event, EventCollector};
use crate::columns::mode_of_rwbs;
use crate::fields::scaled;
use crate::lines::{LineError, LineReader};
use crate::recorded::RecordedTrace;
use crate::sample::Sample;

pub(crate) const EXAMPLE: &str = "8,0 3 1 0.000000000 697 Q W 223490 + 8 [cp]";
const ALLOWED: &str = "DEVICE CPU NUMBER SECONDS PID ACTION RWBS SECTOR + COUNT";
const SECTOR: u64 = 512;
const SECOND_NS: u64 = 1_000_000_000;

/// Return the number of events of a sample.
pub(crate) fn matches(sample: &Sample) -> usize {
    let is_event = |line: &&String| {
        let mut words = line.split_ascii_whitespace();
        words.next().is_some_and(is_device)
            && words.nth(2).is_some_and(|time| nanoseconds(time).is_some())
    };
    sample.lines.iter().filter(is_event).count()
}

/// "8,16"
fn is_device(word: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once(',').is_some_and(|(major, minor)| number(major) && number(minor))
}

pub(crate) fn read(
    lines: &mut LineReader<'_>,
    begin: Option<Begin>,
) -> Result<RecordedTrace, LineError> {
    let mut events = EventCollector::new();
    let mut count = 0;
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        let mut words = line.split_ascii_whitespace();
        let device = words.next().filter(|word| is_device(word));
        let (Some(device), Some(time), Some(action), Some(rwbs)) =
            (device, words.nth(2), words.nth(1), words.next())
        else {
            continue;
        };
        let action = match action {
            "Q" => Action::Queued,
            "D" => Action::Issued,
            "C" => Action::Completed,
            "A" => Action::Remapped,
            "R" => Action::Requeued,
            _ => continue,
        };
        let mode = match mode_of_rwbs(rwbs) {
            Ok(mode) => mode,
            Err(name) => {
                events.skip_operation(action, name);
                continue;
            }
        };
        let sector = words.next();
        let (separator, count_word) = (words.next(), words.next());
        if separator != Some("+") {
            // "512 (85 08 0e ..) [smartd]" is a packet command, and "[mkfs]" or "0 [0]" a barrier.
            let is_command = separator.is_some_and(|word| word.starts_with('('));
            events.skip_operation(action, if is_command { "command" } else { "flush" });
            continue;
        }
        let bytes = |word: Option<&str>| word?.parse::<u64>().ok()?.checked_mul(SECTOR);
        let parsed = (nanoseconds(time), bytes(sector), bytes(count_word));
        let (Some(at), Some(offset), Some(size)) = parsed else {
            lines.skip_odd_line();
            continue;
        };
        count += 1;
        if action == Action::Remapped {
            // "<- (8,1) 223427": the device and sector above.
            let source = words.nth(1).map(|word| word.trim_matches(['(', ')']));
            if let (Some(source), Some(from)) = (source, bytes(words.next())) {
                events.remap(device, offset, source, from);
            }
            continue;
        }
        events.add(lines, Event { action, device, mode, offset, size, at })?;
    }
    let mut recorded = events.finish(begin);
    recorded.odd = lines.odd_lines(count, ALLOWED)?;
    Ok(recorded)
}

/// Parse seconds with up to nine decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (_, fraction) = text.split_once('.')?;
    (1..=9).contains(&fraction.len()).then(|| scaled(text, SECOND_NS))?
}
