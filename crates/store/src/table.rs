//! A trace as one tidy table: every column, and the constants of the run in each row.

use std::path::Path;

use uflip_core::{Error, Result};
use uflip_engine::PatternWalk;

use crate::ROWS_A_GROUP;
use crate::columns::{ColumnData, column_names, window};
use crate::stored::StoredTrace;
use crate::write::{Kind, TableWriter, write_new};

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
    let (mut walk, places) = (PatternWalk::new(trace.pattern()), places(trace, columns));
    // An empty window, for the types of the columns.
    let empty = window(trace, &mut walk, 0, 0)?;
    let mut kinds = vec![("index".to_owned(), Kind::U64)];
    kinds.extend(columns.iter().zip(&places).map(|(name, place)| {
        let kind = place.map_or(Kind::U64, |place| empty[place].kind());
        (name.clone(), if name == "mode" { Kind::Mode } else { kind })
    }));
    write_new(path, |file| {
        let mut table = TableWriter::new(file, &texts, &kinds, Vec::new())?;
        for from in (0..trace.len()).step_by(ROWS_A_GROUP) {
            let to = trace.len().min(from + ROWS_A_GROUP);
            let there = window(trace, &mut walk, from, to).map_err(|error| error.to_string())?;
            let mut group = vec![ColumnData::U64((from as u64..to as u64).collect())];
            group.extend(places.iter().map(|place| match place {
                Some(place) => there[*place].clone(),
                None => ColumnData::U64(vec![0; to - from].into()),
            }));
            table.group(&group, 0, to - from)?;
        }
        table.finish()
    })
}

/// Return the index of each of `columns` in a [`window`]; `None` for a column that `trace` does not
/// have.
pub(crate) fn places(trace: &StoredTrace, columns: &[String]) -> Vec<Option<usize>> {
    let names: Vec<&str> = column_names(trace).collect();
    columns.iter().map(|wanted| names.iter().position(|name| name == wanted)).collect()
}

fn not_texts(got: &str) -> Error {
    Error::usage("The constant columns are not a JSON list of names and texts")
        .at("the columns that are the same in every row")
        .got(got)
        .allowed("pairs of texts")
        .action("write [[\"name\", \"text\"]]")
}
