//! Traces on disk: one Parquet file a run, without the arrow crates.
//!
//! | column | type | what |
//! |---|---|---|
//! | `stream` | u16 | the process that submitted the I/O |
//! | `gap_ns` | i64 | when, from the completion of the I/O before it in its row group (`gaps.rs`) |
//! | `response_time_ns` | u64 | how long it took |
//! | one per cause | u64 | on simulated devices, and in an open loop: what the time was spent on |
//! | `offset_bytes`, `io_size_bytes`, `is_write` | u64 | of a replay only, whose I/Os no pattern tells; a trim is 2 |
//!
//! Offset, size and mode are a pure function of the pattern, which stands in the file's key-value
//! metadata, so they are not stored. What was measured is packed by zstd, a page for each column of a
//! row group (`pack.rs`); the others, and other tables, are DELTA_BINARY_PACKED. Every reader we tried
//! understands both.
//!
//! Format history (`uflip.trace_version`): 1, first; `uflip.ended` may stand in the metadata since, and
//! a reader may do without it. 2, `gap_ns` in the place of `submit_ns`; 1 is read. 3 is 2 of what older
//! readers do not know: a replay, or an open loop; everything else was still written as 2. 4: pages may be
//! packed by zstd. 5 is 4 of what older readers do not know: patterns that trim.

#![forbid(unsafe_code)]

mod columns;
mod contain;
mod csv;
mod digest;
mod flash;
mod gaps;
mod groups;
mod inside;
mod open;
mod pack;
mod pages;
mod read;
mod spool;
mod stored;
mod table;
mod write;

pub use columns::{ColumnData, MODES, column, column_names, window};
pub use csv::append_csv;
pub use digest::{Digest, digest, digest_file, digest_files};
pub use flash::{
    flash_column, flash_column_names, read_flash_table, write_flash_csv, write_flash_table,
};
pub use inside::{Inside, read_inside, write_inside};
pub use read::{check_traces, read_metadata, read_specification, read_trace};
pub use spool::Spool;
pub use stored::StoredTrace;
pub use table::write_table;
pub use write::write_trace;

/// Version of the trace format that this crate writes.
pub const TRACE_VERSION: &str = "5";

/// Those before, which are read in the same way.
const EARLIER_VERSIONS: [&str; 3] = ["2", "3", WITHOUT_TRIMS];

/// What is written where no older reader would stumble.
const WITHOUT_TRIMS: &str = "4";

/// The first, which is read as well: times of submission are stored as they are.
const FIRST_VERSION: &str = "1";

const KEY_VERSION: &str = "uflip.trace_version";
const KEY_PATTERN: &str = "uflip.pattern";
const KEY_RUN: &str = "uflip.run";
/// The job over physical addresses, in the place of a pattern.
const KEY_JOB: &str = "uflip.job";
/// How a run came to its length, where it found that itself; a reader may do without.
const KEY_ENDED: &str = "uflip.ended";

/// Rows of one row group: what is held in memory while it is written, and what is read to find a few.
const ROWS_A_GROUP: usize = 1 << 16;

/// A file of more is not read into memory [bytes]: its rows are read when they are asked for.
const IN_MEMORY_BYTES: u64 = 32 << 20;

/// ... nor one that holds more values: 64 MiB.
const IN_MEMORY_VALUES: u64 = 8 << 20;

/// The device that is as fast as the clock, in the metadata of a run.
const NULL_DEVICE: &str = "null";

/// Whether an I/O of a run with this metadata (JSON) may take no time although no cause says so.
fn at_once(run: &str) -> bool {
    let run = serde_json::from_str::<serde_json::Value>(run);
    run.is_ok_and(|run| run["device_kind"] == NULL_DEVICE)
}
