//! fio's logs of response times (`write_lat_log`, files `*_lat.*.log` and `*_clat.*.log`).
//!
//! ```text
//!  time [ms], response time [ns], 0|1|2, block size [bytes] …      0 read, 1 write, 2 trim
//!    4  … nothing more                    until 3.17
//!    5  … offset                          until 3.17, log_offset=1
//!       … priority                        since 3.18
//!    6  … offset, priority                since 3.18, log_offset=1
//!    7  … offset, priority, issue time    since 3.38, log_issue_time=1, which needs log_offset=1
//! ```
//!
//! **Source**: fio's documentation, "Log file formats"; `flush_samples` in its `iolog.c`, of 3.17
//! to 3.42; the output of fio 3.17, 3.33 and 3.42.
//! **Faithful**: response times, sizes, modes, and offsets if they are logged.
//! **Simplified**: an I/O logged at t is assumed to have begun at t − response time, and with one
//! I/O at a time not before the end of the previous one. fio's clock here has whole milliseconds,
//! so that this is early by less than one. Issue times [ns] are not used.
//! **Ambiguous**: the meaning of the fifth of five fields depends on all lines of a log. A priority
//! is 0, 1, or hexadecimal (0x…) in every line. If all lines have 0 or 1, the offsets count as
//! unknown and are 0: if they were offsets of an earlier version, all I/Os were there. Any other
//! log is an error, and so is one with a varying number of fields.

use uflip_core::{Bytes, Io, Mode};
use uflip_engine::{IoList, LIST_IOS_MAX};

use crate::lines::{LineError, LineReader};

const ALLOWED: &str =
    "TIME, RESPONSE_TIME, 0|1|2, SIZE[, OFFSET][, PRIORITY[, ISSUE_TIME]], all lines alike";
/// The number of fields of every line, and of optional ones.
const FIELDS: usize = 4;
const OPTIONAL_FIELDS: usize = 3;
const MS: u64 = 1_000_000;
/// No response takes longer [ns]: a day.
const MAX_RESPONSE_NS: u64 = 86_400_000_000_000;

/// I/Os with their response times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioLog {
    /// The I/Os, in the order of submission.
    pub list: IoList,
    /// The submission of each [ns], from the first.
    pub submit_ns: Vec<u64>,
    /// The response time of each [ns].
    pub response_time_ns: Vec<u64>,
    /// The largest number of outstanding I/Os.
    pub depth: u64,
    /// Whether the log contains offsets.
    pub has_offsets: bool,
    /// The number of trims, which are left out.
    pub trims: u64,
}

struct LogRow {
    at: u64,
    response_time: u64,
    io: Io,
}

/// The fields after the size, over a whole log.
#[derive(Default)]
struct OptionalFields {
    /// The number of fields; `None` before the first line.
    fields: Option<usize>,
    /// For each field, whether a line has a hexadecimal number there, and whether one has a number
    /// above 1.
    hexadecimal: [bool; OPTIONAL_FIELDS],
    large: [bool; OPTIONAL_FIELDS],
}

impl OptionalFields {
    /// Add the fields of one line, and return the first as a possible offset [bytes]; `None` if
    /// they are not numbers, or their number differs from earlier lines.
    fn add(&mut self, fields: &[&str]) -> Option<u64> {
        let expected = *self.fields.get_or_insert(fields.len());
        if fields.len() != expected || expected > OPTIONAL_FIELDS {
            return None;
        }
        let mut first = 0;
        for (index, field) in fields.iter().enumerate() {
            if let Some(digits) = field.strip_prefix("0x") {
                u16::from_str_radix(digits, 16).ok()?;
                self.hexadecimal[index] = true;
            } else {
                let number: u64 = field.parse().ok()?;
                self.large[index] |= number > 1;
                first = if index == 0 { number } else { first };
            }
        }
        Some(first)
    }

    /// Return whether all lines can have a priority in this field.
    fn may_be_priority(&self, field: usize) -> bool {
        !self.large[field]
    }

    /// Return whether all lines can have an offset or an issue time in this field.
    fn may_be_number(&self, field: usize) -> bool {
        !self.hexadecimal[field]
    }

    /// Return a description of each field.
    fn describe(&self) -> String {
        let words = |field: usize| match (self.hexadecimal[field], self.large[field]) {
            (false, false) => "0 or 1",
            (false, true) => "decimal numbers",
            (true, false) => "hexadecimal numbers",
            (true, true) => "decimal and hexadecimal numbers",
        };
        let describe_field = |field| format!("field {}: {}", FIELDS + field + 1, words(field));
        let fields: Vec<String> = (0..self.fields.unwrap_or(0)).map(describe_field).collect();
        fields.join(", ")
    }

    /// Return whether the first field is an offset; `None` if fio does not write such a log.
    fn has_offsets(&self) -> Option<bool> {
        match self.fields.unwrap_or(0) {
            0 => Some(false),
            1 if self.may_be_priority(0) => Some(false),
            1 => self.may_be_number(0).then_some(true),
            more => {
                let fits = self.may_be_number(0) && self.may_be_priority(1);
                (fits && (more == 2 || self.may_be_number(2))).then_some(true)
            }
        }
    }
}

pub(crate) fn read(lines: &mut LineReader<'_>) -> Result<FioLog, LineError> {
    let (mut rows, mut trims, mut tail) = (Vec::new(), 0, OptionalFields::default());
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let invalid = |lines: &LineReader<'_>| lines.error(&line, ALLOWED);
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        if fields.len() < FIELDS {
            return Err(invalid(lines));
        }
        let offset = tail.add(&fields[FIELDS..]).ok_or_else(|| invalid(lines))?;
        let (Some(time), Some(response_time), Some(direction), Some(size)) =
            (number(0), number(1), number(2), number(3))
        else {
            return Err(invalid(lines));
        };
        let mode = match direction {
            0 => Mode::Read,
            1 => Mode::Write,
            2 => {
                trims += 1;
                continue;
            }
            _ => return Err(invalid(lines)),
        };
        let at = time.checked_mul(MS).filter(|at| *at < 1 << 62).ok_or_else(|| invalid(lines))?;
        if response_time == 0 || response_time > MAX_RESPONSE_NS || rows.len() == LIST_IOS_MAX {
            return Err(invalid(lines));
        }
        rows.push(LogRow {
            at,
            response_time,
            io: Io { offset: Bytes(offset), size: Bytes(size), mode, stream: 0 },
        });
    }
    let has_offsets = tail.has_offsets().ok_or_else(|| LineError {
        line: 0,
        got: format!(
            "{} fields in every line, {}",
            FIELDS + tail.fields.unwrap_or(0),
            tail.describe()
        ),
        allowed: "offsets and issue times, which are decimal; priorities, which are 0, 1, or \
                  hexadecimal (0x…)"
            .to_owned(),
    })?;
    if !has_offsets {
        rows.iter_mut().for_each(|row| row.io.offset = Bytes(0));
    }
    let total = rows.len();
    build_log(rows, trims, has_offsets).map_err(|message| {
        lines.error(&format!("{total} I/Os: {message}"), "I/Os that a device can have made")
    })
}

fn build_log(mut rows: Vec<LogRow>, trims: u64, has_offsets: bool) -> Result<FioLog, String> {
    if rows.is_empty() {
        return Err("none".to_owned());
    }
    let busy: u64 = rows.iter().map(|row| row.response_time).fold(0, u64::saturating_add);
    let last = rows.iter().map(|row| row.at).max().unwrap_or(0);
    // One after another, they take no longer than the log lasts.
    let is_serial = busy <= last + 2 * MS && rows.is_sorted_by_key(|row| row.at);
    let mut free_at = 0;
    for row in &mut rows {
        row.at = row.at.saturating_sub(row.response_time);
        if is_serial {
            row.at = row.at.max(free_at);
            free_at = row.at + row.response_time;
        }
    }
    rows.sort_by_key(|row| row.at);
    let first = rows[0].at;
    let submit_ns: Vec<u64> = rows.iter().map(|row| row.at - first).collect();
    let response_time_ns: Vec<u64> = rows.iter().map(|row| row.response_time).collect();
    let depth = max_outstanding(&submit_ns, &response_time_ns);
    let list = IoList::new(rows.into_iter().map(|row| row.io), Vec::new())?;
    Ok(FioLog { list, submit_ns, response_time_ns, depth, has_offsets, trims })
}

/// Return the largest number of outstanding I/Os.
fn max_outstanding(submit_ns: &[u64], response_time_ns: &[u64]) -> u64 {
    let mut ends: Vec<u64> = submit_ns
        .iter()
        .zip(response_time_ns)
        .map(|(submit, response_time)| submit + response_time)
        .collect();
    ends.sort_unstable();
    let (mut ended, mut max) = (0, 0);
    for (started, submit) in submit_ns.iter().enumerate() {
        while ends[ended] <= *submit {
            ended += 1;
        }
        max = max.max(started + 1 - ended);
    }
    max as u64
}
