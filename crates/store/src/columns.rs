//! The columns of a trace by name: stored ones, and those that follow from the pattern.

use std::borrow::Cow;

use uflip_core::{Error, Result};
use uflip_engine::{HostGaps, PatternWalk, TraceRow, wait_column};

use crate::ROWS_PER_GROUP;
use crate::stored::StoredTrace;
use crate::write::ColumnKind;

/// The values of a column, borrowed if the trace stores them in this form.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnData<'a> {
    /// Small flags.
    U8(Vec<u8>),
    /// Process numbers.
    U16(Vec<u16>),
    /// Sizes.
    U32(Vec<u32>),
    /// Times and offsets.
    U64(Cow<'a, [u64]>),
}

impl ColumnData<'_> {
    /// Return the value of row `row`.
    pub(crate) fn at(&self, row: usize) -> u64 {
        match self {
            ColumnData::U8(values) => values[row].into(),
            ColumnData::U16(values) => values[row].into(),
            ColumnData::U32(values) => values[row].into(),
            ColumnData::U64(values) => values[row],
        }
    }

    /// Return the values `from` to `to`.
    pub(crate) fn part(&self, from: usize, to: usize) -> Cow<'_, [u64]> {
        match self {
            ColumnData::U64(values) => Cow::Borrowed(&values[from..to]),
            _ => (from..to).map(|row| self.at(row)).collect(),
        }
    }

    /// Return the type of the column in a table.
    pub(crate) fn kind(&self) -> ColumnKind {
        match self {
            ColumnData::U8(_) => ColumnKind::U8,
            ColumnData::U16(_) => ColumnKind::U16,
            ColumnData::U32(_) => ColumnKind::U32,
            ColumnData::U64(_) => ColumnKind::U64,
        }
    }

    /// Return the values as owned data.
    #[must_use]
    pub fn into_owned(self) -> ColumnData<'static> {
        match self {
            ColumnData::U8(values) => ColumnData::U8(values),
            ColumnData::U16(values) => ColumnData::U16(values),
            ColumnData::U32(values) => ColumnData::U32(values),
            ColumnData::U64(values) => ColumnData::U64(Cow::Owned(values.into_owned())),
        }
    }
}

/// The words of the column `mode`, by number.
pub const MODES: [&str; 8] =
    ["read", "write", "trim", "append", "reset", "finish", "open", "close"];

const FIXED: [&str; 8] = [
    "stream",
    "submit_ns",
    "response_time_ns",
    "offset_bytes",
    "io_size_bytes",
    "mode",
    "component",
    "ignored",
];

/// The host gap of an I/O; in virtual time there is no such column, because the host takes no time.
const HOST_GAP: &str = "host_gap_ns";

/// Return the names that [`column`] accepts for this trace.
pub fn column_names(trace: &StoredTrace) -> impl Iterator<Item = &str> {
    let host = trace.is_in_real_time().then_some(HOST_GAP);
    FIXED.into_iter().chain(host).chain(trace.causes().iter().map(String::as_str))
}

/// Return the host gaps of I/Os `from` to `to`; earlier I/Os are processed piece by piece.
fn host_gaps(trace: &StoredTrace, from: usize, to: usize) -> Result<Vec<u64>> {
    let mut gaps = HostGaps::new(trace.pattern());
    let mut values = Vec::with_capacity(to - from);
    for begin in (0..to).step_by(ROWS_PER_GROUP) {
        let end = to.min(begin + ROWS_PER_GROUP);
        let batch = host_gaps_of(trace, &mut gaps, begin, end)?;
        values.extend(batch.into_iter().skip(from.saturating_sub(begin)));
    }
    Ok(values)
}

/// Return the host gaps of I/Os `from` to `to`, where `gaps` has reached `from`.
fn host_gaps_of(
    trace: &StoredTrace,
    gaps: &mut HostGaps,
    from: usize,
    to: usize,
) -> Result<Vec<u64>> {
    let (submit, times) = (trace.measured(1, from, to)?, trace.measured(2, from, to)?);
    let number = wait_column(trace.causes());
    let waits = number.map(|number| trace.measured(3 + number, from, to)).transpose()?;
    let waited = |row: usize| waits.as_ref().map_or(0, |waits| waits[row]);
    let rows = submit.iter().zip(times.iter()).enumerate();
    let pattern = trace.pattern();
    Ok(rows
        .map(|(row, (from, response_time))| gaps.next(pattern, *from, waited(row), *response_time))
        .collect())
}

fn format_index(number: usize) -> String {
    if number == usize::MAX { "a number below 0".to_owned() } else { number.to_string() }
}

/// Return I/Os `from` to `to` of a column of `trace`.
///
/// # Errors
/// An unknown name (the error lists the known ones); I/Os that do not exist (`usize::MAX` stands
/// for an invalid number); an unreadable file.
pub fn column<'a>(
    trace: &'a StoredTrace,
    name: &str,
    from: usize,
    to: usize,
) -> Result<ColumnData<'a>> {
    if from > to || to > trace.len() {
        return Err(Error::usage("The trace has no such I/Os")
            .at("start, stop")
            .got(format!("{} to {}", format_index(from), format_index(to)))
            .allowed(format!("0 to {}, in order", trace.len()))
            .action("choose a part of the trace"));
    }
    let ios = || trace.ios(from, to);
    fn part<T>(all: impl Iterator<Item = T>, from: usize, to: usize) -> Vec<T> {
        all.skip(from).take(to - from).collect()
    }
    Ok(match name {
        "stream" => ColumnData::U16(part(trace.trace().stream_of_each(), from, to)),
        "submit_ns" => ColumnData::U64(trace.measured(1, from, to)?),
        "response_time_ns" => ColumnData::U64(trace.measured(2, from, to)?),
        "offset_bytes" => ColumnData::U64(ios().map(|io| io.offset.0).collect()),
        "io_size_bytes" => ColumnData::U32(ios().map(|io| io.size.0 as u32).collect()),
        "mode" => ColumnData::U8(ios().map(|io| io.mode.number()).collect()),
        "component" => ColumnData::U8(trace.rows(from, to).map(|row| row.component).collect()),
        "ignored" => ColumnData::U8(part(trace.trace().ignored_of_each().map(u8::from), from, to)),
        HOST_GAP if trace.is_in_real_time() => ColumnData::U64(host_gaps(trace, from, to)?.into()),
        _ => {
            let cause = trace.causes().iter().position(|cause| cause == name);
            let Some(cause) = cause else {
                let names: Vec<&str> = column_names(trace).collect();
                return Err(Error::unknown("column of a trace", name, &names));
            };
            ColumnData::U64(trace.measured(3 + cause, from, to)?)
        }
    })
}

/// Return I/Os `from` to `to` of every column, where `walk` has reached `from`. Columns that follow
/// from the pattern can only be found by stepping through it.
///
/// # Errors
/// If the file cannot be read.
pub fn window<'a>(
    trace: &'a StoredTrace,
    walk: &mut PatternWalk,
    from: usize,
    to: usize,
) -> Result<Vec<ColumnData<'a>>> {
    let rows: Vec<TraceRow> = (from..to).map_while(|_| walk.next(trace.pattern())).collect();
    let flag_column = |value: fn(&TraceRow) -> u8| ColumnData::U8(rows.iter().map(value).collect());
    let mut columns = vec![
        ColumnData::U16(rows.iter().map(|row| row.stream).collect()),
        ColumnData::U64(trace.measured(1, from, to)?),
        ColumnData::U64(trace.measured(2, from, to)?),
        ColumnData::U64(rows.iter().map(|row| row.io.offset.0).collect()),
        ColumnData::U32(rows.iter().map(|row| row.io.size.0 as u32).collect()),
        flag_column(|row| row.io.mode.number()),
        flag_column(|row| row.component),
        flag_column(|row| u8::from(row.ignored)),
    ];
    if trace.is_in_real_time() {
        let gaps = walk.host_gaps(trace.pattern());
        columns.push(ColumnData::U64(host_gaps_of(trace, gaps, from, to)?.into()));
    }
    for cause in 0..trace.causes().len() {
        columns.push(ColumnData::U64(trace.measured(3 + cause, from, to)?));
    }
    Ok(columns)
}
