//! NVMe drives without the block layer: commands in the drive's own format, sent through the
//! generic character device of a namespace (`/dev/ng0n1`).
//!
//! ```text
//!  Io ──▶ queue ──▶ command ──▶ transport: io_uring passthrough, ioctl ──▶ drive
//!         pieces    encoding                 (in tests: a drive in memory)
//! ```
//!
//! **Source**: NVM Express Base Specification 2.1, NVM Command Set 1.1, Zoned Namespace Command Set
//! 1.2; `linux/nvme_ioctl.h` (`struct nvme_uring_cmd`, Linux 5.19).
//! **Faithful**: read, write, FUA, flush, deallocate, zone append, zone management, placement
//! handles of Flexible Data Placement, in the encoding of the specifications. The guard examines and
//! claims the block device of the same namespace.
//! **Simplified**: no metadata, no protection information, 64 Kibit of blocks per command, memory
//! pages of 4 KiB. An I/O longer than a command of the drive or the kernel is sent in pieces: all at
//! once, but one after another for writes to a zone. Memory is not registered with the kernel.
//! **Ambiguous**: a write without a placement handle goes to the first one of the namespace, as the
//! specification's default; stream 0 names none.

mod command;
mod namespace;
mod open;
mod queue;
mod status;
mod transport;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub(crate) use command::{Command, CommandSet};
pub use open::{inspect_nvme, open_nvme};
pub use queue::{NvmeDevice, NvmeQueue};
pub(crate) use transport::{KernelTransport, read};
