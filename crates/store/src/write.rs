//! The writer of traces: creates, writes and syncs a file. The caller renames it into place.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::{KeyValue, RowGroupMetaDataPtr};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::ChunkReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use uflip_core::{Error, ErrorKind, Io, Result};
use uflip_engine::{Columns, IoList};

use crate::columns::{ColumnData, MODES};
use crate::gaps::gaps;
use crate::pack::Packer;
use crate::stored::{StoredTrace, implausible};
use crate::{KEY_ENDED, KEY_PATTERN, KEY_RUN, KEY_VERSION, ROWS_PER_GROUP, TRACE_VERSION};

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ColumnKind {
    U8,
    U16,
    U32,
    U64,
    /// Compressed columns of a trace: the process, ...
    Stream,
    /// ... a gap, which may be negative, ...
    Gap,
    /// ... and a duration.
    Time,
    /// A mode number, written as its word in [`MODES`].
    Mode,
}

/// Return the columns of a trace file.
pub(crate) fn trace_kinds(causes: &[String]) -> Vec<(String, ColumnKind)> {
    let fixed = [
        ("stream", ColumnKind::Stream),
        ("gap_ns", ColumnKind::Gap),
        ("response_time_ns", ColumnKind::Time),
    ];
    let fixed = fixed.into_iter().map(|(name, kind)| (name.to_owned(), kind));
    fixed.chain(causes.iter().map(|cause| (cause.clone(), ColumnKind::Time))).collect()
}

/// Return the columns of `trace`; a replay has those of its list after the others.
pub(crate) fn kinds_of(trace: &StoredTrace) -> Vec<(String, ColumnKind)> {
    let mut kinds = trace_kinds(trace.causes());
    if replayed_list(trace).is_some() {
        kinds.extend(LIST_COLUMNS.map(|name| (name.to_owned(), ColumnKind::U64)));
    }
    kinds
}

/// The columns of the I/Os of a list.
pub(crate) const LIST_COLUMNS: [&str; 3] = ["offset_bytes", "io_size_bytes", "is_write"];

/// Return the list that a trace replays.
fn replayed_list(trace: &StoredTrace) -> Option<&Arc<IoList>> {
    trace.pattern().list()
}

/// Write `trace` with `run` (JSON) as metadata to the new file `path`, and sync it.
///
/// # Errors
/// If the file exists, or cannot be written (for instance on a full file system).
/// [`ErrorKind::Internal`]: the trace is implausible; nothing is written.
pub fn write_trace(trace: &StoredTrace, path: &Path, run: &str) -> Result<()> {
    if !trace.is_checked() {
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
        match trace.groups() {
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
    let mut streams = trace.trace().stream_of_each();
    for from in (0..trace.len()).step_by(ROWS_PER_GROUP) {
        let to = trace.len().min(from + ROWS_PER_GROUP);
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

/// Write `columns` of `rows` values each to a new file.
pub(crate) fn write_columns(
    path: &Path,
    columns: &[(String, ColumnData<'_>)],
    rows: usize,
    metadata: Vec<KeyValue>,
) -> Result<()> {
    let kinds: Vec<(String, ColumnKind)> =
        columns.iter().map(|(name, column)| (name.clone(), column.kind())).collect();
    let columns: Vec<ColumnData<'_>> = columns.iter().map(|(_, column)| column.clone()).collect();
    write_new(path, |file| {
        let mut table = TableWriter::new(file, &[], &kinds, metadata)?;
        table.groups(&columns, rows)?;
        table.finish()
    })
}

/// Create the file `path`, let `fill` write it, and sync it; remove it on failure.
pub(crate) fn write_new(
    path: &Path,
    fill: impl FnOnce(File) -> std::result::Result<File, String>,
) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
        let kind = error.kind();
        let failed =
            Error::write_failed("The file cannot be created", path.display().to_string(), &error);
        if kind != std::io::ErrorKind::AlreadyExists {
            return failed;
        }
        Error::new(ErrorKind::Results, "The file exists; uflip never overwrites files")
            .at(path.display().to_string())
            .action("choose another name, or move the file away")
    })?;
    let result = fill(file).and_then(|file| file.sync_all().map_err(|error| error.to_string()));
    result.map_err(|message| {
        let _ = std::fs::remove_file(path);
        Error::write_failed("The file cannot be written", path.display().to_string(), message)
    })
}

/// A writer of tables, group by group.
pub(crate) struct TableWriter<'a, W: Write + Send> {
    writer: SerializedFileWriter<BufWriter<W>>,
    texts: &'a [(String, String)],
    kinds: Vec<ColumnKind>,
    packer: Packer,
}

impl<'a, W: Write + Send> TableWriter<'a, W> {
    /// Write to `file`: `texts` (one value for all rows), then columns of `kinds`.
    pub(crate) fn new(
        file: W,
        texts: &'a [(String, String)],
        kinds: &[(String, ColumnKind)],
        metadata: Vec<KeyValue>,
    ) -> std::result::Result<TableWriter<'a, W>, String> {
        let message = schema(texts, kinds);
        let schema = parse_message_type(&message).map_err(|error| error.to_string())?;
        let mut properties = WriterProperties::builder()
            .set_key_value_metadata(Some(metadata))
            .set_created_by(concat!("uflip ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_encoding(Encoding::DELTA_BINARY_PACKED);
        // Constant or mode columns: a small dictionary.
        let modes =
            kinds.iter().filter(|(_, kind)| *kind == ColumnKind::Mode).map(|(name, _)| name);
        for name in texts.iter().map(|(name, _)| name).chain(modes) {
            let path = parquet::schema::types::ColumnPath::from(name.as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), true)
                .set_column_encoding(path, Encoding::PLAIN);
        }
        let buffered = BufWriter::with_capacity(1 << 20, file);
        let properties = Arc::new(properties.build());
        let writer = SerializedFileWriter::new(buffered, Arc::new(schema), properties)
            .map_err(|error| error.to_string())?;
        let kinds: Vec<ColumnKind> = kinds.iter().map(|(_, kind)| *kind).collect();
        let columns = writer.schema_descr().columns()[texts.len()..].iter().cloned();
        let packer = Packer::new(columns.zip(kinds.iter().copied()).collect());
        Ok(TableWriter { writer, texts, kinds, packer: packer.map_err(|error| error.to_string())? })
    }

    /// Write `rows` values of each of `columns`, in groups.
    fn groups(
        &mut self,
        columns: &[ColumnData<'_>],
        rows: usize,
    ) -> std::result::Result<(), String> {
        for from in (0..rows).step_by(ROWS_PER_GROUP) {
            self.group(columns, from, rows.min(from + ROWS_PER_GROUP))?;
        }
        Ok(())
    }

    /// Write the values `from` to `to` of each of `columns` as one group.
    pub(crate) fn group(
        &mut self,
        columns: &[ColumnData<'_>],
        from: usize,
        to: usize,
    ) -> std::result::Result<RowGroupMetaDataPtr, String> {
        let mut write = || {
            let mut group = self.writer.next_row_group()?;
            for (_, value) in self.texts {
                write_text(&mut group, value, to - from)?;
            }
            for (number, (values, kind)) in columns.iter().zip(&self.kinds).enumerate() {
                match kind {
                    ColumnKind::Mode => write_modes(&mut group, values, from, to)?,
                    ColumnKind::Stream | ColumnKind::Gap | ColumnKind::Time => {
                        let (bytes, closed) = self.packer.chunk(number, values, from, to)?;
                        group.append_column(&bytes, closed)?;
                    }
                    _ => write_numbers(&mut group, values, from, to)?,
                }
            }
            group.close()
        };
        write().map_err(|error: parquet::errors::ParquetError| error.to_string())
    }

    /// Write I/Os of one process of a trace as one group.
    pub(crate) fn trace_group(
        &mut self,
        process: u16,
        ios: &Columns,
    ) -> std::result::Result<RowGroupMetaDataPtr, String> {
        let mut columns = vec![
            ColumnData::U16(vec![process; ios.len()]),
            ColumnData::U64(gaps(&ios.submit_ns, &ios.response_time_ns).into()),
        ];
        let measured = std::iter::once(&ios.response_time_ns).chain(&ios.cause_ns);
        columns.extend(measured.map(|column| ColumnData::U64(column.into())));
        self.group(&columns, 0, ios.len())
    }

    /// Copy a group of another file, described by `chunks`.
    pub(crate) fn append(
        &mut self,
        from: &impl ChunkReader,
        chunks: impl Iterator<Item = ColumnCloseResult>,
    ) -> parquet::errors::Result<()> {
        let mut group = self.writer.next_row_group()?;
        for chunk in chunks {
            group.append_column(from, chunk)?;
        }
        group.close().map(drop)
    }

    /// Write the footer and return the file, not yet synced.
    pub(crate) fn finish(self) -> std::result::Result<W, String> {
        let buffered = self.writer.into_inner().map_err(|error| error.to_string())?;
        buffered.into_inner().map_err(|error| error.error().to_string())
    }
}

fn schema(texts: &[(String, String)], kinds: &[(String, ColumnKind)]) -> String {
    let mut message = String::from("message uflip {\n");
    for (name, _) in texts {
        message += &format!("  REQUIRED BYTE_ARRAY {name} (STRING);\n");
    }
    for (name, kind) in kinds {
        let (stored, bits) = match kind {
            ColumnKind::Mode => {
                message += &format!("  REQUIRED BYTE_ARRAY {name} (STRING);\n");
                continue;
            }
            ColumnKind::U8 => ("INT32", 8),
            ColumnKind::U16 | ColumnKind::Stream => ("INT32", 16),
            ColumnKind::U32 => ("INT32", 32),
            ColumnKind::U64 | ColumnKind::Gap | ColumnKind::Time => ("INT64", 64),
        };
        let signed = *kind == ColumnKind::Gap;
        message += &format!("  REQUIRED {stored} {name} (INTEGER({bits},{signed}));\n");
    }
    message + "}"
}

type GroupWriter<'a, W> = SerializedRowGroupWriter<'a, W>;

fn write_modes<W: Write + Send>(
    group: &mut GroupWriter<'_, W>,
    modes: &ColumnData<'_>,
    from: usize,
    to: usize,
) -> parquet::errors::Result<()> {
    let values: Vec<ByteArray> =
        (from..to).map(|row| ByteArray::from(MODES[modes.at(row) as usize])).collect();
    let mut column = group.next_column()?.expect("the row group has another column");
    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
    column.close()
}

fn write_text<W: Write + Send>(
    group: &mut GroupWriter<'_, W>,
    value: &str,
    rows: usize,
) -> parquet::errors::Result<()> {
    let values = vec![ByteArray::from(value); rows];
    let mut column = group.next_column()?.expect("the row group has another column");
    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
    column.close()
}

fn write_numbers<W: Write + Send>(
    group: &mut GroupWriter<'_, W>,
    values: &ColumnData<'_>,
    from: usize,
    to: usize,
) -> parquet::errors::Result<()> {
    fn narrow<T: Copy + Into<u32>>(values: &[T]) -> Vec<i32> {
        // Parquet stores unsigned numbers in the signed type of the same width.
        values.iter().map(|value| (*value).into() as i32).collect()
    }
    let mut column = group.next_column()?.expect("the row group has another column");
    match values {
        ColumnData::U64(values) => {
            let wide: Vec<i64> = values[from..to].iter().map(|value| *value as i64).collect();
            column.typed::<Int64Type>().write_batch(&wide, None, None)?;
        }
        ColumnData::U32(values) => {
            column.typed::<Int32Type>().write_batch(&narrow(&values[from..to]), None, None)?;
        }
        ColumnData::U16(values) => {
            column.typed::<Int32Type>().write_batch(&narrow(&values[from..to]), None, None)?;
        }
        ColumnData::U8(values) => {
            column.typed::<Int32Type>().write_batch(&narrow(&values[from..to]), None, None)?;
        }
    }
    column.close()
}
