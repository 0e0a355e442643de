//! The row groups of a trace, in a file or in memory: read one by one, so that a trace of any
//! length needs the memory of one.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes as Content;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::Int64Type;
use parquet::file::metadata::page_index::RowGroupPageIndex;
use parquet::file::metadata::{RowGroupMetaData, RowGroupMetaDataPtr};
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::{ChunkReader, Length, RowGroupReader};
use parquet::file::serialized_reader::SerializedRowGroupReader;
use parquet::file::statistics::Statistics;
use uflip_engine::Columns;

use crate::pages;
use crate::safe_read::contained;
use crate::table::{self, TableWriter, chunk_close_result};

/// The number of columns before the causes in a file.
pub(crate) const BEFORE_CAUSES: usize = 3;

/// The index of the submission column; the response times follow it.
const SUBMIT: usize = 1;

/// A source of bytes that threads may read concurrently.
#[derive(Clone)]
pub(crate) struct ByteSource {
    storage: SourceStorage,
    length: u64,
}

#[derive(Clone)]
enum SourceStorage {
    File(Arc<File>),
    Memory(Content),
}

/// A reader of a source from a position on.
pub(crate) struct SourceReader {
    storage: SourceStorage,
    position: u64,
}

impl Read for SourceReader {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = match &self.storage {
            SourceStorage::File(file) => file.read_at(into, self.position)?,
            SourceStorage::Memory(bytes) => {
                let from = bytes.len().min(self.position as usize);
                (&bytes[from..]).read(into)?
            }
        };
        self.position += read as u64;
        Ok(read)
    }
}

impl ByteSource {
    pub(crate) fn new(file: File) -> std::io::Result<ByteSource> {
        let length = file.metadata()?.len();
        Ok(ByteSource { storage: SourceStorage::File(Arc::new(file)), length })
    }

    pub(crate) fn in_memory(bytes: Vec<u8>) -> ByteSource {
        let length = bytes.len() as u64;
        ByteSource { storage: SourceStorage::Memory(bytes.into()), length }
    }
}

impl Length for ByteSource {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for ByteSource {
    type T = BufReader<SourceReader>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(SourceReader { storage: self.storage.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Content> {
        match &self.storage {
            SourceStorage::File(file) => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, start)?;
                Ok(bytes.into())
            }
            SourceStorage::Memory(bytes) => {
                let from = start as usize;
                let part = from.checked_add(length).filter(|to| *to <= bytes.len());
                let truncated =
                    || parquet::errors::ParquetError::EOF("bytes beyond the end".into());
                Ok(bytes.slice(from..part.ok_or_else(truncated)?))
            }
        }
    }
}

/// Return the value of a constant column, from its statistics: mostly 0, for a cause without a
/// part. If the statistics of a foreign file are wrong, the causes do not sum to the response
/// times, which are always read.
pub(crate) fn constant_value(statistics: &Statistics) -> Option<i64> {
    let Statistics::Int64(range) = statistics else { return None };
    let exact =
        range.min_is_exact() && range.max_is_exact() && statistics.null_count_opt() == Some(0);
    range.min_opt().filter(|least| exact && range.max_opt() == Some(least)).copied()
}

/// A row group of a trace.
struct TraceGroup {
    /// The index of its first row in the trace.
    first: usize,
    /// The number of its rows that belong to the trace: the last I/Os of a process may be excluded.
    rows: usize,
    /// The process, for a row group that belongs to the trace in part.
    process: u16,
    metadata: RowGroupMetaDataPtr,
}

/// The row groups of a trace in the order of its rows.
pub(crate) struct RowGroups {
    source: ByteSource,
    groups: Vec<TraceGroup>,
    rows: usize,
}

impl RowGroups {
    pub(crate) fn new(source: ByteSource) -> RowGroups {
        RowGroups { source, groups: Vec::new(), rows: 0 }
    }

    /// Append a group: its first `rows` rows belong to the trace.
    pub(crate) fn push(&mut self, metadata: RowGroupMetaDataPtr, rows: usize, process: u16) {
        self.groups.push(TraceGroup { first: self.rows, rows, process, metadata });
        self.rows += rows;
    }

    /// Return the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Return rows `from` to `to` of column number `column`; for [`SUBMIT`], as submission times.
    pub(crate) fn read(&self, column: usize, from: usize, to: usize) -> Result<Vec<u64>, String> {
        let begin = self.groups.partition_point(|group| group.first + group.rows <= from);
        let mut values = Vec::new();
        values.try_reserve_exact(to - from).map_err(|_| "not enough memory".to_owned())?;
        for group in self.groups[begin..].iter().take_while(|group| group.first < to) {
            let skipped = from.saturating_sub(group.first);
            let rows = group.rows.min(to - group.first) - skipped;
            if column == SUBMIT {
                values.extend_from_slice(&self.submission_times(group, skipped + rows)?[skipped..]);
                continue;
            }
            let read = contained(|| self.read_group(group, column, skipped, rows))?;
            values.extend(read?.into_iter().map(|value| value as u64));
        }
        Ok(values)
    }

    /// Return the submission times of the first `rows` of a group that stores gaps.
    fn submission_times(&self, group: &TraceGroup, rows: usize) -> Result<Vec<u64>, String> {
        let column = |number| contained(|| self.read_group(group, number, 0, rows))?;
        let unsigned = |values: Vec<i64>| values.into_iter().map(|value| value as u64).collect();
        let (mut times, response_times): (Vec<u64>, Vec<u64>) =
            (unsigned(column(SUBMIT)?), unsigned(column(SUBMIT + 1)?));
        table::undo_gaps(&mut times, &response_times);
        Ok(times)
    }

    fn read_group(
        &self,
        group: &TraceGroup,
        column: usize,
        skipped: usize,
        rows: usize,
    ) -> Result<Vec<i64>, String> {
        let constant = group.metadata.column(column).statistics().and_then(constant_value);
        if let (Some(value), true) = (constant, column >= BEFORE_CAUSES) {
            return Ok(vec![value; rows]);
        }
        let group_rows = group.metadata.num_rows().unsigned_abs();
        pages::check(&self.source, group.metadata.column(column), group_rows)?;
        let read = || -> parquet::errors::Result<(usize, Vec<i64>)> {
            let reader = self.reader(&group.metadata)?;
            let chunk = reader.get_column_reader(column)?;
            let mut typed = get_typed_column_reader::<Int64Type>(chunk);
            let mut values = Vec::with_capacity(rows);
            typed.skip_records(skipped)?;
            let (records, _, _) = typed.read_records(rows, None, None, &mut values)?;
            Ok((records, values))
        };
        let (records, values) = read().map_err(|error| error.to_string())?;
        if records == rows && values.len() == rows {
            return Ok(values);
        }
        Err(format!("{records} of {rows} rows"))
    }

    fn reader<'a>(
        &self,
        metadata: &'a RowGroupMetaData,
    ) -> parquet::errors::Result<SerializedRowGroupReader<'a, ByteSource>> {
        let properties = Arc::new(ReaderProperties::builder().build());
        let source = Arc::new(self.source.clone());
        SerializedRowGroupReader::new(source, metadata, RowGroupPageIndex::new(0, None), properties)
    }

    /// Return rows `from` to `to` of all measured columns, with `causes` causes.
    pub(crate) fn columns(&self, from: usize, to: usize, causes: usize) -> Result<Columns, String> {
        let cause = |number| self.read(BEFORE_CAUSES + number, from, to);
        Ok(Columns {
            submit_ns: self.read(SUBMIT, from, to)?,
            response_time_ns: self.read(SUBMIT + 1, from, to)?,
            cause_ns: (0..causes).map(cause).collect::<Result<_, String>>()?,
        })
    }

    /// Copy all rows to another file with the same columns. Whole groups are copied as they are,
    /// others row by row.
    pub(crate) fn copy_to<W: Write + Send>(
        &self,
        table: &mut TableWriter<'_, W>,
        causes: usize,
    ) -> Result<(), String> {
        for group in &self.groups {
            if group.rows as i64 == group.metadata.num_rows() {
                let chunks = group.metadata.columns().iter();
                let chunks = chunks.map(|chunk| chunk_close_result(chunk.clone(), group.rows));
                table.append(&self.source, chunks).map_err(|error| error.to_string())?;
            } else if group.rows > 0 {
                let (from, to) = (group.first, group.first + group.rows);
                let columns = self.columns(from, to, causes)?;
                table.trace_group(group.process, &columns)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::{Sizes, write_header};
    use crate::read::{FOOTER, PACKED_VALUES};
    use crate::table::trace_kinds;

    const BLOCK: usize = 1 << 14;

    /// Reads with a constant response time: the smallest block.
    fn block() -> Columns {
        let submit_ns = (0..BLOCK as u64).map(|index| 100 * index).collect();
        let mut cause_ns = vec![vec![0; BLOCK]; 17];
        (cause_ns[3], cause_ns[4]) = (vec![60; BLOCK], vec![40; BLOCK]);
        Columns { submit_ns, response_time_ns: vec![100; BLOCK], cause_ns }
    }

    fn written_groups(blocks: usize) -> (Vec<u8>, RowGroups) {
        let causes: Vec<String> = (b'a'..=b'q').map(|name| char::from(name).to_string()).collect();
        let mut table = TableWriter::new(Vec::new(), &[], &trace_kinds(&causes), Vec::new())
            .expect("begin the table");
        let (mut described, columns) = (Vec::new(), block());
        for _ in 0..blocks {
            described.push(table.trace_group(0, &columns).expect("write the group"));
        }
        let bytes = table.finish().expect("finish the table");
        let mut groups = RowGroups::new(ByteSource::in_memory(bytes.clone()));
        described.into_iter().for_each(|group| groups.push(group, BLOCK, 0));
        (bytes, groups)
    }

    #[test]
    fn footer_of_a_long_minimal_run_stays_within_limits() {
        let [few, many] = [2, 12].map(|blocks| {
            let bytes = written_groups(blocks).0;
            let footer = &bytes[bytes.len() - 8..][..4];
            let footer = u32::from_le_bytes(footer.try_into().expect("4 bytes"));
            (bytes.len() as u64, u64::from(footer))
        });
        let (bytes, footer) = (many.0 - few.0, many.1 - few.1);
        // A run of 80 million I/Os still stays within the limits.
        assert!(500 * footer < FOOTER, "{footer} bytes for ten blocks");
        assert!(
            3 * 10 * BLOCK as u64 * 20 < 2 * bytes * PACKED_VALUES,
            "{bytes} bytes for ten blocks"
        );
    }

    #[test]
    fn packed_groups_round_trip_with_and_without_causes() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state >> (state % 64)
        };
        let mut numbers = || (0..BLOCK).map(|_| next()).collect::<Vec<u64>>();
        for causes in [0, 1, 4] {
            let names: Vec<String> = (0..causes).map(|number| format!("{number}_ns")).collect();
            let columns = Columns {
                submit_ns: numbers(),
                response_time_ns: numbers(),
                cause_ns: (0..causes).map(|_| numbers()).collect(),
            };
            let mut table = TableWriter::new(Vec::new(), &[], &trace_kinds(&names), Vec::new())
                .expect("begin the table");
            let described = table.trace_group(3, &columns).expect("write the group");
            let mut groups =
                RowGroups::new(ByteSource::in_memory(table.finish().expect("finish the table")));
            groups.push(described, BLOCK, 3);
            assert_eq!(groups.columns(0, BLOCK, causes), Ok(columns));
        }
    }

    #[test]
    fn decompression_bomb_is_refused_before_unpacking() {
        let (bytes, groups) = written_groups(1);
        let chunk = groups.groups[0].metadata.column(SUBMIT);
        let offset = chunk.data_page_offset() as usize;
        let mut bomb = bytes[..offset].to_vec();
        let sizes = Sizes { unpacked: i32::MAX as u64, packed: 9 };
        write_header(&mut bomb, sizes, BLOCK, parquet::basic::Encoding::PLAIN);
        bomb.extend_from_slice(&bytes[offset..]);
        let mut hostile = RowGroups::new(ByteSource::in_memory(bomb));
        hostile.push(groups.groups[0].metadata.clone(), BLOCK, 0);
        let error = hostile.read(SUBMIT, 0, 1).expect_err("the group is too large");
        assert!(error.contains("packed, for 16384 rows"), "{error}");
    }

    #[test]
    fn constant_cause_is_read_from_statistics() {
        let (_, groups) = written_groups(2);
        let constants: Vec<Option<i64>> = (0..20)
            .map(|column| {
                let chunk = groups.groups[1].metadata.column(column);
                chunk.statistics().and_then(constant_value)
            })
            .collect();
        let expected = block();
        for (number, column) in expected.cause_ns.iter().enumerate() {
            assert_eq!(constants[BEFORE_CAUSES + number], Some(column[0] as i64));
            let read = groups.read(BEFORE_CAUSES + number, 5, 2 * BLOCK).expect("read the column");
            assert_eq!(read, vec![column[0]; 2 * BLOCK - 5]);
        }
        let read = groups.read(SUBMIT, BLOCK, 2 * BLOCK).expect("read the column");
        assert_eq!(read, expected.submit_ns);
    }
}
