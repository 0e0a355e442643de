//! Traces and logs of other tools: recognition, parsing, and adaptation to a device.
//!
//! ```text
//! bytes ─ [`read`] ─▶ RecordedTrace ─ [`fit()`] ─▶ IoList (of one device)
//!                         └───────── measured() ─▶ MeasuredRun (its own response times)
//! bytes ─ [`read_series`] ─▶ Series (one column of any table)
//! ```
//!
//! Foreign files may contain anything. A format is recognised by all lines of the beginning of a file,
//! not by its first. Lines are read with limits on their length and the number of I/Os. A line that
//! does not belong to the format is left out and counted; if most do not, the first is an error.
//! Operations that are skipped on purpose (a flush, a command) are counted by name. Nothing is
//! guessed: a unit that neither the file nor its name states is an error that asks for it.

#![forbid(unsafe_code)]

mod blkparse;
mod blktrace;
mod block_events;
mod columns;
mod fields;
mod fio;
mod fio_log;
mod fio_rates;
mod fit;
mod known_outputs;
mod lines;
mod measured;
mod recorded;
mod sample;
mod series;
mod tables;
mod vscsi;

pub use fields::unit_of_name;
pub use fio_rates::RateLog;
pub use fit::{Fit, Fitted, Placement, fit};
pub use lines::OddLines;
pub use measured::MeasuredRun;
pub use recorded::{Assumptions, RecordedIo, RecordedTrace};
pub use series::Series;

use std::io::BufRead;
use std::path::Path;

use uflip_core::{Error, ErrorKind, Result, SpooledVec};

use crate::block_events::Begin;
use crate::columns::ColumnMap;
use crate::fields::{Separator, split};
use crate::known_outputs::{describe_binary, known_output};
use crate::lines::{LineError, LineReader};
use crate::sample::{Sample, open};

/// Choices of the user, where the file or its recognition does not suffice.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The name of the format; `None` to recognise it.
    pub format: Option<String>,
    /// A map of columns, as `time_us=5,offset=3,size=4,op=2`.
    pub columns: Option<String>,
    /// The unit of the response times: ns, us, ms or s.
    pub unit: Option<String>,
    /// The number of I/Os that are read; `None`: all.
    pub limit: Option<usize>,
}

/// A supported format.
#[derive(Clone, Copy)]
enum Format {
    FioIolog,
    FioLog,
    Blkparse(Option<Begin>),
    Blktrace(Option<Begin>),
    Vscsi,
    Table(&'static tables::TableFormat),
}

type LineResult<T> = std::result::Result<T, LineError>;

/// All formats with their names. Those that differ only in the event at which an I/O begins are never
/// recognised, but chosen.
fn all_formats() -> Vec<(&'static str, Format)> {
    let mut formats = vec![
        ("fio", Format::FioIolog),
        ("fio-log", Format::FioLog),
        ("blkparse", Format::Blkparse(None)),
        ("blkparse-issue", Format::Blkparse(Some(Begin::Issued))),
        ("blktrace", Format::Blktrace(None)),
        ("blktrace-issue", Format::Blktrace(Some(Begin::Issued))),
        ("vscsi", Format::Vscsi),
    ];
    formats.extend(tables::TABLES.iter().map(|table| (table.name, Format::Table(table))));
    formats
}

/// Return the names of all formats.
#[must_use]
pub fn formats() -> Vec<&'static str> {
    all_formats().into_iter().map(|(name, _)| name).collect()
}

impl Format {
    /// Return the number of lines of a sample that belong to the format; all of a binary one count
    /// as one.
    fn matches(self, sample: &Sample) -> usize {
        match self {
            Format::FioIolog => fio::matches(sample),
            Format::FioLog => fio_log::matches(sample),
            Format::Blkparse(None) => blkparse::matches(sample),
            Format::Blktrace(None) => usize::from(blktrace::matches(&sample.bytes)),
            Format::Vscsi => usize::from(vscsi::matches(&sample.bytes)),
            Format::Table(table) => table.matches(sample),
            Format::Blkparse(_) | Format::Blktrace(_) => 0,
        }
    }

    fn read(
        self,
        sample: &Sample,
        input: &mut dyn BufRead,
        unit: Option<u64>,
        limit: Option<usize>,
    ) -> LineResult<RecordedTrace> {
        match self {
            Format::Blktrace(begin) => return blktrace::read(std::iter::once(input), begin),
            Format::Vscsi => return vscsi::read(&sample.bytes, input),
            _ => {}
        }
        let mut lines = LineReader::new(input).with_limit(limit);
        match self {
            Format::FioIolog => fio::read(&mut lines),
            Format::FioLog => fio_log::read(sample, &mut lines, unit),
            Format::Blkparse(begin) => blkparse::read(&mut lines, begin),
            Format::Table(table) => table.read(sample, &mut lines, unit),
            Format::Blktrace(_) | Format::Vscsi => unreachable!("binary formats have no lines"),
        }
    }
}

/// Return the format of a sample: the one to which most of its lines belong, at least half of them.
fn recognise(sample: &Sample) -> LineResult<Option<(&'static str, Format)>> {
    let mut matching: Vec<(usize, &str, Format)> = all_formats()
        .into_iter()
        .map(|(name, format)| (format.matches(sample), name, format))
        .filter(|(lines, _, format)| {
            let is_mixed = matches!(format, Format::Blkparse(_));
            *lines > 0 && (is_mixed || *lines * 2 >= sample.lines.len())
        })
        .collect();
    matching.sort_by_key(|(lines, ..)| std::cmp::Reverse(*lines));
    match matching.as_slice() {
        [] => Ok(None),
        [(first, a, _), (second, b, _), ..] if first == second => Err(LineError::of_file(
            format!("a file that can be {a} and {b}"),
            "a file of one format",
        )
        .action("name the format with --format")),
        [(_, name, format), ..] => Ok(Some((name, *format))),
    }
}

/// Return the name of the format of a file, or `None` if it has none of the known ones.
///
/// # Errors
/// A file that cannot be read, or can have two formats.
pub fn recognised_format(path: &Path) -> Result<Option<&'static str>> {
    let location = path.display().to_string();
    let mut input = open(path)?;
    let (sample, _) = sample_of(&mut input, &location)?;
    let format = recognise(&sample).map_err(|error| format_error(&location, error))?;
    Ok(format.map(|(name, _)| name))
}

fn sample_of<'a>(
    input: &'a mut dyn BufRead,
    location: &str,
) -> Result<(Sample, impl BufRead + 'a)> {
    Sample::read(input, location).map_err(|error| format_error(location, lines::unreadable(&error)))
}

/// Read a trace or log.
///
/// # Errors
/// An unknown name; a file that cannot be read, has an unknown format, no I/O, or mostly odd lines.
pub fn read(path: &Path, options: &ReadOptions) -> Result<RecordedTrace> {
    let mut recorded = read_from(&mut open(path)?, &path.display().to_string(), options)?;
    if recorded.format.starts_with("blktrace")
        && let Some(other) = blktrace::file_of_another_cpu(path)
    {
        let note = format!("one CPU only: {} and others are not read", other.display());
        recorded.assumptions.notes.push(note);
    }
    Ok(recorded)
}

/// Read a trace that has several files, such as one for each CPU or day.
///
/// # Errors
/// As [`read`]; files of different formats.
pub fn read_all(paths: &[&Path], options: &ReadOptions) -> Result<RecordedTrace> {
    let [first, others @ ..] = paths else {
        return Err(Error::usage("A trace has at least one file").action("name its files"));
    };
    if others.is_empty() {
        return read(first, options);
    }
    let location = first.display().to_string();
    let is_binary = match &options.format {
        Some(name) => name.starts_with("blktrace"),
        None => recognised_format(first)? == Some("blktrace"),
    };
    if is_binary {
        // An I/O may begin in the file of one CPU, and end in that of another.
        let begin = (options.format.as_deref() == Some("blktrace-issue")).then_some(Begin::Issued);
        let mut inputs = paths.iter().map(|path| open(path)).collect::<Result<Vec<_>>>()?;
        let inputs = inputs.iter_mut().map(|input| input as &mut dyn BufRead);
        let read = blktrace::read(inputs, begin);
        let mut read = read.map_err(|error| format_error(&location, error))?;
        read.format = "blktrace";
        read.count_steps_back();
        return finished(read, &location);
    }
    let mut whole: Option<RecordedTrace> = None;
    let mut ends = Vec::with_capacity(paths.len());
    for path in paths {
        let location = path.display().to_string();
        let read = read_unfinished(&mut open(path)?, &location, options)?;
        let mut read = read;
        read.count_steps_back();
        ends.push(read.ios.len() + ends.last().copied().unwrap_or(0));
        match &mut whole {
            None => whole = Some(read),
            Some(whole) if whole.format == read.format => whole.append(read).map_err(|got| {
                format_error(&location, LineError::of_file(got, "less of the trace"))
            })?,
            Some(whole) => {
                let got = format!("format {}, after {}", read.format, whole.format);
                let error = LineError::of_file(got, "files of one format");
                return Err(format_error(&location, error));
            }
        }
    }
    let mut whole = whole.unwrap_or_default();
    whole.merge(&ends);
    finished(whole, &location)
}

/// Read one column of a table as response times, with the unit [ns] or that of its name.
///
/// # Errors
/// A file that cannot be read or is no table; an unknown column; a column without a unit.
pub fn read_series(path: &Path, column: Option<&str>, unit: Option<&str>) -> Result<Series> {
    read_series_from(&mut open(path)?, &path.display().to_string(), column, unit)
}

/// Read one column of a table from `input`; errors name `location`.
///
/// # Errors
/// As [`read_series`].
pub fn read_series_from(
    input: &mut dyn BufRead,
    location: &str,
    column: Option<&str>,
    unit: Option<&str>,
) -> Result<Series> {
    let unit = unit_named(unit)?;
    let (sample, mut again) = sample_of(input, location)?;
    check_content(&sample, location)?;
    let mut lines = LineReader::new(&mut again);
    series::read(&sample, &mut lines, column, unit).map_err(|error| format_error(location, error))
}

/// Read a log of rates or histograms of fio; `None` if the file is another one.
///
/// # Errors
/// A file that cannot be read, or has mostly odd lines.
pub fn read_rates(path: &Path) -> Result<Option<RateLog>> {
    read_rates_from(&mut open(path)?, &path.display().to_string())
}

/// Read a log of rates or histograms from `input`; errors name `location`.
///
/// # Errors
/// As [`read_rates`].
pub fn read_rates_from(input: &mut dyn BufRead, location: &str) -> Result<Option<RateLog>> {
    let (sample, mut again) = sample_of(input, location)?;
    let log = fio_rates::read(&sample, &mut LineReader::new(&mut again));
    log.map_err(|error| format_error(location, error))
}

/// Read a column of whole numbers.
///
/// # Errors
/// As [`read_series`]; a value that is not a number.
pub fn read_numbers(path: &Path, column: &str) -> Result<SpooledVec<u64>> {
    let location = path.display().to_string();
    let mut input = open(path)?;
    let (sample, mut again) = sample_of(&mut input, &location)?;
    let mut lines = LineReader::new(&mut again);
    let read = series::read_numbers(&sample, &mut lines, column);
    read.map_err(|error| format_error(&location, error))
}

fn unit_named(unit: Option<&str>) -> Result<Option<u64>> {
    let Some(unit) = unit else { return Ok(None) };
    let known = fields::unit_ns(unit)
        .ok_or_else(|| Error::unknown("unit", unit, &["ns", "us", "ms", "s"]).at("--unit"))?;
    Ok(Some(known))
}

/// Refuse a file without text, and outputs of other programs that contain no I/Os.
fn check_content(sample: &Sample, location: &str) -> Result<()> {
    let (got, action) = if sample.lines.is_empty() {
        describe_binary(&sample.bytes)
    } else if let Some((got, action)) = known_output(sample) {
        (got, action.to_owned())
    } else {
        return Ok(());
    };
    let allowed = "single I/Os, as text in UTF-8 or UTF-16, .gz or .zst, or in a binary format";
    Err(format_error(location, LineError::of_file(got, allowed).action(&action)))
}

fn format_error(location: &str, error: LineError) -> Error {
    let LineError { line, got, allowed, action } = error;
    let location = if line == 0 { location.to_owned() } else { format!("{location}:{line}") };
    let usual =
        "see docs/reference/formats.md for what is read, or name the columns with --columns";
    Error::new(ErrorKind::Results, "The file cannot be read as a trace or log")
        .at(location)
        .got(got)
        .allowed(allowed)
        .action(if action.is_empty() { usual } else { &action })
}

/// Read a trace from `input`; errors name `location`.
///
/// # Errors
/// As [`read`].
pub fn read_from(
    input: &mut dyn BufRead,
    location: &str,
    options: &ReadOptions,
) -> Result<RecordedTrace> {
    let mut recorded = read_unfinished(input, location, options)?;
    recorded.count_steps_back();
    finished(recorded, location)
}

fn finished(mut recorded: RecordedTrace, location: &str) -> Result<RecordedTrace> {
    if recorded.ios.is_empty() {
        let error = LineError::of_file("no read, write or trim", "at least one I/O");
        return Err(format_error(location, error));
    }
    recorded.finish();
    Ok(recorded)
}

fn read_unfinished(
    input: &mut dyn BufRead,
    location: &str,
    options: &ReadOptions,
) -> Result<RecordedTrace> {
    let unit = unit_named(options.unit.as_deref())?;
    let (sample, mut again) = sample_of(input, location)?;
    let line_error = |error| format_error(location, error);
    if let Some(columns) = &options.columns {
        let mut recorded =
            read_columns(&sample, &mut again, columns, options.limit).map_err(line_error)?;
        recorded.format = "columns";
        return Ok(recorded);
    }
    let found = match &options.format {
        Some(name) => {
            let known = all_formats().into_iter().find(|(each, _)| each == name);
            Some(known.ok_or_else(|| {
                Error::unknown("format of a trace", name, &formats()).at("--format")
            })?)
        }
        None => recognise(&sample).map_err(line_error)?,
    };
    let Some((name, format)) = found else {
        check_content(&sample, location)?;
        let got = lines::shortened(&sample.lines[0]);
        let error = LineError { line: 1, ..LineError::of_file(got, &examples()) };
        return Err(line_error(error));
    };
    let mut recorded = format.read(&sample, &mut again, unit, options.limit).map_err(line_error)?;
    recorded.format = name;
    Ok(recorded)
}

/// Read a table whose columns the user named.
fn read_columns(
    sample: &Sample,
    input: &mut dyn BufRead,
    columns: &str,
    limit: Option<usize>,
) -> LineResult<RecordedTrace> {
    let map = ColumnMap::parse(columns)?;
    let first = sample.lines.first().map_or("", String::as_str);
    let best = Separator::ALL.into_iter().map(|separator| {
        let mut head = Vec::new();
        split(first, separator, &mut head);
        let reader = map.resolve(separator, if map.needs_head() { &head } else { &[] })?;
        let mut fields = Vec::new();
        let rows = sample.lines.iter().filter(|line| {
            split(line, separator, &mut fields);
            reader.row(&fields).is_some()
        });
        Ok((rows.count(), reader))
    });
    let best: LineResult<(usize, columns::ColumnReader)> = best
        .reduce(|a, b| match (a, b) {
            (Ok(a), Ok(b)) => Ok(if b.0 > a.0 { b } else { a }),
            (Ok(a), Err(_)) => Ok(a),
            (_, b) => b,
        })
        .expect("there are separators");
    let (_, reader) = best?;
    let mut lines = LineReader::new(input).with_limit(limit);
    reader.read(&mut lines, map.needs_head(), "fields as --columns names them")
}

fn examples() -> String {
    let texts = [
        ("fio", "fio version 2 iolog"),
        ("fio-log", fio_log::EXAMPLE),
        ("blkparse", blkparse::EXAMPLE),
    ];
    let tables = tables::TABLES.iter().map(|table| (table.name, table.example));
    let all = texts.into_iter().chain(tables);
    all.map(|(name, example)| format!("{name} '{example}'")).collect::<Vec<_>>().join("; ")
}
