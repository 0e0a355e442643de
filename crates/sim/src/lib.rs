//! Simulated flash devices, in virtual time.
//!
//! ```text
//! host Io → logical pages → FTL plans → flash ops → NAND checks and applies → timeline charges time → Completion
//!           (geometry)      (ftl, gc,   (media)     (nand)                    (timeline)              (breakdown)
//!                            alloc)
//! ```
//!
//! The FTL and its policies decide *what* happens to which page; they see no clock and touch no
//! cell. The NAND checks the rules of flash; the timeline charges dies, channels and the host link.
//! So the same FTL runs in two gears: timed, and untimed for filling a device at memory speed.

mod alloc;
mod backend;
mod bits;
mod blocks;
mod breakdown;
mod cache;
mod clocks;
mod collector;
mod data_blocks;
mod describe;
mod device;
mod durable;
mod examine;
mod faults;
mod ftl;
mod gc;
mod geometry;
mod host;
pub mod huge;
mod interface;
mod issued;
mod media;
mod merging;
mod nand;
mod open_channel;
mod overrides;
mod paged;
mod precondition;
mod profile;
mod random_log;
mod reliability;
mod run;
pub mod snapshot;
mod sources;
mod stripes;
mod timeline;
mod toml_text;
mod tree;
mod units;
mod untimed;
mod waiting;
mod wear_out;
mod write_log;

pub use alloc::ALLOCATORS;
pub use breakdown::SimBreakdown;
pub use device::SimDevice;
pub use examine::profile_faults;
pub use faults::Fault;
pub use ftl::FTLS;
pub use gc::VICTIM_POLICIES;
pub use geometry::{BlockIdx, DieIdx, Geometry, Lpn, Ppn, Shape};
pub use open_channel::{BlockState, FlashBreakdown, OpenChannelDevice, OpenChannelProfile};
pub use overrides::{INTERFACES, interface_of};
pub use profile::{Profile, State};
pub use reliability::{Rber, Reliability, ReliabilityPart, WEAR_LAWS};
pub use sources::{Source, SourceKind, sources};
pub use timeline::DieQueue;
pub use toml_text::toml_to_json;
