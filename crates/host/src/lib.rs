//! Real devices: files and block devices through direct, synchronous positional I/O, and the null
//! device that measures the harness itself.
//!
//! Nothing here writes to anything that was not opened as writable, creates a file that no size was
//! given for, or opens a path under `/dev` as a file. What may be written to is decided in one place,
//! [`guard`].

mod block;
mod brand;
mod buffer;
mod cached_stat;
mod clock;
mod completions;
mod data_file;
mod direct;
mod file;
mod growth;
mod guard;
mod null;
mod queued;
mod standing;
mod watch;
mod wear;
mod zoned;

pub use block::{BlockOptions, check_block, inspect_block, known_blocks, open_block, report_block};
pub use brand::Brand;
pub use buffer::Data;
pub use clock::{clock_cost_ns, now, wait_until};
pub use completions::{Completions, check_polled};
pub use data_file::{DataFile, DataOptions, check_data_file};
pub use direct::DirectDevice;
pub use file::{FileOptions, check_file, inspect_file, open_file};
pub use growth::Growth;
pub use guard::Roots;
pub use guard::admit::{BlockReport, told};
pub use guard::signature::Signature;
pub use null::NullDevice;
pub use queued::QueuedDevice;
pub use standing::Standing;
pub use watch::Watch;
pub use wear::{Wear, wear_of};
