//! Traces as files: as Parquet, as a tidy table with the constants of the run in each row, and as CSV,
//! batch by batch, so that a table of any length needs the memory of a few I/Os.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::file::metadata::KeyValue;
use uflip_core::{Error, ErrorKind, Io, Mode, Result};
use uflip_engine::{IoList, PatternWalk};

use crate::stored_trace::{StoredTrace, column_names, implausible, window};
use crate::table::{
    ColumnData, ColumnKind, LIST_COLUMNS, TableWriter, gaps, trace_kinds, write_new,
};
use crate::{KEY_ENDED, KEY_PATTERN, KEY_RUN, KEY_VERSION, TRACE_VERSION, row_parts};

/// Write `trace` with `run` (JSON) as metadata to the new file `path`, and sync it.
///
/// # Errors
/// If the file exists, or cannot be written (for instance on a full file system).
/// [`ErrorKind::Internal`]: the trace is implausible; nothing is written.
pub fn write_trace(trace: &StoredTrace, path: &Path, run: &str) -> Result<()> {
    if !trace.is_checked {
        trace
            .check_plausible(crate::allows_zero_time(run))
            .map_err(|message| implausible("not stored", message).at(path.display().to_string()))?;
    }
    let mut metadata = vec![
        KeyValue::new(KEY_VERSION.to_owned(), TRACE_VERSION.to_owned()),
        KeyValue::new(KEY_PATTERN.to_owned(), trace.pattern().canonical.to_string()),
        KeyValue::new(KEY_RUN.to_owned(), run.to_owned()),
    ];
    let stop_record = trace.stop_record().map(ToString::to_string);
    metadata
        .extend(stop_record.map(|stop_record| KeyValue::new(KEY_ENDED.to_owned(), stop_record)));
    let kinds = kinds_of(trace);
    write_new(path, |file| {
        let mut table = TableWriter::new(file, &[], &kinds, metadata)?;
        match &trace.groups {
            Some(groups) if replayed_list(trace).is_none() => {
                groups.copy_to(&mut table, trace.causes().len())?;
            }
            _ => write_in_pieces(trace, &mut table).map_err(|error| error.to_string())?,
        }
        table.finish()
    })
}

/// Write a trace from memory, or one with a list of I/Os.
fn write_in_pieces(trace: &StoredTrace, table: &mut TableWriter<'_, File>) -> Result<()> {
    let mut streams = trace.trace.stream_of_each();
    for (from, to) in row_parts(trace.len()) {
        let (submit, times) = (trace.measured(1, from, to)?, trace.measured(2, from, to)?);
        let mut columns = vec![
            ColumnData::U16(streams.by_ref().take(to - from).collect()),
            ColumnData::U64(gaps(&submit, &times).into()),
            ColumnData::U64(times),
        ];
        for cause in 0..trace.causes().len() {
            columns.push(ColumnData::U64(trace.measured(3 + cause, from, to)?));
        }
        if let Some(list) = replayed_list(trace) {
            let column = |value: fn(Io) -> u64| {
                ColumnData::U64((from..to).map(|row| value(list.io(row))).collect())
            };
            columns.push(column(|io| io.offset.0));
            columns.push(column(|io| io.size.0));
            columns.push(column(|io| io.mode.number().into()));
        }
        table.group(&columns, 0, to - from).map_err(|message| {
            Error::new(ErrorKind::Results, "The file cannot be written").got(message)
        })?;
    }
    Ok(())
}

/// Return the columns of `trace`; a replay has those of its list after the others.
fn kinds_of(trace: &StoredTrace) -> Vec<(String, ColumnKind)> {
    let mut kinds = trace_kinds(trace.causes());
    if replayed_list(trace).is_some() {
        kinds.extend(LIST_COLUMNS.map(|name| (name.to_owned(), ColumnKind::U64)));
    }
    kinds
}

/// Return the list that a trace replays.
fn replayed_list(trace: &StoredTrace) -> Option<&Arc<IoList>> {
    trace.pattern().list()
}

/// Write the text columns `constants` (a JSON list of names and texts), the number of each I/O and
/// `columns` to the new file `path`, and sync it. Modes are words, and columns that `trace` does
/// not have are 0, as in [`crate::append_csv`].
///
/// # Errors
/// If `constants` is not such a list; if the file exists or cannot be written.
pub fn write_table(
    trace: &StoredTrace,
    path: &Path,
    constants: &str,
    columns: &[String],
) -> Result<()> {
    let texts: Vec<(String, String)> =
        serde_json::from_str(constants).map_err(|_| not_texts(constants))?;
    let (mut walk, indices) = (PatternWalk::new(trace.pattern()), column_indices(trace, columns));
    // An empty window, for the types of the columns.
    let empty = window(trace, &mut walk, 0, 0)?;
    let mut kinds = vec![("index".to_owned(), ColumnKind::U64)];
    kinds.extend(columns.iter().zip(&indices).map(|(name, index)| {
        let kind = index.map_or(ColumnKind::U64, |index| empty[index].kind());
        (name.clone(), if name == "mode" { ColumnKind::Mode } else { kind })
    }));
    write_new(path, |file| {
        let mut table = TableWriter::new(file, &texts, &kinds, Vec::new())?;
        for (from, to) in row_parts(trace.len()) {
            let columns = window(trace, &mut walk, from, to).map_err(|error| error.to_string())?;
            let mut group = vec![ColumnData::U64((from as u64..to as u64).collect())];
            group.extend(indices.iter().map(|index| match index {
                Some(index) => columns[*index].clone(),
                None => ColumnData::U64(vec![0; to - from].into()),
            }));
            table.group(&group, 0, to - from)?;
        }
        table.finish()
    })
}

/// Return the index of each of `columns` in a [`window`]; `None` for a column that `trace` does not
/// have.
fn column_indices(trace: &StoredTrace, columns: &[String]) -> Vec<Option<usize>> {
    let names: Vec<&str> = column_names(trace).collect();
    columns.iter().map(|column| names.iter().position(|name| name == column)).collect()
}

fn not_texts(got: &str) -> Error {
    Error::usage("The constant columns are not a JSON list of names and texts")
        .at("the columns that are the same in every row")
        .got(got)
        .allowed("pairs of texts")
        .action("write [[\"name\", \"text\"]]")
}

/// Append a line per I/O to the file `path`: the optional `prefix`, the number of the I/O, then
/// `columns`. Modes are words. A column that this trace does not have is 0: a cause without a part.
///
/// # Errors
/// If the trace cannot be read, or the file cannot be written.
pub fn append_csv(
    trace: &StoredTrace,
    path: &Path,
    prefix: Option<&str>,
    columns: &[String],
) -> Result<()> {
    let indices = column_indices(trace, columns);
    let mode = column_names(trace).position(|name| name == "mode");
    let failed = |error: &std::io::Error| {
        Error::write_failed("The table cannot be written", path.display().to_string(), error)
    };
    let file = OpenOptions::new().append(true).open(path).map_err(|error| failed(&error))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut walk = PatternWalk::new(trace.pattern());
    for (from, to) in row_parts(trace.len()) {
        let values = window(trace, &mut walk, from, to)?;
        let mut lines = || -> std::io::Result<()> {
            for row in 0..to - from {
                if let Some(prefix) = prefix {
                    write!(out, "{prefix},")?;
                }
                write!(out, "{}", from + row)?;
                for index in &indices {
                    let value = index.map_or(0, |index| values[index].at(row));
                    if index.is_some() && *index == mode {
                        write!(out, ",{}", Mode::NAMES[value as usize])?;
                    } else {
                        write!(out, ",{value}")?;
                    }
                }
                out.write_all(b"\r\n")?;
            }
            Ok(())
        };
        lines().map_err(|error| failed(&error))?;
    }
    out.flush().map_err(|error| failed(&error))
}
