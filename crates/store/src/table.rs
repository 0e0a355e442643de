//! A trace as one tidy table: every column, and what is the same for all rows beside it.

use std::path::Path;

use serde_json::Value;
use uflip_core::{Error, Result};
use uflip_engine::Trace;

use crate::columns::{column, column_names};
use crate::write::write_columns;

/// Write every column of `trace` and the text columns `constants` (a JSON object of strings) to the
/// new file `path`, and sync it.
///
/// # Errors
/// `constants` is not an object of strings; the file exists or cannot be written.
pub fn write_table(trace: &Trace, path: &Path, constants: &str) -> Result<()> {
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
    let names: Vec<&str> = column_names(trace).collect();
    let columns = names
        .into_iter()
        .map(|name| Ok((name.to_owned(), column(trace, name)?)))
        .collect::<Result<Vec<_>>>()?;
    write_columns(path, &texts, &columns, trace.len(), Vec::new())
}

fn not_texts(got: &str) -> Error {
    Error::usage("The constant columns are not a JSON object of texts")
        .at("the columns that are the same in every row")
        .got(got)
        .allowed("names and texts")
        .action("write {\"name\": \"text\"}")
}
