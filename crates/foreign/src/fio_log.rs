//! fio's logs of response times (`write_lat_log`, files `*_lat.*.log` and `*_clat.*.log`).
//!
//! **Source**: fio's documentation, "Log file formats"; what fio 3.33 writes: time [ms], response time [ns],
//! direction (0 read, 1 write, 2 trim), block size [bytes], then with `log_offset=1` the offset [bytes], then
//! the priority, and in later versions more.
//! **Faithful**: response times, sizes, modes, and offsets where they are logged.
//! **Simplified**: an I/O that was logged at t is taken to have begun t − response time, and not before the
//! one before it had ended where they were made one at a time. fio's clock here has whole milliseconds, so
//! that this is early by less than one.
//! **Ambiguous**: without `log_offset=1` nobody knows where the I/Os were: their offsets are then 0. The
//! sixth field tells which of the two it is: of fewer, the last one is a priority.

use uflip_core::{Bytes, Io, Mode};
use uflip_engine::{IoList, LIST_IOS_MAX};

use crate::lines::{Lines, Wrong};

const ALLOWED: &str = "TIME, RESPONSE_TIME, 0|1|2, SIZE[, OFFSET], PRIORITY";
const MS: u64 = 1_000_000;
/// A day in a log of days: no response takes longer [ns].
const LONGEST: u64 = 86_400_000_000_000;

/// I/Os and what they took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// In the order of their submission.
    pub list: IoList,
    /// When each was submitted [ns], from the first.
    pub submit_ns: Vec<u64>,
    /// What each took [ns].
    pub response_time_ns: Vec<u64>,
    /// How many were under way at most.
    pub depth: u64,
    /// Whether the log says where the I/Os were.
    pub has_offsets: bool,
    /// Lines of trims, which are left out.
    pub trims: u64,
}

struct Row {
    at: u64,
    took: u64,
    io: Io,
}

pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Logged, Wrong> {
    let (mut rows, mut trims, mut has_offsets) = (Vec::new(), 0, true);
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let line = line.to_owned();
        let wrong = |lines: &Lines<'_>| lines.wrong(&line, ALLOWED);
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        if fields.len() < 4 {
            return Err(wrong(lines));
        }
        let (Some(time), Some(took), Some(direction), Some(size)) =
            (number(0), number(1), number(2), number(3))
        else {
            return Err(wrong(lines));
        };
        let mode = match direction {
            0 => Mode::Read,
            1 => Mode::Write,
            2 => {
                trims += 1;
                continue;
            }
            _ => return Err(wrong(lines)),
        };
        let offset = if fields.len() >= 6 { number(4) } else { Some(0) };
        has_offsets &= fields.len() >= 6;
        let at = time.checked_mul(MS).filter(|at| *at < 1 << 62);
        let (Some(offset), Some(at)) = (offset, at) else { return Err(wrong(lines)) };
        if took == 0 || took > LONGEST || rows.len() == LIST_IOS_MAX {
            return Err(wrong(lines));
        }
        rows.push(Row {
            at,
            took,
            io: Io { offset: Bytes(offset), size: Bytes(size), mode, stream: 0 },
        });
    }
    let total = rows.len();
    logged(rows, trims, has_offsets).map_err(|message| {
        lines.wrong(&format!("{total} I/Os: {message}"), "I/Os that a device can have made")
    })
}

fn logged(mut rows: Vec<Row>, trims: u64, has_offsets: bool) -> Result<Logged, String> {
    if rows.is_empty() {
        return Err("none".to_owned());
    }
    let busy: u64 = rows.iter().map(|row| row.took).fold(0, u64::saturating_add);
    let last = rows.iter().map(|row| row.at).max().unwrap_or(0);
    // One after another they take no longer than the log lasts.
    let is_serial = busy <= last + 2 * MS && rows.is_sorted_by_key(|row| row.at);
    let mut free = 0;
    for row in &mut rows {
        row.at = row.at.saturating_sub(row.took);
        if is_serial {
            row.at = row.at.max(free);
            free = row.at + row.took;
        }
    }
    rows.sort_by_key(|row| row.at);
    let first = rows[0].at;
    let submit_ns: Vec<u64> = rows.iter().map(|row| row.at - first).collect();
    let response_time_ns: Vec<u64> = rows.iter().map(|row| row.took).collect();
    let depth = deepest(&submit_ns, &response_time_ns);
    let list = IoList::new(rows.into_iter().map(|row| row.io), Vec::new())?;
    Ok(Logged { list, submit_ns, response_time_ns, depth, has_offsets, trims })
}

/// How many are under way at most.
fn deepest(submit_ns: &[u64], response_time_ns: &[u64]) -> u64 {
    let mut ends: Vec<u64> =
        submit_ns.iter().zip(response_time_ns).map(|(submit, took)| submit + took).collect();
    ends.sort_unstable();
    let (mut over, mut most) = (0, 0);
    for (begun, submit) in submit_ns.iter().enumerate() {
        while ends[over] <= *submit {
            over += 1;
        }
        most = most.max(begun + 1 - over);
    }
    most as u64
}
