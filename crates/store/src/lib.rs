//! Traces on disk: one Parquet file a run, without the arrow crates.
//!
//! | column | type | what |
//! |---|---|---|
//! | `stream` | u16 | the process that submitted the I/O |
//! | `gap_ns` | i64 | submission, from the completion of the previous I/O in its row group (`table.rs`) |
//! | `response_time_ns` | u64 | response time |
//! | one per cause | u64 | the parts of the response time, on simulated devices and in an open loop |
//! | `offset_bytes`, `io_size_bytes`, `is_write` | u64 | only for a replay; trims have `is_write` 2 |
//!
//! Offset, size and mode are a pure function of the pattern, which is in the file's key-value
//! metadata, so they are not stored. Measured columns are compressed by zstd, one page for each
//! column of a row group (`table.rs`); all others, and other tables, are DELTA_BINARY_PACKED. Every
//! tested reader supports both.
//!
//! The format has a version (`uflip.trace_version`); a file of any other version is refused.

#![forbid(unsafe_code)]

mod digest;
mod flash;
mod inside;
mod pages;
mod read;
mod row_groups;
mod safe_read;
mod spool;
mod stored_trace;
mod table;
mod write;

use std::path::Path;

use uflip_core::{Error, ErrorKind};

pub use digest::{Digest, digest, digest_file, digest_files};
pub use flash::{
    flash_column, flash_column_names, read_flash_table, write_flash_csv, write_flash_table,
};
pub use inside::{Inside, read_inside, write_inside};
pub use read::{check_traces, read_metadata, read_specification, read_trace};
pub use spool::Spool;
pub use stored_trace::{HOST_GAP, StoredTrace, column, column_names, window};
pub use table::ColumnData;
pub use write::{append_csv, write_table, write_trace};

/// The version of the trace format.
const TRACE_VERSION: &str = "1";

const KEY_VERSION: &str = "uflip.trace_version";
const KEY_PATTERN: &str = "uflip.pattern";
const KEY_RUN: &str = "uflip.run";
/// The job over physical addresses, in place of a pattern.
const KEY_JOB: &str = "uflip.job";
/// The stopping record of a run with a stop rule; optional for readers.
const KEY_ENDED: &str = "uflip.ended";

/// The rows of a row group: the unit of writing and of random access.
const ROWS_PER_GROUP: usize = 1 << 16;

/// Larger files are not read into memory [bytes]: their rows are read on demand.
const IN_MEMORY_BYTES: u64 = 32 << 20;

/// The same limit in values: 64 MiB.
const IN_MEMORY_VALUES: u64 = 8 << 20;

/// The kind of the null device, in the metadata of a run.
const NULL_DEVICE: &str = "null";

/// Return the beginnings and ends of the parts in which `rows` rows are written and read.
fn row_parts(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).step_by(ROWS_PER_GROUP).map(move |from| (from, rows.min(from + ROWS_PER_GROUP)))
}

/// Return the error for a file of another version of its format.
fn version_error(name: &str, path: &Path, version: &str, readable: &str) -> Error {
    Error::new(ErrorKind::Results, format!("{name} is of another version"))
        .at(path.display().to_string())
        .got(format!("version {version}"))
        .allowed(format!("version {readable}, which this uflip reads"))
        .action("read it with the uflip that wrote it, or measure again")
}

/// Return whether an I/O of a run with this metadata (JSON) may have response time 0 without
/// causes.
fn allows_zero_time(run: &str) -> bool {
    let run = serde_json::from_str::<serde_json::Value>(run);
    run.is_ok_and(|run| run["device_kind"] == NULL_DEVICE)
}
