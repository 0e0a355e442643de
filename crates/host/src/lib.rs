//! Real devices: files and block devices through direct, synchronous positional I/O, and the null
//! device that measures the harness itself.
//!
//! Nothing here writes to anything that was not opened as writable, creates a file that no size was
//! given for, or opens a path under `/dev` as a file.

mod block;
mod buffer;
mod clock;
mod direct;
mod file;
mod growth;
mod null;
mod wear;

pub use block::{block_identity, inspect_block, open_block};
pub use buffer::Data;
pub use clock::{clock_cost_ns, now};
pub use direct::DirectDevice;
pub use file::{FileOptions, inspect_file, open_file};
pub use growth::Growth;
pub use null::NullDevice;
pub use wear::{Wear, wear_of};
