//! The record of the inside of a simulated device during a run: integer columns in one file.
//!
//! Columns belong to tables of different lengths. Shorter ones are padded with zeros, which take
//! almost no space; the metadata contains each length.
//!
//! The format has a version (`uflip.inside_version`); a file of any other version is refused. The version
//! does not depend on the set of columns.

use std::collections::BTreeMap;
use std::path::Path;

use parquet::file::metadata::KeyValue;
use uflip_core::{Error, ErrorKind, Result};

use crate::digest::Digest;
use crate::read::{Problem, Table, read_table};
use crate::safe_read::contained;
use crate::table::{ColumnData, write_columns};
use crate::version_error;

const VERSION: &str = "1";
const KEY_VERSION: &str = "uflip.inside_version";
const KEY_LENGTHS: &str = "uflip.inside_lengths";
const KEY_ABOUT: &str = "uflip.inside";

/// Columns by name.
pub type Inside = Vec<(String, Vec<u64>)>;

/// Write `columns`, with `about` (JSON) as metadata, to the new file `path`, and sync it.
///
/// # Errors
/// If the file exists, or cannot be written.
pub fn write_inside(columns: &[(String, Vec<u64>)], path: &Path, about: &str) -> Result<()> {
    let rows = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let lengths: BTreeMap<&str, usize> =
        columns.iter().map(|(name, values)| (name.as_str(), values.len())).collect();
    let lengths = serde_json::to_string(&lengths).expect("serializable");
    let filled: Vec<(String, ColumnData<'_>)> = columns
        .iter()
        .map(|(name, values)| {
            let mut values = values.clone();
            values.resize(rows, 0);
            (name.clone(), ColumnData::U64(values.into()))
        })
        .collect();
    let metadata = vec![
        KeyValue::new(KEY_VERSION.to_owned(), VERSION.to_owned()),
        KeyValue::new(KEY_LENGTHS.to_owned(), lengths),
        KeyValue::new(KEY_ABOUT.to_owned(), about.to_owned()),
    ];
    write_columns(path, &filled, rows, metadata)
}

/// Read a file of [`write_inside`], and its metadata. With `expected`, the length [bytes] and
/// digest are checked before anything is parsed.
///
/// # Errors
/// [`ErrorKind::Results`]: missing, not the expected file, damaged, not such a file, or of another
/// version.
pub fn read_inside(path: &Path, expected: Option<&Digest>) -> Result<(Inside, String)> {
    let table = read_table(path, expected).map_err(Problem::from);
    table.and_then(|table| contained(|| columns_of(table))?).map_err(|problem| match problem {
        Problem::Version(version) => {
            version_error("The record of the inside of the device", path, &version, VERSION)
        }
        Problem::Damage(message) => {
            Error::new(ErrorKind::Results, "The record of the inside of the device cannot be read")
                .at(path.display().to_string())
                .got(message)
                .action("move the file away: the run itself is not affected")
        }
        Problem::Log | Problem::Long => unreachable!("a problem of traces"),
    })
}

fn columns_of(mut table: Table) -> std::result::Result<(Inside, String), Problem> {
    let key = |name: &str| table.value(name).ok_or_else(|| format!("no '{name}' in its metadata"));
    let (version, lengths, about) = (key(KEY_VERSION)?, key(KEY_LENGTHS)?, key(KEY_ABOUT)?);
    if version != VERSION {
        return Err(Problem::Version(version));
    }
    let lengths: BTreeMap<String, usize> =
        serde_json::from_str(&lengths).map_err(|error| format!("'{KEY_LENGTHS}': {error}"))?;
    let column = |(name, length): (String, usize)| {
        let mut values = table.take(&name)?;
        if length > values.len() {
            return Err(format!("{length} values of '{name}' in {} rows", values.len()).into());
        }
        values.truncate(length);
        Ok((name, values))
    };
    let columns: std::result::Result<Inside, Problem> = lengths.into_iter().map(column).collect();
    Ok((columns?, about))
}
