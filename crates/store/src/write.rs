//! Writing a trace: created new, written, synced. The caller renames it into place.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use uflip_core::{Error, ErrorKind, Result};
use uflip_engine::Trace;

use crate::columns::ColumnData;
use crate::{KEY_ENDED, KEY_PATTERN, KEY_RUN, KEY_VERSION, ROWS_A_GROUP, TRACE_VERSION};

/// Write `trace` to the new file `path` with `run` (JSON) as its metadata, and sync it.
///
/// # Errors
/// The file exists, or cannot be written (a full file system above all). [`ErrorKind::Internal`]: the
/// trace cannot have been measured; nothing is written then.
pub fn write_trace(trace: &Trace, path: &Path, run: &str) -> Result<()> {
    trace.check_sense(crate::at_once(run)).map_err(|message| {
        Error::new(ErrorKind::Internal, "The run makes no physical sense, and was not stored")
            .at(path.display().to_string())
            .got(message)
            .action("measure it again with --resume; if it stays, report it as a mistake in uflip")
    })?;
    let mut columns = vec![
        ("stream".to_owned(), ColumnData::U16(trace.stream_of_each().collect())),
        ("submit_ns".to_owned(), ColumnData::U64(trace.submit_ns.as_slice().into())),
        ("response_time_ns".to_owned(), ColumnData::U64(trace.response_time_ns.as_slice().into())),
    ];
    for (cause, values) in trace.causes.iter().zip(&trace.cause_ns) {
        columns.push((cause.clone(), ColumnData::U64(values.as_slice().into())));
    }
    let mut metadata = vec![
        KeyValue::new(KEY_VERSION.to_owned(), TRACE_VERSION.to_owned()),
        KeyValue::new(KEY_PATTERN.to_owned(), trace.pattern.canonical.to_string()),
        KeyValue::new(KEY_RUN.to_owned(), run.to_owned()),
    ];
    let ended = trace.ended.as_ref().map(ToString::to_string);
    metadata.extend(ended.map(|ended| KeyValue::new(KEY_ENDED.to_owned(), ended)));
    write_columns(path, &[], &columns, trace.len(), metadata)
}

/// Write `texts` (one value for all rows) and `columns` of `rows` values each to a new file.
pub(crate) fn write_columns(
    path: &Path,
    texts: &[(String, String)],
    columns: &[(String, ColumnData<'_>)],
    rows: usize,
    metadata: Vec<KeyValue>,
) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
        let kind = error.kind();
        let failed = Error::os("The file cannot be made", path.display().to_string(), &error);
        if kind != std::io::ErrorKind::AlreadyExists {
            return failed;
        }
        Error::new(ErrorKind::Results, "The file exists already; nothing is ever overwritten")
            .at(path.display().to_string())
            .action("choose another name, or move the file away")
    })?;
    let written = write_all(&file, texts, columns, rows, metadata);
    let synced = written.and_then(|()| file.sync_all().map_err(|error| error.to_string()));
    synced.map_err(|message| {
        let _ = std::fs::remove_file(path);
        Error::device("The file cannot be written")
            .at(path.display().to_string())
            .got(message)
            .action("check that the file system is not full and may be written")
    })
}

fn write_all(
    file: &File,
    texts: &[(String, String)],
    columns: &[(String, ColumnData<'_>)],
    rows: usize,
    metadata: Vec<KeyValue>,
) -> std::result::Result<(), String> {
    let message = schema(texts, columns);
    let schema = parse_message_type(&message).map_err(|error| error.to_string())?;
    let mut properties = WriterProperties::builder()
        .set_key_value_metadata(Some(metadata))
        .set_created_by(concat!("uflip ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED);
    for (name, _) in texts {
        // One value for all rows: a dictionary of one entry.
        let path = parquet::schema::types::ColumnPath::from(name.as_str());
        properties = properties
            .set_column_dictionary_enabled(path.clone(), true)
            .set_column_encoding(path, Encoding::PLAIN);
    }
    let write = || -> parquet::errors::Result<()> {
        let buffered = std::io::BufWriter::with_capacity(1 << 20, file);
        let mut writer =
            SerializedFileWriter::new(buffered, Arc::new(schema), Arc::new(properties.build()))?;
        for from in (0..rows).step_by(ROWS_A_GROUP) {
            let to = rows.min(from + ROWS_A_GROUP);
            let mut group = writer.next_row_group()?;
            for (_, value) in texts {
                write_text(&mut group, value, to - from)?;
            }
            for (_, values) in columns {
                write_numbers(&mut group, values, from, to)?;
            }
            group.close()?;
        }
        writer.close()?;
        Ok(())
    };
    write().map_err(|error| error.to_string())
}

fn schema(texts: &[(String, String)], columns: &[(String, ColumnData<'_>)]) -> String {
    let mut message = String::from("message uflip {\n");
    for (name, _) in texts {
        message += &format!("  REQUIRED BYTE_ARRAY {name} (STRING);\n");
    }
    for (name, values) in columns {
        let kind = match values {
            ColumnData::U8(_) => "INT32",
            ColumnData::U16(_) => "INT32",
            ColumnData::U32(_) => "INT32",
            ColumnData::U64(_) => "INT64",
        };
        let bits = match values {
            ColumnData::U8(_) => 8,
            ColumnData::U16(_) => 16,
            ColumnData::U32(_) => 32,
            ColumnData::U64(_) => 64,
        };
        message += &format!("  REQUIRED {kind} {name} (INTEGER({bits},false));\n");
    }
    message + "}"
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

fn write_text<W: std::io::Write + Send>(
    group: &mut Group<'_, W>,
    value: &str,
    rows: usize,
) -> parquet::errors::Result<()> {
    let values = vec![ByteArray::from(value); rows];
    let mut column = group.next_column()?.expect("as many columns as in the schema");
    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
    column.close()
}

fn write_numbers<W: std::io::Write + Send>(
    group: &mut Group<'_, W>,
    values: &ColumnData<'_>,
    from: usize,
    to: usize,
) -> parquet::errors::Result<()> {
    fn narrow<T: Copy + Into<u32>>(values: &[T]) -> Vec<i32> {
        // Parquet stores unsigned numbers in the signed type of the same width.
        values.iter().map(|value| (*value).into() as i32).collect()
    }
    let mut column = group.next_column()?.expect("as many columns as in the schema");
    match values {
        ColumnData::U64(values) => {
            let wide: Vec<i64> = values[from..to].iter().map(|value| *value as i64).collect();
            column.typed::<Int64Type>().write_batch(&wide, None, None)?;
        }
        ColumnData::U32(values) => {
            column.typed::<Int32Type>().write_batch(&narrow(&values[from..to]), None, None)?;
        }
        ColumnData::U16(values) => {
            column.typed::<Int32Type>().write_batch(&narrow(&values[from..to]), None, None)?;
        }
        ColumnData::U8(values) => {
            column.typed::<Int32Type>().write_batch(&narrow(&values[from..to]), None, None)?;
        }
    }
    column.close()
}
