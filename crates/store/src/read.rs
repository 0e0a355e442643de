//! Reading a trace back. Whatever is wrong with a file is one clear error that names it.

use std::fs::File;
use std::path::Path;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::Int64Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use uflip_core::{Bytes, Error, ErrorKind, Result, SECTOR_BYTES_MIN};
use uflip_engine::{PatternSpec, Trace};

use crate::{KEY_ENDED, KEY_PATTERN, KEY_RUN, KEY_VERSION, TRACE_VERSION};

/// A stored pattern is complete, so it is checked against a device without an end.
const ANY_CAPACITY: Bytes = Bytes(u64::MAX >> 1);

/// Read the trace in `path` and the metadata that it was written with.
///
/// # Errors
/// [`ErrorKind::Results`]: missing, truncated, not a trace, or of a newer version.
pub fn read_trace(path: &Path) -> Result<(Trace, String)> {
    let damaged = |message: String| {
        Error::new(ErrorKind::Results, "The trace cannot be read: it is damaged or not a trace")
            .at(path.display().to_string())
            .got(message)
            .action("move the file away to look at the other runs, or measure again")
    };
    let file = File::open(path).map_err(|error| damaged(error.to_string()))?;
    let reader = SerializedFileReader::new(file).map_err(|error| damaged(error.to_string()))?;
    let optional = |name: &str| {
        let pairs = reader.metadata().file_metadata().key_value_metadata();
        let pair = pairs.into_iter().flatten().find(|pair| pair.key == name);
        pair.and_then(|pair| pair.value.clone())
    };
    let key =
        |name: &str| optional(name).ok_or_else(|| damaged(format!("no '{name}' in its metadata")));
    let version = key(KEY_VERSION)?;
    if version != TRACE_VERSION {
        return Err(Error::new(ErrorKind::Results, "The trace is of another version")
            .at(path.display().to_string())
            .got(version)
            .allowed(TRACE_VERSION)
            .action("read it with the version of uflip that wrote it, or a newer one"));
    }
    let run = key(KEY_RUN)?;
    let pattern = PatternSpec::parse(&key(KEY_PATTERN)?)
        .and_then(|spec| spec.resolve(ANY_CAPACITY, Bytes(SECTOR_BYTES_MIN)))
        .map_err(|error| damaged(error.to_string()))?;

    let mut columns = read_columns(&reader).map_err(|error| damaged(error.to_string()))?;
    let rows = pattern.totals.total_ios;
    let mut take = |name: &str| {
        let found = columns.iter().position(|(column, _)| column == name);
        let values = found.map(|index| columns.remove(index).1).unwrap_or_default();
        if values.len() as u64 == rows {
            return Ok(values);
        }
        Err(damaged(format!("{} values in column '{name}' instead of {rows}", values.len())))
    };
    let (submit_ns, response_time_ns) = (take("submit_ns")?, take("response_time_ns")?);
    let (causes, cause_ns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    if cause_ns.iter().any(|column: &Vec<u64>| column.len() as u64 != rows) {
        return Err(damaged("columns of different lengths".into()));
    }
    let mut trace = Trace::from_columns(pattern, submit_ns, response_time_ns, causes, cause_ns);
    let ended = optional(KEY_ENDED).map(|text| serde_json::from_str(&text)).transpose();
    trace.ended = ended.map_err(|error| damaged(format!("'{KEY_ENDED}': {error}")))?;
    Ok((trace, run))
}

/// Every 64-bit column with its name, in the order of the file.
fn read_columns(
    reader: &SerializedFileReader<File>,
) -> parquet::errors::Result<Vec<(String, Vec<u64>)>> {
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns = Vec::new();
    for (index, column) in schema.columns().iter().enumerate() {
        if column.physical_type() != parquet::basic::Type::INT64 {
            continue;
        }
        let mut values: Vec<i64> = Vec::new();
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group)?;
            let rows = group.metadata().num_rows() as usize;
            let mut typed = get_typed_column_reader::<Int64Type>(group.get_column_reader(index)?);
            let (records, _, _) = typed.read_records(rows, None, None, &mut values)?;
            if records != rows {
                return Err(parquet::errors::ParquetError::EOF(format!(
                    "{records} of {rows} rows"
                )));
            }
        }
        let unsigned = values.into_iter().map(|value| value as u64).collect();
        columns.push((column.name().to_owned(), unsigned));
    }
    Ok(columns)
}
