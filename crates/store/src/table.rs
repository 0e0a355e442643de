//! A trace as one tidy table: every column, and what is the same for all rows beside it.

use std::path::Path;

use serde_json::Value;
use uflip_core::{Error, Result};
use uflip_engine::Walk;

use crate::ROWS_A_GROUP;
use crate::columns::{ColumnData, column_names, window};
use crate::stored::StoredTrace;
use crate::write::{Kind, TableWriter, write_new};

/// Write every column of `trace` and the text columns `constants` (a JSON object of strings) to the
/// new file `path`, and sync it.
///
/// # Errors
/// `constants` is not an object of strings; the file exists or cannot be written.
pub fn write_table(trace: &StoredTrace, path: &Path, constants: &str) -> Result<()> {
    let texts = match serde_json::from_str(constants) {
        Ok(Value::Object(map)) => map
            .into_iter()
            .map(|(name, value)| match value {
                Value::String(text) => Ok((name, text)),
                other => Err(not_texts(&other.to_string())),
            })
            .collect::<Result<Vec<_>>>()?,
        _ => return Err(not_texts(constants)),
    };
    let (mut walk, names) = (Walk::new(trace.pattern()), column_names(trace));
    // Of no I/O, for what the columns are.
    let empty = window(trace, &mut walk, 0, 0)?;
    let kinds: Vec<(String, Kind)> =
        names.map(str::to_owned).zip(empty.iter().map(ColumnData::kind)).collect();
    write_new(path, |file| {
        let mut table = TableWriter::new(file, &texts, &kinds, Vec::new())?;
        for from in (0..trace.len()).step_by(ROWS_A_GROUP) {
            let to = trace.len().min(from + ROWS_A_GROUP);
            let columns = window(trace, &mut walk, from, to).map_err(|error| error.to_string())?;
            table.group(&columns, 0, to - from)?;
        }
        table.finish()
    })
}

fn not_texts(got: &str) -> Error {
    Error::usage("The constant columns are not a JSON object of texts")
        .at("the columns that are the same in every row")
        .got(got)
        .allowed("names and texts")
        .action("write {\"name\": \"text\"}")
}
