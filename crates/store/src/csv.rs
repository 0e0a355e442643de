//! Traces as CSV, batch by batch: a table of any length needs the memory of a few I/Os.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use uflip_core::{Error, Result};
use uflip_engine::PatternWalk;

use crate::ROWS_PER_GROUP;
use crate::columns::{MODES, column_names, window};
use crate::stored::StoredTrace;
use crate::table::column_indices;

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
    for from in (0..trace.len()).step_by(ROWS_PER_GROUP) {
        let to = trace.len().min(from + ROWS_PER_GROUP);
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
                        write!(out, ",{}", MODES[value as usize])?;
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
