//! Real devices: files and block devices with direct, synchronous positional I/O, NVMe drives
//! by their own commands, and the null device that measures the harness itself.
//!
//! This crate writes only to targets opened as writable, creates files only with a given size, and
//! never opens a path under `/dev` as a file. One place, [`guard`], decides what may be written.

mod block;
mod buffer;
mod cached_stat;
mod clock;
mod completions;
mod data_file;
mod direct;
mod drive_query;
mod file;
mod guard;
mod io_queue;
mod null;
mod nvme;
mod queued_device;
mod watch;
mod zoned;

pub use block::{
    BlockOptions, check_block, inspect_block, open_block, report_block, report_blocks,
};
pub use buffer::Data;
pub use clock::{clock_cost_ns, now, wait_until};
pub use completions::{Completions, check_polled};
pub use data_file::{DataFile, DataOptions, check_data_file};
pub use direct::DirectDevice;
pub use drive_query::{DriveQuery, query_drive};
pub use file::{FileOptions, Growth, check_file, inspect_file, open_file};
pub use guard::Roots;
pub use guard::admit::{BlockReport, format_uses};
pub use guard::ownership::{SectorStamp, unique_number};
pub use guard::signature::Signature;
pub use null::NullDevice;
pub use nvme::{NvmeDevice, NvmeQueue, inspect_nvme, open_nvme};
pub use queued_device::QueuedDevice;
pub use watch::{DeviceWatch, TargetStatus};
