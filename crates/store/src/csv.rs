//! A trace as lines of text, batch by batch: a table of any length needs the memory of a few I/Os.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use uflip_core::{Error, Result};
use uflip_engine::Walk;

use crate::ROWS_A_GROUP;
use crate::columns::{MODES, column_names, window};
use crate::stored::StoredTrace;

/// Append a line an I/O to the file `path`: `prefix` as it is, if there is one, the number of the I/O, then
/// `columns`, empty where this trace has none of that name. Modes are words.
///
/// # Errors
/// The trace cannot be read, or the file not be written.
pub fn append_csv(
    trace: &StoredTrace,
    path: &Path,
    prefix: Option<&str>,
    columns: &[String],
) -> Result<()> {
    let names: Vec<&str> = column_names(trace).collect();
    let places: Vec<Option<usize>> =
        columns.iter().map(|wanted| names.iter().position(|name| name == wanted)).collect();
    let mode = names.iter().position(|name| *name == "mode");
    let failed = |error: &std::io::Error| {
        Error::os("The table cannot be written", path.display().to_string(), error)
            .action("check that the file system is not full and may be written")
    };
    let file = OpenOptions::new().append(true).open(path).map_err(|error| failed(&error))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut walk = Walk::new(trace.pattern());
    for from in (0..trace.len()).step_by(ROWS_A_GROUP) {
        let to = trace.len().min(from + ROWS_A_GROUP);
        let values = window(trace, &mut walk, from, to)?;
        let mut lines = || -> std::io::Result<()> {
            for row in 0..to - from {
                if let Some(prefix) = prefix {
                    write!(out, "{prefix},")?;
                }
                write!(out, "{}", from + row)?;
                for place in &places {
                    out.write_all(b",")?;
                    let Some(place) = *place else { continue };
                    if Some(place) == mode {
                        out.write_all(MODES[values[place].at(row) as usize].as_bytes())?;
                    } else {
                        write!(out, "{}", values[place].at(row))?;
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
