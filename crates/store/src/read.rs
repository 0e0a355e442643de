//! The reader of traces. Every problem of a file is an error that names it.
//!
//! A file with a digest in its folder's ledger is checked against it before anything is parsed. Any
//! other file is parsed with care: its declared contents are compared with its size before any
//! allocation, and a panic in the Parquet parser becomes an error. The trace must be plausible; see
//! [`Trace::check_plausible`].

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes as Content;
use parquet::basic::Type;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use uflip_core::{Bytes, Error, ErrorKind, Io, Mode, Result, SECTOR_BYTES_MIN, SpooledVec};
use uflip_engine::{Columns, IoList, PatternSpec, Resolved, Trace};

use crate::digest::{Digest, digest, digest_of, map_on_all_cpus};
use crate::row_groups::{BEFORE_CAUSES, ByteSource, RowGroups, constant_value};
use crate::safe_read::{self, contained};
use crate::stored_trace::StoredTrace;
use crate::table::{self, ColumnKind, LIST_COLUMNS, trace_kinds};
use crate::{
    IN_MEMORY_BYTES, IN_MEMORY_VALUES, KEY_ENDED, KEY_JOB, KEY_PATTERN, KEY_RUN, KEY_VERSION,
    TRACE_VERSION, pages, row_parts, version_error,
};

/// A stored pattern is complete, so it is validated against a device of unlimited size.
const ANY_CAPACITY: Bytes = Bytes(u64::MAX >> 1);

/// The largest footer: this plus a share of the file size. Patterns of a thousand processes stay
/// below the first, as do the descriptions of 5,000 small row groups; those of longer runs stay
/// below the second if an I/O takes half a byte.
pub(crate) const FOOTER: u64 = 16 << 20;
const FOOTER_SHARE: u64 = 4;
/// The magic number and the length of the footer.
const TAIL: u64 = 8;
/// The largest number of columns: a trace has three, and one for each cause.
const COLUMNS: usize = 64;
/// Delta encoding takes at least this many bytes for a block of values with equal differences.
const BLOCK_BYTES: u64 = 5;
const BLOCK_VALUES: u64 = 256;
/// A compressed column chunk with its footer entry takes at least about 110 bytes (less with a
/// short name) for 16384 values: this allows for 64.
pub(crate) const PACKED_VALUES: u64 = 256;
/// The largest row group of packed pages.
const GROUP_ROWS: i64 = 1 << 20;
/// The largest encoded value with its overhead [bytes].
const VALUE_BYTES: u64 = 10;

/// A table is read into memory as a whole. One without a digest may therefore declare at most this
/// many values (256 MiB), bytes and groups: two million commands of a job, whereas typical
/// exchanged folders have some ten thousand.
const TABLE_VALUES: u64 = 32 << 20;
const TABLE_BYTES: u64 = 128 << 20;
const TABLE_GROUPS: usize = 4096;

/// Read the trace in `path` and its metadata. With `expected`, the length [bytes] and digest are
/// checked before anything is parsed.
///
/// A long trace stays in its file. With `expected` its plausibility is not checked again, because
/// it was checked before it was written.
///
/// # Errors
/// [`ErrorKind::Results`]: missing, not the expected file, damaged, the log of a job instead of a
/// trace, or of another version.
pub fn read_trace(path: &Path, expected: Option<&Digest>) -> Result<(StoredTrace, String)> {
    let damaged = |message: String| {
        Error::new(ErrorKind::Results, "The trace cannot be read: it is damaged or not a trace")
            .at(path.display().to_string())
            .got(message)
            .action("move the file away to look at the other runs, or measure again")
    };
    read(path, expected).map_err(|problem| match problem {
        Problem::Damage(message) => damaged(message),
        Problem::Long => unreachable!("a trace of any length is accepted"),
        Problem::Log => {
            let problem = "This is the log of a job over physical addresses, and not a trace";
            Error::new(ErrorKind::Results, problem)
                .at(path.display().to_string())
                .got("commands of an open-channel device")
                .allowed("I/Os over sectors")
                .action("read it with `uflip analyse` or `uflip export`, in Python with `StoredRun.log()`")
        }
        Problem::Version(version) => version_error("The trace", path, &version, TRACE_VERSION),
    })
}

fn read(
    path: &Path,
    expected: Option<&Digest>,
) -> std::result::Result<(StoredTrace, String), Problem> {
    let (mut file, length) = safe_read::regular(path)?;
    check(&mut file, length, expected)?;
    if length <= IN_MEMORY_BYTES {
        let content = Content::from(safe_read::bytes(&mut file, 0, length)?);
        if expected.is_some() {
            check_digest(&digest(&content), expected)?;
        }
        match contained(|| parse(content))? {
            Err(Problem::Long) => {}
            read => return read,
        }
    } else if expected.is_some() {
        let stored = digest_of(&mut file).map_err(|error| error.to_string())?.1;
        check_digest(&stored, expected)?;
    }
    contained(|| parse_in_place(file, length, expected.is_some()))?
}

/// Check that each file is a plausible trace, on all CPUs.
#[must_use]
pub fn check_traces(paths: &[impl AsRef<Path> + Sync]) -> Vec<Result<()>> {
    map_on_all_cpus(paths, |path| read_trace(path.as_ref(), None).map(drop))
}

/// Return the metadata of the run of a trace file, without checking the file; `None` if it has
/// none.
#[must_use]
pub fn read_metadata(path: &Path) -> Option<String> {
    footer_value(path, KEY_RUN)
}

/// Return the specification of a trace or of the log of a job (JSON), without checking the file or
/// reading its values. `None` if it has none.
#[must_use]
pub fn read_specification(path: &Path) -> Option<String> {
    footer_value(path, KEY_PATTERN).or_else(|| footer_value(path, KEY_JOB))
}

fn footer_value(path: &Path, key: &str) -> Option<String> {
    let (mut file, length) = safe_read::regular(path).ok()?;
    let footer = footer(&mut file, length).ok()?;
    let metadata = contained(|| ParquetMetaDataReader::decode_metadata(&footer)).ok()?.ok()?;
    value(metadata.file_metadata(), key)
}

/// The reason why a file is not read into memory.
pub(crate) enum Problem {
    Damage(String),
    /// The file has another version of the format.
    Version(String),
    /// The file is the log of a job.
    Log,
    /// The trace is too long for memory.
    Long,
}

impl From<String> for Problem {
    fn from(message: String) -> Problem {
        Problem::Damage(message)
    }
}

/// Check that the file has the expected length, or at least does not declare too much.
fn check(
    file: &mut File,
    length: u64,
    expected: Option<&Digest>,
) -> std::result::Result<(), String> {
    if let Some((bytes, _)) = expected {
        if *bytes == length {
            return Ok(());
        }
        return Err(format!("{length} bytes instead of {bytes}"));
    }
    let footer = footer(file, length)?;
    let metadata = contained(|| ParquetMetaDataReader::decode_metadata(&footer))?;
    check_size(&metadata.map_err(|error| error.to_string())?, length)
}

fn check_digest(computed: &str, expected: Option<&Digest>) -> std::result::Result<(), String> {
    match expected {
        Some((_, stored)) if computed != stored => {
            Err("bytes that have changed since they were stored".to_owned())
        }
        _ => Ok(()),
    }
}

/// Return the footer of a Parquet file without the framing.
fn footer(file: &mut File, length: u64) -> std::result::Result<Vec<u8>, String> {
    let begins = safe_read::bytes(file, 0, length.min(4))?;
    let tail = safe_read::bytes(file, length.saturating_sub(TAIL), length.min(TAIL))?;
    if length < 3 * TAIL || begins != *b"PAR1" || tail[4..] != *b"PAR1" {
        return Err(format!("{length} bytes that do not begin and end as a Parquet file does"));
    }
    let size = u64::from(u32::from_le_bytes(tail[..4].try_into().expect("4 bytes")));
    let max = (FOOTER + length / FOOTER_SHARE).min(length - TAIL);
    if size > max {
        return Err(format!("a footer of {size} bytes, more than {max}"));
    }
    safe_read::bytes(file, length - TAIL - size, size)
}

/// Check that the number of values is consistent with the length of the file.
fn check_size(metadata: &ParquetMetaData, length: u64) -> std::result::Result<(), String> {
    let columns = metadata.file_metadata().schema_descr().columns();
    if columns.is_empty() || columns.len() > COLUMNS {
        return Err(format!("{} columns, outside 1 to {COLUMNS}", columns.len()));
    }
    if let Some(nested) = columns.iter().find(|column| column.max_rep_level() > 0) {
        return Err(format!("column '{}', which holds lists", nested.name()));
    }
    let rows = metadata.row_groups().iter().try_fold(0u64, |sum, group| {
        u64::try_from(group.num_rows()).ok().and_then(|rows| sum.checked_add(rows))
    });
    let rows = rows.ok_or("a number of rows below zero")?;
    let columns = columns.len() as u64;
    let max_rows = if any_packed(metadata) {
        if metadata.row_groups().iter().any(|group| group.num_rows() > GROUP_ROWS) {
            return Err(format!("a row group of more than {GROUP_ROWS} rows, packed"));
        }
        (length / columns + 1) * PACKED_VALUES
    } else {
        (length / (BLOCK_BYTES * columns) + 1) * BLOCK_VALUES
    };
    if rows > max_rows {
        return Err(format!("{rows} rows in {length} bytes, more than {max_rows}"));
    }
    let max_length = (rows * columns * VALUE_BYTES).saturating_add(2 * FOOTER + length / 2);
    if length > max_length {
        return Err(format!("{length} bytes for {rows} rows"));
    }
    Ok(())
}

/// Return an error if a table declares too many values, or inconsistent row counts.
fn check_table(metadata: &ParquetMetaData) -> std::result::Result<(), String> {
    let (file, groups) = (metadata.file_metadata(), metadata.row_groups());
    let rows = groups.iter().try_fold(0i64, |sum, group| sum.checked_add(group.num_rows()));
    if rows != Some(file.num_rows()) {
        return Err(format!("{} rows, unlike the sum of its groups", file.num_rows()));
    }
    let columns = file.schema_descr().num_columns();
    let values = (file.num_rows() as u64).saturating_mul(columns as u64);
    if groups.len() > TABLE_GROUPS || values > TABLE_VALUES {
        return Err(format!(
            "{columns} columns of {} rows in {} groups, where a table has at most {TABLE_VALUES} \
             values in {TABLE_GROUPS} groups",
            file.num_rows(),
            groups.len()
        ));
    }
    Ok(())
}

fn any_packed(metadata: &ParquetMetaData) -> bool {
    metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).any(pages::is_packed)
}

fn value(metadata: &FileMetaData, name: &str) -> Option<String> {
    let pairs = metadata.key_value_metadata();
    let pair = pairs.into_iter().flatten().find(|pair| pair.key == name);
    pair.and_then(|pair| pair.value.clone())
}

/// The metadata of a trace file.
struct TraceMetadata {
    pattern: Resolved,
    /// The metadata of the run.
    run: String,
    /// The stopping record.
    stop_record: Option<serde_json::Value>,
}

fn parse_metadata(
    metadata: &ParquetMetaData,
    length: u64,
) -> std::result::Result<TraceMetadata, Problem> {
    let optional = |name: &str| value(metadata.file_metadata(), name);
    let key = |name: &str| optional(name).ok_or_else(|| format!("no '{name}' in its metadata"));
    if optional(KEY_VERSION).is_none() && optional(KEY_JOB).is_some() {
        return Err(Problem::Log);
    }
    let version = key(KEY_VERSION)?;
    if version != TRACE_VERSION {
        return Err(Problem::Version(version));
    }
    check_size(metadata, length)?;
    let run = key(KEY_RUN)?;
    let pattern = PatternSpec::parse(&key(KEY_PATTERN)?)
        .and_then(|spec| spec.resolve(ANY_CAPACITY, Bytes(SECTOR_BYTES_MIN)))
        .map_err(|error| error.to_string())?;
    let rows = pattern.totals.total_ios;
    let stored = metadata.file_metadata().num_rows();
    if stored as u64 != rows {
        return Err(format!("{stored} rows instead of {rows}").into());
    }
    let stop_record = optional(KEY_ENDED).map(|text| serde_json::from_str(&text)).transpose();
    let stop_record = stop_record.map_err(|error| format!("'{KEY_ENDED}': {error}"))?;
    Ok(TraceMetadata { pattern, run, stop_record })
}

/// Open a trace that stays in its file.
fn parse_in_place(
    mut file: File,
    length: u64,
    is_known: bool,
) -> std::result::Result<(StoredTrace, String), Problem> {
    let footer = footer(&mut file, length)?;
    let metadata = ParquetMetaDataReader::decode_metadata(&footer);
    let metadata = metadata.map_err(|error| error.to_string())?;
    let TraceMetadata { pattern, run, stop_record } = parse_metadata(&metadata, length)?;
    let columns = metadata.file_metadata().schema_descr().columns();
    let names: Vec<String> = columns.iter().map(|column| column.name().to_owned()).collect();
    let missing = pattern.missing_list();
    let list_columns = if missing.is_some() { LIST_COLUMNS.len() } else { 0 };
    let causes =
        names.get(3..names.len().max(list_columns) - list_columns).unwrap_or_default().to_vec();
    let listed =
        LIST_COLUMNS[..list_columns].iter().map(|name| ((*name).to_owned(), ColumnKind::U64));
    let kinds = trace_kinds(&causes).into_iter().chain(listed).zip(columns);
    let is_ours = kinds.into_iter().all(|((name, kind), column)| {
        let wide = column.physical_type() == Type::INT64;
        name == column.name() && (kind != ColumnKind::Stream) == wide && column.max_def_level() == 0
    });
    if names.len() < 3 + list_columns || !is_ours {
        return Err(format!("the columns {}", names.join(", ")).into());
    }
    let source = ByteSource::new(file).map_err(|error| error.to_string())?;
    let mut groups = RowGroups::new(source);
    for group in metadata.row_groups() {
        groups.push(Arc::new(group.clone()), group.num_rows() as usize, 0);
    }
    let pattern = match missing {
        Some(summary) => {
            let column = |number| -> std::result::Result<SpooledVec<u64>, String> {
                let mut values = SpooledVec::default();
                for (from, to) in row_parts(groups.len()) {
                    values.extend(groups.read(number, from, to)?);
                }
                Ok(values)
            };
            let first = 3 + causes.len();
            let listed = [column(first)?, column(first + 1)?, column(first + 2)?];
            let instants = summary.span.map(|_| column(1)).transpose()?;
            with_list(pattern, listed, instants.unwrap_or_default())?
        }
        None => pattern,
    };
    let trace = Trace { pattern, columns: Columns::empty(causes.len()), causes, stop_record };
    let trace = StoredTrace::in_file(trace, groups);
    if !is_known {
        trace.check_plausible(crate::allows_zero_time(&run))?;
    }
    Ok((trace, run))
}

/// A table of integers in memory, with its metadata.
pub(crate) struct Table {
    metadata: FileMetaData,
    columns: Vec<(String, Vec<u64>)>,
    rows: usize,
}

impl Table {
    /// Return the metadata value `name`.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        value(&self.metadata, name)
    }

    /// Return the names of all other columns, in order.
    pub(crate) fn names_except(&self, names: &[&str]) -> Vec<String> {
        let names_of_all = self.columns.iter().map(|(name, _)| name);
        names_of_all.filter(|name| !names.contains(&name.as_str())).cloned().collect()
    }

    /// Take a column by name.
    pub(crate) fn take(&mut self, name: &str) -> std::result::Result<Vec<u64>, String> {
        let number = self.columns.iter().position(|(column, _)| column == name);
        let values = number.map(|number| self.columns.remove(number).1).unwrap_or_default();
        if number.is_some() && values.len() == self.rows {
            return Ok(values);
        }
        Err(format!("{} values in column '{name}' instead of {}", values.len(), self.rows))
    }
}

/// Read a whole table into memory, with the same checks as for a trace; without `expected`, at most
/// [`TABLE_VALUES`] values.
pub(crate) fn read_table(
    path: &Path,
    expected: Option<&Digest>,
) -> std::result::Result<Table, String> {
    let (mut file, length) = safe_read::regular(path)?;
    if expected.is_none() && length > TABLE_BYTES {
        return Err(format!("{length} bytes, where a table has at most {TABLE_BYTES}"));
    }
    check(&mut file, length, expected)?;
    let content = Content::from(safe_read::bytes(&mut file, 0, length)?);
    if expected.is_some() {
        check_digest(&digest(&content), expected)?;
    }
    contained(|| {
        let reader =
            SerializedFileReader::new(content.clone()).map_err(|error| error.to_string())?;
        check_size(reader.metadata(), length)?;
        if any_packed(reader.metadata()) {
            return Err("compressed pages, as in a trace".to_owned());
        }
        let metadata = reader.metadata().file_metadata();
        if expected.is_none() {
            check_table(reader.metadata())?;
        }
        let rows = usize::try_from(metadata.num_rows()).map_err(|error| error.to_string())?;
        let columns = read_columns(&content, &reader).map_err(|error| error.to_string())?;
        Ok(Table { metadata: metadata.clone(), columns, rows })
    })?
}

fn parse(content: Content) -> std::result::Result<(StoredTrace, String), Problem> {
    let length = content.len() as u64;
    let reader = SerializedFileReader::new(content.clone()).map_err(|error| error.to_string())?;
    let TraceMetadata { pattern, run, stop_record } = parse_metadata(reader.metadata(), length)?;
    let rows = pattern.totals.total_ios;
    let columns = reader.metadata().file_metadata().schema_descr().num_columns() as u64;
    if rows * columns > IN_MEMORY_VALUES {
        return Err(Problem::Long);
    }
    let columns = read_columns(&content, &reader).map_err(|error| error.to_string())?;
    let metadata = reader.metadata().file_metadata().clone();
    let mut table = Table { metadata, columns, rows: rows as usize };
    let missing = pattern.missing_list();
    let response_time_ns = table.take("response_time_ns")?;
    let mut submit_ns = table.take("gap_ns")?;
    let mut from = 0;
    for group in reader.metadata().row_groups() {
        let to = from + group.num_rows() as usize;
        table::undo_gaps(&mut submit_ns[from..to], &response_time_ns[from..to]);
        from = to;
    }
    table.take("stream")?; // it follows from the pattern
    let pattern = match missing {
        Some(summary) => {
            let instants = summary.span.map(|_| submit_ns.clone());
            let [offsets, sizes, modes] = LIST_COLUMNS.map(|name| table.take(name));
            let listed = [offsets?, sizes?, modes?].map(SpooledVec::from);
            with_list(pattern, listed, instants.unwrap_or_default().into())?
        }
        None => pattern,
    };
    let (causes, cause_ns): (Vec<_>, Vec<_>) = table.columns.into_iter().unzip();
    if cause_ns.iter().any(|column: &Vec<u64>| column.len() as u64 != rows) {
        return Err("columns of different lengths".to_owned().into());
    }
    let columns = Columns { submit_ns, response_time_ns, cause_ns };
    let trace = Trace { pattern, columns, causes, stop_record };
    trace.check_plausible(crate::allows_zero_time(&run))?;
    Ok((StoredTrace::in_memory(trace), run))
}

/// Add the list of I/Os in these columns to the pattern; its arrivals are the submission times.
fn with_list(
    pattern: Resolved,
    [offsets, sizes, modes]: [SpooledVec<u64>; 3],
    instants: SpooledVec<u64>,
) -> std::result::Result<Resolved, String> {
    let mut invalid_mode = None;
    let ios = offsets.iter().zip(sizes.iter()).zip(modes.iter()).map(|((offset, size), number)| {
        let mode = Mode::from_number(*number).unwrap_or_else(|| {
            invalid_mode = Some(format!("an I/O of mode {number}"));
            Mode::Read
        });
        Io { offset: Bytes(*offset), size: Bytes(*size), mode, stream: 0 }
    });
    let list = IoList::new(ios, instants)?;
    if let Some(invalid_mode) = invalid_mode {
        return Err(invalid_mode);
    }
    pattern.with_list(&Arc::new(list)).map_err(|error| error.to_string())
}

/// Return every integer column with its name, in the order of the file.
fn read_columns(
    content: &Content,
    reader: &SerializedFileReader<Content>,
) -> parquet::errors::Result<Vec<(String, Vec<u64>)>> {
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns = Vec::new();
    for (index, column) in schema.columns().iter().enumerate() {
        let unsigned: Vec<u64> = match column.physical_type() {
            Type::INT64 => {
                let constant =
                    if index < BEFORE_CAUSES { |_: &Statistics| None } else { constant_value };
                let read = values::<Int64Type>(content, reader, index, constant)?;
                read.map(|value| value as u64).collect()
            }
            Type::INT32 => {
                let read = values::<Int32Type>(content, reader, index, |_| None)?;
                read.map(|value| u64::from(value as u32)).collect()
            }
            _ => continue,
        };
        columns.push((column.name().to_owned(), unsigned));
    }
    Ok(columns)
}

/// Return the values of a column in all groups; constant compressed chunks come from their
/// statistics.
fn values<T: DataType>(
    content: &Content,
    reader: &SerializedFileReader<Content>,
    index: usize,
    constant: fn(&Statistics) -> Option<T::T>,
) -> parquet::errors::Result<impl Iterator<Item = T::T>> {
    let mut values: Vec<T::T> = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let rows = group.metadata().num_rows() as usize;
        let chunk = group.metadata().column(index);
        if pages::is_packed(chunk) {
            if let Some(value) = chunk.statistics().and_then(constant) {
                values.resize(values.len() + rows, value);
                continue;
            }
            pages::check(content, chunk, rows as u64).map_err(ParquetError::General)?;
        }
        let mut typed = get_typed_column_reader::<T>(group.get_column_reader(index)?);
        let (records, _, _) = typed.read_records(rows, None, None, &mut values)?;
        if records != rows {
            return Err(ParquetError::EOF(format!("{records} of {rows} rows")));
        }
    }
    Ok(values.into_iter())
}
