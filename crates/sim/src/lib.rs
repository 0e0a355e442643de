//! Simulated flash devices, in virtual time.
//!
//! ```text
//! host Io → logical pages → FTL plans → flash ops → NAND checks and applies → timeline charges time → Completion
//!           (device)        (ftl, pool)  (flash)     (flash)                  (timeline)              (breakdown)
//! ```
//!
//! The FTL and its policies decide *what* happens to which page; they see no clock and touch no
//! cell. The NAND checks the rules of flash; the timeline charges dies, channels and the host link.
//! So the same FTL runs in two modes: timed, and untimed to fill a device at memory speed. An
//! open-channel device has no FTL: its host decides under the same rules, and each address reports
//! its error.
//!
//! Modules; each one imports only those before it:
//!
//! ```text
//! collections   sets of pages, large arrays
//! flash         geometry, NAND, what wears out and how
//! timeline      clocks, events, what time is spent on
//! pool          blocks: which are free, filled next (alloc), emptied next (victim)
//! ftl           where every page lives; one file an FTL
//! config        a device as plain data, checked
//! snapshot      a device in a file
//! device        the block device: host interface, write cache, collection
//! open_channel  the device without an FTL: vectors of physical addresses, on the same flash and timeline
//! ```

mod collections;
mod config;
mod device;
mod examine;
mod flash;
mod ftl;
mod keys;
mod open_channel;
mod pool;
pub mod snapshot;
mod timeline;

pub use collections::huge;
pub use config::ftl::drawn_keys;
pub use config::overrides::{INTERFACES, interface_of};
pub use config::reader::Fault;
pub use config::sources::{KeySource, SourceKind, sources};
pub use config::toml_to_json;
pub use config::{InitialState, Profile};
pub use device::{Outage, PowerCut, Recovery, SimDevice};
pub use examine::{inspect_snapshot, key_tables, profile_faults};
pub use flash::geometry::{BlockIdx, Geometry, Lpn, PlaneIdx, Ppn, Shape};
pub use flash::reliability::{Rber, Reliability, ReliabilityPart, WEAR_LAWS};
pub use ftl::{FTLS, ZoneDies, ZonesPart};
pub use keys::Key;
pub use open_channel::{BlockState, OpenChannelDevice, OpenChannelProfile};
pub use pool::alloc::ALLOCATORS;
pub use pool::victim::VICTIM_POLICIES;
pub use snapshot::Snapshot;
pub use timeline::breakdown::{FlashBreakdown, SimBreakdown};
pub use timeline::log::{Operation, Operations, Wait};
pub use timeline::{DieQueue, MultiPlane};
