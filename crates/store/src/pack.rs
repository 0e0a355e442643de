//! The measured columns of a trace as column chunks of one compressed page each.
//!
//! Times are noise in their low bytes and nearly constant in the others. BYTE_STREAM_SPLIT
//! therefore groups all lowest bytes, then all second ones, before zstd: half the size of
//! compressed differences. Plain values compress to a tenth less where a simulated device's times
//! are sums of a few numbers, but take half again as long. A constant column, such as that of a
//! cause without a part, is compressed once; `parquet`'s own writer would take 7 ns per value.

use bytes::Bytes as Content;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

use crate::columns::ColumnData;
use crate::pages::{Sizes, write_header};
use crate::write::ColumnKind;

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
