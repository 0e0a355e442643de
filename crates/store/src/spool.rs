//! Where a long run goes while it lasts: row groups in a file without a name, in the order in which
//! they were full. It is gone with the process; what is kept is copied from it when the run is stored.

use std::path::PathBuf;

use parquet::file::metadata::RowGroupMetaDataPtr;
use uflip_core::{Error, Result};
use uflip_engine::{Columns, Outcome, Sink, Trace};

use crate::groups::{Groups, Source};
use crate::stored::StoredTrace;
use crate::write::{TableWriter, trace_kinds};

/// Takes the blocks of one run.
pub struct Spool {
    folder: PathBuf,
    /// Names of the causes.
    causes: Vec<String>,
    filling: Option<Filling>,
}

struct Filling {
    table: TableWriter<'static>,
    source: std::fs::File,
    /// The process and the description of each group, in the order of the file.
    groups: Vec<(usize, RowGroupMetaDataPtr)>,
}

impl Spool {
    /// In `folder`, for a device that knows `causes`. The folder is not looked at before a run is long.
    #[must_use]
    pub fn new(folder: PathBuf, causes: Vec<String>) -> Spool {
        Spool { folder, causes, filling: None }
    }

    fn failed(&self, message: impl ToString) -> Error {
        Error::device("The I/Os of a run cannot be written while it lasts")
            .at(self.folder.display().to_string())
            .got(message.to_string())
            .action("check that the file system is not full and may be written")
    }

    fn begin(&self) -> std::io::Result<Filling> {
        let file = tempfile::tempfile_in(&self.folder)?;
        let source = file.try_clone()?;
        let table = TableWriter::new(file, &[], &trace_kinds(&self.causes), Vec::new());
        let table = table.map_err(std::io::Error::other)?;
        Ok(Filling { table, source, groups: Vec::new() })
    }

    fn write(&mut self, process: usize, block: &Columns) -> Result<()> {
        if block.is_empty() {
            return Ok(());
        }
        let mut filling = match self.filling.take() {
            Some(filling) => filling,
            None => self.begin().map_err(|error| self.failed(error))?,
        };
        let written = filling.table.trace_group(process as u16, block);
        filling.groups.push((process, written.map_err(|error| self.failed(error))?));
        self.filling = Some(filling);
        Ok(())
    }

    /// The trace of the run that is over.
    ///
    /// # Errors
    /// The last I/Os cannot be written.
    pub fn finish(mut self, outcome: Outcome) -> Result<StoredTrace> {
        let Outcome { pattern, causes, ended, rest } = outcome;
        if self.filling.is_none() {
            let columns = Columns::concat(rest, causes.len());
            return Ok(StoredTrace::in_memory(Trace { pattern, columns, causes, ended }));
        }
        for (process, columns) in rest.iter().enumerate() {
            self.write(process, columns)?;
        }
        let filling = self.filling.take().expect("it was there above");
        let (mut written, source) = (filling.groups, filling.source);
        filling.table.finish().map_err(|error| self.failed(error))?;
        // Rows stand stream after stream.
        written.sort_by_key(|(process, _)| *process);
        let source = Source::new(source).map_err(|error| self.failed(error))?;
        let mut groups = Groups::new(source);
        let mut left: Vec<usize> =
            pattern.streams.iter().map(|stream| stream.total_ios as usize).collect();
        for (process, metadata) in written {
            let rows = left[process].min(metadata.num_rows() as usize);
            left[process] -= rows;
            groups.push(metadata, rows, process as u16);
        }
        let columns = Columns::of(causes.len());
        Ok(StoredTrace::in_file(Trace { pattern, columns, causes, ended }, groups))
    }
}

impl Sink for Spool {
    fn take(&mut self, process: usize, block: Columns) -> Result<()> {
        self.write(process, &block)
    }
}
