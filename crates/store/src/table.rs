//! A trace as one tidy table: every column, and the constants of the run in each row.

use std::path::Path;

use uflip_core::{Error, Result};
use uflip_engine::PatternWalk;

use crate::ROWS_PER_GROUP;
use crate::columns::{ColumnData, column_names, window};
use crate::stored::StoredTrace;
use crate::write::{ColumnKind, TableWriter, write_new};

/// Write the text columns `constants` (a JSON list of names and texts), the number of each I/O and
/// `columns` to the new file `path`, and sync it. Modes are words, and columns that `trace` does
/// not have are 0, as in [`crate::append_csv`].
///
/// # Errors
/// If `constants` is not such a list; if the file exists or cannot be written.
pub fn write_table(
    trace: &StoredTrace,
    path: &Path,
    constants: &str,
    columns: &[String],
) -> Result<()> {
    let texts: Vec<(String, String)> =
        serde_json::from_str(constants).map_err(|_| not_texts(constants))?;
    let (mut walk, indices) = (PatternWalk::new(trace.pattern()), column_indices(trace, columns));
    // An empty window, for the types of the columns.
    let empty = window(trace, &mut walk, 0, 0)?;
    let mut kinds = vec![("index".to_owned(), ColumnKind::U64)];
    kinds.extend(columns.iter().zip(&indices).map(|(name, index)| {
        let kind = index.map_or(ColumnKind::U64, |index| empty[index].kind());
        (name.clone(), if name == "mode" { ColumnKind::Mode } else { kind })
    }));
    write_new(path, |file| {
        let mut table = TableWriter::new(file, &texts, &kinds, Vec::new())?;
        for from in (0..trace.len()).step_by(ROWS_PER_GROUP) {
            let to = trace.len().min(from + ROWS_PER_GROUP);
            let columns = window(trace, &mut walk, from, to).map_err(|error| error.to_string())?;
            let mut group = vec![ColumnData::U64((from as u64..to as u64).collect())];
            group.extend(indices.iter().map(|index| match index {
                Some(index) => columns[*index].clone(),
                None => ColumnData::U64(vec![0; to - from].into()),
            }));
            table.group(&group, 0, to - from)?;
        }
        table.finish()
    })
}

/// Return the index of each of `columns` in a [`window`]; `None` for a column that `trace` does not
/// have.
pub(crate) fn column_indices(trace: &StoredTrace, columns: &[String]) -> Vec<Option<usize>> {
    let names: Vec<&str> = column_names(trace).collect();
    columns.iter().map(|column| names.iter().position(|name| name == column)).collect()
}

fn not_texts(got: &str) -> Error {
    Error::usage("The constant columns are not a JSON list of names and texts")
        .at("the columns that are the same in every row")
        .got(got)
        .allowed("pairs of texts")
        .action("write [[\"name\", \"text\"]]")
}
