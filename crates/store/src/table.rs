//! A Parquet table, written group by group to a new file, which is synced. The caller renames it into
//! place.
//!
//! The measured columns of a trace are column chunks of one compressed page each. Times are noise in
//! their low bytes and nearly constant in the others. BYTE_STREAM_SPLIT therefore groups all lowest
//! bytes, then all second ones, before zstd: half the size of compressed differences. Plain values
//! compress to a tenth less where a simulated device's times are sums of a few numbers, but take half
//! again as long. A constant column, such as that of a cause without a part, is compressed once;
//! `parquet`'s own writer would take 7 ns per value.
//!
//! Submission times are stored relative to the completion of the previous I/O:
//!
//! ```text
//! submit_ns          0        110        205       gap_ns   0, 10, -5, …
//! completed          └─ 100    └─ 210     └─ …     for the first I/O of a row group: its submit_ns
//! ```
//!
//! At queue depth 1 the next I/O follows at once, or after a pause that is mostly constant. A gap
//! then takes a few bits, whereas a submission time takes as many as the response time before it.
//! Row groups are independent, so that each can be read alone. Damaged numbers wrap around and fail
//! the plausibility check.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes as Content;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, RowGroupMetaDataPtr};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::ChunkReader;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnDescPtr;
use uflip_core::{Error, ErrorKind, Mode, Result};
use uflip_engine::Columns;
use zstd::bulk::Compressor;

use crate::pages::{Sizes, write_header};
use crate::row_parts;

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
    /// A mode number, written as its name.
    Mode,
}

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

/// The columns of the I/Os of a list.
pub(crate) const LIST_COLUMNS: [&str; 3] = ["offset_bytes", "io_size_bytes", "is_write"];

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
        row_parts(rows).try_for_each(|(from, to)| self.group(columns, from, to).map(drop))
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
                write_texts(
                    &mut group,
                    std::iter::repeat_n(ByteArray::from(value.as_str()), to - from),
                )?;
            }
            for (number, (values, kind)) in columns.iter().zip(&self.kinds).enumerate() {
                match kind {
                    ColumnKind::Mode => {
                        let names = (from..to).map(|row| Mode::NAMES[values.at(row) as usize]);
                        write_texts(&mut group, names.map(ByteArray::from))?;
                    }
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

fn write_texts<W: Write + Send>(
    group: &mut GroupWriter<'_, W>,
    values: impl Iterator<Item = ByteArray>,
) -> parquet::errors::Result<()> {
    let values: Vec<ByteArray> = values.collect();
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

/// Return the gaps of a row group.
pub(crate) fn gaps(submit_ns: &[u64], response_time_ns: &[u64]) -> Vec<u64> {
    let mut completed = 0;
    let times = submit_ns.iter().zip(response_time_ns);
    let gap = |(submit, time): (&u64, &u64)| {
        let gap = submit.wrapping_sub(completed);
        completed = submit.wrapping_add(*time);
        gap
    };
    times.map(gap).collect()
}

/// Turn the gaps of a row group back into submission times.
pub(crate) fn undo_gaps(gaps: &mut [u64], response_time_ns: &[u64]) {
    let mut completed = 0u64;
    for (gap, time) in gaps.iter_mut().zip(response_time_ns) {
        *gap = completed.wrapping_add(*gap);
        completed = gap.wrapping_add(*time);
    }
}

/// Of zstd: level 3 is 3 % smaller, and takes a third longer.
const LEVEL: i32 = 1;

/// A column chunk with its metadata.
pub(crate) type Chunk = (Content, ColumnCloseResult);

/// A constant column.
struct Constant {
    value: u64,
    rows: usize,
    bytes: Content,
    metadata: ColumnChunkMetaData,
}

/// Compresses the columns of one file.
pub(crate) struct Packer {
    compressor: Compressor<'static>,
    columns: Vec<(ColumnDescPtr, ColumnKind)>,
    /// The last constant chunk of each column.
    constants: Vec<Option<Constant>>,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Packer {
    /// Create the packer of a file with these columns.
    pub(crate) fn new(columns: Vec<(ColumnDescPtr, ColumnKind)>) -> std::io::Result<Packer> {
        let compressor = Compressor::new(LEVEL)?;
        let constants = columns.iter().map(|_| None).collect();
        let (plain, packed) = (Vec::new(), Vec::new());
        Ok(Packer { compressor, columns, constants, plain, packed })
    }

    /// Compress values `from` to `to` of column number `number`, for one row group.
    pub(crate) fn chunk(
        &mut self,
        number: usize,
        values: &ColumnData<'_>,
        from: usize,
        to: usize,
    ) -> parquet::errors::Result<Chunk> {
        let (column, kind) = &self.columns[number];
        let values = &*values.part(from, to);
        let (rows, first) = (values.len(), values.first().copied().unwrap_or_default());
        let constant = values.iter().all(|value| *value == first);
        if let Some(stored) = self.constants[number].as_ref().filter(|_| constant)
            && (stored.value, stored.rows) == (first, rows)
        {
            return Ok((stored.bytes.clone(), chunk_close_result(stored.metadata.clone(), rows)));
        }
        let encoding = match kind {
            ColumnKind::Stream => encode_plain::<4>(&mut self.plain, values),
            _ if constant => encode_plain::<8>(&mut self.plain, values),
            _ => encode_byte_stream_split(&mut self.plain, values),
        };
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.plain.len()));
        self.compressor.compress_to_buffer(&self.plain, &mut self.packed)?;
        let sizes = Sizes { unpacked: self.plain.len() as u64, packed: self.packed.len() as u64 };
        let mut bytes = Vec::with_capacity(self.packed.len() + 32);
        write_header(&mut bytes, sizes, rows, encoding);
        let header = bytes.len() as u64;
        bytes.extend_from_slice(&self.packed);
        let level = ZstdLevel::try_new(LEVEL).expect("a valid compression level");
        let metadata = ColumnChunkMetaData::builder(column.clone())
            .set_compression(Compression::ZSTD(level))
            .set_encodings(vec![encoding, Encoding::RLE])
            .set_num_values(rows as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size((header + sizes.unpacked) as i64)
            .set_data_page_offset(0)
            .set_statistics(statistics(values, *kind))
            .build()?;
        let bytes = Content::from(bytes);
        if constant {
            let (bytes, metadata) = (bytes.clone(), metadata.clone());
            self.constants[number] = Some(Constant { value: first, rows, bytes, metadata });
        }
        Ok((bytes, chunk_close_result(metadata, rows)))
    }
}

/// Return the description of a finished chunk for `parquet`.
pub(crate) fn chunk_close_result(metadata: ColumnChunkMetaData, rows: usize) -> ColumnCloseResult {
    ColumnCloseResult {
        bytes_written: metadata.compressed_size() as u64,
        rows_written: rows as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    }
}

fn encode_plain<const WIDTH: usize>(bytes: &mut Vec<u8>, values: &[u64]) -> Encoding {
    bytes.resize(values.len() * WIDTH, 0);
    for (bytes_of_value, value) in bytes.chunks_exact_mut(WIDTH).zip(values) {
        bytes_of_value.copy_from_slice(&value.to_le_bytes()[..WIDTH]);
    }
    Encoding::PLAIN
}

/// Write all lowest bytes, then all second ones, and so on.
fn encode_byte_stream_split(bytes: &mut Vec<u8>, values: &[u64]) -> Encoding {
    bytes.resize(values.len() * 8, 0);
    for (number, plane) in bytes.chunks_exact_mut(values.len()).enumerate() {
        for (byte, value) in plane.iter_mut().zip(values) {
            *byte = (value >> (8 * number)) as u8;
        }
    }
    Encoding::BYTE_STREAM_SPLIT
}

/// Return the minimum and maximum, by which a constant group is recognised.
fn statistics(values: &[u64], kind: ColumnKind) -> Statistics {
    let (min, max) = (values.iter().min().copied(), values.iter().max().copied());
    let signed = || values.iter().map(|value| *value as i64);
    let wide = |value: Option<u64>| value.map(|value| value as i64);
    let narrow = |value: Option<u64>| value.map(|value| value as i32);
    match kind {
        ColumnKind::Stream => Statistics::int32(narrow(min), narrow(max), None, Some(0), false),
        ColumnKind::Gap => Statistics::int64(signed().min(), signed().max(), None, Some(0), false),
        _ => Statistics::int64(wide(min), wide(max), None, Some(0), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_is_from_completion_to_next_submission() {
        let (submit, time) = ([7, 110, 205, u64::MAX], [93, 100, 1, 5]);
        let mut stored = gaps(&submit, &time);
        assert_eq!(stored[..3], [7, 10, 5u64.wrapping_neg()]);
        undo_gaps(&mut stored, &time);
        assert_eq!(stored, submit);
    }
}
