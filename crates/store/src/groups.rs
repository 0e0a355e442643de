//! The row groups of a file: read one by one, so that a trace of any length needs the memory of one.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes as Content;
use parquet::column::reader::get_typed_column_reader;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::Int64Type;
use parquet::file::metadata::page_index::RowGroupPageIndex;
use parquet::file::metadata::{RowGroupMetaData, RowGroupMetaDataPtr};
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::{ChunkReader, Length, RowGroupReader};
use parquet::file::serialized_reader::SerializedRowGroupReader;
use uflip_engine::Columns;

use crate::contain::contained;
use crate::write::TableWriter;

/// Columns before those of the causes, in the order of a file.
const BEFORE_CAUSES: usize = 3;

/// A file that threads may read at the same time.
#[derive(Clone)]
pub(crate) struct Source {
    file: Arc<File>,
    length: u64,
}

/// Reads a source from somewhere on.
pub(crate) struct From {
    file: Arc<File>,
    position: u64,
}

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(into, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Source {
    pub(crate) fn new(file: File) -> std::io::Result<Source> {
        let length = file.metadata()?.len();
        Ok(Source { file: Arc::new(file), length })
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Source {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(From { file: Arc::clone(&self.file), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Content> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// Rows of a trace that stand together in its file.
struct Group {
    /// The first of them, in the trace.
    first: usize,
    /// How many of them belong to the trace: the last ones of a process may be too many.
    rows: usize,
    /// Whose they are, where not all of them belong to it.
    process: u16,
    metadata: RowGroupMetaDataPtr,
}

/// The row groups of a trace in the order of its rows, with the columns of a trace file.
pub(crate) struct Groups {
    source: Source,
    groups: Vec<Group>,
    rows: usize,
}

impl Groups {
    pub(crate) fn new(source: Source) -> Groups {
        Groups { source, groups: Vec::new(), rows: 0 }
    }

    /// The next `rows` of the trace are the first ones of the group that `metadata` describes: all of
    /// them, or those of one process.
    pub(crate) fn push(&mut self, metadata: RowGroupMetaDataPtr, rows: usize, process: u16) {
        self.groups.push(Group { first: self.rows, rows, process, metadata });
        self.rows += rows;
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Rows `from` to `to` of column number `column` of the file.
    pub(crate) fn read(&self, column: usize, from: usize, to: usize) -> Result<Vec<u64>, String> {
        let begin = self.groups.partition_point(|group| group.first + group.rows <= from);
        let mut values = Vec::new();
        values.try_reserve_exact(to - from).map_err(|_| "not enough memory".to_owned())?;
        for group in self.groups[begin..].iter().take_while(|group| group.first < to) {
            let skipped = from.saturating_sub(group.first);
            let rows = group.rows.min(to - group.first) - skipped;
            let read = contained(|| self.read_group(group, column, skipped, rows))?;
            values.extend(read?.into_iter().map(|value| value as u64));
        }
        Ok(values)
    }

    fn read_group(
        &self,
        group: &Group,
        column: usize,
        skipped: usize,
        rows: usize,
    ) -> Result<Vec<i64>, String> {
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
    ) -> parquet::errors::Result<SerializedRowGroupReader<'a, Source>> {
        let properties = Arc::new(ReaderProperties::builder().build());
        let source = Arc::new(self.source.clone());
        SerializedRowGroupReader::new(source, metadata, RowGroupPageIndex::new(0, None), properties)
    }

    /// Rows `from` to `to` of what was measured, with `causes` as many columns of them.
    pub(crate) fn columns(&self, from: usize, to: usize, causes: usize) -> Result<Columns, String> {
        let cause = |number| self.read(BEFORE_CAUSES + number, from, to);
        Ok(Columns {
            submit_ns: self.read(1, from, to)?,
            response_time_ns: self.read(2, from, to)?,
            cause_ns: (0..causes).map(cause).collect::<Result<_, String>>()?,
        })
    }

    /// Copy all rows to another file with the same columns: groups as they are, the bytes of theirs that
    /// belong to the trace.
    pub(crate) fn copy_to(&self, table: &mut TableWriter<'_>, causes: usize) -> Result<(), String> {
        for group in &self.groups {
            if group.rows as i64 == group.metadata.num_rows() {
                let chunks = group.metadata.columns().iter().map(|chunk| ColumnCloseResult {
                    bytes_written: chunk.compressed_size() as u64,
                    rows_written: group.rows as u64,
                    metadata: chunk.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                });
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
