//! The spool of a long run: full blocks are stored as row groups during the run, in order of
//! completion. They stay in memory, where a packed I/O takes a fraction of its columns; beyond
//! [`MEMORY_BYTES`] they go to an anonymous file, if there is a folder for it. The file disappears
//! with the process; storing the run copies the trace from it.

use std::path::PathBuf;

use tempfile::{SpooledData, SpooledTempFile};

use parquet::file::metadata::RowGroupMetaDataPtr;
use uflip_core::{Error, Result};
use uflip_engine::{Columns, RunOutcome, Sink, Trace};

use crate::row_groups::{ByteSource, RowGroups};
use crate::stored_trace::StoredTrace;
use crate::table::{TableWriter, trace_kinds};

/// The memory limit [bytes]; a larger spool goes to a file.
const MEMORY_BYTES: usize = 2 << 20;

/// The sink of one run.
pub struct Spool {
    /// `None`: everything stays in memory.
    folder: Option<PathBuf>,
    /// The names of the causes.
    causes: Vec<String>,
    table: Option<SpoolTable>,
}

struct SpoolTable {
    table: TableWriter<'static, SpooledTempFile>,
    /// The process and description of each group, in the order of the file.
    groups: Vec<(usize, RowGroupMetaDataPtr)>,
}

impl Spool {
    /// Create a spool for a device that reports `causes`. Data beyond the memory limit goes to
    /// `folder`, which is accessed only then; without a folder it stays in memory.
    #[must_use]
    pub fn new(folder: Option<PathBuf>, causes: Vec<String>) -> Spool {
        Spool { folder, causes, table: None }
    }

    fn failed(&self, message: impl ToString) -> Error {
        let location = self.folder.as_ref().map(|folder| folder.display().to_string());
        Error::device("The I/Os of a run cannot be written during the run")
            .at(location.unwrap_or_else(|| "memory".to_owned()))
            .got(message.to_string())
            .action("check that the file system is not full and may be written")
    }

    fn begin(&self) -> std::result::Result<SpoolTable, String> {
        let file = match &self.folder {
            Some(folder) => SpooledTempFile::new_in(MEMORY_BYTES, folder),
            None => SpooledTempFile::new(usize::MAX),
        };
        let table = TableWriter::new(file, &[], &trace_kinds(&self.causes), Vec::new())?;
        Ok(SpoolTable { table, groups: Vec::new() })
    }

    fn write(&mut self, process: usize, block: &Columns) -> Result<()> {
        if block.is_empty() {
            return Ok(());
        }
        let mut spool_table = match self.table.take() {
            Some(spool_table) => spool_table,
            None => self.begin().map_err(|error| self.failed(error))?,
        };
        let written = spool_table.table.trace_group(process as u16, block);
        spool_table.groups.push((process, written.map_err(|error| self.failed(error))?));
        self.table = Some(spool_table);
        Ok(())
    }

    /// Return the trace of the completed run.
    ///
    /// # Errors
    /// If the last I/Os cannot be written.
    pub fn finish(mut self, outcome: RunOutcome) -> Result<StoredTrace> {
        let RunOutcome { pattern, causes, stop_record, rest } = outcome;
        if self.table.is_none() {
            let columns = Columns::concat(rest, causes.len());
            return Ok(StoredTrace::in_memory(Trace { pattern, columns, causes, stop_record }));
        }
        for (process, columns) in rest.iter().enumerate() {
            self.write(process, columns)?;
        }
        let spool_table = self.table.take().expect("the spool has a table");
        let mut written = spool_table.groups;
        let file = spool_table.table.finish().map_err(|error| self.failed(error))?;
        // A trace is ordered by process.
        written.sort_by_key(|(process, _)| *process);
        let source = match file.into_inner() {
            SpooledData::InMemory(bytes) => ByteSource::in_memory(bytes.into_inner()),
            SpooledData::OnDisk(file) => {
                ByteSource::new(file).map_err(|error| self.failed(error))?
            }
        };
        let mut groups = RowGroups::new(source);
        let mut remaining: Vec<usize> =
            pattern.streams.iter().map(|stream| stream.total_ios as usize).collect();
        for (process, metadata) in written {
            let rows = remaining[process].min(metadata.num_rows() as usize);
            remaining[process] -= rows;
            groups.push(metadata, rows, process as u16);
        }
        let columns = Columns::empty(causes.len());
        Ok(StoredTrace::in_file(Trace { pattern, columns, causes, stop_record }, groups))
    }
}

impl Sink for Spool {
    fn take(&mut self, process: usize, block: Columns) -> Result<()> {
        self.write(process, &block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_core::Bytes;
    use uflip_engine::PatternSpec;

    /// Return pseudo-random numbers, which do not compress.
    fn numbers(count: usize, seed: u64) -> Vec<u64> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state >> 20
        };
        (0..count).map(next).collect()
    }

    fn columns(count: usize, seed: u64) -> Columns {
        let column = |number| numbers(count, seed * 10 + number);
        Columns {
            submit_ns: column(0),
            response_time_ns: column(1),
            cause_ns: vec![column(2), vec![0; count]],
        }
    }

    /// Compares the same blocks in memory and in a file with their source columns.
    #[test]
    fn spooled_blocks_are_returned_by_stream() {
        let one = r#"{"kind": "basic", "mode": "read", "location": "random", "io_size": 4096,
            "io_count": 50000}"#;
        let spec = format!(r#"{{"kind": "parallel", "patterns": [{one}, {one}]}}"#);
        let spec = PatternSpec::parse(&spec).expect("a valid pattern");
        let pattern =
            spec.resolve(Bytes(1 << 30), Bytes(512)).expect("the pattern fits the device");
        let ios: Vec<usize> = pattern.streams.iter().map(|s| s.total_ios as usize).collect();
        let folder = tempfile::tempdir().expect("create a temporary folder");
        for folder in [None, Some(folder.path().to_owned())] {
            let causes = vec!["one_ns".to_owned(), "two_ns".to_owned()];
            let mut spool = Spool::new(folder, causes.clone());
            let mut whole: Vec<Vec<Columns>> = vec![Vec::new(); 2];
            let mut rest: Vec<Columns> = Vec::new();
            for from in (0..40_000).step_by(10_000) {
                for (process, own) in whole.iter_mut().enumerate() {
                    let block = columns(10_000, (from + process) as u64);
                    own.push(block.clone());
                    spool.take(process, block).expect("write the block");
                }
            }
            for (process, own) in whole.iter_mut().enumerate() {
                let block = columns(ios[process] - 40_000, 7 + process as u64);
                own.push(block.clone());
                rest.push(block);
            }
            let stop_record = None;
            let outcome = RunOutcome { pattern: pattern.clone(), causes, stop_record, rest };
            let trace = spool.finish(outcome).expect("finish the spool");
            let whole = Columns::concat(whole.into_iter().flatten().collect(), 2);
            let expected = [&whole.submit_ns, &whole.response_time_ns].into_iter();
            for (number, expected) in expected.chain(&whole.cause_ns).enumerate() {
                for (from, to) in [(0, ios[0] + ios[1]), (9_999, 50_003), (60_000, 60_000)] {
                    let read = trace.measured(1 + number, from, to).expect("read the column");
                    assert_eq!(read[..], expected[from..to], "column {number} from {from}");
                }
            }
        }
    }
}
